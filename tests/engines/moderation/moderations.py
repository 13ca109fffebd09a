"""What a moderation server says, and requests to put to it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from PIL import Image

from echo_hf.engines.base import ImageRef, Message, Request, Text
from tests.engines.openai.loopback_server import Answer

MODEL = "omni-moderation-2024-09-26"
CLEAN = {"flagged": False, "categories": {"hate": False}, "category_scores": {"hate": 0.0125}}
SAID_CLEAN = (
    '{"categories": {"hate": false}, "category_scores": {"hate": 0.0125}, "flagged": false, '
    f'"model": "{MODEL}"}}'
)


def moderation(*results: Any, **further: Any) -> Answer:
    """A response with these results, or one that finds nothing wrong."""
    return Answer({"id": "modr-1", "model": MODEL, "results": list(results) or [CLEAN], **further})


def ask(*parts: Text | ImageRef | str) -> Request:
    """A request of one user turn without a declared answer."""
    said = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    return Request("safety", (Message("user", said),), None, 64)


def image(folder: Path, size: tuple[int, int] = (30, 20), red: int = 200) -> ImageRef:
    """An image of one color in a file."""
    file = folder / f"{size[0]}x{size[1]}-{red}.png"
    Image.new("RGB", size, (red, 0, 0)).save(file)
    return ImageRef(hashlib.sha256(file.read_bytes()).hexdigest(), file)
