"""Tell input images from outputs, complete templates, recognise screenshots (section 3.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from echo_hf._infra.text import MARK
from echo_hf.engines.base import ImageRef, Text, abstains
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.result import StageStats
from echo_hf.prompts import as_data
from echo_hf.reasons import Notice
from echo_hf.samples.blanks import placeholders
from echo_hf.samples.sample import Finding
from echo_hf.samples.sheets import without_sheets
from echo_hf.samples.stage import Outcome, Question, Row, SampleStage, sums
from echo_hf.samples.tasks import (
    Assigned,
    RequestPart,
    RolesAnswer,
    at_most_analysis,
    images_of,
    lost_images,
    parts_of,
    quality_with,
    rows_of,
    without_task,
)

NOT_ASKED = "Trash"


@dataclass(frozen=True)
class Roles(SampleStage):
    """Says what the images of a sample are: what went in, what came out, what is a screenshot.

    A template becomes one sample for each completion that an image shows; a prompt that people
    tried on images of their own, one for each. A template that stays one is for analysis. Trash
    is not looked into, and a sample without images needs no answer. An output whose pixels look
    like a sheet of several images or like a window goes to `screenshots`; where no model said what
    it is, the sample has a doubt. (Section 3.3, figure D.4; one
    call a sample, several where it has very many images. A sample stays in quarantine until all
    are answered.)

    Attributes:
        target: The model that people talk about.
        images: Where the bytes of the images are.
        most_pictures: Most images of one request.
    """

    name: ClassVar[str] = "roles"
    version: ClassVar[int] = 7
    answer: ClassVar[type[BaseModel]] = RolesAnswer
    keeps_failed: ClassVar[bool] = False

    images: ImageStore = field(metadata={"digest": False})
    most_pictures: int = 16

    @classmethod
    def headline(cls, stats: Mapping[str, StageStats]) -> str | None:
        """How many samples have inputs, and how many come from templates and screenshots."""
        one, tally = stats["roles"], Counter(stats["roles"].tally)
        return (
            f"{tally['with_inputs']:,} of {one.kept:,} samples have input images; "
            f"{tally['filled']:,} completions of templates, {tally['screenshots']:,} screenshots"
        )

    def questions(self, row: Row) -> Iterator[Question]:
        """The sample with its images, or each part of one with very many."""
        for part in self._parts(row):
            shown = part.as_data(row, placeholders(row["prompt"]))
            parts, pictures = list[Text | ImageRef]([Text(as_data("sample", shown))]), []
            for image, picture in zip(part.images, shown["pictures"], strict=True):
                file = self.images.path(image.sha256)
                parts += [Text(f"Picture {picture['number']}:"), ImageRef(image.sha256, file)]
                pictures.append({**picture, "file": file})
            urls = [row["context"][place]["url"] for place in part.posts]
            yield parts, {**shown, "pictures": pictures}, urls

    def outcome(
        self, row: Row, answers: Sequence[BaseModel | Failure], made_by: Mapping[str, Any]
    ) -> Outcome:
        """One row a task."""
        findings: list[Finding] = []
        if answers:
            digests = [one.sha256 for one in images_of(row)]
            assigned = Assigned(row["prompt"], digests, abstains(made_by["engine"]))
            for part, answer in zip(self._parts(row), answers, strict=True):
                if isinstance(answer, RolesAnswer):
                    assigned.add(answer, part)
            tasks = assigned.finish()
            findings += assigned.findings
            if tasks:
                rows = rows_of(row, tasks, made_by, assigned.may_show_minor)
                made = [without_sheets(one, self.images, made_by, findings) for one in rows]
            else:
                findings.append((Notice.NO_TASK, None))
                made = [without_task(row, made_by)]
        else:
            made = [{**row, "quality": quality_with(row["prompt"], row["quality"])}]
        lost = [] if row["quality"] == NOT_ASKED else list(lost_images(row))
        findings += [(Notice.IMAGE_NOT_THERE, name) for name in lost]
        left: list[Finding] = []  # the blanks that keep rows out of the benchmark
        for one in made:
            one["quality"] = at_most_analysis(one["quality"]) if lost else one["quality"]
            if MARK.search(one["prompt"]) and not MARK.search(row["prompt"]):
                findings.append((Notice.SHORTENED_PROMPT, None))
            if one["screenshot"]:
                findings.append((Notice.NOT_PARSED, one["screenshot"]))
            if one["quality"] != NOT_ASKED:
                notice = Notice.BLANK_LEFT if one["prompt_fill_blank"] else Notice.TEMPLATE_LEFT
                left += [(notice, blank) for blank in placeholders(one["prompt"])]
        return made, [*findings, *dict.fromkeys(left)]

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        """How many samples have input images, completed a template, or show a screenshot."""
        return sums(
            with_inputs=pc.greater(pc.list_value_length(kept["input_images"]), 0),
            filled=kept["prompt_fill_blank"],
            screenshots=pc.is_valid(kept["screenshot"]),
        )

    def _parts(self, sample: Row) -> list[RequestPart]:
        return [] if sample["quality"] == NOT_ASKED else parts_of(sample, self.most_pictures)
