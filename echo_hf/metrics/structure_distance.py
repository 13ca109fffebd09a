"""Structure distance: whether a system's outputs keep the layout of its inputs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import islice
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field

from echo_hf.config.checks import StrictInt, Words
from echo_hf.engines.checkpoint import find_checkpoint
from echo_hf.errors import EngineError, ScoreError, WeightsError, unknown
from echo_hf.images.loader import ProcessGuard
from echo_hf.metrics.base import Metric, read_card, register
from echo_hf.metrics.image_features import (
    InputCache,
    SampleFeatures,
    check_protocol,
    common_fields,
    extract,
    pair_images,
    reasons_of,
)
from echo_hf.metrics.result import (
    MetricReason,
    MetricResult,
    Unmeasured,
    describe_error,
    get_versions,
    make_mean_fields,
)
from echo_hf.prompts import fill_prompt

if TYPE_CHECKING:  # the package of scores imports datasets
    import torch

    from echo_hf.scores.votes import ProtocolName

MODEL = "facebook/dino-vits16"
LAYER, SIZE, BATCH_SIZE = 11, 224, 8
# DINO was trained with it; its checkpoints on the Hub state another.
LAYER_NORM_EPS = 1e-6
ATTENTION = "sdpa"
CHANNELS = 3
# The weights of DINO ViT-S/16 are there as a pickle alone, which torch reads without running it.
FILES = ("config.json", "*.safetensors", "*.safetensors.index.json", "pytorch_model*.bin*")
RESAMPLING = Image.Resampling.BILINEAR
# Mean and spread of the levels of ImageNet from 0 to 1, red, green and blue.
MEAN, SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
HIGHEST = 255
SHORTEST_KEY = 1e-8
Reduction = Literal["min", "max", "mean"]
REDUCTIONS: Mapping[Reduction, Callable[[Sequence[float]], float]]
REDUCTIONS = {"min": min, "max": max, "mean": fmean}
Similarity = NDArray[np.float32]
PLAIN, MISSING = "plain conversion to RGB", "taken for a missing output"
RULES: Mapping[ProtocolName, Mapping[str, Any]] = {
    "published": {"loader": PLAIN, "reduction": "max", "zero": MISSING},
    "corrected": {"loader": "echo_hf.load_rgb", "reduction": "min", "zero": "a distance"},
}


@dataclass(frozen=True, slots=True)
class VitOptions:
    """The ViT of `structure_distance`, and its layer and size."""

    model: str
    revision: str | None
    layer: int
    size: int
    device: str | None


@dataclass(frozen=True, slots=True, eq=False)
class LoadedVit:
    """A ViT, ready to run."""

    model: Any
    device: str
    interpolated: bool
    definition: Mapping[str, Any]
    key: str


def get_patch_grid(config: Any, options: VitOptions) -> dict[str, Any]:
    """Describe how a ViT divides images into patches, for the definition of a result."""
    patch, trained = config.patch_size, config.image_size
    squares = isinstance(patch, int) and isinstance(trained, int)
    if config.model_type != "vit" or config.num_channels != CHANNELS or not squares:
        raise ScoreError(
            f"model {options.model!r} is of type {config.model_type!r} with {config.num_channels} "
            f"channels, {trained} pixels: expected a 'vit' of {CHANNELS} channels and square images"
        )
    if options.layer >= config.num_hidden_layers:
        last = config.num_hidden_layers - 1
        raise ScoreError(f"layer is {options.layer!r}: expected a number from 0 to {last}")
    if options.size % patch:
        raise ScoreError(f"size is {options.size!r}: expected a multiple of {patch}, as {trained}")
    learned = f"those for {trained} pixels, bicubic interpolation"
    return {
        "patch": patch,
        "tokens": (options.size // patch) ** 2 + 1,
        "positions": "as learned" if options.size == trained else learned,
    }


def load_vit(options: VitOptions) -> LoadedVit:
    """Load a ViT, and identify its weights by their commit."""
    StructureDistanceMetric.check_installed()
    import torch

    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        from transformers import AutoConfig, ViTModel

        device = str(torch.empty(0, device=device).device)
        with _silence_transformers():
            folder, identity = _find_files(options)
            config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
            grid = get_patch_grid(config, options)
            config.layer_norm_eps = LAYER_NORM_EPS
            model, report = ViTModel.from_pretrained(
                folder,
                config=config,
                add_pooling_layer=False,
                dtype=torch.float32,
                attn_implementation=ATTENTION,
                weights_only=True,
                output_loading_info=True,
            )
            if missing := report["missing_keys"]:
                raise ValueError(f"{len(missing)} weights are missing, first {min(missing)!r}")
            model = model.to(device).eval()
    except ScoreError:
        raise
    except Exception as error:  # whatever the files, the memory or the driver are short of
        raise ScoreError(
            f"cannot load {options.model!r} on {device!r} ({describe_error(error)}): expected a "
            "ViT in the files of transformers, and a device that torch has here"
        ) from error
    definition = {
        **identity,
        "layer": options.layer,
        "size": options.size,
        "layer_norm_eps": LAYER_NORM_EPS,
        "attention": ATTENTION,
        "dtype": "float32",
        "matmul_precision": torch.get_float32_matmul_precision(),
        "versions": get_versions("torch", "transformers"),
        **grid,
        # The kind: parts that were measured on two GPUs of a machine are of one result.
        "device": device.partition(":")[0],
    }
    key = json.dumps(definition, sort_keys=True)
    return LoadedVit(model, device, grid["positions"] != "as learned", definition, key)


def _find_files(options: VitOptions) -> tuple[str, dict[str, Any]]:
    """Return the folder of a ViT's files and its identity; download files that are missing."""
    from huggingface_hub import snapshot_download

    try:
        checkpoint = find_checkpoint(options.model, options.revision)
        folder, commit = checkpoint.source, checkpoint.commit
        if commit is not None:
            folder = snapshot_download(folder, revision=commit, allow_patterns=list(FILES))
    except Exception as error:  # the Hub's client passes on what its own libraries raise
        cause = error.__cause__ if isinstance(error, EngineError) else error
        if cause is None:
            raise ScoreError(str(error)) from error
        raise WeightsError(
            f"no model {options.model!r} at revision {options.revision or 'main'!r}: neither a "
            f"folder, nor in the cache, nor on the Hub ({type(cause).__name__}): check the name "
            "and the revision, or go online once"
        ) from error
    return folder, {"model": checkpoint.name, "revision": checkpoint.revision}


