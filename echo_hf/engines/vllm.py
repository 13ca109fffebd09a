"""vLLM in this process, as a stream: the engine for a machine with a GPU."""

from __future__ import annotations

import gc
import math
import os
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from inspect import GEN_CLOSED, getgeneratorstate
from itertools import chain
from pathlib import Path
from threading import Thread
from typing import Annotated, Any

from PIL import Image
from pydantic import AfterValidator, Field

from echo_hf.config.checks import Whole, without_secrets
from echo_hf.engines.base import (
    Answers,
    Completion,
    ImageRef,
    Request,
    Text,
    Usage,
    check_installed,
    register,
)
from echo_hf.engines.checkpoint import (
    CheckpointEngine,
    Count,
    ModelOptions,
    Name,
    Number,
    failure,
    reason,
)
from echo_hf.engines.pixels import budget_of
from echo_hf.engines.schema import grammar_schema
from echo_hf.engines.vllm_guard import Guard, children_guarded, end
from echo_hf.errors import EngineError, unknown

KIND = "vllm"
STRUCTURED_BACKEND = "xgrammar"
SECONDS_TO_STOP = 20.0
# A few more than are computed at a time: the next ones are ready when a place becomes free.
MORE_THAN_COMPUTED = 1.1
READERS = 4
REQUESTS_AHEAD = 8
IMAGES_AHEAD = 16
MOST_KEPT = 2 * IMAGES_AHEAD
PASSED_ON = {
    "dtype",
    "quantization",
    "kv_cache_dtype",
    "max_model_len",
    "max_num_seqs",
    "tensor_parallel_size",
    "gpu_memory_utilization",
    "enforce_eager",
    "seed",
    "chat_template",
}

STEP = "max_num_batched_tokens"  # of `engine_args`: it decides how much memory is worked with
# What is set here, by vLLM's own names, and what to do instead.
SET_HERE = {
    **{name: f"use the option {name}" for name in (*PASSED_ON, "model", "revision")},
    **dict.fromkeys(("tokenizer", "tokenizer_revision"), "use the options model and revision"),
    "limit_mm_per_prompt": "use the option limit_images",
    "mm_processor_kwargs": "use the options min_pixels and max_pixels",
    "structured_outputs_config": "use the option structured",
    "trust_remote_code": "code that comes with a model is never run",
    "enable_prefix_caching": "it is always on",
    "enable_sleep_mode": "use the option sleep",
    "disable_log_stats": "nobody reads them",
}


def _passed_through(given: Mapping[str, Any]) -> Mapping[str, Any]:
    without_secrets(given)
    if name := next((name for name in given if name in SET_HERE), None):
        raise ValueError(f"has {name!r}, which is set here: {SET_HERE[name]}")
    if type(step := given.get(STEP, 1)) is not int or step < 1:
        raise ValueError(f"has {STEP} {step!r}: expected a whole number above 0")
    return given


Switch = Annotated[bool, Field(strict=True)]
Numbered = tuple[int, Request]


class VllmOptions(ModelOptions):
    """Options of the engine, beside those of any model.

    Attributes:
        quantization: How the weights are quantised; null to read it from the model.
        kv_cache_dtype: Type of the keys and values of attention.
        max_model_len: Most tokens of prompt and answer together; null for the model's own.
        max_num_seqs: Most requests that are computed at a time.
        tensor_parallel_size: GPUs that share each layer.
        gpu_memory_utilization: Share of a GPU's memory to take.
        enforce_eager: Start sooner and answer more slowly: nothing is compiled.
        limit_images: Most images of a request; 0 leaves the part that sees images out.
        structured: Whether answers are held to the declared schema while they are written.
        sleep: Whether the weights wait in the machine's own memory while another model is used,
            in place of being loaded again.
        gpu_memory_gib: Memory of a GPU in GiB, for the sum of what fits; null for that of the GPU
            that is here.
        engine_args: Any other argument of vLLM's `LLM`, by its own name.
    """

    quantization: Name | None = None
    kv_cache_dtype: Name = "auto"
    max_model_len: Count | None = None
    max_num_seqs: Count = 256
    tensor_parallel_size: Count = 1
    gpu_memory_utilization: Annotated[Number, Field(gt=0, le=1)] = 0.9
    enforce_eager: Switch = False
    limit_images: Annotated[Whole, Field(ge=0)] = 16
    seed: Annotated[Whole, Field(ge=0, lt=2**32)] = 0
    structured: Switch = True
    sleep: Switch = False
    gpu_memory_gib: Annotated[Number, Field(gt=0)] | None = None
    engine_args: Annotated[Mapping[str, Any], AfterValidator(_passed_through)] = {}


