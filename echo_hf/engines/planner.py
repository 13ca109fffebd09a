"""The order in which requests go to an engine, and what they will cost before they do.

An engine with a prefix cache computes a shared beginning once, as long as requests that share it
follow each other: the same instructions first, then the same pictures.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from echo_hf.engines.base import ImageRef, Message, Request, Text

CHARACTERS_PER_TOKEN = 4
WIDE_CHARACTERS_PER_TOKEN = 1
TOKENS_PER_PICTURE = 1280


def plan_order(requests: Sequence[Request]) -> list[int]:
    """Numbers of the requests in the order to send them.

    Args:
        requests: Any requests.

    Returns:
        A permutation: grouped by instructions, then by pictures, else as given.

    Example:
        >>> from pydantic import BaseModel
        >>> def ask(words: str) -> Request:
        ...     return Request("t", (Message("system", (Text(words),)),), BaseModel, 8)
        >>> plan_order([ask("b"), ask("a"), ask("b")])
        [0, 2, 1]
    """
    by_object: dict[int, int] = {}
    by_message: dict[Message, int] = {}
    by_pictures: dict[tuple[int, tuple[str, ...]], int] = {}

    def place(request: Request) -> tuple[int, int]:
        first = request.messages[0]
        prefix = by_object.get(id(first))
        if prefix is None:  # equal instructions are mostly one object, and slow to compare
            prefix = by_object[id(first)] = by_message.setdefault(first, len(by_message))
        return prefix, by_pictures.setdefault((prefix, _pictures(request)), len(by_pictures))

    places = [place(request) for request in requests]
    return sorted(range(len(requests)), key=places.__getitem__)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a stage is about to ask.

    Attributes:
        requests: All calls that the rows need.
        stored: Those whose answer is kept already.
        prompt_tokens: Estimate for the rest, prefix sharing not counted.
        shared_tokens: Part of them that repeats the instructions of the request before.
        pictures: Pictures in the rest.
    """

    requests: int = 0
    stored: int = 0
    prompt_tokens: int = 0
    shared_tokens: int = 0
    pictures: int = 0

    @property
    def calls(self) -> int:
        """Calls still to make."""
        return self.requests - self.stored

    def cost_usd(self, dollars_per_million_tokens: float) -> float:
        """Price of the prompts in US dollars; answers come on top."""
        return self.prompt_tokens * dollars_per_million_tokens / 1e6


def extended(plan: Plan, asked: Iterable[Request], stored: int) -> Plan:
    """The plan with further requests.

    Args:
        plan: What is planned so far.
        asked: Requests still to make.
        stored: Number of requests that need no call.

    Returns:
        The sum.
    """
    for request in asked:
        tokens, shared = _tokens(request)
        plan = replace(
            plan,
            requests=plan.requests + 1,
            prompt_tokens=plan.prompt_tokens + tokens,
            shared_tokens=plan.shared_tokens + shared,
            pictures=plan.pictures + len(_pictures(request)),
        )
    return replace(plan, requests=plan.requests + stored, stored=plan.stored + stored)


def estimate_tokens(text: str) -> int:
    """Tokens of a text, roughly: four Latin characters a token, one of most other scripts.

    Args:
        text: Any text.

    Returns:
        The estimate, rounded up.

    Example:
        >>> estimate_tokens("a red cat"), estimate_tokens("画像生成")
        (3, 4)
    """
    wide = sum(character > "\u02ff" for character in text)
    return -(-(len(text) - wide) // CHARACTERS_PER_TOKEN) + wide // WIDE_CHARACTERS_PER_TOKEN


def _pictures(request: Request) -> tuple[str, ...]:
    parts = (part for message in request.messages for part in message.parts)
    return tuple(part.sha256 for part in parts if isinstance(part, ImageRef))


def _tokens(request: Request) -> tuple[int, int]:
    by_message = [
        sum(estimate_tokens(part.text) for part in message.parts if isinstance(part, Text))
        for message in request.messages
    ]
    shared = by_message[0] if request.messages[0].role == "system" else 0
    return sum(by_message) + TOKENS_PER_PICTURE * len(_pictures(request)), shared
