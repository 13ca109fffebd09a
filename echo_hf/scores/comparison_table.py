"""Choices between two outputs, checked, and put together to pairs that were seen in both orders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from echo_hf.errors import ScoreError
from echo_hf.scores.columns import read_columns
from echo_hf.tables import COMPARISONS

REQUIRED = ("sample_id", "system_a", "system_b", "judge", "order", "winner")
OPTIONAL = ("repeat",)
SIGNS: Mapping[str | None, float | None] = {"a": 1.0, "b": -1.0, "tie": 0.0, None: None}
ORDERS = ("ab", "ba")
Key = tuple[str, str, str, int]  # sample, the two systems, repeat


@dataclass(frozen=True)
class TwoOrders:
    """What a judge said about one pair of outputs.

    Attributes:
        sample: The sample.
        systems: The two systems, in alphabetical order.
        ab: With the first system's output first: 1 if the first system won, -1 if the second did,
            0 for a tie, null when there is no verdict.
        ba: Likewise, with the second system's output first.
    """

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

    Args:
        comparisons: Rows with sample_id, system_a, system_b, judge, order (ab or ba), winner (a, b,
            tie or null) and, as far as there is one, repeat. Any form that `read_columns` takes.

    Returns:
        By judge, in alphabetical order, the pairs that it was asked about, likewise.

    Raises:
        TableError: A column is missing or of the wrong type, or a key is null.
        ScoreError: An order or a winner is none of these, the systems are not in alphabetical
            order, or two rows have the same key.

    Example:
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
