"""What an engine's check looks like: in a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from echo_hf.check.check import CheckResult, StageCheck
from echo_hf.check.measures import Measure
from echo_hf.thread_view import plain

FEW = 30
LONGEST_SHOWN = 200
NOTHING = "-"
HALVES = {"held_out": "held-out half", "tune": "half for tuning", "all": "both halves"}
WILSON = (
    "Intervals are at 95 %: Wilson's for shares, which takes the items (n) as independent although "
    "those of one thread are alike"
)
BOOTSTRAP = "; for similarity a bootstrap over threads"
COVERAGE = (
    "Coverage is the share of what people wrote down that got an answer; what got none counts "
    "neither as right nor as wrong in %, and as wrong in strict % (- for a precision, where "
    "nothing can be missing)."
)
SKIPPED = {
    "relevance": "{} left out of precision and recall: people would both keep and drop them",
    "roles": "{} pictures left out: nobody wrote down their role",
    "screenshots": "{} screenshots left out: nobody wrote down what they show",
}


def show_check(console: Console, result: CheckResult) -> None:
    """Prints how well an engine does.

    Args:
        console: Where to print.
        result: What was measured.
    """
    console.print()
    console.print(Text(_title(result), "bold"))
    console.print()
    console.print(_table(result.stages))
    console.print()
    for sentence in _footer(result):
        console.print(Text(sentence, "dim"))


def show_errors(console: Console, result: CheckResult) -> None:
    """Prints what was not quite right, as far as the result holds it.

    Args:
        console: Where to print.
        result: What was measured.
    """
    for measure in result.measures:
        if not measure.errors:
            continue
        console.print()
        name = f"{measure.stage}, {_name(measure)}: {len(measure.errors)} not right"
        console.print(Text(name, "bold"))
        for item in measure.errors:
            console.print(Text(f"  {plain(item.place, LONGEST_SHOWN)}"), soft_wrap=True)
            console.print(Text(f"    expected {plain(item.expected, LONGEST_SHOWN)}"))
            given = plain(item.given, LONGEST_SHOWN) or "(nothing)"
            console.print(Text(f"    given    {given}"))


def percent(value: float | None) -> str:
    """A share in percent with one digit after the point, never rounded to all or nothing.

    Example:
        >>> percent(0.98765), percent(0.9999), percent(1.0), percent(None)
        ('98.8', '99.9', '100', '-')
    """
    if value is None:
        return NOTHING
    if value in (0, 1):
        return f"{100 * value:.0f}"
    return f"{min(max(100 * value, 0.1), 99.9):.1f}"


def interval(low: float | None, high: float | None) -> str:
    """An interval in whole percent, rounded outwards.

    Example:
        >>> interval(0.2553, 0.3662), interval(None, None)
        ('25 to 37', '-')
    """
    if low is None or high is None:
        return NOTHING
    # Not for what a float adds at its end.
    return f"{math.floor(100 * low + 1e-9)} to {math.ceil(100 * high - 1e-9)}"


def _title(result: CheckResult) -> str:
    asked: dict[str, list[str]] = {}
    for one in result.stages:
        model = one.engine.options.get("model")
        asked.setdefault(f"{one.engine.kind} {model or ''}".strip(), []).append(one.stage)
    names = [
        name if len(asked) == 1 else f"{name} ({', '.join(stages)})"
        for name, stages in asked.items()
    ]
    threads = f"{result.threads} thread{'s' if result.threads != 1 else ''}"
    gold = f"{result.target} in {result.posts}, {HALVES[result.half]}, {threads}"
    return plain(f"{', '.join(names)} on {gold}", 400)


def _table(stages: Iterable[StageCheck]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("stage", style="bold", no_wrap=True)
    table.add_column("measure", no_wrap=True)
    for name in ("%", "interval", "n", "coverage %", "strict %"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in stages:
        for nth, measure in enumerate(one.measures):
            last = nth == len(one.measures) - 1
            table.add_row(*_row(measure, first=not nth), end_section=last)
    return table


def _row(measure: Measure, *, first: bool) -> list[Text]:
    style = "dim" if measure.n < FEW else ""
    cells = [
        Text(percent(measure.value)),
        Text(interval(measure.low, measure.high), style),
        Text(f"{measure.n:,}", style),
        Text(percent(measure.coverage)),
        Text(percent(measure.strict)),
    ]
    return [Text(measure.stage if first else ""), Text(_name(measure)), *cells]


def _name(measure: Measure) -> str:
    return measure.name.replace("_", " ")


def _footer(result: CheckResult) -> Iterable[str]:
    graded = any(measure.interval not in ("wilson", None) for measure in result.measures)
    yield f"{WILSON}{BOOTSTRAP if graded else ''}."
    yield COVERAGE
    few = sum(measure.n < FEW for measure in result.measures)
    if few:
        yield (
            f"{few} of {len(result.measures)} measures have n below {FEW}: differences between "
            "engines in them are not reliable."
        )
    for one in result.stages:
        skipped = max((measure.skipped for measure in one.measures), default=0)
        if skipped:
            yield f"{one.stage}: {SKIPPED[one.stage].format(skipped)}."
    yield from (f"{note}." for note in result.notes)
    cost = [one.fill.stage_cost_usd for one in result.stages if one.fill.stage_cost_usd is not None]
    if cost:
        yield f"These answers cost ${sum(cost):.2f}."
