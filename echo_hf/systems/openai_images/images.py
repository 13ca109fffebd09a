"""The addresses that draw and edit: what is sent to them, and what they answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from echo_hf.engines.base import Usage
from echo_hf.systems.costs import Billed
from echo_hf.systems.openai_images.answer import Said, count, mapping, text_or_none
from echo_hf.systems.openai_images.connection import Send
from echo_hf.systems.sent_pictures import SentInput

if TYPE_CHECKING:
    from openai import OpenAI


def address(client: OpenAI, inputs: Sequence[SentInput]) -> Send:
    """The client's method: one edits where there are inputs, the other draws."""
    images = client.images.with_streaming_response
    return images.edit if inputs else images.generate


def arguments(
    model: str,
    prompt: str,
    inputs: Sequence[SentInput],
    size: str | None,
    further: Mapping[str, Any],
) -> dict[str, Any]:
    """Everything that is sent for a task.

    Args:
        model: The model.
        prompt: The instruction.
        inputs: Its input pictures, in order.
        size: Width and height as servers read them; null leaves it to the model.
        further: What else the config asks for.

    Returns:
        The arguments of the client's method.
    """
    # Not every version of the client knows every key: those that may be missing go beside it.
    asked: dict[str, Any] = {"model": model, "prompt": prompt, "n": 1}
    if size is not None:
        asked["size"] = size
    if inputs:
        asked["image"] = _files(inputs)
    return {**asked, "extra_body": dict(further) or None}


def read_images(document: Mapping[str, Any]) -> Said:
    """What the answer of one of these addresses holds.

    Args:
        document: The answer.

    Returns:
        Its first picture and what is said beside it.
    """
    data = document.get("data")
    entries = [mapping(one) for one in data] if isinstance(data, list) else []
    first = entries[0] if entries else {}
    usage = mapping(document.get("usage"))
    return Said(
        picture=text_or_none(first.get("b64_json")) or text_or_none(first.get("url")),
        pictures=len(entries),
        revised_prompt=text_or_none(first.get("revised_prompt")),
        model=text_or_none(document.get("model")),
        usage=_usage(usage),
        billed=_billed(usage, len(entries)),
        as_drawn={
            name: document[name]
            for name in ("size", "quality", "background", "output_format")
            if isinstance(document.get(name), str)
        },
    )


def _files(inputs: Sequence[SentInput]) -> Any:
    files = [
        (f"input_{number}.{one.ending}", one.data, one.mime_type)
        for number, one in enumerate(inputs, 1)
    ]
    return files if len(files) > 1 else files[0]


def _usage(usage: Mapping[str, Any]) -> Usage | None:
    sent, drawn = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
    if sent is None or drawn is None:
        return None
    cached = count(mapping(usage.get("input_tokens_details")).get("cached_tokens"))
    return Usage(sent, drawn, cached or 0)


def _billed(usage: Mapping[str, Any], pictures: int) -> Billed:
    sent = mapping(usage.get("input_tokens_details"))
    drawn = mapping(usage.get("output_tokens_details"))
    # Where the answer does not tell them apart, all that came back is the picture.
    told = drawn or {"image_tokens": usage.get("output_tokens"), "text_tokens": 0}
    return Billed(
        text_in=count(sent.get("text_tokens")),
        image_in=count(sent.get("image_tokens")),
        text_out=count(told.get("text_tokens")),
        image_out=count(told.get("image_tokens")),
        pictures=pictures,
    )
