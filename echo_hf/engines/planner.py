"""The order in which requests go to an engine, and what they will cost before they do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from echo_hf.engines.base import Message, Request, Text

CHARACTERS_PER_TOKEN = 4
TOKENS_PER_IMAGE = 1280


def plan_order(requests: Sequence[Request]) -> list[int]:
    """Numbers of the requests in the order to send them: what begins alike stands together."""
    by_message: dict[Message, int] = {}
    by_images: dict[tuple[int, tuple[str, ...]], int] = {}
    places = []
    for request in requests:
        prefix = by_message.setdefault(request.messages[0], len(by_message))
        shown = tuple(reference.sha256 for reference in request.images)
        images = by_images.setdefault((prefix, shown), len(by_images))
        places.append((prefix, images))
    return sorted(range(len(requests)), key=places.__getitem__)


@dataclass(frozen=True, slots=True)
class RequestPlan:
    requests: int = 0
    stored: int = 0
    repeated: int = 0
    prompt_tokens: int = 0
    images: int = 0
    usd_per_million_prompt_tokens: float | None = None

    @property
    def calls(self) -> int:
        """Calls still to make, second tries not counted."""
        return self.requests - self.stored - self.repeated

    def __str__(self) -> str:
        if not self.calls:
            return ""
        price = self.usd_per_million_prompt_tokens
        cost = "" if price is None else f", ${self.prompt_tokens * price / 1e6:.2f} and the answers"
        return (
            f"{self.calls:>9,} calls to make, {self.stored:,} answered before; about "
            f"{self.prompt_tokens:,} prompt tokens, {self.images:,} images{cost}"
        )


def extended(
    plan: RequestPlan, requests: Sequence[Request], stored: int, repeated: int = 0
) -> RequestPlan:
    return replace(
        plan,
        requests=plan.requests + len(requests) + stored + repeated,
        stored=plan.stored + stored,
        repeated=plan.repeated + repeated,
        prompt_tokens=plan.prompt_tokens + sum(map(request_tokens, requests)),
        images=plan.images + sum(len(request.images) for request in requests),
    )


def request_tokens(request: Request) -> int:
    parts = (part for message in request.messages for part in message.parts)
    texts = sum(estimate_tokens(part.text) for part in parts if isinstance(part, Text))
    return texts + TOKENS_PER_IMAGE * len(request.images)


def estimate_tokens(text: str) -> int:
    """Tokens of a text, roughly: four Latin characters a token, one of most other scripts."""
    wide = sum(character > "\u02ff" for character in text)
    return -(-(len(text) - wide) // CHARACTERS_PER_TOKEN) + wide
