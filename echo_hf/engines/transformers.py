"""A model that transformers runs in this process: for a GPU or a CPU without vLLM."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, Literal

from PIL import Image

from echo_hf.engines.base import (
    Answers,
    Completion,
    ImageRef,
    Message,
    Request,
    Text,
    Usage,
    check_installed,
    register,
)
from echo_hf.engines.checkpoint import CheckpointEngine, Count, ModelOptions, failure, reason
from echo_hf.engines.schema import grammar_schema
from echo_hf.errors import EngineError, MissingExtraError

KIND = "transformers"
GRAMMAR = "xgrammar"
# Part of the engine's signature: who changes these words gets new answers.
SCHEMA_WORDS = "Answer with one JSON object that fits this JSON schema, and with nothing else:"
REGEX_WORDS = "Answer with text that this regular expression matches whole, and nothing else:"
SEED_BITS = 63
LLAMA_4 = "llama4"
# A question in a pool of several batches finds neighbours of its length.
BATCHES_IN_POOL = 4
TOO_LARGE = Completion(
    None,
    "out of memory with this request alone: lower max_pixels, or use a smaller model or dtype",
    "error",
)

log = logging.getLogger(__name__)


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
        return self.request.answer is not None or self.request.regex is not None

    @property
    def kind(self) -> tuple[int, bool, bool]:
        """What the questions of a batch must have in common."""
        return self.request.max_tokens, self.has_form, not self.images

    @property
    def length(self) -> tuple[int, int]:
        return sum(image.width * image.height for image in self.images), len(self.text)

    def seed(self, base: int) -> int:
        """A number that stands for the question's own draws, whatever it shares a batch with."""
        digest = hashlib.sha256(f"{base}:{self.text}".encode("utf-8", "surrogatepass"))
        for reference in self.request.images:
            digest.update(reference.sha256.encode())
        return int.from_bytes(digest.digest()[:8]) >> (64 - SEED_BITS)


Numbered = tuple[int, PreparedRequest]


def question(
    request: Request,
    render: Callable[[list[dict[str, Any]]], str],
    read: Callable[[ImageRef], Image.Image],
) -> PreparedRequest:
    """A request as the model reads it, with the form of the answer behind the instructions."""
    messages, form = request.messages, ""
    if request.answer is not None:
        schema = json.dumps(request.answer.model_json_schema(), ensure_ascii=False)
        form = f"\n\n{SCHEMA_WORDS}\n{schema}"
    elif request.regex is not None:
        form = f"\n\n{REGEX_WORDS}\n{request.regex}"
    if form:
        first, *others = messages
        messages = (Message(first.role, (*first.parts, Text(form))), *others)
    images: list[Image.Image] = []
    chat: list[dict[str, Any]] = []
    for message in messages:
        content = []
        for part in message.parts:
            if isinstance(part, ImageRef):
                images.append(read(part))
                content.append({"type": "image"})
            else:
                content.append({"type": "text", "text": part.text})
        chat.append({"role": message.role, "content": content})
    return PreparedRequest(request, render(chat), tuple(images))


@dataclass
class Batches:
    ask: Callable[[Sequence[PreparedRequest]], list[Completion]]
    is_too_large: Callable[[BaseException], bool]
    recover: Callable[[], None]
    size: int

    def answered(self, pool: Iterable[Numbered]) -> Iterator[tuple[int, Completion]]:
        longest_first = sorted(pool, key=lambda one: (one[1].kind, one[1].length), reverse=True)
        for _, alike in groupby(longest_first, key=lambda one: one[1].kind):
            rest, size = list(alike), self.size
            while rest:
                batch = rest[:size]
                said = self._tried(batch)
                if isinstance(said, Completion) and len(batch) > 1:
                    size = len(batch) // 2
                    if said is TOO_LARGE:
                        self.size = size
                        log.warning("out of memory with %d requests: now %d", len(batch), size)
                    continue
                del rest[: len(batch)]
                if isinstance(said, Completion):  # the one that spoilt its batch
                    said, size = [said], self.size
                yield from zip((number for number, _ in batch), said, strict=True)

    def _tried(self, batch: list[Numbered]) -> list[Completion] | Completion:
        try:
            return self.ask([question for _, question in batch])
        except Exception as error:  # the error itself would keep what was computed in memory
            fault = TOO_LARGE if self.is_too_large(error) else failure(error)
        self.recover()
        return fault


