"""The page of those who rank: what it shows, and what becomes of what they do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from echo_hf.apps.asked_page import AskedPage, answer_of
from echo_hf.apps.people import People
from echo_hf.apps.rank.page import Address, board
from echo_hf.apps.rank.session import Ranker

TITLE = "Rank pictures"
HERE = files(__package__ or "")
STYLES = HERE.joinpath("board.css")
SCRIPTS = (HERE.joinpath("board.js"),)


def page(
    ranker: Ranker, people: People, address: Address, write: Callable[[], object]
) -> AskedPage:
    """The page.

    Args:
        ranker: What it shows and writes down.
        people: Who may rank.
        address: Where it finds a picture.
        write: Writes the table of ranks.

    Returns:
        What can be served.
    """

    def opened(person: str) -> str:
        return board(ranker.view(person), address)

    def acted(person: str, said: Mapping[str, Any]) -> str:
        done = ranker.act(person, said)
        if done.table_changes:
            write()
        return board(done.view, address, answer_of(said))

    return AskedPage(TITLE, people, SCRIPTS, opened, acted)
