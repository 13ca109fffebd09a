"""vLLM in this process, as a stream: the engine for a machine with a GPU."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from inspect import GEN_CLOSED, getgeneratorstate
from itertools import chain
from pathlib import Path
from typing import Any

from PIL import Image

from echo_hf.engines.base import Completion, ImageRef, Request, register
from echo_hf.engines.checkpoint_engine import Answers, CheckpointEngine
from echo_hf.engines.vllm_model import (
    KIND,
    STRUCTURED_BACKEND,
    Numbered,
    RequestWindow,
    VllmOptions,
    conversation,
    load,
    sampling,
    window_size,
)
from echo_hf.errors import EngineError

READERS = 4
REQUESTS_AHEAD = 8
IMAGES_AHEAD = 16
MOST_KEPT = 2 * IMAGES_AHEAD


@dataclass
class ImagesAhead:
    """Reads the images of the next few requests, and keeps those of the last few."""

    read: Callable[[ImageRef], Image.Image]
    _readers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(READERS))
    _known: OrderedDict[tuple[str, Path | None], Future[Image.Image]] = field(
        default_factory=OrderedDict
    )

    def announced(self, requests: Iterable[Numbered]) -> Iterator[Numbered]:
        """The same requests, taken a few earlier than they are needed."""
        waiting: deque[tuple[Numbered, int]] = deque()
        ahead = 0
        for numbered in requests:
            parts = (part for message in numbered[1].messages for part in message.parts)
            references = [part for part in parts if isinstance(part, ImageRef)]
            for reference in references:
                self._reading(reference)
            waiting.append((numbered, len(references)))
            ahead += len(references)
            while len(waiting) > REQUESTS_AHEAD or (ahead > IMAGES_AHEAD and len(waiting) > 1):
                first, images = waiting.popleft()
                ahead -= images
                yield first
        for numbered, _ in waiting:
            yield numbered

    def get(self, reference: ImageRef) -> Image.Image:
        return self._reading(reference).result()

    def __enter__(self) -> ImagesAhead:
        return self

    def __exit__(self, *_: object) -> None:
        self._readers.shutdown(cancel_futures=True)
        self._known.clear()

    def _reading(self, reference: ImageRef) -> Future[Image.Image]:
        key = reference.sha256, reference.file
        if key not in self._known:
            self._known[key] = self._readers.submit(self.read, reference)
        self._known.move_to_end(key)
        while len(self._known) > MOST_KEPT:
            self._known.popitem(last=False)[1].cancel()
        return self._known[key]


@register(KIND, "one GPU, or a few that share one model", extra="vllm", packages=("vllm",))
class VllmEngine(CheckpointEngine):
    """Answers requests with a model that vLLM runs in this process, or in one that it starts."""

    kind = KIND
    keyed = ("dtype", "quantization", "kv_cache_dtype", "max_model_len")
    options: VllmOptions

    def __init__(self, **options: Any) -> None:
        super().__init__(VllmOptions, options)

    def signature(self) -> dict[str, Any]:
        structured = STRUCTURED_BACKEND if self.options.structured else None
        return {**super().signature(), "structured": structured}

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """Answers requests as a sliding window; closing the stream aborts what is in flight."""
        if any(getgeneratorstate(one) != GEN_CLOSED for one in self._streams):
            raise EngineError(
                "engine 'vllm' answers one stream at a time: exhaust or close the other one first"
            )
        return super().stream(requests)

    def _answers(self, requests: Iterator[Request]) -> Answers:
        first = next(requests, None)
        if first is None:
            return
        if self._loaded is None:
            self._loaded = load(self.options, self._checkpoint)
        llm, options = self._loaded.llm, self.options
        with ImagesAhead(self._read) as images:

            def send(request: Request) -> str:
                identifiers: list[str] = llm.enqueue_chat(
                    [conversation(request, images.get)],
                    [sampling(request, options)],
                    use_tqdm=False,
                    chat_template_kwargs=dict(options.chat_template_kwargs) or None,
                )
                return identifiers[0]

            window = RequestWindow(llm.llm_engine, send, window_size(options.max_num_seqs))
            yield from window.stream(images.announced(enumerate(chain([first], requests))))

    def _free(self) -> None:
        loaded, self._loaded = self._loaded, None
        loaded.free()
