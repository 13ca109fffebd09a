"""The contract of model engines: requests, completions, and engines found by name.

An engine is a context manager: the first `stream` loads its model, leaving the context frees it;
entering costs nothing. The iterator of requests is pulled in the thread that pulls the stream: an
engine with workers hands requests over to them.
`stream` takes any number of requests, lazily, and yields each completion as it is ready, in any
order, with the number of its request; a failed call is a value, never an exception. `signature`
says everything that decides an answer and nothing else; it is cheap, the same each time, and needs
neither the model nor the network. `sleep`, where an engine has it, makes room for another model
until the next `stream`, and says whether it did; `RunEngines` keeps one model in memory at a time.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Protocol, Self, TypeVar, runtime_checkable
from weakref import WeakSet

from pydantic import BaseModel, ValidationError

from echo_hf._infra import registry
from echo_hf.config.checks import EngineChoice, first_error
from echo_hf.errors import EngineError, describe_install
from echo_hf.reasons import Fact, FailureReason


class Failed(FailureReason):
    """Why a model call gave no answer; its row is kept in `quarantine` and tried again."""

    NEEDS_MODEL = "needs_model", "an engine without a model has no answer; run it with one"
    NOT_ANSWERED = "not_answered", "no answer is stored, and none was asked for"
    DAMAGED_ANSWER = (
        "damaged_answer",
        "the stored answer was damaged since; a run with its model asks again",
    )
    ENGINE_ERROR = "engine_error", "the engine reported an error"
    REFUSED = "refused", "the model declined to answer"
    CUT = "cut", "the answer ended at the token limit"
    UNREADABLE = "unreadable", "the answer holds no JSON object, or is none of those that may be"
    OFF_SCHEMA = "off_schema", "the answer's JSON does not fit the declared schema"


Fact.UNUSABLE.mark(Failed.REFUSED, Failed.CUT, Failed.UNREADABLE, Failed.OFF_SCHEMA)


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of text in a message."""

    text: str


@dataclass(frozen=True, slots=True)
class ImageRef:
    """An image in a message: the digest of its bytes, and the file for the engine that sends it."""

    sha256: str
    file: Path | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[Text | ImageRef, ...]


@dataclass(frozen=True, slots=True)
class Packing:
    """How several requests that differ in one quotation are asked as a single one.

    Attributes:
        size: Most requests of one.
        instructions: What takes the place of the instructions of each.
        answer: The shape of the answer, whose `posts` have a `number` and the fields of an answer.
        fields: Which of a request's `inputs` are quoted; those that are empty are left out.
    """

    size: int
    instructions: Message
    answer: type[BaseModel]
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """One question to a model.

    Attributes:
        task: Name of the stage that asks.
        messages: The conversation; instructions first, so that requests share a prefix.
        answer: The declared shape of the answer; null where the raw text is the answer.
        max_tokens: The longest answer allowed.
        inputs: The same question as structured fields, for engines without a model.
        sources: Addresses of the posts in it, so that a forgotten post's answers go too.
        regex: The form of a raw text, as a regular expression that all of it has to match.
        accepts: Whether a raw text is an answer, for a model that must not be told of a form.
        repeat: Number of the repetition: the same question once more is another request, with
            another seed where answers are drawn.
        row: Key of the row that it is about, as `_parent` holds it; part of no request key.
        part: Its number among the requests of that row; part of no request key.
        packing: How it is asked together with others on its first try; null for alone.
    """

    task: str
    messages: tuple[Message, ...]
    answer: type[BaseModel] | None
    max_tokens: int
    inputs: Mapping[str, Any] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    regex: str | None = None
    accepts: Callable[[str], bool] | None = field(default=None, compare=False)
    repeat: int = 0
    row: str = ""
    part: int = 0
    packing: Packing | None = None

    @property
    def images(self) -> list[ImageRef]:
        """The images of its messages, in order."""
        parts = (part for message in self.messages for part in message.parts)
        return [part for part in parts if isinstance(part, ImageRef)]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a call; `cached` prompt tokens were not computed again."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0

    def __add__(self, other: Usage) -> Usage:
        cached = self.cached + other.cached
        return Usage(self.prompt + other.prompt, self.completion + other.completion, cached)


