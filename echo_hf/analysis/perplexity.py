"""How natural prompts are: their perplexity under a language model (figure 3, bottom right)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echo_hf.analysis.causal_model import LoadedCausalModel, load_causal_model
from echo_hf.analysis.figures import Estimate, Part
from echo_hf.analysis.options import PerplexityOptions
from echo_hf.analysis.prompt_set import PromptSet
from echo_hf.analysis.result import SetPerplexity
from echo_hf.analysis.token_losses import Loss, token_losses
from echo_hf.bootstrap import KIND, Interval, drawn_weights, percentiles
from echo_hf.errors import EngineError, MissingExtraError
from echo_hf.metrics.extras import said
from echo_hf.metrics.result import versions_of
from echo_hf.reasons import NotAnalyzed, Unscored

Floats = NDArray[np.float64]
Losses = Sequence[Loss | None]
Perplexities = Part[tuple[SetPerplexity, ...]]


@dataclass(frozen=True)
class _Drawn:
    """The figures of a set, and what they would be of other draws of its prompts.

    Attributes:
        size: Prompts.
        token: exp of the mean over tokens.
        prompt: Mean over prompts.
        tokens: Of each draw the first.
        prompts: Of each draw the second.
    """

    size: int
    token: float
    prompt: float
    tokens: Floats
    prompts: Floats


def perplexity(
    sets: Sequence[PromptSet],
    options: PerplexityOptions | None,
    *,
    draws: int = 1000,
    seed: int = 0,
) -> Perplexities:
    """Measures the perplexity of each prompt set.

    Args:
        sets: The prompt sets, the benchmark's own first.
        options: The language model; null for none.
        draws: Draws of the bootstrap over prompts.
        seed: Of the draws.

    Returns:
        Figures by set, in the same order; or why there are none.
    """
    if options is None:
        return Perplexities(
            reason=NotAnalyzed.NOT_CONFIGURED, detail="name a language model: analysis.perplexity"
        )
    try:
        causal = load_causal_model(options)
        size, stride = _window(options, causal.longest)
        losses = [
            token_losses(
                causal, one.prompts, size=size, stride=stride, batch_tokens=options.batch_tokens
            )
            for one in sets
        ]
    except MissingExtraError as error:
        return Perplexities(reason=NotAnalyzed.MISSING_EXTRA, detail=str(error))
    except Exception as error:  # whatever the driver, the memory or the files are short of
        detail = str(error) if isinstance(error, EngineError) else said(error)
        return Perplexities(reason=NotAnalyzed.MODEL_UNAVAILABLE, detail=detail)
    names = [one.name for one in sets]
    definition = _definition(causal, size, stride, draws, seed)
    found = perplexities(names, losses, draws=draws, seed=seed)
    return Perplexities(found=found, definition=definition)


def perplexities(
    names: Sequence[str], losses: Sequence[Losses], *, draws: int = 1000, seed: int = 0
) -> tuple[SetPerplexity, ...]:
    """The figures of prompt sets from the losses of their prompts.

    Args:
        names: Of the sets, the benchmark's own first.
        losses: For each set, one for each prompt; null where no token could be scored.
        draws: Draws of the bootstrap over prompts; 0 for no intervals.
        seed: Of the draws; each set has its own.

    Returns:
        Figures by set, in the same order.

    Example:
        >>> import math
        >>> own, other = [Loss(2 * math.log(8), 2)], [Loss(math.log(16), 1), Loss(math.log(64), 1)]
        >>> found = perplexities(["own", "other"], [own, other], draws=0)
        >>> [round(one.token_level.value, 6) for one in found], round(found[1].ratio.value, 6)
        ([8.0, 32.0], 4.0)
    """
    finite = [[one for one in some if one and math.isfinite(one.perplexity)] for some in losses]
    drawn = [_drawn(some, draws, seed + at) for at, some in enumerate(finite)]
    rows = zip(names, losses, finite, drawn, strict=True)
    return tuple(_figures(*row, drawn[:1] if at else []) for at, row in enumerate(rows))


def _figures(
    name: str,
    every: Losses,
    finite: Sequence[Loss],
    of: _Drawn | None,
    through: Sequence[_Drawn | None],
) -> SetPerplexity:
    return SetPerplexity(
        name=name,
        prompts=len(finite),
        tokens=sum(one.tokens for one in finite),
        left_out=_left_out(every),
        token_level=_token_level(of),
        prompt_level=_prompt_level(of),
        median=median(one.perplexity for one in finite) if finite else None,
        ratio=_token_level(of, *through) if through else None,
        prompt_ratio=_prompt_level(of, *through) if through else None,
    )


def _drawn(losses: Sequence[Loss], draws: int, seed: int) -> _Drawn | None:
    if not losses:
        return None
    nll = np.array([one.nll for one in losses])
    tokens = np.array([one.tokens for one in losses], dtype=np.float64)
    # Each prompt's part of the mean: their sum may be more than a float holds.
    parts = np.array([one.perplexity for one in losses]) / len(losses)
    some = list(drawn_weights(len(losses), draws, seed))
    empty = np.empty(0)
    return _Drawn(
        size=len(losses),
        token=float(np.exp(nll.sum() / tokens.sum())),
        prompt=float(parts.sum()),
        tokens=np.concatenate([empty, *(np.exp((w @ nll) / (w @ tokens)) for w in some)]),
        prompts=np.concatenate([empty, *(w @ parts for w in some)]),
    )


def _token_level(*of_and_through: _Drawn | None) -> Estimate:
    return _estimate(of_and_through, lambda one: (one.token, one.tokens))


def _prompt_level(*of_and_through: _Drawn | None) -> Estimate:
    return _estimate(of_and_through, lambda one: (one.prompt, one.prompts))


def _estimate(
    of_and_through: Sequence[_Drawn | None], figure: Callable[[_Drawn], tuple[float, Floats]]
) -> Estimate:
    """A figure with its interval; through another set's, where one is given."""
    sets = [one for one in of_and_through if one is not None]
    if len(sets) < len(of_and_through):
        return Estimate(value=None, reason=NotAnalyzed.NO_PROMPTS)
    value, drawn = figure(sets[0])
    for other in map(figure, sets[1:]):
        value, drawn = value / other[0], drawn / other[1]
    return _with(value, *percentiles(drawn, min(one.size for one in sets)))


