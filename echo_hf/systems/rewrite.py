"""LLM+Diffusion: a language model rewrites the task as a prompt for a text-to-image model."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from threading import Lock
from types import SimpleNamespace
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field

from echo_hf._infra.worker_pool import WorkerFactory
from echo_hf.config.checks import EngineChoice, Section, StrictInt, Words
from echo_hf.config.systems import OutputPrice, SystemConfig
from echo_hf.engines.base import Engine, Failed, Message, Request, Text, Usage, make_engine
from echo_hf.engines.memory import check_gpu_memory
from echo_hf.engines.planner import (
    ExpectedCost,
    RequestPlan,
    add_expected,
    estimate_calls,
    extend_plan,
)
from echo_hf.engines.server import ServerEngine
from echo_hf.errors import EngineError, GenerationError
from echo_hf.pipeline.answers import Failure, parse
from echo_hf.prompts import load_prompt, quote_as_data
from echo_hf.systems.base import GenerationResult, OutcomeStage, Retired, Task, TransientError
from echo_hf.systems.registry import estimate_cost, make_system, parse_options, register
from echo_hf.systems.runner import add_costs, result_of_error
from echo_hf.tables import Outcome

PROMPT_NAME = "rewrite"


class Rewritten(BaseModel):
    model_config = ConfigDict(extra="ignore")

    prompt: Annotated[str, Field(min_length=1, max_length=8000)]


@cache
def load_instructions() -> str:
    no_target: Any = SimpleNamespace(prompt_fields={})  # the instructions name no target
    return load_prompt(PROMPT_NAME, no_target).text


def rewrite_request(task: Task, max_tokens: int) -> Request:
    """Build the writer's request for a task."""
    content = quote_as_data("request", {"prompt": task.prompt, "pictures": len(task.inputs)})
    system_message = Message("system", (Text(load_instructions()),))
    turns = system_message, Message("user", (Text(content), *task.inputs))
    options: Any = {"repeat": task.draw, "row": task.sample_id}
    return Request(PROMPT_NAME, turns, Rewritten, max_tokens, **options)


@dataclass(frozen=True, slots=True)
class RewriteResult:
    """The writer's prompt and its cost, or the failure in place of a prompt."""

    prompt: str
    failure: Failure | None
    usage: Usage
    cost_usd: float | None

    def add_costs(
        self, artist: GenerationResult | TransientError, is_drawn: bool = False
    ) -> tuple[Usage, float | None]:
        """Add the artist's tokens and cost; servers bill nothing for an error."""
        usage = self.usage + (artist.usage or Usage())
        is_free = not is_drawn and artist.usage is None and artist.cost_usd is None
        return usage, self.cost_usd if is_free else add_costs(self.cost_usd, artist.cost_usd)


def ask_writer(engine: Engine, request: Request) -> RewriteResult:
    try:
        (completion,) = dict(engine.stream([request])).values()
    except EngineError as error:
        raise GenerationError(f"writer: {error}") from None
    answer = parse(request, completion, b"")
    if isinstance(answer, Failure) and answer.reason is Failed.NEEDS_MODEL:
        raise GenerationError(
            "writer is an engine without a model, which writes nothing: expected one that "
            "reads text and images, such as {kind: openai, model: ...}"
        )
    prompt = answer.prompt.strip() if isinstance(answer, Rewritten) else ""
    failure = answer if isinstance(answer, Failure) else None
    if not prompt and failure is None:
        failure = Failure(Failed.OFF_SCHEMA, "the prompt is blank", "")
    return RewriteResult(prompt, failure, completion.usage, completion.cost_usd)


class ArtistConfig(Section):
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
    price: OutputPrice | None = None


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
    artist: ArtistConfig
    most_tokens: Annotated[StrictInt, Field(ge=50, le=100_000)] = 4000


