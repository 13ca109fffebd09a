"""A query plan in a terminal: a line a term of each phase, or a line a query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from echo_hf.collect.plan_costs import PlannedQuery
from echo_hf.collect.search_config import Search

NUMBERS = ("queries", "done", "posts", "requests", "cost")
UNKNOWN = "-"


def show_plan(
    console: Console,
    queries: Sequence[PlannedQuery],
    searches: dict[str, Search],
    *,
    every: bool = False,
) -> None:
    """Prints a plan, and what it will take.

    Args:
        console: Where to print.
        queries: The plan.
        searches: What is asked of each platform, by its name.
        every: Whether each query gets a line of its own.
    """
    for name, search in searches.items():
        own = [one for one in queries if one.platform == name]
        console.print(Text(f"\n{name}: {len(own):,} queries", "bold"))
        console.print(_each(own) if every else _by_term(own, search))
        for line in (*_totals(own), *_limits(search, own)):
            console.print(Text(line), soft_wrap=True)


def _by_term(queries: Sequence[PlannedQuery], search: Search) -> Table:
    table = _table("window", "in")
    for (phase, term), group in groupby(_sorted(queries), _phase_and_term):
        some, options = list(group), search.phases[phase]
        languages = " ".join(options.languages) or "all"
        told = (str(phase + 1), term, _start(some[0]), _end(some[-1]), options.window, languages)
        table.add_row(*map(Text, (*told, *_numbers(some))))
    return table


def _each(queries: Sequence[PlannedQuery]) -> Table:
    table = _table("in")
    for one in queries:
        question = one.query.question
        told = (str(one.query.phase + 1), question.about[0], _start(one), _end(one))
        table.add_row(*map(Text, (*told, question.language or "all", *_numbers([one]))))
    return table


def _table(*columns: str) -> Table:
    """A table that loses no digit in 80 columns: terms, languages and times are folded."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("#", no_wrap=True)
    table.add_column("term", overflow="fold")
    for name in ("from", "until"):
        table.add_column(name, min_width=len("2026-03-02"))
    for name in columns:
        table.add_column(name, max_width=max(len(name), len("en ja")))
    for name in NUMBERS:
        table.add_column(name, justify="right", no_wrap=True, min_width=len(name))
    return table


def _numbers(queries: Sequence[PlannedQuery]) -> tuple[str, ...]:
    posts = [one.posts for one in queries]
    costs = [one.usd for one in queries]
    known = [one for one in posts if one is not None]
    requests = sum(one.requests for one in queries)
    return (
        f"{len(queries):,}",
        f"{sum(one.done for one in queries):,}",
        f"{sum(known):,}" if len(known) == len(posts) else UNKNOWN,
        f"{requests:,}" if len(known) == len(posts) else f"≥ {requests:,}",
        _dollars(costs),
    )


def _dollars(costs: Iterable[float | None]) -> str:
    total = 0.0
    for cost in costs:
        if cost is None:
            return UNKNOWN
        total += cost
    return f"${total:,.2f}"


def _totals(queries: Sequence[PlannedQuery]) -> Iterator[str]:
    every, done, posts, requests, cost = _numbers(queries)
    yield (
        f"{every} queries, {done} of them done; still to come: posts {posts}, requests {requests}, "
        f"cost {cost}"
    )
    if any(one.query.cut for one in queries):
        last = max((one for one in queries if one.query.cut), key=_end)
        yield f"windows that are not over are cut at {_end(last)} UTC, and go on from there"
    if not queries:
        yield "nothing to ask yet: the first window has not begun"


def _limits(search: Search, queries: Sequence[PlannedQuery]) -> Iterator[str]:
    budget, expand = search.budget, search.expand
    most = [f"{budget.posts:,} posts"] if budget.posts is not None else []
    most += [f"${budget.usd:,.2f}"] if budget.usd is not None else []
    if most:
        yield f"asking ends at {' or '.join(most)}, replies included"
    elif any(one.usd != 0 for one in queries):
        yield "no budget is set: everything is asked"
    if expand.rounds == 0:
        yield "replies are not asked for"
    else:
        rounds = (
            f"in {expand.rounds} rounds at most" if expand.rounds else "until nothing new comes"
        )
        limit = f", {expand.posts:,} posts at most" if expand.posts is not None else ""
        yield f"then replies and ancestors, {rounds}{limit}: their number is not known beforehand"


def _sorted(queries: Sequence[PlannedQuery]) -> list[PlannedQuery]:
    order: dict[tuple[int, str], int] = {}
    for one in queries:
        order.setdefault(_phase_and_term(one), len(order))
    return sorted(queries, key=lambda one: order[_phase_and_term(one)])


def _phase_and_term(one: PlannedQuery) -> tuple[int, str]:
    return one.query.phase, one.query.question.about[0]


def _start(one: PlannedQuery) -> str:
    window = one.query.question.window
    return window.start.strftime("%Y-%m-%d") if window else UNKNOWN


def _end(one: PlannedQuery) -> str:
    window = one.query.question.window
    if window is None:
        return UNKNOWN
    return window.end.strftime("%Y-%m-%d %H:%M" if one.query.cut else "%Y-%m-%d")
