"""Take screenshots apart: the prompt that was typed, what went in, what came out (section 3.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Self

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, BeforeValidator, Field, model_validator

from echo_hf._infra.text import MARK, share, shortened
from echo_hf.config.loading import Config
from echo_hf.engines.base import ImageRef, Text
from echo_hf.engines.checkpoint import family_of
from echo_hf.errors import ImageError
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.result import StageStats
from echo_hf.prompts import as_data
from echo_hf.reasons import Doubt, Notice
from echo_hf.samples.boxes import (
    AUTO,
    MENDED,
    WORDS,
    Boxes,
    EngineFrames,
    Frame,
    Pixels,
    box_text,
    checked_boxes,
    cut,
    engine_frames,
    upright,
    upright_size,
)
from echo_hf.samples.extract import LONGEST_PROMPT
from echo_hf.samples.held_boxes import HeldBoxes
from echo_hf.samples.sample import Finding, Sample, provenance_with, sample_digest, texts_of
from echo_hf.samples.sheets import as_it_stands, is_suspected
from echo_hf.samples.spans import SpanIndex, squeezed
from echo_hf.samples.stage import Outcome, Question, Row, SampleStage, sums
from echo_hf.samples.tasks import doubts_of

MOST_BOXES = 32
LONGEST_SHOWN_PROMPT = 6000  # no window shows more at a time; a longer one is still read
# What is added for an output that was not called a screenshot by anybody.
SUSPECTED = (
    "Straight seams suggest that it holds several pictures, or is a window. Where it is one "
    "picture all the same, such as a page of a comic or a grid that was asked for as one, give one "
    "output box around all of it."
)
LARGEST = 100_000  # no image has a longer side
LONGEST_TEXT, LONGEST_TEXTS = 4000, 16_000


def _without_key(box: Any) -> Any:
    """The numbers of a box that a model gives in its own form: {"bbox_2d": [...], "label": ...}."""
    if isinstance(box, dict):
        return next((box[key] for key in NATIVE_KEYS if key in box), box)
    return box


NATIVE_KEYS = ("bbox_2d", "box_2d", "bbox")
Coordinate = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
GivenBox = Annotated[
    list[Coordinate], Field(min_length=4, max_length=4), BeforeValidator(_without_key)
]
GivenBoxes = Annotated[list[GivenBox], Field(max_length=MOST_BOXES)]


class ScreenshotsAnswer(BaseModel):
    """What a screenshot shows; the prompt is empty where none was typed, null where unread."""

    keyed_lengths: ClassVar[Mapping[str, int]] = {"prompt": LONGEST_PROMPT}

    prompt: (
        Annotated[
            str,
            Field(max_length=LONGEST_PROMPT, json_schema_extra={"maxLength": LONGEST_SHOWN_PROMPT}),
        ]
        | None
    ) = None
    inputs: GivenBoxes
    outputs: GivenBoxes

    @model_validator(mode="before")
    @classmethod
    def _read_native(cls, said: Any) -> Any:
        """An answer in a model's own form: a list of boxes, each with a label."""
        if not isinstance(said, list):
            return said
        boxes: dict[str, list[Any]] = {"input": [], "output": []}
        for box in said:
            label = str(box.get("label", "")).lower() if isinstance(box, dict) else ""
            roles = [role for role in boxes if role in label]
            if len(roles) != 1:
                raise ValueError("a box has no label that says input or output")
            boxes[roles[0]].append(box)
        return {"inputs": boxes["input"], "outputs": boxes["output"]}


