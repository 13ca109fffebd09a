"""Draw the benchmark's splits, and say which samples are left out of the release (section 4)."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from datasets import List, Value

from echo_hf.config.loading import Config
from echo_hf.curate.decisions import DECISIONS_FILE, ReviewDecisions, read_decisions
from echo_hf.curate.edits import apply_decisions
from echo_hf.curate.personal_data import MIN_NAME, find_personal_data, read_run_names
from echo_hf.curate.privacy import product_accounts
from echo_hf.errors import ReviewError
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.result import StageStats
from echo_hf.pipeline.stage import (
    RowIssue,
    Stage,
    issue_rows,
    join_digests,
    keep_rows,
    parent_lists,
    register,
)
from echo_hf.reasons import RejectReason
from echo_hf.samples.sample import Doubt, Review
from echo_hf.tables import SAMPLES, Column, Table, take_rows


class SampleReject(RejectReason):
    """Why a sample is not in the release."""

    TRASH = "trash", "no clear task, off topic, or made with another model"
    FLAGGED = "flagged", "marked by the safety stage; the detail names the hazards"
    REMOVED_IN_REVIEW = "removed_in_review", "a reviewer removed it; no other one takes its place"
    NOT_CLEANED = "not_cleaned", "an image's metadata stay; it waits until a reviewer keeps it"
    DUPLICATE_OF = "duplicate_of", "equal prompt and inputs; the detail names the sample that stays"


BENCHMARKS = ("image_to_image", "text_to_image")
ANALYSIS = "analysis"
RELEASE_CONFIGS = (*BENCHMARKS, ANALYSIS)
SCREENSHOT_WHOLE = Doubt.SCREENSHOT_WHOLE
PERSONAL_DATA = {Review.PERSONAL_DATA.value}
QUALITY_RANK = {"Benchmark": 0, "Analysis": 1}
# Columns read of every sample, and of the samples with a decision.
COLUMNS = ("id", "quality", "prompt_modified", "sample_digest", "has_nsfw", "review", "doubts")
ALL_COLUMNS = (*COLUMNS, "safety", "input_images", "output_images", "screenshot", "cleaned_images")

SPLIT_SAMPLES = Table(
    "samples",
    "one sample with the parts of the release it belongs to",
    ("id",),
    {
        **SAMPLES.columns,
        "splits": Column(
            List(Value("string")), "image_to_image or text_to_image, and analysis, in this order"
        ),
    },
)
Exclusion = tuple[RejectReason, str | None]


@register
@dataclass(frozen=True)
class Splits(Stage):
    """Assigns each usable sample to its splits.

    Samples of quality Benchmark are candidates of `image_to_image` when they have input images,
    else of `text_to_image`; not while something is doubtful of them. They are taken in the
    order of sha256("seed:id") until `cap` is reached. `analysis` holds every sample that is
    neither Trash nor flagged. Of samples with equal prompt and inputs one stays: one whose prompt
    stands in its own posts; then the one of the best quality, then one without doubts, then the
    first in the same order. While its images stand in a screenshot a sample equals no other.

    What reviewers changed is changed before all this. What a reviewer removed takes its place in
    that order and is then left out: no other sample takes that place. So does, until a reviewer has
    kept it, what has an image that cannot be cleaned of metadata.

    Attributes:
        seed: Of the order.
        cap: Most samples of a benchmark split.
        doubts: `analysis`: what is doubtful is in no benchmark split; `keep`: it is, except while
            its images stand in a screenshot.
        decisions: What reviewers decided.
        products: Names that are no person's, for the prompts that reviewers wrote.
        authors: What the authors of posts are called, for these prompts.
    """

    name: ClassVar[str] = "splits"
    version: ClassVar[int] = 6
    after: ClassVar[str | None] = "privacy"
    inputs: ClassVar[Table] = SAMPLES
    outputs: ClassVar[Table] = SPLIT_SAMPLES
    whole: ClassVar[bool] = True

    seed: int = 0
    cap: int = 1000
    doubts: str = "analysis"
    decisions: ReviewDecisions = field(default_factory=ReviewDecisions, metadata={"digest": False})
    products: frozenset[str] = field(default=frozenset(), metadata={"digest": False})
    authors: frozenset[str] = field(default=frozenset(), repr=False, metadata={"digest": False})

    def __call__(self, table: pa.Table) -> pa.Table:
        """Assign all samples at once; their order does not matter."""
        order_keys = [f"{self.seed}:{sample_id}".encode() for sample_id in table["id"].to_pylist()]
        hashes = [hashlib.sha256(order_key).digest() for order_key in order_keys]
        order = np.array(sorted(range(len(hashes)), key=hashes.__getitem__), np.int64)
        reviewed = apply_decisions(table, self.decisions)
        decided_rows = {row["id"]: row for row in self._read_decided(table)}
        edited, table = reviewed.edited, reviewed.table
        rows = list(_read_rows(table, order))
        original_rows = [decided_rows.get(row["id"], row) for row in rows]
        is_decided = [row["id"] in decided_rows for row in rows]
        for number in np.flatnonzero(is_decided):
            doubts = rows[number]["doubts"]
            rows[number]["doubts"] = self.decisions.open_doubts(original_rows[number], doubts)
        excluded = dict(_exclude(rows, _read_hazards(table)))
        places = self._assign_splits(rows, [row for row in range(len(rows)) if row not in excluded])
        removed = [row for row in places if self.decisions.removes(original_rows[row])]
        open_reasons = {
            row: self._find_open_reasons(original_rows[row], edited.get(rows[row]["id"]))
            if is_decided[row]
            else rows[row]["review"]
            for row in places
        }
        unclean = [row for row in places if Review.IMAGE_METADATA in open_reasons[row]]
        excluded |= dict.fromkeys(unclean, (SampleReject.NOT_CLEANED, None))
        excluded |= dict.fromkeys(removed, (SampleReject.REMOVED_IN_REVIEW, None))
        input_order = np.argsort(order).tolist()
        kept = [row for row in input_order if row not in excluded]
        released = {
            "review": [open_reasons[row] for row in kept],
            "doubts": [rows[row]["doubts"] for row in kept],
            "splits": [places[row] for row in kept],
        }
        samples = take_rows(table, order[kept])
        columns = [
            pa.array(released[column.name], column.type)
            if column.name in released
            else samples[column.name]
            for column in SPLIT_SAMPLES.schema
        ]
        samples = pa.table(columns, schema=SPLIT_SAMPLES.schema)
        left_out = (row for row in input_order if row in excluded)
        issues = [RowIssue([rows[row]["id"]], *excluded[row]) for row in left_out]
        for row in kept:
            if rows[row]["quality"] == "Benchmark" and self._has_doubts(rows[row]):
                doubts = map(Doubt, rows[row]["doubts"])
                issues += [RowIssue([rows[row]["id"]], doubt) for doubt in doubts]
        issues += reviewed.issues
        parents = parent_lists(samples["id"].combine_chunks())
        return pa.concat_tables([keep_rows(samples, parents), issue_rows(SPLIT_SAMPLES, issues)])

    @classmethod
    def from_config(cls, config: Config, images: ImageStore) -> Self:
        """Return the stage with the config's seed and cap."""
        del images
        # What is sealed is drawn from these splits, where a release is written.
        options = config.splits.model_dump(exclude={"sealed"})
        return cls(**options, products=product_accounts(config.target))

    def in_run(self, root: Path) -> Self:
        """Return the stage with the decisions that a run's folder holds.

        Raises:
            ReviewError: A decision is damaged, or cut short: it might be one that removes a sample.
        """
        decisions = read_decisions(root / DECISIONS_FILE)
        if decisions.cut:
            raise ReviewError(
                f"{root / DECISIONS_FILE}:{decisions.cut[0]} was cut short: see with `echo-hf "
                "review` what is decided, decide again or delete that line"
            )
        if not any(decision.edits for decision in decisions.by_id.values()):
            return dataclasses.replace(self, decisions=decisions)
        authors = read_run_names(root, MIN_NAME)
        return dataclasses.replace(self, decisions=decisions, authors=authors)

    def describe(self) -> dict[str, Any]:
        """Return what decides the result, with the decision about each sample."""
        decisions = self.decisions.describe()
        description: dict[str, Any] = {"decisions": decisions} if decisions else {}
        if any(decision.edits for decision in self.decisions.by_id.values()):
            description["products"] = sorted(self.products)
            description["authors"] = join_digests(*sorted(self.authors))
        return super().describe() | description

    @classmethod
    def headline(cls, stats: Mapping[str, StageStats]) -> str | None:
        """Say how many samples each split of the release has (section 4: 710 and 848)."""
        totals = stats["splits"]
        counts = [f"{totals.tally.get(name, 0):,} {name}" for name in RELEASE_CONFIGS]
        doubts = sum(totals.noted.get(doubt, 0) for doubt in Doubt)
        waiting = {"doubts": doubts, "personal data": totals.tally.get("to_review", 0)}
        to_review = "".join(
            f"; {topic} to review: {count:,}" for topic, count in waiting.items() if count
        )
        return f"{', '.join(counts)} samples released{to_review}"

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        """Count the samples of each split, and those with open personal data."""
        counts = pc.value_counts(pc.list_flatten(kept["splits"])).to_pylist()
        parts = {count["values"]: count["counts"] for count in counts}
        waiting = pc.sum(pc.greater(pc.list_value_length(kept["review"]), 0)).as_py()
        return parts | ({"to_review": waiting} if waiting else {})

    def _read_decided(self, table: pa.Table) -> list[dict[str, Any]]:
        ids = pa.array(list(self.decisions.by_id), pa.string())
        columns = [name for name in ALL_COLUMNS if name in table.column_names]
        return list(table.select(columns).filter(pc.is_in(table["id"], ids)).to_pylist())

    def _find_open_reasons(
        self, row: dict[str, Any], edited: Mapping[str, Any] | None
    ) -> list[str]:
        """Return why a sample is still to be reviewed, also because of a reviewer's new prompt."""
        spans = edited and find_personal_data(
            edited["prompt"], self.products, self.authors.__contains__
        )
        reasons = self.decisions.open_reasons(row, PERSONAL_DATA if spans == [] else ())
        last = self.decisions.by_id.get(row["id"])
        wrote = last and last.decision != "keep" and last.edits and last.edits.prompt
        if wrote and spans and not PERSONAL_DATA & {*reasons}:
            reasons += PERSONAL_DATA
        return reasons

    def _assign_splits(
        self, rows: list[dict[str, Any]], order: list[int]
    ) -> dict[int, tuple[str, ...]]:
        places_left = dict.fromkeys(BENCHMARKS, self.cap)
        places: dict[int, tuple[str, ...]] = {}
        for row in order:
            split = BENCHMARKS[0] if rows[row]["has_inputs"] else BENCHMARKS[1]
            is_candidate = rows[row]["quality"] == "Benchmark" and not self._has_doubts(rows[row])
            is_drawn = is_candidate and places_left[split] > 0
            places_left[split] -= is_drawn
            places[row] = (split, ANALYSIS) if is_drawn else (ANALYSIS,)
        return places

    def _has_doubts(self, sample: dict[str, Any]) -> bool:
        if self.doubts == "keep":
            return SCREENSHOT_WHOLE in sample["doubts"]
        return bool(sample["doubts"])


