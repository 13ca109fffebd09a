"""An answer of either mode, and what becomes of a task by it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from echo_hf.engines.base import Usage
from echo_hf.engines.openai.usage import MOST
from echo_hf.errors import PictureError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import Drawn
from echo_hf.systems.config import Price
from echo_hf.systems.costs import Billed, cost_usd
from echo_hf.systems.received import decoded, unusable, with_picture


@dataclass(frozen=True, slots=True)
class Said:
    """What an answer holds.

    Attributes:
        picture: Its first picture, encoded as text; null when there is none.
        pictures: How many there are.
        text: What is said beside or instead of it.
        revised_prompt: The prompt as the model rewrote it.
        ended: Why it ends, in the server's word.
        refusal: What the model, or a filter of what it drew, declines with.
        refusal_stage: Which of the two it was.
        model: Name of the model in the answer.
        usage: Its tokens.
        billed: The same as they are billed.
        cost_usd: Price in US dollars, where the answer names one.
        may_speak: Whether words alone are the model's answer: it came to its end, and they are all
            that there is.
        as_drawn: Size, quality and the like as the answer states them.
    """

    picture: str | None = None
    pictures: int = 0
    text: str | None = None
    revised_prompt: str | None = None
    ended: str | None = None
    refusal: str | None = None
    refusal_stage: OutcomeStage = OutcomeStage.INPUT
    model: str | None = None
    usage: Usage | None = None
    billed: Billed = field(default_factory=Billed)
    cost_usd: float | None = None
    may_speak: bool = False
    as_drawn: Mapping[str, Any] = field(default_factory=dict)


def read_document(text: str) -> Mapping[str, Any] | None:
    """The answer as an object; null when it is none, such as a web page."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def drawn_from(said: Said, price: Price | None) -> Drawn:
    """What becomes of a task.

    Args:
        said: The answer to it.
        price: The config's; the answer's own goes before it.

    Returns:
        A picture, a refusal, words alone, or a failure; tokens and price with each of them.
    """
    cost = said.cost_usd if said.cost_usd is not None else cost_usd(price, said.billed)
    known = Drawn(
        Outcome.FAILED,
        stage=OutcomeStage.ANSWER,
        text=said.text,
        revised_prompt=said.revised_prompt,
        model_reported=said.model,
        usage=said.usage,
        cost_usd=cost,
        details={"pictures": said.pictures, "as_drawn": dict(said.as_drawn)},
    )
    if said.picture is not None:
        return _with_picture(known, said.picture)
    return _without_picture(known, said)


def count(value: Any) -> int | None:
    """A number of tokens; null for what is none."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return int(value) if is_whole and 0 <= value <= MOST else None


def mapping(value: Any) -> Mapping[str, Any]:
    """The value, empty where it is no object."""
    return value if isinstance(value, dict) else {}


def text_or_none(value: Any) -> str | None:
    """The value where it is a text with something in it."""
    return value if isinstance(value, str) and value.strip() else None


def _with_picture(known: Drawn, encoded: str) -> Drawn:
    try:
        data = decoded(encoded)
    except PictureError as error:
        return unusable(known, str(error))
    return with_picture(known, data)


def _without_picture(known: Drawn, said: Said) -> Drawn:
    if said.refusal is not None:
        return replace(
            known,
            outcome=Outcome.REFUSED,
            stage=said.refusal_stage,
            code="refusal" if said.refusal_stage is OutcomeStage.INPUT else "content_filter",
            text=said.refusal,
        )
    if said.may_speak:
        return replace(known, outcome=Outcome.NO_IMAGE, code=said.ended)
    return replace(unusable(known, _lack(said)), code=said.ended)


def _lack(said: Said) -> str:
    lacks = "the answer holds no picture"
    if said.ended is not None:
        lacks += f" and ended with {said.ended!r}"
    return lacks if said.text is None else f"{lacks}: {said.text}"
