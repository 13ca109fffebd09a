"""A chat model that answers with pictures: what is sent to it, and what it answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from echo_hf.engines.openai.usage import cost_of, read_usage, usage_of
from echo_hf.reasons import OutcomeStage
from echo_hf.systems.costs import Billed
from echo_hf.systems.openai_images.answer import Said, mapping, text_or_none
from echo_hf.systems.openai_images.connection import Send
from echo_hf.systems.sent_pictures import SentInput

if TYPE_CHECKING:
    from openai import OpenAI

MODALITIES = ("image", "text")
FILTERED = "content_filter"
FINISHED = "stop"


def address(client: OpenAI) -> Send:
    """The client's method."""
    return client.chat.completions.with_streaming_response.create


def arguments(
    model: str, prompt: str, inputs: Sequence[SentInput], further: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything that is sent for a task.

    Args:
        model: The model.
        prompt: The instruction.
        inputs: Its input pictures, in order; they stand before the instruction.
        further: What else the config asks for.

    Returns:
        The arguments of the client's method.
    """
    pictures = [{"type": "image_url", "image_url": {"url": one.data_url}} for one in inputs]
    content = [*pictures, {"type": "text", "text": prompt}] if pictures else prompt
    return {
        "model": model,
        "messages": [{"role": "user", "content": content}],
        "extra_body": {"modalities": list(MODALITIES), **further},
    }


def choice_of(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first of an answer's choices, empty where it has none."""
    choices = document.get("choices")
    return mapping(choices[0]) if isinstance(choices, list) and choices else {}


def read_chat(document: Mapping[str, Any]) -> Said:
    """What a chat completion holds.

    Args:
        document: The answer.

    Returns:
        Its first picture and what is said beside or instead of it.
    """
    choice = choice_of(document)
    message = mapping(choice.get("message"))
    pictures = list(dict.fromkeys(_pictures(message)))
    tokens = read_usage(document)
    refusal, stage = _refusal(choice, message)
    return Said(
        picture=pictures[0] if pictures else None,
        pictures=len(pictures),
        text=_text(message.get("content")),
        ended=text_or_none(choice.get("finish_reason")),
        refusal=refusal,
        refusal_stage=stage,
        model=text_or_none(document.get("model")),
        usage=None if tokens is None else usage_of(tokens),
        billed=Billed(pictures=len(pictures)),
        cost_usd=cost_of(document, None),
        may_speak=choice.get("finish_reason") == FINISHED and _holds_words_alone(message),
    )


def _refusal(
    choice: Mapping[str, Any], message: Mapping[str, Any]
) -> tuple[str | None, OutcomeStage]:
    refusal = text_or_none(message.get("refusal"))
    if refusal is None and choice.get("finish_reason") == FILTERED:
        return _text(message.get("content")) or FILTERED, OutcomeStage.OUTPUT
    return refusal, OutcomeStage.INPUT


def _pictures(message: Mapping[str, Any]) -> Iterator[str]:
    # Routers put pictures beside the content, vllm-omni puts them into it, and some do both.
    for place in ("images", "content"):
        parts = message.get(place)
        for part in parts if isinstance(parts, list) else ():
            url = text_or_none(mapping(mapping(part).get("image_url")).get("url"))
            if url is not None:
                yield url


def _holds_words_alone(message: Mapping[str, Any]) -> bool:
    """Whether nothing in a message could be a picture in a form that is not known here."""
    if "content" not in message or message.get("images"):
        return False
    content = message["content"]
    parts = content if isinstance(content, list) else [content]
    return all(part is None or isinstance(part, str) or _is_text(part) for part in parts)


def _is_text(part: Any) -> bool:
    return mapping(part).get("type") == "text"


def _text(content: Any) -> str | None:
    parts = content if isinstance(content, list) else [content]
    texts = [mapping(part).get("text") if isinstance(part, dict) else part for part in parts]
    return text_or_none("\n".join(text for text in texts if isinstance(text, str)))
