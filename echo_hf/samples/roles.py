"""Tell input images from outputs, complete templates, recognize screenshots (section 3.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from echo_hf._infra.text import MARK
from echo_hf.engines.base import Failed, ImageRef, Message, Request, Text, abstains
from echo_hf.engines.reference_images import mentions_image
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.result import StageStats
from echo_hf.pipeline.stage import BY_MODEL, BY_RULE, register
from echo_hf.prompts import Prompt, load_prompt, quote_as_data
from echo_hf.samples.blanks import find_placeholders
from echo_hf.samples.extract import TRASH
from echo_hf.samples.sample import Doubt, Finding, SampleNotice, add_provenance
from echo_hf.samples.sheets import move_sheet
from echo_hf.samples.stage import RequestContent, RowResult, SampleStage, sum_columns
from echo_hf.samples.tasks import (
    AbsentImageAnswer,
    AssignedTasks,
    RequestPart,
    RolesAnswer,
    build_analysis_row,
    build_rows,
    decide_quality,
    find_missing_images,
    limit_quality,
    make_part,
    mentions_input,
    own_images,
    split_images,
)
from echo_hf.tables import Row

ABSENT_SCHEMA = AbsentImageAnswer.model_json_schema()
Answer = BaseModel | Failure


@register
@dataclass(frozen=True)
class Roles(SampleStage):
    """Says what the images of a sample are: what went in, what came out, what is a screenshot.

    A template becomes one sample for each completion that an image shows; a prompt that people
    tried on images of their own, one for each. A template that stays one is for analysis. Trash
    is not looked into. An output whose pixels look like a sheet of several images or like a window
    goes to `screenshots`; where no model said what it is, the sample has a doubt. (Section 3.3,
    figure D.4; one call a sample, several where it has very many images. A sample stays in
    quarantine until all are answered.)

    A candidate of the benchmark that has a task without inputs, and whose words mention an image,
    is asked about once more: whether it needs an image that is not there (doubt `lacks_input`).
    Words decide where that call failed, which is quarantined beside the row, or nobody answers it.
    Where an engine without a model takes the one image beside a labelled prompt for its output, the
    sample has a doubt (`roles_assumed`).

    Attributes:
        target: The model that people talk about.
        images: Where the bytes of the images are.
        most_pictures: Most images of one request.
    """

    name: ClassVar[str] = "roles"
    version: ClassVar[int] = 8
    after: ClassVar[str | None] = "extract"
    makes_rows: ClassVar[bool] = True
    decides: ClassVar[Mapping[str, Sequence[str]]] = {
        BY_MODEL: (
            *("post_urls", "prompt", "prompt_fill_blank", "quality", "input_images"),
            *("output_images", "screenshot", "review", "doubts"),
        ),
        BY_RULE: ("id", "prompt_modified"),
    }
    answer: ClassVar[type[BaseModel]] = RolesAnswer
    rounds: ClassVar[int] = 2
    absent_tokens: ClassVar[int] = 64
    sends_images: ClassVar[bool] = True

    images: ImageStore = field(metadata={"digest": False})
    most_pictures: int = 16

    @classmethod
    def headline(cls, stats: Mapping[str, StageStats]) -> str | None:
        """Say how many samples have inputs, and how many come from templates and screenshots."""
        counts, tally = stats["roles"], Counter(stats["roles"].tally)
        return (
            f"{tally['with_inputs']:,} of {counts.kept:,} samples have input images; "
            f"{tally['filled']:,} completions of templates, {tally['screenshots']:,} screenshots"
        )

    @property
    def absent_prompt(self) -> Prompt:
        """The instructions for the question about an image that is not there."""
        return load_prompt(f"{self.name}_absent", self.target)

    def describe(self) -> dict[str, Any]:
        """Return what decides the result, with both prompts and both answers."""
        description = super().describe()
        prompt = f"{description['prompt']}\n\n{self.absent_prompt.text}"
        return {**description, "prompt": prompt, "schema": [description["schema"], ABSENT_SCHEMA]}

    def build_questions(self, row: Row) -> Iterator[RequestContent]:
        """Yield the sample with its images, or each part of one with very many."""
        for part in self._split(row):
            yield self._question(row, part)

    def _question(self, row: Row, part: RequestPart) -> RequestContent:
        fields = part.as_data(row, find_placeholders(row["prompt"]))
        parts, pictures = list[Text | ImageRef]([Text(quote_as_data("sample", fields))]), []
        for image, picture in zip(part.images, fields["pictures"], strict=True):
            file = self.images.path(image.sha256)
            parts += [Text(f"Picture {picture['number']}:"), ImageRef(image.sha256, file)]
            pictures.append({**picture, "file": file})
        urls = [row["context"][place]["url"] for place in part.posts]
        return parts, {**fields, "pictures": pictures}, urls

    def _build_requests(self, rows: Sequence[Row]) -> list[list[Request]]:
        """Return the requests about each row's images, then about an image that is not there."""
        requests = super()._build_requests(rows)
        if self.answers is None:
            return requests
        candidates = [
            (row, row_requests)
            for row, row_requests in zip(rows, requests, strict=True)
            if row["quality"] == "Benchmark" and _may_start_from_image(row)
        ]
        sent = [request for _, row_requests in candidates for request in row_requests]
        stored = iter(self.answers.read(sent))
        opening = Message("system", (Text(self.absent_prompt.text),))
        for row, row_requests in candidates:
            answers = [next(stored) for _ in row_requests]
            if self.is_lost(row, answers) or not self._may_lack_input(row, answers):
                continue
            first_part = next(iter(self._split(row)), make_part(row, ()))
            parts, fields, urls = self._question(row, first_part)
            facts = {name: fields[name] for name in ("prompt", "posts", "pictures")}
            request = Request(
                self.name,
                (opening, Message("user", tuple(parts))),
                AbsentImageAnswer,
                self.absent_tokens,
                {**facts, "target": self.target.model_dump(mode="json")},
                tuple(dict.fromkeys(urls)),
                row=self._key(row),
                part=len(answers),
            )
            row_requests.append(request)
        return requests

    def _may_lack_input(self, row: Row, answers: Sequence[Answer]) -> bool:
        tasks = self._read_assignment(row, answers).finish()
        return not answers or any(not (task.inputs or task.screenshot) for task in tasks)

    def _read_assignment(self, row: Row, answers: Sequence[Answer]) -> AssignedTasks:
        digests = [image.sha256 for image in own_images(row)]
        assignment = AssignedTasks(row["prompt"], digests, abstains(self._signature))
        for part, answer in zip(self._split(row), answers, strict=False):
            if isinstance(answer, RolesAnswer):
                assignment.add(answer, part)
        return assignment

    def is_lost(self, row: Row, answers: Sequence[Answer]) -> bool:
        """Return whether a call about the images failed; the sample waits for all of them."""
        return any(isinstance(answer, Failure) for answer in answers[: len(self._split(row))])

    def _finish_rows(self, inputs: Sequence[Row], answers: Sequence[list[Answer]]) -> pa.Table:
        # An engine without a model may leave the last question to the words of the prompt.
        kept = []
        for row, row_answers in zip(inputs, answers, strict=True):
            count = len(self._split(row))
            last = [answer for answer in row_answers[count:] if not _needs_model(answer)]
            kept.append([*row_answers[:count], *last])
        return super()._finish_rows(inputs, kept)

    def finish_row(
        self, row: Row, answers: Sequence[Answer], made_by: Mapping[str, Any]
    ) -> RowResult:
        """Return one row for each task."""
        findings: list[Finding] = []
        count = len(self._split(row))
        last = next(iter(answers[count:]), None)
        needs = last.needs_absent_image if isinstance(last, AbsentImageAnswer) else None
        if needs is not None:
            made_by = {**made_by, "needs_absent_image": needs}
        if count:
            assignment = self._read_assignment(row, answers[:count])
            tasks = assignment.finish()
            findings += assignment.findings
            if tasks:
                rows = build_rows(row, tasks, made_by, assignment.may_show_minor)
                new_rows = [move_sheet(row, self.images, made_by, findings) for row in rows]
                doubts = [Doubt.ROLES_ASSUMED.value] if assignment.assumed else []
                new_rows = [{**row, "doubts": [*row["doubts"], *doubts]} for row in new_rows]
            else:
                findings.append((SampleNotice.NO_TASK, None))
                new_rows = [build_analysis_row(row, made_by)]
        else:
            new_rows = [{**row, "quality": decide_quality(row["prompt"], row["quality"])}]
            if needs is not None:
                new_rows[0]["provenance"] = add_provenance(row, self.name, made_by)
        lost = [] if row["quality"] == TRASH else list(find_missing_images(row))
        findings += [(SampleNotice.IMAGE_NOT_THERE, name) for name in lost]
        blanks: list[Finding] = []  # blanks that keep rows out of the benchmark
        for new in new_rows:
            new["quality"] = limit_quality(new["quality"]) if lost else new["quality"]
            if new["quality"] != TRASH and not (new["input_images"] or new["screenshot"]):
                lacks = mentions_input(new) if needs is None else needs
                new["doubts"] = [*([Doubt.LACKS_INPUT.value] if lacks else []), *new["doubts"]]
            if MARK.search(new["prompt"]) and not MARK.search(row["prompt"]):
                findings.append((SampleNotice.SHORTENED_PROMPT, None))
            if new["screenshot"]:
                findings.append((SampleNotice.NOT_PARSED, new["screenshot"]))
            if new["quality"] != TRASH:
                notice = (
                    SampleNotice.BLANK_LEFT
                    if new["prompt_fill_blank"]
                    else SampleNotice.TEMPLATE_LEFT
                )
                blanks += [(notice, blank) for blank in find_placeholders(new["prompt"])]
        return new_rows, [*findings, *dict.fromkeys(blanks)]

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        """Count the samples that have inputs, completed a template, or show a screenshot."""
        return sum_columns(
            with_inputs=pc.greater(pc.list_value_length(kept["input_images"]), 0),
            filled=kept["prompt_fill_blank"],
            screenshots=pc.is_valid(kept["screenshot"]),
        )

    def _split(self, sample: Row) -> list[RequestPart]:
        return [] if sample["quality"] == TRASH else split_images(sample, self.most_pictures)


def _may_start_from_image(row: Row) -> bool:
    """Return whether the words of a sample may speak of an image that it starts from."""
    return mentions_image(row["prompt"]) or mentions_input(row)


def _needs_model(answer: Answer) -> bool:
    return isinstance(answer, Failure) and answer.reason is Failed.NEEDS_MODEL