def _with(value: float, interval: Interval | None, reason: Unscored | None) -> Estimate:
    low, high = interval or (None, None)
    return Estimate(value=value, low=low, high=high, reason=reason)


def _left_out(losses: Losses) -> dict[str, int]:
    reasons = Counter(
        NotAnalyzed.NO_SCORED_TOKEN if one is None else NotAnalyzed.NOT_FINITE
        for one in losses
        if one is None or not math.isfinite(one.perplexity)
    )
    return {str(reason): count for reason, count in sorted(reasons.items())}


def _window(options: PerplexityOptions, longest: int) -> tuple[int, int]:
    size = min(options.window or longest, longest)
    stride = options.stride or max(size // 2, 1)
    return size, min(stride, size - 1)


def _definition(
    causal: LoadedCausalModel,
    size: int,
    stride: int,
    draws: int,
    seed: int,
) -> dict[str, Any]:
    first = "not scored: nothing stands before it"
    if causal.begin is not None:
        first = f"scored given token {causal.begin}, which the tokenizer puts first"
    return {
        "model": causal.checkpoint.name,
        "revision": causal.checkpoint.revision,
        "dtype": str(causal.model.dtype).removeprefix("torch."),
        "first_token": first,
        "window": size,
        "stride": stride,
        "token_level": "exp of the mean negative log-likelihood over all scored tokens",
        "prompt_level": "mean over prompts of exp of each one's mean",
        "ratio": "the set's through the benchmark's",
        "interval": f"{KIND}, prompts for samples",
        "draws": draws,
        "seed": seed,
        **versions_of("torch", "transformers"),
    }
