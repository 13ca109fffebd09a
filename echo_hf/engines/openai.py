"""Engines for servers with OpenAI's chat completions API, or with its moderations API."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from echo_hf._infra.http_errors import (
    OK,
    ApiError,
    HttpResponse,
    JsonObject,
    as_mapping,
    parse_error,
    read_api_error,
)
from echo_hf._infra.retry import RequestError
from echo_hf.engines.base import (
    Completion,
    CompletionStream,
    Message,
    Request,
    Text,
    check_installed,
    register,
)
from echo_hf.engines.batch_api import open_batch_api
from echo_hf.engines.batch_rows import (
    AskRows,
    BatchOptions,
    BatchSwitch,
    Row,
    ask_in_folder,
    make_row,
)
from echo_hf.engines.batches import BatchAsking
from echo_hf.engines.checkpoint import failed_completion, model_family
from echo_hf.engines.pixels import build_image_part, pixel_budget
from echo_hf.engines.prices import (
    compute_call_cost,
    find_batch_price,
    parse_usage,
    read_billed_tokens,
)
from echo_hf.engines.schema import REGEX_INSTRUCTION, build_response_format, describe_schema
from echo_hf.engines.server import (
    EXTRA,
    PACKAGES,
    NonEmptyText,
    PixelCount,
    SendBody,
    ServerEngine,
    ServerOptions,
    error_completion,
    read_server_options,
)
from echo_hf.errors import EchoError, EngineError

KIND, MODERATION = "openai", "moderation"
TEXT_SEPARATOR = "\n\n"
SCHEMA_REFUSED_STATUSES = frozenset({400, 422})
# Errors may quote the request, and so what people posted: only their beginning speaks of it.
MAX_SEARCHED = 500
SCHEMA_ERROR = re.compile(
    r"response[ _.]?format|json[ _]?schema|structured[ _]?output|guided[ _]|grammar", re.IGNORECASE
)
NEWER_HOST = "api.openai.com"  # whose models take no `max_tokens`
FILTERED = "content_filter"
BATCH_URL = "/v1/chat/completions"

RequestBody = dict[str, Any]

logger = logging.getLogger(__name__)


class OpenAIOptions(ServerOptions):
    """Options of the engine, beside those of any server.

    Attributes:
        reserved_keys: Keys of a request that the engine sets itself.
        temperature: Sampling temperature; null where the model takes none.
        top_p: Nucleus sampling; null leaves it to the server.
        seed: Seed of the sampling; null sends none.
        structured: How the declared shape of an answer is asked for. `auto` enforces the schema,
            and asks in words once the server says that it cannot enforce one.
        max_tokens_field: Name of the request's key for the longest answer; `auto` is the newer one
            at OpenAI itself.
        family: Whose rule images are resized by; null with a budget follows the model's name.
        batch: Send requests as files that the provider answers within a day, mostly at half the
            price: `true`, or the limits of such files.
        min_pixels: Fewest pixels of an image, null for the family's own.
        max_pixels: Most pixels of an image, null for the family's own.
    """

    reserved_keys: ClassVar[frozenset[str]] = frozenset(
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
    batch: BatchSwitch = None
    family: str | None = None
    min_pixels: PixelCount | None = None


@register(KIND, "a server: vllm serve on many GPUs, or a provider", extra=EXTRA, packages=PACKAGES)
class OpenAIEngine(ServerEngine):
    kind = KIND
    endpoint = "chat.completions"
    sampling = ("temperature", "top_p", "seed", "structured")
    no_document = "the response is not a chat completion"
    options: OpenAIOptions

    def __init__(self, **options: Any) -> None:
        checked = read_server_options(OpenAIOptions, options, KIND)
        budget, pixel_bounds = None, (checked.min_pixels, checked.max_pixels)
        if (checked.family, *pixel_bounds) != (None, None, None):
            family = checked.family or model_family(checked.model)
            budget = pixel_budget(family, *pixel_bounds, place=f"engine {KIND!r}")
        super().__init__(checked, budget)
        self._tokens_field = checked.max_tokens_field
        if self._tokens_field == "auto":
            is_newer = checked.server.host == NEWER_HOST
            self._tokens_field = "max_completion_tokens" if is_newer else "max_tokens"
        self._structured = "json_schema" if checked.structured == "auto" else checked.structured
        self._finished_batches = set[str]()
        self._set_batch_price()

    def _set_batch_price(self) -> None:
        options, server = self.options, self.options.server
        batch, row = options.batch, find_batch_price(server.label)
        if row is not None and row.own_form:
            if batch is not None and batch.folder is None:
                raise EngineError(
                    f"engine {KIND!r} has batch, and {server.host!r} takes batches in its own "
                    "form alone: leave out `batch`, or name another provider"
                )
            row = None
        share = batch.price_share if batch else None
        if share is None and (server.is_private or (batch and batch.folder)):
            share = 1.0  # who answers by oneself has one price
        if share is not None:
            self.batch_price = self.plain_price and self.plain_price.scale(share, share)
        elif row is not None:
            self.batch_price = self.plain_price and self.plain_price.scale(row.share, row.cached)
        self.batch_hours = row.hours if row else None
        if batch is not None:
            self._use_price(self.batch_price)

    def prepare(self, request: Request) -> list[RequestBody]:
        return [
            {"role": message.role, "content": self._render(message)} for message in request.messages
        ]

    def _render(self, message: Message) -> str | list[RequestBody]:
        # Not every server takes parts where there is one text alone.
        if len(message.parts) == 1 and isinstance(message.parts[0], Text):
            return message.parts[0].text
        return [
            {"type": "text", "text": part.text}
            if isinstance(part, Text)
            else build_image_part(part, self._budget)
            for part in message.parts
        ]

    async def send(
        self, request: Request, prepared: Sequence[RequestBody], send: SendBody
    ) -> HttpResponse:
        """Send once; without the schema where the server cannot enforce one."""
        structured = self._structured
        reply = await send(self.make_body(request, prepared, structured))
        if not self._refuses_schema(reply, structured):
            return reply
        reply = await send(self.make_body(request, prepared, "text"))
        if reply.status == OK:
            self._ask_in_words()
        return reply

    def _refuses_schema(self, reply: HttpResponse, structured: str) -> bool:
        can_fall_back = self.options.structured == "auto" and structured == "json_schema"
        if not can_fall_back or reply.status not in SCHEMA_REFUSED_STATUSES:
            return False
        error = read_api_error(reply)
        return bool(SCHEMA_ERROR.search(f"{error.param or ''} {error.message[:MAX_SEARCHED]}"))

    def _ask_in_words(self) -> None:
        if self._structured != "text":
            self._structured = "text"
            host = self.options.server.host
            logger.warning("%s enforces no JSON schema: it is asked for in words", host)

    def _iterate_completions(self, requests: Iterator[Request]) -> CompletionStream:
        if (options := self.options.batch) is None:
            yield from super()._iterate_completions(requests)
            return
        check_installed(self.kind)
        self._key = self.options.server.read_key(self.options.api_key_env, os.environ)
        numbered: Iterator[tuple[int, Request]] = enumerate(requests)
        structured = self._structured
        try:
            with self._open_batches(options) as ask:
                while True:
                    refused = list[tuple[int, Request]]()
                    yield from self._ask_in_batches(ask, numbered, structured, refused)
                    if not refused:
                        return
                    numbered, structured = iter(refused), "text"
        except RequestError as error:
            message = f"{error}: the same command goes on from here"
            raise EngineError(self._clean_message(message)) from None
        except EngineError as error:
            raise EngineError(self._clean_message(str(error))) from None

    @contextmanager
    def _open_batches(self, options: BatchOptions) -> Iterator[AskRows]:
        if options.folder is not None:
            yield partial(ask_in_folder, Path(options.folder), self.options.model)
            return
        own, scope, finished = self.options, self.signature(), self._finished_batches

        def advise(error: ApiError) -> str | None:
            return error.find_advice(own.model, own.base_url, own.api_key_env)

        with open_batch_api(own.base_url, self._key, own.timeout_s, self.retries, advise) as api:
            yield lambda rows: BatchAsking(api, options, scope, finished).stream(rows)

    def _ask_in_batches(
        self,
        ask: AskRows,
        numbered: Iterable[tuple[int, Request]],
        structured: str,
        refused: list[tuple[int, Request]],
    ) -> CompletionStream:
        """Yield completions; requests whose schema the server refused come into `refused`."""
        under_way, unmade = dict[int, Request](), list[tuple[int, Completion]]()

        def make_rows() -> Iterator[Row]:
            for number, request in numbered:
                try:
                    body = self.make_body(request, self.prepare(request), structured)
                    body |= self.options.extra_body
                    row = make_row(number, BATCH_URL, body, request.repeat)
                except EngineError:
                    raise
                except Exception as error:  # its own failure alone
                    unmade.append((number, failed_completion(error)))
                    continue
                under_way[number] = request
                yield row

        for number, response in ask(make_rows()):
            request = under_way.pop(number)
            if isinstance(response, str):
                yield number, error_completion(self._clean_message(response))
            elif self._refuses_schema(response, structured):
                refused.append((number, request))
            else:
                if structured == "text" and response.status == OK:
                    self._ask_in_words()
                yield number, self._read_row(response)
        yield from unmade

    def _read_row(self, response: HttpResponse) -> Completion:
        try:
            completion = self.read_response(response)
        except RequestError as error:
            completion = error_completion(str(error))
        message = completion.error and self._clean_message(completion.error)
        return replace(completion, error=message)

    def make_body(
        self, request: Request, messages: Sequence[RequestBody], structured: str
    ) -> RequestBody:
        options = self.options
        seed = None if options.seed is None else options.seed + request.repeat
        sampling = {"temperature": options.temperature, "top_p": options.top_p, "seed": seed}
        form, words = RequestBody(), None
        if request.answer is not None and structured == "json_schema":
            form = {"response_format": build_response_format(request.answer)}
        elif request.answer is not None:
            words = describe_schema(request.answer)
            if structured == "json_object":
                form = {"response_format": {"type": "json_object"}}
        elif request.regex is not None:
            words = REGEX_INSTRUCTION + request.regex
        return {
            "model": options.model,
            "messages": list(messages) if words is None else _add_words(messages, words),
            self._tokens_field: request.max_tokens,
            **{name: value for name, value in sampling.items() if value is not None},
            **form,
        }

    def read_answer(self, document: JsonObject, response: HttpResponse) -> Completion:
        choices = document.get("choices")
        choice = as_mapping(choices[0]) if isinstance(choices, list) and choices else {}
        if error := choice.get("error"):  # a provider broke it off
            return self.handle_error(parse_error(response, error))
        usage = parse_usage(read_billed_tokens(document))
        billed = Completion(None, None, "error", usage, compute_call_cost(document, self._price))
        message = choice.get("message")
        if not isinstance(message, Mapping):
            return replace(billed, error=f"{self.no_document}: it has no choices[0].message")
        text, reason = message.get("content"), choice.get("finish_reason")
        if refusal := message.get("refusal") or (FILTERED if reason == FILTERED else None):
            return replace(billed, error=str(refusal), finish_reason="refusal")
        if not isinstance(text, str | None):
            return replace(billed, error=f"{self.no_document}: its content is not text")
        if reason == "length":
            return replace(billed, text=text or "", finish_reason="length")
        if reason != "stop":
            return replace(billed, error=f"the answer ended with finish_reason {reason!r}")
        if text is None:
            return replace(billed, error="the answer has no content")
        return replace(billed, text=text, finish_reason="stop")


def _add_words(messages: Sequence[RequestBody], words: str) -> list[RequestBody]:
    if not messages or messages[0]["role"] != "system":
        return [{"role": "system", "content": words}, *messages]
    content = messages[0]["content"]
    extra = f"\n\n{words}" if isinstance(content, str) else [{"type": "text", "text": words}]
    return [{**messages[0], "content": content + extra}, *messages[1:]]


CategoryScore = Annotated[float, Field(allow_inf_nan=False)]


class ModerationOptions(ServerOptions):
    """Options of the engine: those of any server, none of them required.

    Attributes:
        reserved_keys: Keys of a request that the engine sets itself.
        model: Name of the model, as the server knows it.
    """

    reserved_keys: ClassVar[frozenset[str]] = frozenset({"input", "model"})

    model: NonEmptyText = "omni-moderation-latest"


class ModerationResult(BaseModel):
    """A model's verdict on one request: null for a category that it does not know."""

    model_config = ConfigDict(strict=True, frozen=True)

    categories: dict[str, bool | None]
    category_scores: dict[str, CategoryScore | None]
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

    def __init__(self, **options: Any) -> None:
        checked = read_server_options(ModerationOptions, options, MODERATION)
        limit = checked.max_pixels
        super().__init__(checked, None if limit is None else pixel_budget(None, max_pixels=limit))

    def prepare(self, request: Request) -> list[dict[str, Any]]:
        parts = [part for message in request.messages for part in message.parts]
        text = TEXT_SEPARATOR.join(part.text for part in parts if isinstance(part, Text))
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
        text_parts = [{"type": "text", "text": text}] if text.strip() else []
        return [*text_parts, *(build_image_part(image, self._budget) for image in images)]

    async def send(
        self, _: Request, prepared: list[dict[str, Any]], send: SendBody
    ) -> HttpResponse:
        return await send({"model": self.options.model, "input": prepared})

    def read_answer(self, document: JsonObject, _: HttpResponse) -> Completion:
        """Read the verdict, in a form that does not depend on the server."""
        price, usage = self._price, parse_usage(read_billed_tokens(document))
        # The endpoint counts no tokens: without a count, only what is free has a known price.
        cost = 0.0 if price is not None and price.is_free else compute_call_cost(document, price)
        try:
            response = ModerationResponse.model_validate(dict(document))
        except ValidationError as error:
            # Without the value, which may be what somebody posted.
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            place, reason = ".".join(map(str, first["loc"])), first["msg"]
            message = f"{self.no_document}: {place}: {reason[:1].lower()}{reason[1:]}"
            return Completion(None, message, "error", usage, cost)
        verdict = {**response.results[0].model_dump(), "model": response.model}
        text = json.dumps(verdict, sort_keys=True, ensure_ascii=False)
        return Completion(text, usage=usage, cost_usd=cost)
