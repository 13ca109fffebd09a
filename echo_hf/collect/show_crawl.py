"""A crawl in a terminal: how far it is, whom it waits for, and what it has found."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from echo_hf.collect.crawl_progress import CrawlProgress
from echo_hf.collect.crawl_stats import CrawlStats
from echo_hf.terminal import LONGEST_REMARK, Watch
from echo_hf.thread_view import plain


class CrawlWatch(Watch):
    """Shows a crawl while it goes on."""

    def crawled(self, progress: CrawlProgress) -> None:
        """Shows requests, posts, rate and cost so far."""
        self._show(progress.platform, progress.requests, 0, asked(progress))

    def waits(self, platform: str, seconds: float) -> None:
        """Says who wants to be left alone, and until when."""
        until = datetime.datetime.now().astimezone() + datetime.timedelta(seconds=seconds)
        self._stop()
        line = f"{platform} asks to wait {seconds:,.0f} s: going on at {until:%H:%M:%S}"
        self.console.print(Text(line, "dim"), soft_wrap=True)


def asked(progress: CrawlProgress) -> str:
    """What a run has brought so far, in a few words.

    Args:
        progress: How far it is.

    Returns:
        One line.

    Example:
        >>> asked(CrawlProgress("x", requests=3, posts=270, seconds=2.0))
        'x: search, 3 requests, 270 posts (135/s), $0.00 in all'
    """
    rate = progress.posts / progress.seconds if progress.seconds else 0.0
    what = f"round {progress.round} of replies" if progress.round else "search"
    return (
        f"{progress.platform}: {what}, {progress.requests:,} requests, {progress.posts:,} posts "
        f"({rate:,.0f}/s), {_cost(progress.spent.cost_usd, progress.spent.unpriced)} in all"
    )


def show_crawled(console: Console, done: Sequence[CrawlStats]) -> None:
    """Prints what a crawl has found on each platform, and why it ended.

    Args:
        console: Where to print.
        done: The figures.
    """
    for one in done:
        console.print(Text(f"\n{one.platform}", "bold"), end=" ")
        for line in found(one):
            console.print(Text(plain(line, LONGEST_REMARK)), soft_wrap=True)
    if done:
        console.print()


def found(one: CrawlStats) -> Iterator[str]:
    """What a crawl has found, line by line.

    Args:
        one: The figures.

    Yields:
        Lines for a reader.
    """
    share = one.missed_by_terms
    missed = "" if share is None else f" ({100 * share:.0f} % that terms alone would have missed)"
    yield f"{one.by_terms:,} posts by search terms, {one.by_replies:,} more by replies{missed}"
    if one.missing:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in one.missing.items())
        yield f"posts that are named and not there: {reasons}"
    states = ", ".join(f"{count:,} {state}" for state, count in one.questions.items()) or "none"
    spent = one.spent
    yield (
        f"questions: {states}; in all {spent.requests:,} requests, {spent.posts:,} posts as it "
        f"counts them, {_cost(spent.cost_usd, spent.unpriced)}"
    )
    if one.waits:
        yield f"waited {one.waits:,} times, {one.waited_s:,.0f} s in all, because it asked for it"
    for error, count in one.errors.items():
        yield f"{count:,} not answered: {error}"
    yield f"{one.end}: {one.end.meaning}"


def _cost(usd: float, unpriced: int) -> str:
    if unpriced:
        return f"${usd:.2f} and what {unpriced:,} pages of unknown price cost"
    return f"${usd:.2f}"
