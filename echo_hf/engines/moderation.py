"""Any server that speaks OpenAI's moderations: a classifier says what is wrong with a request."""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from echo_hf._infra.http_errors import Reply
from echo_hf.engines.base import Completion, Request, Text, register
from echo_hf.engines.pixels import PixelRule, image_part
from echo_hf.engines.prices import cost_of, read_usage, usage_of
from echo_hf.engines.server import (
    EXTRA,
    PACKAGES,
    Document,
    Name,
    Send,
    ServerEngine,
    ServerOptions,
    server_options,
)
from echo_hf.errors import EchoError

KIND = "moderation"
BETWEEN_TEXTS = "\n\n"

Score = Annotated[float, Field(allow_inf_nan=False)]


class ModerationOptions(ServerOptions):
    """The options of the engine: those of any server, of which none is required.

    Attributes:
        ours: Keys of a request that the engine sets itself.
        model: Name of the model, as the server knows it.
    """

    ours: ClassVar[frozenset[str]] = frozenset({"input", "model"})

    model: Name = "omni-moderation-latest"


class _Moderation(BaseModel):
    """What a model says of one request: null for a category that it does not know."""

    model_config = ConfigDict(strict=True, frozen=True)

    categories: dict[str, bool | None]
    category_scores: dict[str, Score | None]
    flagged: bool


class _Response(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)

    model: str
    # Several would be of parts of the request, and the first would not stand for the others.
    results: Annotated[list[_Moderation], Field(min_length=1, max_length=1)]


class ModerationEngine(ServerEngine):
    kind = KIND
    endpoint = "moderations"
    no_document = "the response is not a moderation"
    options: ModerationOptions

    def __init__(self, **given: Any) -> None:
        options = server_options(ModerationOptions, given, KIND)
        rule = PixelRule(family=None, min_pixels=None, max_pixels=options.max_pixels)
        super().__init__(options, None if options.max_pixels is None else rule)

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
        return [*said, *(image_part(image, self._rule) for image in images)]

    async def put(self, _: Request, prepared: list[dict[str, Any]], send: Send) -> Reply:
        return await send({"model": self.options.model, "input": prepared})

    def answer(self, document: Document, _: Reply) -> Completion:
        """The verdict, in a form that does not depend on the server."""
        price, usage = self._price, usage_of(read_usage(document))
        # The endpoint counts no tokens: without a count, only what is free has a known price.
        cost = 0.0 if price is not None and price.is_free else cost_of(document, price)
        try:
            response = _Response.model_validate(dict(document))
        except ValidationError as error:
            # Without the value, which may be what somebody posted.
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            where, said = ".".join(map(str, first["loc"])), first["msg"]
            told = f"{self.no_document}: {where}: {said[:1].lower()}{said[1:]}"
            return Completion(None, told, "error", usage, cost)
        verdict = {**response.results[0].model_dump(), "model": response.model}
        text = json.dumps(verdict, sort_keys=True, ensure_ascii=False)
        return Completion(text, usage=usage, cost_usd=cost)


register(KIND, "a moderation endpoint, for the safety stage alone", extra=EXTRA, packages=PACKAGES)(
    ModerationEngine
)
