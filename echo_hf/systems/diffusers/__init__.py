"""Systems whose pictures diffusers draws in this process.

The class of the pipeline is the one that the model names; a table says how each class takes
pictures and sizes. Nothing a task holds is left out without a word: what a class does not take is
`unsupported`, and how several inputs were given is in the details of each picture.
"""

from __future__ import annotations

from typing import Any, Self

from PIL import Image

from echo_hf.engines.transformers.loading import free
from echo_hf.errors import PictureError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.adapter_options import deciding, model_of, options_of
from echo_hf.systems.base import Drawn, Retired, Task
from echo_hf.systems.config import SystemConfig
from echo_hf.systems.diffusers.classes import INDEX, class_named
from echo_hf.systems.diffusers.inputs import (
    given_inputs,
    not_shown,
    not_taken,
    shown_pictures,
    way_of,
)
from echo_hf.systems.diffusers.loading import LoadedPipeline, load_pipeline
from echo_hf.systems.diffusers.options import DiffusersOptions
from echo_hf.systems.diffusers.output_size import size_arguments
from echo_hf.systems.diffusers.prompt_length import prompt_length
from echo_hf.systems.input_pictures import open_inputs
from echo_hf.systems.local_models import LocalModel, check_one_at_a_time
from echo_hf.systems.local_trouble import bad_input, failure
from echo_hf.systems.output_picture import as_png
from echo_hf.systems.registry import register

# Raised with every change of ours that changes pictures: a default, the stitching, the table of
# classes, the words that name pictures. What was drawn before is drawn anew then.
WORDING = 1
UNSAFE = "nsfw_content_detected"


@register(
    "diffusers",
    "open weights that diffusers runs in this process",
    extra="diffusers",
    packages=("torch", "diffusers", "transformers", "accelerate"),
)
class DiffusersSystem:
    """Draws with a pipeline of diffusers.

    Args:
        config: The config of the system; its `parameters` are those of `DiffusersOptions`.

    Attributes:
        concurrency: 1.
        determinism: What the same seed gives.
        options: The parameters, checked.

    Raises:
        GenerationError: A parameter is unknown, or has a bad value.
    """

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
        """What decides a picture; the device and offloading do not.

        Returns:
            Plain values; `revision` is what the config says, or the digest of a folder. A parameter
            at its default is left out, so that one more parameter is no other signature.
        """
        config = self.config.model_dump(mode="json", include={"adapter", "size", "seed"})
        options = deciding(self.options, {"device", "offload", "revision"})
        return {**config, "wording": WORDING, **self._model.identity, **options}

    def preflight(self) -> Retired | None:
        """Looks for the model on this machine; nothing is downloaded, and nothing retires.

        Raises:
            GenerationError: There is no such model, or it would bring code of its own.
        """
        index = self._model.index_at_hand()
        if index is not None:
            class_named(index, self._place)
        return None

    def draw(self, task: Task) -> Drawn:
        """Draws the picture that a task asks for; the first task loads the pipeline.

        Args:
            task: The task.

        Returns:
            What became of it.

        Raises:
            GenerationError: The pipeline cannot be loaded, or is not called as the config wants.
        """
        loaded = self._load()
        refused = not_taken(task, loaded.pipeline, way_of(loaded.pipeline, self.options))
        if refused is not None:
            return refused
        try:
            inputs = open_inputs(task)
        except PictureError as error:
            return bad_input(error)
        shown = shown_pictures(inputs, loaded.pipeline, self.options)
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
    ) -> Drawn:
        kind = loaded.pipeline.kind
        given = given_inputs(task, shown, loaded.pipeline, self.options)
        first = inputs[0].size if inputs else None
        sizes, asked = size_arguments(self.config.size, first, kind)
        arguments = {**kind.defaults, **self.options.call, **given.arguments, **sizes}
        length = prompt_length(loaded.pipe, kind.reader, arguments)
        said = _asked(loaded.pipe, arguments, self.config.seed)
        if isinstance(said, Drawn):
            free()  # when nothing refers any more to what the failed call had computed
            return said
        picture, held_back = said
        size = {"asked": list(asked) if asked else None, "came": list(picture.size)}
        details = {**loaded.details, **length, "inputs": given.details, "size": size}
        return _outcome(picture, held_back, self.config.seed, details)


def _asked(pipe: Any, arguments: dict[str, Any], seed: int) -> tuple[Image.Image, bool] | Drawn:
    import torch

    generator = torch.Generator("cpu").manual_seed(seed)
    try:
        said = pipe(**arguments, generator=generator)
        return said.images[0], any(getattr(said, UNSAFE, None) or ())
    except Exception as error:
        return failure(error)


def _outcome(picture: Image.Image, held_back: bool, seed: int, details: dict[str, Any]) -> Drawn:
    if held_back:
        text = "the model's own checker held the picture back"
        stage = OutcomeStage.OUTPUT
        return Drawn(
            Outcome.REFUSED, stage=stage, code=UNSAFE, text=text, seed=seed, details=details
        )
    return Drawn(Outcome.OK, as_png(picture), seed=seed, details=details)
