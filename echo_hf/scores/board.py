"""The board: systems in the order of their win rates, as every page and terminal shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from echo_hf._infra.bootstrap import Interval
from echo_hf.config.checks import AnsweredBy
from echo_hf.scores.win_rate import WinRate

METRIC = "win_rate"


@dataclass(frozen=True)
class BoardRow:
    """One system on a board, with its win rate or its value by a metric."""

    system: str
    value: float | None
    interval: Interval | None = None
    coverage: float | None = None
    n: int | None = None
    missing: str | None = None  # why there is no value
    rank: int | None = None  # from 1, that of the best among equals
    tier: int | None = None
    in_place_of: str | None = None  # what of the paper it stands in for, and is not


def ranked(rows: Iterable[BoardRow], tiers: Sequence[Sequence[str]] = ()) -> tuple[BoardRow, ...]:
    """The best first, those without a value last, equal ones by name.

    Where no row has an interval there are no tiers: one for all would read as no difference.
    """
    every = sorted(rows, key=lambda row: (row.value is None, -(row.value or 0.0), row.system))
    known = any(row.interval for row in every)
    tier = {name: at for at, names in enumerate(tiers, 1) for name in names if known}
    found: list[BoardRow] = []
    for at, row in enumerate(every, 1):
        equal = found and found[-1].value == row.value
        rank = found[-1].rank if equal else at
        there = row.value is not None
        found.append(replace(row, rank=rank if there else None, tier=tier.get(row.system)))
    return tuple(found)


def board_of(
    rates: WinRate,
    tiers: Sequence[Sequence[str]] = (),
    models: Mapping[str, AnsweredBy] | None = None,
) -> tuple[BoardRow, ...]:
    """The board of win rates, and of the tiers that `tiers` found."""
    known = models or {}
    rows = (
        BoardRow(
            system,
            value,
            rates.interval.get(system),
            rates.coverage.get(system),
            sum(rates.pairs.get(system, {}).values()),
            rates.reasons.get(system),
            in_place_of=known[system].in_place_of if system in known else None,
        )
        for system, value in rates.win_rate.items()
    )
    return ranked(rows, tiers)
