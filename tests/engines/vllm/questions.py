"""Questions for a model, and what can be known of its answers without understanding them."""

from __future__ import annotations

import os
import select
from pathlib import Path

from PIL import Image
from pydantic import BaseModel

from echo_hf.engines.base import Completion, ImageRef, Message, Request, Text
from echo_hf.pipeline.answers import Failure, parse
from tests.bundled_threads import Bundled

LONGEST_S = 30


def ask(*parts: Text | ImageRef | str, max_tokens: int = 8) -> Request:
    said = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    return Request("look", (Message("user", said),), None, max_tokens)


def prompt_tokens(request: Request) -> int:
    parts = [part for message in request.messages for part in message.parts]
    letters = sum(len(part.text.encode()) for part in parts if isinstance(part, Text))
    turns = sum(len(f"{message.role}\n\n") + 2 for message in request.messages)
    shown = sum(
        2 + patches(part.file) for part in parts if isinstance(part, ImageRef) and part.file
    )
    return letters + turns + len("assistant\n") + 1 + shown


def patches(file: Path) -> int:
    from transformers.models.qwen2_vl.image_processing_qwen2_vl import smart_resize

    with Image.open(file) as opened:
        high, wide = smart_resize(opened.height, opened.width, 28, 4 * 28**2, 1280 * 28**2)
    return int(high * wide // 28**2)


def valid(request: Request, completion: Completion) -> BaseModel:
    """The answer, which must have the declared shape."""
    answer = parse(request, completion, b"")
    assert not isinstance(answer, Failure), (answer, completion)
    return answer


def images_of(corpus: Bundled, many: int) -> list[ImageRef]:
    every = [image["sha256"] for post in corpus.posts["pictures"] for image in post]
    digests = list(dict.fromkeys(every))[:many]
    return [ImageRef(digest, corpus.images.path(digest)) for digest in digests]


def ended(held: int) -> bool:
    ready, _, _ = select.select([held], [], [], LONGEST_S)
    os.close(held)
    return bool(ready)
