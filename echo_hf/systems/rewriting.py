"""How a language model is asked to put a task into words for a text-to-image model."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from echo_hf.answers import Failure, parse
from echo_hf.engines.base import Completion, Engine, Message, Request, Text, Usage
from echo_hf.errors import EngineError, GenerationError
from echo_hf.prompts import as_data, load_prompt
from echo_hf.reasons import Failed
from echo_hf.systems.base import Task

PROMPT = "rewrite"
LONGEST_PROMPT = 8000


class Rewritten(BaseModel):
    """The declared shape of the answer."""

    model_config = ConfigDict(extra="ignore")

    prompt: Annotated[str, Field(min_length=1, max_length=LONGEST_PROMPT)]


@dataclass(frozen=True, slots=True)
class Writing:
    """What came of asking for a prompt.

    Attributes:
        prompt: The prompt; null when there is none.
        failure: Why there is none.
        usage: Tokens.
        cost_usd: Price in US dollars, null when unknown.
    """

    prompt: str | None
    failure: Failure | None
    usage: Usage
    cost_usd: float | None


class _NoTarget:
    """The instructions speak of no model in particular."""

    prompt_fields: dict[str, str] = {}  # noqa: RUF012 - empty for ever


@cache
def instructions() -> str:
    """What the language model is told."""
    return load_prompt(PROMPT, _NoTarget()).text


def instructions_digest() -> str:
    """Sha256 of the instructions: another wording gives other prompts."""
    return hashlib.sha256(instructions().encode()).hexdigest()


def rewriting(task: Task, max_tokens: int) -> Request:
    """The question that is put to the language model.

    Args:
        task: The task; its pictures follow its words, in order.
        max_tokens: Longest answer.

    Returns:
        The request.
    """
    data = as_data("request", {"prompt": task.prompt, "pictures": len(task.inputs)})
    turns = (
        Message("system", (Text(instructions()),)),
        Message("user", (Text(data), *task.inputs)),
    )
    return Request(PROMPT, turns, Rewritten, max_tokens)


def written_by(engine: Engine, request: Request) -> Writing:
    """Asks a language model for a prompt.

    Args:
        engine: The model's engine, which tries again by itself what may pass.
        request: The question.

    Returns:
        The prompt, or why there is none.

    Raises:
        GenerationError: The engine cannot be used, or has no model.
    """
    completion = _completion(lambda: dict(engine.stream([request])))
    answer = parse(request, completion, b"")
    if isinstance(answer, Failure):
        if answer.reason is Failed.NEEDS_MODEL:
            raise GenerationError(
                "writer is an engine without a model, which writes nothing: expected one that "
                "reads text and pictures, such as {kind: openai, model: ...}"
            )
        return Writing(None, answer, completion.usage, completion.cost_usd)
    prompt = answer.prompt.strip() if isinstance(answer, Rewritten) else ""
    if not prompt:
        blank = Failure(Failed.OFF_SCHEMA, "the prompt is blank", "")
        return Writing(None, blank, completion.usage, completion.cost_usd)
    return Writing(prompt, None, completion.usage, completion.cost_usd)


def _completion(ask: Callable[[], dict[int, Completion]]) -> Completion:
    try:
        return ask()[0]
    except EngineError as error:
        raise GenerationError(f"writer: {error}") from None
