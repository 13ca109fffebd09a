"""Whether a judge sees a honeypot for what it is: rules that are stated before it is asked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from echo_hf.auditing.honeypots import Honeypot
from echo_hf.judging.rating import Scale
from echo_hf.reasons import NotAudited

FEWEST = 5
SAME = 1e-6
Row = Mapping[str, Any]
ByHoneypot = Mapping[str, Mapping[str, float]]  # ratings by honeypot and sample


@dataclass(frozen=True)
class Rule:
    """When a judge passes.

    Attributes:
        margin: Share of the width of the judge's scale. A honeypot has to be rated at least that
            far below the mean of real outputs; a picture under another name, at most that far from
            its first rating.
        share: On which share of the rated samples this has to be so.
    """

    margin: float
    share: float


RULES: Mapping[Honeypot, Rule] = {
    Honeypot.BLANK: Rule(margin=0.2, share=0.9),
    Honeypot.UNCHANGED: Rule(margin=0.1, share=0.6),
    Honeypot.SHUFFLED: Rule(margin=0.2, share=0.8),
    Honeypot.RENAMED: Rule(margin=0.12, share=0.8),  # one point of nine
}


@dataclass(frozen=True)
class Check:
    """How a judge did on one honeypot.

    Attributes:
        rule: When it passes.
        shown: How many it was shown and answered, rated or not.
        rated: How many of them count: rated, and with a rating to hold them against.
        mean: Their mean rating, on the judge's scale; null when there is none.
        share: Share of them that are as the rule says; null likewise.
        passed: Whether that is enough; null when nobody can say.
        reason: Why nobody can say.
    """

    rule: Rule
    shown: int
    rated: int
    mean: float | None
    share: float | None
    passed: bool | None
    reason: NotAudited | None = None


@dataclass(frozen=True)
class Noise:
    """How far a judge differs from itself, asked the same twice.

    Attributes:
        samples: How many pictures have two ratings.
        equal: Share of them with the same rating twice; null when there are none.
        deviation: Standard deviation of one rating around the judge's own mean, on its scale.
        largest: The largest difference.
    """

    samples: int
    equal: float | None
    deviation: float | None
    largest: float | None


def ratings_of(rows: Iterable[Row]) -> dict[str, dict[str, float]]:
    """Ratings by honeypot and sample; rows without a rating are left out.

    Args:
        rows: Rows of `RATINGS` whose `system` is a honeypot.

    Returns:
        The ratings.
    """
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["rating"] is not None:
            found.setdefault(row["system"], {})[row["sample_id"]] = row["rating"]
    return found


def checks_of(rows: Sequence[Row], scale: Scale) -> dict[str, Check]:
    """How a judge did on each honeypot.

    Args:
        rows: Rows of `RATINGS` whose `system` is a honeypot.
        scale: The judge's.

    Returns:
        A check for each honeypot but the real outputs.
    """
    ratings = ratings_of(rows)
    return {
        honeypot.value: _check(honeypot, rule, ratings, _shown(rows, honeypot), scale)
        for honeypot, rule in RULES.items()
    }


def noise_of(ratings: ByHoneypot) -> Noise:
    """How far the two ratings of the same picture differ.

    Args:
        ratings: Ratings by honeypot and sample.

    Returns:
        The noise; of two ratings that differ by d the variance is d * d / 2.

    Example:
        >>> noise_of({"real": {"s": 7.0, "t": 5.0}, "renamed": {"s": 8.0, "t": 5.0}})
        Noise(samples=2, equal=0.5, deviation=0.5, largest=1.0)
    """
    found = _differences(ratings)
    if not found:
        return Noise(0, None, None, None)
    equal = sum(one <= SAME for one in found) / len(found)
    deviation = math.sqrt(fmean(one * one / 2 for one in found))
    return Noise(len(found), equal, deviation, max(found))


def _check(honeypot: Honeypot, rule: Rule, ratings: ByHoneypot, shown: int, scale: Scale) -> Check:
    given, real = ratings.get(honeypot, {}), ratings.get(Honeypot.REAL, {})
    width, reason = rule.margin * (scale.highest - scale.lowest), None
    if honeypot is Honeypot.RENAMED:
        given = {name: rating for name, rating in given.items() if name in real}
        as_ruled = [one <= width + SAME for one in _differences(ratings)]
    else:
        limit = fmean(real.values()) - width if real else math.nan
        as_ruled = [one <= limit + SAME for one in given.values()]
        reason = NotAudited.NO_ROOM if limit < scale.lowest - SAME else None
    if min(len(real), len(given)) < FEWEST:
        reason = NotAudited.FEW_RATINGS
    share = fmean(as_ruled) if as_ruled and real else None
    passed = share >= rule.share if share is not None and reason is None else None
    mean = fmean(given.values()) if given else None
    return Check(rule, shown, len(given), mean, share, passed, reason)


def _differences(ratings: ByHoneypot) -> list[float]:
    first, again = (ratings.get(name, {}) for name in (Honeypot.REAL, Honeypot.RENAMED))
    return [abs(rating - first[name]) for name, rating in again.items() if name in first]


def _shown(rows: Iterable[Row], honeypot: Honeypot) -> int:
    return sum(row["system"] == honeypot for row in rows)
