"""People's ranks as one array, with what they found impossible to rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from echo_hf.errors import ScoreError
from echo_hf.scores.arrays import Bools, Floats, Integers
from echo_hf.scores.columns import encoded, read_columns
from echo_hf.tables import HUMAN

REQUIRED = ("sample_id", "rater", "system", "rank")
OPTIONAL = ("cannot_rank",)


@dataclass(frozen=True)
class HumanRanks:
    """Every person's ranks of every system's output for every sample.

    Attributes:
        samples: Names of the samples, in alphabetical order.
        raters: Pseudonyms of the people, in alphabetical order.
        systems: Names of the systems, in alphabetical order.
        ranks: Array [rater, system, sample] of ranks, lower is better; NaN where there is none.
        refused: Array [rater, sample]: the person was shown outputs of that sample, and could rank
            none of them.
    """

    samples: tuple[str, ...]
    raters: tuple[str, ...]
    systems: tuple[str, ...]
    ranks: Floats
    refused: Bools

    @property
    def complete(self) -> Bools:
        """Array [rater, sample]: the person ranked every system."""
        return np.asarray(~np.isnan(self.ranks).any(axis=1))


def read_human(human: Any) -> HumanRanks:
    """Reads what people ranked.

    Args:
        human: Rows of `HUMAN` with sample_id, rater, system and rank (from 1, equal ranks are ties,
            null where the output cannot be ranked), and as far as there is one cannot_rank. Any
            form that `read_columns` takes.

    Returns:
        The ranks as an array.

    Raises:
        TableError: A column is missing or of the wrong type, or a key is null.
        ScoreError: A rank is below 1, contradicts cannot_rank or is given twice, or there are fewer
            than two systems.

    Example:
        >>> rows = [
        ...     {"sample_id": "s", "rater": "ada", "system": system, "rank": rank}
        ...     for system, rank in {"a": 2, "b": 1, "c": 2}.items()
        ... ]
        >>> read_human(rows).ranks.tolist()
        [[[2.0], [1.0], [2.0]]]
    """
    rows = read_columns(human, HUMAN, REQUIRED, OPTIONAL)
    _check(rows)
    samples, (sample,) = encoded(rows["sample_id"])
    raters, (rater,) = encoded(rows["rater"])
    systems, (system,) = encoded(rows["system"])
    if len(systems) < 2:
        raise ScoreError(f"human: ranks are of {list(systems)!r}: expected two systems or more")
    _check_once(rows, (rater * len(systems) + system) * len(samples) + sample)
    ranks = np.full((len(raters), len(systems), len(samples)), np.nan)
    ranks[rater, system, sample] = rows["rank"].cast(pa.float64()).fill_null(np.nan).to_numpy()
    shown = np.zeros((len(raters), len(samples)), dtype=bool)
    shown[rater, sample] = True
    return HumanRanks(
        samples, raters, systems, ranks, np.asarray(shown & np.isnan(ranks).all(axis=1))
    )


def _check(rows: pa.Table) -> None:
    without = rows["rank"].is_null()
    _refuse(rows, pc.fill_null(pc.less(rows["rank"], 1), False), "a rank from 1")
    if "cannot_rank" in rows.column_names:
        refused = rows["cannot_rank"]
        both = pc.and_(pc.fill_null(refused, False), pc.invert(without))
        _refuse(rows, both, "no rank where cannot_rank is true")
        neither = pc.and_(pc.invert(pc.fill_null(refused, True)), without)
        _refuse(rows, neither, "a rank where cannot_rank is false")


def _refuse(rows: pa.Table, wrong: pa.ChunkedArray, expected: str) -> None:
    if pc.any(wrong).as_py():
        row = rows.filter(wrong).slice(0, 1).to_pylist()[0]
        raise ScoreError(
            f"human: {row['rank']!r} is the rank of {_named(row)}: expected {expected}"
        )


def _check_once(rows: pa.Table, cells: Integers) -> None:
    ordered = np.sort(cells)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(twice):
        at = int(np.flatnonzero(cells == twice[0])[1])
        raise ScoreError(
            f"human: {_named(rows.slice(at, 1).to_pylist()[0])} is ranked twice: expected one row "
            "for each sample, rater and system"
        )


def _named(row: dict[str, Any]) -> str:
    keys: Sequence[str] = HUMAN.key
    return ", ".join(f"{key} {row[key]!r}" for key in keys)
