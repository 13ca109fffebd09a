"""An engine that runs a model with transformers in this process, on a GPU or a CPU."""

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
    Completion,
    CompletionStream,
    ImageRef,
    Message,
    Request,
    Text,
    Usage,
    check_installed,
    register,
)
from echo_hf.engines.checkpoint import (
    CheckpointEngine,
    CheckpointOptions,
    PositiveCount,
    describe_error,
    failed_completion,
)
from echo_hf.engines.schema import build_grammar_schema
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


class TransformersOptions(CheckpointOptions):
    """Options of the engine, beside those of any checkpoint; pickles are never read.

    Attributes:
        batch_size: Most requests that are computed at a time; halved when memory runs out.
        structured: Whether answers are held to the declared schema while they are written: with
            `xgrammar`, not at all, or `auto` for where xgrammar is installed.
    """

    batch_size: PositiveCount = 8
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
    def group(self) -> tuple[int, bool, bool]:
        """Key of requests that may share a batch."""
        return self.request.max_tokens, self.has_form, not self.images

    @property
    def size(self) -> tuple[int, int]:
        return sum(image.width * image.height for image in self.images), len(self.text)

    def seed(self, base: int) -> int:
        """Derive a seed from the request alone, independent of its batch."""
        digest = hashlib.sha256(f"{base}:{self.text}".encode("utf-8", "surrogatepass"))
        for reference in self.request.images:
            digest.update(reference.sha256.encode())
        return int.from_bytes(digest.digest()[:8]) >> (64 - SEED_BITS)


NumberedRequest = tuple[int, PreparedRequest]


def prepare(
    request: Request,
    render_chat: Callable[[list[dict[str, Any]]], str],
    read_image: Callable[[ImageRef], Image.Image],
) -> PreparedRequest:
    """Render a request for the model, with the answer's schema after the instructions."""
    messages, instruction = request.messages, ""
    if request.answer is not None:
        schema = json.dumps(request.answer.model_json_schema(), ensure_ascii=False)
        instruction = f"\n\n{SCHEMA_WORDS}\n{schema}"
    elif request.regex is not None:
        instruction = f"\n\n{REGEX_WORDS}\n{request.regex}"
    if instruction:
        first, *others = messages
        messages = (Message(first.role, (*first.parts, Text(instruction))), *others)
    images: list[Image.Image] = []
    chat: list[dict[str, Any]] = []
    for message in messages:
        content = []
        for part in message.parts:
            if isinstance(part, ImageRef):
                images.append(read_image(part))
                content.append({"type": "image"})
            else:
                content.append({"type": "text", "text": part.text})
        chat.append({"role": message.role, "content": content})
    return PreparedRequest(request, render_chat(chat), tuple(images))


@dataclass
class BatchQueue:
    ask: Callable[[Sequence[PreparedRequest]], list[Completion]]
    is_too_large: Callable[[BaseException], bool]
    recover: Callable[[], None]
    size: int

    def answer_pool(self, pool: Iterable[NumberedRequest]) -> Iterator[tuple[int, Completion]]:
        longest_first = sorted(pool, key=lambda pair: (pair[1].group, pair[1].size), reverse=True)
        for _, alike in groupby(longest_first, key=lambda pair: pair[1].group):
            remaining, size = list(alike), self.size
            while remaining:
                batch = remaining[:size]
                outcome = self._try_batch(batch)
                if isinstance(outcome, Completion) and len(batch) > 1:
                    size = len(batch) // 2
                    if outcome is TOO_LARGE:
                        self.size = size
                        log.warning("out of memory with %d requests: now %d", len(batch), size)
                    continue
                del remaining[: len(batch)]
                if isinstance(outcome, Completion):  # the one that spoilt its batch
                    outcome, size = [outcome], self.size
                yield from zip((number for number, _ in batch), outcome, strict=True)

    def _try_batch(self, batch: list[NumberedRequest]) -> list[Completion] | Completion:
        try:
            return self.ask([question for _, question in batch])
        except Exception as error:  # the error itself would keep what was computed in memory
            failed = TOO_LARGE if self.is_too_large(error) else failed_completion(error)
        self.recover()
        return failed


