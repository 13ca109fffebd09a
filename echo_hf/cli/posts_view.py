"""Plans, crawls, yields, refreshes and takedowns in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import datasets
from rich.console import Console
from rich.table import Table
from rich.text import Text

from echo_hf._infra.console import say
from echo_hf._infra.text import percent, plain
from echo_hf.builder.refresh import Refresh, Refreshed
from echo_hf.builder.search_yield import WrittenYields, Yield
from echo_hf.builder.takedown import Removal
from echo_hf.cli.progress import LONGEST_REMARK
from echo_hf.collect.crawl import PlannedQuery
from echo_hf.collect.crawl_ledger import CrawlStats
from echo_hf.config.collection import Search
from echo_hf.reasons import RefreshEnd

NUMBERS = ("queries", "done", "posts", "requests", "cost")
UNKNOWN = "-"
MOST_TERMS = 40
LONGEST_TERM = 24
MOST_NAMED = 10


def show_plan(
    console: Console,
    queries: Sequence[PlannedQuery],
    searches: dict[str, Search],
    *,
    every: bool = False,
) -> None:
    for name, search in searches.items():
        own = [one for one in queries if one.platform == name]
        say(console, f"\n{name}: {len(own):,} queries", "bold")
        console.print(_plan_table(own, search, every=every))
        for line in _plan_lines(own, search):
            say(console, line)


def _plan_table(queries: Sequence[PlannedQuery], search: Search, *, every: bool) -> Table:
    """A row a query, or a term; it loses no digit in 80 columns: words and times are folded."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("#", no_wrap=True)
    table.add_column("term", overflow="fold")
    for name in ("from", "until"):
        table.add_column(name, min_width=len("2026-03-02"))
    for name in ("in",) if every else ("window", "in"):
        table.add_column(name, max_width=max(len(name), len("en ja")))
    for name in NUMBERS:
        table.add_column(name, justify="right", no_wrap=True, min_width=len(name))
    groups: dict[object, list[PlannedQuery]] = {}
    for one in queries:
        key = id(one) if every else (one.query.phase, one.query.question.about[0])
        groups.setdefault(key, []).append(one)
    for group in groups.values():
        phase, question = group[0].query.phase, group[0].query.question
        options, window = search.phases[phase], question.window
        start = window.start.strftime("%Y-%m-%d") if window else UNKNOWN
        asked = [options.window, " ".join(options.languages) or "all"]
        if every:
            asked = [question.language or "all"]
        times = (start, _end(group[-1]), *asked)
        table.add_row(*map(Text, (str(phase + 1), question.about[0], *times, *_numbers(group))))
    return table


def _end(one: PlannedQuery) -> str:
    window = one.query.question.window
    if window is None:
        return UNKNOWN
    return window.end.strftime("%Y-%m-%d %H:%M" if one.query.cut else "%Y-%m-%d")


def _numbers(queries: Sequence[PlannedQuery]) -> tuple[str, ...]:
    posts = [one.posts for one in queries if one.posts is not None]
    costs = [one.usd for one in queries if one.usd is not None]
    is_known, requests = len(posts) == len(queries), sum(one.requests for one in queries)
    return (
        f"{len(queries):,}",
        f"{sum(one.done for one in queries):,}",
        f"{sum(posts):,}" if is_known else UNKNOWN,
        f"{requests:,}" if is_known else f"≥ {requests:,}",
        f"${sum(costs, 0.0):,.2f}" if len(costs) == len(queries) else UNKNOWN,
    )


def _plan_lines(queries: Sequence[PlannedQuery], search: Search) -> Iterator[str]:
    every, done, posts, requests, cost = _numbers(queries)
    yield (
        f"{every} queries, {done} of them done; still to come: posts {posts}, requests {requests}, "
        f"cost {cost}"
    )
    if cut := [one for one in queries if one.query.cut]:
        yield (
            f"windows that are not over are cut at {max(map(_end, cut))} UTC, and go on from there"
        )
    if not queries:
        yield "nothing to ask yet: the first window has not begun"
    budget, expand = search.budget, search.expand
    most = [f"{budget.posts:,} posts"] if budget.posts is not None else []
    most += [f"${budget.usd:,.2f}"] if budget.usd is not None else []
    if most:
        yield f"asking ends at {' or '.join(most)}, replies included"
    elif any(one.usd != 0 for one in queries):
        yield "no budget is set: everything is asked"
    if expand.rounds == 0:
        yield "replies are not asked for"
        return
    rounds = f"in {expand.rounds} rounds at most" if expand.rounds else "until nothing new comes"
    limit = f", {expand.posts:,} posts at most" if expand.posts is not None else ""
    yield f"then replies and ancestors, {rounds}{limit}: their number is not known beforehand"


def show_crawled(console: Console, done: Sequence[CrawlStats]) -> None:
    for one in done:
        console.print(Text(f"\n{one.platform}", "bold"), end=" ")
        for line in crawl_lines(one):
            say(console, plain(line, LONGEST_REMARK))
    if done:
        console.print()


