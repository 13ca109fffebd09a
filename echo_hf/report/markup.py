"""Render templates that escape all text, format numbers for people, and draw charts."""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from echo_hf._infra.bootstrap import Interval
from echo_hf.metrics.base import find_metric

# Control characters, overrides of text direction, surrogates, and code points that are none.
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202d\u202e\ud800-\udfff\ufffe\uffff]")
REPLACEMENT = "\ufffd"
# What would end the script element that holds the data, or a line of a script.
SCRIPT_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}
ASSETS = Path(__file__).parent / "assets"
NO_VALUE = "–"
MAX_LINK = 60
DISPLAY_NAMES = {
    "image_to_image": "Image to image",
    "text_to_image": "Text to image",
    "leave_one_judge_out": "Without each judge",
    "gap": "Gap between the best two",
    "bradley_terry": "Bradley-Terry strengths",
    "judge_drift": "Drift of judges",
    "self_preference": "Self-preference",
    "certificate": "Judges beside people",
    "pairwise": "Ratings or choices",
}


def make_printable(text: str) -> str:
    """Replace the characters of a text that no page can show, or that change the text around it."""
    return UNPRINTABLE.sub(REPLACEMENT, text.replace("\r\n", "\n"))


def write_data(value: Any) -> Markup:
    """Write data as JSON for a script element, which its characters cannot end."""
    text = json.dumps(_clean(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.translate(SCRIPT_ESCAPES))  # noqa: S704


def _clean(value: Any) -> Any:
    """Make every text of nested data printable."""
    if isinstance(value, str):
        return make_printable(value)
    if isinstance(value, Mapping):
        return {make_printable(name): _clean(inner) for name, inner in value.items()}
    return [_clean(inner) for inner in value] if isinstance(value, list | tuple) else value


def read_asset(name: str) -> Markup:
    """Read a style or a script of ours, which is not escaped."""
    return Markup((ASSETS / name).read_text("utf-8"))  # noqa: S704


def is_web(address: str | None) -> bool:
    """Return whether an address is on the web, and nothing that a browser would run."""
    if not address or UNPRINTABLE.search(address) or address != address.strip():
        return False
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname)


def shortened(text: str, length: int = MAX_LINK) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def titled(name: str) -> str:
    metric = find_metric(name)
    title = metric.title if metric else DISPLAY_NAMES.get(name)
    return title or (name[:1].upper() + name[1:]).replace("_", " ")


def number(value: float | None, digits: int = 3) -> str:
    if value is None:
        return NO_VALUE
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not float(text) else text.replace("-", "−")


def interval(ends: Interval | None, digits: int = 3) -> str:
    return NO_VALUE if ends is None else " – ".join(number(end, digits) for end in ends)


def share(value: float | None) -> str:
    return NO_VALUE if value is None else f"{100 * value:.0f} %"


def shares(ends: Interval | None) -> str:
    return NO_VALUE if ends is None else " – ".join(map(share, ends))


def amount(value: float | None) -> str:
    """Return a number with three digits, however small it is."""
    return NO_VALUE if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def count(value: int) -> str:
    return f"{value:,}"


def p_value(value: float | None) -> str:
    if value is None:
        return NO_VALUE
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def plural(number_of: int, noun: str, plural_noun: str | None = None) -> str:
    word = noun if number_of == 1 else plural_noun or f"{noun}s"
    return f"{count(number_of)} {word}"


def listed(counts: Mapping[str, int], limit: int = 12) -> str:
    pairs = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    parts = [f"{name} {count(number_of)}" for name, number_of in pairs[:limit]]
    return ", ".join([*parts, *(["..."] if len(pairs) > limit else [])])


FILTERS = titled, number, interval, share, shares, amount, count, p_value, plural, listed, shortened


@cache
def make_environment() -> Environment:
    """Build the template environment: text is escaped and made printable, markup is not."""
    env = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_finalize,
    )
    for function in FILTERS:
        env.filters[function.__name__] = function
    env.filters["joints"] = lambda name: re.split(r"(?<=[_/ -])", name)
    env.filters["base64"] = lambda text: b64encode(text.encode("utf-8", "replace")).decode()
    env.filters["percent"] = percent
    for helper in (area, columns, dots, places, round_scale):
        env.globals[helper.__name__] = helper
    env.globals |= {"is_web": is_web, "unit": UNIT, "violin": draw_violin}
    env.globals["charts"] = env.get_template("charts.svg.jinja").module
    return env


