"""A request made ready for a model: the conversation in its own notation, and the pictures."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PIL import Image

from echo_hf.engines.base import ImageRef, Message, Request, Text
from echo_hf.engines.pixels import SentPicture

Render = Callable[[list[dict[str, Any]]], str]
Read = Callable[[ImageRef], SentPicture]
# Part of the engine's signature: who changes these words gets new answers.
SCHEMA_WORDS = "Answer with one JSON object that fits this JSON schema, and with nothing else:"
SEED_BITS = 63


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A request that a model can be given as it is.

    Attributes:
        request: What is asked.
        text: The conversation, written as the model's template says.
        images: Its pictures, in the order of their places in the text.
    """

    request: Request
    text: str
    images: tuple[Image.Image, ...]

    @property
    def kind(self) -> tuple[int, bool, bool]:
        """What the questions of a batch must have in common."""
        return self.request.max_tokens, self.request.answer is None, not self.images

    @property
    def length(self) -> tuple[int, int]:
        """How much there is to read, in pixels and in characters."""
        return sum(image.width * image.height for image in self.images), len(self.text)

    def seed(self, base: int) -> int:
        """A number that stands for the question's own draws, whatever it shares a batch with.

        Args:
            base: The config's seed.

        Returns:
            63 bits.
        """
        digest = hashlib.sha256(f"{base}:{self.text}".encode("utf-8", "surrogatepass"))
        for message in self.request.messages:
            for part in message.parts:
                if isinstance(part, ImageRef):
                    digest.update(part.sha256.encode())
        return int.from_bytes(digest.digest()[:8]) >> (64 - SEED_BITS)


def question(request: Request, render: Render, read: Read) -> Question:
    """Makes a request ready.

    Args:
        request: What is asked.
        render: Writes chat messages as the model's template says.
        read: Gives what is sent of a picture.

    Returns:
        The question.

    Raises:
        PictureError: One of its pictures cannot be read; whatever `render` raises is passed on.
    """
    messages = instructed(request)
    images = tuple(
        read(part).image
        for message in messages
        for part in message.parts
        if isinstance(part, ImageRef)
    )
    chat = [
        {"role": message.role, "content": [_content(part) for part in message.parts]}
        for message in messages
    ]
    return Question(request, render(chat), images)


def instructed(request: Request) -> tuple[Message, ...]:
    """The messages of a request, with the schema of the answer behind the instructions.

    Args:
        request: What is asked.

    Returns:
        The messages; unchanged where the answer is plain text.
    """
    if request.answer is None:
        return request.messages
    schema = json.dumps(request.answer.model_json_schema(), ensure_ascii=False)
    first, *others = request.messages
    words = Text(f"\n\n{SCHEMA_WORDS}\n{schema}")
    return (Message(first.role, (*first.parts, words)), *others)


def _content(part: Text | ImageRef) -> dict[str, str]:
    if isinstance(part, ImageRef):
        return {"type": "image"}
    return {"type": "text", "text": part.text}
