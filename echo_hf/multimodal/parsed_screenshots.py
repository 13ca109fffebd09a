"""Rows of samples whose screenshot was taken apart: the prompt in it, and ready pictures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from PIL import Image

from echo_hf.context.sample_id import sample_digest
from echo_hf.context.spans import SpanIndex, squeezed
from echo_hf.errors import PictureError
from echo_hf.multimodal.box_conventions import Frame, shown
from echo_hf.multimodal.boxes import Boxes, Finding, Pixels, checked_boxes
from echo_hf.multimodal.crops import cut, upright
from echo_hf.multimodal.screenshots_answer import ScreenshotsAnswer
from echo_hf.pictures import PictureStore
from echo_hf.reasons import Notice
from echo_hf.shortening import MARK

Sample = Mapping[str, Any]
Crop = tuple[Pixels, bytes]


@dataclass(frozen=True)
class ScreenshotParser:
    """Makes of a sample and an answer the row that goes on.

    Attributes:
        pictures: Where the screenshot is, and where the crops go.
        inset: Pixels to leave out along each side of a box.
        made_by: What made the decisions, for the provenance.
    """

    pictures: PictureStore
    inset: int
    made_by: Mapping[str, Any]

    def row(
        self, sample: Sample, answer: ScreenshotsAnswer, frame: Frame
    ) -> tuple[dict[str, Any], list[Finding]]:
        """The row of a sample, and what was noticed.

        Args:
            sample: A row of samples in context, with a screenshot.
            answer: What an engine said about the screenshot.
            frame: What the numbers of its boxes mean.

        Returns:
            Values of the columns, those of the sample where nothing may be cut; and the findings.
        """
        boxes = checked_boxes(answer.inputs, answer.outputs, frame)
        if not boxes.findings and not (boxes.inputs or boxes.outputs):
            boxes.findings.append((Notice.NO_BOX, sample["screenshot"]))
        crops = self._crops(sample["screenshot"], boxes) if boxes.usable else ([], [])
        said = {"prompt_read": answer.prompt, "convention": str(frame.convention)}
        if not boxes.usable:
            return {**sample, "provenance": self._provenance(sample, said)}, boxes.findings
        return self._parsed(sample, answer, crops, boxes.findings, said), boxes.findings

    def _parsed(
        self,
        sample: Sample,
        answer: ScreenshotsAnswer,
        crops: tuple[list[Crop], list[Crop]],
        findings: list[Finding],
        said: Mapping[str, Any],
    ) -> dict[str, Any]:
        prompt, changed = _prompt(sample, answer, findings)
        inputs, outputs = ([self.pictures.put(data) for _, data in some] for some in crops)
        replaced = sample["input_images"] if inputs else []
        findings += [(Notice.REPLACED_INPUT, one) for one in replaced]
        pictures = inputs or list(sample["input_images"])
        said = {**said, "inset": self.inset, "replaced_inputs": list(replaced)}
        if prompt != sample["prompt"]:
            said |= {"earlier_prompt": sample["prompt"]}
        return {
            **sample,
            "prompt": prompt,
            "prompt_modified": changed,
            "input_images": pictures,
            "output_images": list(dict.fromkeys([*outputs, *sample["output_images"]])),
            "is_screenshot": True,
            "input_bboxs": [list(map(float, box)) for box, _ in crops[0]],
            "output_bboxs": [list(map(float, box)) for box, _ in crops[1]],
            "sample_digest": sample_digest(prompt, pictures),
            "provenance": self._provenance(sample, said),
        }

    def _crops(self, screenshot: str, boxes: Boxes) -> tuple[list[Crop], list[Crop]]:
        try:
            picture = upright(self.pictures.open(screenshot))
        except PictureError as error:
            boxes.findings.append((Notice.BROKEN_PICTURE, f"{screenshot}: {error}"))
            return [], []
        inputs, outputs = (
            self._cut(picture, some, boxes.findings) for some in (boxes.inputs, boxes.outputs)
        )
        also = {data for _, data in inputs}
        for box, data in outputs:
            if data in also:
                boxes.findings.append((Notice.OVERLAPPING_BOXES, f"{shown(box)} is an input too"))
        return inputs, outputs

    def _cut(
        self, picture: Image.Image, boxes: Sequence[Pixels], findings: list[Finding]
    ) -> list[Crop]:
        crops: dict[bytes, Pixels] = {}
        for box in boxes:
            try:
                data = cut(picture, box, self.inset)
            except PictureError:
                findings.append((Notice.TINY_BOX, f"{shown(box)} with an inset of {self.inset}"))
                continue
            if crops.setdefault(data, box) is not box:
                findings.append((Notice.DUPLICATE_BOX, shown(box)))
        return [(box, data) for data, box in crops.items()]

    def _provenance(self, sample: Sample, said: Mapping[str, Any]) -> str:
        earlier = json.loads(sample["provenance"])
        made = {**earlier, "screenshots": {**self.made_by, **said}}
        return json.dumps(made, sort_keys=True, default=str)


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
    texts = [post["text"] or "" for post in sample["context"]]
    described = [one["alt_text"] or "" for post in sample["context"] for one in post["pictures"]]
    return read, not SpanIndex([*texts, *described]).holds(read)
