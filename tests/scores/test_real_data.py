"""What three people and three judges said of 8 real systems on 179 real edits.

References are computed here from the same rows with pandas and scipy, one sample or pair at a
time, by formulas that know nothing of arrays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations, product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau

from echo_hf.scores import (
    Agreement,
    agreement,
    bounds,
    leave_one_judge_out,
    samples_needed,
    sensitivity,
    tiers,
    win_rate,
)
from echo_hf.scores.votes import Missing, Protocol
from tests.scores.ratings_for_tests import Row, real_people, real_rows

RATERS = ["rater1", "rater2", "rater3"]
JUDGES = ["gpt4o", "gemini", "qwenvl"]


@pytest.fixture(scope="module")
def ranks(test_data: Path) -> pd.DataFrame:
    frame = pd.DataFrame(real_people(test_data))
    return frame.pivot_table(index=["sample_id", "system"], columns="rater", values="rank")


@pytest.fixture(scope="module")
def ratings(test_data: Path) -> pd.DataFrame:
    frame = pd.DataFrame(real_rows(test_data))
    return frame.pivot_table(index=["sample_id", "system"], columns="judge", values="rating")


@pytest.fixture(scope="module")
def found(test_data: Path) -> Agreement:
    return agreement(real_people(test_data), real_rows(test_data))


def places(rates: Mapping[str, float | None]) -> dict[str, int]:
    ordered = sorted(rates, key=lambda name: -(rates[name] or 0))
    return {name: at for at, name in enumerate(ordered, 1)}


def mean_tau(one: pd.Series, other: pd.Series) -> tuple[float, int]:
    both = pd.DataFrame({"one": one, "other": other}).dropna()
    taus = [
        kendalltau(sample["one"], sample["other"]).statistic
        for _, sample in both.groupby(level="sample_id")
        if sample["one"].nunique() > 1 and sample["other"].nunique() > 1
    ]
    return float(np.mean(taus)), len(taus)


def test_each_two_people_and_judges_agree_as_scipy_says(
    found: Agreement, ranks: pd.DataFrame, ratings: pd.DataFrame
) -> None:
    for one, other in combinations(RATERS, 2):
        tau = found.judges.among_raters[one][other]
        assert (tau.tau, tau.samples) == pytest.approx(mean_tau(ranks[one], ranks[other]))
    for judge, rater in zip(JUDGES, RATERS, strict=True):
        tau = found.judges.with_raters[judge][rater]
        assert (tau.tau, tau.samples) == pytest.approx(mean_tau(-ratings[judge], ranks[rater]))


def test_judges_agree_with_the_consensus_as_with_the_mean_of_people(
    found: Agreement, test_data: Path, ratings: pd.DataFrame
) -> None:
    """A consensus of ranks is nearly the order of mean scores: .595, .479 and -.033 of old."""
    expected = {"gpt4o": 0.595, "gemini": 0.479, "qwenvl": -0.033}
    taus = {judge: one.tau for judge, one in found.judges.with_consensus.items()}
    assert taus == pytest.approx(expected, abs=0.002)


def test_the_weaker_open_judge_does_not_agree_with_people(found: Agreement) -> None:
    """Qwen's interval holds 0; the other two are far above, at most of people's own agreement."""
    qwen = found.judges.with_consensus["qwenvl"]
    assert qwen.interval is not None
    assert qwen.p_value is not None
    assert qwen.interval[0] < 0 < qwen.interval[1]
    assert qwen.p_value > 0.2
    for judge in ("gpt4o", "gemini"):
        one, share = found.judges.with_consensus[judge], found.judges.share_of_ceiling[judge]
        assert one.p_value is not None
        assert share.interval is not None
        assert one.p_value < 0.001
        assert 0.5 < share.interval[0] < share.interval[1] < 0.9


BELOW_ALL = -1.0
KEY = ["sample_id", "a", "b"]


@pytest.fixture(scope="module")
def rows(test_data: Path) -> list[Row]:
    return real_rows(test_data)


@pytest.fixture(scope="module")
def outputs(rows: list[Row]) -> list[Row]:
    unrated = {
        (row["sample_id"], row["system"])
        for row in rows
        if row["judge"] == "qwenvl" and row["rating"] is None
    }
    return [
        {"sample_id": sample, "system": system, "outcome": outcome}
        for sample, system in sorted({(row["sample_id"], row["system"]) for row in rows})
        for outcome in [_outcome(system, (sample, system) in unrated)]
    ]


def _outcome(system: str, unrated: bool) -> str:
    if not unrated:
        return "ok"
    return "failed" if system == "SDEdit" else "refused"


def counted(frame: pd.DataFrame, protocol: str) -> pd.DataFrame:
    every = frame.dropna(subset="rating")
    pairs = every.merge(every, on=["sample_id", "judge"], suffixes=("_a", "_b"))
    pairs = pairs[pairs["system_a"] < pairs["system_b"]]
    pairs = pairs.rename(columns={"system_a": "a", "system_b": "b"})
    if protocol == "published":
        pairs = pairs.sort_values("judge", key=lambda names: names.map(JUDGES.index))
        pairs = pairs.drop_duplicates(KEY)
    wins = (pairs["rating_a"] > pairs["rating_b"]).astype(int)
    losses = (pairs["rating_a"] < pairs["rating_b"]).astype(int)
    votes = pairs.assign(lead=wins - losses).groupby(KEY, as_index=False)["lead"].sum()
    return votes.assign(points=votes["lead"].map(lambda lead: (lead > 0) + 0.5 * (lead == 0)))


def both_sides(pairs: pd.DataFrame) -> pd.DataFrame:
    turned = pairs.rename(columns={"a": "b", "b": "a"}).assign(points=1 - pairs["points"])
    return pd.concat([pairs, turned])


def counted_rates(sides: pd.DataFrame, protocol: str) -> dict[str, float]:
    if protocol == "published":
        return dict(sides.groupby("a")["points"].mean())
    return dict(sides.groupby(["a", "b"])["points"].mean().groupby("a").mean())


def as_counted(rows: list[Row], outputs: list[Row] | None, missing: Missing) -> pd.DataFrame:
    frame = pd.DataFrame(rows)
    if outputs is None:
        return frame
    frame = frame.merge(pd.DataFrame(outputs), on=["sample_id", "system"])
    frame.loc[frame["outcome"] != "ok", "rating"] = None
    if missing == "loss":
        frame.loc[frame["outcome"] == "refused", "rating"] = BELOW_ALL
    return frame


def check(found: Any, frame: pd.DataFrame, protocol: str) -> None:
    sides = both_sides(counted(frame, protocol))
    assert found.win_rate == pytest.approx(counted_rates(sides, protocol), abs=1e-12)
    by_pair = sides.groupby(["a", "b"])["points"]
    for (one, other), share in by_pair.mean().items():
        assert found.matrix[one][other] == pytest.approx(share, abs=1e-12)
    for (one, other), points in by_pair:
        assert found.pairs[one][other] == len(points)
        assert found.ties[one][other] == (points == 0.5).sum()
    coverage = sides.groupby("a").size() / (179 * 7)
    assert found.coverage == pytest.approx(dict(coverage))


@pytest.mark.parametrize(("protocol", "missing"), [*product(get_args(Protocol), get_args(Missing))])
def test_with_outputs_all_numbers_are_the_counted_ones(
    rows: list[Row], outputs: list[Row], protocol: Protocol, missing: Missing
) -> None:
    found = win_rate(rows, outputs, protocol=protocol, missing=missing, judges=JUDGES, n_boot=0)
    frame = as_counted(rows, outputs, missing)
    check(found, frame, protocol)
    assert found.by_missing is not None
    assert found.by_missing[missing] == found.win_rate
    gone = {(row["sample_id"], row["system"]) for row in outputs if row["outcome"] != "ok"}
    rated = [row for row in rows if row["rating"] is not None]
    assert found.ignored == {
        "no_picture": sum((row["sample_id"], row["system"]) in gone for row in rated)
    }


def test_the_bootstrap_error_is_that_of_samples_as_clusters(rows: list[Row]) -> None:
    """Nearly nothing is missing, so that it is the error of the mean over samples.

    Taken for independent, the same comparisons have an error a third smaller.
    """
    found = win_rate(rows).standard_error
    sides = both_sides(counted(pd.DataFrame(rows), "corrected"))
    clustered = sides.groupby(["a", "sample_id"])["points"].mean().groupby("a").sem()
    naive = sides.groupby("a")["points"].sem()
    assert found == pytest.approx(dict(clustered), rel=0.08)
    assert clustered.mean() > 1.5 * naive.mean()


def test_two_vote_rules_rank_the_same_ratings_differently(rows: list[Row]) -> None:
    published = places(win_rate(rows, protocol="published", judges=JUDGES, n_boot=0).win_rate)
    corrected = places(win_rate(rows, n_boot=0).win_rate)
    assert {system: (published[system], corrected[system]) for system in corrected} == {
        "MagicBrush": (1, 1),
        "Prompt2prompt": (2, 2),
        "SDEdit": (5, 3),
        "InstructPix2Pix": (3, 4),
        "CycleDiffusion": (4, 5),
        "Pix2PixZero": (8, 6),
        "DiffEdit": (6, 7),
        "Text2Live": (7, 8),
    }


def test_the_order_of_judges_decides_the_published_board(rows: list[Row]) -> None:
    asked = [
        win_rate(rows, protocol="published", judges=judges, n_boot=0).win_rate
        for judges in (JUDGES, JUDGES[::-1])
    ]
    assert [places(rates)["SDEdit"] for rates in asked] == [5, 1]
    assert [places(rates)["MagicBrush"] for rates in asked] == [1, 5]


def test_the_other_measures_agree_on_these_ratings(rows: list[Row]) -> None:
    board = win_rate(rows)
    found, around = tiers(rows), bounds(rows)
    assert [system for tier in found.tiers for system in tier] == list(board.win_rate)
    for system, rate in board.win_rate.items():
        ends = around.bounds[system]
        assert ends is not None
        assert rate is not None
        assert ends[0] <= rate <= ends[1]
    boards = {one.protocol: one.win_rate for one in sensitivity(rows, judges=JUDGES).boards}
    assert boards["corrected"] == board.win_rate
    assert boards["published"] == (
        win_rate(rows, protocol="published", judges=JUDGES, n_boot=0).win_rate
    )
    assert leave_one_judge_out(rows).win_rate == board.win_rate
    needed = samples_needed(rows).pairs["MagicBrush"]
    assert needed["Text2Live"].needed < 179 < needed["Prompt2prompt"].needed


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
