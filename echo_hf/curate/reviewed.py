"""Put what reviewers changed into the table of samples, before a benchmark is drawn from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from echo_hf.curate.changes import Changes
from echo_hf.curate.decisions import Decisions
from echo_hf.curate.edited_sample import Finding, edited_sample, with_review
from echo_hf.curate.personal_data import personal_data
from echo_hf.reasons import Notice, Review, Status
from echo_hf.stage import Remark

Row = Mapping[str, Any]
PICTURES = ("input_images", "output_images")


@dataclass(frozen=True)
class Reviewed:
    """Samples after the changes of reviewers.

    Attributes:
        table: The rows, in the order they came.
        edited: The changed rows by id.
        findings: What was noticed about each of them.
        products: Names that are no person's.
        authors: What authors are called, as `names_of` gives it.
    """

    table: pa.Table
    edited: Mapping[str, Row] = field(default_factory=dict)
    findings: Mapping[str, Sequence[Finding]] = field(default_factory=dict)
    products: Collection[str] = ()
    authors: frozenset[str] = frozenset()

    def closed(self, row: Row) -> frozenset[str]:
        """Reasons for review that the changes of a sample have done away with.

        Args:
            row: The row as it came.

        Returns:
            `personal_data` where a person changed the prompt and the new one holds none.
        """
        made = self.edited.get(row["id"])
        if made is None or personal_data(made["prompt"], self.products, self.authors.__contains__):
            return frozenset()
        return frozenset({Review.PERSONAL_DATA.value})

    def remarks(self) -> Iterator[Remark]:
        """What was changed, and what of it could not be, one remark each."""
        for name, findings in self.findings.items():
            for notice, detail in findings:
                yield Remark(Status.NOTED, [name], notice, detail)


def reviewed_rows(
    table: pa.Table,
    decisions: Decisions,
    products: Collection[str] = (),
    authors: frozenset[str] = frozenset(),
) -> Reviewed:
    """Applies every change that is about a row as it is now.

    No picture becomes input or output of two samples by a change: one that another sample has, or
    that an earlier change gave to another, keeps its place.

    Args:
        table: Rows of samples, all of them.
        decisions: What reviewers decided.
        products: Names that are no person's.
        authors: What authors are called, as `names_of` gives it.

    Returns:
        The rows, with what was noticed.
    """
    if not any(one.changed for one in decisions.by_id.values()):
        return Reviewed(table)
    named = ("id", "sample_digest", "cleaned_images")
    names = table.select([one for one in named if one in table.column_names]).to_pylist()
    found = {row: decisions.changes(one) for row, one in enumerate(names)}
    about = {row: one for row, one in found.items() if one}
    changes = {row: one.changed for row, one in about.items() if one.changed}
    owners = _owners(table)
    edited: dict[int, dict[str, Any]] = {}
    findings: dict[str, list[Finding]] = {}
    for row in sorted(changes, key=lambda row: str(names[row]["id"])):
        before = table.slice(row, 1).to_pylist()[0]
        said = {"reviewer": about[row].reviewer, "at": about[row].at}
        edited[row], noticed = _edited(before, changes[row], owners, said)
        findings[before["id"]] = noticed
    by_id = {row["id"]: row for row in edited.values()}
    return Reviewed(_replaced(table, edited), by_id, findings, products, authors)


def _edited(
    before: Row, changes: Changes, owners: Counter[str], said: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Finding]]:
    own = _counted(before)
    taken = {one for one, count in owners.items() if count > (one in own)}
    made, findings = edited_sample(before, changes, taken)
    owners.subtract(own)
    owners.update(_counted(made))
    told = {"digest": changes.fingerprint, "changed": list(changes.named), **said}
    made["provenance"] = with_review(made["provenance"], told)
    what = ", ".join(changes.named)
    return made, [(Notice.EDITED_IN_REVIEW, what), *findings]


def _counted(row: Row) -> set[str]:
    # Of Trash every picture of its posts is listed, whosoever it is.
    names = () if row["quality"] == "Trash" else PICTURES
    return {one for name in names for one in row[name] or ()}


def _owners(table: pa.Table) -> Counter[str]:
    """How many samples have each picture as input or output."""
    rows = table.select([*PICTURES, "quality"]).to_pylist()
    return Counter(one for row in rows for one in _counted(row))


def _replaced(table: pa.Table, rows: Mapping[int, Row]) -> pa.Table:
    if not rows:
        return table
    pieces, done = [], 0
    for row in sorted(rows):
        new = pa.Table.from_pylist([dict(rows[row])], schema=table.schema)
        pieces += [table.slice(done, row - done), new]
        done = row + 1
    return pa.concat_tables([*pieces, table.slice(done)]).combine_chunks()
