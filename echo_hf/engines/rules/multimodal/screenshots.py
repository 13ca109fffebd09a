"""Say where pictures are in a screenshot and which went in; reading words needs a model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from echo_hf.engines.rules.multimodal.rectangles import pictures_in
from echo_hf.engines.upright import upright_rgb
from echo_hf.errors import PictureError

LONGEST_SIDE = 2000  # what is larger is looked at in a smaller size
COLLAGE = 0.5  # of the area: in a window there is more than pictures
LEANS = 0.1  # of the width
SMALLER = 0.6


def screenshots(inputs: Mapping[str, Any]) -> str | None:
    """Answers a request about a screenshot.

    Args:
        inputs: file, the path of the screenshot.

    Returns:
        The boxes as JSON, in pixels of the upright picture, without the prompt; null where no
        picture is found.
    """
    try:
        picture = upright_rgb(inputs["file"])
    except PictureError:
        return None
    shrink = -(-max(picture.size) // LONGEST_SIDE)
    seen = pictures_in(np.asarray(picture.reduce(shrink), dtype=np.int16))
    ends = picture.size * 2
    boxes = [[min(at * shrink, end) for at, end in zip(box, ends, strict=True)] for box in seen]
    areas = ((box[2] - box[0]) * (box[3] - box[1]) for box in boxes)
    is_collage = sum(areas) > COLLAGE * picture.width * picture.height
    went_in = 1 if is_collage else _went_in(boxes, picture.width)
    if went_in >= len(boxes):
        return None
    told = {"inputs": boxes[:went_in], "outputs": boxes[went_in:]}
    return json.dumps({"prompt": None, **told})


def _went_in(boxes: Sequence[Sequence[int]], width: int) -> int:
    """How many pictures of a window people put in, those being the first ones.

    They stand above the results, and further to the right than they do, or are much smaller.
    """
    above = [box for box in boxes if box[1] < boxes[0][3]]
    below = boxes[len(above) :]
    if not below:
        return 0
    leans = min(box[0] for box in above) - min(box[0] for box in below) > LEANS * width
    small, wide = (max(box[2] - box[0] for box in some) for some in (above, below))
    return len(above) if leans or small < SMALLER * wide else 0