def _finalize(value: Any) -> Any:
    if value is None:
        return ""
    is_text = isinstance(value, str) and not isinstance(value, Markup)
    return make_printable(value) if is_text else value


def render(template: str, **values: Any) -> Markup:
    return Markup(make_environment().get_template(template).render(values))  # noqa: S704 - it escapes


# Axes and outlines of the charts that templates draw, and whole charts for print.

DENSITY_POINTS = 81
MAX_TICKS = 4
ROUND_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


def estimate_density(values: Sequence[float], low: float, high: float) -> list[float]:
    """Estimate a Gaussian kernel density, by Scott's bandwidth, as shares of its maximum."""
    from scipy.stats import gaussian_kde

    at = np.linspace(low, high, DENSITY_POINTS)
    heights = gaussian_kde(np.asarray(values, np.float64))(at)
    step = (high - low) / (DENSITY_POINTS - 1)
    outside = (at < min(values) - step) | (at > max(values) + step)
    heights = np.where(outside, 0.0, heights)
    highest = float(heights.max())
    return [float(height / highest) if highest else 0.0 for height in heights]


@dataclass(frozen=True)
class AxisScale:
    low: float
    high: float
    ticks: tuple[float, ...]
    digits: int = 0

    def share(self, value: float) -> float:
        """Return the position of a number, from 0 at the left to 1 at the right."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))

    def percent(self, value: float) -> str:
        """Return the position of a number as an SVG percentage."""
        return percent(self.share(value))


# Shares of points: one half is what a system gets that does as well as the others.
UNIT = AxisScale(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0), 2)


def percent(part: float) -> str:
    """Format a share of the width as an SVG percentage."""
    return f"{100 * part:.2f}".rstrip("0").rstrip(".") + "%"


def places(systems: int) -> AxisScale:
    return AxisScale(0.5, systems + 0.5, tuple(range(1, systems + 1)))


def round_scale(values: Iterable[float], *, whole: bool = False) -> AxisScale:
    """Build an axis from zero over all values, with few round ticks; whole ones for counts."""
    numbers = sorted(values)
    low, high = (min(numbers[0], 0.0), max(numbers[-1], 0.0)) if numbers else (0.0, 1.0)
    min_step = (high - low or 1.0) / MAX_TICKS
    min_step = max(min_step, 1.0) if whole else min_step
    power = 10.0 ** math.floor(math.log10(min_step))
    steps = (power * step for step in ROUND_STEPS if not whole or (power * step).is_integer())
    step = next(step for step in steps if step >= min_step * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1)
    exponent = math.floor(math.log10(step) + 1e-9)
    digits = max(0, (1 if math.isclose(step, 2.5 * 10.0**exponent) else 0) - exponent)
    ticks = tuple(round(at * step, 10) + 0.0 for at in range(first, last + 1))
    return AxisScale(ticks[0], ticks[-1], ticks, digits)


def scale_logarithm(values: Iterable[float]) -> tuple[AxisScale, list[tuple[float, str]]]:
    """Build an axis of logarithms over numbers above 0, and its ticks as places and labels."""
    numbers = [math.log10(value) for value in values] or [0.0]
    low, high = min(numbers) - 0.05, max(numbers) + 0.05
    exponents, digits = range(math.floor(low), math.ceil(high) + 1), (1, 2, 5)
    ticks = [math.log10(digit) + exponent for exponent in exponents for digit in digits]
    if high - low > 2.5:
        ticks = [float(exponent) for exponent in exponents]
    low = max((tick for tick in ticks if tick <= low), default=low)
    high = min((tick for tick in ticks if tick >= high), default=high)
    scale = AxisScale(low, high, tuple(tick for tick in ticks if low <= tick <= high))
    return scale, [(scale.share(tick), amount(10**tick)) for tick in scale.ticks]


ROW_MIDDLE = 13  # of a row
WIDTH_UNITS = 1000  # of a drawn outline


def draw_violin(scale: AxisScale, values: Sequence[float]) -> str | None:
    """Draw the distribution of numbers as a path; null where there are too few for a curve."""
    if len(values) < 12 or len(set(values)) == 1:
        return None
    heights = estimate_density(values, scale.low, scale.high)
    step, half = WIDTH_UNITS / (len(heights) - 1), ROW_MIDDLE - 2
    upper, lower = [], []
    for index, height in enumerate(heights):
        upper.append(f"{index * step:.0f},{ROW_MIDDLE - half * height:.1f}")
        lower.append(f"{index * step:.0f},{ROW_MIDDLE + half * height:.1f}")
    return "M" + "L".join([*upper, *reversed(lower)]) + "Z"


LEVELS_PER_STEP = 4  # 64 steps are as fine as the width shows


def group_levels(shares: Sequence[float]) -> list[float]:
    size = LEVELS_PER_STEP
    return [sum(shares[start : start + size]) for start in range(0, len(shares), size)]


def find_highest(channels: Sequence[Sequence[float]]) -> float:
    """Return the highest step of histograms without their ends, where clipped levels pile up."""
    return max(max(group_levels(channel)[1:-1]) for channel in channels)


def area(channel: Sequence[float], top: float, height: int) -> str:
    steps = group_levels(channel)
    parts = (min(1.0, step / top if top else 0.0) for step in steps)
    line = "L".join(
        f"{at * WIDTH_UNITS / (len(steps) - 1):.0f},{height * (1 - part):.1f}"
        for at, part in enumerate(parts)
    )
    return f"M0,{height}L{line}L{WIDTH_UNITS},{height}Z"


COLUMN_GAP = 0.15  # share of a column's width


def columns(counts: Sequence[int], height: int) -> str:
    top, width = max(*counts, 1), WIDTH_UNITS / len(counts)
    return "".join(
        f"M{(at + COLUMN_GAP / 2) * width:.0f},{height}V{height * (1 - count / top):.1f}"
        f"H{(at + 1 - COLUMN_GAP / 2) * width:.0f}V{height}Z"
        for at, count in enumerate(counts)
        if count
    )


MARGIN = 12
Points = Sequence[tuple[float, float]]


def dots(groups: Mapping[str, Points], width: int, height: int) -> list[str]:
    points = [point for group in groups.values() for point in group]
    xs, ys = zip(*points, strict=True) if points else ((0.0, 1.0), (0.0, 1.0))
    x_scale = (width - 2 * MARGIN) / max(max(xs) - min(xs), 1e-9)
    y_scale = (height - 2 * MARGIN) / max(max(ys) - min(ys), 1e-9)
    top = min(ys) + max(max(ys) - min(ys), 1e-9)
    return [
        "".join(
            f"M{MARGIN + x_scale * (x - min(xs)):.1f},{MARGIN + y_scale * (top - y):.1f}h0"
            for x, y in group
        )
        for group in groups.values()
    ]


MARGIN_LEFT, MARGIN_RIGHT, STEP = 46, 12, 54  # STEP is from one system to the next
BELOW = 224  # where the plot itself ends
MAX_NAME = 32
# Of a rotated name, by letter, and its distance to the axis.
LETTER_WIDTH, LETTER_HEIGHT, NAME_MARGIN = 5.0, 3.2, 24
WinRateBar = tuple[str, float, Interval | None]
BoxPlot = tuple[str, Sequence[float]]


def draw_bars(title: str, bars: Sequence[WinRateBar], warning: str = "") -> str:
    """Draw win rates as bars from 0 to 1 with a line at one half, as a document."""
    return _draw(title, warning, UNIT, [name for name, *_ in bars], bars=bars)


def draw_boxes(title: str, boxes: Sequence[BoxPlot], warning: str = "") -> str:
    """Draw numbers as boxes: median and quartiles, with whiskers to the 5th and 95th percentile."""
    scale = round_scale(value for _, values in boxes for value in values)
    percentiles = [np.percentile(values, (5, 25, 50, 75, 95)).tolist() for _, values in boxes]
    return _draw(title, warning, scale, [name for name, _ in boxes], boxes=percentiles)


def _draw(title: str, warning: str, scale: AxisScale, names: Sequence[str], **marks: object) -> str:
    labels = [shortened(name, MAX_NAME) for name in names]
    # Rotated names end below their system, so that a long one may begin left of the plot.
    overhang = 0.0
    for index, label in enumerate(labels):
        center = MARGIN_LEFT + (index + 0.5) * STEP
        overhang = max(overhang, len(label) * LETTER_WIDTH - center)
    left = round(overhang)
    down = round(NAME_MARGIN + LETTER_HEIGHT * max(map(len, labels), default=0))
    warning_end = round(MARGIN_LEFT + len(warning) * LETTER_WIDTH)
    width = max(MARGIN_LEFT + len(names) * STEP + MARGIN_RIGHT, warning_end)
    box = -left, left + width, BELOW + down
    values = {"title": title, "warned": warning, "names": labels, "scale": scale, "box": box}
    return render("figure.svg.jinja", **values, left=MARGIN_LEFT, step=STEP, below=BELOW, **marks)
