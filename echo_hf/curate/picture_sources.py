"""Say which post each picture of a sample is from, or which part of the screenshot it is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from echo_hf.multimodal.crops import inner

Sample = Mapping[str, Any]
Entry = dict[str, Any]
INPUT, OUTPUT, SCREENSHOT = "input", "output", "screenshot"


def picture_sources(sample: Sample, posts: Iterable[Mapping[str, Any]]) -> list[Entry]:
    """Where the pictures of a sample are from.

    Args:
        sample: A row of samples.
        posts: Posts that may show them, the ones to prefer first.

    Returns:
        An entry for each input, each output and the screenshot, in this order, as the table of
        samples declares them. Post and address are null where no post shows the picture.
    """
    shown: dict[str, Entry] = {}
    for post in posts:
        for one in post["pictures"] or []:
            shown.setdefault(one["sha256"], {"post_url": post["url"], "url": one["url"]})
    return [
        {
            "sha256": digest,
            "role": role,
            **shown.get(sample["screenshot"] if box else digest, {"post_url": None, "url": None}),
            "of": sample["screenshot"] if box else None,
            "box": box,
            "signature": None,
        }
        for role, digest, box in _pictures(sample)
    ]


def _pictures(sample: Sample) -> Iterator[tuple[str, str, list[int] | None]]:
    inset = inset_of(sample)
    for role in (INPUT, OUTPUT):
        boxes = sample[f"{role}_bboxs"] or []
        # What was cut out stands first.
        for number, digest in enumerate(sample[f"{role}_images"]):
            yield role, digest, _cut_box(boxes[number], inset) if number < len(boxes) else None
    if sample["screenshot"] is not None:
        yield SCREENSHOT, sample["screenshot"], None


def _cut_box(box: Iterable[float], inset: int) -> list[int]:
    left, top, right, bottom = map(int, box)
    return list(inner((left, top, right, bottom), inset))


def inset_of(sample: Sample) -> int:
    """Pixels that were left out along each side of the boxes of a sample."""
    made = json.loads(sample["provenance"] or "{}")
    return int(made.get("screenshots", {}).get("inset", 0))