@contextmanager
def _silence_transformers() -> Iterator[None]:
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _disable_cudnn(stack: ExitStack) -> None:
    from torch.backends import cudnn

    stack.callback(setattr, cudnn, "enabled", cudnn.enabled)
    cudnn.enabled = False


# What it guards belongs to the process: there is one.
without_cudnn = ProcessGuard(_disable_cudnn)


@dataclass(frozen=True, slots=True, eq=False)
class ResizedImage:
    """An image as the ViT takes it."""

    pixels: NDArray[np.uint8]
    digest: bytes


def resize(image: Image.Image, size: int) -> ResizedImage:
    """Resize an image to a square, whatever its shape, in 8 bits."""
    pixels = np.asarray(image.resize((size, size), RESAMPLING))
    return ResizedImage(pixels, sha256(pixels.tobytes()).digest())


def self_similarities(vit: LoadedVit, layer: int, images: NDArray[np.uint8]) -> Similarity:
    """Return the cosines of the keys of every two places of each image."""
    import torch

    # No short cuts of GPUs, which round to 10 bits where nobody has asked for it: neither those of
    # mixed precision nor those that the convolutions of cuDNN take by default.
    mixed = torch.autocast(vit.device.partition(":")[0], enabled=False)
    with torch.inference_mode(), without_cudnn, mixed:
        keys = _keys(vit, layer, images)
        # NaN where a length is not finite, which divided by would be a 0.
        lengths = keys.norm(dim=-1, keepdim=True)
        units = (keys / lengths.clamp_min(SHORTEST_KEY)).where(lengths.isfinite(), float("nan"))
        similarities: Similarity = (units @ units.mT).cpu().numpy()
    return similarities


