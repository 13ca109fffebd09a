"""Anole: a language model whose words are also pieces of images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from PIL import Image

from echo_hf.config.systems import SystemConfig
from echo_hf.engines.checkpoint import CONFIG
from echo_hf.engines.transformers_model import free, is_out_of_memory
from echo_hf.errors import EchoError, GenerationError, ImageError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.anole_tokens import (
    MOST_INPUTS,
    SAFETENSORS,
    AnoleOptions,
    AnoleWords,
    ImageDecoder,
    branches,
    draw_token,
    guided,
    make_decoder,
    pixels,
    weights_name,
    words_of,
)
from echo_hf.systems.base import GenerationResult, Retired, Task, unsupported_task
from echo_hf.systems.images import as_png, open_inputs
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


@dataclass(frozen=True, slots=True)
class LoadedAnole:
    model: Any
    tokenizer: Any
    decoder: ImageDecoder
    words: AnoleWords
    codes: Mapping[int, int]
    side: int
    count: int
    context: int
    details: Mapping[str, Any]

    def text_tokens(self, text: str) -> list[int]:
        """Tokens of a text; whatever a prompt says, none of them begins or ends an image."""
        read = self.tokenizer(text, add_special_tokens=False, split_special_tokens=True)
        return list(read["input_ids"])

    def image_tokens(self, image: Image.Image) -> list[int]:
        """Tokens of the square in the middle of an image."""
        import torch

        values = torch.from_numpy(pixels(image, self.side))[None]
        with torch.inference_mode():
            found = self.model.get_image_tokens(values.to(self.model.device, self.model.dtype))
        return [int(token) for token in found[0]]


def load_anole(model: LocalModel, decoder: LocalModel, options: AnoleOptions) -> LoadedAnole:
    place = f"system {model.system!r}"
    device = device_of(options, place)
    model.index_at_hand()
    decoder.index_at_hand()
    try:
        return _loaded(model, decoder, options, device)
    except EchoError:
        raise
    except Exception as error:  # whatever the driver, the memory or the files are short of
        raise GenerationError(_explained(model, error)) from error


def _loaded(
    model: LocalModel, decoder: LocalModel, options: AnoleOptions, device: str
) -> LoadedAnole:
    chameleon, tokenizer = _chameleon(model, options)
    place, config = f"system {model.system!r}", chameleon.config
    codes = dict(chameleon.model.vocabulary_mapping.bpe2img)
    vq = config.vq_config
    drawn_by = make_decoder(vq, _weights(decoder), place)
    drawn_by.network.to(device)
    return LoadedAnole(
        model=chameleon.to(device),
        tokenizer=tokenizer,
        decoder=drawn_by,
        words=words_of(config.vocabulary_map, place),
        codes=codes,
        side=vq.resolution,
        # Every level of the VQGAN but the first halves the sides.
        count=(vq.resolution // 2 ** (len(vq.channel_multiplier) - 1)) ** 2,
        context=config.max_position_embeddings,
        details=_details(model, decoder, options, device),
    )


def _chameleon(model: LocalModel, options: AnoleOptions) -> tuple[Any, Any]:
    from transformers import AutoTokenizer, ChameleonForConditionalGeneration

    chameleon = ChameleonForConditionalGeneration.from_pretrained(
        model.source,
        revision=model.pinned,
        dtype=dtype_of(options),
        use_safetensors=True,
        trust_remote_code=False,
    )
    tokenizer = AutoTokenizer.from_pretrained(
        model.source, revision=model.pinned, trust_remote_code=False
    )
    return chameleon.eval(), tokenizer


def _weights(decoder: LocalModel) -> Any:
    import torch
    from huggingface_hub import hf_hub_download
    from safetensors.torch import load_file

    file = decoder.index_at_hand() or Path(
        hf_hub_download(decoder.source, decoder.index, revision=decoder.revision)
    )
    if file.name == SAFETENSORS:
        return load_file(file)
    # Numbers alone: a pickle that would do anything else is refused.
    read = torch.load(file, map_location="cpu", weights_only=True)
    return read.get("state_dict", read)


def _details(
    model: LocalModel, decoder: LocalModel, options: AnoleOptions, device: str
) -> dict[str, Any]:
    import torch
    import transformers

    return {
        "commit": model.commit,
        "decoder_commit": decoder.commit,
        "dtype": options.dtype,
        "device": device,
        "versions": {one.__name__: str(one.__version__) for one in (torch, transformers)},
    }


def _explained(model: LocalModel, error: Exception) -> str:
    place = f"system {model.system!r}"
    if is_out_of_memory(error):
        return f"{place}: model {model.source!r} does not fit into memory: use a smaller dtype"
    return (
        f"{place}: cannot load {model.source!r} ({type(error).__name__}: {one_line(error)}): "
        "expected Anole as transformers loads it, with safetensors weights"
    )


def draw_tokens(
    model: Any,
    rows: Sequence[Sequence[int]],
    loaded: LoadedAnole,
    options: AnoleOptions,
    seed: int,
) -> list[int]:
    """Draws exactly as many tokens as an image has, and no others than an image's."""
    import torch

    generator = torch.Generator("cpu").manual_seed(seed)
    allowed = torch.tensor(sorted(loaded.codes), device=model.device)
    ids, mask = _padded(rows, loaded.words.pad, model.device)
    cache: Any = None
    drawn: list[int] = []
    with torch.inference_mode():
        while len(drawn) < loaded.count:
            logits, cache = _next(model, ids, mask, cache)
            everything, inputs, nothing = logits[:, allowed].float()
            mixed = guided(
                everything,
                inputs,
                nothing,
                text_scale=options.text_guidance,
                image_scale=options.image_guidance,
            )
            place = draw_token(mixed, options.temperature, options.top_p, generator)
            drawn.append(int(allowed[place]))
            ids = allowed[place].repeat(len(rows), 1)
            mask = torch.cat([mask, mask.new_ones(len(rows), 1)], dim=1)
    return drawn


