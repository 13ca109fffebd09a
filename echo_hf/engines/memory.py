"""Estimate whether a vLLM engine fits on a GPU, from the published shape of its model.

All sizes are of one GPU; 1 GiB is 2**30 bytes.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from echo_hf._infra.text import clean
from echo_hf.engines.base import choose_engine, read_options
from echo_hf.engines.checkpoint import CONFIG, describe_error, model_family
from echo_hf.engines.pixels import pixel_budget
from echo_hf.engines.vllm import KIND, STEP_KEY, VllmOptions
from echo_hf.errors import EngineError, UnknownSizeError

if TYPE_CHECKING:
    from echo_hf.config.checks import EngineChoice

GIB = 2**30
FLOAT_TYPES = frozenset({"F64", "F32", "F16", "BF16"})
# Of a number; vLLM loads weights of 32 bits with 16 unless it is told to keep them.
NUMBER_BYTES = {"auto": 2, "bfloat16": 2, "float16": 2, "float32": 4}
FP8_BYTES = {"fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1, "fp8_inc": 1}
BLOCK_TOKENS = 16  # tokens of cache that vLLM gives out at a time
MAX_TILES = 16  # of an image, as Llama 4 cuts it; the whole comes on top
# Tokens of a step where a config does not say: vLLM's own defaults, by the size of the GPU.
LARGE_GPU_GIB, LARGE_STEP, SMALL_STEP = 70, 16_384, 8_192
SAMPLER_BYTES_PER_TOKEN = 16  # for each token of the vocabulary: four copies of 32 bits
GRAPH_BYTES, LIBRARY_BYTES = GIB * 3 // 4, GIB // 4

# What moves memory in ways that are not worked out here.
UNSUPPORTED_ARGS = {
    *("cpu_offload_gb", "offload_group_size", "hf_overrides", "quantization_config"),
    *("pipeline_parallel_size", "decode_context_parallel_size", "kv_cache_memory_bytes"),
    *("num_gpu_blocks_override", "speculative_config", "spec_model", "enable_lora"),
}


class ModelShape(NamedTuple):
    """The model config and parameter counts, which decide the memory that a model takes."""

    config: Mapping[str, Any]
    parameters: int
    vision_parameters: int
    packed: int = 0  # bytes of weights that are quantised in the files


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Memory that an engine takes on each of its GPUs, in bytes; a request has `tokens` tokens.

    `token` is the cache of one token, `image_tokens` are those of as many images as a request may
    have, at their largest; `gpu_gib` is null where nobody knows the GPU, and so is what is left.
    """

    weights: int
    request: int
    working: int
    token: int
    tokens: int
    image_tokens: int
    gpus: int
    share: float
    gpu_gib: float | None

    @property
    def required_memory(self) -> int:
        return self.weights + self.request + self.working

    @property
    def available_memory(self) -> float | None:
        return None if self.gpu_gib is None else self.share * self.gpu_gib * GIB

    @property
    def cache(self) -> float | None:
        available = self.available_memory
        return None if available is None else max(0.0, available - self.weights - self.working)

    @property
    def concurrent_requests(self) -> float | None:
        return None if self.cache is None else self.cache / self.request

    @property
    def fits(self) -> bool:
        """Whether one request fits, as far as the sizes are known."""
        return self.available_memory is None or self.required_memory <= self.available_memory

    @property
    def advice(self) -> str:
        max_tokens = int((self.cache or 0) / self.token) // BLOCK_TOKENS * BLOCK_TOKENS
        shorter_context = f"lower max_model_len to {max_tokens:,}, " if max_tokens else ""
        return (
            f"{shorter_context}raise gpu_memory_utilization or tensor_parallel_size, lower "
            "engine_args.max_num_batched_tokens, or take a smaller or a quantised model"
        )

    def __str__(self) -> str:
        per_gpu, limit = f" on each of {self.gpus} GPUs" if self.gpus > 1 else "", ""
        if self.available_memory is not None:
            limit = f", of {gib(self.available_memory)} ({self.share:g} of {self.gpu_gib:.1f})"
        return (
            f"weights {gib(self.weights)} + 1 request of {self.tokens:,} tokens "
            f"{gib(self.request)} + working memory about {gib(self.working)} = "
            f"{gib(self.required_memory)}{per_gpu}{limit}"
        )


def gib(size: float) -> str:
    return f"{size / GIB:.1f} GiB"


