"""The engine that runs vLLM in this process, as a stream of requests."""

from __future__ import annotations

import gc
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from inspect import GEN_CLOSED, getgeneratorstate
from itertools import chain
from pathlib import Path
from threading import Thread
from typing import Annotated, Any

from PIL import Image
from pydantic import AfterValidator, Field

from echo_hf.config.checks import StrictInt, refuse_secrets
from echo_hf.engines.base import (
    Completion,
    CompletionStream,
    ImageRef,
    Request,
    Text,
    Usage,
    check_installed,
    register,
)
from echo_hf.engines.checkpoint import (
    CheckpointEngine,
    CheckpointOptions,
    FiniteNumber,
    NonEmptyText,
    PositiveCount,
    describe_error,
    failed_completion,
)
from echo_hf.engines.schema import build_grammar_schema
from echo_hf.engines.vllm_guard import GuardProcess, end_guard, guard_processes
from echo_hf.errors import EngineError

KIND = "vllm"
STRUCTURED_BACKEND = "xgrammar"
STOP_SECONDS = 20.0
# A few more than are computed at a time: the next ones are ready when a place becomes free.
WINDOW_FACTOR = 1.1
READER_THREADS, REQUESTS_AHEAD, CACHED_IMAGES = 4, 4, 96
PASSED_OPTIONS = {
    *("dtype", "quantization", "kv_cache_dtype", "max_model_len", "max_num_seqs"),
    *("tensor_parallel_size", "gpu_memory_utilization", "enforce_eager", "seed", "chat_template"),
}
STEP_KEY = "max_num_batched_tokens"  # of `engine_args`: it decides how much memory is worked with
RESERVED_ARGUMENTS = PASSED_OPTIONS | {
    *("model", "revision", "tokenizer", "tokenizer_revision", "limit_mm_per_prompt"),
    *("mm_processor_kwargs", "structured_outputs_config", "trust_remote_code"),
    *("enable_prefix_caching", "enable_sleep_mode", "disable_log_stats"),
}


def _check_engine_args(engine_args: Mapping[str, Any]) -> Mapping[str, Any]:
    refuse_secrets(engine_args)
    if conflicts := sorted(engine_args.keys() & RESERVED_ARGUMENTS):
        raise ValueError(f"has {conflicts[0]!r}, which the engine sets itself: leave it out")
    if type(step := engine_args.get(STEP_KEY, 1)) is not int or step < 1:
        raise ValueError(f"has {STEP_KEY} {step!r}: expected a whole number above 0")
    return engine_args


StrictBool = Annotated[bool, Field(strict=True)]
NumberedRequest = tuple[int, Request]


class VllmOptions(CheckpointOptions):
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

    quantization: NonEmptyText | None = None
    kv_cache_dtype: NonEmptyText = "auto"
    max_model_len: PositiveCount | None = None
    max_num_seqs: PositiveCount = 256
    tensor_parallel_size: PositiveCount = 1
    gpu_memory_utilization: Annotated[FiniteNumber, Field(gt=0, le=1)] = 0.9
    enforce_eager: StrictBool = False
    limit_images: Annotated[StrictInt, Field(ge=0)] = 16
    seed: Annotated[StrictInt, Field(ge=0, lt=2**32)] = 0
    structured: StrictBool = True
    sleep: StrictBool = False
    gpu_memory_gib: Annotated[FiniteNumber, Field(gt=0)] | None = None
    engine_args: Annotated[Mapping[str, Any], AfterValidator(_check_engine_args)] = {}


def render_conversation(
    request: Request, read_image: Callable[[ImageRef], Image.Image]
) -> list[dict[str, Any]]:
    """Render a request's messages; text alone is no list, which some templates need."""

    def render_part(part: Text | ImageRef) -> dict[str, Any]:
        if isinstance(part, Text):
            return {"type": "text", "text": part.text}
        image = read_image(part)
        # The same image in another size is another content of vLLM's caches.
        uuid = f"{part.sha256}-{image.width}x{image.height}"
        return {"type": "image_pil", "image_pil": image, "uuid": uuid}

    return [
        {"role": message.role, "content": message.parts[0].text}
        if len(message.parts) == 1 and isinstance(message.parts[0], Text)
        else {"role": message.role, "content": [render_part(part) for part in message.parts]}
        for message in request.messages
    ]


