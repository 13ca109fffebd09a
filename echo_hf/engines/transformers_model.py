"""Load a model with transformers, generate in batches, and free its memory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from PIL import Image

from echo_hf.engines.base import (
    Completion,
    ImageRef,
    Message,
    Request,
    Text,
    Usage,
    check_installed,
)
from echo_hf.engines.checkpoint import Checkpoint
from echo_hf.engines.checkpoint_engine import LONGEST_REASON, Count, ModelOptions
from echo_hf.engines.schema import grammar_schema
from echo_hf.errors import EngineError

KIND = "transformers"
# Part of the engine's signature: who changes these words gets new answers.
SCHEMA_WORDS = "Answer with one JSON object that fits this JSON schema, and with nothing else:"
REGEX_WORDS = "Answer with text that this regular expression matches whole, and nothing else:"
SEED_BITS = 63
LLAMA_4 = "llama4"


class TransformersOptions(ModelOptions):
    """Options of the engine, beside those of any model; no pickles are read.

    Attributes:
        batch_size: Most requests that are computed at a time; halved when memory runs out.
        structured: Whether answers are held to the declared schema while they are written: with
            `xgrammar`, not at all, or `auto` for where xgrammar is installed.
    """

    batch_size: Count = 8
    structured: Literal["auto", "xgrammar", "none"] = "auto"


@dataclass(frozen=True, slots=True, eq=False)
class PreparedRequest:
    request: Request
    text: str
    images: tuple[Image.Image, ...]

    @property
    def has_form(self) -> bool:
        """Whether the answer has to have a form: a schema, or a regular expression."""
        return self.request.answer is not None or self.request.regex is not None

    @property
    def kind(self) -> tuple[int, bool, bool]:
        """What the questions of a batch must have in common."""
        return self.request.max_tokens, self.has_form, not self.images

    @property
    def length(self) -> tuple[int, int]:
        """How much there is to read, in pixels and in characters."""
        return sum(image.width * image.height for image in self.images), len(self.text)

    def seed(self, base: int) -> int:
        """A number that stands for the question's own draws, whatever it shares a batch with."""
        digest = hashlib.sha256(f"{base}:{self.text}".encode("utf-8", "surrogatepass"))
        for message in self.request.messages:
            for part in message.parts:
                if isinstance(part, ImageRef):
                    digest.update(part.sha256.encode())
        return int.from_bytes(digest.digest()[:8]) >> (64 - SEED_BITS)


def question(
    request: Request,
    render: Callable[[list[dict[str, Any]]], str],
    read: Callable[[ImageRef], Image.Image],
) -> PreparedRequest:
    """A request as the model reads it, with the form of the answer behind the instructions."""
    messages, form = request.messages, None
    if request.answer is not None:
        schema = json.dumps(request.answer.model_json_schema(), ensure_ascii=False)
        form = f"{SCHEMA_WORDS}\n{schema}"
    elif request.regex is not None:
        form = f"{REGEX_WORDS}\n{request.regex}"
    if form is not None:
        first, *others = messages
        messages = (Message(first.role, (*first.parts, Text(f"\n\n{form}"))), *others)
    chat = [
        {
            "role": message.role,
            "content": [
                {"type": "image"}
                if isinstance(part, ImageRef)
                else {"type": "text", "text": part.text}
                for part in message.parts
            ],
        }
        for message in messages
    ]
    parts = (part for message in messages for part in message.parts)
    images = tuple(read(part) for part in parts if isinstance(part, ImageRef))
    return PreparedRequest(request, render(chat), images)


@dataclass(frozen=True)
class Noise:
    """Adds standard Gumbel noise to scores; what was ruled out stays ruled out."""

    generators: tuple[Any, ...]

    def __call__(self, _input_ids: Any, scores: Any) -> Any:
        """The scores with noise; the tokens so far play no part."""
        import torch

        waits = [
            torch.empty_like(row, dtype=torch.float32).exponential_(generator=generator)
            for row, generator in zip(scores, self.generators, strict=True)
        ]
        return scores - torch.stack(waits).log()


