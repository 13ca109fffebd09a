"""A request as an OpenAI-compatible server reads it: messages, images, and what it supports."""

from __future__ import annotations

import base64
import io
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from PIL import Image
from pydantic import BaseModel, Field

from echo_hf._infra.http_errors import ApiError
from echo_hf.engines.base import ImageRef, Message, Request, Text
from echo_hf.engines.checkpoint import budget_of, family_of
from echo_hf.engines.pixels import sent_reference
from echo_hf.engines.planner import TOKENS_PER_IMAGE, estimate_tokens
from echo_hf.engines.schema import regex_in_words, response_format, schema_in_words
from echo_hf.engines.server import Pixels, ServerOptions, checked_as

PLACE = "engine 'openai'"

Structured = Literal["auto", "json_schema", "json_object", "text"]
MaxTokensField = Literal["auto", "max_tokens", "max_completion_tokens"]


class Options(ServerOptions):
    """The options of the engine, beside those of any server.

    Attributes:
        ours: Keys of a request that the engine sets itself.
        temperature: Sampling temperature; null where the model takes none.
        top_p: Nucleus sampling; null leaves it to the server.
        seed: Seed of the sampling; null sends none.
        structured: How the declared shape of an answer is asked for. `auto` enforces the schema,
            and asks in words once the server says that it cannot enforce one.
        max_tokens_field: Name of the request's key for the longest answer; `auto` finds out.
        family: Whose rule images are resized by; null with a budget follows the model's name.
        min_pixels: Fewest pixels of an image, null for the family's own.
        max_pixels: Most pixels of an image, null for the family's own.
    """

    ours: ClassVar[frozenset[str]] = frozenset(
        {
            "max_completion_tokens",
            "max_tokens",
            "messages",
            "model",
            "n",
            "response_format",
            "seed",
            "stream",
            "temperature",
            "top_p",
        }
    )

    temperature: Annotated[float, Field(ge=0, le=2)] | None = 0.0
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    seed: int | None = None
    structured: Structured = "auto"
    max_tokens_field: MaxTokensField = "auto"
    family: str | None = None
    min_pixels: Pixels | None = None


def read_options(options: Mapping[str, Any]) -> Options:
    return checked_as(Options, options, PLACE)


REFUSED = frozenset({400, 422})
# Errors may quote the request, and so what people posted: only their beginning speaks of it.
BEGINNING = 500
SCHEMA = re.compile(
    r"response[ _.]?format|json[ _]?schema|structured[ _]?output|guided[ _]|grammar", re.IGNORECASE
)
UNKNOWN = re.compile(
    r"un(?:supported|known|recogni[sz]ed|expected)|not (?:supported|permitted|allowed)"
    r"|extra (?:inputs|fields)|cannot find field",
    re.IGNORECASE,
)
HOSTS_WITH_COMPLETION_TOKENS = frozenset({"api.openai.com"})

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Dialect:
    structured: Literal["json_schema", "json_object", "text"]
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"]


class Dialects:
    """The way in which a server is asked, as far as it is known."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.current = _first(options)

    def other(self, spoken: Dialect, error: ApiError) -> Dialect | None:
        """What to try after a server did not understand."""
        if error.status not in REFUSED:
            return None
        options, said = self._options, f"{error.param or ''} {error.message[:BEGINNING]}"
        if (
            options.structured == "auto"
            and spoken.structured == "json_schema"
            and SCHEMA.search(said)
        ):
            return replace(spoken, structured="text")
        first = _first(options)
        unheard = options.max_tokens_field == "auto" and (
            spoken.max_tokens_field == first.max_tokens_field
        )
        if unheard and spoken.max_tokens_field in said and UNKNOWN.search(said):
            return replace(spoken, max_tokens_field=_counterpart(spoken))
        return None

    def understood(self, spoken: Dialect) -> None:
        """Makes a way that worked, after another had not, that of all further requests."""
        if spoken == self.current:
            return
        if spoken.structured != self.current.structured:
            logger.warning(
                "%s does not enforce a JSON schema: it is asked for in words, and answers are "
                "checked all the same",
                self._options.server.host,
            )
        self.current = spoken


def _first(options: Options) -> Dialect:
    field = options.max_tokens_field
    if field == "auto":
        newer = options.server.host in HOSTS_WITH_COMPLETION_TOKENS
        field = "max_completion_tokens" if newer else "max_tokens"
    return Dialect("json_schema" if options.structured == "auto" else options.structured, field)


def _counterpart(spoken: Dialect) -> Literal["max_tokens", "max_completion_tokens"]:
    older = spoken.max_tokens_field == "max_tokens"
    return "max_completion_tokens" if older else "max_tokens"


# What every server takes, by the first bytes of a file; in WEBP's, four bytes say its length.
SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}


@dataclass(frozen=True, slots=True)
class PixelRule:
    family: str | None
    min_pixels: int | None
    max_pixels: int | None

    def describe(self) -> dict[str, Any]:
        """What of it decides an answer."""
        budget = budget_of(self.family, self.min_pixels, self.max_pixels)
        return {
            "factor": budget.factor,
            "min_pixels": budget.min_pixels,
            "max_pixels": budget.max_pixels,
        }


def pixel_rule(options: Options) -> PixelRule | None:
    budget = (options.min_pixels, options.max_pixels)
    if options.family is None and budget == (None, None):
        return None
    rule = PixelRule(options.family or family_of(options.model), *budget)
    rule.describe()
    return rule


def data_url(reference: ImageRef, rule: PixelRule | None) -> str:
    sent = sent_reference(
        reference,
        family=rule.family if rule else None,
        min_pixels=rule.min_pixels if rule else None,
        max_pixels=rule.max_pixels if rule else None,
    )
    if rule is None and reference.file is not None:
        data = reference.file.read_bytes()
        mime = mime_type(data)
        if mime is not None:
            return _url(mime, data)
    return _url("image/png", _png(sent.image))


def mime_type(data: bytes) -> str | None:
    """The type of an image by its content, null for one that not every server takes."""
    found = next((mime for start, mime in SIGNATURES.items() if data.startswith(start)), None)
    return None if found == "image/webp" and data[8:12] != b"WEBP" else found


def _png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=1)  # it travels once
    return buffer.getvalue()


def _url(mime: str, data: bytes) -> str:
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


Rendered = dict[str, Any]


def rendered(request: Request, rule: PixelRule | None) -> list[Rendered]:
    return [{"role": each.role, "content": _content(each, rule)} for each in request.messages]


def body(
    request: Request, messages: Sequence[Rendered], options: Options, dialect: Dialect
) -> Rendered:
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
    parts = [part for message in request.messages for part in message.parts]
    texts = sum(estimate_tokens(part.text) for part in parts if isinstance(part, Text))
    return texts + TOKENS_PER_IMAGE * sum(isinstance(part, ImageRef) for part in parts)


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
