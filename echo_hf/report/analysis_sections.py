"""The sections about what people ask and say, beside other prompt sets."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from echo_hf.report.analysis.result import (
    Activity,
    AnalysisPart,
    EmbeddingMap,
    Estimate,
    Example,
    FailureKeyword,
    Failures,
    FunnelStep,
    Interaction,
    SetDiversity,
    SetDuplicates,
    SetLanguages,
    SetLengths,
    SetPerplexity,
    TaskRate,
    Tasks,
    WordCloud,
)
from echo_hf.report.charts import Scale, axis, bar, days, plot, point, round_scale, scatter
from echo_hf.report.markup import (
    Child,
    Markup,
    count,
    element,
    interval,
    joined,
    link,
    listed,
    number,
    plural,
    share,
)
from echo_hf.report.parts import (
    Column,
    Row,
    breakable,
    collapsible,
    heat_cell,
    name_of,
    note,
    section,
    table,
    titled,
)
from echo_hf.report.run_data import RunData

MOST_ROWS = 20


def estimate_table(caption: str, head: str, rows: Sequence[tuple[str, Estimate, Child]]) -> Markup:
    known = [one.value for _, one, _ in rows if one.value is not None]
    scale = round_scale([*known, *(one.high for _, one, _ in rows if one.high is not None)])
    columns = (
        Column("Prompts", "name"),
        Column(axis(scale), "plot", "drawn"),
        Column("Value"),
        Column("95 %", optional=True),
        Column(head),
    )
    return table(caption, columns, [[_estimate_row(scale, *row) for row in rows]])


def _estimate_row(scale: Scale, name: str, one: Estimate, beside: Child) -> Row:
    ends = None if one.low is None or one.high is None else (one.low, one.high)
    digits = 0 if scale.high >= 100 else 1
    return (
        name_of(name),
        plot(point(scale, one.value, ends), scale=scale),
        element("b", number(one.value, digits)),
        interval(ends, digits),
        beside,
    )


def _ratio(one: Estimate | None) -> str:
    return "–" if one is None or one.value is None else f"{number(one.value, 2)}x"


def diversity(sets: tuple[SetDiversity, ...]) -> Markup:
    """Different first bigrams of each prompt set, at one size."""
    at = sets[0].at if sets else 0
    caption = f"Different first bigrams in {count(at)} prompts drawn at random"
    rows = [(one.name, one.expected, _ratio(one.ratio)) for one in sets]
    remark = "Ratio: the benchmark's number through that of the set, at the size of the smaller."
    return joined(estimate_table(caption, "Ratio", rows), note(remark))


def perplexity(sets: tuple[SetPerplexity, ...]) -> Markup:
    rows = [(one.name, one.token_level, _ratio(one.ratio)) for one in sets]
    caption = "Perplexity, lower is more like other text"
    remark = "Ratio: the perplexity of the set through that of the benchmark."
    return joined(estimate_table(caption, "Ratio", rows), note(remark))


def _plain(caption: str, heads: Sequence[str], rows: Iterable[Row]) -> Markup:
    columns = [Column(head, "number" if at else "name") for at, head in enumerate(heads)]
    return table(caption, columns, [rows])


def lengths(sets: tuple[SetLengths, ...]) -> Markup:
    rows = [
        [
            name_of(one.name),
            *(
                f"{number(q.median, 0)} ({number(q.low, 0)} – {number(q.high, 0)})" if q else "–"
                for q in (one.words, one.characters)
            ),
        ]
        for one in sets
    ]
    return _plain("Median and quartiles of prompts", ("Prompts", "Words", "Characters"), rows)


def near_duplicates(sets: tuple[SetDuplicates, ...]) -> Markup:
    rows = [
        [name_of(one.name), count(one.in_clusters), share(one.share), count(one.clusters)]
        for one in sets
    ]
    heads = ("Prompts", "Nearly the same as another", "Share", "Groups")
    return _plain("Prompts that are nearly the same", heads, rows)


def languages(sets: tuple[SetLanguages, ...]) -> Markup:
    rows = [[name_of(one.name), listed(one.prompts)] for one in sets]
    columns = (Column("Prompts", "name"), Column("Languages", "text"))
    return table("Languages of prompts", columns, [rows])


def embedding_map(points: EmbeddingMap) -> Markup:
    groups: dict[str, list[tuple[float, float]]] = {}
    for one in points.points:
        groups.setdefault(one.prompt_set, []).append((one.x, one.y))
    ordered = dict(reversed(groups.items()))  # the benchmark on top
    keys = [
        element("li", element("i", class_=f"key p{at % 8}"), name_of(name), class_="small")
        for at, name in enumerate(ordered)
    ]
    label = "prompts of each set in the plane of the two main directions of their embeddings"
    rows = [
        [name_of(one.prompt), number(one.distance, 2), name_of(one.nearest_prompt)]
        for one in points.most_novel[:MOST_ROWS]
    ]
    columns = (Column("Prompt", "text"), Column("Distance"), Column("Nearest", "text"))
    novel = table("Prompts that are farthest from every reference", columns, [rows])
    return joined(
        element("figure", scatter(ordered, label), element("ul", keys, class_="keys")),
        collapsible("The most novel prompts", novel) if rows else None,
    )


Found = TypeVar("Found")
ABOUT = "What people ask for and what they say of it, beside the prompts of other benchmarks."


def analysis(data: RunData) -> Markup | None:
    found = data.analysis
    if found is None:
        return None
    return section(
        "analysis",
        "Prompts and feedback",
        _cards(
            _shown("Diversity of prompts", found.diversity, diversity),
            _shown("Perplexity of prompts", found.perplexity, perplexity),
            _shown("Lengths", found.lengths, lengths),
            _shown("Near-duplicates", found.near_duplicates, near_duplicates),
        ),
        _shown("Languages", found.languages, languages),
        _shown("Prompts beside those of other benchmarks", found.embedding_map, embedding_map),
        _shown("Tasks that other benchmarks lack", found.tasks, _tasks),
        _shown("Failures that people speak of", found.failures, _failures),
        _shown("The same in words", found.word_cloud, _cloud),
        _shown("Ways round failures, and probes", found.interaction, _interaction),
        _shown("Activity", found.activity, _activity),
        _shown("From posts to samples", found.funnel, _funnel),
        lead=ABOUT,
    )


def _cards(*cards: Markup) -> Markup:
    listed = [element("div", card, class_="card") for card in cards]
    return element("div", listed, class_="cards")


def _shown(title: str, part: AnalysisPart[Found], draw: Callable[[Found], Markup]) -> Markup:
    heading = element("h3", title)
    if part.found is None:
        return joined(heading, note("Not analyzed: ", part.detail or str(part.reason)))
    return joined(heading, draw(part.found))


def _tasks(found: Tasks) -> Markup:
    scale = round_scale(one.share for one in found.counts)
    columns = (
        Column("Task", "name"),
        Column(axis(scale), "plot", "share of samples, drawn"),
        Column("Samples"),
        Column("Absent from", "text"),
    )
    rows = [
        [
            titled(one.task),
            plot(bar(scale, one.share), scale=scale),
            f"{count(one.samples)} ({share(one.share)})",
            ", ".join(one.absent_from) or "–",
        ]
        for one in found.counts
    ]
    splits = dict.fromkeys(one.split for one in found.rates)
    rates = [element("div", _rates(split, found.rates)) for split in splits]
    untold = found.no_references and note(f"No task of other benchmarks: {found.no_references}.")
    return joined(
        table("Samples by task", columns, [rows]),
        untold,
        element("div", rates, class_="columns"),
    )


def _rates(split: str, every: Iterable[TaskRate]) -> Markup:
    found = [one for one in every if one.split == split]
    systems = sorted({system for one in found for system in one.rates})
    columns = [Column("Task", "name"), *(Column(breakable(one), "heat") for one in systems)]
    rows = [[_task(one), *(_rate(one, system) for system in systems)] for one in found]
    return table(f"{titled(split)}: win rate by task", columns, [rows], "heatmap")


def _task(one: TaskRate) -> str:
    return f"{titled(one.task)} ({count(one.samples)}{', few' if one.few else ''})"


def _rate(one: TaskRate, system: str) -> Markup:
    rate = one.rates.get(system)
    value = rate.value if rate else None
    title = f"{system}, {titled(one.task)}: {number(value)}"
    return heat_cell(value, value, number(value, 2), title)


def _failures(found: Failures) -> Markup:
    shown = found.keywords[:MOST_ROWS]
    scale = round_scale((one.comments for one in shown), whole=True)
    columns = (
        Column("What failed", "name"),
        Column(axis(scale), "plot", "comments, drawn"),
        Column("Comments"),
        Column("Samples", optional=True),
        Column("Months", "text", optional=True),
    )
    rows = [
        [
            name_of(one.keyword),
            plot(bar(scale, one.comments), scale=scale),
            count(one.comments),
            count(one.samples),
            ", ".join(f"{month} {number}" for month, number in sorted(one.by_month.items())),
        ]
        for one in shown
    ]
    left = len(found.keywords) - len(shown)
    more = f"{plural(left, 'keyword')} more. " if left else ""
    return joined(
        table("Comments by what failed", columns, [rows]),
        note(f"{more}Verdicts: {listed(found.verdicts)}."),
        collapsible("In people's words", [_examples(one) for one in shown if one.examples]),
    )


def _examples(one: FailureKeyword) -> Markup:
    return joined(element("h4", name_of(one.keyword)), [_quoted(each) for each in one.examples])


def _quoted(example: Example) -> Markup:
    source = joined(
        link(example.post_url, "post"), f", {example.time[:10]}" if example.time else ""
    )
    small = element("small", source)
    return element("blockquote", example.text or "–", small, class_="said", dir="auto")


def _cloud(found: WordCloud) -> Markup:
    # As an image it can run nothing, whatever the file holds.
    data = base64.b64encode(found.svg.encode("utf-8", "replace")).decode()
    source = f"data:image/svg+xml;base64,{data}"
    label = f"word cloud of {plural(found.words, 'keyword')}, listed in the table above"
    return element("img", src=source, alt=label, class_="cloud", loading="lazy")


def _interaction(found: Interaction) -> Markup:
    ways = [
        [name_of(one.prompt or "–"), ", ".join(one.failed), _quoted(one.comment)]
        for one in found.workarounds[:MOST_ROWS]
    ]
    probes = [
        [name_of(one.prompt or "–"), link(one.post.post_url, "post"), count(one.comments)]
        for one in found.probes[:MOST_ROWS]
    ]
    texts = (Column("Prompt", "text"), Column("Failed before", "text"), Column("Then", "text"))
    asked = (Column("Prompt", "text"), Column("Post", "text"), Column("Comments"))
    return joined(
        table(f"Ways round a failure: {count(len(found.workarounds))}", texts, [ways]),
        table(f"Probes of the model itself: {count(len(found.probes))}", asked, [probes]),
    )


def _activity(found: Activity) -> Markup:
    undated = f" {plural(found.undated, 'post')} without a time." if found.undated else ""
    if not found.days:
        return note(f"No post has a time.{undated}")
    first, last = found.days[0], found.days[-1]
    label = f"posts a day from {first.date} to {last.date}"
    said = f"Search terms: {listed(found.keywords)}.{undated}"
    return joined(days([one.posts for one in found.days], first.date, last.date, label), note(said))


def _funnel(found: tuple[FunnelStep, ...]) -> Markup:
    scale = round_scale((max(one.rows_in, one.kept) for one in found), whole=True)
    columns = (
        Column("Stage", "name"),
        Column(axis(scale), "plot", "rows that go on, drawn"),
        Column("Read"),
        Column("Kept"),
        Column("Lost", "text", optional=True),
    )
    rows = [
        [
            one.stage,
            plot(bar(scale, one.rows_in, "ghost"), bar(scale, one.kept), scale=scale),
            f"{count(one.rows_in)} {one.reads}",
            f"{count(one.kept)} {one.makes}",
            listed(one.lost) or "–",
        ]
        for one in found
    ]
    return table("What each stage kept", columns, [rows])
