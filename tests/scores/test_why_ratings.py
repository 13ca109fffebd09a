"""The table of win rates on the page "Why" is what our functions make of the real ratings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from echo_hf.scores import win_rate
from echo_hf.scores.judge_votes import ranks
from tests.scores.ratings_for_tests import real_rows

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "why.md"
JUDGES = ["gpt4o", "gemini", "qwenvl"]
LINE = re.compile(
    r"^\| (\w+) \| (\.\d+) ± (\.\d+) \| (\d) \| (\.\d+) \((\.\d+) to (\.\d+)\) \| (\d) \|$", re.M
)


def test_every_number_of_the_table_is_current(test_data: Path) -> None:
    """All eight systems, to the shown decimals: rates, errors, intervals and both ranks."""
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
        assert int(place) == ranks(published.win_rate)[system]
        assert int(rank) == ranks(corrected.win_rate)[system]
