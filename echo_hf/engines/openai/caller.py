"""One request's way to the server and back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from echo_hf.engines.base import Completion, ImageRef, Request
from echo_hf.engines.openai.dialect import Dialect, Dialects
from echo_hf.engines.openai.faults import Verdict, failed
from echo_hf.engines.openai.limits import Limits
from echo_hf.engines.openai.messages import Rendered, body, estimated_tokens, rendered
from echo_hf.engines.openai.options import Options
from echo_hf.engines.openai.outcomes import OK, judged
from echo_hf.engines.openai.pictures import PixelRule
from echo_hf.engines.openai.prices import Price
from echo_hf.engines.openai.reply import Reply, Silence, fault_of
from echo_hf.engines.openai.retries import retrying
from echo_hf.engines.openai.server import ApiKey
from echo_hf.errors import EchoError, EngineError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

LONGEST_ERROR = 500
# Numbers of single calls: without them, what a dead server says is the same each time.
CALL_NUMBER = re.compile(r"\b(?:req|chatcmpl|gen)[-_][\w-]{8,}|\b[0-9a-f-]{24,}\b")


@dataclass(frozen=True, slots=True)
class Caller:
    """Asks one server.

    Attributes:
        options: Options of the engine.
        client: The connection.
        key: Its key, which stays out of every message.
        rule: How pictures are resized.
        price: Price of the model's tokens.
        limits: How fast requests may go.
        dialects: What the server understands.
    """

    options: Options
    client: AsyncOpenAI
    key: ApiKey
    rule: PixelRule | None
    price: Price | None
    limits: Limits
    dialects: Dialects

    async def answer(self, request: Request) -> Completion:
        """What a request comes to.

        Args:
            request: The request.

        Returns:
            The completion; whatever fails in this one request is a value.

        Raises:
            EngineError: No request could succeed before the user has mended something.
        """
        policy = retrying(self.options.max_attempts, self.options.backoff_s)
        try:
            messages = await self._rendered(request)
            verdict: Verdict = await policy(self._attempt, request, messages)
            completion = verdict.completion
        except EngineError as error:
            raise EngineError(self._shown(str(error))) from None
        except Exception as error:  # a request that nobody thought of is its own failure alone
            known = isinstance(error, EchoError)
            completion = failed(str(error) if known else f"{type(error).__name__}: {error}")
        return replace(completion, error=completion.error and self._shown(completion.error))

    async def _rendered(self, request: Request) -> list[Rendered]:
        from anyio import to_thread

        parts = (part for message in request.messages for part in message.parts)
        if any(isinstance(part, ImageRef) for part in parts):  # decoding must not stop the loop
            return await to_thread.run_sync(rendered, request, self.rule)
        return rendered(request, self.rule)

    async def _attempt(self, request: Request, messages: Sequence[Rendered]) -> Verdict:
        estimated = 0 if self.limits.tokens is None else estimated_tokens(request)
        reply, spoken = await self._put(request, messages, estimated)
        verdict = judged(reply, self.options, self.price)
        if verdict.again and verdict.wait_s is not None:
            self.limits.close_for(verdict.wait_s)
        if isinstance(reply, Reply) and reply.status == OK:
            usage = verdict.completion.usage
            # The estimate stands where the server does not say.
            self.limits.settle(estimated, usage.prompt + usage.completion or estimated)
            self.dialects.understood(spoken)
        return verdict

    async def _put(
        self, request: Request, messages: Sequence[Rendered], estimated: int
    ) -> tuple[Reply | Silence, Dialect]:
        other: Dialect | None = self.dialects.current
        while other is not None:
            spoken, other = other, None
            await self._admitted(estimated)
            reply = await self._reply(body(request, messages, self.options, spoken))
            if isinstance(reply, Reply) and reply.status != OK:
                other = self.dialects.other(spoken, fault_of(reply))
        return reply, spoken

    async def _admitted(self, tokens: int) -> None:
        from anyio import sleep

        await sleep(self.limits.reserve(tokens))

    async def _reply(self, arguments: dict[str, Any]) -> Reply | Silence:
        from anyio import fail_after
        from openai import APIConnectionError, APIStatusError, APITimeoutError, Omit

        headers = None if self.key else {"Authorization": Omit()}
        create = self.client.chat.completions.with_raw_response.create
        try:
            with fail_after(self.options.timeout_s):
                raw = await create(**arguments, extra_headers=headers)
                return Reply(raw.status_code, raw.headers, raw.text)
        except APIStatusError as error:
            response = error.response
            return Reply(response.status_code, response.headers, response.text)
        except (TimeoutError, APITimeoutError):
            return Silence(f"no answer within {self.options.timeout_s:g} s")
        except APIConnectionError as error:
            cause = error.__cause__
            said = str(cause or "") or type(cause or error).__name__
            return Silence(f"the connection to {self.options.base_url!r} failed: {said}")

    def _shown(self, text: str) -> str:
        line = " ".join(CALL_NUMBER.sub("(id)", self.key.hidden_in(text)).split())
        return line if len(line) <= LONGEST_ERROR else line[: LONGEST_ERROR - 3] + "..."