def _read_rows(table: pa.Table, order: npt.NDArray[np.int64]) -> Iterator[dict[str, Any]]:
    """Yield the columns of each sample that are read here, in the order of the draw."""
    names = [name for name in COLUMNS if name in table.column_names]
    narrow_table = take_rows(table.select(names), order)
    columns = {name: _list_values(narrow_table[name]) for name in narrow_table.column_names}
    inputs = pc.greater(pc.list_value_length(table["input_images"]), 0)
    columns["has_inputs"] = inputs.take(pa.array(order)).to_pylist()
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def _list_values(column: pa.ChunkedArray) -> list[Any]:
    if not pa.types.is_list(column.type):
        return list(column.to_pylist())
    # Most lists are empty: sharing one tuple avoids a million allocations.
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
    values, ends = pc.list_flatten(column).to_pylist(), np.cumsum(lengths)
    lists = [()] * len(lengths)
    for row in np.flatnonzero(lengths):
        lists[row] = tuple(values[ends[row] - lengths[row] : ends[row]])
    return lists


def _read_hazards(table: pa.Table) -> dict[str, list[str] | None]:
    flagged = table.filter(table["has_nsfw"])
    categories = pc.struct_field(flagged["safety"], "categories")
    return dict(zip(flagged["id"].to_pylist(), categories.to_pylist(), strict=True))


def _exclude(
    rows: list[dict[str, Any]], hazards: Mapping[str, list[str] | None]
) -> Iterator[tuple[int, Exclusion]]:
    first_by_digest: dict[str, str] = {}

    def rank_row(row: int) -> tuple[bool, bool, int, bool]:
        sample = rows[row]
        unclean = Review.IMAGE_METADATA in (sample["review"] or ())  # may be left out
        rank = QUALITY_RANK.get(sample["quality"], len(QUALITY_RANK))
        return unclean, sample["prompt_modified"], rank, bool(sample["doubts"])

    for row in sorted(range(len(rows)), key=rank_row):
        sample = rows[row]
        digest = sample["sample_digest"]
        if sample["quality"] not in QUALITY_RANK:
            yield row, (SampleReject.TRASH, None)
        elif sample["has_nsfw"]:
            categories = hazards[sample["id"]] or ()
            yield row, (SampleReject.FLAGGED, ", ".join(categories) or None)
        elif SCREENSHOT_WHOLE in sample["doubts"]:
            continue  # its inputs are not known yet, so it is no duplicate
        elif first_by_digest.setdefault(digest, sample["id"]) != sample["id"]:
            yield row, (SampleReject.DUPLICATE_OF, first_by_digest[digest])
