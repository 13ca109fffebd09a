"""Rates by slice against counting the slice's rows alone, and shrinkage against closed forms."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf._infra.bootstrap import Unscored
from echo_hf.errors import ScoreError
from echo_hf.scores import shrink, slice_rates, win_rate
from echo_hf.scores.votes import ProtocolName
from tests.scores.ratings_for_tests import Row, counted_rates, rows_of

KINDS = ("edit", "logo", "text", "style", "rest")
# Trials of BCG vaccine (Colditz et al. 1994): ill and well with it, ill and well without. By the
# documentation of metafor the variance of log risk ratios between trials is 0.3088.
BCG = (
    (4, 119, 11, 128), (6, 300, 29, 274), (3, 228, 11, 209), (62, 13536, 248, 12619),
    (33, 5036, 47, 5761), (180, 1361, 372, 1079), (8, 2537, 10, 619), (505, 87886, 499, 87892),
    (29, 7470, 45, 7232), (17, 1699, 65, 1600), (186, 50448, 141, 27197), (5, 2493, 3, 2338),
    (27, 16886, 29, 17825),
)  # fmt: skip


def draw_cube(seed: int, samples: int, missing: float = 0.1) -> dict[str, dict[str, list[Any]]]:
    """Ratings of two judges by chance, some of them missing."""
    rng = np.random.default_rng(seed)
    return {
        judge: {
            system: [
                None if rng.random() < missing else float(rng.integers(0, 4))
                for _ in range(samples)
            ]
            for system in ("ash", "birch", "cedar")
        }
        for judge in ("jay", "kite")
    }


def name_sample(number: int) -> str:
    return f"s{number:03}"


@pytest.mark.parametrize("protocol", get_args(ProtocolName))
def test_a_slice_is_scored_as_if_nothing_else_was_rated(protocol: ProtocolName) -> None:
    """A sample with two values counts in both slices; intervals are the board's."""
    cube = draw_cube(1, 90)
    numbers = {"edit": range(40), "text": range(30, 90), "few": range(9)}
    values = {
        name_sample(at): [kind for kind, own in numbers.items() if at in own] for at in range(90)
    }
    rows = rows_of(cube)
    found = slice_rates(rows, values=values, protocol=protocol, n_boot=200)
    assert list(found.slices) == ["text", "edit", "few"]
    for kind in ("edit", "text"):
        part = {
            judge: {system: [column[at] for at in numbers[kind]] for system, column in by.items()}
            for judge, by in cube.items()
        }
        names = {name_sample(at) for at in numbers[kind]}
        own = [row for row in rows if row["sample_id"] in names]
        row = found.slices[kind]
        assert row.win_rate == pytest.approx(counted_rates(part, protocol))
        assert row.interval == win_rate(own, protocol=protocol, n_boot=200).interval
    few = found.slices["few"]
    assert {*few.win_rate.values(), *few.interval.values()} == {None}
    assert {*few.reasons.values()} == {Unscored.FEW_SAMPLES}


def test_the_variance_between_groups_is_the_published_one() -> None:
    ill, well, others_ill, others_well = np.array(BCG).T
    given, without = ill + well, others_ill + others_well
    ratios = np.log(ill / given) - np.log(others_ill / without)
    variances = 1 / ill - 1 / given + 1 / others_ill - 1 / without
    assert shrink(ratios, variances, given).variance == pytest.approx(0.3088, abs=5e-5)


@given(estimates=st.lists(st.floats(0, 1), min_size=4, max_size=12), variance=st.floats(1e-4, 0.1))
def test_of_equal_variances_all_is_a_closed_form(estimates: list[float], variance: float) -> None:
    """James and Stein's kind of estimate, with the chi-square's variance of what is between."""
    found, groups, spread = (
        shrink(estimates, [variance] * len(estimates), [3] * len(estimates)),
        (len(estimates)),
        np.var(estimates, ddof=1),
    )
    between = max(0.0, spread - variance)
    own = between / (between + variance)
    mean = np.mean(estimates)
    error = own * variance + (1 - own) ** 2 * (between + variance) / groups
    error += 4 * variance**2 / (between + variance) / (groups - 1)
    assert found.variance == pytest.approx(between, abs=1e-9)
    assert found.values == pytest.approx([mean + own * (each - mean) for each in estimates])
    halves = [(high - low) / 2 for low, high in found.intervals]
    assert halves == pytest.approx([1.959964 * np.sqrt(error)] * groups, rel=1e-4)


@pytest.mark.parametrize("between", [0.0, 0.003, 0.03])
def test_intervals_of_shrunken_rates_hold_and_errors_are_smaller(between: float) -> None:
    """Slices of 10 to 80 samples whose true rates differ by so much, drawn 1,500 times."""
    rng, sizes = np.random.default_rng(0), np.array([10, 10, 15, 20, 40, 80])
    hits, errors = 0.0, np.zeros(2)
    for _ in range(1500):
        true = rng.normal(0.5, np.sqrt(between), len(sizes))
        raw = rng.normal(true, np.sqrt(0.2 / sizes))
        found = shrink(raw, 0.2 / sizes, sizes)
        hits += np.mean(
            [low <= rate <= high for rate, (low, high) in zip(true, found.intervals, strict=True)]
        )
        errors += [((raw - true) ** 2).mean(), ((np.array(found.values) - true) ** 2).mean()]
    assert 0.93 < hits / 1500 <= 1
    assert errors[1] < errors[0]


