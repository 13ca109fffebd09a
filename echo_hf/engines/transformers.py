"""A model that transformers runs in this process: for a GPU or a CPU without vLLM."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

from echo_hf.engines.base import Completion, Request, register
from echo_hf.engines.checkpoint_engine import Answers, CheckpointEngine, failure
from echo_hf.engines.transformers_model import (
    KIND,
    SCHEMA_WORDS,
    LoadedModel,
    PreparedRequest,
    TransformersOptions,
    free,
    is_out_of_memory,
    question,
)
from echo_hf.errors import MissingExtraError

# A question in a pool of several batches finds neighbours of its length.
BATCHES_IN_POOL = 4
TOO_LARGE = Completion(
    None,
    "out of memory with this request alone: lower max_pixels, or use a smaller model or dtype",
    "error",
)
GRAMMAR = "xgrammar"

Numbered = tuple[int, PreparedRequest]

log = logging.getLogger(__name__)


@dataclass
class Batches:
    """Asks questions in batches of a size that the memory holds."""

    ask: Callable[[Sequence[PreparedRequest]], list[Completion]]
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
                if said is TOO_LARGE and len(batch) > 1:
                    self.size = len(batch) // 2
                    told = "out of memory with %d requests: going on with %d"
                    log.warning(told, len(batch), self.size)
                    continue
                del rest[: len(batch)]
                if isinstance(said, list):
                    yield from zip((number for number, _ in batch), said, strict=True)
                elif len(batch) == 1:
                    yield batch[0][0], said
                else:  # one of them spoilt it
                    for one in batch:
                        alone = self._tried([one])
                        yield one[0], alone if isinstance(alone, Completion) else alone[0]

    def _tried(self, batch: list[Numbered]) -> list[Completion] | Completion:
        """The answers of a batch, or why it has none."""
        try:
            return self.ask([question for _, question in batch])
        except Exception as error:  # the error itself would keep what was computed in memory
            fault = TOO_LARGE if self.is_too_large(error) else failure(error)
        self.recover()
        return fault


@register(
    KIND,
    "a GPU or a processor that vLLM does not run on",
    extra="transformers",
    packages=("torch", "transformers", "accelerate"),
)
class TransformersEngine(CheckpointEngine):
    """Answers requests with a model that transformers runs in this process."""

    kind = KIND
    keyed = ("dtype",)
    options: TransformersOptions

    def __init__(self, **options: Any) -> None:
        super().__init__(TransformersOptions, options)

    def signature(self) -> dict[str, Any]:
        structured = GRAMMAR if self._structured else None
        return {**super().signature(), "schema_words": SCHEMA_WORDS, "structured": structured}

    def _answers(self, requests: Iterator[Request]) -> Answers:
        size, numbered = self.options.batch_size, enumerate(requests)
        while pool := list(islice(numbered, BATCHES_IN_POOL * size)):
            if self._loaded is None:
                self._loaded = self._load()
            model, batches = self._loaded
            ready: list[Numbered] = []
            for number, request in pool:
                try:
                    ready.append((number, question(request, model.rendered, self._read)))
                except Exception as error:
                    yield number, failure(error)
            yield from batches.answered(ready)

    def _load(self) -> tuple[LoadedModel, Batches]:
        options, structured = self.options, self._structured
        if structured and importlib.util.find_spec(GRAMMAR) is None:
            raise MissingExtraError(f"structured: {GRAMMAR}", "transformers")
        fitted = self._family is not None
        model = LoadedModel.load(options, self._checkpoint, fitted=fitted, structured=structured)
        return model, Batches(model.answers, is_out_of_memory, free, options.batch_size)

    def _free(self) -> None:
        self._loaded = None
        free()

    @property
    def _structured(self) -> bool:
        asked = self.options.structured
        if asked == "auto":
            return importlib.util.find_spec(GRAMMAR) is not None
        return asked == GRAMMAR
