"""Take screenshots apart: the typed prompt, the inputs and the outputs (section 3.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Self

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, BeforeValidator, Field, model_validator

from echo_hf._infra.text import MARK, format_share, shorten_texts
from echo_hf.collect.sources.base import PostNotice
from echo_hf.config.loading import Config
from echo_hf.engines.base import ImageRef, Text
from echo_hf.engines.checkpoint import model_family
from echo_hf.errors import ImageError
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.result import StageStats
from echo_hf.pipeline.stage import BY_MODEL, BY_RULE, register
from echo_hf.prompts import quote_as_data
from echo_hf.samples.boxes import (
    AUTO,
    BOX_INSTRUCTIONS,
    REPAIRED_NOTICES,
    BoxNotice,
    CheckedBoxes,
    EngineFrames,
    Frame,
    PixelBox,
    choose_engine_frames,
    convert_boxes,
    cut_box,
    format_box,
    read_upright_size,
    rotate_upright,
)
from echo_hf.samples.extract import MAX_PROMPT
from echo_hf.samples.held_boxes import StoredBoxes
from echo_hf.samples.sample import (
    Doubt,
    Finding,
    Sample,
    SampleNotice,
    add_provenance,
    sample_digest,
    texts_of,
)
from echo_hf.samples.sheets import is_suspected, restore_output
from echo_hf.samples.spans import SpanIndex, squeeze
from echo_hf.samples.stage import RequestContent, RowResult, SampleStage, sum_columns
from echo_hf.samples.tasks import find_doubts
from echo_hf.tables import Row

MAX_BOXES = 32
MAX_SHOWN_PROMPT = 6000  # no window shows more at a time; longer answers are accepted
# Added to the request for an output that only looks like several images.
SUSPECTED_SHEET_NOTE = (
    "Straight seams suggest that it holds several pictures, or is a window. Where it is one "
    "picture all the same, such as a page of a comic or a grid that was asked for as one, give one "
    "output box around all of it."
)
MAX_COORDINATE = 100_000  # no image has a longer side
MAX_TEXT, MAX_TEXTS = 4000, 16_000
NATIVE_KEYS = ("bbox_2d", "box_2d", "bbox")


def _strip_key(box: Any) -> Any:
    """Return the numbers of a box in a model's own form, {"bbox_2d": [...], "label": ...}."""
    if isinstance(box, dict):
        return next((box[key] for key in NATIVE_KEYS if key in box), box)
    return box


Coordinate = Annotated[float, Field(ge=-MAX_COORDINATE, le=MAX_COORDINATE)]
AnsweredBox = Annotated[
    list[Coordinate], Field(min_length=4, max_length=4), BeforeValidator(_strip_key)
]
AnsweredBoxes = Annotated[list[AnsweredBox], Field(max_length=MAX_BOXES)]


class ScreenshotsAnswer(BaseModel):
    """What a screenshot shows; the prompt is empty where none was typed, null where unread."""

    keyed_lengths: ClassVar[Mapping[str, int]] = {"prompt": MAX_PROMPT}

    prompt: (
        Annotated[
            str, Field(max_length=MAX_PROMPT, json_schema_extra={"maxLength": MAX_SHOWN_PROMPT})
        ]
        | None
    ) = None
    inputs: AnsweredBoxes
    outputs: AnsweredBoxes

    @model_validator(mode="before")
    @classmethod
    def _read_native(cls, answer: Any) -> Any:
        """Convert an answer in a model's own form: a list of boxes, each with a label."""
        if not isinstance(answer, list):
            return answer
        boxes: dict[str, list[Any]] = {"input": [], "output": []}
        for box in answer:
            label = str(box.get("label", "")).lower() if isinstance(box, dict) else ""
            roles = [role for role in boxes if role in label]
            if len(roles) != 1:
                raise ValueError("a box has no label that says input or output")
            boxes[roles[0]].append(box)
        return {"inputs": boxes["input"], "outputs": boxes["output"]}


