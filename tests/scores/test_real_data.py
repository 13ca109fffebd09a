"""What three people and three judges said of 8 real systems on 179 real edits.

References are computed here from the same rows with pandas and scipy, one sample or pair at a
time, by formulas that know nothing of arrays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations, permutations, product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from scipy.stats import friedmanchisquare, kendalltau, norm, pearsonr

from echo_hf.scores import (
    Agreement,
    agreement,
    bounds,
    friedman,
    leave_one_judge_out,
    samples_needed,
    sensitivity,
    siegel_castellan,
    tiers,
    win_rate,
)
from echo_hf.scores.votes import Missing, Protocol
from tests.scores.ranks_for_tests import real_people
from tests.scores.ratings_for_tests import Row, real_rows

RATERS = ["rater1", "rater2", "rater3"]
JUDGES = ["gpt4o", "gemini", "qwenvl"]


@pytest.fixture(scope="module")
def ranks(test_data: Path) -> pd.DataFrame:
    """People's ranks: a line for each sample and system, a column for each person."""
    frame = pd.DataFrame(real_people(test_data))
    return frame.pivot_table(index=["sample_id", "system"], columns="rater", values="rank")


@pytest.fixture(scope="module")
def ratings(test_data: Path) -> pd.DataFrame:
    """Judges' ratings likewise."""
    frame = pd.DataFrame(real_rows(test_data))
    return frame.pivot_table(index=["sample_id", "system"], columns="judge", values="rating")


@pytest.fixture(scope="module")
def found(test_data: Path) -> Agreement:
    """All figures."""
    return agreement(real_people(test_data), real_rows(test_data))


def places(rates: Mapping[str, float | None]) -> dict[str, int]:
    """Place of each system, of which no two have the same rate."""
    ordered = sorted(rates, key=lambda name: -(rates[name] or 0))
    return {name: at for at, name in enumerate(ordered, 1)}


def mean_tau(one: pd.Series, other: pd.Series) -> tuple[float, int]:
    """Mean of tau-b over the samples that have one, and how many they are."""
    both = pd.DataFrame({"one": one, "other": other}).dropna()
    taus = [
        kendalltau(sample["one"], sample["other"]).statistic
        for _, sample in both.groupby(level="sample_id")
        if sample["one"].nunique() > 1 and sample["other"].nunique() > 1
    ]
    return float(np.mean(taus)), len(taus)


def consensus_of_sample(sample: pd.DataFrame) -> pd.Series:
    """Places in all best orders, averaged, of 40,320 orders tried one by one."""
    orders = np.array(list(permutations(range(len(sample)))))
    costs = np.zeros(len(orders))
    values = sample.to_numpy()
    for better, worse in combinations(range(len(sample)), 2):
        one, other = values[orders[:, better]], values[orders[:, worse]]
        costs += ((one > other) + 0.5 * (one == other)).sum(axis=1)
    best = orders[costs == costs.min()]
    return pd.Series(np.argsort(best, axis=1).mean(axis=0) + 1, index=sample.index)


def test_friedman_on_537_rankings(test_data: Path, ranks: pd.DataFrame) -> None:
    """A block for each person and sample, as published: scipy's statistic, many ties and all."""
    published = agreement(real_people(test_data), protocol="published", n_boot=0, n_resamples=9)
    blocks = ranks.stack().unstack("system").to_numpy()
    expected = friedmanchisquare(*blocks.T)
    assert len(blocks) == published.people.friedman.blocks == 537
    assert published.people.friedman.statistic == pytest.approx(expected.statistic, rel=1e-12)
    assert published.people.friedman.w == pytest.approx(expected.statistic / (537 * 7), rel=1e-12)
    assert friedman(blocks).statistic == pytest.approx(1272.9247230992835, rel=1e-12)


def test_siegel_and_castellan_on_537_rankings(ranks: pd.DataFrame) -> None:
    """By its formula over mean ranks; two p values as scikit-posthocs 0.17.1 gives them."""
    blocks = ranks.stack().unstack("system")
    means = blocks.rank(axis=1).mean()
    found = {
        frozenset((one.better, one.worse)): one for one in siegel_castellan(blocks, means.index)
    }
    for one, other in combinations(means.index, 2):
        z = abs(means[one] - means[other]) / np.sqrt(8 * 9 / (6 * 537))
        assert found[frozenset((one, other))].z == pytest.approx(z)
        assert found[frozenset((one, other))].p_value == pytest.approx(2 * norm.sf(z))
    first, last = (
        frozenset(pair) for pair in (("MagicBrush", "Pix2PixZero"), ("SDEdit", "Text2Live"))
    )
    assert found[first].p_value == pytest.approx(5.156587079691516e-74, rel=1e-9)
    assert found[last].p_value == pytest.approx(0.3730936306082073, rel=1e-9)


