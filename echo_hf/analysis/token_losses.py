"""How probable a causal language model finds each text: exact, whatever is batched together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from echo_hf.analysis.windows import Window, batches, windows
from echo_hf.engines.transformers.loading import is_out_of_memory

FILLER = 0  # any token: the mask hides it, and nothing looks ahead


class CausalModel(Protocol):
    """What is asked: tokens of texts, and logits of batches.

    Its `model` is a causal language model of transformers'; `begin` the token that begins every
    text, null where there is none.
    """

    @property
    def model(self) -> Any:
        """The model."""

    @property
    def begin(self) -> int | None:
        """The token that begins every text."""

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokens of each text, without any special one."""


@dataclass(frozen=True, slots=True)
class Loss:
    """How surprising one text is.

    Attributes:
        nll: Negative log-likelihood of its scored tokens, in nats.
        tokens: How many they are.
    """

    nll: float
    tokens: int

    @property
    def perplexity(self) -> float:
        """The exponential of the mean over tokens; infinite where no float holds it."""
        try:
            return math.exp(self.nll / self.tokens)
        except OverflowError:
            return math.inf


def token_losses(
    causal: CausalModel,
    texts: Sequence[str],
    *,
    size: int,
    stride: int,
    batch_tokens: int,
) -> list[Loss | None]:
    """Scores each token of each text once, given what stands before it.

    Where the tokenizer puts a token at the beginning of every text, the text's first token is
    scored given that one; else it has nothing before it and is not scored.

    Args:
        causal: The model with its tokenizer.
        texts: The texts.
        size: Most tokens that the model sees at once.
        stride: New tokens of each further window over a longer text.
        batch_tokens: Most tokens of a batch, padding included; halved whenever memory runs out.

    Returns:
        One for each text, null where no token can be scored.

    Raises:
        RuntimeError: What the model raises; out of memory as well, once a single window is too
            much.
    """
    begin = [] if causal.begin is None else [causal.begin]
    rows = [[*begin, *tokens] for tokens in causal.tokens(texts)]
    parts = [part for at, row in enumerate(rows) for part in windows(at, len(row), size, stride)]
    nll, counts = [0.0] * len(rows), [0] * len(rows)
    for part, loss in _losses(causal.model, rows, parts, batch_tokens):
        nll[part.text] += loss
        counts[part.text] += part.end - part.scored
    return [Loss(*one) if one[1] else None for one in zip(nll, counts, strict=True)]


def _losses(
    model: Any, rows: Sequence[Sequence[int]], parts: Sequence[Window], most: int
) -> Iterator[tuple[Window, float]]:
    waiting = list(batches(parts, most))[::-1]
    while waiting:
        batch = waiting.pop()
        try:
            found = _of_batch(model, rows, batch)
        except Exception as error:
            if not is_out_of_memory(error) or len(batch) == 1:
                raise
            found = None
        if found is None:  # outside the handler, where the error would keep its tensors alive
            most = max(most // 2, 1)
            left = [*batch, *(part for later in waiting for part in later)]
            waiting = list(batches(left, most))[::-1]
        else:
            yield from zip(batch, found, strict=True)


def _of_batch(model: Any, rows: Sequence[Sequence[int]], batch: Sequence[Window]) -> list[float]:
    import torch

    longest = batch[0].size
    seen = [list(rows[part.text][part.start : part.end]) for part in batch]
    padded = [row + [FILLER] * (longest - len(row)) for row in seen]
    mask = [[1] * len(row) + [0] * (longest - len(row)) for row in seen]
    given, hidden = (torch.tensor(one, device=model.device) for one in (padded, mask))
    with torch.inference_mode():
        logits = model(input_ids=given, attention_mask=hidden, use_cache=False).logits
        # One text at a time in 32 bits: all of them would take twice the memory of the logits.
        return [
            _of_window(torch, logits[at], given[at].to(logits.device), part)
            for at, part in enumerate(batch)
        ]


def _of_window(torch: Any, logits: Any, given: Any, part: Window) -> float:
    first, last = part.scored - part.start, part.end - part.start
    losses = torch.nn.functional.cross_entropy(
        logits[first - 1 : last - 1].float(), given[first:last], reduction="none"
    )
    return float(losses.double().sum())
