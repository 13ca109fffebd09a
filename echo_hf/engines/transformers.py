"""A model that transformers runs in this process: for a GPU or a CPU without vLLM."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, Self, TypeVar
from weakref import WeakSet

from echo_hf.engines.base import Completion, ImageRef, Request, register
from echo_hf.engines.checkpoint import CheckpointEngine, budget_of
from echo_hf.engines.pixels import SentImage, sent_reference
from echo_hf.engines.transformers_model import (
    SCHEMA_WORDS,
    LoadedModel,
    PreparedRequest,
    TransformersOptions,
    checked,
    free,
    is_out_of_memory,
    load,
    question,
)
from echo_hf.errors import EchoError, MissingExtraError

# A question in a pool of several batches finds neighbours of its length.
BATCHES_IN_POOL = 4
LONGEST_REASON = 300
TOO_LARGE = Completion(
    None,
    "out of memory with this request alone: lower max_pixels, or use a smaller model or dtype",
    "error",
)

Numbered = tuple[int, PreparedRequest]
Ask = Callable[[Sequence[PreparedRequest]], list[Completion]]
Item = TypeVar("Item")

log = logging.getLogger(__name__)


def pools(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Cuts a stream into lists, each taken only when it is needed."""
    rest = iter(items)
    while pool := list(islice(rest, size)):
        yield pool


def failure(error: BaseException) -> Completion:
    """An error as the answer to the one request that it belongs to."""
    said = " ".join(str(error).split())
    if not isinstance(error, EchoError):
        said = f"{type(error).__name__}: {said}"
    return Completion(None, said[:LONGEST_REASON], "error")


@dataclass(frozen=True, slots=True)
class BatchFailure:
    """Why a batch has no answers; the error itself would keep what was computed in memory."""

    completion: Completion
    too_large: bool


@dataclass
class Batches:
    """Asks questions in batches of a size that the memory holds."""

    ask: Ask
    is_too_large: Callable[[BaseException], bool]
    recover: Callable[[], None]
    size: int

    def answered(self, pool: Iterable[Numbered]) -> Iterator[tuple[int, Completion]]:
        longest_first = sorted(pool, key=lambda one: (one[1].kind, one[1].length), reverse=True)
        for _, alike in groupby(longest_first, key=lambda one: one[1].kind):
            rest = list(alike)
            while rest:
                batch = rest[: self.size]
                said = self._tried(batch)
                if isinstance(said, BatchFailure) and said.too_large and len(batch) > 1:
                    self._halve(len(batch))
                    continue
                del rest[: len(batch)]
                answers = said if isinstance(said, list) else self._one_by_one(batch, said)
                yield from zip((number for number, _ in batch), answers, strict=True)

    def _one_by_one(self, batch: list[Numbered], fault: BatchFailure) -> Iterator[Completion]:
        if len(batch) == 1:
            yield fault.completion
            return
        for one in batch:
            said = self._tried([one])
            yield said.completion if isinstance(said, BatchFailure) else said[0]

    def _tried(self, batch: list[Numbered]) -> list[Completion] | BatchFailure:
        try:
            return self.ask([question for _, question in batch])
        except Exception as error:
            too_large = self.is_too_large(error)
            fault = BatchFailure(TOO_LARGE if too_large else failure(error), too_large)
        self.recover()
        return fault

    def _halve(self, tried: int) -> None:
        self.size = tried // 2
        log.warning("out of memory with %d requests: going on with %d", tried, self.size)


GRAMMAR = "xgrammar"
Answers = Generator[tuple[int, Completion], None, None]


@register(
    "transformers",
    "a GPU or a processor that vLLM does not run on",
    extra="transformers",
    packages=("torch", "transformers", "accelerate"),
)
class TransformersEngine(CheckpointEngine):
    """Answers requests with a model that transformers runs in this process."""

    stored = True
    package = "transformers"
    options: TransformersOptions

    def __init__(self, **options: Any) -> None:
        self.options = checked(options)
        self._loaded: tuple[LoadedModel, Batches] | None = None
        self._streams: WeakSet[Answers] = WeakSet()

    def signature(self) -> dict[str, Any]:
        """What decides an answer; devices and the size of batches do not."""
        options, checkpoint = self.options, self._checkpoint
        budget = budget_of(self._family, options.min_pixels, options.max_pixels)
        return {
            "kind": "transformers",
            "model": checkpoint.name,
            "revision": checkpoint.revision,
            "dtype": options.dtype,
            "sampling": self._sampling,
            "pixels": [budget.factor, budget.min_pixels, budget.max_pixels],
            # The model's own template belongs to its revision.
            "chat_template": self._chat_template,
            "chat_template_kwargs": dict(options.chat_template_kwargs),
            "schema_words": SCHEMA_WORDS,
            "structured": GRAMMAR if self._structured else None,
        }

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        answers = self._answers(requests)
        self._streams.add(answers)
        return answers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in list(self._streams):
            stream.close()
        if self._loaded is not None:
            self._loaded = None
            free()

    def _answers(self, requests: Iterable[Request]) -> Answers:
        for pool in pools(enumerate(requests), BATCHES_IN_POOL * self.options.batch_size):
            model, batches = self._load()
            ready: list[Numbered] = []
            for number, request in pool:
                try:
                    ready.append((number, question(request, model.rendered, self._read)))
                except Exception as error:
                    yield number, failure(error)
            yield from batches.answered(ready)

    def _read(self, reference: ImageRef) -> SentImage:
        return sent_reference(
            reference,
            family=self._family,
            min_pixels=self.options.min_pixels,
            max_pixels=self.options.max_pixels,
        )

    def _load(self) -> tuple[LoadedModel, Batches]:
        if self._loaded is None:
            if self._structured and importlib.util.find_spec(GRAMMAR) is None:
                raise MissingExtraError(f"structured: {GRAMMAR}", "transformers")
            loaded, fitted = load(self.options, self._checkpoint), self._family is not None
            model = LoadedModel(*loaded, self.options, fitted, self._structured)
            batches = Batches(model.answers, is_out_of_memory, free, self.options.batch_size)
            self._loaded = model, batches
        return self._loaded

    @property
    def _structured(self) -> bool:
        asked = self.options.structured
        if asked == "auto":
            return importlib.util.find_spec(GRAMMAR) is not None
        return asked == GRAMMAR
