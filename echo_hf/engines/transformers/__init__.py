"""A model that transformers runs in this process: for a GPU or a processor without vLLM.

The model is loaded by the first request and freed when the context is left. Requests are taken a
few batches ahead and asked in batches of like length. An answer is a function of its request and
the signature: neither greedy answers nor draws depend on what else is in a batch, save for the
last digits of floating-point sums.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Generator, Iterable, Iterator
from functools import cached_property, partial
from typing import Any, Self
from weakref import WeakSet

from echo_hf.engines.base import Completion, ImageRef, Request, check_installed, register
from echo_hf.engines.checkpoint import Checkpoint, find_checkpoint
from echo_hf.engines.families import budget_of
from echo_hf.engines.pixels import SentPicture, sent_reference
from echo_hf.engines.transformers.asking import LoadedModel
from echo_hf.engines.transformers.batches import BATCHES_IN_POOL, Batches, Numbered, failure, pools
from echo_hf.engines.transformers.loading import free, is_out_of_memory, load
from echo_hf.engines.transformers.options import checked
from echo_hf.engines.transformers.question import SCHEMA_WORDS, question
from echo_hf.errors import MissingExtraError

GRAMMAR = "xgrammar"
Answers = Generator[tuple[int, Completion], None, None]


@register(
    "transformers",
    "a GPU or a processor that vLLM does not run on",
    extra="transformers",
    packages=("torch", "transformers", "accelerate"),
)
class TransformersEngine:
    """Answers requests with a model that transformers runs in this process.

    Args:
        **options: The fields of `TransformersOptions`; only `model` is required.

    Attributes:
        stored: True: its answers are kept.
        options: The options, checked.

    Raises:
        EngineError: An option is unknown, missing or not usable.
    """

    stored = True

    def __init__(self, **options: Any) -> None:
        self.options = checked(options)
        self._loaded: tuple[LoadedModel, Batches] | None = None
        self._streams: WeakSet[Answers] = WeakSet()

    def signature(self) -> dict[str, Any]:
        """What decides an answer; devices and the size of batches do not.

        Returns:
            Plain values; `revision` is a commit on the Hub, or the digest of a folder.

        Raises:
            EngineError: The model's name stands for nothing that can be found.
        """
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
        """Answers requests in batches.

        Args:
            requests: Any number of requests, taken a few batches ahead.

        Returns:
            An iterator of (number of the request, completion), batch by batch. The first request
            loads the model, and raises `EngineError` or `MissingExtraError` where that fails.
        """
        answers = self._answers(requests)
        self._streams.add(answers)
        return answers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Ends what is being streamed, and gives back the model's memory."""
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

    def _read(self, reference: ImageRef) -> SentPicture:
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
    def _sampling(self) -> dict[str, Any]:
        options = self.options
        drawn = {"top_p": options.top_p, "seed": options.seed} if options.temperature else {}
        return {"temperature": options.temperature, **drawn}

    @property
    def _structured(self) -> bool:
        asked = self.options.structured
        if asked == "auto":
            return importlib.util.find_spec(GRAMMAR) is not None
        return asked == GRAMMAR

    @property
    def _family(self) -> str | None:
        return self.options.family or self._checkpoint.family

    @cached_property
    def _checkpoint(self) -> Checkpoint:
        return find_checkpoint(
            self.options.model,
            self.options.revision,
            before_asking=partial(check_installed, "transformers"),
        )

    @cached_property
    def _chat_template(self) -> str | None:
        file = self.options.chat_template
        return hashlib.sha256(file.read_bytes()).hexdigest() if file else None
