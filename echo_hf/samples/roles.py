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
from echo_hf.engines.base import ImageRef, Message, Request, Text, abstains
from echo_hf.engines.reference_images import mentions_image
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.result import StageStats
from echo_hf.prompts import Prompt, as_data, load_prompt
from echo_hf.reasons import Doubt, Failed, Notice
from echo_hf.samples.blanks import placeholders
from echo_hf.samples.sample import Finding, provenance_with
from echo_hf.samples.sheets import without_sheets
from echo_hf.samples.stage import Outcome, Question, Row, SampleStage, sums
from echo_hf.samples.tasks import (
    AbsentImageAnswer,
    Assigned,
    RequestPart,
    RolesAnswer,
    at_most_analysis,
    images_of,
    lost_images,
    part_of,
    parts_of,
    quality_with,
    rows_of,
    speaks_of_input,
    without_task,
)

NOT_ASKED = "Trash"
ABSENT_SCHEMA = AbsentImageAnswer.model_json_schema()
Answer = BaseModel | Failure


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
    answer: ClassVar[type[BaseModel]] = RolesAnswer
    rounds: ClassVar[int] = 2
    absent_tokens: ClassVar[int] = 64
    sends_images: ClassVar[bool] = True

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

    @property
    def absent_prompt(self) -> Prompt:
        """The instructions for the question on an image that is not there."""
        return load_prompt(f"{self.name}_absent", self.target)

    def describe(self) -> dict[str, Any]:
        """As for any stage, with both prompts and both answers."""
        said = super().describe()
        prompt = f"{said['prompt']}\n\n{self.absent_prompt.text}"
        return {**said, "prompt": prompt, "schema": [said["schema"], ABSENT_SCHEMA]}

    def questions(self, row: Row) -> Iterator[Question]:
        """The sample with its images, or each part of one with very many."""
        for part in self._parts(row):
            yield self._question(row, part)

    def _question(self, row: Row, part: RequestPart) -> Question:
        shown = part.as_data(row, placeholders(row["prompt"]))
        parts, pictures = list[Text | ImageRef]([Text(as_data("sample", shown))]), []
        for image, picture in zip(part.images, shown["pictures"], strict=True):
            file = self.images.path(image.sha256)
            parts += [Text(f"Picture {picture['number']}:"), ImageRef(image.sha256, file)]
            pictures.append({**picture, "file": file})
        urls = [row["context"][place]["url"] for place in part.posts]
        return parts, {**shown, "pictures": pictures}, urls

    def _asked(self, rows: Sequence[Row]) -> list[list[Request]]:
        """On the images of each row; once that is answered, on one that is not there."""
        every = super()._asked(rows)
        if self.answers is None:
            return every
        candidates = [
            (row, asked)
            for row, asked in zip(rows, every, strict=True)
            if row["quality"] == "Benchmark" and _mentions(row)
        ]
        given = iter(self.answers.read([request for _, asked in candidates for request in asked]))
        opening = Message("system", (Text(self.absent_prompt.text),))
        for row, asked in candidates:
            answers = [next(given) for _ in asked]
            if self.is_lost(row, answers) or not self._may_lack_input(row, answers):
                continue
            parts, shown, urls = self._question(row, next(iter(self._parts(row)), part_of(row, ())))
            known = {name: shown[name] for name in ("prompt", "posts", "pictures")}
            request = Request(
                self.name,
                (opening, Message("user", tuple(parts))),
                AbsentImageAnswer,
                self.absent_tokens,
                {**known, "target": self.target.model_dump(mode="json")},
                tuple(dict.fromkeys(urls)),
                row=self._key(row),
                part=len(answers),
            )
            asked.append(request)
        return every

    def _may_lack_input(self, row: Row, answers: Sequence[Answer]) -> bool:
        tasks = self._assigned(row, answers).finish()
        return not answers or any(not (task.inputs or task.screenshot) for task in tasks)

    def _assigned(self, row: Row, answers: Sequence[Answer]) -> Assigned:
        digests = [one.sha256 for one in images_of(row)]
        assigned = Assigned(row["prompt"], digests, abstains(self._signature))
        for part, answer in zip(self._parts(row), answers, strict=False):
            if isinstance(answer, RolesAnswer):
                assigned.add(answer, part)
        return assigned

    def is_lost(self, row: Row, answers: Sequence[Answer]) -> bool:
        """Whether a call on the images failed; the sample waits for all of them."""
        return any(isinstance(one, Failure) for one in answers[: len(self._parts(row))])

    def _finished(self, given: Sequence[Row], answers: Sequence[list[Answer]]) -> pa.Table:
        # Who is no model may leave the last question to the words of the prompt.
        said = [
            [*some[:count], *(one for one in some[count:] if not _needs_model(one))]
            for some, count in zip(answers, (len(self._parts(row)) for row in given), strict=True)
        ]
        return super()._finished(given, said)

    def outcome(self, row: Row, answers: Sequence[Answer], made_by: Mapping[str, Any]) -> Outcome:
        """One row a task."""
        findings: list[Finding] = []
        count = len(self._parts(row))
        last = next(iter(answers[count:]), None)
        needs = last.needs_absent_image if isinstance(last, AbsentImageAnswer) else None
        if needs is not None:
            made_by = {**made_by, "needs_absent_image": needs}
        if count:
            assigned = self._assigned(row, answers[:count])
            tasks = assigned.finish()
            findings += assigned.findings
            if tasks:
                rows = rows_of(row, tasks, made_by, assigned.may_show_minor)
                made = [without_sheets(one, self.images, made_by, findings) for one in rows]
                assumed = [Doubt.ROLES_ASSUMED.value] if assigned.assumed else []
                made = [{**one, "doubts": [*one["doubts"], *assumed]} for one in made]
            else:
                findings.append((Notice.NO_TASK, None))
                made = [without_task(row, made_by)]
        else:
            made = [{**row, "quality": quality_with(row["prompt"], row["quality"])}]
            if needs is not None:
                made[0]["provenance"] = provenance_with(row, self.name, made_by)
        lost = [] if row["quality"] == NOT_ASKED else list(lost_images(row))
        findings += [(Notice.IMAGE_NOT_THERE, name) for name in lost]
        left: list[Finding] = []  # the blanks that keep rows out of the benchmark
        for one in made:
            one["quality"] = at_most_analysis(one["quality"]) if lost else one["quality"]
            if one["quality"] != NOT_ASKED and not (one["input_images"] or one["screenshot"]):
                lacks = speaks_of_input(one) if needs is None else needs
                one["doubts"] = [*([Doubt.LACKS_INPUT.value] if lacks else []), *one["doubts"]]
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


def _mentions(row: Row) -> bool:
    """Whether the words of a sample leave it open that it starts from an image."""
    return mentions_image(row["prompt"]) or speaks_of_input(row)


def _needs_model(answer: Answer) -> bool:
    return isinstance(answer, Failure) and answer.reason is Failed.NEEDS_MODEL
