"""Anole: a language model whose words are also pieces of pictures.

transformers reads the model as Chameleon, and stops there: it never lets a picture's token be
written and has no decoder for them. Here the three missing parts are added to it: drawing tokens
with guidance from three branches, as many as a picture has, and the decoder of its VQGAN.
"""

from __future__ import annotations

from typing import Any, Self

from PIL import Image

from echo_hf.engines.checkpoint import CONFIG
from echo_hf.engines.transformers.loading import free
from echo_hf.errors import GenerationError, PictureError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.adapter_options import deciding, model_of, options_of
from echo_hf.systems.anole.decoder import weights_name
from echo_hf.systems.anole.drawing import draw_tokens
from echo_hf.systems.anole.loading import LoadedAnole, load_anole
from echo_hf.systems.anole.options import AnoleOptions
from echo_hf.systems.anole.prompts import MOST_INPUTS, branches
from echo_hf.systems.base import Drawn, Retired, Task
from echo_hf.systems.config import SystemConfig
from echo_hf.systems.input_pictures import open_inputs
from echo_hf.systems.local_models import LocalModel, check_one_at_a_time
from echo_hf.systems.local_trouble import bad_input, failure, unsupported
from echo_hf.systems.misfit import misfit
from echo_hf.systems.output_picture import as_png
from echo_hf.systems.registry import register

# Raised with every change of ours that changes pictures: a default, the words around a prompt, how
# tokens are drawn. What was drawn before is drawn anew then.
WORDING = 1


@register(
    "anole",
    "Anole, and what is trained from it, in this process",
    extra="transformers",
    packages=("torch", "transformers", "accelerate"),
)
class AnoleSystem:
    """Draws with Anole.

    Args:
        config: The config of the system; its `parameters` are those of `AnoleOptions`.

    Attributes:
        concurrency: 1.
        determinism: What the same seed gives.
        options: The parameters, checked.

    Raises:
        GenerationError: A parameter is unknown, or has a bad value.
    """

    concurrency = 1
    determinism = (
        "Tokens are drawn on the processor from the seed: the same seed gives the same picture on "
        "the same device with the same versions of torch and transformers; elsewhere a rounded "
        "sum may turn one token, and with it all that follow."
    )

    def __init__(self, config: SystemConfig) -> None:
        self.config = config
        self.options = options_of(config, AnoleOptions)
        check_one_at_a_time(config)
        if config.size != "auto":
            raise GenerationError(
                f"system {config.name!r}: size is {config.size!r}: expected 'auto', as Anole draws "
                "squares of one size"
            )
        options, decoder = self.options, self.options.decoder
        self._model = LocalModel(config.name, model_of(config), options.revision, CONFIG)
        self._decoder = LocalModel(
            config.name, decoder, options.decoder_revision, weights_name(decoder)
        )
        self._loaded: LoadedAnole | None = None

    def signature(self) -> dict[str, Any]:
        """What decides a picture; the device does not.

        Returns:
            Plain values; a `revision` is what the config says, or the digest of a folder. A
            parameter at its default is left out, so that one more parameter is no other signature.
        """
        places = {"device", "revision", "decoder", "decoder_revision"}
        return {
            "adapter": self.config.adapter,
            "wording": WORDING,
            **self._model.identity,
            "decoder": self._decoder.identity,
            **deciding(self.options, places),
            "seed": self.config.seed,
        }

    def preflight(self) -> Retired | None:
        """Looks for the model and its decoder; nothing is downloaded, and nothing retires.

        Raises:
            GenerationError: One of them is not there.
        """
        self._model.index_at_hand()
        self._decoder.index_at_hand()
        return None

    def draw(self, task: Task) -> Drawn:
        """Draws the picture that a task asks for; the first task loads the model.

        Args:
            task: The task.

        Returns:
            What became of it.

        Raises:
            GenerationError: The model or its decoder cannot be loaded.
        """
        loaded = self._load()
        unfit = misfit(task, 0, MOST_INPUTS, "Anole")
        if unfit is not None:
            return unfit
        try:
            inputs = open_inputs(task)
        except PictureError as error:
            return bad_input(error)
        drawn = self._tried(loaded, task, inputs)
        if drawn.outcome is Outcome.FAILED:
            free()
        return drawn

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._loaded is not None:
            self._loaded = None
            free()

    def _load(self) -> LoadedAnole:
        if self._loaded is None:
            self._loaded = load_anole(self._model, self._decoder, self.options)
        return self._loaded

    def _tried(self, loaded: LoadedAnole, task: Task, inputs: tuple[Image.Image, ...]) -> Drawn:
        try:
            return self._drawn(loaded, task, inputs)
        except Exception as error:
            return failure(error)

    def _drawn(self, loaded: LoadedAnole, task: Task, inputs: tuple[Image.Image, ...]) -> Drawn:
        seen = [loaded.picture_tokens(picture) for picture in inputs]
        rows = branches(loaded.text_tokens(task.prompt), seen, loaded.words)
        room = loaded.context - loaded.count
        if len(rows[0]) > room:
            text = f"prompt and inputs are {len(rows[0])} tokens, and the model has room for {room}"
            return unsupported(OutcomeStage.INPUT, "too_long", text)
        tokens = draw_tokens(loaded.model, rows, loaded, self.options, self.config.seed)
        picture = loaded.decoder.picture([loaded.codes[token] for token in tokens])
        details = {
            **loaded.details,
            "inputs": {"given": len(inputs), "used": len(inputs)},
            "size": {"asked": None, "came": list(picture.size)},
        }
        return Drawn(Outcome.OK, as_png(picture), seed=self.config.seed, details=details)
