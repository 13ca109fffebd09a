"""The tables of a submission and of its place, for a request and for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from echo_hf._infra.text import escape_markdown, format_interval, format_rounded, format_table
from echo_hf.hub.run_tables import ResultRow
from echo_hf.hub.submissions import Placement
from echo_hf.images.metadata import MetadataKind
from echo_hf.submissions.checks import READ_BY_OCR, Remark
from echo_hf.systems.benchmark import NoTask

MEANINGS = {
    "outputs": "of samples that one was asked for",
    READ_BY_OCR: "words in them were looked for",
    **{f"metadata_{kind}": "removed from so many files" for kind in MetadataKind},
    **{str(reason): reason.meaning for reason in (*Remark, *NoTask)},
}


class Cells(NamedTuple):
    """A table as text that is not escaped yet; its first columns are words, others numbers."""

    heads: tuple[str, ...]
    words: int
    rows: Sequence[tuple[str, ...]]

    def to_markdown(self) -> str:
        rows = (map(escape_markdown, row) for row in self.rows)
        return format_table(self.heads, rows, len(self.heads) - self.words)


def list_counts(counts: Mapping[str, int]) -> Cells:
    """List counts of outputs, and of samples without one, by reason."""
    rows = [(name, MEANINGS.get(name, ""), f"{count:,}") for name, count in counts.items()]
    return Cells(("about", "meaning", "count"), 2, rows)


def list_figures(figures: tuple[ResultRow, ...]) -> Cells:
    """List what outputs measure without a judge."""
    rows = list[tuple[str, ...]]()
    for row in figures:
        ends = None if row.low is None or row.high is None else (row.low, row.high)
        cells = format_rounded(row.value), format_interval(ends), f"{row.n or 0:,}"
        rows.append((row.split, row.metric, *cells))
    return Cells(("split", "metric", "value", "95 %", "n"), 2, rows)


def list_places(placement: Placement) -> Cells:
    """List the place of a submission on each split."""
    rows = [
        (
            name,
            format_rounded(split.strength),
            format_interval(split.ends),
            "-" if split.rank is None else f"{split.rank} of {split.systems}",
            f"{split.rated:,} of {split.asked:,}",
        )
        for name, split in placement.splits.items()
    ]
    return Cells(("split", "strength, log odds", "95 %", "place", "samples rated"), 1, rows)