def _score(shares: dict[str, float], samples: int = 20) -> tuple[list[Row], dict[str, list[str]]]:
    """Two systems, of which the first wins a share of each slice's samples."""
    rows, values = list[Row](), dict[str, list[str]]()
    for kind, share in shares.items():
        for at in range(samples):
            name = f"{kind}{at}"
            values[name] = [kind]
            rating = 9 if at < round(share * samples) else 1
            rows += [
                {"sample_id": name, "system": system, "judge": "j", "rating": number}
                for system, number in {"ash": rating, "birch": 5}.items()
            ]
    return rows, values


def test_slices_are_drawn_to_the_whole_as_far_as_chance_explains_them() -> None:
    """By hand: of shares .8, .5, .4, .3, .5 on 20 samples each."""
    shares = dict(zip(KINDS, (0.8, 0.5, 0.4, 0.3, 0.5), strict=True))
    rows, values = _score(shares)
    found = slice_rates(rows, values=values, n_boot=0)
    variance = np.mean([share * (1 - share) * 20 / 19 for share in shares.values()]) / 20
    between = np.var(list(shares.values()), ddof=1) - variance
    own = between / (between + variance)
    assert found.spread["ash"] == pytest.approx(np.sqrt(between))
    for kind, share in shares.items():
        row = found.slices[kind]
        assert row.win_rate["ash"] == pytest.approx(share)
        assert row.shrunk["ash"] == pytest.approx(0.5 + own * (share - 0.5))
        low, high = row.shrunk_interval["ash"] or (1, 0)
        assert 0 <= low < row.shrunk["ash"] < high <= 1


def test_without_enough_slices_or_spread_nothing_is_shrunk_and_the_reason_is_kept() -> None:
    rows, values = _score(dict.fromkeys(KINDS[:3], 0.5))
    values["edit0"], values["edit1"] = [], ["logo", "logo"]
    found = slice_rates(rows, values=values, n_boot=0)
    assert (found.no_value, found.slices["logo"].samples) == (1, 21)
    assert {*found.reasons.values()} == {Unscored.FEW_SLICES}
    assert {rate for row in found.slices.values() for rate in row.shrunk.values()} == {None}
    rows, values = _score(dict.fromkeys(KINDS, 1.0))
    assert slice_rates(rows, values=values, n_boot=0).reasons["ash"] is Unscored.NO_SPREAD


def test_a_judge_who_was_spared_samples_leaves_a_slice_as_it_would_be_alone() -> None:
    """Where all judges were asked about too little of a slice there is no rate, and no error."""
    rng, rows, values = np.random.default_rng(3), list[Row](), dict[str, list[str]]()
    for at in range(80):
        name = name_sample(at)
        values[name] = ["edit" if at < 40 else "text"]
        for system in ("ash", "birch", "cedar"):
            for judge in ("jay", "kite"):
                spared = judge == "kite" and (at >= 20 if at < 40 else at >= 45)
                row = {"sample_id": name, "system": system, "judge": judge}
                rating = None if spared else float(rng.integers(0, 9))
                outcome = "not_needed" if spared else "ok"
                rows.append({**row, "rating": rating, "outcome": outcome})
    found = slice_rates(rows, values=values, n_boot=0).slices
    alone = win_rate([row for row in rows if values[row["sample_id"]] == ["edit"]], n_boot=0)
    assert (found["edit"].win_rate, found["edit"].interval) == (alone.win_rate, alone.interval)
    assert {*found["text"].win_rate.values()} == {None}


@pytest.mark.parametrize(
    ("estimates", "variances"),
    [([0.1, 0.2, 0.3], [1, 1, 1]), ([0.1] * 4, [1, 1, 1, 0]), ([float("nan")] * 4, [1] * 4)],
)
def test_groups_that_cannot_be_shrunk_are_refused(
    estimates: list[float], variances: list[float]
) -> None:
    with pytest.raises(ScoreError, match="expected 4 or more of each, finite"):
        shrink(estimates, variances, [1] * len(estimates))


def test_a_system_that_few_samples_of_a_slice_compare_has_no_rate_there() -> None:
    """Of 20 samples it was rated on 9; the others keep theirs."""
    rows, values = _score({"edit": 0.5})
    rows += [
        {"sample_id": f"edit{at}", "system": "cedar", "judge": "j", "rating": 7} for at in range(9)
    ]
    row = slice_rates(rows, values=values, n_boot=0).slices["edit"]
    assert (row.win_rate["cedar"], row.reasons["cedar"]) == (None, Unscored.FEW_SAMPLES)
    assert row.win_rate["ash"] is not None
