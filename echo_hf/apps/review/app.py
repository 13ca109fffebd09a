"""The page of those who review: what it shows, and what becomes of what they do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from echo_hf.apps.asked_page import AskedPage, answer_of
from echo_hf.apps.people import People
from echo_hf.apps.review.desk import Desk
from echo_hf.apps.review.page import Address, desk_page
from echo_hf.apps.review.view import View

TITLE = "Review samples"
HERE = files(__package__ or "")
STYLES = HERE.joinpath("page.css")
SCRIPTS = (HERE.joinpath("boxes.js"), HERE.joinpath("page.js"))


def page(desk: Desk, people: People, address: Address, saved: Callable[[View], None]) -> AskedPage:
    """The page.

    Args:
        desk: What it shows and writes down.
        people: Who may review.
        address: Where it finds a picture.
        saved: Told of each answer before it is shown.

    Returns:
        What can be served.
    """

    def shown(view: View, answer: int = 0) -> str:
        saved(view)
        return desk_page(view, address, answer)

    def opened(person: str) -> str:
        return shown(desk.view(person))

    def acted(person: str, said: Mapping[str, Any]) -> str:
        return shown(desk.act(person, said), answer_of(said))

    return AskedPage(TITLE, people, SCRIPTS, opened, acted)
