"""Take screenshots apart: the prompt that was typed, what went in, what came out (section 3.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import pyarrow as pa
import pyarrow.compute as pc
from PIL import Image
from pydantic import BaseModel, ConfigDict, Field

from echo_hf._infra.text import MARK, share, shortened
from echo_hf.config.loading import Config
from echo_hf.config.sections import Target
from echo_hf.engines.base import ImageRef, Message, Request, Text
from echo_hf.engines.checkpoint import family_of
from echo_hf.errors import ImageError
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.stage import ModelStage, StageRows
from echo_hf.prompts import Prompt, as_data, load_prompt
from echo_hf.reasons import Notice, Status
from echo_hf.samples.boxes import (
    AUTO,
    WORDS,
    Boxes,
    EngineFrames,
    Finding,
    Frame,
    Pixels,
    box_text,
    checked_boxes,
    cut,
    engine_frames,
    upright,
    upright_size,
)
from echo_hf.samples.sample import (
    SAMPLES_IN_CONTEXT,
    Sample,
    provenance_with,
    sample_digest,
    texts_of,
)
from echo_hf.samples.spans import SpanIndex, squeezed
from echo_hf.samples.thread_parts import LONGEST_PROMPT
from echo_hf.tables import Table

if TYPE_CHECKING:
    from echo_hf.pipeline.result import StageStats


STAGE = "screenshots"
MOST_BOXES = 32
LARGEST = 100_000  # no image has a longer side

Coordinate = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
GivenBox = Annotated[list[Coordinate], Field(min_length=4, max_length=4)]
GivenBoxes = Annotated[list[GivenBox], Field(max_length=MOST_BOXES)]


class ScreenshotsAnswer(BaseModel):
    """What a screenshot shows; the prompt is empty where none was typed, null where unread."""

    model_config = ConfigDict(extra="ignore")

    prompt: Annotated[str, Field(max_length=LONGEST_PROMPT)] | None = None
    inputs: GivenBoxes
    outputs: GivenBoxes


Crop = tuple[Pixels, bytes]


@dataclass(frozen=True)
class ScreenshotParser:
    """Makes of a sample and an answer the row that goes on."""

    images: ImageStore
    inset: int
    made_by: Mapping[str, Any]

    def row(
        self, sample: Sample, answer: ScreenshotsAnswer, frame: Frame
    ) -> tuple[dict[str, Any], list[Finding]]:
        """The row of a sample, and what was noticed."""
        boxes = checked_boxes(answer.inputs, answer.outputs, frame)
        findings = boxes.findings
        if not findings and not (boxes.inputs or boxes.outputs):
            findings.append((Notice.NO_BOX, sample["screenshot"]))
        crops = self._crops(sample["screenshot"], boxes) if boxes.usable else ([], [])
        said: dict[str, Any] = {
            **self.made_by,
            "prompt_read": answer.prompt,
            "convention": str(frame.convention),
        }
        if not boxes.usable:
            return {**sample, "provenance": provenance_with(sample, STAGE, said)}, findings
        prompt, changed = _prompt(sample, answer, findings)
        inputs, outputs = ([self.images.put(data) for _, data in some] for some in crops)
        replaced = sample["input_images"] if inputs else []
        findings += [(Notice.REPLACED_INPUT, one) for one in replaced]
        images = inputs or list(sample["input_images"])
        said |= {"inset": self.inset, "replaced_inputs": list(replaced)}
        if prompt != sample["prompt"]:
            said["earlier_prompt"] = sample["prompt"]
        row = {
            **sample,
            "prompt": prompt,
            "prompt_modified": changed,
            "input_images": images,
            "output_images": list(dict.fromkeys([*outputs, *sample["output_images"]])),
            "is_screenshot": True,
            "input_bboxs": [list(map(float, box)) for box, _ in crops[0]],
            "output_bboxs": [list(map(float, box)) for box, _ in crops[1]],
            "sample_digest": sample_digest(prompt, images),
            "provenance": provenance_with(sample, STAGE, said),
        }
        return row, findings

    def _crops(self, screenshot: str, boxes: Boxes) -> tuple[list[Crop], list[Crop]]:
        try:
            image = upright(self.images.open(screenshot))
        except ImageError as error:
            boxes.findings.append((Notice.BROKEN_IMAGE, f"{screenshot}: {error}"))
            return [], []
        inputs, outputs = (
            self._cut(image, some, boxes.findings) for some in (boxes.inputs, boxes.outputs)
        )
        also = {data for _, data in inputs}
        for box, data in outputs:
            if data in also:
                boxes.findings.append(
                    (Notice.OVERLAPPING_BOXES, f"{box_text(box)} is an input too")
                )
        return inputs, outputs

    def _cut(
        self, image: Image.Image, boxes: Sequence[Pixels], findings: list[Finding]
    ) -> list[Crop]:
        crops: dict[bytes, Pixels] = {}
        for box in boxes:
            try:
                data = cut(image, box, self.inset)
            except ImageError:
                findings.append((Notice.TINY_BOX, f"{box_text(box)} with an inset of {self.inset}"))
                continue
            if crops.setdefault(data, box) is not box:
                findings.append((Notice.DUPLICATE_BOX, box_text(box)))
        return [(box, data) for data, box in crops.items()]


def _prompt(sample: Sample, answer: ScreenshotsAnswer, findings: list[Finding]) -> tuple[str, bool]:
    """The prompt, and whether it is made of other words than those of the posts."""
    if answer.prompt is None:
        findings.append((Notice.PROMPT_NOT_READ, sample["screenshot"]))
    read = (answer.prompt or "").strip()
    if MARK.search(read):
        findings.append((Notice.SHORTENED_PROMPT, sample["screenshot"]))
        read = ""
    if squeezed(read) in ("", squeezed(sample["prompt"])):
        return sample["prompt"], sample["prompt_modified"]
    return read, not SpanIndex(texts_of(sample["context"])).holds(read)


MOST_TOKENS = 4096
LONGEST_TEXT, LONGEST_TEXTS = 4000, 16_000


@dataclass(frozen=True)
class Screenshots(ModelStage):
    """Reads the prompt in a screenshot of a conversation, and cuts out what went in and came out.

    Collages are taken apart the same way. (Section 3.3, figure D.5; one call a screenshot.)

    What the numbers of a box mean, and in which size the image was sent, follows from the
    engine's signature (`engine_frames`); `convention` says it where the model is not known. It is
    assumed that an engine with a pixel rule sends images in exactly the size of that rule, and
    that the server behind it leaves that size alone. A screenshot whose places cannot be found is
    not asked about; an answer that looks like another convention, or has a box that is empty, tiny,
    the whole screenshot, or overlaps another one, cuts nothing. Such a sample goes on as it came,
    for analysis only, with a notice that says why; so does one whose call failed, which stands in
    the quarantine as well.

    Of a screenshot that is cut the boxes are whole pixels of the upright image, right and bottom
    being the first pixels outside, in reading order; `inset` makes crops smaller, not boxes.
    - `output_images` are the crops in the order of their boxes, then what others posted.
    - `input_images` are the crops, which take the place of inputs posted beside the screenshot:
      it shows them again, and a system must not be given them twice. Where it shows no input those
      stay.
    - The prompt that was typed takes the place of the one from the posts. It counts as modified
      unless the posts have it too: nobody can look it up there. Where none was typed, or an engine
      cannot read, the sample keeps its own.

    Attributes:
        target: The model that people talk about.
        images: Where the bytes of the images are, and the crops go.
        convention: A name of `Convention`, or `auto`.
        inset: Pixels to leave out along each side of a box.
        family: The model's family, null to tell it by the model's name.
    """

    name: ClassVar[str] = STAGE
    version: ClassVar[int] = 2
    inputs: ClassVar[Table] = SAMPLES_IN_CONTEXT
    outputs: ClassVar[Table] = SAMPLES_IN_CONTEXT
    answer: ClassVar[type[BaseModel]] = ScreenshotsAnswer

    target: Target
    images: ImageStore = field(metadata={"digest": False})
    convention: str = AUTO
    inset: int = 0
    family: str | None = None

    @classmethod
    def from_config(cls, config: Config, images: ImageStore) -> Self:
        """The stage for the config's target, which knows the family of its engine's model."""
        options = config.stages.screenshots
        engine = config.engines[options.engine].options
        model = engine.get("model")
        family = engine.get("family") or (family_of(str(model)) if model else None)
        return cls(config.target, images, options.convention, options.inset, family)

    @classmethod
    def headline(cls, stats: Mapping[str, StageStats]) -> str | None:
        """How many screenshots were cut, and into how many images."""
        tally = stats["screenshots"].tally
        cut, every = tally.get("cut", 0), tally.get("screenshots", 0)
        return (
            f"{cut:,} of {every:,} screenshots were cut ({share(cut, every)}) into "
            f"{tally.get('pictures', 0):,} images"
        )

    @property
    def prompt(self) -> Prompt:
        """How to take a screenshot apart, filled in for the target."""
        return load_prompt("screenshots", self.target)

    def describe(self) -> dict[str, Any]:
        """Everything that decides the result, with the words that ask for boxes."""
        return {**super().describe(), "coordinates": {str(one): WORDS[one] for one in WORDS}}

    def requests(self, table: pa.Table) -> list[list[Request]]:
        """One call for each sample with a screenshot that is not taken apart yet."""
        system = Message("system", (Text(self.prompt.text),))
        frames = self._frames
        return [
            [self._request(system, sample, frame)]
            if isinstance(frame := self._frame(sample, frames), Frame)
            else []
            for sample in self.input_rows(table)
        ]

    def finish(self, table: pa.Table, answers: list[list[BaseModel | Failure]]) -> pa.Table:
        """Every sample goes on; one whose call failed is quarantined beside."""
        rows, frames = StageRows(self.outputs), self._frames
        engine = dict(self.answers.signature) if self.answers else {}
        made_by = {"digest": self.digest(), "engine": engine}
        parser = ScreenshotParser(self.images, self.inset, made_by)
        for row, sample in enumerate(self.input_rows(table)):
            values, findings = dict(sample), list[Finding]()
            frame = self._frame(sample, frames)
            answer = next(iter(answers[row]), None)
            if isinstance(answer, Failure):
                rows.failed(row, sample["id"], answer)
            elif isinstance(answer, ScreenshotsAnswer) and isinstance(frame, Frame):
                values, findings = parser.row(sample, answer, frame)
                if frames.is_assumed:
                    findings.append((Notice.ASSUMED_CONVENTION, str(frame.convention)))
            elif isinstance(frame, tuple):
                findings.append(frame)
            for notice, detail in findings:
                rows.say(row, sample["id"], Status.NOTED, notice, detail)
            rows.keep(row, sample["id"], values)
        return rows.table()

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        """How many screenshots there are, how many were cut, and into how many images."""
        boxes = (pc.list_value_length(kept[name]) for name in ("input_bboxs", "output_bboxs"))
        counted = {
            "screenshots": [pc.is_valid(kept["screenshot"])],
            "cut": [kept["is_screenshot"]],
            "pictures": list(boxes),
        }
        return {
            name: sum(pc.sum(column.cast(pa.int64())).as_py() or 0 for column in columns)
            for name, columns in counted.items()
        }

    @property
    def _frames(self) -> EngineFrames:
        signature = self.answers.signature if self.answers else {}
        return engine_frames(signature, self.convention, self.family)

    def _frame(self, sample: Sample, frames: EngineFrames) -> Frame | Finding | None:
        """How to ask about a sample's screenshot, or why not; null where it has none."""
        screenshot = sample["screenshot"]
        if screenshot is None or sample["is_screenshot"]:
            return None
        if frames.is_blind:
            return Notice.UNKNOWN_PIXELS, screenshot
        try:
            size = upright_size(self.images.open(screenshot))
        except ImageError as error:
            return Notice.BROKEN_IMAGE, f"{screenshot}: {error}"
        try:
            return frames.frame(size)
        except ImageError as error:
            return Notice.UNFIT_IMAGE, f"{screenshot}: {error}"

    def _request(self, system: Message, sample: Sample, frame: Frame) -> Request:
        screenshot, context = sample["screenshot"], sample["context"]
        shown = relevant_text(sample)
        file = self.images.path(screenshot)
        image = (Text(f"{frame.words}\nThe screenshot:"), ImageRef(screenshot, file))
        data = Text(as_data("relevant_text", shown))
        return Request(
            self.name,
            (system, Message("user", (data, *image))),
            ScreenshotsAnswer,
            MOST_TOKENS,
            {**shown, "file": file, "target": self.target.model_dump(mode="json")},
            tuple(post["url"] for post in context),
            row=sample["id"],
        )


def relevant_text(sample: Sample) -> dict[str, Any]:
    """What people wrote around a sample's screenshot, as a request holds it."""
    context, own = sample["context"], set(sample["post_urls"])
    wanted = set[int]()
    for place, post in enumerate(context):
        while post["url"] in own and place >= 0 and place not in wanted:
            wanted.add(place)
            place = context[place]["parent"]
    described = (
        one["alt_text"]
        for post in context
        for one in post["pictures"]
        if one["sha256"] == sample["screenshot"] and one["alt_text"]
    )
    texts = [context[place]["text"] for place in sorted(wanted) if context[place]["text"]]
    *texts, description = shortened([*texts, next(described, None)], LONGEST_TEXT, LONGEST_TEXTS)
    return {"posts": texts, "description": description}
