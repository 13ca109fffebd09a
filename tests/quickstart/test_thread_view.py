"""A thread and its samples in a terminal."""

from __future__ import annotations

import io
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from echo_hf._infra.text import plain
from echo_hf.quickstart.run import thread_beside_samples

BELL, ESCAPE, RIGHT_TO_LEFT = "\x07", "\x1b", "\u202e"


def post(parent: int, text: str, **values: Any) -> dict[str, Any]:
    """A post as `threads` holds it."""
    return {
        "parent": parent,
        "author": "ana",
        "text": text,
        "missing": None,
        "pictures": [],
        **values,
    }


def printed(thread: dict[str, Any], samples: list[dict[str, Any]], width: int) -> str:
    """The rendering as text."""
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=False)
    console.print(thread_beside_samples(thread, samples, width))
    return out.getvalue()


@given(st.text(), st.integers(1, 40))
def test_a_post_cannot_control_the_terminal(text: str, longest: int) -> None:
    """No control character survives, and the text has the length that was asked for."""
    shown = plain(f"{ESCAPE}[2J{text}{BELL}{RIGHT_TO_LEFT}", longest)

    assert len(shown) <= longest
    assert shown.isprintable() or "\u200d" in shown


def test_markup_in_a_post_is_text() -> None:
    """Rich markup in a post is printed, not obeyed."""
    thread = {"posts": [post(-1, "[bold red]not bold[/]")]}

    assert "[bold red]not bold[/]" in printed(thread, [], 120)


def test_a_thread_is_drawn_as_a_tree() -> None:
    """Replies stand below and right of what they answer; lost posts say why."""
    posts = [
        post(-1, "root", missing="deleted"),
        post(0, "first reply", pictures=[{}]),
        post(1, "below it"),
        post(0, "second reply"),
    ]
    lines = printed({"posts": posts}, [], 140).splitlines()
    column = {
        word: line.index(word)
        for word in ("(deleted)", "first reply [1 image]", "below it", "second reply")
        for line in lines
        if word in line
    }

    assert column["(deleted)"] < column["second reply"] == column["first reply [1 image]"]
    assert column["first reply [1 image]"] < column["below it"]