@dataclass(frozen=True, slots=True)
class Completion:
    """The outcome of a request: text or error, tokens and cost.

    Attributes:
        text: The raw answer, null when there is none.
        error: What went wrong; `needs_model` when an engine without a model abstains.
        finish_reason: `stop`, `length` (cut at the token limit), `refusal` or `error`.
        usage: Tokens.
        cost_usd: Price in US dollars, null when unknown.
    """

    text: str | None
    error: str | None = None
    finish_reason: str = "stop"
    usage: Usage = Usage()
    cost_usd: float | None = None

    @property
    def is_answer(self) -> bool:
        """Whether it is usable: not an error, a refusal, or text cut at the token limit."""
        return self.text is not None and self.error is None and self.finish_reason == "stop"


ABSTAINED = Completion(None, error=Failed.NEEDS_MODEL.value, finish_reason="error")


@runtime_checkable
class Engine(Protocol):
    """Something that answers requests: the protocol of all engines.

    One that is no model, and may leave requests unanswered, has `abstains = True` as well; one that
    asks a model which somebody hosts has `hosted = True`, and is asked from one machine alone; one
    whose model reads text alone has `sees_images = False`; one whose answers are numbers without
    words, as JSON, has `gives_scalars = True`.

    Attributes:
        stored: Whether its answers are kept; false only where asking again is as cheap as reading.
    """

    stored: bool

    def signature(self) -> Mapping[str, Any]:
        """Return all that decides an answer: kind, model, revision, sampling, pixel budget."""
        ...

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """Yield (number of the request, completion) as they are ready, in any order."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


CompletionStream = Generator[tuple[int, Completion], None, None]


class StreamingEngine(ABC):
    """Base of the built-in engines: leaving one ends its streams, then frees its resources."""

    stored: bool = True

    def __init__(self) -> None:
        self._streams: WeakSet[CompletionStream] = WeakSet()

    @abstractmethod
    def _iterate_completions(self, requests: Iterator[Request]) -> CompletionStream: ...

    def _release(self) -> None:  # noqa: B027 - who asks others holds nothing
        """Release what answering took, such as a loaded model."""

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """Yield (number of the request, completion) as they are ready, in any order."""
        completions = self._iterate_completions(iter(requests))
        self._streams.add(completions)
        return completions

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for completions in list(self._streams):
            completions.close()
        self._release()


class ModelFreeEngine:
    """Base of engines without a model, whose answers are as cheap to compute as to read."""

    stored = False
    abstains = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


EngineFactory = Callable[..., Engine]
OptionsT = TypeVar("OptionsT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class EngineRequirements(registry.Requirements):
    """Purpose and requirements of an engine; `chooses` names the engine that it stands for."""

    chooses: Callable[[], str | None] | None = None


BUILT_IN = {
    **{name: name for name in ("openai", "pooling", "recorded", "rules", "scalar_head")},
    **{name: name for name in ("transformers", "vllm")},
    "auto": "base",
    "moderation": "openai",
}
MODULE_PATHS = {name: f"{__package__}.{module}" for name, module in BUILT_IN.items()}
ENGINES: registry.Registry[EngineFactory, EngineRequirements] = registry.Registry(
    "engine", "echo_hf.engines", MODULE_PATHS, EngineError
)
engine_names = ENGINES.list_names


def register(
    name: str,
    about: str = "",
    *,
    extra: str | None = None,
    packages: tuple[str, ...] = (),
    chooses: Callable[[], str | None] | None = None,
) -> Callable[[EngineFactory], EngineFactory]:
    """Make an engine known by a name; other packages use the `echo_hf.engines` entry points.

    Args:
        name: The `kind` that a config names it by.
        about: What it is for, in a few words.
        extra: The extra of echo-hf that brings its packages.
        packages: The packages it imports.
        chooses: For one that stands for others: which it takes on this machine.

    Returns:
        A decorator for a callable that takes the config's other keys and returns an engine; one
        that is no model has `abstains = True`.
    """
    return ENGINES.register(name, EngineRequirements(about, extra, packages, chooses))


def engine_requirements() -> dict[str, EngineRequirements]:
    """Return purpose and requirements of each engine, by name, in order."""
    return {
        name: ENGINES.facts(name) or EngineRequirements("from another package")
        for name in engine_names()
    }


def abstains(signature: Mapping[str, Any] | None) -> bool:
    """Return whether the engine of a signature has no model and may leave requests unanswered."""
    kind = (signature or {}).get("kind", "")
    if not kind:
        return False
    # Second comes what looks through all packages.
    is_known = ENGINES.find_known(kind) or kind in engine_names()
    return bool(is_known) and getattr(ENGINES.find(kind), "abstains", False)


def engine_gives_scalars(kind: str) -> bool | None:
    """Return whether engines of a kind give numbers without words; null where it depends."""
    if kind == "recorded" or kind not in ENGINES.list_names():
        return None
    return bool(getattr(ENGINES.find(kind), "gives_scalars", False))


def check_installed(kind: str, needed_by: str | None = None) -> None:
    """Raise with the install command where packages of an engine are missing."""
    requirements = ENGINES.facts(kind) or EngineRequirements()
    if chosen_kind := requirements.chooses and requirements.chooses():
        check_installed(chosen_kind, needed_by)
    requirements.check_installed(needed_by or f"engine {kind!r}")


def check_vision(engine: Engine, sender: str) -> None:
    """Refuse an engine with a text-only model where images are sent."""
    if getattr(engine, "sees_images", None) is False:
        raise EngineError(
            f"{sender} sends images, and {engine.signature().get('model')!r} reads text alone: "
            "name an engine with a vision-language model, such as Qwen/Qwen2.5-VL-7B-Instruct"
        )


def read_options(model: type[OptionsT], options: Mapping[str, Any], kind: str) -> OptionsT:
    """Validate an engine's options from a config; errors are one line."""
    try:
        return model.model_validate(dict(options))
    except ValidationError as error:
        raise EngineError(first_error(error, f"engine {kind!r}", model)) from None