def conversation(
    request: Request, image: Callable[[ImageRef], Image.Image]
) -> list[dict[str, Any]]:
    """The messages of a request; text alone is no list of parts, which not all templates know."""

    def content(part: Text | ImageRef) -> dict[str, Any]:
        if isinstance(part, Text):
            return {"type": "text", "text": part.text}
        shown = image(part)
        # The same image in another size is another content of vLLM's caches.
        uuid = f"{part.sha256}-{shown.width}x{shown.height}"
        return {"type": "image_pil", "image_pil": shown, "uuid": uuid}

    return [
        {"role": message.role, "content": message.parts[0].text}
        if len(message.parts) == 1 and isinstance(message.parts[0], Text)
        else {"role": message.role, "content": [content(part) for part in message.parts]}
        for message in request.messages
    ]


def sampling(request: Request, options: VllmOptions) -> Any:
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    form = None
    if options.structured and request.answer is not None:
        form = StructuredOutputsParams(json=grammar_schema(request.answer))
    elif options.structured and request.regex is not None:
        form = StructuredOutputsParams(regex=request.regex)
    return SamplingParams(
        temperature=options.temperature,
        top_p=options.top_p,
        # The likeliest answer is not drawn, and a generator for each request would cost time.
        seed=options.seed + request.repeat if options.temperature else None,
        max_tokens=request.max_tokens,
        structured_outputs=form,
    )


def window_size(max_num_seqs: int) -> int:
    return math.ceil(max_num_seqs * MORE_THAN_COMPUTED)


@dataclass
class RequestWindow:
    """The requests that vLLM is working on."""

    engine: Any
    send: Callable[[Request], str]
    size: int
    _in_flight: dict[str, tuple[int, str]] = field(default_factory=dict)

    def stream(self, requests: Iterator[Numbered]) -> Iterator[tuple[int, Completion]]:
        try:
            yield from self._topped_up(requests)
            # A request that vLLM lost is never reported: no reason to wait for ever.
            while self._in_flight and self.engine.has_unfinished_requests():
                try:
                    outputs = self.engine.step()
                except Exception as error:
                    raise self._stopped(error) from error
                for output in outputs:
                    if output.finished and output.request_id in self._in_flight:
                        number, _ = self._in_flight.pop(output.request_id)
                        yield number, _completion(output)
                yield from self._topped_up(requests)
        finally:
            left = [identifier for _, identifier in self._in_flight.values()]
            self._in_flight.clear()
            if left:
                self.engine.abort_request(left, internal=True)

    def _topped_up(self, requests: Iterator[Numbered]) -> Iterator[tuple[int, Completion]]:
        while len(self._in_flight) < self.size and (numbered := next(requests, None)):
            number, request = numbered
            try:
                identifier = self.send(request)
            except Exception as error:  # too long, too many images, a bad image, half a character
                from vllm.v1.engine.exceptions import EngineDeadError

                if isinstance(error, EngineDeadError):
                    raise self._stopped(error) from error
                yield number, failure(error)
                continue
            # vLLM reports a request by its identifier without the ending that makes it unique.
            self._in_flight[identifier.rpartition("-")[0] or identifier] = number, identifier

    def _stopped(self, error: Exception) -> EngineError:
        self._in_flight.clear()  # nobody is left who could abort them
        return EngineError(
            f"vLLM stopped working, {reason(error)}: see what it wrote above; the same command "
            "resumes from here"
        )


