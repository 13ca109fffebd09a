"""Whether a judge favours the systems of its developer, and how it uses its scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from echo_hf._infra.bootstrap import Interval, drawn_weights, percentiles
from echo_hf.errors import ScoreError
from echo_hf.reasons import Unscored
from echo_hf.scores.columns import Bools, Floats, Weights, divided
from echo_hf.scores.judge_votes import Compared, Selection, compare
from echo_hf.scores.rating_table import RUBRIC, rows_of_rubric
from echo_hf.scores.votes import pairs_of

Developers = Mapping[str, str | None]
Names = NDArray[np.object_]
NOBODY = ""


@dataclass(frozen=True)
class Preference:
    """What one judge gives to the systems of its developer, beyond what the others give them.

    Attributes:
        own: The systems of its developer.
        by_judge: Share of points that they win against systems of other developers, by the judge.
        by_others: The same share, of the same comparisons, by judges of other developers.
        preference: The first minus the second, from -1 to 1: above 0 the judge favours its own.
        interval: Lower and upper end of the preference at 95 %, drawing whole samples.
        reason: Why a number is null.
    """

    own: tuple[str, ...]
    by_judge: float | None
    by_others: float | None
    preference: float | None
    interval: Interval | None
    reason: Unscored | None


@dataclass(frozen=True)
class SelfPreference:
    """Preferences of judges.

    Attributes:
        judges: Preference by judge.
        definition: Every parameter that the numbers depend on.
    """

    judges: Mapping[str, Preference]
    definition: Mapping[str, Any]


def self_preference(
    ratings: Any,
    judge_developers: Developers,
    system_developers: Developers,
    outputs: Any = None,
    *,
    n_boot: int = 1000,
    seed: int = 0,
    **selection: Unpack[Selection],
) -> SelfPreference:
    """Compares how a judge and judges of other developers see the systems of its developer.

    Both are asked about the same comparisons: of a system of the judge's developer with another's,
    on samples where the judge and at least one judge of another developer rated both. A judge may
    see something that the others do not: a preference is a difference, not yet a bias.

    Args:
        ratings: As for `win_rate`.
        judge_developers: Who made each judge; null for nobody whose system is rated. Capitals do
            not count.
        system_developers: Who made each system; null when unknown.
        outputs: As for `win_rate`.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        seed: Of the draws.
        selection: `missing`, `rubric` and `judges`, as for `win_rate`.

    Returns:
        The preference of every judge.

    Raises:
        TableError: As for `win_rate`.
        ScoreError: As for `win_rate`, or a judge or a system has no entry among the developers.

    Examples:
        >>> rated = {"pip-1": {"pip-judge": 9, "other": 5}, "rival": {"pip-judge": 3, "other": 5}}
        >>> rows = [
        ...     {"sample_id": "s", "system": system, "judge": judge, "rating": rating}
        ...     for system, every in rated.items()
        ...     for judge, rating in every.items()
        ... ]
        >>> found = self_preference(
        ...     rows, {"pip-judge": "Pip", "other": None}, {"pip-1": "Pip", "rival": "Rival"}
        ... )
        >>> found.judges["pip-judge"].by_judge, found.judges["pip-judge"].preference
        (1.0, 0.5)
    """
    compared = compare(ratings, outputs, **selection)
    judges = _makers("judge", compared.table.judges, judge_developers)
    systems = _makers("system", compared.table.systems, system_developers)
    found = {}
    for at, judge in enumerate(compared.table.judges):
        own = (systems == judges[at]) & (judges[at] != NOBODY)
        others = (judges != judges[at]) | (judges == NOBODY)
        others[at] = False
        seen = _seen(compared, own, at, others)
        found[judge] = _preference(_names(compared, own), *seen, n_boot=n_boot, seed=seed)
    return SelfPreference(
        found,
        {
            **compared.definition("self_preference", draws=n_boot, seed=seed),
            "protocol": None,
            "vote": "none: each judge alone",
            "average": "pairs of systems",
            "judge_developers": dict(judge_developers),
            "system_developers": dict(system_developers),
        },
    )


def _makers(kind: str, names: Sequence[str], developers: Developers) -> Names:
    for name in names:
        if name not in developers:
            raise ScoreError(
                f"{kind} {name!r} has no developer among {sorted(developers)!r}: expected who made "
                "it, or null"
            )
    return np.array([(developers[name] or NOBODY).casefold() for name in names], dtype=object)


def _names(compared: Compared, chosen: Bools) -> tuple[str, ...]:
    return tuple(compared.table.systems[at] for at in np.flatnonzero(chosen))


def _seen(compared: Compared, own: Bools, at: int, others: Bools) -> tuple[Floats, Floats]:
    """Points [pair, sample] of own systems against the others', by the judge and by the others."""
    first, second = pairs_of(len(own))
    mixed = own[first] != own[second]
    side = np.where(own[first], 1, -1)[mixed, None]
    points = (1 + side * compared.by_judge[:, mixed]) / 2
    return points[at], _mean(points[others], axis=0)