def free_memory() -> None:
    from accelerate.utils.memory import clear_device_cache

    clear_device_cache(garbage_collection=True)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that a smaller batch might have fitted."""
    from accelerate.utils.memory import should_reduce_batch_size

    return isinstance(error, MemoryError) or (
        isinstance(error, Exception) and bool(should_reduce_batch_size(error))
    )


def make_sampling_processors(
    seeds: Sequence[int], temperature: float, top_p: float, device: Any
) -> list[Any]:
    """Make logits processors that sample each row by its own seed."""
    if temperature == 0:
        return []
    import torch
    from transformers import TemperatureLogitsWarper, TopPLogitsWarper

    generators = [torch.Generator(device).manual_seed(seed) for seed in seeds]

    def add_noise(_tokens: Any, scores: Any) -> Any:
        """Add standard Gumbel noise to the scores; ruled-out tokens stay ruled out."""
        waits = [
            torch.empty_like(row, dtype=torch.float32).exponential_(generator=generator)
            for row, generator in zip(scores, generators, strict=True)
        ]
        return scores - torch.stack(waits).log()

    nucleus = [TopPLogitsWarper(top_p)] if top_p < 1 else []
    return [TemperatureLogitsWarper(temperature), *nucleus, add_noise]


@register(
    KIND,
    "a GPU or a processor that vLLM does not run on",
    extra="transformers",
    packages=("torch", "transformers", "accelerate"),
)
class TransformersEngine(CheckpointEngine):
    kind = KIND
    signed_options: tuple[str, ...] = ("dtype",)
    writes = True  # so that a template ends where an answer begins
    option_model: type[CheckpointOptions] = TransformersOptions
    expected_model = "a language or vision-language model made for chat"
    options: TransformersOptions

    def __init__(self, **options: Any) -> None:
        super().__init__(self.option_model, options)
        self._queue = BatchQueue(
            self._answer_batch, is_out_of_memory, free_memory, self.options.batch_size
        )

    @property
    def window(self) -> int:
        return BATCHES_IN_POOL * self.options.batch_size

    def signature(self) -> dict[str, Any]:
        structured = GRAMMAR if self._is_structured else None
        return {**super().signature(), "schema_words": SCHEMA_WORDS, "structured": structured}

    @property
    def _is_structured(self) -> bool:
        if self.options.structured == "auto":
            return importlib.util.find_spec(GRAMMAR) is not None
        return self.options.structured == GRAMMAR

    def _compute_completions(self, requests: Iterator[Request]) -> CompletionStream:
        numbered = enumerate(requests)
        while pool := list(islice(numbered, self.window)):
            if self._loaded is None:
                self._load()
            ready: list[NumberedRequest] = []
            for number, request in pool:
                try:
                    ready.append((number, prepare(request, self._render_chat, self._read_image)))
                except Exception as error:
                    yield number, failed_completion(error)
            yield from self._queue.answer_pool(ready)

    def _load(self) -> None:
        check_installed(self.kind)
        if self._is_structured and importlib.util.find_spec(GRAMMAR) is None:
            raise MissingExtraError(f"structured: {GRAMMAR}", KIND)
        try:
            self._loaded = self._make_model()
        except Exception as error:  # whatever the driver, the memory or the files are short of
            raise EngineError(
                f"cannot load {self.options.model!r} ({describe_error(error)}): expected "
                f"{self.expected_model}, that transformers itself knows "
                "(code that comes with a model is never run), with safetensors weights that fit "
                "into memory"
            ) from error

    def _make_model(self) -> Any:
        from transformers import (
            MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
            AutoConfig,
            AutoProcessor,
            AutoTokenizer,
        )

        options, checkpoint = self.options, self._checkpoint
        source_options = {"revision": checkpoint.commit, "trust_remote_code": False}
        config = AutoConfig.from_pretrained(checkpoint.source, **source_options)
        text = config.get_text_config()
        if config.model_type == LLAMA_4 and text.attention_chunk_size is None:
            # No chunks, says Llama Guard; transformers counts with the null and fails. One chunk
            # that holds the longest request and its answer is no chunks.
            text.attention_chunk_size = text.max_position_embeddings
        self._sees_images = type(config) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
        model = self._read_weights(
            checkpoint.source,
            config=config,
            dtype=options.dtype,
            device_map="auto",
            use_safetensors=True,
            **source_options,
        )
        processor_class = AutoProcessor if self._sees_images else AutoTokenizer
        self._processor = processor_class.from_pretrained(checkpoint.source, **source_options)
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
        self._prepare_generation(model)
        return model

    def _read_weights(self, source: str, **options: Any) -> Any:
        from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

        model_class = AutoModelForImageTextToText if self._sees_images else AutoModelForCausalLM
        return model_class.from_pretrained(source, **options)

    def _prepare_generation(self, model: Any) -> None:
        from transformers import GenerationConfig

        # A checkpoint's own penalties and draws would change answers behind the signature's back.
        stops = model.generation_config.eos_token_id
        model.generation_config = GenerationConfig(eos_token_id=stops)
        stops = self._tokenizer.eos_token_id if stops is None else stops
        self._stops = [stops] if isinstance(stops, int) else sorted(stops)
        if self._is_structured:
            from xgrammar import GrammarCompiler, TokenizerInfo

            size = model.config.get_text_config().vocab_size
            tokenizer_info = TokenizerInfo.from_huggingface(
                self._tokenizer, vocab_size=size, stop_token_ids=self._stops
            )
            self._compiler = GrammarCompiler(tokenizer_info)

    def _release(self) -> None:
        if self._loaded is not None:
            self._loaded = None
            free_memory()

    def _render_chat(self, chat: list[dict[str, Any]]) -> str:
        options = {"add_generation_prompt": self.writes, **self.options.chat_template_kwargs}
        if not self._sees_images:  # templates of language models take text, not parts
            chat = [{**turn, "content": "".join(map(_get_text, turn["content"]))} for turn in chat]
        return str(self._processor.apply_chat_template(chat, tokenize=False, **options))

    def _prepare_inputs(self, questions: Sequence[PreparedRequest]) -> Any:
        texts, device = [prepared.text for prepared in questions], self._loaded.device
        padding = {"padding": True, "return_tensors": "pt"}
        if not self._sees_images:
            # The template has written what begins a conversation.
            text_only = {"add_special_tokens": False, "return_token_type_ids": False}
            return self._processor(texts, **padding, **text_only).to(device)
        images = [list(prepared.images) for prepared in questions]
        # Those that are fitted to the family's rule need no second resize.
        is_fitted = self._budget.factor > 1 and images[0]
        resize = {"images_kwargs": {"do_resize": False}} if is_fitted else {}
        inputs = self._processor(
            text=texts, images=images if images[0] else None, **padding, **resize
        )
        return inputs.to(device, dtype=self._loaded.dtype)

    def _answer_batch(self, questions: Sequence[PreparedRequest]) -> list[Completion]:
        import torch

        options, model, max_tokens = self.options, self._loaded, questions[0].request.max_tokens
        inputs = self._prepare_inputs(questions)
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        self._check_context(max(lengths), max_tokens)
        seeds = [prepared.seed(options.seed + prepared.request.repeat) for prepared in questions]
        sampling = make_sampling_processors(seeds, options.temperature, options.top_p, model.device)
        with torch.inference_mode():
            generated = model.generate(
                **inputs,
                max_new_tokens=max_tokens,
                do_sample=False,
                eos_token_id=self._stops,
                pad_token_id=self._tokenizer.pad_token_id,
                logits_processor=[*self._make_grammar_processors(questions), *sampling],
            )
        rows = generated[:, inputs["input_ids"].shape[1] :].tolist()
        return [self._read_completion(*output) for output in zip(rows, lengths, strict=True)]

    def _check_context(self, prompt_tokens: int, max_tokens: int) -> None:
        text_config = self._loaded.config.get_text_config()
        context_size = getattr(text_config, "max_position_embeddings", None)
        if context_size is not None and prompt_tokens + max_tokens > context_size:
            raise EngineError(
                f"a prompt of {prompt_tokens} tokens and an answer of up to {max_tokens} are more "
                f"than the model's {context_size}: lower max_pixels or the stage's context"
            )

    def _read_completion(self, tokens: list[int], prompt_tokens: int) -> Completion:
        end = next((index for index, token in enumerate(tokens) if token in self._stops), None)
        text = self._tokenizer.decode(tokens[:end], skip_special_tokens=True)
        usage = Usage(prompt_tokens, len(tokens) if end is None else end + 1)
        return Completion(text, None, "length" if end is None else "stop", usage)

    def _make_grammar_processors(self, questions: Sequence[PreparedRequest]) -> list[Any]:
        """Make logits processors that rule out tokens which break the answer's schema."""
        if not (self._is_structured and any(prepared.has_form for prepared in questions)):
            return []
        from xgrammar.contrib.hf import LogitsProcessor

        def compile_grammar(request: Request) -> Any:
            if request.answer is None:
                return self._compiler.compile_regex(request.regex)
            # Where any white space is allowed a model may go on with it up to its limit.
            schema = build_grammar_schema(request.answer)
            return self._compiler.compile_json_schema(schema, any_whitespace=False)

        return [LogitsProcessor([compile_grammar(prepared.request) for prepared in questions])]


def _get_text(part: dict[str, Any]) -> str:
    if part["type"] != "text":
        raise EngineError("the model reads text alone, and the request sends an image")
    return str(part["text"])
