"""Load a model into vLLM, put requests to it, and free what it took."""

from __future__ import annotations

import gc
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Thread
from typing import Annotated, Any

from PIL import Image
from pydantic import Field

from echo_hf.config.checks import Whole
from echo_hf.engines.base import Completion, ImageRef, Request, Text, Usage, check_installed
from echo_hf.engines.checkpoint import Checkpoint, budget_of
from echo_hf.engines.checkpoint_engine import Count, ModelOptions, Name, Number, failure, reason
from echo_hf.engines.schema import grammar_schema
from echo_hf.engines.vllm_guard import Guard, children_guarded, end
from echo_hf.errors import EngineError

KIND = "vllm"
STRUCTURED_BACKEND = "xgrammar"
SECONDS_TO_STOP = 20.0
# A few more than are computed at a time: the next ones are ready when a place becomes free.
MORE_THAN_COMPUTED = 1.1
WHOLE = "stop"
CUT = "length"

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


@dataclass(frozen=True)
class Loaded:
    """vLLM with a model, and what ends its processes when this one is killed."""

    llm: Any
    guard: Guard | None

    def free(self) -> None:
        from vllm.distributed import cleanup_dist_env_and_memory

        self.llm.renderer.shutdown()
        self.llm.llm_engine.engine_core.shutdown(timeout=SECONDS_TO_STOP)
        cleanup_dist_env_and_memory()
        if self.guard is not None:
            end(self.guard)
        gc.collect()


def load(options: VllmOptions, checkpoint: Checkpoint) -> Loaded:
    check_installed(KIND)
    # Read when vLLM is imported: it says much, over the progress of the run.
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    try:
        from vllm import LLM
    except Exception as error:
        raise EngineError(
            f"vLLM is installed but cannot be imported: {reason(error)}: make a new environment "
            'with pip install "echo-hf[vllm]" and nothing else'
        ) from error
    family = options.family or checkpoint.family
    processor = None
    if family is not None:
        # With the same budget the model's processor leaves alone what was resized on our side.
        budget = budget_of(family, options.min_pixels, options.max_pixels)
        size = {"shortest_edge": budget.min_pixels, "longest_edge": budget.max_pixels}
        processor = {"size": size}
    try:
        with children_guarded() as guard:
            llm = LLM(
                model=checkpoint.source,
                revision=checkpoint.commit,
                tokenizer_revision=checkpoint.commit,
                trust_remote_code=False,
                enable_prefix_caching=True,
                disable_log_stats=True,
                limit_mm_per_prompt={"image": options.limit_images, "video": 0},
                mm_processor_kwargs=processor,
                # Without this a model may fill an answer with white space up to its limit.
                structured_outputs_config={
                    "backend": STRUCTURED_BACKEND,
                    "disable_any_whitespace": True,
                },
                **options.model_dump(include=PASSED_ON),
            )
    except Exception as error:  # whatever the driver, the memory or the files are short of
        raise EngineError(
            f"vLLM cannot load {options.model!r}: {reason(error)}; it wrote more above; where "
            "memory is short, lower max_model_len, max_num_seqs or limit_images"
        ) from error
    core = llm.llm_engine.engine_core
    listener, heard = (
        getattr(core, "output_queue_thread", None),
        getattr(core, "outputs_queue", None),
    )
    if listener is not None and heard is not None:  # it computes in a process of its own
        # Where the system kills that process, the thread that listens to it ends, and nobody tells
        # the one that waits for an answer.
        def wake() -> None:
            from vllm.v1.engine.exceptions import EngineDeadError

            listener.join()
            heard.put(EngineDeadError())

        Thread(target=wake, name="echo-hf-vllm-lost", daemon=True).start()
    return Loaded(llm, guard)


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
    said = output.outputs[0]
    usage = Usage(
        len(output.prompt_token_ids or ()), len(said.token_ids), output.num_cached_tokens or 0
    )
    if said.finish_reason in (WHOLE, CUT):
        return Completion(said.text, None, said.finish_reason, usage)
    return Completion(None, f"vLLM ended the answer with {said.finish_reason!r}", "error", usage)