def _preference(
    own: tuple[str, ...], by_judge: Floats, by_others: Floats, n_boot: int, seed: int
) -> Preference:
    both = ~np.isnan(by_judge + by_others)
    if not both.any():
        nobody = np.isnan(by_judge).all()
        reason = Unscored.NO_OWN_SYSTEM if nobody else Unscored.NO_OTHER_JUDGE
        return Preference(own, None, None, None, None, reason)
    judge, other = (_over_pairs(np.where(both, seen, np.nan)) for seen in (by_judge, by_others))
    drawn = [
        _over_pairs(by_judge - by_others, weights)
        for weights in drawn_weights(both.shape[-1], n_boot, seed)
    ]
    interval, why = percentiles(np.concatenate(drawn or [np.empty(0)]), int(both.any(0).sum()))
    return Preference(own, float(judge), float(other), float(judge - other), interval, why)


def _over_pairs(values: Floats, weights: Weights | None = None) -> Floats:
    """Mean over pairs of the mean over samples; of draws, one mean a draw."""
    if weights is None:
        return _mean(_mean(values, axis=-1), axis=-1)
    there = ~np.isnan(values)
    sums = weights @ np.where(there, values, 0.0).T
    return _mean(divided(sums, weights @ there.T), axis=-1)


def _mean(values: Floats, axis: int) -> Floats:
    return divided(np.nansum(values, axis=axis), (~np.isnan(values)).sum(axis=axis))


@dataclass(frozen=True)
class ScaleUse:
    """How one judge uses its scale."""

    ratings: int
    at_ceiling: float | None
    levels: int
    entropy: float | None
    pairs: int
    ties: float | None


def scale_use(
    ratings: Any, highest: Mapping[str, float] | None = None, *, rubric: str = RUBRIC
) -> dict[str, ScaleUse]:
    """How judges use their scales."""
    compared, tops = compare(ratings, rubric=rubric), highest or {}
    rows = rows_of_rubric(ratings, rubric, {})
    judges, given = np.array(rows["judge"].to_pylist(), dtype=object), rows["rating"].to_numpy()
    given = np.asarray(given, dtype=np.float64)
    return {
        judge: _use(given[(judges == judge) & ~np.isnan(given)], said, tops.get(judge))
        for judge, said in zip(compared.table.judges, compared.by_judge, strict=True)
    }


def _use(given: Floats, verdicts: Floats, top: float | None) -> ScaleUse:
    _, counts = np.unique(given, return_counts=True)
    shares, said = counts / max(len(given), 1), verdicts[~np.isnan(verdicts)]
    there = bool(len(given))
    return ScaleUse(
        ratings=len(given),
        at_ceiling=float(np.mean(given >= top)) if there and top is not None else None,
        levels=len(counts),
        entropy=abs(float(np.sum(shares * np.log2(shares)))) if there else None,
        pairs=len(said),
        ties=float(np.mean(said == 0)) if len(said) else None,
    )
