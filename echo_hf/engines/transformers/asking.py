"""A loaded model that is asked in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from echo_hf.engines.base import Completion, Usage
from echo_hf.engines.transformers.drawing import Grammar, drawn
from echo_hf.engines.transformers.options import TransformersOptions
from echo_hf.engines.transformers.question import Question
from echo_hf.errors import EngineError


@dataclass
class LoadedModel:
    """A model in memory, with what turns questions into numbers and numbers into answers.

    Attributes:
        model: A transformers model that generates.
        processor: Its processor.
        options: The engine's options.
        fitted: Whether pictures come in the size that the model's own rule gives them.
        structured: Whether answers are held to their schemas.
    """

    model: Any
    processor: Any
    options: TransformersOptions
    fitted: bool
    structured: bool

    def rendered(self, chat: list[dict[str, Any]]) -> str:
        """A conversation as the model's template writes it, up to where the answer begins.

        Args:
            chat: Messages of a role and a list of parts.

        Returns:
            The text.
        """
        text = self.processor.apply_chat_template(
            chat,
            add_generation_prompt=True,
            tokenize=False,
            **self.options.chat_template_kwargs,
        )
        return str(text)

    def answers(self, questions: Sequence[Question]) -> list[Completion]:
        """Asks a batch.

        Args:
            questions: Questions of one kind.

        Returns:
            An answer each, in order.

        Raises:
            EngineError: A question and its answer are longer than the model's context; whatever
                the processor, the model or the memory raise is passed on.
        """
        import torch

        most = questions[0].request.max_tokens
        inputs = self._inputs(questions)
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        self._check_room(max(lengths), most)
        with torch.inference_mode():
            written = self.model.generate(
                **inputs,
                max_new_tokens=most,
                do_sample=False,
                eos_token_id=sorted(self._stops),
                pad_token_id=self._tokenizer.pad_token_id,
                logits_processor=self._processors(questions),
            )
        rows = written[:, inputs["input_ids"].shape[1] :].tolist()
        return [self._completion(*one) for one in zip(rows, lengths, strict=True)]

    def _inputs(self, questions: Sequence[Question]) -> Any:
        images = [list(one.images) for one in questions]
        # Those that are fitted to the family's rule need no second resize.
        arguments = {"images_kwargs": {"do_resize": False}} if self.fitted and images[0] else {}
        inputs = self.processor(
            text=[one.text for one in questions],
            images=images if images[0] else None,
            padding=True,
            return_tensors="pt",
            **arguments,
        )
        return inputs.to(self.model.device, dtype=self.model.dtype)

    def _processors(self, questions: Sequence[Question]) -> list[Any]:
        options = self.options
        seeds = [one.seed(options.seed + one.request.repeat) for one in questions]
        draws = drawn(seeds, options.temperature, options.top_p, self.model.device)
        return [*(self._grammar.enforced(questions) if self.structured else ()), *draws]

    def _completion(self, tokens: list[int], asked: int) -> Completion:
        end = next((at for at, token in enumerate(tokens) if token in self._stops), None)
        text = self._tokenizer.decode(tokens[:end], skip_special_tokens=True)
        usage = Usage(asked, len(tokens) if end is None else end + 1)
        return Completion(text, None, "length" if end is None else "stop", usage)

    def _check_room(self, asked: int, answer: int) -> None:
        room = getattr(self._text_config, "max_position_embeddings", None)
        if room is not None and asked + answer > room:
            raise EngineError(
                f"a prompt of {asked} tokens and an answer of up to {answer} are more than the "
                f"model's {room}: lower max_pixels or the stage's context"
            )

    @property
    def _tokenizer(self) -> Any:
        return self.processor.tokenizer

    @property
    def _text_config(self) -> Any:
        return self.model.config.get_text_config()

    @cached_property
    def _stops(self) -> frozenset[int]:
        stops = self.model.generation_config.eos_token_id
        if stops is None:
            stops = self._tokenizer.eos_token_id
        return frozenset([stops] if isinstance(stops, int) else stops)

    @cached_property
    def _grammar(self) -> Grammar:
        return Grammar(self._tokenizer, self._text_config.vocab_size, sorted(self._stops))
