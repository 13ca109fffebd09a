"""What the tasks of ECHO in lmms-eval have in common; a model answers with a list of image files.

Outputs are kept in `$ECHO_HF_OUTPUTS/ID.png`, as the adapter `files` of echo-hf reads them: win
rates take the outputs of other systems, and judges.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def doc_to_visual(doc: Mapping[str, Any]) -> list[Any]:
    return [image.convert("RGB") for image in doc["input_images"] or ()]


def process_results(doc: Mapping[str, Any], results: Sequence[str], **_: Any) -> dict[str, Any]:
    """Keeps the first image of an answer, `{"text": ..., "images": [PATH, ...]}`."""
    try:
        first = Path(json.loads(results[0])["images"][0])
        drawn = str(first) if first.is_file() else None
    except (ValueError, TypeError, KeyError, IndexError, OSError):
        drawn = None
    if drawn and (folder := os.environ.get("ECHO_HF_OUTPUTS")):
        Path(folder).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(drawn, Path(folder, doc["id"] + Path(drawn).suffix))
    return {"drawn": float(bool(drawn)), "color_shift": (doc["input_images"] or [], drawn)}


def color_shift(pairs: Sequence[tuple[list[Any], str | None]]) -> float:
    """Distance of the mean colors of inputs and outputs, in levels; NaN where nothing counts."""
    from echo_hf.metrics import color_shift as measured

    found = measured([one for one, _ in pairs], [other for _, other in pairs], n_boot=0).value
    return float("nan") if found is None else found