@dataclass(frozen=True)
class Screenshots(SampleStage):
    """Reads the prompt in a screenshot of a conversation, and cuts out what went in and came out.

    Collages are taken apart the same way. (Section 3.3, figure D.5; one call a screenshot.) An
    output that looked like a sheet of images stays one where the model calls it a single image.

    What the numbers of a box mean follows from the engine's signature; `convention` says it where
    the model is not known. Until it is said, nothing is cut: the sample keeps the boxes as they
    were answered, with a doubt. A sample goes on as it came, for analysis only and with a notice
    that says why, where its call failed, or the boxes are doubtful: none can be placed, or one is
    empty, tiny, the whole screenshot, or overlaps another.

    Boxes are whole pixels of the upright image, right and bottom being the first pixels outside,
    in reading order; crops of outputs stand before outputs that others posted, crops of inputs in
    place of inputs that were posted beside the screenshot. The prompt that was typed takes the
    place of the one from the posts, and counts as modified unless the posts have it too.

    Attributes:
        target: The model that people talk about.
        images: Where the bytes of the images are, and the crops go.
        convention: A name of `Convention`, or `auto`.
        inset: Pixels to leave out along each side of a box, which makes crops smaller, not boxes.
        family: The model's family, null to tell it by the model's name.
    """

    name: ClassVar[str] = "screenshots"
    version: ClassVar[int] = 4
    answer: ClassVar[type[BaseModel]] = ScreenshotsAnswer
    sends_images: ClassVar[bool] = True

    images: ImageStore = field(metadata={"digest": False})
    convention: str = AUTO
    inset: int = 0
    family: str | None = None

    @classmethod
    def from_config(cls, config: Config, images: ImageStore) -> Self:
        """The stage for the config's target, which knows the family of its engine's model."""
        engine = config.engines[config.stages.screenshots.engine]
        model = engine.options.get("model")
        family = engine.options.get("family") or (family_of(str(model)) if model else None)
        made = super().from_config(config, images)
        convention = engine.coordinates or AUTO if made.convention == AUTO else made.convention
        return replace(made, family=family, convention=convention)

    @classmethod
    def headline(cls, stats: Mapping[str, StageStats]) -> str | None:
        """How many screenshots were cut, and into how many images."""
        tally = stats["screenshots"].tally
        cut, every = tally.get("cut", 0), tally.get("screenshots", 0)
        return (
            f"{cut:,} of {every:,} screenshots were cut ({share(cut, every)}) into "
            f"{tally.get('pictures', 0):,} images"
        )

    def describe(self) -> dict[str, Any]:
        """Everything that decides the result, with the words that ask for boxes."""
        coordinates = {str(one): WORDS[one] for one in WORDS}
        return {**super().describe(), "coordinates": coordinates, "suspected": SUSPECTED}

    def questions(self, row: Row) -> Iterator[Question]:
        """The screenshot, where there is one that is not taken apart yet."""
        if isinstance(frame := self._frame(row), Frame):
            shown, file = relevant_text(row), self.images.path(row["screenshot"])
            suspected = f"{SUSPECTED}\n" if is_suspected(row) else ""
            data = as_data("relevant_text", shown)
            words = f"{frame.words}\n{suspected}The screenshot:"
            yield (
                (Text(data), Text(words), ImageRef(row["screenshot"], file)),
                {**shown, "file": file},
                (post["url"] for post in row["context"]),
            )

    def outcome(
        self, row: Row, answers: Sequence[BaseModel | Failure], made_by: Mapping[str, Any]
    ) -> Outcome:
        """The sample, taken apart if it can be, and what is doubtful of it now."""
        frame, answer = self._frame(row), next(iter(answers), None)
        made, findings = row, [frame] if isinstance(frame, tuple) else []
        if isinstance(frame, Frame) and isinstance(answer, ScreenshotsAnswer):
            made, findings = self._parsed(row, answer, frame, made_by)
        # Where no screenshot brought a prompt or images, its roles have said what it lacks.
        lacks = None if row["screenshot"] else Doubt.LACKS_INPUT in row["doubts"]
        return [{**made, "doubts": doubts_of(made, lacks)}], findings

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        """How many screenshots there are, how many were cut, and into how many images."""
        inputs, outputs = (kept[f"{name}_bboxs"].combine_chunks() for name in ("input", "output"))
        found = sums(screenshots=pc.is_valid(kept["screenshot"]), cut=kept["is_screenshot"])
        return {**found, "pictures": len(pc.list_flatten(inputs)) + len(pc.list_flatten(outputs))}

    @property
    def frames(self) -> EngineFrames:
        """How the engine that answers sends images and names places."""
        return engine_frames(self._signature, self.convention, self.family)

    def _frame(self, sample: Sample) -> Frame | Finding | None:
        """How to ask about a sample's screenshot, or why not; null where it has none."""
        screenshot = sample["screenshot"]
        if screenshot is None or sample["is_screenshot"]:
            return None
        if (frames := self.frames).is_blind:
            return Notice.UNKNOWN_PIXELS, screenshot
        try:
            size = upright_size(self.images.open(screenshot))
        except ImageError as error:
            return Notice.BROKEN_IMAGE, f"{screenshot}: {error}"
        try:
            return frames.frame(size)
        except ImageError as error:
            return Notice.UNFIT_IMAGE, f"{screenshot}: {error}"

    def _parsed(
        self, sample: Sample, answer: ScreenshotsAnswer, frame: Frame, made_by: Mapping[str, Any]
    ) -> tuple[Row, list[Finding]]:
        screenshot, frames = sample["screenshot"], self.frames
        said: dict[str, Any] = {
            **made_by,
            "prompt_read": answer.prompt,
            "convention": str(frame.convention),
        }
        if frames.is_assumed and (answer.inputs or answer.outputs):
            said |= HeldBoxes.kept(frames, frame.original, answer).told
            waiting = {**sample, "provenance": provenance_with(sample, self.name, said)}
            return waiting, [(Notice.ASSUMED_CONVENTION, str(frame.convention))]
        boxes = checked_boxes(answer.inputs, answer.outputs, frame)
        findings: list[Finding] = boxes.findings
        if is_suspected(sample) and is_single(boxes):
            told = provenance_with(sample, self.name, {**made_by, "single": screenshot})
            return {**as_it_stands(sample), "provenance": told}, []
        if not (findings or boxes.inputs or boxes.outputs):
            findings.append((Notice.NO_BOX, screenshot))
        inputs, outputs = self._crops(screenshot, boxes) if boxes.usable else ({}, {})
        if not boxes.usable:
            return {**sample, "provenance": provenance_with(sample, self.name, said)}, findings
        prompt, is_modified = sample["prompt"], sample["prompt_modified"]
        if answer.prompt is None:
            findings.append((Notice.PROMPT_NOT_READ, screenshot))
        read = (answer.prompt or "").strip()
        if MARK.search(read):
            findings.append((Notice.SHORTENED_PROMPT, screenshot))
        elif squeezed(read) not in ("", squeezed(prompt)):
            prompt, said["earlier_prompt"] = read, prompt
            is_modified = not SpanIndex(texts_of(sample["context"])).holds(read)
        replaced = sample["input_images"] if inputs else []
        findings += [(Notice.REPLACED_INPUT, one) for one in replaced]
        images = [self.images.put(data) for data in inputs] or list(sample["input_images"])
        shown = [self.images.put(data) for data in outputs]
        said |= {"inset": self.inset, "replaced_inputs": list(replaced)}
        return {
            **sample,
            "prompt": prompt,
            "prompt_modified": is_modified,
            "input_images": images,
            "output_images": list(dict.fromkeys([*shown, *sample["output_images"]])),
            "is_screenshot": True,
            "input_bboxs": [list(map(float, box)) for box in inputs.values()],
            "output_bboxs": [list(map(float, box)) for box in outputs.values()],
            "sample_digest": sample_digest(prompt, images),
            "provenance": provenance_with(sample, self.name, said),
        }, findings

    def _crops(
        self, screenshot: str, boxes: Boxes
    ) -> tuple[dict[bytes, Pixels], dict[bytes, Pixels]]:
        """The images that are cut out, inputs and outputs, each with its box."""
        inputs: dict[bytes, Pixels] = {}
        outputs: dict[bytes, Pixels] = {}
        try:
            image = upright(self.images.open(screenshot))
        except ImageError as error:
            boxes.findings.append((Notice.BROKEN_IMAGE, f"{screenshot}: {error}"))
            return inputs, outputs
        for places, crops in ((boxes.inputs, inputs), (boxes.outputs, outputs)):
            for box in places:
                try:
                    data = cut(image, box, self.inset)
                except ImageError:
                    told = f"{box_text(box)} with an inset of {self.inset}"
                    boxes.findings.append((Notice.TINY_BOX, told))
                    continue
                if crops.setdefault(data, box) is not box:
                    boxes.findings.append((Notice.DUPLICATE_BOX, box_text(box)))
                elif crops is outputs and data in inputs:
                    told = f"{box_text(box)} is an input too"
                    boxes.findings.append((Notice.OVERLAPPING_BOXES, told))
        return inputs, outputs


def is_single(boxes: Boxes) -> bool:
    """Whether the only box of an answer is one output that is the whole image."""
    notices = {notice for notice, _ in boxes.findings} - MENDED
    return not boxes.inputs and len(boxes.outputs) == 1 and notices == {Notice.WHOLE_BOX}


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
