"""Boxes of a model of which nobody has said how it names places: kept until somebody does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

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

HELD, SIZES = "boxes", "sizes"  # in the provenance of `screenshots`


def held(frames: EngineFrames, frame: Frame, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
    """What the provenance keeps of an answer, so that its boxes can be read in any way later."""
    sent = replace(frames, convention=Convention.ABS_RESIZED).frame(frame.original).sent
    sizes = {"original": list(frame.original), "sent": list(sent)}
    return {HELD: {"inputs": list(inputs), "outputs": list(outputs)}, SIZES: sizes}


@dataclass(frozen=True)
class HeldBoxes:
    """The boxes of an answer as they were answered.

    Attributes:
        model: Who drew them.
        asked: The convention that it was told.
        prompt: What it read in the screenshot.
        inputs: Around images that went in.
        outputs: Around those that came out.
        original: Width and height of the screenshot.
        sent: Those of the image that the model was sent, as far as is known.
    """

    model: str
    asked: Convention
    prompt: str | None
    inputs: Sequence[Numbers]
    outputs: Sequence[Numbers]
    original: Size
    sent: Size

    @classmethod
    def of(cls, sample: Sample) -> HeldBoxes | None:
        """Those of a sample that is not cut."""
        said = provenance_of(sample, "screenshots")
        if sample["is_screenshot"] or HELD not in said:
            return None
        engine: Mapping[str, Any] = said["engine"]
        (width, height), (wide, high) = said[SIZES]["original"], said[SIZES]["sent"]
        return cls(
            str(engine.get("model") or engine.get("kind")),
            Convention(said["convention"]),
            said["prompt_read"],
            said[HELD]["inputs"],
            said[HELD]["outputs"],
            (width, height),
            (wide, high),
        )

    def read_as(self, convention: Convention) -> Boxes:
        """The boxes in pixels of the screenshot, if that is what the numbers mean."""
        return checked_boxes(self.inputs, self.outputs, Frame(convention, self.original, self.sent))
