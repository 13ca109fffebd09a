"""What three people and three judges said of 8 real systems on 179 real edits.

References are computed here from the same rows with pandas and scipy, one sample or pair at a
time, by formulas that know nothing of arrays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from echo_hf.scores import Agreement, agreement, win_rate
from tests.scores.ratings_for_tests import Row, real_people, real_rows

JUDGES = ["gpt4o", "gemini", "qwenvl"]


@pytest.fixture(scope="module")
def found(test_data: Path) -> Agreement:
    return agreement(real_people(test_data), real_rows(test_data))


def places(rates: Mapping[str, float | None]) -> dict[str, int]:
    ordered = sorted(rates, key=lambda name: -(rates[name] or 0))
    return {name: at for at, name in enumerate(ordered, 1)}


def test_judges_agree_with_the_consensus_as_with_the_mean_of_people(
    found: Agreement, test_data: Path
) -> None:
    """A consensus of ranks is nearly the order of mean scores: .595, .479 and -.033 of old."""
    expected = {"gpt4o": 0.595, "gemini": 0.479, "qwenvl": -0.033}
    taus = {judge: one.tau for judge, one in found.judges.with_consensus.items()}
    assert taus == pytest.approx(expected, abs=0.002)


@pytest.fixture(scope="module")
def rows(test_data: Path) -> list[Row]:
    return real_rows(test_data)


PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "why.md"
LINE = re.compile(
    r"^\| (\w+) \| (\.\d+) ± (\.\d+) \| (\d) \| (\.\d+) \((\.\d+) to (\.\d+)\) \| (\d) \|$", re.M
)


def test_every_number_of_the_table_is_current(test_data: Path) -> None:
    rows = real_rows(test_data)
    published = win_rate(rows, protocol="published", judges=JUDGES)
    corrected = win_rate(rows)
    lines = LINE.findall(PAGE.read_text("utf-8"))

    assert [line[0] for line in lines] == list(corrected.win_rate)
    for system, rate, error, place, vote, low, high, rank in lines:
        numbers = [float(one) for one in (rate, error, vote, low, high)]
        interval = corrected.interval[system]
        assert interval is not None
        assert numbers == pytest.approx(
            [
                published.win_rate[system],
                published.standard_error[system],
                corrected.win_rate[system],
                *interval,
            ],
            abs=0.00051,
        )
        assert int(place) == places(published.win_rate)[system]
        assert int(rank) == places(corrected.win_rate)[system]
