"""Systems whose images diffusers draws in this process."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from PIL import Image

from echo_hf.config.systems import FixedSize, Size, SystemConfig
from echo_hf.engines.transformers_model import free, is_out_of_memory
from echo_hf.errors import EchoError, GenerationError, ImageError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import GenerationResult, Retired, Task, unsupported_task
from echo_hf.systems.diffusers_classes import (
    INDEX,
    DiffusersOptions,
    PipelineClass,
    PipelineKind,
    PromptReader,
    check_call,
    class_named,
    pipeline_class,
)
from echo_hf.systems.images import Pixels, as_png, chosen_size, open_inputs, stitched
from echo_hf.systems.local_models import (
    LocalModel,
    bad_input,
    check_one_at_a_time,
    device_of,
    dtype_of,
    failure,
    one_line,
    unsupported,
)
from echo_hf.systems.registry import deciding, model_of, options_of, register

PLACE = "<img><|image_{number}|></img>"
WRONG_SIZE = "size_of_input"


@dataclass(frozen=True, slots=True)
class GivenInputs:
    arguments: dict[str, Any] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)


def way_of(pipeline: PipelineClass, options: DiffusersOptions) -> str:
    """How several inputs are given."""
    if options.several_inputs != "auto":
        return options.several_inputs
    return "list" if pipeline.kind.takes_list else "stitch"


def check_way(pipeline: PipelineClass, options: DiffusersOptions, place: str) -> None:
    kind = pipeline.kind
    if options.several_inputs == "list" and kind.image and not kind.takes_list:
        raise GenerationError(
            f"{place}: several_inputs is 'list', and {pipeline.name} takes a single image: "
            "expected stitch, first or refuse"
        )


def not_taken(task: Task, pipeline: PipelineClass, way: str) -> GenerationResult | None:
    kind = pipeline.kind
    if kind.image is None:
        return unsupported_task(task, 0, 0, pipeline.name)
    if way == "refuse":
        return unsupported_task(
            task, kind.fewest, 1, f"{pipeline.name} with several_inputs 'refuse'"
        )
    return unsupported_task(task, kind.fewest, None, pipeline.name)


def not_shown(images: Sequence[Image.Image], pipeline: PipelineClass) -> GenerationResult | None:
    kind = pipeline.kind
    for image in images:
        short, long = sorted(image.size)
        if short < kind.shortest_side or long > short * (kind.longest_ratio or long):
            text = f"{pipeline.name} does not see an image of {image.width} x {image.height}"
            return unsupported(OutcomeStage.INPUT, WRONG_SIZE, text)
    return None


def shown_images(
    images: Sequence[Image.Image],
    pipeline: PipelineClass,
    options: DiffusersOptions,
) -> list[Image.Image]:
    way = way_of(pipeline, options)
    if len(images) < 2 or way == "list":
        return list(images)
    if way == "first":
        return [images[0]]
    kind = pipeline.kind
    return [stitched(images, kind.like, options.stitched_pixels, kind.multiple)]


def given_inputs(
    task: Task,
    shown: Sequence[Image.Image],
    pipeline: PipelineClass,
    options: DiffusersOptions,
) -> GivenInputs:
    kind, count = pipeline.kind, len(task.inputs)
    if kind.image is None or not shown:
        return GivenInputs({"prompt": task.prompt}, {"given": 0, "used": 0})
    images = list(shown) if kind.takes_list else shown[0]
    arguments: dict[str, Any] = {
        "prompt": _prompt(task.prompt, len(shown), pipeline),
        kind.image: images,
    }
    way = way_of(pipeline, options) if count > 1 else "alone"
    details: dict[str, Any] = {"given": count, "used": count if way != "first" else 1, "way": way}
    if way == "stitch":
        details["stitched"] = list(shown[0].size)
        if kind.resizes is not None:
            arguments[kind.resizes] = False
    return GivenInputs(arguments, details)


def _prompt(prompt: str, count: int, pipeline: PipelineClass) -> str:
    if not pipeline.kind.names_images:
        return prompt
    return " ".join([*(PLACE.format(number=number + 1) for number in range(count)), prompt])


def check_size(size: Size, kind: PipelineKind, place: str) -> None:
    """Checks that a pipeline draws exactly the size that a config fixes."""
    if not isinstance(size, FixedSize):
        return
    if size.width % kind.multiple or size.height % kind.multiple:
        raise GenerationError(
            f"{place}: size is {size.width} x {size.height}: expected sides that are multiples of "
            f"{kind.multiple}, which is what its pipeline draws"
        )


def size_arguments(
    size: Size, first_input: Pixels | None, kind: PipelineKind
) -> tuple[dict[str, int], Pixels | None]:
    asked = chosen_size(size, first_input, kind.like)
    if asked is None:
        return {}, None
    arguments = {"width": asked[0], "height": asked[1]}
    if kind.area is not None:
        arguments[kind.area] = asked[0] * asked[1]
    return arguments, asked


PROCESSOR = "cpu"
# Qwen's processors load a part for videos, whether there are any or not.
VIDEOS = "torchvision"


@dataclass(frozen=True, slots=True)
class LoadedPipeline:
    pipe: Any
    pipeline: PipelineClass
    details: Mapping[str, Any]


def load_pipeline(model: LocalModel, options: DiffusersOptions, size: Size) -> LoadedPipeline:
    """Loads a pipeline; whatever a config has wrong is found before the weights are read."""
    place = f"system {model.system!r}"
    device = device_of(options, place)
    if device == PROCESSOR and options.offload != "none":
        raise GenerationError(
            f"{place}: offload is {options.offload!r}, and the device is the processor: expected "
            "none"
        )
    try:
        pipeline = pipeline_class(class_named(_index(model), place), place)
        check_call(options.call, pipeline, place)
        check_size(size, pipeline.kind, place)
        check_way(pipeline, options, place)
        pipe = _on_device(_loaded(model, options), options, device)
    except EchoError:
        raise
    except Exception as error:  # whatever the driver, the memory or the files are short of
        raise GenerationError(_explained(model, error)) from error
    return LoadedPipeline(pipe, pipeline, _details(model, options, pipeline, device))


def _index(model: LocalModel) -> Path:
    from huggingface_hub import hf_hub_download

    found = model.index_at_hand()
    return found or Path(hf_hub_download(model.source, INDEX, revision=model.revision))


def _loaded(model: LocalModel, options: DiffusersOptions) -> Any:
    from diffusers import DiffusionPipeline

    pipe = DiffusionPipeline.from_pretrained(
        model.source,
        revision=model.pinned,
        dtype=dtype_of(options),
        use_safetensors=True,
        trust_remote_code=False,
    )
    pipe.set_progress_bar_config(disable=True)
    return pipe


def _on_device(pipe: Any, options: DiffusersOptions, device: str) -> Any:
    if options.offload == "model":
        pipe.enable_model_cpu_offload(device=device)
    elif options.offload == "sequential":
        pipe.enable_sequential_cpu_offload(device=device)
    else:
        pipe.to(device)
    return pipe


def _details(
    model: LocalModel, options: DiffusersOptions, pipeline: PipelineClass, device: str
) -> dict[str, Any]:
    import diffusers
    import torch
    import transformers

    libraries = (torch, diffusers, transformers)
    return {
        "pipeline": pipeline.name,
        "commit": model.commit,
        "dtype": options.dtype,
        "device": device,
        "versions": {one.__name__: str(one.__version__) for one in libraries},
    }


def _explained(model: LocalModel, error: Exception) -> str:
    place = f"system {model.system!r}"
    if is_out_of_memory(error):
        return (
            f"{place}: model {model.source!r} does not fit into memory: use offload 'model' or "
            "'sequential', a smaller dtype or a smaller model"
        )
    if VIDEOS in str(error).lower():
        return (
            f"{place}: the processor of {model.source!r} needs {VIDEOS}: install the one that "
            "belongs to your torch"
        )
    return (
        f"{place}: cannot load {model.source!r} ({type(error).__name__}: {one_line(error)}): "
        "expected a pipeline of diffusers with safetensors weights and no code of its own"
    )


LIMIT = "max_sequence_length"


def prompt_length(
    pipe: Any, reader: PromptReader | None, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Counts the tokens of a prompt as a pipeline counts them."""
    tokenizer = None if reader is None else getattr(pipe, reader.tokenizer, None)
    limit = arguments.get(LIMIT, _default(pipe))
    if reader is None or tokenizer is None or limit is None:
        return {}
    count = len(tokenizer(_words(pipe, tokenizer, reader, arguments["prompt"])).input_ids)
    count -= getattr(pipe, reader.template_start) if reader.template_start else 0
    used = min(count, limit)
    return {"prompt_tokens": count, "prompt_tokens_used": used, "prompt_cut": count > used}


