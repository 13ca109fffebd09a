"""What three people and three judges said of 8 real systems on 179 real edits.

The references are computed here from the same rows with pandas and scipy, one sample at a time, by
formulas that know nothing of arrays of samples.
"""

from __future__ import annotations

from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import friedmanchisquare, kendalltau, norm, pearsonr

from echo_hf.scores import Agreement, agreement, friedman, siegel_castellan
from tests.scores.ranks_for_tests import real_people
from tests.scores.ratings_for_tests import real_rows

RATERS = ["rater1", "rater2", "rater3"]
JUDGES = ["gemini", "gpt4o", "qwenvl"]


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


def test_what_there_is(found: Agreement) -> None:
    """Three people ranked all 8 systems on all of 179 samples."""
    counts = found.counts
    assert (counts.samples, counts.rankings, counts.partial, counts.refused) == (179, 537, 0, 0)
    assert found.people.friedman.blocks == 179


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
    for judge in JUDGES:
        for rater in RATERS:
            tau = found.judges.with_raters[judge][rater]
            assert (tau.tau, tau.samples) == pytest.approx(mean_tau(-ratings[judge], ranks[rater]))


def test_judges_correlate_with_each_other_as_scipy_says(
    found: Agreement, ratings: pd.DataFrame
) -> None:
    """Pearson's r over what both rated."""
    for one, other in combinations(JUDGES, 2):
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