def _completion(output: Any) -> Completion:
    said, prompt = output.outputs[0], output.prompt_token_ids or ()
    usage = Usage(len(prompt), len(said.token_ids), output.num_cached_tokens or 0)
    ended = said.finish_reason
    if ended in ("stop", "length"):
        return Completion(said.text, None, ended, usage)
    return Completion(None, f"vLLM ended the answer with {ended!r}", "error", usage)


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
    _guard: Guard | None = None
    _is_asleep = False

    def __init__(self, **options: Any) -> None:
        super().__init__(VllmOptions, options)
        if self.options.sleep and self.options.devices is not None:
            raise EngineError(
                f"engine 'vllm': sleep is true and devices is {self.options.devices!r}: expected "
                "one of them, as a process on each device keeps its model"
            )

    @property
    def window(self) -> int:
        return window_size(self.options.max_num_seqs) + REQUESTS_AHEAD

    def signature(self) -> dict[str, Any]:
        structured = STRUCTURED_BACKEND if self.options.structured else None
        # Without any, the key of an answer is what it was before there were any.
        passed = {"engine_args": dict(given)} if (given := self.options.engine_args) else {}
        return {**super().signature(), "structured": structured, **passed}

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """Answers requests as a sliding window; closing the stream aborts what is in flight."""
        if any(getgeneratorstate(one) != GEN_CLOSED for one in self._streams):
            raise EngineError(
                "engine 'vllm' answers one stream at a time: exhaust or close the other one first"
            )
        return super().stream(requests)

    def _computed(self, requests: Iterator[Request]) -> Answers:
        first = next(requests, None)
        if first is None:
            return
        if self._loaded is None:
            self._load()
        elif self._is_asleep:
            self._wake()
        llm, options = self._loaded, self.options
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

    def sleep(self) -> bool:
        """Makes room on the GPU until the next request; false where the option is not set."""
        if self._loaded is None or not self.options.sleep:
            return False
        for answers in list(self._streams):
            answers.close()
        self._loaded.sleep()
        self._is_asleep = True
        return True

    def _wake(self) -> None:
        try:
            self._loaded.wake_up()
        except Exception as error:
            raise EngineError(
                f"vLLM cannot wake {self.options.model!r}: {reason(error)}: lower "
                "gpu_memory_utilization, or leave sleep out"
            ) from error
        self._is_asleep = False

    def _load(self) -> None:
        check_installed(KIND)
        # Read when vLLM is imported: it says much, over the progress of the run.
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
        try:
            from vllm import LLM, EngineArgs
            from vllm.platforms import current_platform
        except Exception as error:
            raise EngineError(
                f"vLLM is installed but cannot be imported: {reason(error)}: make a new "
                'environment with pip install "echo-hf[vllm]" and nothing else'
            ) from error
        options, checkpoint, processor = self.options, self._checkpoint, None
        if options.sleep and not current_platform.is_sleep_mode_available():
            raise EngineError(
                "engine 'vllm': sleep is true, and vLLM's sleep mode needs a GPU of NVIDIA or AMD, "
                "which is not here: leave it out"
            )
        known = [one.name for one in fields(EngineArgs)]
        if strange := next((name for name in options.engine_args if name not in known), None):
            raise EngineError(unknown("argument", strange, known, "engine 'vllm': engine_args"))
        if self._rule["family"] is not None:
            # With the same budget the model's processor leaves alone what was resized on our side.
            budget = budget_of(**self._rule)
            size = {"shortest_edge": budget.min_pixels, "longest_edge": budget.max_pixels}
            processor = {"size": size}
        try:
            with children_guarded() as self._guard:
                llm = LLM(
                    model=checkpoint.source,
                    revision=checkpoint.commit,
                    tokenizer_revision=checkpoint.commit,
                    trust_remote_code=False,
                    enable_prefix_caching=True,
                    disable_log_stats=True,
                    enable_sleep_mode=options.sleep,
                    limit_mm_per_prompt={"image": options.limit_images, "video": 0},
                    mm_processor_kwargs=processor,
                    # Without this a model may fill an answer with white space up to its limit.
                    structured_outputs_config={
                        "backend": STRUCTURED_BACKEND,
                        "disable_any_whitespace": True,
                    },
                    **options.model_dump(include=PASSED_ON),
                    **options.engine_args,
                )
        except Exception as error:  # whatever the driver, the memory or the files are short of
            raise EngineError(
                f"vLLM cannot load {options.model!r}: {reason(error)}; it wrote more above; where "
                "memory is short, `echo-hf engines --fit CONFIG` says what takes it"
            ) from error
        self._loaded = llm
        core = llm.llm_engine.engine_core
        listener = getattr(core, "output_queue_thread", None)
        heard = getattr(core, "outputs_queue", None)
        if listener is not None and heard is not None:  # it computes in a process of its own
            # Where the system kills that process, the thread that listens to it ends, and nobody
            # tells the one that waits for an answer.
            def wake() -> None:
                from vllm.v1.engine.exceptions import EngineDeadError

                listener.join()
                heard.put(EngineDeadError())

            Thread(target=wake, name="echo-hf-vllm-lost", daemon=True).start()

    def _free(self) -> None:
        llm, self._loaded, self._is_asleep = self._loaded, None, False
        if llm is None:
            return
        from vllm.distributed import cleanup_dist_env_and_memory

        llm.renderer.shutdown()
        llm.llm_engine.engine_core.shutdown(timeout=SECONDS_TO_STOP)
        cleanup_dist_env_and_memory()
        if self._guard is not None:
            end(self._guard)
        gc.collect()
