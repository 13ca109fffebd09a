"""Results as data frames and plots, with intervals drawn the same everywhere."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from textwrap import fill
from typing import TYPE_CHECKING, Any, ClassVar

from echo_hf._infra.bootstrap import LEVEL, Interval
from echo_hf._infra.summary import SummaryMixin, shorten
from echo_hf.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

# One family, told apart by how dark they are, so that no eye and no printer mixes them up.
DARK_COLOR, LIGHT_COLOR = "#08519c", "#9ecae1"
BAR_LABEL = f"bar: {LEVEL * 100:.0f} % interval"
INTERVAL_COLUMNS = ("low", "high")
MAX_LABEL_CHARACTERS = 76
MAX_SYSTEMS = 8


def get_axes(ax: Axes | None, rows: int = 6) -> Axes:
    """Return the given axes, or new ones."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError("plot", "plot")
    from matplotlib import pyplot

    size = (6.4, 1.6 + 0.35 * rows)
    return pyplot.subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def draw_interval(ax: Axes, frame: DataFrame, value: str) -> bool:
    """Draw each row's point at its index, and its interval as a bar."""
    ax.plot(frame[value], frame.index, "o", color=DARK_COLOR)
    bounded = frame.dropna(subset=["low"]) if "low" in frame else frame[:0]
    ax.hlines(
        bounded.index, bounded.get("low", ()), bounded.get("high", ()), DARK_COLOR, linewidth=2
    )
    return len(bounded) > 0


def set_label(ax: Axes, lines: Iterable[str]) -> None:
    wrapped = (fill(line, MAX_LABEL_CHARACTERS, break_on_hyphens=False) for line in lines)
    ax.set_xlabel("\n".join(wrapped), parse_math=False)


def split_bounds(interval: Mapping[str, Interval | None]) -> dict[str, dict[str, float | None]]:
    intervals = interval.items()
    return {
        end: {name: ends and ends[number] for name, ends in intervals}
        for number, end in enumerate(INTERVAL_COLUMNS)
    }


class SystemValuesPlot(SummaryMixin, ABC):
    """Mixin of results with a value for each system."""

    _label: ClassVar[str]
    _bar: ClassVar[str] = BAR_LABEL
    _even: ClassVar[float | None] = None

    @abstractmethod
    def _table_columns(self) -> Mapping[str, Mapping[str, Any]]:
        """Return columns by name, each by system; the first is the value."""

    def _rows(self) -> list[dict[str, Any]]:
        columns = self._table_columns()
        systems = next(iter(columns.values()))
        return [
            {"system": system, **{name: column.get(system) for name, column in columns.items()}}
            for system in systems
        ]

    def __repr__(self) -> str:
        texts, rows = [], self._rows()
        for row in rows[:MAX_SYSTEMS]:
            system, value, *_ = row.values()
            ends = [shorten(row[end]) for end in INTERVAL_COLUMNS if row.get(end) is not None]
            interval = f" ({' to '.join(ends)})" if ends else ""
            texts.append(f"{shorten(system)}: {shorten(value)}{interval}")
        omitted = [f"{len(rows) - MAX_SYSTEMS} more"] if len(rows) > MAX_SYSTEMS else []
        return f"{type(self).__name__}({', '.join([*texts, *omitted])})"

    def to_pandas(self) -> DataFrame:
        """Return one row for each system, the best first.

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
            cells = Series([by_system.get(system) for system in systems], dtype=object)
            frame[name] = cells if name == "reason" else to_numeric(cells)
        return frame

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw a point for each system, the best on top, with a bar for its interval.

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
        known_rows = frame.dropna(subset=[value]).reset_index(drop=True)
        ax = get_axes(ax, len(known_rows))
        if self._even is not None:
            ax.axvline(self._even, color=LIGHT_COLOR, linestyle=":")
        bars = [self._bar] if draw_interval(ax, known_rows, value) else []
        tiers = known_rows["tier"].map(" (tier {:.0f})".format) if "tier" in known_rows else ""
        ax.set_yticks(known_rows.index, known_rows["system"] + tiers, parse_math=False)
        ax.set_ylim(max(len(known_rows), 1) - 0.5, -0.5)
        if value == "rank":
            ax.locator_params("x", integer=True)
        unknown: dict[str, list[str]] = {}
        for row in frame.to_dict("records"):
            reason = str(row.get("reason") or f"no {value}").replace("_", " ")
            if math.isnan(row[value]):
                unknown.setdefault(reason, []).append(row["system"])
            elif math.isnan(row.get("low", 0)):
                unknown.setdefault(f"no interval ({reason})", []).append(row["system"])
        notes = [f"{reason}: {', '.join(systems)}" for reason, systems in unknown.items()]
        set_label(ax, [self._label, *bars, *notes])
        return ax
