"""The prompts of a benchmark beside those of other ones: a table or a plot for each question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from echo_hf.analysis.figures import Estimate
from echo_hf.analysis.result import (
    EmbeddingMap,
    SetDiversity,
    SetDuplicates,
    SetLanguages,
    SetLengths,
    SetPerplexity,
)
from echo_hf.report.charts.marks import axis, plot, point
from echo_hf.report.charts.scale import Scale, round_scale
from echo_hf.report.charts.scatter import scatter
from echo_hf.report.markup import Child, Markup, element, joined
from echo_hf.report.numbers import count, interval, listed, number, share
from echo_hf.report.parts import folded, name_of, note
from echo_hf.report.tables import Column, Row, table

MOST_ROWS = 20


def estimate_table(caption: str, head: str, rows: Sequence[tuple[str, Estimate, Child]]) -> Markup:
    """Numbers with intervals, one a prompt set.

    Args:
        caption: What is shown.
        head: What stands beside each.
        rows: Name, number, and what stands beside it.

    Returns:
        The table.
    """
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


def diversity(found: tuple[SetDiversity, ...]) -> Markup:
    """Different first bigrams of each prompt set, at one size."""
    at = found[0].at if found else 0
    caption = f"Different first bigrams in {count(at)} prompts drawn at random"
    rows = [(one.name, one.expected, _ratio(one.ratio)) for one in found]
    remark = "Ratio: the benchmark's number through that of the set, at the size of the smaller."
    return joined(estimate_table(caption, "Ratio", rows), note(remark))


def perplexity(found: tuple[SetPerplexity, ...]) -> Markup:
    """How much a language model is surprised by the prompts of each set."""
    rows = [(one.name, one.token_level, _ratio(one.ratio)) for one in found]
    caption = "Perplexity, lower is more like other text"
    remark = "Ratio: the perplexity of the set through that of the benchmark."
    return joined(estimate_table(caption, "Ratio", rows), note(remark))


def _plain(caption: str, heads: Sequence[str], rows: Iterable[Row]) -> Markup:
    columns = [Column(head, "number" if at else "name") for at, head in enumerate(heads)]
    return table(caption, columns, [rows])


def lengths(found: tuple[SetLengths, ...]) -> Markup:
    """Words and characters of the prompts of each set."""
    rows = [
        [
            name_of(one.name),
            *(
                f"{number(q.median, 0)} ({number(q.low, 0)} – {number(q.high, 0)})" if q else "–"
                for q in (one.words, one.characters)
            ),
        ]
        for one in found
    ]
    return _plain("Median and quartiles of prompts", ("Prompts", "Words", "Characters"), rows)


def near_duplicates(found: tuple[SetDuplicates, ...]) -> Markup:
    """How many prompts of each set are nearly the same as another."""
    rows = [
        [name_of(one.name), count(one.in_clusters), share(one.share), count(one.clusters)]
        for one in found
    ]
    heads = ("Prompts", "Nearly the same as another", "Share", "Groups")
    return _plain("Prompts that are nearly the same", heads, rows)


def languages(found: tuple[SetLanguages, ...]) -> Markup:
    """Languages of the prompts of each set."""
    rows = [[name_of(one.name), listed(one.prompts)] for one in found]
    columns = (Column("Prompts", "name"), Column("Languages", "text"))
    return table("Languages of prompts", columns, [rows])


def embedding_map(found: EmbeddingMap) -> Markup:
    """The prompts of all sets in a plane, and those that are farthest from every other set."""
    groups: dict[str, list[tuple[float, float]]] = {}
    for one in found.points:
        groups.setdefault(one.prompt_set, []).append((one.x, one.y))
    ordered = dict(reversed(groups.items()))  # the benchmark on top
    keys = [
        element("li", element("i", class_=f"key p{at % 8}"), name_of(name), class_="small")
        for at, name in enumerate(ordered)
    ]
    label = "prompts of each set in the plane of the two main directions of their embeddings"
    rows = [
        [name_of(one.prompt), number(one.distance, 2), name_of(one.nearest_prompt)]
        for one in found.most_novel[:MOST_ROWS]
    ]
    columns = (Column("Prompt", "text"), Column("Distance"), Column("Nearest", "text"))
    novel = table("Prompts that are farthest from every reference", columns, [rows])
    return joined(
        element("figure", scatter(ordered, label), element("ul", keys, class_="keys")),
        folded("The most novel prompts", novel) if rows else None,
    )
