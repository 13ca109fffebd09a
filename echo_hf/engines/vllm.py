"""vLLM in this process, as a stream: the engine for a machine with a GPU."""

from __future__ import annotations

import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from inspect import GEN_CLOSED, getgeneratorstate
from itertools import chain
from pathlib import Path
from typing import Any, Self

from echo_hf.engines.base import Completion, ImageRef, Request, register
from echo_hf.engines.checkpoint import CheckpointEngine, budget_of
from echo_hf.engines.pixels import SentImage, sent_reference
from echo_hf.engines.vllm_model import (
    STRUCTURED_BACKEND,
    Loaded,
    RequestWindow,
    VllmOptions,
    checked,
    conversation,
    free,
    installed_versions,
    load,
    sampling,
    window_size,
)
from echo_hf.errors import EngineError

Read = Callable[[ImageRef], SentImage]
Numbered = tuple[int, Request]
Key = tuple[str, Path | None]

READERS = 4
REQUESTS_AHEAD = 8
IMAGES_AHEAD = 16
MOST_KEPT = 2 * IMAGES_AHEAD


@dataclass
class ImagesAhead:
    """Reads the images of the next few requests, and keeps those of the last few."""

    read: Read
    _readers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(READERS))
    _known: OrderedDict[Key, Future[SentImage]] = field(default_factory=OrderedDict)

    def announced(self, requests: Iterable[Numbered]) -> Iterator[Numbered]:
        """The same requests, taken a few earlier than they are needed."""
        waiting: deque[tuple[Numbered, int]] = deque()
        ahead = 0
        for numbered in requests:
            waiting.append((numbered, self._announce(numbered[1])))
            ahead += waiting[-1][1]
            while len(waiting) > REQUESTS_AHEAD or (ahead > IMAGES_AHEAD and len(waiting) > 1):
                first, images = waiting.popleft()
                ahead -= images
                yield first
        for numbered, _ in waiting:
            yield numbered

    def get(self, reference: ImageRef) -> SentImage:
        return self._reading(reference).result()

    def __enter__(self) -> ImagesAhead:
        return self

    def __exit__(self, *_: object) -> None:
        self._readers.shutdown(cancel_futures=True)
        self._known.clear()

    def _announce(self, request: Request) -> int:
        parts = [part for message in request.messages for part in message.parts]
        references = [part for part in parts if isinstance(part, ImageRef)]
        for reference in references:
            self._reading(reference)
        return len(references)

    def _reading(self, reference: ImageRef) -> Future[SentImage]:
        key = reference.sha256, reference.file
        if key not in self._known:
            self._known[key] = self._readers.submit(self.read, reference)
        self._known.move_to_end(key)
        while len(self._known) > MOST_KEPT:
            self._known.popitem(last=False)[1].cancel()
        return self._known[key]


KEYED = ("dtype", "quantization", "kv_cache_dtype", "max_model_len")

Answers = Generator[tuple[int, Completion], None, None]


@register("vllm", "one GPU, or a few that share one model", extra="vllm", packages=("vllm",))
class VllmEngine(CheckpointEngine):
    """Answers requests with a model that vLLM runs in this process, or in one that it starts."""

    stored = True
    package = "vllm"
    options: VllmOptions

    def __init__(self, **options: Any) -> None:
        self.options = checked(options)
        self._loaded: Loaded | None = None
        self._running: weakref.ref[Answers] | None = None

    def signature(self) -> dict[str, Any]:
        """What decides an answer; memory, numbers of GPUs and of requests at a time do not."""
        options, checkpoint = self.options, self._checkpoint
        budget = budget_of(self._family, options.min_pixels, options.max_pixels)
        return {
            "kind": "vllm",
            "model": checkpoint.name,
            "revision": checkpoint.revision,
            **{name: getattr(options, name) for name in KEYED},
            "sampling": self._sampling,
            "pixels": [budget.factor, budget.min_pixels, budget.max_pixels],
            # The model's own template belongs to its revision.
            "chat_template": self._chat_template,
            "chat_template_kwargs": dict(options.chat_template_kwargs),
            "structured": STRUCTURED_BACKEND if options.structured else None,
        }

    def versions(self) -> dict[str, str]:
        """Versions of the libraries that compute the answers: to be noted, no part of a key."""
        return installed_versions()

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """Answers requests as a sliding window; closing the stream aborts what is in flight."""
        if self._open_stream is not None:
            raise EngineError(
                "engine 'vllm' answers one stream at a time: exhaust or close the other one first"
            )
        answers = self._answers(iter(requests))
        self._running = weakref.ref(answers)
        return answers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._open_stream is not None:
            self._open_stream.close()
        if self._loaded is not None:
            loaded, self._loaded = self._loaded, None
            free(loaded)

    def _answers(self, requests: Iterator[Request]) -> Answers:
        first = next(requests, None)
        if first is None:
            return
        if self._loaded is None:
            self._loaded = load(self.options, self._checkpoint)
        llm = self._loaded.llm
        with ImagesAhead(self._read_image) as images:
            send = partial(self._send, llm, images)
            window = RequestWindow(llm.llm_engine, send, window_size(self.options.max_num_seqs))
            yield from window.stream(images.announced(enumerate(chain([first], requests))))

    def _send(self, llm: Any, images: ImagesAhead, request: Request) -> str:
        identifiers: list[str] = llm.enqueue_chat(
            [conversation(request, images.get)],
            [sampling(request, self.options)],
            use_tqdm=False,
            chat_template_kwargs=dict(self.options.chat_template_kwargs) or None,
        )
        return identifiers[0]

    @property
    def _open_stream(self) -> Answers | None:
        answers = None if self._running is None else self._running()
        ended = answers is None or getgeneratorstate(answers) == GEN_CLOSED
        return None if ended else answers

    @property
    def _read_image(self) -> Any:
        return partial(
            sent_reference,
            family=self._family,
            min_pixels=self.options.min_pixels,
            max_pixels=self.options.max_pixels,
        )
