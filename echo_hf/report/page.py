"""The page as a whole: its head with a strict policy, its sections, its data and its script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files

from echo_hf.report.markup import Markup, element
from echo_hf.report.sections.gallery import DATA

ASSETS = files("echo_hf.report") / "assets"
# Pictures lie beside the page, which a browser may read from a disk or a server.
POLICY = (
    "default-src 'none'; img-src 'self' file: data:; style-src 'sha256-{style}'; "
    "script-src 'sha256-{script}'; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
SCHEMES = "light dark"


def page(title: str, head: Markup, sections: Sequence[Markup], data: str) -> str:
    """The whole document.

    Args:
        title: What the window is called.
        head: The head of the report.
        sections: Its sections, in order.
        data: The gallery's data, safe to stand in a page.

    Returns:
        HTML that asks for nothing from anywhere else, and runs no script but its own.
    """
    style, script = asset("report.css"), asset("report.js")
    policy = POLICY.format(style=digest(style), script=digest(script))
    top = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content=SCHEMES),
        element("meta", name="referrer", content="no-referrer"),
        element("link", rel="icon", href="data:,"),
        element("title", title),
        element("style", Markup(style)),
    )
    body = element(
        "body",
        element("a", "Skip to the figures", href="#content", class_="skip"),
        head,
        _navigation(sections),
        element("main", sections, id="content", tabindex=-1),
        element("script", Markup(data), type="application/json", id=DATA),
        element("script", Markup(script)),
    )
    return "<!doctype html>\n" + element("html", top, body, lang="en") + "\n"


def asset(name: str) -> str:
    """The text of a file that comes with the report.

    Args:
        name: Its name.

    Returns:
        The text.
    """
    return (ASSETS / name).read_text("utf-8")


def digest(text: str) -> str:
    """How a policy names a script or a style sheet.

    Example:
        >>> digest("")
        '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='
    """
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _navigation(sections: Sequence[Markup]) -> Markup:
    links = [_entry(one) for one in sections]
    return element("nav", element("ul", links), aria_label="sections")


def _entry(one: Markup) -> Markup:
    name = one.split(' id="', 1)[1].split('"', 1)[0]
    title = one.split(f'id="{name}-title">', 1)[1].split("<", 1)[0]
    return element("li", element("a", Markup(title), href=f"#{name}"))
