"""The page in Gradio: one block of HTML that asks, and one function that answers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from echo_hf.apps.people import People
from echo_hf.apps.review.desk import Desk
from echo_hf.apps.review.page import Address, desk_page, start_page
from echo_hf.apps.review.view import View
from echo_hf.errors import EchoError

if TYPE_CHECKING:
    import gradio

TITLE = "Review samples"


def look() -> dict[str, Any]:
    """How the page looks, as options for `gradio.mount_gradio_app`."""
    import gradio

    fonts = ["system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif"]
    return {"css": _file("page.css"), "theme": gradio.themes.Base(font=fonts, font_mono=fonts)}


def page(desk: Desk, people: People, address: Address, saved: Callable[[View], None]) -> Any:
    """The page.

    Args:
        desk: What it shows and writes down.
        people: Who may review.
        address: Where it finds a picture.
        saved: Told of each answer before it is shown.

    Returns:
        Blocks to serve.
    """
    import gradio

    def shown(view: View, number: object = 0) -> str:
        saved(view)
        return desk_page(view, address, number if type(number) is int else 0)

    def opened(request: gradio.Request) -> str:
        named = request.username or request.query_params.get("person")
        if not named:
            return start_page(people.names)
        try:
            return shown(desk.view(people.admitted(named)))
        except EchoError as error:
            return start_page(people.names, str(error))

    def acted(event: gradio.EventData, request: gradio.Request) -> str:
        said: Mapping[str, Any] = event._data if isinstance(event._data, Mapping) else {}
        try:
            # Who signed in is who they are, whatever the page says.
            person = people.admitted(str(request.username or said.get("person")))
            return shown(desk.act(person, said), said.get("answer"))
        except EchoError as error:
            raise gradio.Error(str(error), print_exception=False) from None

    # Annotations that are text would be looked up among this module's names.
    opened.__annotations__ = {"request": gradio.Request}
    acted.__annotations__ = {"event": gradio.EventData, "request": gradio.Request}
    with gradio.Blocks(title=TITLE, analytics_enabled=False, fill_width=True) as blocks:
        html = gradio.HTML(js_on_load=_file("page.js"), apply_default_css=False)
        quiet = {"show_progress": "hidden", "api_visibility": "private"}
        blocks.load(opened, outputs=html, **quiet)
        # One at a time: what a person does is worked out from what the log holds by then.
        html.submit(acted, outputs=html, trigger_mode="multiple", concurrency_limit=1, **quiet)
    return blocks


def _file(name: str) -> str:
    return files(__package__ or "").joinpath(name).read_text("utf-8")
