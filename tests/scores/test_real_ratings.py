"""4,296 ratings that real judges gave, against a count with pandas.

Eight systems edited 179 images; three judges rated the results from 0 to 10, and 76 ratings are
missing. The count merges each judge's ratings with themselves, and knows nothing of arrays.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, get_args

import pandas as pd
import pytest

from echo_hf.scores import bounds, leave_one_judge_out, samples_needed, sensitivity, tiers, win_rate
from echo_hf.scores.judge_votes import ranks
from echo_hf.scores.votes import Missing, Protocol
from tests.scores.ratings_for_tests import Row, real_rows

JUDGES = ["gpt4o", "gemini", "qwenvl"]
BELOW_ALL = -1.0
KEY = ["sample_id", "a", "b"]


@pytest.fixture(scope="module")
def rows(test_data: Path) -> list[Row]:
    """The ratings as they lie there."""
    return real_rows(test_data)


@pytest.fixture(scope="module")
def outputs(rows: list[Row]) -> list[Row]:
    """Outputs as if those that qwenvl could not rate had been refused, but for one system's."""
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
    """A line for each comparison: sample, systems a and b, points of a."""
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
    """Each comparison from either system's side."""
    turned = pairs.rename(columns={"a": "b", "b": "a"}).assign(points=1 - pairs["points"])
    return pd.concat([pairs, turned])


def counted_rates(sides: pd.DataFrame, protocol: str) -> dict[str, float]:
    """Mean over comparisons, or over opponents."""
    if protocol == "published":
        return dict(sides.groupby("a")["points"].mean())
    return dict(sides.groupby(["a", "b"])["points"].mean().groupby("a").mean())


def as_counted(rows: list[Row], outputs: list[Row] | None, missing: Missing) -> pd.DataFrame:
    """The ratings that count, with a rating below all others for what was refused."""
    frame = pd.DataFrame(rows)
    if outputs is None:
        return frame
    frame = frame.merge(pd.DataFrame(outputs), on=["sample_id", "system"])
    frame.loc[frame["outcome"] != "ok", "rating"] = None
    if missing == "loss":
        frame.loc[frame["outcome"] == "refused", "rating"] = BELOW_ALL
    return frame


def check(found: Any, frame: pd.DataFrame, protocol: str) -> None:
    """Rates, matrix, pairs, ties and coverage are those of the count."""
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


def test_the_ratings_are_those_that_were_counted(rows: list[Row]) -> None:
    """Eight systems, 179 samples, three judges; 76 nulls, and zeros are ratings."""
    frame = pd.DataFrame(rows)
    assert len(frame) == 4296
    assert frame.nunique()[["sample_id", "system", "judge"]].tolist() == [179, 8, 3]
    assert frame["rating"].isna().sum() == 76
    assert (frame["rating"] == 0).sum() == 1539


@pytest.mark.parametrize("protocol", get_args(Protocol))
def test_without_outputs_all_numbers_are_the_counted_ones(
    rows: list[Row], protocol: Protocol
) -> None:
    """Rates, matrix, pairs, ties and coverage, where nulls are missing."""
    found = win_rate(rows, protocol=protocol, judges=JUDGES, n_boot=0)
    check(found, as_counted(rows, None, "exclude"), protocol)
    assert found.ignored == {}


@pytest.mark.parametrize(("protocol", "missing"), [*product(get_args(Protocol), get_args(Missing))])
def test_with_outputs_all_numbers_are_the_counted_ones(
    rows: list[Row], outputs: list[Row], protocol: Protocol, missing: Missing
) -> None:
    """The same where refusals are missing, and where they are losses."""
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


@pytest.mark.parametrize("judge", JUDGES)
def test_each_judge_alone_is_the_counted_one(rows: list[Row], judge: str) -> None:
    """By the same count of that judge's ratings alone."""
    frame = pd.DataFrame(rows)
    sides = both_sides(counted(frame[frame["judge"] == judge], "corrected"))
    found = win_rate(rows, n_boot=0).per_judge[judge]
    assert found == pytest.approx(counted_rates(sides, "corrected"), abs=1e-12)


def test_the_published_error_is_that_of_pandas(rows: list[Row]) -> None:
    """std/sqrt(N) over a system's comparisons."""
    found = win_rate(rows, protocol="published", judges=JUDGES)
    sides = both_sides(counted(pd.DataFrame(rows), "published"))
    assert found.standard_error == pytest.approx(dict(sides.groupby("a")["points"].sem()))


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
    """The first judge's verdict against the majority's: six of eight systems change rank."""
    published = ranks(win_rate(rows, protocol="published", judges=JUDGES, n_boot=0).win_rate)
    corrected = ranks(win_rate(rows, n_boot=0).win_rate)
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
    """With the same ratings and qwenvl in front, the fifth of eight systems comes first."""
    asked = [
        win_rate(rows, protocol="published", judges=judges, n_boot=0).win_rate
        for judges in (JUDGES, JUDGES[::-1])
    ]
    assert [ranks(rates)["SDEdit"] for rates in asked] == [5, 1]
    assert [ranks(rates)["MagicBrush"] for rates in asked] == [1, 5]


def test_the_other_measures_agree_on_these_ratings(rows: list[Row]) -> None:
    """What they say of the same board fits together."""
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
