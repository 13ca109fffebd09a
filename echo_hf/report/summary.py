"""A report and an analysis in a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from echo_hf._infra.console import plain_table, say
from echo_hf._infra.text import plain
from echo_hf.report.analysis.result import Analysis, Estimate, Failures, SetPerplexity, Tasks
from echo_hf.report.markup import plural
from echo_hf.report.report import Report

if TYPE_CHECKING:
    from echo_hf.report.analysis.analyze import Analyzed


def show_report(console: Console, written: Report) -> None:
    for reason, images in sorted(Counter(written.problems.values()).items()):
        say(console, f"{plural(images, 'image')} cannot be shown: {reason}", "yellow")
    held = f"{plural(written.samples, 'sample')}, {plural(written.images, 'image')}"
    say(console, f"report: {written.path} ({held})")


NOTHING = "-"
LONGEST = 40
MOST_ROWS = 10
PARTS = (
    "diversity",
    "lengths",
    "languages",
    "near_duplicates",
    "perplexity",
    "tasks",
    "embedding_map",
    "failures",
    "word_cloud",
    "interaction",
    "activity",
    "funnel",
)


def show_analysis(console: Console, done: Analyzed) -> None:
    for table in tables_of(done.analysis):
        console.print(table)
        console.print()
    for name in PARTS:
        part = getattr(done.analysis, name)
        if part.reason is not None:
            say(console, f"no {name}, {part.reason}: {plain(part.detail, 300)}", "yellow")
    tasks = done.analysis.tasks.found
    if tasks and tasks.no_references:
        say(console, f"no tasks of references: {plain(tasks.no_references, 300)}", "yellow")
    say(console, f"analysis: {done.path}")


def tables_of(analysis: Analysis) -> Iterator[Table]:
    """The tables of an analysis, those of parts without figures left out."""
    yield _sets(analysis)
    if analysis.perplexity.found:
        yield _perplexity(analysis.perplexity.found)
    if analysis.tasks.found:
        yield _tasks(analysis.tasks.found)
    if analysis.failures.found:
        yield _failures(analysis.failures.found)


def _sets(analysis: Analysis) -> Table:
    at = next((one.at for one in analysis.diversity.found or ()), 0)
    title = f"{analysis.name}: prompts, and the sets they are compared with"
    table = plain_table(
        "set", "prompts", "words", "first bigrams", f"of {at:,}", "ratio", title=title
    )
    bigrams = {one.name: one for one in analysis.diversity.found or ()}
    lengths = {one.name: one.words for one in analysis.lengths.found or ()}
    for one in analysis.sets:
        begins, length = bigrams.get(one.name), lengths.get(one.name)
        cells = (
            plain(one.name, LONGEST),
            f"{one.prompts:,}",
            f"{length.median:g}" if length else NOTHING,
            f"{begins.unique:,}" if begins else NOTHING,
            _shown(begins.expected if begins else None, 0),
            _shown(begins.ratio if begins else None, 2),
        )
        table.add_row(*map(Text, cells))
    return table


def _perplexity(found: Sequence[SetPerplexity]) -> Table:
    title = "perplexity, lower is more natural"
    table = plain_table("set", "prompts", "tokens", "of tokens", "of prompts", "ratio", title=title)
    for one in found:
        cells = (
            plain(one.name, LONGEST),
            f"{one.prompts:,}",
            f"{one.tokens:,}",
            _shown(one.token_level, 1),
            _shown(one.prompt_level, 1),
            _shown(one.ratio, 2),
        )
        table.add_row(*map(Text, cells))
    return table


def _tasks(found: Tasks) -> Table:
    title = "tasks"
    table = plain_table(
        "task", "samples", "share", "absent from", left=["absent from"], title=title
    )
    for one in found.counts:
        missing = ", ".join(plain(name, LONGEST) for name in one.absent_from)
        cells = (
            plain(one.task, LONGEST),
            f"{one.samples:,}",
            f"{one.share:.0%}",
            missing or NOTHING,
        )
        table.add_row(*map(Text, cells))
    return table


def _failures(found: Failures) -> Table:
    title = "what people say failed"
    table = plain_table(
        "keyword", "comments", "samples", "spellings", left=["spellings"], title=title
    )
    for one in found.keywords[:MOST_ROWS]:
        cells = (
            plain(one.keyword, LONGEST),
            f"{one.comments:,}",
            f"{one.samples:,}",
            _others(one.spellings),
        )
        table.add_row(*map(Text, cells))
    return table


def _others(spellings: Mapping[str, int]) -> str:
    _, *others = spellings
    return ", ".join(plain(one, LONGEST) for one in others) or NOTHING


def _shown(estimate: Estimate | None, digits: int) -> str:
    if estimate is None or estimate.value is None:
        return NOTHING
    value = f"{estimate.value:,.{digits}f}"
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} [{estimate.low:,.{digits}f}, {estimate.high:,.{digits}f}]"