def estimate_memory(
    options: VllmOptions, shape: ModelShape, gpu_gib: float | None = None
) -> MemoryEstimate:
    """Estimate the GPU memory that an engine takes.

    Exact: weights are parameters x bytes of a number, and the cache of a token is 2 x layers x
    heads of keys and values x width of a head x bytes of a number, both over
    `tensor_parallel_size`; a layer with a sliding window keeps the window and a step of tokens.

    An estimate, within about a GiB: working memory, which vLLM measures when it starts. It is the
    largest of three moments (a layer over a step of `max_num_batched_tokens`, 2 x hidden + 3 x
    intermediate numbers a token; the same over the images of a step in the part that sees them;
    the choice from the vocabulary, 16 bytes for each of its tokens and `max_num_seqs`), and the
    embeddings of those images, 0.25 GiB of libraries, and 0.75 GiB of CUDA graphs.

    >>> options = VllmOptions(model="Qwen/Qwen2.5-VL-32B-Instruct", max_model_len=32_768)
    >>> estimate = estimate_memory(options, find_shape(options.model), 79.1)
    >>> gib(estimate.weights), gib(estimate.request), estimate.concurrent_requests >= 1
    ('62.3 GiB', '8.0 GiB', False)
    """
    args, size, gpus = (
        options.engine_args,
        NUMBER_BYTES[options.dtype],
        options.tensor_parallel_size,
    )
    text = shape.config.get("text_config") or shape.config
    tokens: int = options.max_model_len or text.get("max_position_embeddings", 0)
    kv_size = {**NUMBER_BYTES, **FP8_BYTES, "auto": size}.get(options.kv_cache_dtype, 0)
    is_packed_here = options.quantization is not None and not shape.packed
    for is_unknown, message in (
        (
            args.keys() & UNSUPPORTED_ARGS,
            "engine_args moves memory in a way that is not worked out here",
        ),
        (not tokens, f"no longest context of {options.model!r} here: give max_model_len"),
        (not kv_size, f"kv_cache_dtype {options.kv_cache_dtype!r} has a size not known here"),
        (
            is_packed_here,
            f"quantization {options.quantization!r}: name a model that is quantised already",
        ),
    ):
        if is_unknown:
            raise UnknownSizeError(message)
    names = ("hidden_size", "num_attention_heads", "intermediate_size")
    hidden, heads, intermediate = (text[name] for name in names)
    kv_heads = max(1, (text.get("num_key_value_heads") or heads) // gpus)
    layer_cache = 2 * kv_heads * (text.get("head_dim") or hidden // heads) * kv_size
    layers = text["num_hidden_layers"]
    is_small = gpu_gib is not None and gpu_gib < LARGE_GPU_GIB
    default = min(SMALL_STEP if is_small else LARGE_STEP, options.max_num_seqs * tokens)
    step = args.get(STEP_KEY, default)
    # Layers that attend to everything; a config may well name a window that none has.
    full = layers // (text.get("sliding_window_pattern") or 1)
    window = min(tokens, (text.get("sliding_window") or 0) - 1 + step)
    peaks = [
        step * (2 * hidden + 3 * intermediate // gpus) * size,
        options.max_num_seqs * text["vocab_size"] * SAMPLER_BYTES_PER_TOKEN,
    ]
    image, embeddings, vision = 0, 0, shape.config.get("vision_config")
    # Without images, vLLM leaves the part out that sees them.
    parameters = shape.parameters - (0 if options.limit_images else shape.vision_parameters)
    if vision and options.limit_images:
        image, patches = _count_tokens(options, vision, shape.config.get("mm_tokens_per_image"))
        step_tokens = image * max(
            1, min(step // image, options.max_num_seqs * options.limit_images)
        )
        width = vision["hidden_size"]
        numbers = 2 * width + 3 * vision.get("intermediate_size", 4 * width) // gpus
        peaks.append(step_tokens * patches * numbers * size)
        embeddings = (
            step_tokens * hidden * size * (1 + len(vision.get("deepstack_visual_indexes", ())))
        )
    return MemoryEstimate(
        weights=(parameters * size + shape.packed) // gpus,
        request=layer_cache * (full * _round_up(tokens) + (layers - full) * _round_up(window)),
        working=max(peaks)
        + embeddings
        + LIBRARY_BYTES
        + (0 if options.enforce_eager else GRAPH_BYTES),
        token=layer_cache * layers,
        tokens=tokens,
        image_tokens=image * options.limit_images,
        gpus=gpus,
        share=options.gpu_memory_utilization,
        gpu_gib=gpu_gib,
    )


def _round_up(tokens: int) -> int:
    return -(-tokens // BLOCK_TOKENS) * BLOCK_TOKENS


def _count_tokens(
    options: VllmOptions, vision: Mapping[str, Any], fixed: int | None
) -> tuple[int, int]:
    """Return the most tokens of one image, and how many patches make up a token."""
    patch, merge = vision.get("patch_size", 14), vision.get("spatial_merge_size", 2)
    if fixed:  # of an image of whatever size
        return fixed, (vision["image_size"] // patch) ** 2 // fixed
    if ratio := vision.get("pixel_shuffle_ratio"):
        tile = round((vision["image_size"] // patch) ** 2 * ratio**2)
        return (MAX_TILES + 1) * tile, round(ratio**-2)
    family = options.family or model_family(options.model)
    max_pixels = pixel_budget(family, options.min_pixels, options.max_pixels).max_pixels
    if max_pixels is None:
        raise UnknownSizeError("max_pixels is null, so that an image may have any size")
    return max_pixels // (patch * merge) ** 2, merge**2


def estimate_engine_memory(
    choice: EngineChoice, gpu_gib: float | None = None, *, ask: bool = False
) -> MemoryEstimate:
    """Estimate the memory of a config's engine; `ask` allows a look-up on the Hub."""
    kind = choose_engine() if choice.kind == "auto" else choice.kind
    if kind != KIND:
        raise UnknownSizeError(f"kind {choice.kind!r}: only what {KIND!r} takes is worked out")
    options = read_options(VllmOptions, choice.options, KIND)
    gpu_gib = gpu_gib or options.gpu_memory_gib or measure_gpu_memory()
    try:
        return estimate_memory(
            options, find_shape(options.model) or _read_shape(options, ask), gpu_gib
        )
    except EngineError:
        raise
    except Exception as error:  # of files, of the Hub's client, of a config of another kind
        raise UnknownSizeError(
            f"the shape of {options.model!r} is not known here: name a folder that has it, or a "
            f"model that the Hub shows you ({clean(describe_error(error), 100)})"
        ) from error


def check_gpu_memory(engines: Mapping[str, EngineChoice], *, estimates: bool = True) -> None:
    """Refuse an engine that cannot hold a single request; unknown sizes are left to vLLM.

    Without `estimates`, working memory counts as none: then only what cannot be is refused.
    """
    for name, choice in engines.items():
        with suppress(UnknownSizeError):
            estimate = estimate_engine_memory(choice)
            counted = estimate if estimates else replace(estimate, working=0)
            if not counted.fits:
                raise EngineError(f"engine {name!r} does not fit: {estimate}: {estimate.advice}")


def measure_gpu_memory() -> float | None:
    """Return GiB of the smallest visible GPU, as CUDA counts it; null where none is known."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    # Of 81,559 MiB of an H100, the driver keeps about 500 to itself.
    command = ["nvidia-smi", "--query-gpu=memory.total,memory.reserved"]
    command += ["--format=csv,noheader,nounits", *([f"--id={visible}"] if visible else [])]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)  # noqa: S603
        pairs = [line.split(",") for line in process.stdout.splitlines() if visible != ""]
        return min((int(total) - int(reserved)) / 1024 for total, reserved in pairs)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


@cache
def _read_published_shapes() -> Mapping[str, Any]:
    document = yaml.safe_load(files(__package__).joinpath("shapes.yaml").read_bytes())
    models: Mapping[str, Any] = document["models"]
    return models


def find_shape(model: str) -> ModelShape | None:
    row = _read_published_shapes().get(model)
    return row and ModelShape(row["config"], row["parameters"], row["vision_parameters"])


def _read_shape(options: VllmOptions, ask: bool) -> ModelShape:
    import huggingface_hub as hub

    model, revision = options.model, options.revision
    if (folder := Path(model)).is_dir():
        path, weights = folder / CONFIG, hub.get_local_safetensors_metadata(folder)
    elif ask:
        path = Path(hub.hf_hub_download(model, CONFIG, revision=revision))
        weights = hub.get_safetensors_metadata(model, revision=revision)
    else:
        raise UnknownSizeError(f"no published shape of {model!r} here: name its folder")
    config = json.loads(path.read_text("utf-8"))
    text = config.get("text_config") or config
    is_sliding = text.get("sliding_window") and text.get("use_sliding_window", True)
    others = set(text.get("layer_types") or ()) - {"full_attention"}
    if is_sliding or others or text.get("attention_chunk_size") or text.get("kv_lora_rank"):
        raise UnknownSizeError("not all of its layers attend to everything: no sum here knows it")
    tensors = [
        tensor for file in weights.files_metadata.values() for tensor in file.tensors.items()
    ]
    parameters = {
        name: tensor.parameter_count for name, tensor in tensors if tensor.dtype in FLOAT_TYPES
    }
    vision = sum(
        count for name, count in parameters.items() if "visual" in name or "vision" in name
    )
    packed = [tensor.data_offsets for _, tensor in tensors if tensor.dtype not in FLOAT_TYPES]
    return ModelShape(
        config, sum(parameters.values()), vision, sum(end - start for start, end in packed)
    )
