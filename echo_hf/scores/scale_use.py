"""How a judge uses its scale: a rating that everything gets tells no system from another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from echo_hf.scores.arrays import Floats
from echo_hf.scores.compared import compare
from echo_hf.scores.rating_table import RUBRIC, rows_of_rubric


@dataclass(frozen=True)
class ScaleUse:
    """How one judge uses its scale.

    Attributes:
        ratings: How many ratings it gave, repeats counted.
        at_ceiling: Share of them at the top of its scale; null where nobody said what that is, or
            it gave none.
        levels: How many different ratings there are among them.
        entropy: Of their distribution, in bits: 0 where all are the same; null without ratings.
        pairs: How many pairs of outputs of one sample it rated both of.
        ties: Share of those that it rated alike; null when there are none.
    """

    ratings: int
    at_ceiling: float | None
    levels: int
    entropy: float | None
    pairs: int
    ties: float | None


def scale_use(
    ratings: Any, highest: Mapping[str, float] | None = None, *, rubric: str = RUBRIC
) -> dict[str, ScaleUse]:
    """How judges use their scales.

    Args:
        ratings: As for `win_rate`.
        highest: The best rating on the scale of each judge, as far as it is known.
        rubric: The rubric whose ratings are looked at.

    Returns:
        By judge, in alphabetical order.

    Raises:
        TableError: As for `win_rate`.
        ScoreError: As for `win_rate`.

    Example:
        >>> rated = {"a": 10, "b": 10, "c": 8, "d": 10}
        >>> row = {"sample_id": "s", "judge": "j"}
        >>> rows = [{**row, "system": name, "rating": rating} for name, rating in rated.items()]
        >>> use = scale_use(rows, {"j": 10})["j"]
        >>> use.at_ceiling, use.levels, round(use.entropy, 3), use.ties
        (0.75, 2, 0.811, 0.5)
    """
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
