"""Any server that speaks OpenAI's moderations: a classifier says what is wrong with a request."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from echo_hf._infra.http_errors import Reply
from echo_hf.engines.base import Completion, ImageRef, Request, Text, register
from echo_hf.engines.openai_messages import PixelRule, data_url
from echo_hf.engines.prices import cost_of, read_usage, usage_of
from echo_hf.engines.server import Name, ServerOptions, checked_as
from echo_hf.engines.server_engine import (
    EXTRA,
    PACKAGES,
    Document,
    Send,
    ServerEngine,
    read_document,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI


BETWEEN_TEXTS = "\n\n"
MOST_IMAGES = 1


def _text(request: Request) -> str:
    parts = (part for message in request.messages for part in message.parts)
    return BETWEEN_TEXTS.join(part.text for part in parts if isinstance(part, Text))


def _images(request: Request) -> list[ImageRef]:
    parts = (part for message in request.messages for part in message.parts)
    return [part for part in parts if isinstance(part, ImageRef)]


PLACE = "engine 'moderation'"


class ModerationOptions(ServerOptions):
    """The options of the engine: those of any server, of which none is required.

    Attributes:
        ours: Keys of a request that the engine sets itself.
        model: Name of the model, as the server knows it.
    """

    ours: ClassVar[frozenset[str]] = frozenset({"input", "model"})

    model: Name = "omni-moderation-latest"


def read_options(options: Mapping[str, Any]) -> ModerationOptions:
    return checked_as(ModerationOptions, options, PLACE)


NO_MODERATION = "the response is not a moderation"

Score = Annotated[float, Field(allow_inf_nan=False)]


class Moderation(BaseModel):
    """What a model says of one request.

    Attributes:
        categories: Whether each category applies; null where the model does not say.
        category_scores: How sure it is, mostly from 0 to 1; null where it does not say.
        flagged: Whether any category applies.
    """

    model_config = ConfigDict(strict=True, frozen=True)

    categories: dict[str, bool | None]
    category_scores: dict[str, Score | None]
    flagged: bool


class _Response(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)

    model: str
    # Several would be of parts of the request, and the first would not stand for the others.
    results: Annotated[list[Moderation], Field(min_length=1, max_length=1)]


def verdict_text(document: Document) -> str:
    """The verdict in a response, in a form that does not depend on the server."""
    response = _Response.model_validate(dict(document))
    verdict = {**response.results[0].model_dump(), "model": response.model}
    return json.dumps(verdict, sort_keys=True, ensure_ascii=False)


def _told(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}"


class ModerationEngine(ServerEngine):
    """Asks a server that speaks OpenAI's moderations, one request for each of ours."""

    kind = "moderation"
    options: ModerationOptions

    def __init__(self, **options: Any) -> None:
        read = read_options(options)
        most = read.max_pixels
        super().__init__(read, None if most is None else PixelRule(None, None, most))

    def unfit(self, request: Request) -> str | None:
        if request.answer is not None or request.regex is not None:
            return (
                f"stage {request.task!r} wants an answer of a declared form, which a moderation "
                "endpoint does not write: give the stage an engine with a model that does"
            )
        images = len(_images(request))
        if images > MOST_IMAGES:
            return (
                f"{images} images in one request, expected at most {MOST_IMAGES}: a "
                "moderation endpoint takes no more; ask about each by itself"
            )
        if not images and not _text(request).strip():
            return "neither text nor an image: there is nothing to moderate"
        return None

    def prepared(self, request: Request) -> list[dict[str, Any]]:
        """All texts of a request as one, and its image."""
        text = _text(request)
        said = [{"type": "text", "text": text}] if text.strip() else []
        urls = [data_url(image, self._rule) for image in _images(request)]
        return [*said, *({"type": "image_url", "image_url": {"url": url}} for url in urls)]

    async def put(self, _: Request, prepared: list[dict[str, Any]], send: Send) -> Reply:
        body = {"model": self.options.model, "input": prepared}
        return await send({**body, "extra_body": dict(self.options.extra_body) or None})

    def create(self, client: AsyncOpenAI) -> Callable[..., Awaitable[Any]]:
        return client.moderations.with_raw_response.create

    def judged(self, reply: Reply) -> Completion:
        """What a response makes of a request; raises what `completion_of` does."""
        document, price = read_document(reply, self.options, NO_MODERATION), self._price
        if isinstance(document, Completion):
            return document
        usage = usage_of(read_usage(document))
        # The endpoint counts no tokens: without a count, only what is free has a known price.
        cost = 0.0 if price is not None and price.is_free else cost_of(document, price)
        try:
            text = verdict_text(document)
        except ValidationError as error:
            return Completion(None, f"{NO_MODERATION}: {_told(error)}", "error", usage, cost)
        return Completion(text, usage=usage, cost_usd=cost)


register(
    ModerationEngine.kind,
    "a moderation endpoint, for the safety stage alone",
    extra=EXTRA,
    packages=PACKAGES,
)(ModerationEngine)
