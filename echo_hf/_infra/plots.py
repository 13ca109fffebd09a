"""Results as data frames and as plots, in which every value with an interval looks the same."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from textwrap import fill
from typing import TYPE_CHECKING, Any, ClassVar

from echo_hf._infra.bootstrap import LEVEL, Interval
from echo_hf._infra.summary import Summarized, brief
from echo_hf.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

# One family, told apart by how dark they are, so that no eye and no printer mixes them up.
DARK, LIGHT = "#08519c", "#9ecae1"
BAR = f"bar: {LEVEL * 100:.0f} % interval"
ENDS = ("low", "high")
WIDEST = 76
MOST_SYSTEMS = 8


def axes_of(ax: Axes | None, rows: int = 6) -> Axes:
    """The axes to draw into: those that are given, or new ones, which a notebook shows."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError("plot", "plot")
    from matplotlib import pyplot

    size = (6.4, 1.6 + 0.35 * rows)
    return pyplot.subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def mark(ax: Axes, frame: DataFrame, value: str) -> bool:
    """Draws a row's point at its index, and a bar where it has ends; the bar need not hold it."""
    ax.plot(frame[value], frame.index, "o", color=DARK)
    barred = frame.dropna(subset=["low"]) if "low" in frame else frame[:0]
    ax.hlines(barred.index, barred.get("low", ()), barred.get("high", ()), DARK, linewidth=2)
    return len(barred) > 0


def label(ax: Axes, lines: Iterable[str]) -> None:
    wrapped = (fill(line, WIDEST, break_on_hyphens=False) for line in lines)
    ax.set_xlabel("\n".join(wrapped), parse_math=False)


def ends_of(interval: Mapping[str, Interval | None]) -> dict[str, dict[str, float | None]]:
    known = interval.items()
    return {end: {name: ends and ends[at] for name, ends in known} for at, end in enumerate(ENDS)}


class SystemValues(Summarized, ABC):
    """A result with a value for each system."""

    _label: ClassVar[str]
    _bar: ClassVar[str] = BAR
    _even: ClassVar[float | None] = None

    @abstractmethod
    def _table_columns(self) -> Mapping[str, Mapping[str, Any]]:
        """Columns by name, each by system; the first is the value."""

    def _rows(self) -> list[dict[str, Any]]:
        columns = self._table_columns()
        systems = next(iter(columns.values()))
        return [
            {"system": system, **{name: column.get(system) for name, column in columns.items()}}
            for system in systems
        ]

    def __repr__(self) -> str:
        shown, rows = [], self._rows()
        for row in rows[:MOST_SYSTEMS]:
            system, value, *_ = row.values()
            ends = [brief(row[end]) for end in ENDS if row.get(end) is not None]
            interval = f" ({' to '.join(ends)})" if ends else ""
            shown.append(f"{brief(system)}: {brief(value)}{interval}")
        more = [f"{len(rows) - MOST_SYSTEMS} more"] if len(rows) > MOST_SYSTEMS else []
        return f"{type(self).__name__}({', '.join([*shown, *more])})"

    def to_pandas(self) -> DataFrame:
        """One row for each system, the best first.

        Returns:
            A column `system`; then the value; `low` and `high`, the ends of its interval; and
            what else there is for each system, such as `reason`. NaN where there is no number.
            `WinRate`: win_rate, low, high, standard_error, coverage, reason. `BradleyTerry`:
            strength, low, high, reason. `Tiers`: win_rate, tier. `Sensitivity`: rank under the
            corrected rule, and low and high, the best and the worst rank under any rule.

        Examples:
            >>> from echo_hf.scores import win_rate
            >>> rated = {"a": [8, 9], "b": [8, 5]}
            >>> rows = [
            ...     {"sample_id": str(at), "system": system, "judge": "j", "rating": rating}
            ...     for system, every in rated.items()
            ...     for at, rating in enumerate(every)
            ... ]
            >>> print(win_rate(rows).to_pandas()[["system", "win_rate", "low", "reason"]])
              system  win_rate  low       reason
            0      a      0.75  NaN  few_samples
            1      b      0.25  NaN  few_samples
        """
        from pandas import DataFrame, Series, to_numeric

        columns = self._table_columns()
        systems = list(next(iter(columns.values())))
        frame = DataFrame({"system": systems})
        for name, by_system in columns.items():
            found = Series([by_system.get(system) for system in systems], dtype=object)
            frame[name] = found if name == "reason" else to_numeric(found)
        return frame

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws a point for each system, the best on top, with a bar for its interval.

        What has no value or no interval is named below the plot with the reason.

        Args:
            ax: Where to draw, such as one of several plots of a figure; null for a new figure.

        Returns:
            The axes. `ax.figure.savefig("win_rates.png")` saves them.

        Raises:
            MissingExtraError: Matplotlib is not installed.
        """
        frame = self.to_pandas()
        value = frame.columns[1]
        shown = frame.dropna(subset=[value]).reset_index(drop=True)
        ax = axes_of(ax, len(shown))
        if self._even is not None:
            ax.axvline(self._even, color=LIGHT, linestyle=":")
        bars = [self._bar] if mark(ax, shown, value) else []
        tiers = shown["tier"].map(" (tier {:.0f})".format) if "tier" in shown else ""
        ax.set_yticks(shown.index, shown["system"] + tiers, parse_math=False)
        ax.set_ylim(max(len(shown), 1) - 0.5, -0.5)
        if value == "rank":
            ax.locator_params("x", integer=True)
        unknown: dict[str, list[str]] = {}
        for row in frame.to_dict("records"):
            why = str(row.get("reason") or f"no {value}").replace("_", " ")
            if math.isnan(row[value]):
                unknown.setdefault(why, []).append(row["system"])
            elif math.isnan(row.get("low", 0)):
                unknown.setdefault(f"no interval ({why})", []).append(row["system"])
        notes = [f"{why}: {', '.join(systems)}" for why, systems in unknown.items()]
        label(ax, [self._label, *bars, *notes])
        return ax
