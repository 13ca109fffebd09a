"""The board of one split of a release: what was published, and what its ratings tell beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from echo_hf.errors import EchoError
from echo_hf.hub.comparability import Comparability, SharedSamples
from echo_hf.hub.leaderboard.scored import Figure, ScoredRelease
from echo_hf.scores import tiers, win_rate
from echo_hf.scores.rule import Protocol

METRIC = "win_rate"
NO_RATINGS = "the release holds no ratings, from which tiers would be computed"
NO_INTERVALS = "without intervals nothing says how far others may differ: no tiers"
OTHERS = "not comparable: a win rate depends on who takes part, and systems or judges differ"


@dataclass(frozen=True)
class Line:
    """One system on a board.

    Attributes:
        system: The system.
        value: Its figure, null where it has none.
        interval: Its interval at 95 %; null where it has none.
        coverage: Share of what could have counted.
        n: How many samples, pairs or pictures count.
        tier: 1 for the best; null where nothing tells tiers.
        missing: Why it has no figure, where that is known.
    """

    system: str
    value: float | None
    interval: tuple[float, float] | None
    coverage: float | None
    n: int | None
    tier: int | None = None
    missing: str | None = None


@dataclass(frozen=True)
class Board:
    """The win rates of one split.

    Attributes:
        lines: The systems, the best first; those without a figure last.
        judges: Who decided.
        flags: For each judge that failed its audit, what it failed on.
        samples: How many samples were rated; null where that was not said.
        note: What is left out and why; empty where nothing is.
    """

    lines: tuple[Line, ...]
    judges: tuple[str, ...]
    flags: Mapping[str, tuple[str, ...]]
    samples: int | None
    note: str = ""


def splits_of(release: ScoredRelease) -> list[str]:
    """The splits that a release has figures of."""
    return sorted({str(each["split"]) for each in release.figures})


def metrics_of(release: ScoredRelease, split: str, protocol: str) -> dict[str, tuple[Line, ...]]:
    """The metrics beside the win rate.

    Args:
        release: A release.
        split: One of its splits.
        protocol: Whose arithmetic gave the figures.

    Returns:
        The systems of each metric, in alphabetical order.
    """
    found: dict[str, list[Line]] = {}
    for figure in release.figures_of(split, protocol):
        if figure["metric"] != METRIC:
            found.setdefault(str(figure["metric"]), []).append(_line(figure))
    return {
        metric: tuple(sorted(lines, key=lambda line: line.system))
        for metric, lines in sorted(found.items())
    }


def published_board(release: ScoredRelease, split: str, protocol: Protocol) -> Board:
    """The win rates that a release was published with.

    Args:
        release: A release.
        split: One of its splits.
        protocol: Whose arithmetic gave them.

    Returns:
        The board, with tiers where the release has the ratings they are computed from.
    """
    figures = [each for each in release.figures_of(split, protocol) if each["metric"] == METRIC]
    definition = figures[0]["definition"] if figures else {}
    groups, note = _tiers(_ratings(release, split), protocol) if figures else ((), "")
    lines = [_line(each, _tier_of(str(each["system"]), groups)) for each in figures]
    if lines and not any(line.interval for line in lines):
        # One tier for all would read as no difference.
        lines, note = [_line(each) for each in figures], NO_INTERVALS
    return Board(
        tuple(sorted(lines, key=_place)),
        _names(definition.get("judges")),
        _flags(definition),
        definition.get("samples"),
        note,
    )


def judge_board(release: ScoredRelease, split: str, protocol: Protocol, judge: str) -> Board:
    """The win rates that one judge alone gives, computed from the released ratings.

    Args:
        release: A release.
        split: One of its splits.
        protocol: By whose arithmetic.
        judge: Name of the judge.

    Returns:
        The board.
    """
    everyone = published_board(release, split, protocol)
    ratings = _ratings(release, split, judge)
    if ratings is None or not ratings.num_rows:
        return Board((), (judge,), {}, None, f"the release holds no ratings by {judge!r} here")
    try:
        rates = win_rate(ratings, protocol=protocol)
    except EchoError as error:
        return Board((), (judge,), {}, None, str(error))
    groups, note = _tiers(ratings, protocol)
    if not any(rates.interval.values()):
        groups, note = (), NO_INTERVALS
    lines = tuple(
        Line(
            system,
            value,
            rates.interval[system],
            rates.coverage[system],
            sum(rates.pairs[system].values()),
            _tier_of(system, groups),
        )
        for system, value in rates.win_rate.items()
    )
    flags = {name: flags for name, flags in everyone.flags.items() if name == judge}
    return Board(lines, (judge,), flags, rates.definition["samples"], note)


def verdict(a: ScoredRelease, b: ScoredRelease, split: str, protocol: Protocol) -> str:
    """Whether the boards of two releases may be read beside each other.

    Args:
        a: A release.
        b: Another one.
        split: A split of both.
        protocol: Whose arithmetic gave both boards.

    Returns:
        A sentence; it begins with `comparable: ` where they may, as they stand.
    """
    one, other = a.samples.get(split, frozenset()), b.samples.get(split, frozenset())
    shared = SharedSamples(len(one & other), len(one - other), len(other - one))
    said = Comparability(True, {split: shared}).verdict(split)
    if said.startswith("comparable: ") and _setting(a, split, protocol) != _setting(
        b, split, protocol
    ):
        return OTHERS
    return said


def may_stand_together(said: str) -> bool:
    """Whether a verdict lets two boards stand beside each other.

    Example:
        >>> may_stand_together("comparable on the samples that both have (3), once recomputed")
        False
    """
    return said.startswith("comparable: ")


def _setting(release: ScoredRelease, split: str, protocol: Protocol) -> list[Any]:
    """Systems and definition of a board's win rates, but for what judges failed on."""
    rates = [each for each in release.figures_of(split, protocol) if each["metric"] == METRIC]
    return [
        {**each["definition"], "failed_audit": None, "system": each["system"]}
        for each in sorted(rates, key=lambda each: str(each["system"]))
    ]


