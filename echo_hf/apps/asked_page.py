"""A page in Gradio: one block of HTML that asks, and one function that answers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any

from echo_hf.apps.people import People
from echo_hf.errors import EchoError

if TYPE_CHECKING:
    import gradio


@dataclass(frozen=True)
class AskedPage:
    """What makes one app's page another than the other's.

    Attributes:
        title: Its name, for the window and for those who come in.
        people: Who may work.
        scripts: What the page can do: files that are one script in this order.
        opened: HTML for a person who opens it.
        acted: HTML for a person after what the page sent; anything may be in that.
    """

    title: str
    people: People
    scripts: tuple[Traversable, ...]
    opened: Callable[[str], str]
    acted: Callable[[str, Mapping[str, Any]], str]

    def blocks(self) -> gradio.Blocks:
        """Blocks to serve."""
        import gradio

        def opened(request: gradio.Request) -> str:
            return self.shown_to(request.username or request.query_params.get("person"))

        def acted(event: gradio.EventData, request: gradio.Request) -> str:
            said: Mapping[str, Any] = event._data if isinstance(event._data, Mapping) else {}
            try:
                # Who signed in is who they are, whatever the page says.
                person = self.people.admitted(str(request.username or said.get("person")))
                return self.acted(person, said)
            except (EchoError, OSError) as error:  # a full disk is no reason to end
                raise gradio.Error(str(error), print_exception=False) from None

        # Annotations that are text would be looked up among this module's names.
        opened.__annotations__ = {"request": gradio.Request}
        acted.__annotations__ = {"event": gradio.EventData, "request": gradio.Request}
        with gradio.Blocks(title=self.title, analytics_enabled=False, fill_width=True) as blocks:
            script = "\n".join(one.read_text("utf-8") for one in self.scripts)
            html = gradio.HTML(js_on_load=script, apply_default_css=False)
            quiet = {"show_progress": "hidden", "api_visibility": "private"}
            blocks.load(opened, outputs=html, **quiet)
            # One at a time: what a person does is worked out from what the log holds by then.
            html.submit(acted, outputs=html, trigger_mode="multiple", concurrency_limit=1, **quiet)
        return blocks

    def shown_to(self, named: str | None) -> str:
        """What somebody sees who comes in.

        Args:
            named: The pseudonym they gave, if any.

        Returns:
            HTML: the page, or the one that asks who is there.
        """
        if not named:
            return start_page(self.title, self.people.names)
        try:
            return self.opened(self.people.admitted(named))
        except EchoError as error:
            return start_page(self.title, self.people.names, str(error))


def look(css: Traversable) -> dict[str, Any]:
    """How a page looks, as options for `gradio.mount_gradio_app`.

    Args:
        css: The file of its styles.
    """
    import gradio

    fonts = ["system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif"]
    theme = gradio.themes.Base(font=fonts, font_mono=fonts)
    return {"css": css.read_text("utf-8"), "theme": theme}


def start_page(title: str, names: tuple[str, ...], problem: str = "") -> str:
    """The page that asks who is there.

    Args:
        title: What people are about to do.
        names: Those who may; empty where everybody may choose a pseudonym.
        problem: What was wrong with the name that was given.

    Returns:
        HTML.
    """
    said = f'<p class="problem" role="alert">{escape(problem)}</p>' if problem else ""
    choices = "".join(
        f'<button type="button" data-name="{escape(name)}">{escape(name)}</button>'
        for name in names
    )
    typed = (
        '<form class="name"><input name="person" maxlength="40" autocomplete="off" '
        'autocapitalize="off" spellcheck="false" aria-label="Pseudonym" required>'
        '<button type="submit">Start</button></form>'
    )
    about = "Choose yours." if names else "Use the same one whenever you come back; not your name."
    return (
        f'<div class="start"><h1>{escape(title)}</h1><p>What is your pseudonym? '
        f'{about}</p>{said}<div class="names">{choices or typed}</div></div>'
    )


def answer_of(said: Mapping[str, Any]) -> int:
    """Number of the request that a page waits for; 0 for none that can be read."""
    number = said.get("answer")
    return number if type(number) is int else 0
