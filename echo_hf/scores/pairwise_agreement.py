"""Whether judges who see two outputs side by side say what their ratings say (ECHO section 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from echo_hf._infra.bootstrap import Interval, drawn_weights, percentiles
from echo_hf.errors import ScoreError
from echo_hf.reasons import Unscored
from echo_hf.scores.columns import Floats, divided, read_columns
from echo_hf.scores.judge_votes import compare
from echo_hf.scores.rating_table import RUBRIC
from echo_hf.scores.votes import TIE_WIDTH, pairs_of
from echo_hf.tables import COMPARISONS

REQUIRED = ("sample_id", "system_a", "system_b", "judge", "order", "winner")
OPTIONAL = ("repeat",)
SIGNS: Mapping[str | None, float | None] = {"a": 1.0, "b": -1.0, "tie": 0.0, None: None}
ORDERS = ("ab", "ba")
Key = tuple[str, str, str, int]  # sample, the two systems, repeat


@dataclass(frozen=True)
class TwoOrders:
    """What a judge said about one pair of outputs."""

    sample: str
    systems: tuple[str, str]
    ab: float | None = None
    ba: float | None = None

    @property
    def by_place(self) -> tuple[float | None, float | None]:
        """The two verdicts as places: 1 if the output that was shown first won, -1 if not."""
        return self.ab, None if self.ba is None else -self.ba

    @property
    def both(self) -> tuple[float, float] | None:
        """The two verdicts, null where one of them lacks."""
        return None if self.ab is None or self.ba is None else (self.ab, self.ba)


def read_comparisons(comparisons: Any) -> dict[str, list[TwoOrders]]:
    """Reads choices.

    Examples:
        >>> row = {"sample_id": "s", "system_a": "a", "system_b": "b", "judge": "j"}
        >>> rows = [{**row, "order": "ab", "winner": "b"}, {**row, "order": "ba", "winner": "a"}]
        >>> read_comparisons(rows)
        {'j': [TwoOrders(sample='s', systems=('a', 'b'), ab=-1.0, ba=1.0)]}
    """
    said: dict[str, dict[Key, dict[str, float | None]]] = {}
    for row in read_columns(comparisons, COMPARISONS, REQUIRED, OPTIONAL).to_pylist():
        _check(row)
        key = (row["sample_id"], row["system_a"], row["system_b"], row.get("repeat") or 0)
        orders = said.setdefault(row["judge"], {}).setdefault(key, {})
        if row["order"] in orders:
            raise ScoreError(f"comparisons: {_named(row)} is there twice: expected one row a key")
        orders[row["order"]] = SIGNS[row["winner"]]
    return {judge: list(_pairs(said[judge])) for judge in sorted(said)}


def _pairs(said: Mapping[Key, Mapping[str, float | None]]) -> Iterator[TwoOrders]:
    for key in sorted(said):
        sample, a, b, _ = key
        yield TwoOrders(sample, (a, b), **said[key])


def _check(row: Mapping[str, Any]) -> None:
    if row["order"] not in ORDERS:
        raise ScoreError(
            f"comparisons: order is {row['order']!r} for {_named(row)}: expected ab or ba"
        )
    if row["winner"] not in SIGNS:
        raise ScoreError(
            f"comparisons: winner is {row['winner']!r} for {_named(row)}: expected a, b or tie, or "
            "null where there is no verdict"
        )
    if row["system_a"] >= row["system_b"]:
        raise ScoreError(
            f"comparisons: {_named(row)}: expected two systems, system_a the first by name"
        )


def _named(row: Mapping[str, Any]) -> str:
    keys = ("sample_id", "system_a", "system_b", "judge", "order", "repeat")
    return ", ".join(f"{key} {row[key]!r}" for key in keys if key in row)


@dataclass(frozen=True)
class Share:
    """A share from 0 to 1.

    Attributes:
        value: The share, null when there is nothing to have a share of.
        interval: Lower and upper end at 95 %, drawing whole samples; null when there is none.
        count: How many things it is a share of.
        reason: Why a number is null.
    """

    value: float | None
    interval: Interval | None
    count: int
    reason: Unscored | None


def share_of(part: Floats, whole: Floats, missing: Unscored, *, n_boot: int, seed: int) -> Share:
    """The share of all samples' things together.

    Examples:
        >>> share_of(np.array([1, 2]), np.array([2, 2]), Unscored.NO_VERDICTS, n_boot=0, seed=0)
        Share(value=0.75, interval=None, count=4, reason=<Unscored.NO_DRAWS: 'no_draws'>)
    """
    counted = np.flatnonzero(whole)
    if not len(counted):
        return Share(None, None, 0, missing)
    part, whole = part[counted], whole[counted]
    drawn = [np.empty(0)]
    drawn += [divided(w @ part, w @ whole) for w in drawn_weights(len(counted), n_boot, seed)]
    interval, reason = percentiles(np.concatenate(drawn), len(counted))
    return Share(float(part.sum() / whole.sum()), interval, int(whole.sum()), reason)


Ratings = Mapping[tuple[str, str, str], float]  # sample, the two systems: 1, 0 or -1
Case = tuple[str, bool]  # a sample, and whether what is counted is so
RULE = "the system that wins in both orders; anything else is a tie"


@dataclass(frozen=True)
class JudgeAgreement:
    """How one judge's comparisons hold together, and agree with its ratings.

    Attributes:
        pairs: Pairs of outputs that it was asked about, repeats counted.
        verdicts: How many of its answers, two a pair, have a verdict.
        first: Of verdicts that are no tie, the share for the output that was shown first; 0.5 for
            a judge without a taste for a place.
        follows_position: Of pairs with both verdicts, the share where the same place won twice.
        consistent: Of pairs with both verdicts, the share where the same system won twice, or
            both are ties. What is left is a tie in one order alone.
        agreement: Of pairs with both verdicts and both ratings, the share where the two ways say
            the same: a, b or tie.
        decided: Of those of them that are a tie in neither way, the share with the same winner.
    """

    pairs: int
    verdicts: int
    first: Share
    follows_position: Share
    consistent: Share
    agreement: Share
    decided: Share


@dataclass(frozen=True)
class PairwiseAgreement:
    """How comparisons of judges hold together, and agree with their ratings.

    Attributes:
        judges: By judge, in alphabetical order.
        definition: Every parameter that the numbers depend on.
    """

    judges: Mapping[str, JudgeAgreement]
    definition: Mapping[str, Any]


def pairwise_agreement(
    comparisons: Any,
    ratings: Any = None,
    *,
    n_boot: int = 1000,
    seed: int = 0,
    rubric: str = RUBRIC,
) -> PairwiseAgreement:
    """Compares what judges say of two outputs side by side with their ratings of each alone.

    The verdict of a true comparison is the system that wins in both orders, and a tie otherwise.
    That of ratings is the higher one, and a tie where they differ by 1e-6 or less; of repeats the
    mean counts. Neither is asked to be right: only people could say that.

    Args:
        comparisons: As for `read_comparisons`.
        ratings: As for `win_rate`; null for none, so that nothing is said of agreement.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        seed: Of the draws.
        rubric: The rubric of the ratings.

    Returns:
        The shares of every judge with comparisons.

    Raises:
        TableError: A table lacks a column, or has it with another type.
        ScoreError: Rows contradict each other, or no rating has the rubric.

    Examples:
        >>> row = {"sample_id": "s", "system_a": "a", "system_b": "b", "judge": "j"}
        >>> rows = [{**row, "order": "ab", "winner": "a"}, {**row, "order": "ba", "winner": "b"}]
        >>> found = pairwise_agreement(rows).judges["j"]
        >>> found.first.value, found.follows_position.value, found.consistent.value
        (1.0, 1.0, 0.0)
    """
    said = read_comparisons(comparisons)
    rated = {} if ratings is None else _by_ratings(ratings, rubric)
    definition = {
        "measure": "pairwise_agreement",
        "true_verdict": RULE,
        "rubric": rubric,
        "tie_width": TIE_WIDTH,
        "n_boot": n_boot,
        "seed": seed,
    }

    def shared(cases: Iterable[Case], missing: Unscored) -> Share:
        return _share(list(cases), missing, n_boot, seed)

    judges = {judge: _judge(pairs, rated.get(judge), shared) for judge, pairs in said.items()}
    return PairwiseAgreement(judges, definition)


def _by_ratings(ratings: Any, rubric: str) -> dict[str, Ratings]:
    """What each judge's ratings say, by sample and pair."""
    compared = compare(ratings, rubric=rubric)
    table = compared.table
    first, second = (positions.tolist() for positions in pairs_of(len(table.systems)))
    found: dict[str, Ratings] = {}
    for judge, verdicts in zip(table.judges, compared.by_judge, strict=True):
        found[judge] = {
            (table.samples[at], table.systems[first[pair]], table.systems[second[pair]]): float(
                verdicts[pair, at]
            )
            for pair, at in np.argwhere(~np.isnan(verdicts)).tolist()
        }
    return found


