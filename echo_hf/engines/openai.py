"""Any server that speaks OpenAI's chat completions: `vllm serve`, OpenAI, Gemini, OpenRouter."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from echo_hf._infra.http_errors import OK, Reply, api_error, error_in
from echo_hf.engines.base import Completion, Request, register
from echo_hf.engines.openai_messages import (
    Dialect,
    Dialects,
    Options,
    Rendered,
    body,
    pixel_rule,
    read_options,
    rendered,
)
from echo_hf.engines.prices import cost_of, read_usage, usage_of
from echo_hf.engines.server_engine import (
    EXTRA,
    PACKAGES,
    Send,
    ServerEngine,
    completion_of,
    read_document,
    refused,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI


FILTERED = "content_filter"
NO_COMPLETION = "the response is not a chat completion"


def _first_choice(document: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = document.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, Mapping) else {}


def _outcome(choice: Mapping[str, Any], paid: Completion) -> Completion:
    message, reason = choice.get("message"), choice.get("finish_reason")
    if not isinstance(message, Mapping):
        return replace(paid, error=f"{NO_COMPLETION}: it has no choices[0].message")
    if message.get("refusal"):
        return refused(str(message["refusal"]), paid)
    if reason == FILTERED:
        return refused(FILTERED, paid)
    return _said(message.get("content"), reason, paid)


def _said(text: Any, reason: Any, paid: Completion) -> Completion:
    if not isinstance(text, str | None):
        return replace(paid, error=f"{NO_COMPLETION}: its content is not text")
    if reason == "length":
        return replace(paid, text=text or "", finish_reason="length")
    if reason != "stop":
        return replace(paid, error=f"the answer ended with finish_reason {reason!r}")
    if text is None:
        return replace(paid, error="the answer has no content")
    return replace(paid, text=text, finish_reason="stop")


class OpenAIEngine(ServerEngine):
    """Asks a server that speaks OpenAI's chat completions."""

    kind = "openai"
    sampling = ("temperature", "top_p", "seed", "structured")
    options: Options

    def __init__(self, **options: Any) -> None:
        read = read_options(options)
        super().__init__(read, pixel_rule(read))
        self._dialects = Dialects(read)

    def prepared(self, request: Request) -> list[Rendered]:
        return rendered(request, self._rule)

    async def put(self, request: Request, prepared: Sequence[Rendered], send: Send) -> Reply:
        """One attempt; what the server does not understand is put to it in another way."""
        other: Dialect | None = self._dialects.current
        while other is not None:
            spoken, other = other, None
            reply = await send(body(request, prepared, self.options, spoken))
            if reply.status != OK:
                other = self._dialects.other(spoken, api_error(reply))
        if reply.status == OK:
            self._dialects.understood(spoken)
        return reply

    def create(self, client: AsyncOpenAI) -> Callable[..., Awaitable[Any]]:
        return client.chat.completions.with_raw_response.create

    def judged(self, reply: Reply) -> Completion:
        """What a response makes of a request; raises what `completion_of` does."""
        document = read_document(reply, self.options, NO_COMPLETION)
        if isinstance(document, Completion):
            return document
        choice = _first_choice(document)
        if error := choice.get("error"):
            return completion_of(error_in(reply, error), self.options)
        cost_usd = cost_of(document, self._price)
        paid = Completion(None, None, "error", usage_of(read_usage(document)), cost_usd)
        return _outcome(choice, paid)


register(
    OpenAIEngine.kind,
    "a server: vllm serve on many GPUs, or a provider",
    extra=EXTRA,
    packages=PACKAGES,
)(OpenAIEngine)
