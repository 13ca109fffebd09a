"""One request's way to the server and back."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from echo_hf.engines.base import Completion, ImageRef, Request
from echo_hf.engines.openai.endpoint import Body, Endpoint
from echo_hf.engines.openai.faults import Verdict, failed
from echo_hf.engines.openai.limits import Limits
from echo_hf.engines.openai.messages import estimated_tokens
from echo_hf.engines.openai.reply import OK, Reply, Silence
from echo_hf.engines.openai.retries import retrying
from echo_hf.engines.openai.server import ApiKey
from echo_hf.engines.openai.server_options import ServerOptions
from echo_hf.errors import EchoError, EngineError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

LONGEST_ERROR = 500
# Names, because clients stand on either of two libraries that have the same ones.
UNREACHED = frozenset({"ConnectError", "ConnectTimeout", "ProxyError"})
# Numbers of single calls: without them, what a dead server says is the same each time.
CALL_NUMBER = re.compile(r"\b(?:req|chatcmpl|gen)[-_][\w-]{8,}|\b[0-9a-f-]{24,}\b")


@dataclass(slots=True)
class Caller:
    """Asks one server.

    Attributes:
        options: Options of the engine.
        client: The connection.
        key: Its key, which stays out of every message.
        endpoint: What it is asked for.
        limits: How fast requests may go.
    """

    options: ServerOptions
    client: AsyncOpenAI
    key: ApiKey
    endpoint: Endpoint
    limits: Limits
    _is_reached: bool = field(default=False, init=False)

    async def answer(self, request: Request) -> Completion:
        """What a request comes to.

        Args:
            request: The request.

        Returns:
            The completion; whatever fails in this one request is a value.

        Raises:
            EngineError: No request could succeed before the user has mended something, such as
                where the server was never reached in all attempts.
        """
        unfit = self.endpoint.unfit(request)
        if unfit is not None:
            return failed(unfit)
        policy = retrying(self.options.max_attempts, self.options.backoff_s)
        try:
            prepared = await self._prepared(request)
            verdict: Verdict = await policy(self._attempt, request, prepared)
            completion = verdict.completion
            if not self._is_reached:
                raise EngineError(
                    f"{completion.error}: start the server, or mend base_url; the same command "
                    "goes on from here"
                )
        except EngineError as error:
            raise EngineError(self._shown(str(error))) from None
        except Exception as error:  # a request that nobody thought of is its own failure alone
            known = isinstance(error, EchoError)
            completion = failed(str(error) if known else f"{type(error).__name__}: {error}")
        return replace(completion, error=completion.error and self._shown(completion.error))

    async def _prepared(self, request: Request) -> Any:
        from anyio import to_thread

        parts = (part for message in request.messages for part in message.parts)
        if any(isinstance(part, ImageRef) for part in parts):  # decoding must not stop the loop
            return await to_thread.run_sync(self.endpoint.prepared, request)
        return self.endpoint.prepared(request)

    async def _attempt(self, request: Request, prepared: Any) -> Verdict:
        estimated = 0 if self.limits.tokens is None else estimated_tokens(request)
        reply = await self.endpoint.put(request, prepared, partial(self._sent, estimated))
        self._is_reached = self._is_reached or not (isinstance(reply, Silence) and reply.unreached)
        verdict = self.endpoint.judged(reply)
        if verdict.again and verdict.wait_s is not None:
            self.limits.close_for(verdict.wait_s)
        if isinstance(reply, Reply) and reply.status == OK:
            usage = verdict.completion.usage
            # The estimate stands where the server does not say.
            self.limits.settle(estimated, usage.prompt + usage.completion or estimated)
        return verdict

    async def _sent(self, tokens: int, body: Body) -> Reply | Silence:
        from anyio import sleep

        await sleep(self.limits.reserve(tokens))
        return await self._reply(body)

    async def _reply(self, body: Body) -> Reply | Silence:
        from anyio import fail_after
        from openai import APIConnectionError, APIStatusError, APITimeoutError, Omit

        headers = None if self.key else {"Authorization": Omit()}
        create = self.endpoint.create(self.client)
        try:
            with fail_after(self.options.timeout_s):
                raw = await create(**body, extra_headers=headers)
                return Reply(raw.status_code, raw.headers, raw.text)
        except APIStatusError as error:
            response = error.response
            return Reply(response.status_code, response.headers, response.text)
        except APIConnectionError as error:
            unreached = type(error.__cause__).__name__ in UNREACHED
            if not isinstance(error, APITimeoutError) or unreached:
                said = _said(error)
                lost = f"the connection to {self.options.base_url!r} failed: {said}"
                return Silence(lost, unreached)
        except TimeoutError:
            pass
        return Silence(f"no answer within {self.options.timeout_s:g} s")

    def _shown(self, text: str) -> str:
        line = " ".join(CALL_NUMBER.sub("(id)", self.key.hidden_in(text)).split())
        return line if len(line) <= LONGEST_ERROR else line[: LONGEST_ERROR - 3] + "..."


def _said(error: BaseException) -> str:
    """What the system said first, under all that the libraries made of it."""
    cause = error.__cause__ or error.__context__
    return _said(cause) if cause else str(error) or type(error).__name__