def sampling_processors(
    seeds: Sequence[int], temperature: float, top_p: float, device: Any
) -> list[Any]:
    """What draws each row's tokens by its own seed, whatever it shares a batch with."""
    if temperature == 0:
        return []
    import torch
    from transformers import TemperatureLogitsWarper, TopPLogitsWarper

    nucleus = [TopPLogitsWarper(top_p)] if top_p < 1 else []
    noise = Noise(tuple(torch.Generator(device).manual_seed(seed) for seed in seeds))
    return [TemperatureLogitsWarper(temperature), *nucleus, noise]


class Grammar:
    """Holds answers to their schemas by ruling out every token that would leave them."""

    def __init__(self, tokenizer: Any, vocabulary: int, stops: Sequence[int]) -> None:
        import xgrammar

        known = xgrammar.TokenizerInfo.from_huggingface(
            tokenizer, vocab_size=vocabulary, stop_token_ids=list(stops)
        )
        self._compiler = xgrammar.GrammarCompiler(known)

    def enforced(self, questions: Sequence[PreparedRequest]) -> list[Any]:
        """What holds these questions' answers to their forms."""
        if not any(one.has_form for one in questions):
            return []
        from xgrammar.contrib.hf import LogitsProcessor

        return [LogitsProcessor([self._grammar(one.request) for one in questions])]

    def _grammar(self, request: Request) -> Any:
        if request.answer is None:
            return self._compiler.compile_regex(request.regex)
        # Where any white space is allowed a model may go on with it up to its limit.
        schema = grammar_schema(request.answer)
        return self._compiler.compile_json_schema(schema, any_whitespace=False)


