"""Tell input images from outputs, complete templates, recognise screenshots (section 3.3)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from echo_hf._infra.text import MARK
from echo_hf.config.loading import Config
from echo_hf.config.sections import Target
from echo_hf.engines.base import ImageRef, Message, Request, Text, abstains
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.stage import ModelStage, StageRows, of_row
from echo_hf.prompts import Prompt, as_data, load_prompt
from echo_hf.reasons import Notice, Status
from echo_hf.samples.blanks import completed, placeholders
from echo_hf.samples.sample import SAMPLES_IN_CONTEXT, Sample
from echo_hf.samples.shown_images import (
    FilledBlank,
    RequestPart,
    RolesAnswer,
    RolesSample,
    images_of,
    lost_images,
    parts_of,
)
from echo_hf.samples.tasks import (
    Fillings,
    Task,
    at_most_analysis,
    joined,
    quality_with,
    rows_of,
    told_and_seen,
    tries,
    without_task,
)
from echo_hf.tables import Table

if TYPE_CHECKING:
    from echo_hf.pipeline.result import StageStats


Finding = tuple[Notice, str]


@dataclass
class Assigned:
    """The tasks of one sample."""

    prompt: str
    order: Sequence[str]
    may_abstain: bool = False
    findings: list[Finding] = field(default_factory=list)
    _tasks: list[Task] = field(default_factory=list)
    _screenshots: set[str] = field(default_factory=set)
    _minors: set[str] = field(default_factory=set)

    def add(self, answer: RolesAnswer, part: RequestPart) -> None:
        """Takes over the answer about one part of the sample."""
        for sample in answer.samples:
            self._tasks.append(self._task(sample, part))
            if sample.may_show_minor or (sample.may_show_minor is None and not self.may_abstain):
                self._minors.update(_named(sample, part))

    @property
    def may_show_minor(self) -> frozenset[str]:
        """Digests of the images among which, it was said, somebody may be a minor."""
        return frozenset(self._minors)

    def finish(self) -> list[Task]:
        """The tasks: first those that are no completion, each kind by its first image."""
        tasks = sorted(self._tasks, key=self._sources)
        self._keep_roles_apart(tasks)
        completions, rest = self._completions(tasks)
        told = tries([task for task in rest if not task.screenshot])
        seen = joined((task.screenshot, task) for task in rest if task.screenshot)
        # Beside its completions a template is no task of its own; a conversation is.
        plain = seen if completions else told_and_seen(told, seen)
        self._keep_once(plain, {one for task in completions for one in task.images})
        shown = [task for task in plain if task.images]
        tasks = [*self._in_order(shown), *self._in_order(completions)]
        self._name_the_rest(tasks, {one for task in told for one in task.images})
        return tasks

    @cached_property
    def _rank(self) -> dict[str, int]:
        return {digest: number for number, digest in enumerate(self.order)}

    def _in_order(self, tasks: Iterable[Task]) -> list[Task]:
        made = sorted(tasks, key=self._sources)
        for task in made:
            task.inputs.sort(key=self._rank.__getitem__)
            task.outputs.sort(key=self._rank.__getitem__)
        return made

    def _sources(self, task: Task) -> tuple[Any, ...]:
        every, outputs, inputs = (
            sorted(map(self._rank.__getitem__, some))
            for some in (task.images, task.outputs, task.inputs)
        )
        return every[:1] or [len(self.order)], outputs, inputs, task.screenshot or "", task.prompt

    def _task(self, sample: RolesSample, part: RequestPart) -> Task:
        images = [one.sha256 for one in part.images]
        named = [one for one in (sample.conversation, sample.collage) if one is not None]
        screenshots = self._known(named, images)
        self._screenshots.update(screenshots)
        prompt, fillings = self._completed(sample.prompt_fill_blank)
        return Task(
            prompt,
            fillings,
            self._known(sample.inputs, images),
            self._known(sample.outputs, images),
            self._posts(sample.posts, part),
            next(iter(screenshots), None),
        )

    def _completed(self, blanks: Iterable[FilledBlank]) -> tuple[str, Fillings]:
        given = [(one.placeholder, one.value) for one in blanks if one.value.strip()]
        done = completed(self.prompt, given)
        for placeholder in (*done.unknown, *done.surplus):
            self._find(Notice.UNKNOWN_BLANK, placeholder)
        if done.prompt == self.prompt:
            return self.prompt, ()
        return done.prompt, done.filled

    def _known(self, numbers: Iterable[int], images: Sequence[str]) -> list[str]:
        for number in (some := list(dict.fromkeys(numbers))):
            if not 1 <= number <= len(images):
                self._find(Notice.UNKNOWN_NUMBER, f"image {number}")
        return [images[number - 1] for number in some if 1 <= number <= len(images)]

    def _posts(self, numbers: Iterable[int], part: RequestPart) -> list[int]:
        own = []
        for number in dict.fromkeys(numbers):
            if number >= len(part.posts):
                self._find(Notice.UNKNOWN_NUMBER, f"post {number}")
            elif part.posts[number] not in part.own:
                self._find(Notice.NOT_ITS_POST, f"post {number}")
            else:
                own.append(part.posts[number])
        return own

    def _keep_roles_apart(self, tasks: Sequence[Task]) -> None:
        made = {one for task in tasks for one in task.outputs}
        for task in tasks:
            self._drop(task.inputs, self._screenshots)
            self._drop(task.outputs, self._screenshots)
            # What is shown as a result must never be given to a system as an input.
            self._drop(task.inputs, made, Notice.TWO_ROLES)

    def _completions(self, tasks: Sequence[Task]) -> tuple[list[Task], list[Task]]:
        filled = joined((task.prompt, task) for task in tasks if task.fillings)
        rest = [task for task in tasks if not task.fillings]
        taken: set[str] = set()
        for task in filled:
            self._leave(task, taken)
            taken.update(task.shown_by)
            if not task.shown_by:
                self._find(Notice.COMPLETION_WITHOUT_IMAGE, task.prompt[:80])
                rest.append(Task(self.prompt, inputs=task.inputs, posts=task.posts))
        for task in rest:
            task.screenshot = None if task.screenshot in taken else task.screenshot
        return [task for task in filled if task.shown_by], rest

    def _keep_once(self, tasks: Iterable[Task], taken: set[str]) -> None:
        for task in tasks:
            self._leave(task, taken)
            self._drop(task.inputs, taken, Notice.IMAGE_USED_TWICE)
            taken.update(task.images)

    def _leave(self, task: Task, taken: Collection[str]) -> None:
        self._drop(task.outputs, taken, Notice.IMAGE_USED_TWICE)
        if task.screenshot is not None and task.screenshot in taken:
            self._find(Notice.IMAGE_USED_TWICE, task.screenshot)
            task.screenshot = None

    def _name_the_rest(self, tasks: Sequence[Task], of_template: Collection[str]) -> None:
        used = {one for task in tasks for one in task.images}
        for digest in (one for one in self.order if one not in used):
            # Where a template stays as it is, all that was said to be its own is used.
            left = digest in of_template
            self._find(Notice.NOT_COMPLETED if left else Notice.NEITHER, digest)

    def _drop(
        self, images: list[str], which: Collection[str], notice: Notice | None = None
    ) -> None:
        for digest in [one for one in images if one in which]:
            images.remove(digest)
            if notice:
                self._find(notice, digest)

    def _find(self, notice: Notice, detail: str) -> None:
        if (notice, detail) not in self.findings:
            self.findings.append((notice, detail))


def _named(sample: RolesSample, part: RequestPart) -> set[str]:
    numbers = {*sample.inputs, *sample.outputs, sample.conversation, sample.collage}
    named = {one.sha256 for number, one in enumerate(part.images, 1) if number in numbers}
    # Which images are meant is not known where none is named: then it may be any of them.
    return named or {one.sha256 for one in part.images}


MOST_TOKENS = 4096
NOT_ASKED = "Trash"


@dataclass(frozen=True)
class Roles(ModelStage):
    """Says what the images of a sample are: what went in, what came out, what is a screenshot.

    A template becomes one sample for each completion that an image shows; a prompt that people
    tried on images of their own, one for each. A template that stays one is for analysis. Trash
    is not looked into, and a sample without images needs no answer. (Section 3.3, figure D.4; one
    call a sample, several where it has very many images.)

    Attributes:
        target: The model that people talk about.
        images: Where the bytes of the images are.
        most_pictures: Most images of one request.
    """

    name: ClassVar[str] = "roles"
    version: ClassVar[int] = 5
    inputs: ClassVar[Table] = SAMPLES_IN_CONTEXT
    outputs: ClassVar[Table] = SAMPLES_IN_CONTEXT
    answer: ClassVar[type[BaseModel]] = RolesAnswer

    target: Target
    images: ImageStore = field(metadata={"digest": False})
    most_pictures: int = 16

    @classmethod
    def from_config(cls, config: Config, images: ImageStore) -> Self:
        """The stage for the config's target, looking at these images."""
        return cls(config.target, images, config.stages.roles.most_pictures)

    @classmethod
    def headline(cls, stats: Mapping[str, StageStats]) -> str | None:
        """How many samples have inputs, and how many come from templates and screenshots."""
        one = stats["roles"]
        tally = one.tally
        return (
            f"{tally.get('with_inputs', 0):,} of {one.kept:,} samples have input images; "
            f"{tally.get('filled', 0):,} completions of templates, "
            f"{tally.get('screenshots', 0):,} screenshots"
        )

    @property
    def prompt(self) -> Prompt:
        """What the roles are, filled in for the target."""
        return load_prompt("roles", self.target)

    def requests(self, table: pa.Table) -> list[list[Request]]:
        """One call for each sample with images, or for each part of one with very many."""
        system = Message("system", (Text(self.prompt.text),))
        return [
            of_row(one["id"], (self._request(system, one, part) for part in self._parts(one)))
            for one in self.input_rows(table)
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
        """How many samples have input images, completed a template, or show a screenshot."""
        inputs = pc.greater(pc.list_value_length(kept["input_images"]), 0)
        counted = {
            "with_inputs": inputs,
            "filled": kept["prompt_fill_blank"],
            "screenshots": pc.is_valid(kept["screenshot"]),
        }
        sums = {name: pc.sum(column.cast(pa.int64())).as_py() for name, column in counted.items()}
        return {name: count or 0 for name, count in sums.items()}

    def _parts(self, sample: Sample) -> list[RequestPart]:
        return [] if sample["quality"] == NOT_ASKED else parts_of(sample, self.most_pictures)

    def _request(self, system: Message, sample: Sample, part: RequestPart) -> Request:
        shown = part.as_data(sample, placeholders(sample["prompt"]))
        pieces: list[Text | ImageRef] = [Text(as_data("sample", shown))]
        files = [self.images.path(one.sha256) for one in part.images]
        for number, (image, file) in enumerate(zip(part.images, files, strict=True), 1):
            pieces += [Text(f"Picture {number}:"), ImageRef(image.sha256, file)]
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
        digests = [one.sha256 for one in images_of(sample)]
        assigned = Assigned(sample["prompt"], digests, abstains(made_by["engine"]))
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
        lost = list(lost_images(sample))
        for name in lost if sample["quality"] != NOT_ASKED else ():
            rows.say(row, sample["id"], Status.NOTED, Notice.IMAGE_NOT_THERE, name)
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