@register
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
    after: ClassVar[str | None] = "roles"
    decides: ClassVar[Mapping[str, Sequence[str]]] = {
        BY_MODEL: (
            *("prompt", "input_images", "output_images", "is_screenshot", "input_bboxs"),
            *("output_bboxs", "doubts"),
        ),
        BY_RULE: ("prompt_modified",),
    }
    answer: ClassVar[type[BaseModel]] = ScreenshotsAnswer
    sends_images: ClassVar[bool] = True

    images: ImageStore = field(metadata={"digest": False})
    convention: str = AUTO
    inset: int = 0
    family: str | None = None

    @classmethod
    def from_config(cls, config: Config, images: ImageStore) -> Self:
        """Return the stage for the config's target, with the family of its engine's model."""
        engine = config.engines[config.stages.screenshots.engine]
        model = engine.options.get("model")
        family = engine.options.get("family") or (model_family(str(model)) if model else None)
        stage = super().from_config(config, images)
        convention = engine.coordinates or AUTO if stage.convention == AUTO else stage.convention
        return replace(stage, family=family, convention=convention)

    @classmethod
    def headline(cls, stats: Mapping[str, StageStats]) -> str | None:
        """Say how many screenshots were cut, and into how many images."""
        tally = stats["screenshots"].tally
        count, total = tally.get("cut", 0), tally.get("screenshots", 0)
        return (
            f"{count:,} of {total:,} screenshots were cut ({format_share(count, total)}) into "
            f"{tally.get('pictures', 0):,} images"
        )

    def describe(self) -> dict[str, Any]:
        """Return everything that decides the result, with the words that ask for boxes."""
        coordinates = {str(name): instructions for name, instructions in BOX_INSTRUCTIONS.items()}
        return {**super().describe(), "coordinates": coordinates, "suspected": SUSPECTED_SHEET_NOTE}

    def build_questions(self, row: Row) -> Iterator[RequestContent]:
        """Yield the screenshot, if there is one that is not taken apart yet."""
        if isinstance(frame := self._choose_frame(row), Frame):
            shown_texts, file = collect_relevant_text(row), self.images.path(row["screenshot"])
            sheet_note = f"{SUSPECTED_SHEET_NOTE}\n" if is_suspected(row) else ""
            data = quote_as_data("relevant_text", shown_texts)
            words = f"{frame.instructions}\n{sheet_note}The screenshot:"
            yield (
                (Text(data), Text(words), ImageRef(row["screenshot"], file)),
                {**shown_texts, "file": file},
                (post["url"] for post in row["context"]),
            )

    def finish_row(
        self, row: Row, answers: Sequence[BaseModel | Failure], made_by: Mapping[str, Any]
    ) -> RowResult:
        """Return the sample, taken apart if it can be, with its doubts."""
        frame, answer = self._choose_frame(row), next(iter(answers), None)
        new, findings = row, [frame] if isinstance(frame, tuple) else []
        if isinstance(frame, Frame) and isinstance(answer, ScreenshotsAnswer):
            new, findings = self._cut_screenshot(row, answer, frame, made_by)
        # Without a screenshot the doubt of `roles` stands.
        lacks = None if row["screenshot"] else Doubt.LACKS_INPUT in row["doubts"]
        return [{**new, "doubts": find_doubts(new, lacks)}], findings

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        """Count the screenshots, those that were cut, and the images that were cut out."""
        inputs, outputs = (kept[f"{name}_bboxs"].combine_chunks() for name in ("input", "output"))
        counts = sum_columns(screenshots=pc.is_valid(kept["screenshot"]), cut=kept["is_screenshot"])
        return {**counts, "pictures": len(pc.list_flatten(inputs)) + len(pc.list_flatten(outputs))}

    @property
    def frames(self) -> EngineFrames:
        """How the engine that answers sends images and names places."""
        return choose_engine_frames(self._signature, self.convention, self.family)

    def _choose_frame(self, sample: Sample) -> Frame | Finding | None:
        """Return how to ask about a sample's screenshot, or why not; null where it has none."""
        screenshot = sample["screenshot"]
        if screenshot is None or sample["is_screenshot"]:
            return None
        if (frames := self.frames).is_blind:
            return BoxNotice.UNKNOWN_PIXELS, screenshot
        try:
            size = read_upright_size(self.images.open(screenshot))
        except ImageError as error:
            return PostNotice.BROKEN_IMAGE, f"{screenshot}: {error}"
        try:
            return frames.frame(size)
        except ImageError as error:
            return BoxNotice.UNFIT_IMAGE, f"{screenshot}: {error}"

    def _cut_screenshot(
        self, sample: Sample, answer: ScreenshotsAnswer, frame: Frame, made_by: Mapping[str, Any]
    ) -> tuple[Row, list[Finding]]:
        screenshot, frames = sample["screenshot"], self.frames
        record: dict[str, Any] = {
            **made_by,
            "prompt_read": answer.prompt,
            "convention": str(frame.convention),
        }
        if frames.is_assumed and (answer.inputs or answer.outputs):
            record |= StoredBoxes.from_answer(frames, frame.original, answer).provenance_fields
            uncut_row = {**sample, "provenance": add_provenance(sample, self.name, record)}
            return uncut_row, [(BoxNotice.ASSUMED_CONVENTION, str(frame.convention))]
        boxes = convert_boxes(answer.inputs, answer.outputs, frame)
        findings: list[Finding] = boxes.findings
        if is_suspected(sample) and is_single(boxes):
            provenance = add_provenance(sample, self.name, {**made_by, "single": screenshot})
            return {**restore_output(sample), "provenance": provenance}, []
        if not (findings or boxes.inputs or boxes.outputs):
            findings.append((BoxNotice.NO_BOX, screenshot))
        inputs, outputs = self._cut_crops(screenshot, boxes) if boxes.usable else ({}, {})
        if not boxes.usable:
            return {**sample, "provenance": add_provenance(sample, self.name, record)}, findings
        prompt, is_modified = sample["prompt"], sample["prompt_modified"]
        if answer.prompt is None:
            findings.append((BoxNotice.PROMPT_NOT_READ, screenshot))
        typed_prompt = (answer.prompt or "").strip()
        if MARK.search(typed_prompt):
            findings.append((SampleNotice.SHORTENED_PROMPT, screenshot))
        elif squeeze(typed_prompt) not in ("", squeeze(prompt)):
            prompt, record["earlier_prompt"] = typed_prompt, prompt
            is_modified = not SpanIndex(texts_of(sample["context"])).contains(typed_prompt)
        replaced = sample["input_images"] if inputs else []
        findings += [(BoxNotice.REPLACED_INPUT, digest) for digest in replaced]
        images = [self.images.put(data) for data in inputs] or list(sample["input_images"])
        output_digests = [self.images.put(data) for data in outputs]
        record |= {"inset": self.inset, "replaced_inputs": list(replaced)}
        return {
            **sample,
            "prompt": prompt,
            "prompt_modified": is_modified,
            "input_images": images,
            "output_images": list(dict.fromkeys([*output_digests, *sample["output_images"]])),
            "is_screenshot": True,
            "input_bboxs": [list(map(float, box)) for box in inputs.values()],
            "output_bboxs": [list(map(float, box)) for box in outputs.values()],
            "sample_digest": sample_digest(prompt, images),
            "provenance": add_provenance(sample, self.name, record),
        }, findings

    def _cut_crops(
        self, screenshot: str, boxes: CheckedBoxes
    ) -> tuple[dict[bytes, PixelBox], dict[bytes, PixelBox]]:
        """Cut out the inputs and the outputs, each with its box."""
        inputs: dict[bytes, PixelBox] = {}
        outputs: dict[bytes, PixelBox] = {}
        try:
            image = rotate_upright(self.images.open(screenshot))
        except ImageError as error:
            boxes.findings.append((PostNotice.BROKEN_IMAGE, f"{screenshot}: {error}"))
            return inputs, outputs
        for places, crops in ((boxes.inputs, inputs), (boxes.outputs, outputs)):
            for box in places:
                try:
                    data = cut_box(image, box, self.inset)
                except ImageError:
                    detail = f"{format_box(box)} with an inset of {self.inset}"
                    boxes.findings.append((BoxNotice.TINY_BOX, detail))
                    continue
                if crops.setdefault(data, box) is not box:
                    boxes.findings.append((BoxNotice.DUPLICATE_BOX, format_box(box)))
                elif crops is outputs and data in inputs:
                    detail = f"{format_box(box)} is an input too"
                    boxes.findings.append((BoxNotice.OVERLAPPING_BOXES, detail))
        return inputs, outputs


def is_single(boxes: CheckedBoxes) -> bool:
    """Return whether the only box of an answer is one output that is the whole image."""
    notices = {notice for notice, _ in boxes.findings} - REPAIRED_NOTICES
    return not boxes.inputs and len(boxes.outputs) == 1 and notices == {BoxNotice.WHOLE_BOX}


def collect_relevant_text(sample: Sample) -> dict[str, Any]:
    """Return the posts and the description that a request shows beside a sample's screenshot."""
    context, own_urls = sample["context"], set(sample["post_urls"])
    shown_places = set[int]()
    for place, post in enumerate(context):
        while post["url"] in own_urls and place >= 0 and place not in shown_places:
            shown_places.add(place)
            place = context[place]["parent"]
    described = (
        image["alt_text"]
        for post in context
        for image in post["pictures"]
        if image["sha256"] == sample["screenshot"] and image["alt_text"]
    )
    texts = [context[place]["text"] for place in sorted(shown_places) if context[place]["text"]]
    *texts, description = shorten_texts([*texts, next(described, None)], MAX_TEXT, MAX_TEXTS)
    return {"posts": texts, "description": description}