def test_the_consensus_of_samples_is_that_of_all_orders(
    found: Agreement, ranks: pd.DataFrame, test_data: Path
) -> None:
    """Of 12 samples, brute force: the same places, and so the same mean ranks."""
    samples = list(ranks.index.get_level_values("sample_id").unique()[:12])
    some = ranks.loc[samples]
    places = some.groupby(level="sample_id", group_keys=False).apply(consensus_of_sample)
    expected = places.groupby(level="sample_id").rank().groupby(level="system").mean()
    rows = [row for row in real_people(test_data) if row["sample_id"] in samples]
    mean_rank = agreement(rows, n_boot=0, n_resamples=9).people.mean_rank
    assert {name: mean.value for name, mean in mean_rank.items()} == pytest.approx(dict(expected))


def test_the_mean_rank_of_each_person_is_that_of_pandas(
    found: Agreement, ranks: pd.DataFrame
) -> None:
    """Ties share the mean of their places, sample by sample."""
    expected = ranks.groupby(level="sample_id").rank().groupby(level="system").mean()
    for rater in RATERS:
        shown = {name: mean.value for name, mean in found.people.mean_rank_by_rater[rater].items()}
        assert shown == pytest.approx(dict(expected[rater]))


def test_each_two_people_and_judges_agree_as_scipy_says(
    found: Agreement, ranks: pd.DataFrame, ratings: pd.DataFrame
) -> None:
    """Means over samples of scipy's tau-b: of two people, and of a judge with a person."""
    for one, other in combinations(RATERS, 2):
        tau = found.judges.among_raters[one][other]
        assert (tau.tau, tau.samples) == pytest.approx(mean_tau(ranks[one], ranks[other]))
    for judge, rater in zip(JUDGES, RATERS, strict=True):
        tau = found.judges.with_raters[judge][rater]
        assert (tau.tau, tau.samples) == pytest.approx(mean_tau(-ratings[judge], ranks[rater]))


def test_judges_correlate_with_each_other_as_scipy_says(
    found: Agreement, ratings: pd.DataFrame
) -> None:
    """Pearson's r over what both rated."""
    for one, other in combinations(sorted(JUDGES), 2):
        both = ratings[[one, other]].dropna()
        expected = pearsonr(both[one], both[other])
        r = found.judges.pearson[one][other]
        assert (r.r, r.p_value) == pytest.approx((expected.statistic, expected.pvalue))
        assert r.outputs == len(both)


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


def w_of(sample: pd.DataFrame) -> float:
    """Kendall's W of a sample, by the textbook's formula with its correction for ties."""
    people, systems = sample.shape[1], len(sample)
    ranks = sample.rank()
    spread = ((ranks.sum(axis=1) - people * (systems + 1) / 2) ** 2).sum()
    groups = [ranks[rater].value_counts() for rater in ranks]
    ties = sum((size**3 - size).sum() for size in groups)
    most = people**2 * (systems**3 - systems) - people * ties
    return float(12 * spread / most) if most else float("nan")


def test_people_agree_with_each_other(found: Agreement, ranks: pd.DataFrame) -> None:
    """Kendall's W, mean over samples that are not all ties; and the ceiling."""
    single = [w_of(sample) for _, sample in ranks.groupby(level="sample_id")]
    w = found.people.kendalls_w
    assert (w.value, w.samples) == pytest.approx((np.nanmean(single), np.isfinite(single).sum()))
    ceiling = found.judges.people_with_others
    assert ceiling.interval is not None
    assert ceiling.interval[0] > 0.7


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
    """With the same ratings and qwenvl in front, the fifth of eight systems comes first."""
    asked = [
        win_rate(rows, protocol="published", judges=judges, n_boot=0).win_rate
        for judges in (JUDGES, JUDGES[::-1])
    ]
    assert [places(rates)["SDEdit"] for rates in asked] == [5, 1]
    assert [places(rates)["MagicBrush"] for rates in asked] == [1, 5]


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


PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "why.md"
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
        assert int(place) == places(published.win_rate)[system]
        assert int(rank) == places(corrected.win_rate)[system]
