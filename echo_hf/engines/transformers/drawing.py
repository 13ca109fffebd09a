"""What happens to a model's scores before the next token is taken from them.

The likeliest token is always the one that is taken. For a temperature above 0, noise of the right
kind is added first: then the likeliest is a fair draw (the Gumbel-max identity). Each row has a
generator of its own, so that its draws do not depend on the batch it is in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from echo_hf.engines.base import Request
from echo_hf.engines.grammar import grammar_schema
from echo_hf.engines.transformers.question import Question


def drawn(seeds: Sequence[int], temperature: float, top_p: float, device: Any) -> list[Any]:
    """How the tokens of a batch are drawn.

    Args:
        seeds: One a row.
        temperature: 0 for no draws.
        top_p: Share of likeliest tokens that are drawn from.
        device: Where the scores are.

    Returns:
        Processors of scores, in the order in which to apply them.
    """
    if temperature == 0:
        return []
    from transformers import TemperatureLogitsWarper, TopPLogitsWarper

    nucleus = [TopPLogitsWarper(top_p)] if top_p < 1 else []
    return [TemperatureLogitsWarper(temperature), *nucleus, Noise.seeded(seeds, device)]


@dataclass(frozen=True)
class Noise:
    """Adds standard Gumbel noise to scores; what was ruled out stays ruled out.

    Attributes:
        generators: One a row.
    """

    generators: tuple[Any, ...]

    @classmethod
    def seeded(cls, seeds: Sequence[int], device: Any) -> Noise:
        """Noise for rows of these seeds."""
        import torch

        return cls(tuple(torch.Generator(device).manual_seed(seed) for seed in seeds))

    def __call__(self, _input_ids: Any, scores: Any) -> Any:
        """The scores with noise; the tokens so far play no part."""
        import torch

        waits = [
            torch.empty_like(row, dtype=torch.float32).exponential_(generator=generator)
            for row, generator in zip(scores, self.generators, strict=True)
        ]
        return scores - torch.stack(waits).log()


class Grammar:
    """Holds answers to their schemas by ruling out every token that would leave them.

    Args:
        tokenizer: The model's tokenizer.
        vocabulary: Number of the model's scores.
        stops: Tokens that end an answer.
    """

    def __init__(self, tokenizer: Any, vocabulary: int, stops: Sequence[int]) -> None:
        import xgrammar

        known = xgrammar.TokenizerInfo.from_huggingface(
            tokenizer, vocab_size=vocabulary, stop_token_ids=list(stops)
        )
        self._compiler = xgrammar.GrammarCompiler(known)

    def enforced(self, questions: Sequence[Question]) -> list[Any]:
        """What holds these questions' answers to their schemas.

        Args:
            questions: A batch; either all of them declare a form of the answer or none does.

        Returns:
            Processors of scores, good for one batch.
        """
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
