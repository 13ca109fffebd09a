"""Functions of the tasks of ECHO in lmms-eval; a model answers with a list of image files.

The files lie in `$ECHO_HF_ANSWERS`, which is the working directory where it is not set: what a
model answers is text, and may name any file. Outputs are kept in `$ECHO_HF_OUTPUTS/ID.png`, as the
adapter `files` of echo-hf reads them: win rates take the outputs of other systems, and judges.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# No separator and no leading dot: it stays in its folder.
FILE_NAME = re.compile(r"[^/\\:\0.][^/\\:\0]{0,199}")


def doc_to_visual(doc: Mapping[str, Any]) -> list[Any]:
    return [image.convert("RGB") for image in doc["input_images"] or ()]


def process_results(doc: Mapping[str, Any], results: Sequence[str], **_: Any) -> dict[str, Any]:
    """Keep the first image of an answer, `{"text": ..., "images": [PATH, ...]}`."""
    from echo_hf.errors import ImageError
    from echo_hf.systems.files import read_image

    answers = Path(os.environ.get("ECHO_HF_ANSWERS") or Path.cwd())
    try:
        first = answers / json.loads(results[0])["images"][0]
        image, path = read_image(first, answers), str(first)
    except (ValueError, TypeError, KeyError, IndexError, RecursionError, ImageError):
        image, path = b"", None
    if path and (folder := os.environ.get("ECHO_HF_OUTPUTS")):
        name = str(doc["id"])
        if not FILE_NAME.fullmatch(name):
            raise ValueError(f"id {name[:80]!r} is no name of a file: expected a release of ECHO")
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / f"{name}{first.suffix}").write_bytes(image)
    return {"drawn": float(bool(path)), "color_shift": (doc["input_images"] or [], path)}


def color_shift(pairs: Sequence[tuple[list[Any], str | None]]) -> float:
    """Measure the distance of mean colors of inputs and outputs, in levels; NaN without pairs."""
    from echo_hf.metrics import color_shift as measure

    inputs, outputs = [images for images, _ in pairs], [output for _, output in pairs]
    shift = measure(inputs, outputs, n_boot=0).value
    return float("nan") if shift is None else shift