def _judge(
    pairs: Sequence[TwoOrders],
    rated: Ratings | None,
    shared: Callable[[Iterable[Case], Unscored], Share],
) -> JudgeAgreement:
    places = [(one.sample, place) for one in pairs for place in one.by_place if place is not None]
    both = [(one, said) for one in pairs if (said := one.both) is not None]
    ways = _both_ways(both, rated or {})
    unrated = Unscored.NOT_RATED if both else Unscored.NO_VERDICTS
    decided = [one for one in ways if 0 not in one[1:]]
    return JudgeAgreement(
        pairs=len(pairs),
        verdicts=len(places),
        first=shared(((name, at > 0) for name, at in places if at), Unscored.NO_VERDICTS),
        follows_position=shared(
            ((one.sample, ab == -ba != 0) for one, (ab, ba) in both), Unscored.NO_VERDICTS
        ),
        consistent=shared(((one.sample, ab == ba) for one, (ab, ba) in both), Unscored.NO_VERDICTS),
        agreement=shared(((name, true == by) for name, true, by in ways), unrated),
        decided=shared(
            ((name, true == by) for name, true, by in decided),
            Unscored.NO_WINNERS if ways else unrated,
        ),
    )


def verdict_of(ab: float, ba: float) -> float:
    """The verdict of a pair: what both orders say, and a tie where they differ.

    Examples:
        >>> verdict_of(1.0, 1.0), verdict_of(1.0, 0.0), verdict_of(-1.0, 1.0)
        (1.0, 0.0, 0.0)
    """
    return ab if ab == ba else 0.0


def _both_ways(
    both: Iterable[tuple[TwoOrders, tuple[float, float]]], rated: Ratings
) -> list[tuple[str, float, float]]:
    """Sample, verdict of the comparison, verdict of the ratings."""
    return [
        (one.sample, verdict_of(*said), rated[(one.sample, *one.systems)])
        for one, said in both
        if (one.sample, *one.systems) in rated
    ]


def _share(cases: Sequence[Case], missing: Unscored, n_boot: int, seed: int) -> Share:
    place = {name: at for at, name in enumerate(sorted({name for name, _ in cases}))}
    at = np.array([place[name] for name, _ in cases], dtype=np.int64)
    so = np.array([is_so for _, is_so in cases], dtype=float)
    part = np.bincount(at, weights=so, minlength=len(place)).astype(np.float64)
    whole = np.bincount(at, minlength=len(place)).astype(np.float64)
    return share_of(part, whole, missing, n_boot=n_boot, seed=seed)