def _keys(vit: LoadedVit, layer: int, images: NDArray[np.uint8]) -> torch.Tensor:
    """Return the keys [image, token, width] of all heads side by side."""
    import torch

    levels = torch.tensor(images, device=vit.device).permute(0, 3, 1, 2)
    # Named, since numbers of Python are otherwise of the type that a program has set as its own.
    mean, spread = (
        torch.tensor(statistics, device=vit.device, dtype=torch.float32).view(-1, 1, 1)
        for statistics in (MEAN, SPREAD)
    )
    pixels = (levels.float() / HIGHEST - mean) / spread
    # As transformers 4 and 5 name them.
    blocks = vit.model.encoder.layer if hasattr(vit.model, "encoder") else vit.model.layers
    hidden = vit.model.embeddings(pixels, interpolate_pos_encoding=vit.interpolated)
    for block in blocks[:layer]:
        hidden = block(hidden)
    attention = blocks[layer].attention
    project = attention.k_proj if hasattr(attention, "k_proj") else attention.attention.key
    keys: torch.Tensor = project(blocks[layer].layernorm_before(hidden))
    return keys


@dataclass(frozen=True, kw_only=True, repr=False)
class StructureDistanceResult(MetricResult):
    """The structure distance of one system.

    Attributes:
        per_input: For each sample the distance of its output from each of its inputs, of which
            `per_sample` is the reduction; null for a sample that has no number.
    """

    per_input: tuple[tuple[float, ...] | None, ...]


def squared_difference(one: Similarity, other: Similarity) -> float:
    """Return the mean squared difference of two self-similarities."""
    return float(np.square(one - other).mean(dtype=np.float64))


def _measure_distances(
    batch: Sequence[SampleFeatures[ResizedImage]],
    vit: LoadedVit,
    cache: InputCache,
    layer: int,
    batch_size: int,
) -> Iterator[SampleFeatures[float]]:
    """Replace the images of a batch by distances; equal images are computed once."""
    measured = [features for features in batch if features.unmeasured is None]
    inputs = {image.digest: image for features in measured for image in features.inputs}
    images = inputs | {
        features.output.digest: features.output
        for features in measured
        if features.output is not None
    }
    cached = ((digest, cache.find((vit.key, digest))) for digest in images)
    maps = {digest: similarity for digest, similarity in cached if similarity is not None}
    new = [digest for digest in images if digest not in maps]
    for first in range(0, len(new), batch_size):
        digests = new[first : first + batch_size]
        pixels = np.stack([images[digest].pixels for digest in digests])
        maps |= zip(digests, self_similarities(vit, layer, pixels), strict=True)
    for digest in inputs:
        cache.keep((vit.key, digest), maps[digest])
    for sample in batch:
        distances, unmeasured = tuple[float, ...](), sample.unmeasured
        if unmeasured is None and sample.output is not None:
            output, sources = sample.output.digest, (image.digest for image in sample.inputs)
            distances = tuple(squared_difference(maps[source], maps[output]) for source in sources)
            # Weights or sums that overflow make numbers that are not finite.
            if not np.isfinite(distances).all():
                number = int(np.argmin(np.isfinite(distances)))
                detail = f"the distance from input {number + 1} is {distances[number]}"
                unmeasured = Unmeasured(MetricReason.MODEL_FAILED, detail=detail)
        yield replace(sample.with_values(None, distances), unmeasured=unmeasured)


