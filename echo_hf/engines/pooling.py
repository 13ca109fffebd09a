"""Engine for reward models behind vLLM's pooling routes, which answer with a number."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

from echo_hf._infra.http_errors import HttpResponse, JsonObject, as_mapping
from echo_hf.engines.base import Completion, ImageRef, Message, Request, Text, register
from echo_hf.engines.pixels import build_image_part, pixel_budget
from echo_hf.engines.prices import compute_call_cost, parse_usage, read_billed_tokens
from echo_hf.engines.server import (
    EXTRA,
    PACKAGES,
    SendBody,
    ServerEngine,
    ServerOptions,
    read_server_options,
)
from echo_hf.errors import EchoError, EngineError

KIND = "pooling"
Head = Literal["single", "difference"]
RAW_RESPONSE = "X-Stainless-Raw-Response"  # asks the client for a response, and is not sent
ANSWER_FIELDS = {"classify": "probs", "pooling": "data", "score": "score"}


def read_head(values: Sequence[float], head: Head) -> str:
    """Return the number of a head as JSON: its one output, or the second less the first of two.

    What is not finite is written as Python reads it: NaN, Infinity.

    Raises:
        EngineError: It has another number of outputs.
    """
    wanted = 2 if head == "difference" else 1
    if len(values) != wanted:
        raise EngineError(
            f"the head has {len(values)} outputs, and `head: {head}` takes {wanted}: expected "
            "`single` for a head with one, `difference` for one with two"
        )
    return json.dumps(float(values[-1]) - (float(values[0]) if wanted == 2 else 0.0))


class PoolingOptions(ServerOptions):
    """Options of the engine, beside those of any server.

    Attributes:
        reserved_keys: Keys of a request that the engine sets itself.
        route: `classify` or `pooling`, which take messages as a chat does; or `score`, which
            takes the image at the end as a document and all before it as the query.
        activation: Whether the server applies a sigmoid or softmax; without it numbers near both
            ends keep their order.
        head: `single`, the head's one output; `difference`, of two the second less the first, which
            without activation is the log-odds of the second.
        family: Whose rule images are resized by; null for as they are.
    """

    reserved_keys: ClassVar[frozenset[str]] = frozenset(
        {"input", "messages", "model", "task", "text_1", "text_2", "use_activation"}
    )

    route: Literal["classify", "pooling", "score"] = "classify"
    activation: bool = False
    head: Head = "single"
    family: str | None = None


@register(KIND, "a reward model behind vllm serve", extra=EXTRA, packages=PACKAGES)
class PoolingEngine(ServerEngine):
    kind = KIND
    gives_scalars = True
    sampling = ("route", "activation", "head")
    no_document = "the response is not of a pooling route"
    options: PoolingOptions

    def __init__(self, **options: Any) -> None:
        checked = read_server_options(PoolingOptions, options, KIND)
        budget, limits = None, (checked.family, checked.max_pixels)
        if limits != (None, None):
            place = f"engine {KIND!r}"
            budget = pixel_budget(checked.family, max_pixels=checked.max_pixels, place=place)
        super().__init__(checked, budget)

    def prepare(self, request: Request) -> JsonObject:
        if request.answer is not None or request.regex is not None:
            raise EchoError(
                f"stage {request.task!r} wants an answer in words, and engine {KIND!r} gives a "
                "number: name it for a judge of form scalar"
            )
        if self.options.route == "score":
            return self._build_pair(request.messages)
        chat = [
            {"role": message.role, "content": self._render(message.parts)}
            for message in request.messages
        ]
        task = {"task": "classify"} if self.options.route == "pooling" else {}
        return {"messages": chat, **task}

    def _build_pair(self, messages: Sequence[Message]) -> JsonObject:
        (*others, last) = messages
        (*query, document) = last.parts
        if others or not query or not isinstance(document, ImageRef):
            raise EngineError(
                "route 'score' takes a query and an image after it, in one message: give the judge "
                "a judge_file without system, such as {task}{inputs}{output}"
            )
        return {
            "text_1": {"content": self._render(query)},
            "text_2": {"content": self._render([document])},
        }

    def _render(self, parts: Sequence[Text | ImageRef]) -> list[Any]:
        return [
            {"type": "text", "text": part.text}
            if isinstance(part, Text)
            else build_image_part(part, self._budget)
            for part in parts
        ]

    async def send(self, _: Request, prepared: JsonObject, send: SendBody) -> HttpResponse:
        options = self.options
        return await send(
            {"model": options.model, "use_activation": options.activation, **prepared}
        )

    async def _call(self, client: Any, body: JsonObject, headers: Any) -> HttpResponse:
        # The routes lie beside /v1, not below it.
        address = self.options.base_url.rstrip("/").removesuffix("/v1")
        raw = await client.post(
            f"{address}/{self.options.route}",
            cast_to=object,
            body={**body, **self.options.extra_body},
            options={"headers": {**(headers or {}), RAW_RESPONSE: "true"}},
        )
        return HttpResponse(raw.status_code, raw.headers, raw.text)

    def read_answer(self, document: JsonObject, _: HttpResponse) -> Completion:
        # A route that writes nothing may not count what it wrote.
        counted = {
            **document,
            "usage": {"completion_tokens": 0, **as_mapping(document.get("usage"))},
        }
        tokens = parse_usage(read_billed_tokens(counted))
        billed = Completion(None, None, "error", tokens, compute_call_cost(counted, self._price))
        rows, field = document.get("data"), ANSWER_FIELDS[self.options.route]
        row = rows[0] if isinstance(rows, list) and len(rows) == 1 else None
        values = row.get(field) if isinstance(row, Mapping) else None
        values = values if isinstance(values, list) else [values]
        if not all(type(value) in (int, float) for value in values):
            return replace(
                billed, error=f"{self.no_document}: data[0].{field} is no list of numbers"
            )
        return replace(billed, text=read_head(values, self.options.head), finish_reason="stop")