def make_sampling(request: Request, options: VllmOptions) -> Any:
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    constraint = None
    if options.structured and request.answer is not None:
        constraint = StructuredOutputsParams(json=build_grammar_schema(request.answer))
    elif options.structured and request.regex is not None:
        constraint = StructuredOutputsParams(regex=request.regex)
    return SamplingParams(
        temperature=options.temperature,
        top_p=options.top_p,
        # The likeliest answer is not drawn, and a generator for each request would cost time.
        seed=options.seed + request.repeat if options.temperature else None,
        max_tokens=request.max_tokens,
        structured_outputs=constraint,
    )


def compute_window_size(max_num_seqs: int) -> int:
    return math.ceil(max_num_seqs * WINDOW_FACTOR)


def iterate_window(
    engine: Any, send: Callable[[Request], str], size: int, requests: Iterator[NumberedRequest]
) -> Iterator[tuple[int, Completion]]:
    """Keep `size` requests with vLLM's engine; closing the generator aborts them."""
    from vllm.v1.engine.exceptions import EngineDeadError

    in_flight: dict[str, tuple[int, str]] = {}

    def describe_stop(error: Exception) -> EngineError:
        in_flight.clear()  # nobody is left who could abort them
        return EngineError(
            f"vLLM stopped working, {describe_error(error)}: see what it wrote above; the same "
            "command resumes from here"
        )

    try:
        while True:
            while len(in_flight) < size and (numbered := next(requests, None)):
                number, request = numbered
                try:
                    identifier = send(request)
                except EngineDeadError as error:
                    raise describe_stop(error) from error
                except Exception as error:  # too long, too many images, a bad image
                    yield number, failed_completion(error)
                    continue
                # vLLM reports a request without the ending that makes its identifier unique.
                in_flight[identifier.rpartition("-")[0] or identifier] = number, identifier
            # A request that vLLM lost is never reported: no reason to wait for ever.
            if not in_flight or not engine.has_unfinished_requests():
                return
            try:
                outputs = engine.step()
            except Exception as error:
                raise describe_stop(error) from error
            for output in outputs:
                if output.finished and output.request_id in in_flight:
                    yield in_flight.pop(output.request_id)[0], _read_completion(output)
    finally:
        if in_flight:
            engine.abort_request([name for _, name in in_flight.values()], internal=True)


def _read_completion(output: Any) -> Completion:
    answer, prompt = output.outputs[0], output.prompt_token_ids or ()
    usage = Usage(len(prompt), len(answer.token_ids), output.num_cached_tokens or 0)
    finish_reason = answer.finish_reason
    if finish_reason in ("stop", "length"):
        return Completion(answer.text, None, finish_reason, usage)
    return Completion(None, f"vLLM ended the answer with {finish_reason!r}", "error", usage)


def read_images_ahead(
    requests: Iterable[NumberedRequest], start_reading: Callable[[ImageRef, Path | None], object]
) -> Iterator[NumberedRequest]:
    """Yield the same requests, while the images of the next few are read."""
    waiting: deque[NumberedRequest] = deque()
    for numbered in requests:
        for reference in numbered[1].images:
            start_reading(reference, reference.file)
        waiting.append(numbered)
        if len(waiting) > REQUESTS_AHEAD:
            yield waiting.popleft()
    yield from waiting