def make_engine(kind: str, **options: Any) -> Engine:
    """Build the engine that a config names; the first `stream` loads its model."""
    factory = ENGINES.find(kind)
    try:
        return factory(**options)
    except TypeError as error:
        # Their values may be secret.
        raise EngineError(f"engine {kind!r} does not take {sorted(options)!r}: {error}") from error


SERVER_VARIABLE = "OPENAI_BASE_URL"
KEY_VARIABLE = "OPENAI_API_KEY"
GPU_DEVICES = ("dev/nvidia0", "dev/kfd", "dev/dxg")


def choose_engine() -> str | None:
    """Return the engine that `auto` stands for on this machine, null for none."""
    if find_spec("vllm") is not None and has_gpu():
        return "vllm"
    return "openai" if os.environ.get(SERVER_VARIABLE) or os.environ.get(KEY_VARIABLE) else None


@register("auto", "vllm on a GPU, else a server named in the environment", chooses=choose_engine)
def _make_auto_engine(**options: Any) -> Engine:
    kind = choose_engine()
    if kind is None:
        raise EngineError(
            "engine 'auto' found neither vLLM with a GPU nor a server in "
            f"{SERVER_VARIABLE!r} or {KEY_VARIABLE!r}: "
            f"on a machine with a GPU run {describe_install('vllm')}; "
            "or start a server and run export OPENAI_BASE_URL=http://127.0.0.1:8000/v1; "
            "or write {kind: transformers, model: ...} into the config and run "
            f"{describe_install('transformers')}"
        )
    server = os.environ.get(SERVER_VARIABLE) if kind == "openai" else None
    return make_engine(kind, **{**({"base_url": server} if server else {}), **options})


def has_gpu(root: Path = Path("/")) -> bool:
    """Return whether vLLM finds a GPU on this machine, without loading torch."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return False
    return any((root / device).exists() for device in GPU_DEVICES)


EnginePlacement = Callable[[Engine, EngineChoice], Engine]


class RunEngines:
    """The engines of a run by their names in the config; one at a time has its model on a GPU.

    Args:
        choices: What the config says of each.
        place: Makes of an engine one that is asked elsewhere, as a runner does.
    """

    def __init__(
        self, choices: Mapping[str, EngineChoice], place: EnginePlacement = lambda engine, _: engine
    ) -> None:
        self.choices, self._place = choices, place
        # The last one is in use, those before it sleep.
        self._entered: list[tuple[EngineChoice, Engine]] = []

    def use(self, name: str) -> Engine:
        """Return the engine of this name, after another one's model was put to sleep or freed."""
        choice = self.choices[name]
        if not self._entered or self._entered[-1][0] != choice:
            if self._entered:
                self._put_aside(self._entered[-1][1])
            slots = [number for number, entry in enumerate(self._entered) if entry[0] == choice]
            if slots:
                self._entered.append(self._entered.pop(slots[0]))
            else:
                engine = self._place(make_engine(choice.kind, **choice.options), choice)
                self._entered.append((choice, engine.__enter__()))
        return self._entered[-1][1]

    def _put_aside(self, engine: Engine) -> None:
        """Let the last engine's model sleep, or close the engine if it cannot."""
        sleep = getattr(engine, "sleep", None)
        if sleep is None or not sleep():
            self._entered.pop()
            engine.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as stack:
            while self._entered:
                stack.push(self._entered.pop(0)[1])