def free() -> None:
    from accelerate.utils.memory import clear_device_cache

    clear_device_cache(garbage_collection=True)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that a smaller batch might have fitted."""
    from accelerate.utils.memory import should_reduce_batch_size

    return isinstance(error, MemoryError) or (
        isinstance(error, Exception) and bool(should_reduce_batch_size(error))
    )


def sampling_processors(
    seeds: Sequence[int], temperature: float, top_p: float, device: Any
) -> list[Any]:
    """What draws each row's tokens by its own seed, whatever it shares a batch with."""
    if temperature == 0:
        return []
    import torch
    from transformers import TemperatureLogitsWarper, TopPLogitsWarper

    generators = [torch.Generator(device).manual_seed(seed) for seed in seeds]

    def noise(_tokens: Any, scores: Any) -> Any:
        """The scores with standard Gumbel noise; what was ruled out stays ruled out."""
        waits = [
            torch.empty_like(row, dtype=torch.float32).exponential_(generator=generator)
            for row, generator in zip(scores, generators, strict=True)
        ]
        return scores - torch.stack(waits).log()

    nucleus = [TopPLogitsWarper(top_p)] if top_p < 1 else []
    return [TemperatureLogitsWarper(temperature), *nucleus, noise]


@register(
    KIND,
    "a GPU or a processor that vLLM does not run on",
    extra="transformers",
    packages=("torch", "transformers", "accelerate"),
)
class TransformersEngine(CheckpointEngine):
    kind = KIND
    keyed = ("dtype",)
    options: TransformersOptions

    def __init__(self, **options: Any) -> None:
        super().__init__(TransformersOptions, options)
        self._batches = Batches(self._answered, is_out_of_memory, free, self.options.batch_size)

    @property
    def window(self) -> int:
        return BATCHES_IN_POOL * self.options.batch_size

    def signature(self) -> dict[str, Any]:
        structured = GRAMMAR if self._structured else None
        return {**super().signature(), "schema_words": SCHEMA_WORDS, "structured": structured}

    @property
    def _structured(self) -> bool:
        if self.options.structured == "auto":
            return importlib.util.find_spec(GRAMMAR) is not None
        return self.options.structured == GRAMMAR

    def _computed(self, requests: Iterator[Request]) -> Answers:
        numbered = enumerate(requests)
        while pool := list(islice(numbered, self.window)):
            if self._loaded is None:
                self._load()
            ready: list[Numbered] = []
            for number, request in pool:
                try:
                    ready.append((number, question(request, self._rendered, self._read)))
                except Exception as error:
                    yield number, failure(error)
            yield from self._batches.answered(ready)

    def _load(self) -> None:
        check_installed(KIND)
        if self._structured and importlib.util.find_spec(GRAMMAR) is None:
            raise MissingExtraError(f"structured: {GRAMMAR}", KIND)
        try:
            self._loaded = self._made()
        except Exception as error:  # whatever the driver, the memory or the files are short of
            raise EngineError(
                f"cannot load {self.options.model!r} ({reason(error)}): expected a language or "
                "vision-language model made for chat, that transformers itself knows (code that "
                "comes with a model is never run), with safetensors weights that fit into memory"
            ) from error

    def _made(self) -> Any:
        from transformers import (
            MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
            AutoConfig,
            AutoModelForCausalLM,
            AutoModelForImageTextToText,
            AutoProcessor,
            AutoTokenizer,
            GenerationConfig,
        )

        options, checkpoint = self.options, self._checkpoint
        given = {"revision": checkpoint.commit, "trust_remote_code": False}
        config = AutoConfig.from_pretrained(checkpoint.source, **given)
        text = config.get_text_config()
        if config.model_type == LLAMA_4 and text.attention_chunk_size is None:
            # No chunks, says Llama Guard; transformers counts with the null and fails. One chunk
            # that holds the longest request and its answer is no chunks.
            text.attention_chunk_size = text.max_position_embeddings
        self._sees_images = type(config) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
        kind = AutoModelForImageTextToText if self._sees_images else AutoModelForCausalLM
        model = kind.from_pretrained(
            checkpoint.source,
            config=config,
            dtype=options.dtype,
            device_map="auto",
            use_safetensors=True,
            **given,
        )
        reader = AutoProcessor if self._sees_images else AutoTokenizer
        self._processor = reader.from_pretrained(checkpoint.source, **given)
        if options.chat_template is not None:
            self._processor.chat_template = options.chat_template.read_text("utf-8")
        if not self._processor.chat_template:
            raise EngineError("it has no chat template: name a file as `chat_template`")
        tokenizer = self._processor.tokenizer if self._sees_images else self._processor
        self._tokenizer = tokenizer
        # The answer follows the prompt: whatever fills a row up stands before it.
        tokenizer.padding_side = "left"
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        # A checkpoint's own penalties and draws would change answers behind the signature's back.
        stops = model.generation_config.eos_token_id
        model.generation_config = GenerationConfig(eos_token_id=stops)
        stops = tokenizer.eos_token_id if stops is None else stops
        self._stops = [stops] if isinstance(stops, int) else sorted(stops)
        if self._structured:
            from xgrammar import GrammarCompiler, TokenizerInfo

            size = text.vocab_size
            known = TokenizerInfo.from_huggingface(
                tokenizer, vocab_size=size, stop_token_ids=self._stops
            )
            self._compiler = GrammarCompiler(known)
        return model

    def _free(self) -> None:
        if self._loaded is not None:
            self._loaded = None
            free()

    def _rendered(self, chat: list[dict[str, Any]]) -> str:
        options = {"add_generation_prompt": True, **self.options.chat_template_kwargs}
        if not self._sees_images:  # templates of language models take text, not parts
            chat = [{**turn, "content": "".join(map(_text_of, turn["content"]))} for turn in chat]
        return str(self._processor.apply_chat_template(chat, tokenize=False, **options))

    def _inputs(self, questions: Sequence[PreparedRequest]) -> Any:
        texts, device = [prepared.text for prepared in questions], self._loaded.device
        padded = {"padding": True, "return_tensors": "pt"}
        if not self._sees_images:
            # The template has written what begins a conversation.
            plain = {"add_special_tokens": False, "return_token_type_ids": False}
            return self._processor(texts, **padded, **plain).to(device)
        images = [list(prepared.images) for prepared in questions]
        # Those that are fitted to the family's rule need no second resize.
        is_fitted = self._budget.factor > 1 and images[0]
        resize = {"images_kwargs": {"do_resize": False}} if is_fitted else {}
        inputs = self._processor(
            text=texts, images=images if images[0] else None, **padded, **resize
        )
        return inputs.to(device, dtype=self._loaded.dtype)

    def _answered(self, questions: Sequence[PreparedRequest]) -> list[Completion]:
        import torch

        options, model, answer = self.options, self._loaded, questions[0].request.max_tokens
        inputs = self._inputs(questions)
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        room = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        if room is not None and max(lengths) + answer > room:
            raise EngineError(
                f"a prompt of {max(lengths)} tokens and an answer of up to {answer} are more than "
                f"the model's {room}: lower max_pixels or the stage's context"
            )
        seeds = [one.seed(options.seed + one.request.repeat) for one in questions]
        drawing = sampling_processors(seeds, options.temperature, options.top_p, model.device)
        with torch.inference_mode():
            written = model.generate(
                **inputs,
                max_new_tokens=answer,
                do_sample=False,
                eos_token_id=self._stops,
                pad_token_id=self._tokenizer.pad_token_id,
                logits_processor=[*self._enforced(questions), *drawing],
            )
        rows = written[:, inputs["input_ids"].shape[1] :].tolist()
        return [self._completion(*one) for one in zip(rows, lengths, strict=True)]

    def _completion(self, tokens: list[int], asked: int) -> Completion:
        end = next((at for at, token in enumerate(tokens) if token in self._stops), None)
        text = self._tokenizer.decode(tokens[:end], skip_special_tokens=True)
        usage = Usage(asked, len(tokens) if end is None else end + 1)
        return Completion(text, None, "length" if end is None else "stop", usage)

    def _enforced(self, questions: Sequence[PreparedRequest]) -> list[Any]:
        """What rules out every token that would leave the forms of the answers."""
        if not (self._structured and any(one.has_form for one in questions)):
            return []
        from xgrammar.contrib.hf import LogitsProcessor

        def grammar(request: Request) -> Any:
            if request.answer is None:
                return self._compiler.compile_regex(request.regex)
            # Where any white space is allowed a model may go on with it up to its limit.
            schema = grammar_schema(request.answer)
            return self._compiler.compile_json_schema(schema, any_whitespace=False)

        return [LogitsProcessor([grammar(one.request) for one in questions])]


def _text_of(part: dict[str, Any]) -> str:
    if part["type"] != "text":
        raise EngineError("the model reads text alone, and the request sends an image")
    return str(part["text"])
