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
REGEX_WORDS = "Answer with text that this regular expression matches whole, and nothing else:"
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
        return self.request.max_tokens, self.has_form, not self.images

    @property
    def has_form(self) -> bool:
        """Whether the answer has to have a form: a schema, or a regular expression."""
        return self.request.answer is not None or self.request.regex is not None

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
    """The messages of a request, with the form of the answer behind the instructions.

    Args:
        request: What is asked.

    Returns:
        The messages; unchanged where the answer is plain text.
    """
    form = _form_in_words(request)
    if form is None:
        return request.messages
    first, *others = request.messages
    return (Message(first.role, (*first.parts, Text(f"\n\n{form}"))), *others)


def _form_in_words(request: Request) -> str | None:
    if request.answer is not None:
        schema = json.dumps(request.answer.model_json_schema(), ensure_ascii=False)
        return f"{SCHEMA_WORDS}\n{schema}"
    return None if request.regex is None else f"{REGEX_WORDS}\n{request.regex}"


def _content(part: Text | ImageRef) -> dict[str, str]:
    if isinstance(part, ImageRef):
        return {"type": "image"}
    return {"type": "text", "text": part.text}