def _default(pipe: Any) -> Any:
    found = inspect.signature(type(pipe).__call__).parameters.get(LIMIT)
    return None if found is None or found.default is found.empty else found.default


def _words(pipe: Any, tokenizer: Any, reader: PromptReader, prompt: str) -> str:
    if reader.chat is not None:
        asked = [{"role": "user", "content": prompt}]
        return str(
            tokenizer.apply_chat_template(
                asked, tokenize=False, add_generation_prompt=True, **reader.chat
            )
        )
    return str(getattr(pipe, reader.template).format(prompt)) if reader.template else prompt


# Raised with every change of ours that changes images: a default, the stitching, the table of
# classes, the words that name images. What was drawn before is drawn anew then.
WORDING = 1
UNSAFE = "nsfw_content_detected"


@register(
    "diffusers",
    "open weights that diffusers runs in this process",
    extra="diffusers",
    packages=("torch", "diffusers", "transformers", "accelerate"),
)
class DiffusersSystem:
    concurrency = 1
    determinism = (
        "The noise is drawn on the processor from the seed: the same seed gives the same picture "
        "on the same device with the same versions of torch and diffusers, and a slightly other "
        "one elsewhere."
    )

    def __init__(self, config: SystemConfig) -> None:
        self.config = config
        self.options = options_of(config, DiffusersOptions)
        check_one_at_a_time(config)
        self._model = LocalModel(config.name, model_of(config), self.options.revision, INDEX)
        self._loaded: LoadedPipeline | None = None

    def signature(self) -> dict[str, Any]:
        """What decides an image; the device and offloading do not."""
        config = self.config.model_dump(mode="json", include={"adapter", "size", "seed"})
        options = deciding(self.options, {"device", "offload", "revision"})
        return {**config, "wording": WORDING, **self._model.identity, **options}

    def preflight(self) -> Retired | None:
        """Looks for the model on this machine; nothing is downloaded, and nothing retires."""
        index = self._model.index_at_hand()
        if index is not None:
            class_named(index, self._place)
        return None

    def draw(self, task: Task) -> GenerationResult:
        loaded = self._load()
        refused = not_taken(task, loaded.pipeline, way_of(loaded.pipeline, self.options))
        if refused is not None:
            return refused
        try:
            inputs = open_inputs(task)
        except ImageError as error:
            return bad_input(error)
        shown = shown_images(inputs, loaded.pipeline, self.options)
        unseen = not_shown(shown, loaded.pipeline)
        return unseen or self._drawn(loaded, task, inputs, shown)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._loaded is not None:
            self._loaded = None
            free()

    @property
    def _place(self) -> str:
        return f"system {self.config.name!r}"

    def _load(self) -> LoadedPipeline:
        if self._loaded is None:
            self._loaded = load_pipeline(self._model, self.options, self.config.size)
        return self._loaded

    def _drawn(
        self,
        loaded: LoadedPipeline,
        task: Task,
        inputs: tuple[Image.Image, ...],
        shown: list[Image.Image],
    ) -> GenerationResult:
        kind = loaded.pipeline.kind
        given = given_inputs(task, shown, loaded.pipeline, self.options)
        first = inputs[0].size if inputs else None
        sizes, asked = size_arguments(self.config.size, first, kind)
        arguments = {**kind.defaults, **self.options.call, **given.arguments, **sizes}
        length = prompt_length(loaded.pipe, kind.reader, arguments)
        said = _asked(loaded.pipe, arguments, self.config.seed)
        if isinstance(said, GenerationResult):
            free()  # when nothing refers any more to what the failed call had computed
            return said
        image, held_back = said
        size = {"asked": list(asked) if asked else None, "came": list(image.size)}
        details = {**loaded.details, **length, "inputs": given.details, "size": size}
        return _outcome(image, held_back, self.config.seed, details)


def _asked(
    pipe: Any, arguments: dict[str, Any], seed: int
) -> tuple[Image.Image, bool] | GenerationResult:
    import torch

    generator = torch.Generator("cpu").manual_seed(seed)
    try:
        said = pipe(**arguments, generator=generator)
        return said.images[0], any(getattr(said, UNSAFE, None) or ())
    except Exception as error:
        return failure(error)


def _outcome(
    image: Image.Image, held_back: bool, seed: int, details: dict[str, Any]
) -> GenerationResult:
    if held_back:
        text = "the model's own checker held the image back"
        stage = OutcomeStage.OUTPUT
        return GenerationResult(
            Outcome.REFUSED, stage=stage, code=UNSAFE, text=text, seed=seed, details=details
        )
    return GenerationResult(Outcome.OK, as_png(image), seed=seed, details=details)
