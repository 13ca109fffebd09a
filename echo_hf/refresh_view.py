"""A refresh in a terminal: how far it is, and which posts are gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

from echo_hf.collect.show_crawl import CrawlWatch
from echo_hf.reasons import RefreshEnd
from echo_hf.refresh import Refresh, Refreshed
from echo_hf.thread_view import plain

MOST_NAMED = 10


class RefreshWatch(CrawlWatch):
    """Shows a refresh while it goes on."""

    def refreshed(self, platform: str, done: int, total: int, gone: int) -> None:
        """Shows how many posts were asked about."""
        self._show(platform, done, total, f"{platform}: {gone:,} posts are gone")


def show_refresh(console: Console, done: Refresh) -> None:
    """Prints what each platform said.

    Args:
        console: Where to print.
        done: What they said.
    """
    for one in done.platforms:
        for line in said(one):
            console.print(Text(line), soft_wrap=True)
        for url in list(one.gone)[:MOST_NAMED]:
            console.print(Text(f"  {one.gone[url]:<12}{url}", "dim"), soft_wrap=True)
        if len(one.gone) > MOST_NAMED:
            console.print(Text(f"  and {len(one.gone) - MOST_NAMED:,} more", "dim"))
    if done.unasked:
        rest = ", ".join(f"{count:,} of {plain(name)}" for name, count in done.unasked.items())
        console.print(Text(f"posts that nobody was asked about: {rest}"), soft_wrap=True)


def said(one: Refreshed) -> Iterator[str]:
    """What a platform said, line by line.

    Args:
        one: What it said.

    Yields:
        Lines for a reader.
    """
    cost = f", ${one.cost_usd:.2f}" if one.cost_usd else ""
    yield (
        f"{one.platform}: {one.posts:,} posts, {one.asked:,} asked about now{cost}, {one.fresh:,} "
        f"a short time ago, {len(one.gone):,} gone"
    )
    for reason, count in one.reasons.items():
        yield f"  {count:,} {reason}: {reason.meaning}"
    if one.unknown:
        yield f"  {one.unknown:,} it can say nothing about: they are another server's"
    if one.end != RefreshEnd.ALL_ASKED:
        yield f"  {one.left:,} left: {one.end.meaning}"


def what_next(done: Refresh, config: Path) -> str | None:
    """What a person may do about posts that are gone, null where none is."""
    if not done.gone:
        return None
    return f"next: echo-hf refresh {config} --apply takes {len(done.gone):,} posts out for good"
