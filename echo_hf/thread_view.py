"""One thread as a tree beside the samples it became, for a terminal.

Posts are hostile: their text is shown as plain text, with control characters and markup disarmed.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

LONGEST_TEXT = 160


def plain(text: str | None, longest: int = LONGEST_TEXT) -> str:
    r"""Somebody's text, safe to print and no longer than asked.

    Args:
        text: Any text.
        longest: Most characters.

    Returns:
        The text on one line, without control and formatting characters.

    Example:
        >>> plain("a\x1b[31m red\n\u202eword", 12)
        'a[31m red w…'
    """
    shown = disarmed(" ".join((text or "").split()))
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def disarmed(text: str) -> str:
    """The text without control and formatting characters, but for the ends of its lines."""
    if text.isprintable():
        return text
    kept = {"\n", "\u200d"}  # the second joins the parts of a picture character
    return "".join(c for c in text if c in kept or not unicodedata.category(c).startswith("C"))


def thread_beside_samples(
    thread: Mapping[str, Any], samples: Sequence[Mapping[str, Any]], width: int
) -> RenderableType:
    """One thread as a tree, and the samples it became.

    Args:
        thread: A row of `threads`.
        samples: The rows of `samples` that came from it.
        width: Columns of the terminal.

    Returns:
        The two beside each other, or below each other where the terminal is narrow.
    """
    half = width // 2 - 1 if width >= 100 else width
    left = Panel(_tree(thread), title="one thread", width=half, border_style="dim")
    right = Panel(Group(*map(_sample, samples)), title="became", width=half, border_style="dim")
    return Columns([left, right], padding=(0, 1)) if width >= 100 else Group(left, right)


def _tree(thread: Mapping[str, Any]) -> Tree:
    nodes: list[Tree] = []
    root: Tree | None = None
    for post in thread["posts"]:
        label = _post(post)
        if post["parent"] < 0 or root is None:
            root = Tree(label, guide_style="dim")
            nodes.append(root)
        else:
            nodes.append(nodes[post["parent"]].add(label))
    return root if root is not None else Tree(Text("(no post)"))


def _post(post: Mapping[str, Any]) -> Text:
    if post["missing"]:
        return Text(f"({post['missing'].replace('_', ' ')})", "dim italic")
    pictures = len(post["pictures"])
    shown = f" [{pictures} picture{'s' if pictures > 1 else ''}]" if pictures else ""
    author = Text(plain(post["author"], 24) + ": ", "bold")
    return author.append(plain(post["text"]), "not bold").append(shown, "cyan not bold")


def _sample(sample: Mapping[str, Any]) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    table.add_row("prompt", Text(plain(sample["prompt"], 400), "bold"))
    table.add_row("quality", Text(sample["quality"]))
    table.add_row("modified", Text("yes" if sample["prompt_modified"] else "no"))
    table.add_row("inputs", Text(str(len(sample["input_images"]))))
    table.add_row("outputs", Text(str(len(sample["output_images"]))))
    for said in sample["community_feedback"]:
        table.add_row("feedback", Text(plain(said["feedback"]), "italic"))
    table.add_row("id", Text(sample["id"], "dim"))
    return table