@register(
    "rewrite",
    "LLM+Diffusion: a language model writes the prompt of a text-to-image system",
    devices=True,  # of its artist
)
class Rewrite:
    def __init__(self, config: SystemConfig) -> None:
        place = f"system {config.name!r}"
        if config.price is not None:
            raise GenerationError(
                f"{place}: price is given, and two parts have prices: put the artist's into "
                "parameters.artist, the writer's into its engine's options"
            )
        if config.size == "match_input":
            raise GenerationError(
                f"{place}: size is 'match_input', and the artist sees no input: expected auto or "
                "a width and height"
            )
        self._options = options = parse_options(config, RewriteOptions)
        for part, parameters in (
            ("writer", options.writer.options),
            ("artist.parameters", options.artist.parameters),
        ):
            if parameters.get("batch"):  # one task after the other would each wait for a day
                raise GenerationError(
                    f"{place}: parameters.{part}.batch is {parameters['batch']!r}: expected none, "
                    "as the two parts of a task follow each other"
                )
        try:
            self._writer = make_engine(options.writer.kind, **options.writer.options)
        except EngineError as error:
            raise GenerationError(f"{place}: writer: {error}") from None
        # Values as they were checked: a dump would turn models into plain data.
        artist_fields = {name: getattr(options.artist, name) for name in ArtistConfig.model_fields}
        artist_fields |= {"status": "current", "stands_for": None}
        self._artist_config = config.model_copy(update=artist_fields)
        self._artist = make_system(self._artist_config)
        self._prompts: dict[tuple[str, int], RewriteResult] = {}
        # An engine that asks a server can be called by several threads, a local model by one.
        is_server = isinstance(self._writer, ServerEngine)
        self._writer_lock: Any = nullcontext() if is_server else Lock()
        self._opened = ExitStack()
        self.concurrency = self._artist.concurrency
        text = "the writer may word a prompt in another way each time; of the artist:"
        self.determinism = f"{text} {self._artist.determinism}"

    def work_at(self, places: Sequence[WorkerFactory]) -> None:
        """Let the artist draw at these places, if it is a local model; the writer stays here."""
        if (work_at := getattr(self._artist, "work_at", None)) is not None:
            work_at(places)
            self.concurrency = self._artist.concurrency

    def signature(self) -> Mapping[str, Any]:
        """Return all that decides an image: the writer, its instructions, and the artist."""
        return {
            "adapter": "rewrite",
            "instructions": hashlib.sha256(load_instructions().encode()).hexdigest(),
            "most_tokens": self._options.most_tokens,
            "writer": dict(self._writer.signature()),
            "artist": dict(self._artist.signature()),
        }

    def estimate(self, tasks: Sequence[Task]) -> ExpectedCost:
        """Estimate the writer's calls and the artist's images."""
        if tasks:
            writer = {f"writer of {self._artist_config.name}": self._options.writer}
            check_gpu_memory(writer, estimates=False)
        requests = [rewrite_request(task, self._options.most_tokens) for task in tasks]
        writer_cost = estimate_calls(self._writer, extend_plan(RequestPlan(), requests, 0))
        images = estimate_cost(self._artist_config, [replace(task, inputs=()) for task in tasks])
        return add_expected(writer_cost, images)

    def preflight(self) -> Retired | None:
        """Look for the artist's model; the writer's is found missing by its first answer."""
        return self._artist.preflight()

    def draw(self, task: Task) -> GenerationResult:
        key = task.sample_digest, task.draw
        writing = self._prompts.pop(key, None)
        if writing is None:
            with self._writer_lock:
                writing = ask_writer(self._writer, rewrite_request(task, self._options.most_tokens))
        if writing.failure is not None:
            is_refusal = writing.failure.reason is Failed.REFUSED
            return GenerationResult(
                Outcome.REFUSED if is_refusal else Outcome.FAILED,
                stage=OutcomeStage.INPUT if is_refusal else OutcomeStage.REQUEST,
                code=f"writer_{writing.failure.reason}",
                text=writing.failure.detail,
                usage=writing.usage,
                cost_usd=writing.cost_usd,
            )
        try:
            result = self._artist.draw(replace(task, prompt=writing.prompt, inputs=()))
        except TransientError as transient:
            # The prompt is kept for the next attempt, and its cost counted with this one.
            self._prompts[key] = replace(writing, usage=Usage(), cost_usd=0.0)
            error_fields = transient.text, transient.code, transient.wait_s
            raise TransientError(*error_fields, *writing.add_costs(transient)) from None
        except (GenerationError, KeyboardInterrupt):
            self._prompts[key] = writing
            raise
        except BaseException as error:  # as for any system, with the writer's tokens
            result = result_of_error(error)
        usage, cost_usd = writing.add_costs(result, is_drawn=result.image is not None)
        artist = {"artist": dict(result.details), "artist_revised_prompt": result.revised_prompt}
        return replace(
            result, revised_prompt=writing.prompt, usage=usage, cost_usd=cost_usd, details=artist
        )

    def __enter__(self) -> Self:
        self._opened.enter_context(self._writer)
        self._opened.enter_context(self._artist)
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()