def structure_distance(
    inputs: Iterable[Any],
    outputs: Iterable[Any],
    *,
    protocol: ProtocolName = "corrected",
    model: str = MODEL,
    revision: str | None = None,
    layer: int = LAYER,
    size: int = SIZE,
    reduction: Reduction | None = None,
    batch_size: int = BATCH_SIZE,
    device: str | None = None,
    n_boot: int = 1000,
    seed: int = 0,
    threads: int | None = None,
    cache: InputCache | None = None,
) -> StructureDistanceResult:
    """Measure how far the layout of outputs is from that of inputs (ECHO section 5.2).

    A ViT makes a key of every place of an image; the cosines of every two keys say which places
    look alike. The distance of two images is the mean squared difference of these cosines, the
    structure distance is its mean over samples, and lower is better. Images are squashed to a
    square first. `published`: as the released code computes it, with images converted to RGB and
    no more, the largest distance where a sample has several inputs, and without samples whose
    distance is 0, which it takes for missing outputs. `corrected`: with images loaded by
    `echo_hf.load_rgb`, and the smallest distance.

    Args:
        inputs: As for `color_shift`.
        outputs: As for `color_shift`.
        protocol: `corrected` or `published`.
        model: A ViT: its name on the Hub, or its folder. No code that comes with it is run.
        revision: Branch, tag or commit on the Hub; null for the main branch. The commit that was
            used is `definition["revision"]` of the result.
        layer: Number of the block whose keys are compared, the first being 0.
        size: Pixels a side of the square, a multiple of the side of the model's patches. Numbers
            of different sizes are on different scales.
        reduction: Which of the distances from several inputs counts: `min`, `max` or `mean`; null
            for that of the protocol.
        batch_size: How many images the ViT is given at once, at most.
        device: Where it runs, as torch names it; null for a GPU when there is one.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        seed: Of the draws.
        threads: How many threads load images; as many as there are processors when null.
        cache: Keeps the ViT and what it sees in inputs for the next system.

    Returns:
        `value` and `interval` from 0 to 4; a sample without a number has a reason.

    Raises:
        MissingExtraError: torch or transformers is not installed.
        ScoreError: As for `color_shift`, or the model is none, is no ViT, or does not have such a
            block or size.

    Examples:
        >>> import numpy as np
        >>> from echo_hf.metrics.structure_distance import squared_difference
        >>> squared_difference(np.eye(2, dtype=np.float32), np.ones((2, 2), np.float32))
        0.5
    """
    check_protocol(protocol)
    if reduction is not None and reduction not in REDUCTIONS:
        raise ScoreError(unknown("reduction", reduction, REDUCTIONS))
    for name, number in {"layer": layer, "size": size, "batch_size": batch_size}.items():
        minimum = 0 if name == "layer" else 1
        if not isinstance(number, int) or number < minimum:
            raise ScoreError(f"{name} is {number!r}: expected a whole number from {minimum}")
    pairs = pair_images(inputs, outputs)
    store = InputCache(most_bytes=0) if cache is None else cache
    options = VitOptions(str(model), revision, layer, size, device)
    vit = store.network(options, partial(load_vit, options))
    features = extract(pairs, partial(resize, size=size), protocol=protocol, threads=threads)
    samples = list[SampleFeatures[float]]()
    while batch := list(islice(features, batch_size)):  # images load while the ViT runs
        samples += _measure_distances(batch, vit, store, layer, batch_size)
    chosen: Reduction = reduction or RULES[protocol]["reduction"]
    values, reasons = list[float | None](), reasons_of(samples)
    per_input = [
        None if reason else sample.inputs for sample, reason in zip(samples, reasons, strict=True)
    ]
    for index, distances in enumerate(per_input):
        value = None if distances is None else REDUCTIONS[chosen](distances)
        if value == 0 and protocol == "published":
            value, reasons[index] = None, Unmeasured(MetricReason.ZERO_DISTANCE)
            per_input[index] = None
        values.append(value)
    definition = {
        "metric": "structure_distance",
        "protocol": protocol,
        **RULES[protocol],
        "reduction": chosen,
        "value": "mean over samples of the mean squared difference of the cosine "
        "self-similarities of keys",
        "direction": "lower is better",
        **vit.definition,
        "resampling": RESAMPLING.name.lower(),
        "normalised": {"mean": list(MEAN), "spread": list(SPREAD)},
    }
    fields = make_mean_fields(values, reasons, {}, n_boot=n_boot, seed=seed)
    fields |= common_fields(samples, definition, vit.definition, n_boot, seed)
    return StructureDistanceResult(**fields, per_input=tuple(per_input))


@register
class StructureDistanceMetric(Metric):
    """The structure distance of the outputs of a run."""

    name, title, better = "structure_distance", "Structure distance", "lower"
    about = "how far the layout of an output is from that of its input"
    splits = ("image_to_image",)
    question = fill_prompt("judging/measure_structure_distance", {}).text
    paper_name = "Spatial Position Preservation"
    extra, packages = "metrics", ("torch", "transformers")
    card = read_card(name)
    function, result = staticmethod(structure_distance), StructureDistanceResult

    class Options(Metric.Options):
        """How structure distance is measured.

        Attributes:
            model: A vision transformer trained by DINO: name on the Hub, or a folder.
            revision: Branch, tag or commit of it.
            layer: Block whose keys are compared, from 0.
            size: Sides in pixels of the square that images are resized to.
            reduction: Which of several inputs counts; null for the protocol's own.
            device: Where the model runs; null for a GPU where there is one.
        """

        folders = ("model",)

        model: Words = "facebook/dino-vits16"
        revision: Words | None = None
        layer: Annotated[StrictInt, Field(ge=0)] = 11
        size: Annotated[StrictInt, Field(ge=16)] = 224
        reduction: Reduction | None = None
        device: Words | None = None
