"""How natural prompts are: their perplexity under a language model (figure 3, bottom right)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from echo_hf._infra.bootstrap import KIND, Interval, drawn_weights, percentiles
from echo_hf.config.evaluation import PerplexityOptions
from echo_hf.engines.checkpoint import Checkpoint, find_checkpoint
from echo_hf.engines.transformers_model import is_out_of_memory
from echo_hf.errors import EngineError, MissingExtraError
from echo_hf.metrics.result import check_extra, error_line, versions_of
from echo_hf.reasons import NotAnalyzed, Unscored
from echo_hf.report.analysis.prompts import PromptSet
from echo_hf.report.analysis.result import AnalysisPart, Estimate, SetPerplexity


@dataclass(frozen=True, slots=True)
class TokenWindow:
    text: int
    start: int
    end: int
    scored: int

    @property
    def size(self) -> int:
        """Tokens that the model sees."""
        return self.end - self.start


def windows(text: int, tokens: int, size: int, stride: int) -> Iterator[TokenWindow]:
    """Windows over one text, in which each token but the first counts exactly once."""
    scored, end = 1, min(size, tokens)
    while scored < end:
        yield TokenWindow(text, max(end - size, 0), end, scored)
        scored, end = end, min(end + stride, tokens)


def batches(parts: Sequence[TokenWindow], most_tokens: int) -> Iterator[list[TokenWindow]]:
    """Windows of like sizes together, the longest first, so that little is padding."""
    batch: list[TokenWindow] = []
    for part in sorted(parts, key=lambda one: (-one.size, one.text, one.start)):
        if batch and (len(batch) + 1) * batch[0].size > most_tokens:
            yield batch
            batch = []
        batch.append(part)
    if batch:
        yield batch


FILLER = 0  # any token: the mask hides it, and nothing looks ahead


class CausalModel(Protocol):
    """What is asked: tokens of texts, and logits of batches."""

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
    """Scores each token of each text once, given what stands before it."""
    begin = [] if causal.begin is None else [causal.begin]
    rows = [[*begin, *tokens] for tokens in causal.tokens(texts)]
    parts = [part for at, row in enumerate(rows) for part in windows(at, len(row), size, stride)]
    nll, counts = [0.0] * len(rows), [0] * len(rows)
    for part, loss in _losses(causal.model, rows, parts, batch_tokens):
        nll[part.text] += loss
        counts[part.text] += part.end - part.scored
    return [Loss(*one) if one[1] else None for one in zip(nll, counts, strict=True)]


def _losses(
    model: Any, rows: Sequence[Sequence[int]], parts: Sequence[TokenWindow], most: int
) -> Iterator[tuple[TokenWindow, float]]:
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


def _of_batch(
    model: Any, rows: Sequence[Sequence[int]], batch: Sequence[TokenWindow]
) -> list[float]:
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


def _of_window(torch: Any, logits: Any, given: Any, part: TokenWindow) -> float:
    first, last = part.scored - part.start, part.end - part.start
    losses = torch.nn.functional.cross_entropy(
        logits[first - 1 : last - 1].float(), given[first:last], reduction="none"
    )
    return float(losses.double().sum())


EXTRA = "analysis-models"
PACKAGES = ("torch", "transformers", "accelerate")
AUTO = "auto"
USUAL_WINDOW = 2048


@dataclass(frozen=True)
class LoadedCausalModel:
    model: Any
    tokenizer: Any
    checkpoint: Checkpoint
    begin: int | None

    @property
    def longest(self) -> int:
        """Most tokens that it was trained to see at once."""
        said = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        return int(said) if said else USUAL_WINDOW

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokens of each text, without any special one."""
        if not texts:
            return []
        # What people write is text also where it spells a special token; and `verbose` would say
        # that a text is longer than the model's window, of which windows are made.
        given = self.tokenizer(
            list(texts), add_special_tokens=False, split_special_tokens=True, verbose=False
        )
        return [list(tokens) for tokens in given["input_ids"]]


def load_causal_model(options: PerplexityOptions) -> LoadedCausalModel:
    """Loads a model; code that comes with it is never run."""
    check_extra("perplexity", EXTRA, PACKAGES)
    from transformers import AutoModelForCausalLM, AutoTokenizer

    checkpoint = find_checkpoint(options.model, options.revision)
    where = {"revision": checkpoint.commit, "trust_remote_code": False}
    tokenizer = AutoTokenizer.from_pretrained(checkpoint.source, **where)
    model = AutoModelForCausalLM.from_pretrained(
        checkpoint.source,
        dtype=options.dtype,
        device_map=AUTO if options.device == AUTO else {"": options.device},
        use_safetensors=True,
        **where,
    ).eval()
    return LoadedCausalModel(model, tokenizer, checkpoint, _begin(tokenizer))


def _begin(tokenizer: Any) -> int | None:
    """The token that the tokenizer itself puts first; one that it merely knows of is not put."""
    begin = tokenizer.bos_token_id
    if begin is None:
        return None
    with_special = tokenizer("a")["input_ids"]
    return int(begin) if with_special[:1] == [begin] else None


Floats = NDArray[np.float64]
Losses = Sequence[Loss | None]
Perplexities = AnalysisPart[tuple[SetPerplexity, ...]]


@dataclass(frozen=True)
class _Drawn:
    """The figures of a set, and what they would be of other draws of its prompts."""

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
        detail = str(error) if isinstance(error, EngineError) else error_line(error)
        return Perplexities(reason=NotAnalyzed.MODEL_UNAVAILABLE, detail=detail)
    names = [one.name for one in sets]
    definition = _definition(causal, size, stride, draws, seed)
    found = perplexities(names, losses, draws=draws, seed=seed)
    return Perplexities(found=found, definition=definition)


def perplexities(
    names: Sequence[str], losses: Sequence[Losses], *, draws: int = 1000, seed: int = 0
) -> tuple[SetPerplexity, ...]:
    """The figures of prompt sets from the losses of their prompts."""
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
