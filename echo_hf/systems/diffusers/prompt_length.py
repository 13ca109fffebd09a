"""How much of a prompt a pipeline reads: text encoders cut what is too long, and say nothing."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from echo_hf.systems.diffusers.kinds import PromptReader

LIMIT = "max_sequence_length"


def prompt_length(
    pipe: Any, reader: PromptReader | None, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Counts the tokens of a prompt as a pipeline counts them.

    Args:
        pipe: The pipeline of diffusers.
        reader: How its class reads a prompt; null where that is not known.
        arguments: Of its call, `prompt` among them.

    Returns:
        `prompt_tokens`, `prompt_tokens_used` and whether it was cut, `prompt_cut`; nothing where
        that cannot be known.
    """
    tokenizer = None if reader is None else getattr(pipe, reader.tokenizer, None)
    limit = arguments.get(LIMIT, _default(pipe))
    if reader is None or tokenizer is None or limit is None:
        return {}
    count = len(tokenizer(_words(pipe, tokenizer, reader, arguments["prompt"])).input_ids)
    count -= getattr(pipe, reader.template_start) if reader.template_start else 0
    used = min(count, limit)
    return {"prompt_tokens": count, "prompt_tokens_used": used, "prompt_cut": count > used}


def _default(pipe: Any) -> Any:
    found = inspect.signature(type(pipe).__call__).parameters.get(LIMIT)
    return None if found is None or found.default is found.empty else found.default


def _words(pipe: Any, tokenizer: Any, reader: PromptReader, prompt: str) -> str:
    if reader.chat is not None:
        asked = [{"role": "user", "content": prompt}]
        return str(
            tokenizer.apply_chat_template(
                asked, tokenize=False, add_generation_prompt=True, **reader.chat
            )
        )
    return str(getattr(pipe, reader.template).format(prompt)) if reader.template else prompt
