"""Tell input pictures from outputs, complete templates, recognise screenshots (section 3.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from echo_hf.answers import Failure
from echo_hf.config import Config
from echo_hf.config_sections import Target
from echo_hf.context.sample_context import SAMPLES_IN_CONTEXT
from echo_hf.engines.base import ImageRef, Message, Request, Text
from echo_hf.multimodal.answers import RolesAnswer
from echo_hf.multimodal.assigned import Assigned
from echo_hf.multimodal.blanks import placeholders
from echo_hf.multimodal.rows import at_most_analysis, quality_with, rows_of, without_task
from echo_hf.multimodal.shown import Part, Sample, lost_pictures, parts_of, pictures_of
from echo_hf.pictures import PictureStore
from echo_hf.prompts import Prompt, as_data, load_prompt
from echo_hf.reasons import Notice, Status
from echo_hf.shortening import MARK
from echo_hf.stage import ModelStage
from echo_hf.stage_rows import StageRows
from echo_hf.tables import Table

if TYPE_CHECKING:
    from echo_hf.stage_result import StageStats

MOST_TOKENS = 4096
NOT_ASKED = "Trash"


@dataclass(frozen=True)
class Roles(ModelStage):
    """Says what the pictures of a sample are: what went in, what came out, what is a screenshot.

    A template becomes one sample for each completion that a picture shows; a prompt that people
    tried on pictures of their own, one for each. A template that stays one is for analysis. Trash
    is not looked into, and a sample without pictures needs no answer. (Section 3.3, figure D.4; one
    call a sample, several where it has very many pictures.)

    Attributes:
        target: The model that people talk about.
        pictures: Where the bytes of the pictures are.
        most_pictures: Most pictures of one request.
    """

    name: ClassVar[str] = "roles"
    version: ClassVar[int] = 5
    inputs: ClassVar[Table] = SAMPLES_IN_CONTEXT
    outputs: ClassVar[Table] = SAMPLES_IN_CONTEXT
    answer: ClassVar[type[BaseModel]] = RolesAnswer

    target: Target
    pictures: PictureStore = field(metadata={"digest": False})
    most_pictures: int = 16

    @classmethod
    def from_config(cls, config: Config, pictures: PictureStore) -> Self:
        """The stage for the config's target, looking at these pictures."""
        return cls(config.target, pictures, config.stages.roles.most_pictures)

    @classmethod
    def headline(cls, stats: Mapping[str, StageStats]) -> str | None:
        """How many samples have inputs, and how many come from templates and screenshots."""
        one = stats["roles"]
        tally = one.tally
        return (
            f"{tally.get('with_inputs', 0):,} of {one.kept:,} samples have input pictures; "
            f"{tally.get('filled', 0):,} completions of templates, "
            f"{tally.get('screenshots', 0):,} screenshots"
        )

    @property
    def prompt(self) -> Prompt:
        """What the roles are, filled in for the target."""
        return load_prompt("roles", self.target)

    def requests(self, table: pa.Table) -> list[list[Request]]:
        """One call for each sample with pictures, or for each part of one with very many."""
        system = Message("system", (Text(self.prompt.text),))
        return [
            [self._request(system, sample, part) for part in self._parts(sample)]
            for sample in self.input_rows(table)
        ]

    def finish(self, table: pa.Table, answers: list[list[BaseModel | Failure]]) -> pa.Table:
        """One row a task; a sample stays in quarantine until all its parts are answered."""
        engine = dict(self.answers.signature) if self.answers else {}
        made_by = {"digest": self.digest(), "engine": engine}
        rows = StageRows(self.outputs)
        for row, sample in enumerate(self.input_rows(table)):
            failed = next((one for one in answers[row] if isinstance(one, Failure)), None)
            if failed:
                rows.failed(row, sample["id"], failed)
            elif not answers[row]:
                quality = quality_with(sample["prompt"], sample["quality"])
                self._keep(rows, row, sample, [{**sample, "quality": quality}])
            else:
                self._assign(rows, row, sample, answers[row], made_by)
        return rows.table()

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        """How many samples have input pictures, completed a template, or show a screenshot."""
        inputs = pc.greater(pc.list_value_length(kept["input_images"]), 0)
        counted = {
            "with_inputs": inputs,
            "filled": kept["prompt_fill_blank"],
            "screenshots": pc.is_valid(kept["screenshot"]),
        }
        sums = {name: pc.sum(column.cast(pa.int64())).as_py() for name, column in counted.items()}
        return {name: count or 0 for name, count in sums.items()}

    def _parts(self, sample: Sample) -> list[Part]:
        return [] if sample["quality"] == NOT_ASKED else parts_of(sample, self.most_pictures)

    def _request(self, system: Message, sample: Sample, part: Part) -> Request:
        shown = part.as_data(sample, placeholders(sample["prompt"]))
        pieces: list[Text | ImageRef] = [Text(as_data("sample", shown))]
        files = [self.pictures.path(one.sha256) for one in part.pictures]
        for number, (picture, file) in enumerate(zip(part.pictures, files, strict=True), 1):
            pieces += [Text(f"Picture {number}:"), ImageRef(picture.sha256, file)]
        seen = [{**one, "file": file} for one, file in zip(shown["pictures"], files, strict=True)]
        return Request(
            self.name,
            (system, Message("user", tuple(pieces))),
            RolesAnswer,
            MOST_TOKENS,
            {**shown, "pictures": seen, "target": self.target.model_dump(mode="json")},
            tuple(sample["context"][place]["url"] for place in part.posts),
        )

    def _assign(
        self,
        rows: StageRows,
        row: int,
        sample: Sample,
        answers: list[BaseModel | Failure],
        made_by: Mapping[str, Any],
    ) -> None:
        by_rules = (made_by["engine"] or {}).get("kind") == "rules"
        digests = [one.sha256 for one in pictures_of(sample)]
        assigned = Assigned(sample["prompt"], digests, by_rules=by_rules)
        for part, answer in zip(self._parts(sample), answers, strict=True):
            if isinstance(answer, RolesAnswer):
                assigned.add(answer, part)
        tasks = assigned.finish()
        for notice, detail in assigned.findings:
            rows.say(row, sample["id"], Status.NOTED, notice, detail)
        if not tasks:
            rows.say(row, sample["id"], Status.NOTED, Notice.NO_TASK)
            self._keep(rows, row, sample, [without_task(sample, made_by)])
            return
        made = rows_of(sample, tasks, made_by, assigned.may_show_minor)
        self._keep(rows, row, sample, list(made))

    def _keep(
        self, rows: StageRows, row: int, sample: Sample, made: Sequence[Mapping[str, Any]]
    ) -> None:
        lost = list(lost_pictures(sample))
        for name in lost if sample["quality"] != NOT_ASKED else ():
            rows.say(row, sample["id"], Status.NOTED, Notice.PICTURE_NOT_THERE, name)
        for values in made:
            quality = at_most_analysis(values["quality"]) if lost else values["quality"]
            rows.keep(row, sample["id"], {**values, "quality": quality})
            if MARK.search(values["prompt"]) and not MARK.search(sample["prompt"]):
                rows.say(row, sample["id"], Status.NOTED, Notice.SHORTENED_PROMPT)
            if values["screenshot"]:
                rows.say(row, sample["id"], Status.NOTED, Notice.NOT_PARSED, values["screenshot"])
        for notice, blank in dict.fromkeys(_left(made)):
            rows.say(row, sample["id"], Status.NOTED, notice, blank)


def _left(made: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Notice, str]]:
    """The blanks that keep rows out of the benchmark, each as often as it stands there."""
    for values in made:
        if values["quality"] != NOT_ASKED:
            filled = values["prompt_fill_blank"]
            notice = Notice.BLANK_LEFT if filled else Notice.TEMPLATE_LEFT
            yield from ((notice, blank) for blank in placeholders(values["prompt"]))
