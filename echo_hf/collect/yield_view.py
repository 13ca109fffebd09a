"""The yield of search terms in a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from echo_hf.collect.keyword_yield import KeywordYield, Yield
from echo_hf.collect.yield_run import WrittenYields
from echo_hf.thread_view import plain

MOST_TERMS = 40
LONGEST_TERM = 24


def show_yields(console: Console, written: WrittenYields) -> None:
    """Prints what each term brought, and how the share on topic changes with time.

    Args:
        console: Where to print.
        written: The counts, and where they are written.
    """
    found = written.yields
    console.print(_by_term(found.keywords[:MOST_TERMS], found.together))
    _say(console, "alone: posts on topic that no other term found")
    _say(console, "half by: by the end of that day after the release, half of them were written\n")
    if len(found.keywords) > MOST_TERMS:
        _say(console, f"{len(found.keywords) - MOST_TERMS:,} more terms stand in the file")
    console.print(_by_window(written))
    _say(
        console,
        f"{found.came_along:,} posts came along without a search, of {found.unknown:,} nobody says "
        "what found them",
    )
    _say(console, f"all figures: {written.figures}")
    _say(console, f"as a picture: {written.plot}")


def _by_term(keywords: tuple[KeywordYield, ...], together: KeywordYield) -> Table:
    table = _table("term", "alone", "half by")
    for one in (*keywords, together):
        name = "all terms" if one.keyword is None else plain(one.keyword, LONGEST_TERM)
        alone = "" if one.keyword is None else f"{one.total.alone_passed:,}"
        half = "-" if one.half_by_day is None else f"day {one.half_by_day:,}"
        style = "bold" if one.keyword is None else ""
        table.add_row(*map(Text, (name, *_figures(one.total), alone, half)), style=style)
    return table


def _by_window(written: WrittenYields) -> Table:
    table = _table("day")
    together = written.yields.together.windows
    for window, counts in zip(written.yields.windows, together, strict=True):
        if counts.found:
            table.add_row(*map(Text, (window.name, *_figures(counts))))
    return table


def _table(first: str, *more: str) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", pad_edge=False)
    table.add_column(first, overflow="ellipsis", no_wrap=True)
    for name in ("posts", "scored", "on topic", "share", "95 %", *more):
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _figures(one: Yield) -> tuple[str, ...]:
    interval = one.interval
    ends = "-" if interval is None else f"{100 * interval[0]:.0f} to {100 * interval[1]:.0f} %"
    share = "-" if one.share is None else f"{100 * one.share:.0f} %"
    return f"{one.found:,}", f"{one.scored:,}", f"{one.passed:,}", share, ends


def _say(console: Console, line: str) -> None:
    console.print(Text(line), soft_wrap=True)
