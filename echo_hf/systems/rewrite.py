"""LLM+Diffusion: a language model puts the task into words, a text-to-image model draws them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from threading import Lock
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field

from echo_hf.config.checks import EngineChoice, Section, Whole, Words
from echo_hf.config.systems import Price, SystemConfig
from echo_hf.engines.base import Completion, Engine, Message, Request, Text, Usage, make_engine
from echo_hf.engines.server import ServerEngine
from echo_hf.errors import EngineError, GenerationError
from echo_hf.pipeline.answers import Failure, parse
from echo_hf.prompts import as_data, load_prompt
from echo_hf.reasons import Failed, Outcome, OutcomeStage
from echo_hf.systems.base import GenerationResult, Retired, System, Task, TransientError
from echo_hf.systems.plan import added
from echo_hf.systems.registry import make_system, options_of, register
from echo_hf.systems.runner import failed_by

PROMPT = "rewrite"
LONGEST_PROMPT = 8000


class Rewritten(BaseModel):
    """The declared shape of the answer."""

    model_config = ConfigDict(extra="ignore")

    prompt: Annotated[str, Field(min_length=1, max_length=LONGEST_PROMPT)]


@dataclass(frozen=True, slots=True)
class Writing:
    prompt: str | None
    failure: Failure | None
    usage: Usage
    cost_usd: float | None


class _NoTarget:
    """The instructions speak of no model in particular."""

    prompt_fields: dict[str, str] = {}  # noqa: RUF012 - empty for ever


@cache
def instructions() -> str:
    return load_prompt(PROMPT, _NoTarget()).text


def rewriting(task: Task, max_tokens: int) -> Request:
    data = as_data("request", {"prompt": task.prompt, "pictures": len(task.inputs)})
    turns = (
        Message("system", (Text(instructions()),)),
        Message("user", (Text(data), *task.inputs)),
    )
    return Request(PROMPT, turns, Rewritten, max_tokens, row=task.sample_id)


def written_by(engine: Engine, request: Request) -> Writing:
    completion = _completion(lambda: dict(engine.stream([request])))
    answer = parse(request, completion, b"")
    if isinstance(answer, Failure):
        if answer.reason is Failed.NEEDS_MODEL:
            raise GenerationError(
                "writer is an engine without a model, which writes nothing: expected one that "
                "reads text and images, such as {kind: openai, model: ...}"
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


ADAPTER = "rewrite"


class Artist(Section):
    """The text-to-image system behind the writer.

    Attributes:
        adapter: How it is run.
        model: Its model.
        parameters: Its adapter's own options.
        price: What its part of an output costs.
    """

    adapter: Words
    model: Words | None = None
    parameters: Mapping[str, Any] = {}
    price: Price | None = None


class RewriteOptions(Section):
    """The parameters of the adapter `rewrite`.

    Attributes:
        writer: The language model, an engine as in a config's `engines`. It reads the prompt and
            the input images.
        artist: The text-to-image system, which gets the writer's prompt and no images. Size,
            seed and limits are those of the whole, the price is its own.
        most_tokens: The writer's longest answer.
    """

    writer: EngineChoice
    artist: Artist
    most_tokens: Annotated[Whole, Field(ge=50, le=100_000)] = 4000


class Rewrite:
    def __init__(self, config: SystemConfig) -> None:
        _check_whole(config)
        options = options_of(config, RewriteOptions)
        self._most_tokens = options.most_tokens
        self._writer = _writer(config, options.writer)
        self._artist: System = make_system(_artist(config, options.artist))
        self._written: dict[str, Writing] = {}
        # An engine that asks a server takes many threads, one with a model of its own does not.
        is_server = isinstance(self._writer, ServerEngine)
        self._turn: Any = nullcontext() if is_server else Lock()
        self._opened = ExitStack()
        self.concurrency = self._artist.concurrency
        self.determinism = (
            f"the writer may word a prompt in another way each time; of the artist: "
            f"{self._artist.determinism}"
        )

    def signature(self) -> Mapping[str, Any]:
        """Everything that decides an image: the writer, what it is told, and the artist."""
        return {
            "adapter": ADAPTER,
            "instructions": hashlib.sha256(instructions().encode()).hexdigest(),
            "most_tokens": self._most_tokens,
            "writer": dict(self._writer.signature()),
            "artist": dict(self._artist.signature()),
        }

    def preflight(self) -> Retired | None:
        """Whether the artist's model is still there; the writer's first answer tells of its own."""
        return self._artist.preflight()

    def draw(self, task: Task) -> GenerationResult:
        writing = self._writing(task)
        if writing.prompt is None:
            return _unwritten(writing)
        try:
            drawn = self._artist.draw(replace(task, prompt=writing.prompt, inputs=()))
        except TransientError as passing:
            self._written[task.sample_digest] = replace(writing, usage=Usage(), cost_usd=0.0)
            raise _with_writing(passing, writing) from None
        except (GenerationError, KeyboardInterrupt):
            self._written[task.sample_digest] = writing
            raise
        except BaseException as error:  # as for any system, the writer's tokens included
            drawn = failed_by(error)
        return _of_both(writing, drawn)

    def __enter__(self) -> Self:
        self._opened.enter_context(self._writer)
        self._opened.enter_context(self._artist)
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def _writing(self, task: Task) -> Writing:
        writing = self._written.pop(task.sample_digest, None)
        if writing is not None:
            return writing
        with self._turn:
            return written_by(self._writer, rewriting(task, self._most_tokens))


def _check_whole(config: SystemConfig) -> None:
    if config.price is not None:
        raise GenerationError(
            f"system {config.name!r}: price is given, and two parts have prices: put the artist's "
            "into parameters.artist, the writer's into its engine's options"
        )
    if config.size == "match_input":
        raise GenerationError(
            f"system {config.name!r}: size is 'match_input', and the artist sees no input: "
            "expected auto or a width and height"
        )


def _writer(config: SystemConfig, choice: EngineChoice) -> Engine:
    try:
        return make_engine(choice.kind, **choice.options)
    except EngineError as error:
        raise GenerationError(f"system {config.name!r}: writer: {error}") from None


def _artist(config: SystemConfig, artist: Artist) -> SystemConfig:
    own = {name: getattr(artist, name) for name in ("adapter", "model", "parameters", "price")}
    return config.model_copy(update={**own, "status": "current", "stands_for": None})


def _unwritten(writing: Writing) -> GenerationResult:
    failure = writing.failure
    is_refusal = failure is not None and failure.reason is Failed.REFUSED
    return GenerationResult(
        Outcome.REFUSED if is_refusal else Outcome.FAILED,
        stage=OutcomeStage.INPUT if is_refusal else OutcomeStage.REQUEST,
        code=None if failure is None else f"writer_{failure.reason}",
        text=None if failure is None else failure.detail,
        usage=writing.usage,
        cost_usd=writing.cost_usd,
    )


def _with_writing(passing: TransientError, writing: Writing) -> TransientError:
    is_unpaid = passing.usage is None and passing.cost_usd is None
    return TransientError(
        passing.text,
        passing.code,
        passing.wait_s,
        writing.usage + (passing.usage or Usage()),
        writing.cost_usd if is_unpaid else added(writing.cost_usd, passing.cost_usd),
    )


def _of_both(writing: Writing, drawn: GenerationResult) -> GenerationResult:
    details = {"artist": dict(drawn.details), "artist_revised_prompt": drawn.revised_prompt}
    is_free = drawn.image is None and drawn.usage is None and drawn.cost_usd is None
    return replace(
        drawn,
        revised_prompt=writing.prompt,
        usage=writing.usage + (drawn.usage or Usage()),
        # Servers bill no error, and count nothing in it.
        cost_usd=writing.cost_usd if is_free else added(writing.cost_usd, drawn.cost_usd),
        details=details,
    )


register(ADAPTER, "LLM+Diffusion: a language model writes the prompt of a text-to-image system")(
    Rewrite
)
