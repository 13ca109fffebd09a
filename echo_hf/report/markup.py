"""Templates that escape whatever they are given, numbers as people read them, and charts."""

from __future__ import annotations

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
from echo_hf.metrics import TITLES

# Control characters, overrides of the direction of text, halves of characters, and no characters.
UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202d\u202e\ud800-\udfff\ufffe\uffff]")
REPLACEMENT = "\ufffd"
NOTHING = "–"
LONGEST_LINK = 60
NAMES = {
    "image_to_image": "Image to image",
    "text_to_image": "Text to image",
    **TITLES,
    "ocr_accuracy": "Text read back",
    "leave_one_judge_out": "Without each judge",
    "gap": "Gap between the best two",
    "bradley_terry": "Bradley-Terry strengths",
    "judge_drift": "Drift of judges",
    "self_preference": "Self-preference",
    "pairwise": "Ratings or choices",
}


def printable(text: str) -> str:
    """Somebody's text without what no page can show, or what changes the text around it."""
    return UNSHOWN.sub(REPLACEMENT, text.replace("\r\n", "\n"))


def is_web(address: str | None) -> bool:
    """Whether an address is one of the web, and nothing that a browser would run."""
    if not address or UNSHOWN.search(address) or address != address.strip():
        return False
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname)


def shortened(text: str, longest: int = LONGEST_LINK) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def titled(name: str) -> str:
    return NAMES.get(name) or (name[:1].upper() + name[1:]).replace("_", " ")


def number(value: float | None, digits: int = 3) -> str:
    if value is None:
        return NOTHING
    said = f"{value:.{digits}f}"
    return said.lstrip("-") if not float(said) else said.replace("-", "−")


def interval(ends: Interval | None, digits: int = 3) -> str:
    return NOTHING if ends is None else " – ".join(number(end, digits) for end in ends)


def share(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.0f} %"


def count(value: int) -> str:
    return f"{value:,}"


def p_value(value: float | None) -> str:
    if value is None:
        return NOTHING
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def plural(number_of: int, noun: str, more: str | None = None) -> str:
    said = noun if number_of == 1 else more or f"{noun}s"
    return f"{count(number_of)} {said}"


def listed(counts: Mapping[str, int], most: int = 12) -> str:
    pairs = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    said = [f"{name} {count(number_of)}" for name, number_of in pairs[:most]]
    return ", ".join([*said, *(["..."] if len(pairs) > most else [])])


@cache
def environment() -> Environment:
    """The templates: what is no markup is escaped, and stripped of what no page can show."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_finished,
    )
    for one in (titled, number, interval, share, count, p_value, plural, listed, shortened):
        made.filters[one.__name__] = one
    made.filters["joints"] = lambda name: re.split(r"(?<=[_/ -])", name)
    made.filters["base64"] = lambda text: b64encode(text.encode("utf-8", "replace")).decode()
    made.filters["percent"] = percent
    for each in (area, columns, dots, places, round_scale):
        made.globals[each.__name__] = each
    made.globals |= {"is_web": is_web, "unit": UNIT, "violin": violin}
    made.globals["charts"] = made.get_template("charts.svg.jinja").module
    return made


def _finished(value: Any) -> Any:
    if value is None:
        return ""
    is_text = isinstance(value, str) and not isinstance(value, Markup)
    return printable(value) if is_text else value


def rendered(template: str, **values: Any) -> Markup:
    return Markup(environment().get_template(template).render(values))  # noqa: S704 - it escapes


# Axes and outlines of the charts that templates draw, and whole charts for print.

POINTS = 81
TICKS = 4
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


def density(values: Sequence[float], low: float, high: float) -> list[float]:
    """A Gaussian kernel density, Scott's bandwidth, as a share of its highest point."""
    from scipy.stats import gaussian_kde

    at = np.linspace(low, high, POINTS)
    heights = gaussian_kde(np.asarray(values, np.float64))(at)
    step = (high - low) / (POINTS - 1)
    outside = (at < min(values) - step) | (at > max(values) + step)
    heights = np.where(outside, 0.0, heights)
    highest = float(heights.max())
    return [float(one / highest) if highest else 0.0 for one in heights]