def _ratings(release: ScoredRelease, split: str, judge: str | None = None) -> pa.Table | None:
    """The ratings of a split's samples as they are now, of one judge or of all."""
    if release.ratings is None:
        return None
    names = ("sample_id", "sample_digest", "judge")
    columns = zip(*(release.ratings[name].to_pylist() for name in names), strict=True)
    seen = release.samples.get(split, frozenset())
    wanted = [(name, digest) in seen and judge in (None, by) for name, digest, by in columns]
    return release.ratings.filter(pa.array(wanted, pa.bool_()))


def _tiers(ratings: pa.Table | None, protocol: Protocol) -> tuple[tuple[tuple[str, ...], ...], str]:
    if ratings is None:
        return (), NO_RATINGS
    try:
        return tiers(ratings, protocol=protocol).tiers, ""
    except EchoError as error:
        return (), str(error)


def _tier_of(system: str, groups: tuple[tuple[str, ...], ...]) -> int | None:
    return next((at for at, names in enumerate(groups, 1) if system in names), None)


def _line(figure: Figure, tier: int | None = None) -> Line:
    low, high = figure["low"], figure["high"]
    missing = figure["definition"].get("missing") if figure["value"] is None else None
    return Line(
        str(figure["system"]),
        figure["value"],
        None if low is None or high is None else (low, high),
        figure["coverage"],
        figure["n"],
        tier,
        None if missing is None else str(missing),
    )


def _place(line: Line) -> tuple[bool, float, str]:
    return line.value is None, -(line.value or 0.0), line.system


def _names(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _flags(definition: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    failed = definition.get("failed_audit")
    if not isinstance(failed, Mapping):
        return {}
    return {str(judge): _names(flags) for judge, flags in failed.items()}