@register(KIND, "one GPU, or a few that share one model", extra="vllm", packages=("vllm",))
class VllmEngine(CheckpointEngine):
    kind = KIND
    signed_options = ("dtype", "quantization", "kv_cache_dtype", "max_model_len")
    options: VllmOptions
    _guard: GuardProcess | None = None
    _is_asleep = False

    def __init__(self, **options: Any) -> None:
        super().__init__(VllmOptions, options)

    @property
    def window(self) -> int:
        return compute_window_size(self.options.max_num_seqs) + REQUESTS_AHEAD

    @property
    def sees_images(self) -> bool | None:
        """Whether requests may have images."""
        return super().sees_images if self.options.limit_images else False

    def signature(self) -> dict[str, Any]:
        structured = STRUCTURED_BACKEND if self.options.structured else None
        # Without any, the key of an answer is what it was before there were any.
        passed = (
            {"engine_args": dict(engine_args)} if (engine_args := self.options.engine_args) else {}
        )
        return {**super().signature(), "structured": structured, **passed}

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """Answer requests in a sliding window; closing the stream aborts those in flight."""
        if any(getgeneratorstate(stream) != GEN_CLOSED for stream in self._streams):
            raise EngineError(
                "engine 'vllm' answers one stream at a time: exhaust or close the other one first"
            )
        return super().stream(requests)

    def _compute_completions(self, requests: Iterator[Request]) -> CompletionStream:
        first = next(requests, None)
        if first is None:
            return
        if self._loaded is None or self._is_asleep:
            self._load()
        llm, options = self._loaded, self.options
        with ThreadPoolExecutor(READER_THREADS) as readers:
            # An image of several requests is read once; of two references, the file may differ.
            @lru_cache(CACHED_IMAGES)
            def start_reading(reference: ImageRef, _: Path | None) -> Future[Image.Image]:
                return readers.submit(self._read_image, reference)

            def wait_for_image(reference: ImageRef) -> Image.Image:
                return start_reading(reference, reference.file).result()

            def send(request: Request) -> str:
                identifiers: list[str] = llm.enqueue_chat(
                    [render_conversation(request, wait_for_image)],
                    [make_sampling(request, options)],
                    use_tqdm=False,
                    chat_template_kwargs=dict(options.chat_template_kwargs) or None,
                )
                return identifiers[0]

            queue = read_images_ahead(enumerate(chain([first], requests)), start_reading)
            size = compute_window_size(options.max_num_seqs)
            yield from iterate_window(llm.llm_engine, send, size, queue)

    def sleep(self) -> bool:
        """Free the GPU until the next request; false where the option is not set."""
        if self._loaded is None or not self.options.sleep:
            return False
        if self._is_asleep:
            return True
        for answers in list(self._streams):
            answers.close()
        self._loaded.sleep()
        self._is_asleep = True
        return True

    def _load(self) -> None:
        check_installed(KIND)
        # Read when vLLM is imported: it says much, over the progress of the run.
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
        try:
            if self._is_asleep:
                self._loaded.wake_up()
            else:
                with guard_processes() as self._guard:
                    self._loaded = self._make_model()
        except Exception as error:  # whatever the driver, the memory or the files are short of
            raise EngineError(
                f"vLLM cannot load {self.options.model!r}: {describe_error(error)}; it wrote more "
                "above; where memory is short, `echo-hf engines --fit CONFIG` says what takes it"
            ) from error
        self._is_asleep = False

    def _make_model(self) -> Any:
        from vllm import LLM

        options, checkpoint, processor = self.options, self._checkpoint, None
        if (budget := self._budget).factor > 1:
            # With the same budget the model's processor leaves alone what was resized on our side.
            size = {"shortest_edge": budget.min_pixels, "longest_edge": budget.max_pixels}
            processor = {"size": size}
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
            **options.model_dump(include=PASSED_OPTIONS),
            **options.engine_args,
        )
        core = llm.llm_engine.engine_core
        if (listener := getattr(core, "output_queue_thread", None)) is not None:
            # It computes in a process of its own. Where the system kills that one, the thread that
            # listens to it ends, and nobody tells the one that waits for an answer.
            def wake_waiting() -> None:
                from vllm.v1.engine.exceptions import EngineDeadError

                listener.join()
                core.outputs_queue.put(EngineDeadError())

            Thread(target=wake_waiting, name="echo-hf-vllm-lost", daemon=True).start()
        return llm

    def _release(self) -> None:
        llm, self._loaded, self._is_asleep = self._loaded, None, False
        if llm is None:
            return
        from vllm.distributed import cleanup_dist_env_and_memory

        llm.renderer.shutdown()
        llm.llm_engine.engine_core.shutdown(timeout=STOP_SECONDS)
        cleanup_dist_env_and_memory()
        if self._guard is not None:
            end_guard(self._guard)
        gc.collect()
