"""The rules of an audit, against what a person would count."""

from __future__ import annotations

import re
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.judging.audit import RULES, Honeypot, checks_of, noise_of
from echo_hf.judging.rate import Scale
from tests.markdown_for_tests import cells
from tests.stages_for_tests import ROOT

SCALES = st.sampled_from([Scale(1, 10), Scale(0, 5, decimals=True), Scale(-2, 2)])


def rows_of(**ratings: list[float | None]) -> list[dict[str, Any]]:
    """A row for each rating; those of a place are about the same sample."""
    return [
        {"sample_id": f"s{at}", "system": name, "rating": rating}
        for name, every in ratings.items()
        for at, rating in enumerate(every)
    ]


@given(SCALES, st.data())
def test_a_share_is_counted_against_the_mean_of_real_outputs(
    scale: Scale, data: st.DataObject
) -> None:
    """Of rated honeypots, those at or below the mean less the margin; null counts nowhere."""
    number = st.none() | st.integers(int(scale.lowest), int(scale.highest)).map(float)
    every = st.lists(number, min_size=8, max_size=8)
    shown = {name: data.draw(every) for name in ("real", "blank", "unchanged", "shuffled")}
    found = checks_of(rows_of(**shown), scale)
    real = [one for one in shown["real"] if one is not None]
    for name in ("blank", "unchanged", "shuffled"):
        check, rule = found[name], RULES[Honeypot(name)]
        given_ = [one for one in shown[name] if one is not None]
        assert (check.shown, check.rated) == (8, len(given_))
        if min(len(real), len(given_)) < 5:
            assert (check.passed, check.reason) == (None, "few_ratings")
            continue
        limit = statistics.mean(real) - rule.margin * (scale.highest - scale.lowest)
        below = sum(one <= limit + 1e-6 for one in given_) / len(given_)
        assert (check.mean, check.share) == pytest.approx((statistics.mean(given_), below))
        if limit < scale.lowest - 1e-6:
            assert (check.passed, check.reason) == (None, "no_room")
        else:
            assert (check.passed, check.reason) == (below >= rule.share, None)


@given(st.lists(st.tuples(st.integers(1, 10), st.integers(1, 10)), min_size=1, max_size=12))
def test_noise_is_the_pooled_deviation_within_images(pairs: list[tuple[int, int]]) -> None:
    """The root of the mean variance of two ratings of the same image."""
    first, again = ({f"s{at}": float(one[way]) for at, one in enumerate(pairs)} for way in (0, 1))
    found = noise_of({"real": first, "renamed": again})
    pooled = statistics.mean(statistics.variance(one) for one in pairs) ** 0.5
    equal = sum(one == other for one, other in pairs) / len(pairs)
    expected = (len(pairs), equal, pooled, max(abs(one - other) for one, other in pairs))
    assert (found.samples, found.equal, found.deviation, found.largest) == pytest.approx(expected)


def test_a_second_rating_without_a_first_is_no_pair() -> None:
    """Nothing is held against nothing."""
    rows = rows_of(real=[None] * 6, renamed=[5.0] * 6)
    check = checks_of(rows, Scale(1, 10))["renamed"]
    assert (check.shown, check.rated, check.mean, check.share) == (6, 0, None, None)
    assert check.reason == "few_ratings"


@pytest.mark.parametrize("honeypot", RULES)
def test_the_guide_states_the_rules(honeypot: Honeypot) -> None:
    """The share first, then the margin, in hundredths."""
    guide = (ROOT / "docs" / "how-to" / "judges.md").read_text("utf-8")
    rows = {row[0]: row for row in cells(guide)}
    stated = [int(one) for one in re.findall(r"(\d+) %", rows[honeypot.value][2])]
    rule = RULES[honeypot]
    assert stated == [round(100 * rule.share), round(100 * rule.margin)]
