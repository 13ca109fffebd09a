"""People's ranks and judges' ratings as arrays of ranks over the same samples and systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from echo_hf._infra.bootstrap import generator
from echo_hf.errors import ScoreError
from echo_hf.scores.columns import Bools, Floats, Integers, encoded, read_columns
from echo_hf.scores.rating_table import RatingTable
from echo_hf.tables import HUMAN


def mid_ranks(values: Floats) -> Floats:
    """Places along the last axis, 1 for the smallest value; ties share the mean of theirs."""
    one, other = values[..., :, None], values[..., None, :]
    below, equal = (one > other).sum(axis=-1), (one == other).sum(axis=-1)
    return np.asarray(np.where(np.isnan(values), np.nan, below + (equal + 1) / 2))


def without_ties(values: Floats, seed: int) -> Floats:
    """Places along the last axis, where chance puts equal values in an order."""
    chance = generator(seed).random(values.shape)
    places = np.lexsort((chance, values), axis=-1).argsort(axis=-1) + 1.0
    return np.asarray(np.where(np.isnan(values), np.nan, places))


REQUIRED = ("sample_id", "rater", "system", "rank")
OPTIONAL = ("cannot_rank",)


@dataclass(frozen=True)
class HumanRanks:
    """Every person's ranks of every system's output for every sample."""

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


# A mean of repeats differs from an equal one in its last bits: no reason to rank it higher.
DECIMALS = 9


@dataclass(frozen=True)
class JudgeRatings:
    judges: tuple[str, ...]
    ratings: Floats
    elsewhere: int

    def ranks(self, *, ties_seed: int | None = None) -> Floats:
        worse = -self.ratings
        if ties_seed is None:
            return worse
        return np.swapaxes(without_ties(np.swapaxes(worse, 1, 2), ties_seed), 1, 2)


def beside(table: RatingTable, human: HumanRanks) -> JudgeRatings:
    """Takes the ratings of what people ranked."""
    ratings = np.full((len(table.judges), len(human.systems), len(human.samples)), np.nan)
    of_system, system = _common(table.systems, human.systems)
    of_sample, sample = _common(table.samples, human.samples)
    found = np.round(table.ratings, DECIMALS)
    ratings[:, system[:, None], sample] = found[:, of_system[:, None], of_sample]
    rated, total = (int((~np.isnan(one)).sum()) for one in (ratings, found))
    if total and not rated:
        raise ScoreError(
            f"no rating is of an output that people ranked: they ranked {list(human.systems)!r}, "
            f"and ratings are of {list(table.systems)!r}: expected the same names of systems and "
            "samples"
        )
    return JudgeRatings(table.judges, ratings, total - rated)


def _common(rated: tuple[str, ...], ranked: tuple[str, ...]) -> tuple[Integers, Integers]:
    """Positions of the names in both, in either."""
    place = {name: at for at, name in enumerate(rated)}
    pairs = [(place[name], at) for at, name in enumerate(ranked) if name in place]
    found = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]