def free() -> None:
    """Gives back the memory of a model that nothing refers to any more."""
    from accelerate.utils.memory import clear_device_cache

    clear_device_cache(garbage_collection=True)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that a smaller batch might have fitted."""
    from accelerate.utils.memory import should_reduce_batch_size

    return isinstance(error, MemoryError) or (
        isinstance(error, Exception) and bool(should_reduce_batch_size(error))
    )


def _loaded_parts(options: TransformersOptions, checkpoint: Checkpoint) -> tuple[Any, Any]:
    """The model and its processor."""
    from transformers import (
        AutoConfig,
        AutoModelForImageTextToText,
        AutoProcessor,
        GenerationConfig,
    )

    given = {"revision": checkpoint.commit, "trust_remote_code": False}
    config = AutoConfig.from_pretrained(checkpoint.source, **given)
    text = config.get_text_config()
    if config.model_type == LLAMA_4 and text.attention_chunk_size is None:
        # No chunks, says Llama Guard; transformers counts with the null and fails. One chunk that
        # holds the longest request and its answer is no chunks.
        text.attention_chunk_size = text.max_position_embeddings
    model = AutoModelForImageTextToText.from_pretrained(
        checkpoint.source,
        config=config,
        dtype=options.dtype,
        device_map="auto",
        use_safetensors=True,
        **given,
    )
    # A checkpoint's own penalties and draws would change answers behind the signature's back.
    stops = model.generation_config.eos_token_id
    model.generation_config = GenerationConfig(eos_token_id=stops)
    processor = AutoProcessor.from_pretrained(checkpoint.source, **given)
    if options.chat_template is not None:
        processor.chat_template = options.chat_template.read_text("utf-8")
    tokenizer = getattr(processor, "tokenizer", None)
    if tokenizer is None or not processor.chat_template:
        raise EngineError(
            f"model {options.model!r} has no tokenizer or no chat template: expected a "
            "vision-language model made for chat, or its template as `chat_template`"
        )
    # The answer follows the prompt: whatever fills a row up stands before it.
    tokenizer.padding_side = "left"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return model, processor


@dataclass
class LoadedModel:
    """A model in memory; `fitted` where images come in the size that its processor leaves alone."""

    model: Any
    processor: Any
    options: TransformersOptions
    fitted: bool
    structured: bool

    @classmethod
    def load(
        cls, options: TransformersOptions, checkpoint: Checkpoint, *, fitted: bool, structured: bool
    ) -> LoadedModel:
        check_installed(KIND)
        try:
            model, processor = _loaded_parts(options, checkpoint)
        except EngineError:
            raise
        except Exception as error:  # whatever the driver, the memory or the files are short of
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            if any("trust_remote_code" in line for line in lines):
                raise EngineError(
                    f"model {options.model!r} comes with code of its own, which is never run here: "
                    "choose a model that transformers itself knows, or run it behind a server with "
                    "engine 'openai'"
                ) from error
            said = f"{type(error).__name__}: {(lines or [''])[0]}"[:LONGEST_REASON]
            raise EngineError(
                f"cannot load {options.model!r} ({said}): expected a vision-language model with "
                "safetensors weights that fit into memory"
            ) from error
        return cls(model, processor, options, fitted, structured)

    def rendered(self, chat: list[dict[str, Any]]) -> str:
        """A conversation as the model's template writes it, up to where the answer begins."""
        text = self.processor.apply_chat_template(
            chat, add_generation_prompt=True, tokenize=False, **self.options.chat_template_kwargs
        )
        return str(text)

    def answers(self, questions: Sequence[PreparedRequest]) -> list[Completion]:
        import torch

        options, answer = self.options, questions[0].request.max_tokens
        images = [list(one.images) for one in questions]
        # Those that are fitted to the family's rule need no second resize.
        arguments = {"images_kwargs": {"do_resize": False}} if self.fitted and images[0] else {}
        inputs = self.processor(
            text=[one.text for one in questions],
            images=images if images[0] else None,
            padding=True,
            return_tensors="pt",
            **arguments,
        ).to(self.model.device, dtype=self.model.dtype)
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        room = getattr(self._text_config, "max_position_embeddings", None)
        if room is not None and max(lengths) + answer > room:
            raise EngineError(
                f"a prompt of {max(lengths)} tokens and an answer of up to {answer} are more than "
                f"the model's {room}: lower max_pixels or the stage's context"
            )
        seeds = [one.seed(options.seed + one.request.repeat) for one in questions]
        processors = [
            *(self._grammar.enforced(questions) if self.structured else ()),
            *sampling_processors(seeds, options.temperature, options.top_p, self.model.device),
        ]
        with torch.inference_mode():
            written = self.model.generate(
                **inputs,
                max_new_tokens=answer,
                do_sample=False,
                eos_token_id=sorted(self._stops),
                pad_token_id=self.processor.tokenizer.pad_token_id,
                logits_processor=processors,
            )
        rows = written[:, inputs["input_ids"].shape[1] :].tolist()
        return [self._completion(*one) for one in zip(rows, lengths, strict=True)]

    def _completion(self, tokens: list[int], asked: int) -> Completion:
        end = next((at for at, token in enumerate(tokens) if token in self._stops), None)
        text = self.processor.tokenizer.decode(tokens[:end], skip_special_tokens=True)
        usage = Usage(asked, len(tokens) if end is None else end + 1)
        return Completion(text, None, "length" if end is None else "stop", usage)

    @property
    def _text_config(self) -> Any:
        return self.model.config.get_text_config()

    @cached_property
    def _stops(self) -> frozenset[int]:
        stops = self.model.generation_config.eos_token_id
        if stops is None:
            stops = self.processor.tokenizer.eos_token_id
        return frozenset([stops] if isinstance(stops, int) else stops)

    @cached_property
    def _grammar(self) -> Grammar:
        tokenizer = self.processor.tokenizer
        return Grammar(tokenizer, self._text_config.vocab_size, sorted(self._stops))