def crawl_lines(stats: CrawlStats) -> Iterator[str]:
    share, spent = stats.missed_by_terms, stats.spent
    missed = "" if share is None else f" ({percent(share)} that terms alone would have missed)"
    yield f"{stats.by_terms:,} posts by search terms, {stats.by_replies:,} more by replies{missed}"
    if stats.missing:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in stats.missing.items())
        yield f"posts that are named and not there: {reasons}"
    states = ", ".join(f"{count:,} {state}" for state, count in stats.questions.items()) or "none"
    yield (
        f"questions: {states}; in all {spent.requests:,} requests, {spent.posts:,} posts as it "
        f"counts them, {spent.cost}"
    )
    if stats.waits:
        yield (
            f"waited {stats.waits:,} times, {stats.waited_s:,.0f} s in all, because it asked for it"
        )
    for error, count in stats.errors.items():
        yield f"{count:,} not answered: {error}"
    yield f"{stats.end}: {stats.end.meaning}"


def show_yields(console: Console, written: WrittenYields) -> None:
    found = written.yields
    table = _yield_table("term", "alone", "half by")
    for one in (*found.keywords[:MOST_TERMS], found.together):
        is_all = one.keyword is None
        name = "all terms" if one.keyword is None else plain(one.keyword, LONGEST_TERM)
        alone = "" if is_all else f"{one.total.alone_passed:,}"
        half = "-" if one.half_by_day is None else f"day {one.half_by_day:,}"
        row = map(Text, (name, *_figures(one.total), alone, half))
        table.add_row(*row, style="bold" if is_all else "")
    console.print(table)
    say(console, "alone: posts on topic that no other term found")
    say(console, "half by: by the end of that day after the release, half of them were written\n")
    if len(found.keywords) > MOST_TERMS:
        say(console, f"{len(found.keywords) - MOST_TERMS:,} more terms stand in the file")
    days = _yield_table("day")
    for window, counts in zip(found.windows, found.together.windows, strict=True):
        if counts.found:
            days.add_row(*map(Text, (window.name, *_figures(counts))))
    console.print(days)
    say(
        console,
        f"{found.came_along:,} posts came along without a search, of {found.unknown:,} nobody says "
        "what found them",
    )
    say(console, f"all figures: {written.figures}")
    say(console, f"as an image: {written.plot}")


def _yield_table(first: str, *more: str) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", pad_edge=False)
    table.add_column(first, overflow="ellipsis", no_wrap=True)
    for name in ("posts", "scored", "on topic", "share", "95 %", *more):
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _figures(one: Yield) -> tuple[str, ...]:
    interval = one.interval
    ends = "-" if interval is None else f"{100 * interval[0]:.0f} to {100 * interval[1]:.0f} %"
    return f"{one.found:,}", f"{one.scored:,}", f"{one.passed:,}", percent(one.share), ends


def show_refresh(console: Console, done: Refresh) -> None:
    for one in done.platforms:
        for line in refresh_lines(one):
            say(console, line)
        for url in list(one.gone)[:MOST_NAMED]:
            say(console, f"  {one.gone[url]:<12}{url}", "dim")
        if len(one.gone) > MOST_NAMED:
            say(console, f"  and {len(one.gone) - MOST_NAMED:,} more", "dim")
    if done.unasked:
        rest = ", ".join(f"{count:,} of {plain(name)}" for name, count in done.unasked.items())
        say(console, f"posts that nobody was asked about: {rest}")


def refresh_lines(refreshed: Refreshed) -> Iterator[str]:
    cost = f", ${refreshed.cost_usd:.2f}" if refreshed.cost_usd else ""
    yield (
        f"{refreshed.platform}: {refreshed.posts:,} posts, {refreshed.asked:,} asked about "
        f"now{cost}, {refreshed.fresh:,} "
        f"a short time ago, {len(refreshed.gone):,} gone"
    )
    for reason, count in refreshed.reasons.items():
        yield f"  {count:,} {reason}: {reason.meaning}"
    if refreshed.unknown:
        yield f"  {refreshed.unknown:,} it can say nothing about: they are another server's"
    if refreshed.end != RefreshEnd.ALL_ASKED:
        yield f"  {refreshed.left:,} left: {refreshed.end.meaning}"


def show_removal(console: Console, taken: Removal, config: Path) -> None:
    lines = [
        f"forgotten: {taken.posts} of {len(taken.urls)} posts were here; {len(taken.samples)} "
        f"samples, {taken.images} images and {taken.answers} stored answers went with them; "
        f"{taken.pages} stored pages of platforms lost their content"
    ]
    for url in taken.unknown:
        said = f"nothing here was at {url}: is that how your posts spell it?"
        lines.append(f"{said} It will not be collected")
    lines += [f"still in {place}: edit that file, it is yours" for place in taken.left_in]
    lines.append(
        "what somebody else loaded with datasets may lie in "
        f"{str(datasets.config.HF_DATASETS_CACHE)!r}, too, and wherever the release went: delete "
        "it there"
    )
    for line in (*lines, f"next: echo-hf build {config}"):
        say(console, line)
