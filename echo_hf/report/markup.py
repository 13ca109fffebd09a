"""Templates that escape whatever they are given, and numbers and texts as people read them."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from echo_hf._infra.bootstrap import Interval
from echo_hf.metrics.names import TITLES

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
    from echo_hf.report import charts

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
    made.filters["percent"] = charts.percent
    for each in (charts.area, charts.columns, charts.dots, charts.places, charts.round_scale):
        made.globals[each.__name__] = each
    made.globals |= {"is_web": is_web, "unit": charts.UNIT, "violin": charts.violin}
    made.globals["charts"] = made.get_template("charts.svg.jinja").module
    return made


def _finished(value: Any) -> Any:
    if value is None:
        return ""
    is_text = isinstance(value, str) and not isinstance(value, Markup)
    return printable(value) if is_text else value


def rendered(template: str, **values: Any) -> Markup:
    return Markup(environment().get_template(template).render(values))  # noqa: S704 - it escapes
