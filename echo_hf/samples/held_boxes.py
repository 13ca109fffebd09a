"""Boxes of a model whose convention is unknown: stored until a person says how to read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from echo_hf.images.loader import PixelSize
from echo_hf.samples.boxes import (
    BoxNumbers,
    CheckedBoxes,
    Convention,
    EngineFrames,
    Frame,
    convert_boxes,
)
from echo_hf.samples.sample import Sample, read_provenance

STORED_BOXES_KEY = "boxes"  # key in the provenance of `screenshots`
STORED_FIELDS = ("inputs", "outputs", "original", "sent")


class ScreenshotBoxes(Protocol):
    @property
    def inputs(self) -> Sequence[BoxNumbers]: ...

    @property
    def outputs(self) -> Sequence[BoxNumbers]: ...


@dataclass(frozen=True)
class StoredBoxes:
    """The boxes of an answer, with the numbers as they were answered.

    Attributes:
        asked_convention: The convention that the model was told.
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
        """Return the boxes of an answer about a screenshot of this size."""
        sent = replace(frames, convention=Convention.ABS_RESIZED).frame(original).sent
        inputs, outputs = answer.inputs, answer.outputs
        return cls(frames.convention, inputs, outputs, original, sent)

    @classmethod
    def from_sample(cls, sample: Sample) -> StoredBoxes | None:
        """Return the stored boxes of a sample; null if it has none, or is cut."""
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
        """The boxes as a provenance stores them, to be read in any convention later."""
        return {STORED_BOXES_KEY: {name: getattr(self, name) for name in STORED_FIELDS}}

    def frame(self, convention: Convention) -> Frame:
        """Return the frame of the boxes, if they are meant in this convention."""
        return Frame(convention, self.original, self.sent)

    def read_as(self, convention: Convention) -> CheckedBoxes:
        """Return the boxes in pixels of the screenshot, if they are meant in this convention."""
        return convert_boxes(self.inputs, self.outputs, self.frame(convention))
