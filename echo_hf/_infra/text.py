"""Text for people: safe to print in a terminal or to show in Markdown, truncated, percentages."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

LONGEST_TEXT = 160
HIGHER, LOWER = "↑", "↓"  # is better
BETTER = {
    "color_shift": LOWER,
    "face_identity": HIGHER,
    "structure_distance": LOWER,
    "text_rendering": HIGHER,
}


def plain(text: str | None, longest: int = LONGEST_TEXT) -> str:
    """Somebody's text, safe to print and no longer than asked."""
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
    """One thread as a tree, and the samples it became."""
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


MARK = re.compile(r"\[\.\.\. \d+ (?:characters|descriptions) left out\]")


def shortened(texts: Sequence[str | None], longest: int, together: int) -> list[str | None]:
    """Cuts the longest of some texts, so that all of them fit."""
    limit = _limit([min(len(text), longest) for text in texts if text], longest, together)
    return [text if text is None else _cut(text, limit) for text in texts]


def _limit(lengths: Sequence[int], longest: int, together: int) -> int:
    left = len(lengths)
    for length in sorted(lengths):
        if length * left > together:
            return together // left
        together -= length
        left -= 1
    return longest


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[... {len(text) - limit} characters left out]"


def share(part: int, whole: int) -> str:
    """A share in whole percent."""
    return f"{100 * part / whole:.0f} %" if whole else "-"


def escaped(text: object) -> str:
    """Text that Markdown shows as it is, also in the cell of a table."""
    return re.sub(r"([\\`*_\[\]<>|&~$#])", r"\\\1", one_line(text))


def one_line(text: object) -> str:
    """Text without line breaks."""
    return " ".join(str(text).split())


def table_row(*cells: str) -> str:
    """A row of a table.

    Example:
        >>> table_row("a", "1")
        '| a | 1 |'
    """
    return f"| {' | '.join(cells)} |"


def table(headings: Iterable[str], rows: Iterable[Iterable[str]], numbers: int = 0) -> str:
    """A table."""
    names = list(headings)
    sides = ["---"] * (len(names) - numbers) + ["---:"] * numbers
    lines = [table_row(*names), table_row(*sides), *(table_row(*row) for row in rows)]
    return "\n".join(lines)


def type_name(feature: Any) -> str:
    """A feature in words.

    Example:
        >>> from datasets import Image, List
        >>> type_name(List({"box": List(Image())}))
        'list of {box: list of image}'
    """
    from datasets import Image, List

    if isinstance(feature, List):
        return f"list of {type_name(feature.feature)}"
    if isinstance(feature, dict):
        inner = ", ".join(f"{name}: {type_name(each)}" for name, each in feature.items())
        return f"{{{inner}}}"
    return "image" if isinstance(feature, Image) else str(feature.dtype)
