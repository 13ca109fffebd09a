"""What a Gemini model answers, and what becomes of a task by it.

Blocks come as a success: with a reason and without a picture, or with nothing but words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import Enum
from typing import Any

from echo_hf.engines.base import Usage
from echo_hf.errors import GenerationError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import Drawn
from echo_hf.systems.config import Price
from echo_hf.systems.costs import Billed, cost_usd
from echo_hf.systems.received import unusable, with_picture

HELD_BACK = frozenset(
    {
        "BLOCKLIST",
        "ESCALATION",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
        "IMAGE_SAFETY",
        "MODEL_ARMOR",
        "PROHIBITED_CONTENT",
        "RECITATION",
        "SAFETY",
        "SPII",
    }
)
# The model came to its end and drew nothing. Whatever else ends an answer, such as IMAGE_OTHER, for
# which no reason is known, or MALFORMED_RESPONSE, broke it off.
UNDRAWN = frozenset({"NO_IMAGE", "STOP"})
UNSPECIFIED = "BLOCKED_REASON_UNSPECIFIED"
ACCOUNT_STOPPED = "PUP_LIMITED_DISABLED"
PICTURES = "image/"

Document = Mapping[str, Any]


def drawn_from(document: Document, price: Price | None) -> Drawn:
    """What becomes of a task.

    Args:
        document: The answer, as the client's model of it is dumped.
        price: The config's.

    Returns:
        A picture; a refusal of the request (`prompt_feedback`) or of what was drawn
        (`finish_reason`); words alone, or none; or a failure, such as an answer that broke off.
        Thoughts are text, and a picture among them is no output.

    Raises:
        GenerationError: The account is stopped.
    """
    candidates = document.get("candidates") or []
    first = candidates[0] if candidates else {}
    parts = (first.get("content") or {}).get("parts") or []
    pictures = list(_pictures(parts))
    reason = _named(first.get("finish_reason"))
    known = replace(
        _known(document, price, len(pictures)),
        code=reason,
        text=_text(parts) or first.get("finish_message"),
    )
    if pictures:
        return with_picture(replace(known, code=None), pictures[0])
    blocked = _named((document.get("prompt_feedback") or {}).get("block_reason"))
    if blocked is not None and blocked != UNSPECIFIED:
        said = document["prompt_feedback"].get("block_reason_message")
        return replace(_refused(known, OutcomeStage.INPUT), code=blocked, text=said or known.text)
    return _without_picture(known, reason)


def _without_picture(known: Drawn, reason: str | None) -> Drawn:
    if reason == ACCOUNT_STOPPED:
        raise GenerationError(
            f"the account is stopped (the answer ended with {reason!r}): use another account's key"
        )
    if reason in HELD_BACK:
        return _refused(known, OutcomeStage.OUTPUT)
    if reason is None:
        return unusable(known, "the answer has neither a picture nor a reason for its end")
    if reason in UNDRAWN:
        return replace(known, outcome=Outcome.NO_IMAGE)
    said = "" if known.text is None else f": {known.text}"
    return unusable(known, f"the answer holds no picture and ended with {reason!r}{said}")


def _refused(known: Drawn, stage: OutcomeStage) -> Drawn:
    return replace(known, outcome=Outcome.REFUSED, stage=stage)


def _known(document: Document, price: Price | None, pictures: int) -> Drawn:
    counted = document.get("usage_metadata")
    billed = _billed(counted or {}, pictures)
    return Drawn(
        Outcome.FAILED,
        stage=OutcomeStage.ANSWER,
        model_reported=document.get("model_version"),
        usage=None if counted is None else _usage(counted),
        cost_usd=cost_usd(price, billed),
        details={"pictures": pictures, "request_id": document.get("response_id")},
    )


def _pictures(parts: list[Document]) -> Iterator[bytes]:
    for part in parts:
        blob = part.get("inline_data") or {}
        if not part.get("thought") and (blob.get("mime_type") or PICTURES).startswith(PICTURES):
            data = blob.get("data")
            if data:
                yield data


def _text(parts: list[Document]) -> str | None:
    texts = [part["text"] for part in parts if part.get("text")]
    return "\n".join(texts) or None


def _usage(counted: Document) -> Usage:
    came = _number(counted, "candidates_token_count") + _number(counted, "thoughts_token_count")
    cached = _number(counted, "cached_content_token_count")
    return Usage(_number(counted, "prompt_token_count"), came, cached)


def _billed(counted: Document, pictures: int) -> Billed:
    sent = _of_images(counted.get("prompt_tokens_details"))
    drawn = _of_images(counted.get("candidates_tokens_details"))
    if drawn is None and not counted.get("candidates_token_count"):
        drawn = 0 if counted else None
    texts = _number(counted, "candidates_token_count") + _number(counted, "thoughts_token_count")
    return Billed(
        text_in=None if sent is None else _number(counted, "prompt_token_count") - sent,
        image_in=sent,
        text_out=None if drawn is None else texts - drawn,
        image_out=drawn,
        pictures=pictures,
    )


def _of_images(details: list[Document] | None) -> int | None:
    if not details:
        return None
    images = (one for one in details if _named(one.get("modality")) == "IMAGE")
    return sum(_number(one, "token_count") for one in images)


def _number(counted: Document, name: str) -> int:
    return int(counted.get(name) or 0)


def _named(value: Any) -> str | None:
    named = value.value if isinstance(value, Enum) else value
    return named if isinstance(named, str) else None