def _padded(rows: Sequence[Sequence[int]], pad: int, device: Any) -> tuple[Any, Any]:
    import torch

    longest = max(map(len, rows))
    ids = [[pad] * (longest - len(row)) + list(row) for row in rows]
    mask = [[0] * (longest - len(row)) + [1] * len(row) for row in rows]
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)


def _next(model: Any, ids: Any, mask: Any, cache: Any) -> tuple[Any, Any]:
    # Not through the model's own forward, which forbids the tokens of images. Places are counted
    # without what fills a row up: only their differences count, but sums are rounded.
    places = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
    read = model.model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=places,
        past_key_values=cache,
        use_cache=True,
    )
    return model.lm_head(read.last_hidden_state[:, -1]), read.past_key_values


# Raised with every change of ours that changes images: a default, the words around a prompt, how
# tokens are drawn. What was drawn before is drawn anew then.
WORDING = 1


@register(
    "anole",
    "Anole, and what is trained from it, in this process",
    extra="transformers",
    packages=("torch", "transformers", "accelerate"),
)
class AnoleSystem:
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
        """What decides an image; the device does not."""
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
        """Looks for the model and its decoder; nothing is downloaded, and nothing retires."""
        self._model.index_at_hand()
        self._decoder.index_at_hand()
        return None

    def draw(self, task: Task) -> GenerationResult:
        loaded = self._load()
        unfit = unsupported_task(task, 0, MOST_INPUTS, "Anole")
        if unfit is not None:
            return unfit
        try:
            inputs = open_inputs(task)
        except ImageError as error:
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

    def _tried(
        self, loaded: LoadedAnole, task: Task, inputs: tuple[Image.Image, ...]
    ) -> GenerationResult:
        try:
            return self._drawn(loaded, task, inputs)
        except Exception as error:
            return failure(error)

    def _drawn(
        self, loaded: LoadedAnole, task: Task, inputs: tuple[Image.Image, ...]
    ) -> GenerationResult:
        seen = [loaded.image_tokens(image) for image in inputs]
        rows = branches(loaded.text_tokens(task.prompt), seen, loaded.words)
        room = loaded.context - loaded.count
        if len(rows[0]) > room:
            text = f"prompt and inputs are {len(rows[0])} tokens, and the model has room for {room}"
            return unsupported(OutcomeStage.INPUT, "too_long", text)
        tokens = draw_tokens(loaded.model, rows, loaded, self.options, self.config.seed)
        image = loaded.decoder.image([loaded.codes[token] for token in tokens])
        details = {
            **loaded.details,
            "inputs": {"given": len(inputs), "used": len(inputs)},
            "size": {"asked": None, "came": list(image.size)},
        }
        return GenerationResult(Outcome.OK, as_png(image), seed=self.config.seed, details=details)
