"""HTML and SVG from values, escaped, and numbers as people read them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
FORBIDDEN = re.compile(r"on.*|style|srcdoc", re.IGNORECASE)
# Control characters, overrides of the direction of text, halves of characters, and no characters.
UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202d\u202e\ud800-\udfff\ufffe\uffff]")
REPLACEMENT = "\ufffd"
LINKED = frozenset({"http", "https"})
LONGEST_LINK = 60


class Markup(str):
    """Text that is HTML or SVG already."""

    __slots__ = ()


Child = str | int | None | Iterable["Child"]
Attribute = str | int | float | bool | None


def printable(text: str) -> str:
    """Somebody's text without what no page can show, or what changes the text around it."""
    return UNSHOWN.sub(REPLACEMENT, text.replace("\r\n", "\n"))


def element(tag: str, *children: Child, **attributes: Attribute) -> Markup:
    opening = f"<{tag}{''.join(map(_attribute, attributes, attributes.values()))}>"
    return Markup(opening if tag in VOID else f"{opening}{joined(*children)}</{tag}>")


def joined(*children: Child) -> Markup:
    """Several pieces of markup or text as one."""
    return Markup("".join(map(_child, children)))


def link(address: str | None, text: str | None = None) -> Markup:
    """A link to a page of the web; the address as text where it is anything else."""
    if address is None or not is_web(address):
        return element("span", text or address or "–", dir="auto")
    said = text or shortened(address.split("://", 1)[1], LONGEST_LINK)
    return element("a", said, href=address, rel="noreferrer noopener", target="_blank")


def is_web(address: str) -> bool:
    """Whether an address is one of the web, and nothing that a browser would run."""
    if UNSHOWN.search(address) or address != address.strip():
        return False
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in LINKED and bool(parts.hostname)


def shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _attribute(name: str, value: Attribute) -> str:
    name = name.rstrip("_").replace("_", "-")
    if FORBIDDEN.fullmatch(name) or not NAME.fullmatch(name):
        raise ValueError(f"attribute {name!r}: expected one that holds neither script nor style")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{_escaped(str(value))}"'


def _child(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str | int):
        return _escaped(str(child))
    return "".join(map(_child, child))


def _escaped(text: str) -> str:
    return html.escape(printable(text), quote=True)


NOTHING = "–"
Interval = tuple[float, float]


def number(value: float | None, digits: int = 3) -> str:
    if value is None:
        return NOTHING
    said = f"{value:.{digits}f}"
    return said.lstrip("-") if not float(said) else said.replace("-", "−")


def interval(ends: Interval | None, digits: int = 3) -> str:
    if ends is None:
        return NOTHING
    return f"{number(ends[0], digits)} – {number(ends[1], digits)}"


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
