"""The page in Gradio: one block of HTML that asks, and one function that answers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from echo_hf.apps.people import People
from echo_hf.apps.rank.page import Address, board, start_page
from echo_hf.apps.rank.session import Ranker
from echo_hf.errors import RunError

if TYPE_CHECKING:
    import gradio

TITLE = "Rank pictures"


def look() -> dict[str, Any]:
    """How the page looks, as options for `gradio.mount_gradio_app`."""
    import gradio

    fonts = ["system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif"]
    return {"css": _file("board.css"), "theme": gradio.themes.Base(font=fonts, font_mono=fonts)}


def page(
    ranker: Ranker, people: People, address: Address, write: Callable[[], object]
) -> gradio.Blocks:
    """The page.

    Args:
        ranker: What it shows and writes down.
        people: Who may rank.
        address: Where it finds a picture.
        write: Writes the table of ranks.

    Returns:
        Blocks to serve.
    """
    import gradio

    def opened(request: gradio.Request) -> str:
        named = request.username or request.query_params.get("person")
        if not named:
            return start_page(people.names)
        try:
            return board(ranker.view(people.admitted(named)), address)
        except RunError as error:
            return start_page(people.names, str(error))

    def acted(event: gradio.EventData, request: gradio.Request) -> str:
        said: Mapping[str, Any] = event._data if isinstance(event._data, Mapping) else {}
        try:
            # Who signed in is who they are, whatever the page says.
            person = people.admitted(str(request.username or said.get("person")))
            done = ranker.act(person, said)
            if done.table_changes:
                write()
        except RunError as error:
            raise gradio.Error(str(error), print_exception=False) from None
        number = said.get("answer")
        return board(done.view, address, number if type(number) is int else 0)

    # Annotations that are text would be looked up among this module's names.
    opened.__annotations__ = {"request": gradio.Request}
    acted.__annotations__ = {"event": gradio.EventData, "request": gradio.Request}
    with gradio.Blocks(title=TITLE, analytics_enabled=False, fill_width=True) as blocks:
        html = gradio.HTML(js_on_load=_file("board.js"), apply_default_css=False)
        quiet = {"show_progress": "hidden", "api_visibility": "private"}
        blocks.load(opened, outputs=html, **quiet)
        # One at a time: what a person does is worked out from what the log holds by then.
        html.submit(acted, outputs=html, trigger_mode="multiple", concurrency_limit=1, **quiet)
    return blocks


def _file(name: str) -> str:
    return files(__package__ or "").joinpath(name).read_text("utf-8")
