"""A request as a server reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from echo_hf.engines.base import ImageRef, Message, Request, Text
from echo_hf.engines.openai.dialect import Dialect
from echo_hf.engines.openai.options import Options
from echo_hf.engines.openai.pictures import PixelRule, data_url
from echo_hf.engines.openai.schema import regex_in_words, response_format, schema_in_words
from echo_hf.engines.planner import TOKENS_PER_PICTURE, estimate_tokens

Rendered = dict[str, Any]


def rendered(request: Request, rule: PixelRule | None) -> list[Rendered]:
    """The conversation, pictures and all.

    Args:
        request: The request.
        rule: How pictures are resized.

    Returns:
        The value of `messages`.

    Raises:
        PictureError: A picture is missing, changed, or cannot be decoded.
    """
    return [{"role": each.role, "content": _content(each, rule)} for each in request.messages]


def body(
    request: Request, messages: Sequence[Rendered], options: Options, dialect: Dialect
) -> Rendered:
    """Everything that is sent for a request.

    Args:
        request: The request.
        messages: Its conversation, rendered.
        options: Options of the engine.
        dialect: What the server understands.

    Returns:
        The arguments of the client's `create`.
    """
    sampling = {
        "temperature": options.temperature,
        "top_p": options.top_p,
        "seed": None if options.seed is None else options.seed + request.repeat,
    }
    return {
        "model": options.model,
        "messages": list(messages),
        dialect.max_tokens_field: request.max_tokens,
        **{name: value for name, value in sampling.items() if value is not None},
        **_formed(request, messages, dialect),
        "extra_body": dict(options.extra_body) or None,
    }


def estimated_tokens(request: Request) -> int:
    """Tokens of a request's prompt, roughly."""
    parts = [part for message in request.messages for part in message.parts]
    texts = sum(estimate_tokens(part.text) for part in parts if isinstance(part, Text))
    return texts + TOKENS_PER_PICTURE * sum(isinstance(part, ImageRef) for part in parts)


def _content(message: Message, rule: PixelRule | None) -> str | list[Rendered]:
    # Not every server takes parts where there is one text alone.
    if len(message.parts) == 1 and isinstance(message.parts[0], Text):
        return message.parts[0].text
    return [_part(part, rule) for part in message.parts]


def _part(part: Text | ImageRef, rule: PixelRule | None) -> Rendered:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    return {"type": "image_url", "image_url": {"url": data_url(part, rule)}}


def _formed(request: Request, messages: Sequence[Rendered], dialect: Dialect) -> Rendered:
    if request.answer is not None:
        return _shaped(messages, request.answer, dialect)
    if request.regex is not None:
        return {"messages": _instructed(messages, regex_in_words(request.regex))}
    return {}


def _shaped(messages: Sequence[Rendered], answer: type[BaseModel], dialect: Dialect) -> Rendered:
    if dialect.structured == "json_schema":
        return {"response_format": response_format(answer)}
    told = {"messages": _instructed(messages, schema_in_words(answer))}
    if dialect.structured == "json_object":
        return {**told, "response_format": {"type": "json_object"}}
    return told


def _instructed(messages: Sequence[Rendered], words: str) -> list[Rendered]:
    if not messages or messages[0]["role"] != "system":
        return [{"role": "system", "content": words}, *messages]
    content = messages[0]["content"]
    if isinstance(content, str):
        content = f"{content}\n\n{words}"
    else:
        content = [*content, {"type": "text", "text": words}]
    return [{**messages[0], "content": content}, *messages[1:]]
