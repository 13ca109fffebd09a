"""Boxes of a model of which nobody has said how it names places: kept until somebody does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from echo_hf.samples.boxes import (
    BoxNumbers,
    CheckedBoxes,
    Convention,
    EngineFrames,
    Frame,
    PixelSize,
    convert_boxes,
)
from echo_hf.samples.sample import Sample, read_provenance

STORED_BOXES_KEY = "boxes"  # in the provenance of `screenshots`
STORED_FIELDS = ("inputs", "outputs", "original", "sent")


class ScreenshotBoxes(Protocol):
    @property
    def inputs(self) -> Sequence[BoxNumbers]: ...

    @property
    def outputs(self) -> Sequence[BoxNumbers]: ...


@dataclass(frozen=True)
class StoredBoxes:
    """The boxes of an answer as they were answered.

    Attributes:
        asked: The convention that the model was told.
        inputs: Around images that went in.
        outputs: Around those that came out.
        original: Width and height of the screenshot.
        sent: Those of the image that the model was sent, as far as is known.
        model: Who drew them.
        prompt: What it read in the screenshot.
    """

    asked_convention: Convention
    inputs: Sequence[BoxNumbers]
    outputs: Sequence[BoxNumbers]
    original: PixelSize
    sent: PixelSize
    model: str = ""
    prompt: str | None = None

    @classmethod
    def from_answer(
        cls, frames: EngineFrames, original: PixelSize, answer: ScreenshotBoxes
    ) -> StoredBoxes:
        """Those of an answer about a screenshot of this size."""
        sent = replace(frames, convention=Convention.ABS_RESIZED).frame(original).sent
        inputs, outputs = answer.inputs, answer.outputs
        return cls(frames.convention, inputs, outputs, original, sent)

    @classmethod
    def from_sample(cls, sample: Sample) -> StoredBoxes | None:
        """Those of a sample that is not cut."""
        record = read_provenance(sample, "screenshots")
        if sample["is_screenshot"] or STORED_BOXES_KEY not in record:
            return None
        boxes, engine = record[STORED_BOXES_KEY], record["engine"]
        (width, height), (sent_width, sent_height) = boxes["original"], boxes["sent"]
        return cls(
            Convention(record["convention"]),
            boxes["inputs"],
            boxes["outputs"],
            (width, height),
            (sent_width, sent_height),
            str(engine.get("model") or engine.get("kind")),
            record["prompt_read"],
        )

    @property
    def provenance_fields(self) -> dict[str, Any]:
        """What a provenance keeps of them, so that they can be read in any way later."""
        return {STORED_BOXES_KEY: {name: getattr(self, name) for name in STORED_FIELDS}}

    def frame(self, convention: Convention) -> Frame:
        """What the numbers stand for, if this is what they mean."""
        return Frame(convention, self.original, self.sent)

    def read_as(self, convention: Convention) -> CheckedBoxes:
        """The boxes in pixels of the screenshot, if that is what the numbers mean."""
        return convert_boxes(self.inputs, self.outputs, self.frame(convention))
