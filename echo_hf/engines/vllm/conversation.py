"""A request in the words of vLLM: chat messages, and how to sample the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from echo_hf.engines.base import Completion, ImageRef, Message, Request, Text, Usage
from echo_hf.engines.grammar import grammar_schema
from echo_hf.engines.pixels import SentPicture
from echo_hf.engines.vllm.options import VllmOptions

Picture = Callable[[ImageRef], SentPicture]
WHOLE = "stop"
CUT = "length"


def conversation(request: Request, picture: Picture) -> list[dict[str, Any]]:
    """The messages of a request.

    Args:
        request: What is asked.
        picture: Gives what is sent of a picture; whatever it raises is passed on.

    Returns:
        One dictionary a message, as `LLM.chat` takes it.
    """
    return [
        {"role": message.role, "content": _content(message, picture)}
        for message in request.messages
    ]


def sampling(request: Request, options: VllmOptions) -> Any:
    """How the answer to a request is sampled.

    Args:
        request: What is asked.
        options: The engine's options.

    Returns:
        vLLM's `SamplingParams`.
    """
    from vllm import SamplingParams

    return SamplingParams(
        temperature=options.temperature,
        top_p=options.top_p,
        # The likeliest answer is not drawn, and a generator for each request would cost time.
        seed=options.seed + request.repeat if options.temperature else None,
        max_tokens=request.max_tokens,
        structured_outputs=_form(request) if options.structured else None,
    )


def _form(request: Request) -> Any:
    from vllm.sampling_params import StructuredOutputsParams

    if request.answer is not None:
        return StructuredOutputsParams(json=grammar_schema(request.answer))
    return StructuredOutputsParams(regex=request.regex) if request.regex is not None else None


def completion(output: Any) -> Completion:
    """What vLLM said.

    Args:
        output: A finished `RequestOutput`.

    Returns:
        The answer; an ending other than a full stop or the token limit is an error.
    """
    said = output.outputs[0]
    usage = Usage(
        len(output.prompt_token_ids or ()), len(said.token_ids), output.num_cached_tokens or 0
    )
    if said.finish_reason in (WHOLE, CUT):
        return Completion(said.text, None, said.finish_reason, usage)
    return Completion(None, f"vLLM ended the answer with {said.finish_reason!r}", "error", usage)


def _content(message: Message, picture: Picture) -> str | list[dict[str, Any]]:
    if len(message.parts) == 1 and isinstance(message.parts[0], Text):
        return message.parts[0].text
    return [
        {"type": "text", "text": part.text} if isinstance(part, Text) else _shown(part, picture)
        for part in message.parts
    ]


def _shown(part: ImageRef, picture: Picture) -> dict[str, Any]:
    image = picture(part).image
    width, height = image.size
    # The same picture in another size is another content of vLLM's caches.
    uuid = f"{part.sha256}-{width}x{height}"
    return {"type": "image_pil", "image_pil": image, "uuid": uuid}