@dataclass(frozen=True)
class Scale:
    low: float
    high: float
    ticks: tuple[float, ...]
    digits: int = 0

    def share(self, value: float) -> float:
        """Where a number lies, from 0 at the left to 1 at the right."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))

    def percent(self, value: float) -> str:
        """The same as SVG has it."""
        return percent(self.share(value))


# Shares of points from 0 to 1: one half is what a system gets that does as well as the others.
UNIT = Scale(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0), 2)


def percent(part: float) -> str:
    """A share of the width as SVG has it."""
    return f"{100 * part:.2f}".rstrip("0").rstrip(".") + "%"


def places(systems: int) -> Scale:
    return Scale(0.5, systems + 0.5, tuple(range(1, systems + 1)))


def round_scale(values: Iterable[float], *, whole: bool = False) -> Scale:
    """An axis from zero to all values, with few round ticks; whole ones for counts."""
    known = sorted(values)
    low, high = (min(known[0], 0.0), max(known[-1], 0.0)) if known else (0.0, 1.0)
    least = (high - low or 1.0) / TICKS
    least = max(least, 1.0) if whole else least
    power = 10.0 ** math.floor(math.log10(least))
    steps = (power * step for step in STEPS if not whole or (power * step).is_integer())
    step = next(step for step in steps if step >= least * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1)
    exponent = math.floor(math.log10(step) + 1e-9)
    digits = max(0, (1 if math.isclose(step, 2.5 * 10.0**exponent) else 0) - exponent)
    named = tuple(round(at * step, 10) + 0.0 for at in range(first, last + 1))
    return Scale(named[0], named[-1], named, digits)


MIDDLE = 13  # of a row
FINE = 1000  # units of the width of a drawn outline


def violin(scale: Scale, values: Sequence[float]) -> str | None:
    """The outline of how often numbers are, as a path; null where a curve would claim more."""
    if len(values) < 12 or len(set(values)) == 1:
        return None
    heights = density(values, scale.low, scale.high)
    step, half = FINE / (len(heights) - 1), MIDDLE - 2
    upper = [f"{at * step:.0f},{MIDDLE - half * high:.1f}" for at, high in enumerate(heights)]
    lower = [f"{at * step:.0f},{MIDDLE + half * high:.1f}" for at, high in enumerate(heights)]
    return "M" + "L".join([*upper, *reversed(lower)]) + "Z"


GROUP = 4  # levels a step: 64 steps are as fine as the width shows


def grouped(shares: Sequence[float]) -> list[float]:
    return [sum(shares[at : at + GROUP]) for at in range(0, len(shares), GROUP)]


def highest(channels: Sequence[Sequence[float]]) -> float:
    """The highest step of a histogram but for its ends, where clipped levels pile up."""
    return max(max(grouped(channel)[1:-1]) for channel in channels)


def area(channel: Sequence[float], top: float, height: int) -> str:
    steps = grouped(channel)
    parts = (min(1.0, step / top if top else 0.0) for step in steps)
    line = "L".join(
        f"{at * FINE / (len(steps) - 1):.0f},{height * (1 - part):.1f}"
        for at, part in enumerate(parts)
    )
    return f"M0,{height}L{line}L{FINE},{height}Z"


GAP = 0.15  # of the width of a column


def columns(counts: Sequence[int], height: int) -> str:
    top, width = max(*counts, 1), FINE / len(counts)
    return "".join(
        f"M{(at + GAP / 2) * width:.0f},{height}V{height * (1 - count / top):.1f}"
        f"H{(at + 1 - GAP / 2) * width:.0f}V{height}Z"
        for at, count in enumerate(counts)
        if count
    )


MARGIN = 12
Places = Sequence[tuple[float, float]]


def dots(groups: Mapping[str, Places], width: int, height: int) -> list[str]:
    every = [place for some in groups.values() for place in some]
    across, up = zip(*every, strict=True) if every else ((0.0, 1.0), (0.0, 1.0))
    wide = (width - 2 * MARGIN) / max(max(across) - min(across), 1e-9)
    high = (height - 2 * MARGIN) / max(max(up) - min(up), 1e-9)
    top = min(up) + max(max(up) - min(up), 1e-9)
    return [
        "".join(
            f"M{MARGIN + wide * (x - min(across)):.1f},{MARGIN + high * (top - y):.1f}h0"
            for x, y in some
        )
        for some in groups.values()
    ]


LEFT, RIGHT, STEP = 46, 12, 54  # the margins, and from one system to the next
BELOW = 224  # where the plot itself ends
LONGEST = 32
# Of a turned name, for each letter and below the axis.
ACROSS, DOWN, ROOM = 5.0, 3.2, 24
Bar = tuple[str, float, Interval | None]
Box = tuple[str, Sequence[float]]


def printed_bars(title: str, bars: Sequence[Bar], warned: str = "") -> str:
    """Win rates as bars from 0 to 1 with a line at one half, as a document."""
    return _printed(title, warned, UNIT, [name for name, *_ in bars], bars=bars)


def printed_boxes(title: str, boxes: Sequence[Box], warned: str = "") -> str:
    """Numbers as boxes: median and quartiles, and lines to the 5th and the 95th percentile."""
    scale = round_scale(value for _, values in boxes for value in values)
    cut = [np.percentile(values, (5, 25, 50, 75, 95)).tolist() for _, values in boxes]
    return _printed(title, warned, scale, [name for name, _ in boxes], boxes=cut)


def _printed(title: str, warned: str, scale: Scale, names: Sequence[str], **marks: object) -> str:
    named = [shortened(name, LONGEST) for name in names]
    starts = (len(name) * ACROSS - LEFT - (at + 0.5) * STEP for at, name in enumerate(named))
    left = round(max([0.0, *starts]))
    down = round(ROOM + DOWN * max(map(len, named), default=0))
    width = max(LEFT + len(names) * STEP + RIGHT, round(LEFT + len(warned) * ACROSS))
    box = -left, left + width, BELOW + down
    about = {"title": title, "warned": warned, "names": named, "scale": scale, "box": box}
    return rendered("figure.svg.jinja", **about, left=LEFT, step=STEP, below=BELOW, **marks)
