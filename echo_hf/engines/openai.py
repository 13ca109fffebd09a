"""Any server that speaks OpenAI's chat completions, and one that speaks its moderations."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from echo_hf._infra.http_errors import OK, Reply, api_error, error_in, mapping
from echo_hf.engines.base import Completion, Message, Request, Text, register
from echo_hf.engines.checkpoint import family_of
from echo_hf.engines.pixels import budget_of, image_part
from echo_hf.engines.prices import cost_of, read_usage, usage_of
from echo_hf.engines.schema import REGEX_IN_WORDS, response_format, schema_in_words
from echo_hf.engines.server import (
    EXTRA,
    PACKAGES,
    Document,
    Name,
    Pixels,
    Send,
    ServerEngine,
    ServerOptions,
    server_options,
)
from echo_hf.errors import EchoError

KIND, MODERATION = "openai", "moderation"
BETWEEN_TEXTS = "\n\n"
NO_SCHEMA = frozenset({400, 422})
# Errors may quote the request, and so what people posted: only their beginning speaks of it.
BEGINNING = 500
SCHEMA = re.compile(
    r"response[ _.]?format|json[ _]?schema|structured[ _]?output|guided[ _]|grammar", re.IGNORECASE
)
NEWER_HOST = "api.openai.com"  # whose models take no `max_tokens`
FILTERED = "content_filter"

Rendered = dict[str, Any]

logger = logging.getLogger(__name__)


class Options(ServerOptions):
    """The options of the engine, beside those of any server.

    Attributes:
        ours: Keys of a request that the engine sets itself.
        temperature: Sampling temperature; null where the model takes none.
        top_p: Nucleus sampling; null leaves it to the server.
        seed: Seed of the sampling; null sends none.
        structured: How the declared shape of an answer is asked for. `auto` enforces the schema,
            and asks in words once the server says that it cannot enforce one.
        max_tokens_field: Name of the request's key for the longest answer; `auto` is the newer one
            at OpenAI itself.
        family: Whose rule images are resized by; null with a budget follows the model's name.
        min_pixels: Fewest pixels of an image, null for the family's own.
        max_pixels: Most pixels of an image, null for the family's own.
    """

    ours: ClassVar[frozenset[str]] = frozenset(
        {
            *("max_completion_tokens", "max_tokens", "messages", "model", "n", "response_format"),
            *("seed", "stream", "temperature", "top_p"),
        }
    )

    temperature: Annotated[float, Field(ge=0, le=2)] | None = 0.0
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    seed: int | None = None
    structured: Literal["auto", "json_schema", "json_object", "text"] = "auto"
    max_tokens_field: Literal["auto", "max_tokens", "max_completion_tokens"] = "auto"
    family: str | None = None
    min_pixels: Pixels | None = None


@register(KIND, "a server: vllm serve on many GPUs, or a provider", extra=EXTRA, packages=PACKAGES)
class OpenAIEngine(ServerEngine):
    kind = KIND
    endpoint = "chat.completions"
    sampling = ("temperature", "top_p", "seed", "structured")
    no_document = "the response is not a chat completion"
    options: Options

    def __init__(self, **given: Any) -> None:
        options = server_options(Options, given, KIND)
        budget, bounds = None, (options.min_pixels, options.max_pixels)
        if (options.family, *bounds) != (None, None, None):
            family = options.family or family_of(options.model)
            budget = budget_of(family, *bounds, place=f"engine {KIND!r}")
        super().__init__(options, budget)
        self._tokens_field = options.max_tokens_field
        if self._tokens_field == "auto":
            is_newer = options.server.host == NEWER_HOST
            self._tokens_field = "max_completion_tokens" if is_newer else "max_tokens"
        self._structured = "json_schema" if options.structured == "auto" else options.structured

    def prepared(self, request: Request) -> list[Rendered]:
        return [{"role": one.role, "content": self._content(one)} for one in request.messages]

    def _content(self, message: Message) -> str | list[Rendered]:
        # Not every server takes parts where there is one text alone.
        if len(message.parts) == 1 and isinstance(message.parts[0], Text):
            return message.parts[0].text
        return [
            {"type": "text", "text": part.text}
            if isinstance(part, Text)
            else image_part(part, self._budget)
            for part in message.parts
        ]

    async def put(self, request: Request, prepared: Sequence[Rendered], send: Send) -> Reply:
        """One attempt; a server that cannot enforce a schema is asked in words."""
        spoken = self._structured
        reply = await send(self.body(request, prepared, spoken))
        may_tell = self.options.structured == "auto" and spoken == "json_schema"
        if not may_tell or reply.status not in NO_SCHEMA:
            return reply
        error = api_error(reply)
        if not SCHEMA.search(f"{error.param or ''} {error.message[:BEGINNING]}"):
            return reply
        reply = await send(self.body(request, prepared, "text"))
        if reply.status == OK and self._structured != "text":
            self._structured = "text"
            host = self.options.server.host
            logger.warning("%s enforces no JSON schema: it is asked for in words", host)
        return reply

    def body(self, request: Request, messages: Sequence[Rendered], structured: str) -> Rendered:
        options = self.options
        seed = None if options.seed is None else options.seed + request.repeat
        chosen = {"temperature": options.temperature, "top_p": options.top_p, "seed": seed}
        form, words = Rendered(), None
        if request.answer is not None and structured == "json_schema":
            form = {"response_format": response_format(request.answer)}
        elif request.answer is not None:
            words = schema_in_words(request.answer)
            if structured == "json_object":
                form = {"response_format": {"type": "json_object"}}
        elif request.regex is not None:
            words = REGEX_IN_WORDS + request.regex
        return {
            "model": options.model,
            "messages": list(messages) if words is None else _instructed(messages, words),
            self._tokens_field: request.max_tokens,
            **{name: value for name, value in chosen.items() if value is not None},
            **form,
        }

    def answer(self, document: Document, reply: Reply) -> Completion:
        choices = document.get("choices")
        choice = mapping(choices[0]) if isinstance(choices, list) and choices else {}
        if error := choice.get("error"):  # a provider broke it off
            return self.fault(error_in(reply, error))
        usage = usage_of(read_usage(document))
        paid = Completion(None, None, "error", usage, cost_of(document, self._price))
        message = choice.get("message")
        if not isinstance(message, Mapping):
            return replace(paid, error=f"{self.no_document}: it has no choices[0].message")
        text, reason = message.get("content"), choice.get("finish_reason")
        if refusal := message.get("refusal") or (FILTERED if reason == FILTERED else None):
            return replace(paid, error=str(refusal), finish_reason="refusal")
        if not isinstance(text, str | None):
            return replace(paid, error=f"{self.no_document}: its content is not text")
        if reason == "length":
            return replace(paid, text=text or "", finish_reason="length")
        if reason != "stop":
            return replace(paid, error=f"the answer ended with finish_reason {reason!r}")
        if text is None:
            return replace(paid, error="the answer has no content")
        return replace(paid, text=text, finish_reason="stop")


def _instructed(messages: Sequence[Rendered], words: str) -> list[Rendered]:
    if not messages or messages[0]["role"] != "system":
        return [{"role": "system", "content": words}, *messages]
    content = messages[0]["content"]
    more = f"\n\n{words}" if isinstance(content, str) else [{"type": "text", "text": words}]
    return [{**messages[0], "content": content + more}, *messages[1:]]


Score = Annotated[float, Field(allow_inf_nan=False)]


class ModerationOptions(ServerOptions):
    """The options of the engine: those of any server, of which none is required.

    Attributes:
        ours: Keys of a request that the engine sets itself.
        model: Name of the model, as the server knows it.
    """

    ours: ClassVar[frozenset[str]] = frozenset({"input", "model"})

    model: Name = "omni-moderation-latest"


class ModerationResult(BaseModel):
    """What a model says of one request: null for a category that it does not know."""

    model_config = ConfigDict(strict=True, frozen=True)

    categories: dict[str, bool | None]
    category_scores: dict[str, Score | None]
    flagged: bool


class ModerationResponse(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)

    model: str
    # Several would be of parts of the request, and the first would not stand for the others.
    results: Annotated[list[ModerationResult], Field(min_length=1, max_length=1)]


@register(
    MODERATION, "a moderation endpoint, for the safety stage alone", extra=EXTRA, packages=PACKAGES
)
class ModerationEngine(ServerEngine):
    kind = MODERATION
    endpoint = "moderations"
    no_document = "the response is not a moderation"
    options: ModerationOptions

    def __init__(self, **given: Any) -> None:
        options = server_options(ModerationOptions, given, MODERATION)
        most = options.max_pixels
        super().__init__(options, None if most is None else budget_of(None, max_pixels=most))

    def prepared(self, request: Request) -> list[dict[str, Any]]:
        parts = [part for message in request.messages for part in message.parts]
        text = BETWEEN_TEXTS.join(part.text for part in parts if isinstance(part, Text))
        images = request.images
        if request.answer is not None or request.regex is not None:
            raise EchoError(
                f"stage {request.task!r} wants an answer of a declared form, which a moderation "
                "endpoint does not write: give the stage an engine with a model that does"
            )
        if len(images) > 1 or not (images or text.strip()):
            raise EchoError(
                f"{len(images)} images and {len(text)} characters in one request: a moderation "
                "endpoint takes one image, or text, or both"
            )
        said = [{"type": "text", "text": text}] if text.strip() else []
        return [*said, *(image_part(image, self._budget) for image in images)]

    async def put(self, _: Request, prepared: list[dict[str, Any]], send: Send) -> Reply:
        return await send({"model": self.options.model, "input": prepared})

    def answer(self, document: Document, _: Reply) -> Completion:
        """The verdict, in a form that does not depend on the server."""
        price, usage = self._price, usage_of(read_usage(document))
        # The endpoint counts no tokens: without a count, only what is free has a known price.
        cost = 0.0 if price is not None and price.is_free else cost_of(document, price)
        try:
            response = ModerationResponse.model_validate(dict(document))
        except ValidationError as error:
            # Without the value, which may be what somebody posted.
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            where, said = ".".join(map(str, first["loc"])), first["msg"]
            told = f"{self.no_document}: {where}: {said[:1].lower()}{said[1:]}"
            return Completion(None, told, "error", usage, cost)
        verdict = {**response.results[0].model_dump(), "model": response.model}
        text = json.dumps(verdict, sort_keys=True, ensure_ascii=False)
        return Completion(text, usage=usage, cost_usd=cost)
