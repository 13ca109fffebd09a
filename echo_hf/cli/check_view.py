"""An engine's check, in a terminal and as JSON, and what is open for review."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from echo_hf._infra.console import plain_table, say
from echo_hf._infra.text import counted, plain
from echo_hf.builder.gold.check import CheckResult
from echo_hf.builder.review import Reviews
from echo_hf.hub.manifest import toolkit_version

FEW = 30
LONGEST_SHOWN = 200
LONGEST_PROMPT = 160
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


def show_check(console: Console, result: CheckResult) -> None:
    asked: dict[str, list[str]] = {}
    rows: list[tuple[str | Text, ...]] = []
    for one in result.stages:
        name = f"{one.engine.kind} {one.engine.options.get('model') or ''}".strip()
        asked.setdefault(name, []).append(one.stage)
        for measure in one.measures:
            style = "dim" if measure.n < FEW else ""
            stage = Text(one.stage if measure is one.measures[0] else "", "bold")
            ends = Text(interval(measure.low, measure.high), style)
            shares = (percent(measure.coverage), percent(measure.strict))
            value, count = percent(measure.value), Text(f"{measure.n:,}", style)
            rows.append((stage, measure.name.replace("_", " "), value, ends, count, *shares))
    named = [f"{name} ({', '.join(stages)})" for name, stages in asked.items()]
    where = f"{result.target} in {result.posts}, {HALVES[result.half]}"
    who = ", ".join(named if len(asked) > 1 else asked)
    title = f"{who} on {where}, {counted(result.threads, 'thread')}"
    console.print(Text(f"\n{plain(title, 400)}\n", "bold"))
    heads = ("stage", "measure", "%", "interval", "n", "coverage %", "strict %")
    console.print(plain_table(*heads, left=["measure"], rows=rows))
    console.print()
    for sentence in _footer(result):
        console.print(Text(sentence, "dim"))


def _footer(result: CheckResult) -> Iterator[str]:
    graded = any(measure.interval not in ("wilson", None) for measure in result.measures)
    yield f"{WILSON}{BOOTSTRAP if graded else ''}."
    yield COVERAGE
    if few := sum(measure.n < FEW for measure in result.measures):
        yield (
            f"{few} of {len(result.measures)} measures have n below {FEW}: differences between "
            "engines in them are not reliable."
        )
    for one in result.stages:
        if skipped := max((measure.skipped for measure in one.measures), default=0):
            yield f"{one.stage}: {skipped} left out: people say too little of them, or two things."
    yield from (f"{note}." for note in result.notes)
    cost = [one.fill.stage_cost_usd for one in result.stages if one.fill.stage_cost_usd is not None]
    if cost:
        yield f"These answers cost ${sum(cost):.2f}."


def show_errors(console: Console, result: CheckResult) -> None:
    for measure in result.measures:
        if measure.errors:
            console.print()
            name = f"{measure.stage}, {measure.name.replace('_', ' ')}"
            say(console, f"{name}: {len(measure.errors)} not right", "bold")
        for item in measure.errors:
            say(console, f"  {plain(item.place, LONGEST_SHOWN)}")
            say(console, f"    expected {plain(item.expected, LONGEST_SHOWN)}")
            given = plain(item.given, LONGEST_SHOWN) or "(nothing)"
            say(console, f"    given    {given}")


def percent(value: float | None) -> str:
    """A share in percent with one digit after the point, never rounded to all or nothing."""
    if value is None:
        return NOTHING
    if value in (0, 1):
        return f"{100 * value:.0f}"
    return f"{min(max(100 * value, 0.1), 99.9):.1f}"


def interval(low: float | None, high: float | None) -> str:
    """An interval in whole percent, rounded outwards."""
    if low is None or high is None:
        return NOTHING
    # Not for what a float adds at its end.
    return f"{math.floor(100 * low + 1e-9)} to {math.ceil(100 * high - 1e-9)}"


def as_json(result: CheckResult) -> dict[str, Any]:
    """The whole result as plain values, without a word of what people or engines wrote."""
    stages = [
        {
            "stage": one.stage,
            "engine": one.describe["engine"],
            "digest": one.digest,
            "failed": dict(one.failed),
            "fill": dataclasses.asdict(one.fill),
            "measures": [measure.as_json() for measure in one.measures],
        }
        for one in result.stages
    ]
    told = {"toolkit": toolkit_version(), **vars(result), "stages": stages}
    return {**told, "notes": list(result.notes)}


def show_open(console: Console, reviews: Reviews, config: Path) -> None:
    for number in reviews.cut:
        say(console, f"{reviews.file}:{number} was cut short and does not count: decide again")
    for one in reviews.open:
        title = Text.assemble((one.id, "bold"), f"  {', '.join(one.reasons)}")
        console.print(title, soft_wrap=True)
        for line in (plain(one.prompt, LONGEST_PROMPT), *one.images):
            say(console, f"  {line}")
    count = len(reviews.open)
    if not count:
        say(console, "nothing is open for review")
        return
    told = "1 sample is" if count == 1 else f"{count:,} samples are"
    say(console, f"{told} open; decide with: echo-hf review {config} --keep ID --remove ID")
