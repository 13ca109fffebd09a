"""Engine for reward models with a sequence-classification head, through transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from echo_hf.engines.base import Completion, Usage, register
from echo_hf.engines.checkpoint import CheckpointOptions, PositiveCount
from echo_hf.engines.pooling import Head, read_head
from echo_hf.engines.transformers import PreparedRequest, TransformersEngine
from echo_hf.errors import EngineError

KIND = "scalar_head"


class ScalarHeadOptions(CheckpointOptions):
    """Options of the engine.

    Attributes:
        batch_size: Most requests at a time; halved when memory runs out.
        head: `single`, the head's one output; `difference`, of two the second less the first: the
            log-odds of the second.
    """

    batch_size: PositiveCount = 8
    head: Head = "single"


@register(
    KIND,
    "a reward model with a head for numbers, in process",
    extra="transformers",
    packages=("torch", "transformers", "accelerate"),
)
class ScalarHeadEngine(TransformersEngine):
    kind = KIND
    gives_scalars = True
    writes = False
    signed_options = ("dtype", "head")
    option_model = ScalarHeadOptions
    options: ScalarHeadOptions  # type: ignore[assignment]
    expected_model = "a model with a trained sequence-classification head"

    @property
    def _is_structured(self) -> bool:
        return False

    def _read_weights(self, source: str, **options: Any) -> Any:
        from transformers import AutoModelForSequenceClassification

        model, loading = AutoModelForSequenceClassification.from_pretrained(
            source, output_loading_info=True, **options
        )
        # What the weights lack would be drawn at random, and so would its numbers.
        if missing := sorted(loading["missing_keys"]):
            raise EngineError(f"its weights have no {missing[0]!r}")
        read_head([0.0] * int(model.config.num_labels), self.options.head)
        return model

    def _prepare_generation(self, model: Any) -> None:
        model.config.get_text_config().pad_token_id = self._tokenizer.pad_token_id

    def _answer_batch(self, questions: Sequence[PreparedRequest]) -> list[Completion]:
        import torch

        if any(prepared.has_form for prepared in questions):
            raise EngineError(
                f"a stage wants an answer in words, and engine {KIND!r} gives a number: name it "
                "for a judge of form scalar"
            )
        inputs = self._prepare_inputs(questions)
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        self._check_context(max(lengths), 0)
        with torch.inference_mode():
            rows = self._loaded(**inputs).logits.float().tolist()
        return [
            Completion(read_head(row, self.options.head), usage=Usage(length, 0))
            for row, length in zip(rows, lengths, strict=True)
        ]
