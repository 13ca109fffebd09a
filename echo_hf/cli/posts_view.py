"""Plans, crawls, yields, refreshes and takedowns in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import datasets
from rich.console import Console
from rich.text import Text

from echo_hf._infra.console import plain_table, say
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
FIGURES = ("posts", "scored", "on topic", "share", "95 %")
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
        groups: dict[object, list[PlannedQuery]] = {}
        for one in own:
            key = id(one) if every else (one.query.phase, one.query.question.about[0])
            groups.setdefault(key, []).append(one)
        words = ("term", "from", "until", "window", "in")
        rows = (_plan_row(group, search, every=every) for group in groups.values())
        console.print(plain_table("#", *words, *NUMBERS, left=words, rows=rows))
        for line in _plan_lines(own, search):
            say(console, line)


def _plan_row(group: Sequence[PlannedQuery], search: Search, *, every: bool) -> tuple[str, ...]:
    phase, question = group[0].query.phase, group[0].query.question
    options, window = search.phases[phase], question.window
    start = window.start.strftime("%Y-%m-%d") if window else UNKNOWN
    asked = (question.language or "all") if every else (" ".join(options.languages) or "all")
    times = (start, _end(group[-1]), options.window, asked)
    return str(phase + 1), question.about[0], *times, *_numbers(group)


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
    still = f"still to come: posts {posts}, requests {requests}, cost {cost}"
    yield f"{every} queries, {done} of them done; {still}"
    if cut := [one for one in queries if one.query.cut]:
        last = max(map(_end, cut))
        yield f"windows that are not over are cut at {last} UTC, and go on from there"
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
    found, rows = written.yields, []
    for one in (*found.keywords[:MOST_TERMS], found.together):
        name = "all terms" if one.keyword is None else plain(one.keyword, LONGEST_TERM)
        alone = "" if one.keyword is None else f"{one.total.alone_passed:,}"
        half = "-" if one.half_by_day is None else f"day {one.half_by_day:,}"
        rows.append((name, *_figures(one.total), alone, half))
    console.print(plain_table("term", *FIGURES, "alone", "half by", rows=rows))
    say(console, "alone: posts on topic that no other term found")
    say(console, "half by: by the end of that day after the release, half of them were written\n")
    if len(found.keywords) > MOST_TERMS:
        say(console, f"{len(found.keywords) - MOST_TERMS:,} more terms stand in the file")
    days = zip(found.windows, found.together.windows, strict=True)
    by_day = [(window.name, *_figures(counts)) for window, counts in days if counts.found]
    console.print(plain_table("day", *FIGURES, rows=by_day))
    along = f"{found.came_along:,} posts came along without a search"
    say(console, f"{along}, of {found.unknown:,} nobody says what found them")
    say(console, f"all figures: {written.figures}")
    say(console, f"as an image: {written.plot}")


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
    hint = "is that how your posts spell it? It will not be collected"
    lines += [f"nothing here was at {url}: {hint}" for url in taken.unknown]
    lines += [f"still in {place}: edit that file, it is yours" for place in taken.left_in]
    lines.append(
        "what somebody else loaded with datasets may lie in "
        f"{str(datasets.config.HF_DATASETS_CACHE)!r}, too, and wherever the release went: delete "
        "it there"
    )
    for line in (*lines, f"next: echo-hf build {config}"):
        say(console, line)
