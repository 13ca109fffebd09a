"""Boxes of a model of which nobody has said how it names places: kept until somebody does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from echo_hf.samples.boxes import (
    Boxes,
    Convention,
    EngineFrames,
    Frame,
    Numbers,
    Size,
    checked_boxes,
)
from echo_hf.samples.sample import Sample, provenance_of

HELD = "boxes"  # in the provenance of `screenshots`
KEPT = ("inputs", "outputs", "original", "sent")


class ScreenshotBoxes(Protocol):
    @property
    def inputs(self) -> Sequence[Numbers]: ...

    @property
    def outputs(self) -> Sequence[Numbers]: ...


@dataclass(frozen=True)
class HeldBoxes:
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

    asked: Convention
    inputs: Sequence[Numbers]
    outputs: Sequence[Numbers]
    original: Size
    sent: Size
    model: str = ""
    prompt: str | None = None

    @classmethod
    def kept(cls, frames: EngineFrames, original: Size, answer: ScreenshotBoxes) -> HeldBoxes:
        """Those of an answer about a screenshot of this size."""
        sent = replace(frames, convention=Convention.ABS_RESIZED).frame(original).sent
        inputs, outputs = answer.inputs, answer.outputs
        return cls(frames.convention, inputs, outputs, original, sent)

    @classmethod
    def of(cls, sample: Sample) -> HeldBoxes | None:
        """Those of a sample that is not cut."""
        said = provenance_of(sample, "screenshots")
        if sample["is_screenshot"] or HELD not in said:
            return None
        boxes, engine = said[HELD], said["engine"]
        (width, height), (wide, high) = boxes["original"], boxes["sent"]
        return cls(
            Convention(said["convention"]),
            boxes["inputs"],
            boxes["outputs"],
            (width, height),
            (wide, high),
            str(engine.get("model") or engine.get("kind")),
            said["prompt_read"],
        )

    @property
    def told(self) -> dict[str, Any]:
        """What a provenance keeps of them, so that they can be read in any way later."""
        return {HELD: {name: getattr(self, name) for name in KEPT}}

    def frame(self, convention: Convention) -> Frame:
        """What the numbers stand for, if this is what they mean."""
        return Frame(convention, self.original, self.sent)

    def read_as(self, convention: Convention) -> Boxes:
        """The boxes in pixels of the screenshot, if that is what the numbers mean."""
        return checked_boxes(self.inputs, self.outputs, self.frame(convention))
