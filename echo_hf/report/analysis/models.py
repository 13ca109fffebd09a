"""What models say of prompts: perplexity (figure 3), and a map by sentence embeddings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echo_hf._infra.bootstrap import KIND, drawn_weights, percentiles
from echo_hf.config.evaluation import EmbeddingOptions, PerplexityOptions
from echo_hf.engines.checkpoint import Checkpoint, find_checkpoint
from echo_hf.engines.transformers import is_out_of_memory
from echo_hf.errors import EngineError, MissingExtraError
from echo_hf.metrics.result import check_extra, describe_error, get_versions
from echo_hf.reasons import NotAnalyzed
from echo_hf.report.analysis import result
from echo_hf.report.analysis.prompts import PromptSet, quartiles, shortened
from echo_hf.report.analysis.result import AnalysisPart, Estimate

EXTRA = "analysis-models"
AUTO = "auto"
USUAL_WINDOW = 2048
FILLER = 0  # any token: the mask hides it, and nothing looks ahead
Floats = NDArray[np.float64]


def without_model(error: Exception) -> AnalysisPart[Any]:
    """A part whose model cannot be used: of whatever the driver, memory or files are short."""
    if isinstance(error, MissingExtraError):
        return AnalysisPart.without(NotAnalyzed.MISSING_EXTRA, str(error))
    detail = str(error) if isinstance(error, EngineError) else describe_error(error)
    return AnalysisPart.without(NotAnalyzed.MODEL_UNAVAILABLE, detail)


class TokenWindow(NamedTuple):
    text: int
    start: int
    end: int
    scored: int  # the first token that counts

    @property
    def size(self) -> int:
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


class Loss(NamedTuple):
    nll: float
    tokens: int

    @property
    def perplexity(self) -> float:
        """The exponential of the mean over tokens; infinite where no float holds it."""
        try:
            return math.exp(self.nll / self.tokens)
        except OverflowError:
            return math.inf


class LoadedCausalModel(NamedTuple):
    model: Any
    tokenizer: Any
    checkpoint: Checkpoint
    begin: int | None

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
    check_extra("perplexity", EXTRA, ("torch", "transformers", "accelerate"))
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
    # The token that the tokenizer itself puts first; one that it merely knows of is not put.
    begin = tokenizer.bos_token_id
    if begin is not None and tokenizer("a")["input_ids"][:1] != [begin]:
        begin = None
    return LoadedCausalModel(model, tokenizer, checkpoint, begin)


def token_losses(
    causal: LoadedCausalModel, texts: Sequence[str], *, size: int, stride: int, batch_tokens: int
) -> list[Loss | None]:
    """Scores each token of each text once, given what stands before it."""
    begin = [] if causal.begin is None else [causal.begin]
    rows = [[*begin, *tokens] for tokens in causal.tokens(texts)]
    parts = [part for at, row in enumerate(rows) for part in windows(at, len(row), size, stride)]
    nll, counts = [0.0] * len(rows), [0] * len(rows)
    for batch in batches(parts, batch_tokens):
        for part, loss in zip(batch, _losses(causal.model, rows, batch), strict=True):
            nll[part.text] += loss
            counts[part.text] += part.end - part.scored
    return [Loss(*one) if one[1] else None for one in zip(nll, counts, strict=True)]


def _losses(model: Any, rows: Sequence[Sequence[int]], batch: Sequence[TokenWindow]) -> list[float]:
    """The loss of each window; a batch that does not fit into memory is halved."""
    try:
        return _of_batch(model, rows, batch)
    except Exception as error:
        if not is_out_of_memory(error) or len(batch) == 1:
            raise
    # Outside the handler, where the error would keep its tensors alive.
    half = len(batch) // 2
    return _losses(model, rows, batch[:half]) + _losses(model, rows, batch[half:])


def _of_batch(
    model: Any, rows: Sequence[Sequence[int]], batch: Sequence[TokenWindow]
) -> list[float]:
    import torch

    longest = batch[0].size
    seen = [list(rows[part.text][part.start : part.end]) for part in batch]
    padded = [row + [FILLER] * (longest - len(row)) for row in seen]
    mask = [[1] * len(row) + [0] * (longest - len(row)) for row in seen]
    given, hidden = (torch.tensor(one, device=model.device) for one in (padded, mask))
    found = []
    with torch.inference_mode():
        logits = model(input_ids=given, attention_mask=hidden, use_cache=False).logits
        # One text at a time in 32 bits: all of them would take twice the memory of the logits.
        for at, part in enumerate(batch):
            first, last = part.scored - part.start, part.end - part.start
            losses = torch.nn.functional.cross_entropy(
                logits[at][first - 1 : last - 1].float(),
                given[at].to(logits.device)[first:last],
                reduction="none",
            )
            found.append(float(losses.double().sum()))
    return found


def perplexity(
    sets: Sequence[PromptSet],
    options: PerplexityOptions | None,
    *,
    draws: int = 1000,
    seed: int = 0,
) -> AnalysisPart[tuple[result.SetPerplexity, ...]]:
    """How natural prompts are under a language model."""
    if options is None:
        detail = "name a language model: analysis.perplexity"
        return AnalysisPart.without(NotAnalyzed.NOT_CONFIGURED, detail)
    try:
        causal = load_causal_model(options)
        config = causal.model.config.get_text_config()
        longest = int(getattr(config, "max_position_embeddings", None) or USUAL_WINDOW)
        size = min(options.window or longest, longest)
        stride = min(options.stride or max(size // 2, 1), size - 1)
        given = {"size": size, "stride": stride, "batch_tokens": options.batch_tokens}
        losses = [token_losses(causal, one.prompts, **given) for one in sets]
    except Exception as error:
        return without_model(error)
    first = "not scored: nothing stands before it"
    if causal.begin is not None:
        first = f"scored given token {causal.begin}, which the tokenizer puts first"
    definition = {
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
        **get_versions("torch", "transformers"),
    }
    names = [one.name for one in sets]
    found = perplexities(names, losses, draws=draws, seed=seed)
    return AnalysisPart(found=found, definition=definition)


def perplexities(
    names: Sequence[str],
    losses: Sequence[Sequence[Loss | None]],
    *,
    draws: int = 1000,
    seed: int = 0,
) -> tuple[result.SetPerplexity, ...]:
    found: list[result.SetPerplexity] = []
    own: Floats | None = None
    fewest = 0
    for at, (name, every) in enumerate(zip(names, losses, strict=True)):
        scored = [one for one in every if one]
        finite = [one for one in scored if math.isfinite(one.perplexity)]
        reasons = {
            NotAnalyzed.NO_SCORED_TOKEN: len(every) - len(scored),
            NotAnalyzed.NOT_FINITE: len(scored) - len(finite),
        }
        levels = _levels(finite, draws, seed + at) if finite else None
        if not at:
            own, fewest = levels, len(finite)
        token_level, prompt_level = _estimates(levels, len(finite))
        through = None if levels is None or own is None else levels / own
        ratios = _estimates(through, min(fewest, len(finite)))
        found.append(
            result.SetPerplexity(
                name=name,
                prompts=len(finite),
                tokens=sum(one.tokens for one in finite),
                left_out={str(reason): count for reason, count in reasons.items() if count},
                token_level=token_level,
                prompt_level=prompt_level,
                median=median(one.perplexity for one in finite) if finite else None,
                ratio=ratios[0] if at else None,
                prompt_ratio=ratios[1] if at else None,
            )
        )
    return tuple(found)


def _levels(losses: Sequence[Loss], draws: int, seed: int) -> Floats:
    """Two figures of a set, over all tokens and over prompts, before those of drawn prompts."""
    nll, tokens = np.array(losses, np.float64).T
    # Each prompt's part of the mean: their sum may be more than a float holds.
    parts = np.array([one.perplexity for one in losses]) / len(losses)
    own = np.array([[np.exp(nll.sum() / tokens.sum())], [parts.sum()]])
    drawn = (
        np.stack([np.exp((weights @ nll) / (weights @ tokens)), weights @ parts])
        for weights in drawn_weights(len(losses), draws, seed)
    )
    return np.concatenate([own, *drawn], axis=1)


def _estimates(levels: Floats | None, prompts: int) -> list[Estimate]:
    if levels is None:
        return [Estimate(value=None, reason=NotAnalyzed.NO_PROMPTS)] * 2
    found = []
    for row in levels:
        interval, reason = percentiles(row[1:], prompts)
        low, high = interval or (None, None)
        found.append(Estimate(value=float(row[0]), low=low, high=high, reason=reason))
    return found


AT_ONCE = 1024  # rows; as many similarities as others are in memory for each
MOST_POINTS = 2000  # of a set: a plot with more shows no more
MOST_NOVEL = 20
LONGEST_PROMPT = 280
Vectors = NDArray[np.float32]


class Nearest(NamedTuple):
    distance: Floats
    place: NDArray[np.int64]


def nearest(rows: Any, others: Any) -> Nearest:
    """Finds the nearest of others for each row of length 1, dense or sparse, among all of them."""
    places, distances = [np.empty(0, np.int64)], [np.empty(0)]
    for start in range(0, rows.shape[0], AT_ONCE):
        product = rows[start : start + AT_ONCE] @ others.T
        alike = product.toarray() if hasattr(product, "toarray") else product
        places.append(alike.argmax(axis=1))
        distances.append(1.0 - alike.max(axis=1).astype(np.float64).clip(-1.0, 1.0))
    return Nearest(np.concatenate(distances), np.concatenate(places))


def principal_plane(vectors: NDArray[np.floating]) -> tuple[Floats, tuple[float, float]]:
    """Points in the plane of the two directions of largest variance, and the shares of those."""
    given = np.asarray(vectors, dtype=np.float64)
    centred = given - given.mean(axis=0) if len(given) else given
    values, directions = np.linalg.eigh(centred.T @ centred)
    axes = directions[:, ::-1][:, :2]
    largest = np.abs(axes).argmax(axis=0)
    axes = axes * np.where(axes[largest, range(axes.shape[1])] < 0, -1.0, 1.0)
    points = np.zeros((len(given), 2))
    points[:, : axes.shape[1]] = centred @ axes
    values = np.maximum(values, 0.0)
    # The largest variances, of which a single dimension has but one.
    shares: list[float] = [*(values[::-1] / (values.sum() or 1.0)).tolist(), 0.0]
    return points, (shares[0], shares[1])


def embedding_map(
    sets: Sequence[PromptSet], options: EmbeddingOptions | None, *, seed: int = 0
) -> AnalysisPart[result.EmbeddingMap]:
    if options is None:
        detail = "name an embedding model: analysis.embedding"
        return AnalysisPart.without(NotAnalyzed.NOT_CONFIGURED, detail)
    if not sets[0].prompts:
        return AnalysisPart.without(NotAnalyzed.NO_PROMPTS)
    try:
        vectors, definition = embedded(sets, options)
    except Exception as error:
        return without_model(error)
    definition |= {
        "plane": "principal components of all prompts of all sets, centred",
        "nearest": "cosine distance to the nearest prompt of any reference",
        "most_points": MOST_POINTS,
        "seed": seed,
    }
    some = [one for one in sets if one.prompts]
    return AnalysisPart(found=mapped(some, vectors, seed=seed), definition=definition)


def embedded(
    sets: Sequence[PromptSet], options: EmbeddingOptions
) -> tuple[list[Vectors], dict[str, Any]]:
    """By a model with the pooling that its files state, the mean over tokens where none does."""
    check_extra("sentence embeddings", EXTRA, ("torch", "transformers", "sentence_transformers"))
    from sentence_transformers import SentenceTransformer

    checkpoint = find_checkpoint(options.model, options.revision)
    model = SentenceTransformer(
        checkpoint.source,
        revision=checkpoint.commit,
        device=options.device,
        trust_remote_code=False,
        model_kwargs={"use_safetensors": True},
    )
    longest = min(model.max_seq_length or options.longest, options.longest)
    model.max_seq_length = longest
    vectors, cut = [], {one.name: 0 for one in sets}
    for one in (one for one in sets if one.prompts):
        given = model.encode(
            list(one.prompts),
            batch_size=options.batch_size,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        vectors.append(given.reshape(len(one.prompts), -1))
        tokens = model.tokenizer(list(one.prompts), verbose=False)["input_ids"]
        cut[one.name] = sum(len(row) > longest for row in tokens)
    pooling = [one.get_config_dict() for one in model if hasattr(one, "pooling_mode")]
    definition = {
        "model": checkpoint.name,
        "revision": checkpoint.revision,
        "pooling": pooling[0].get("pooling_mode") if pooling else None,
        "normalized": True,
        "longest": longest,
        **get_versions("sentence-transformers", "transformers", "torch"),
        "cut": cut,
    }
    return vectors, definition


def mapped(
    sets: Sequence[PromptSet], vectors: Sequence[Vectors], *, seed: int = 0
) -> result.EmbeddingMap:
    """The map of prompts that are embedded already, the benchmark's own first."""
    places, explained = principal_plane(np.concatenate(vectors))
    own, *references = sets
    near = nearest(vectors[0], np.concatenate(vectors[1:])) if references else None
    points, start = [], 0
    for number, one in enumerate(sets):
        shown = np.arange(len(one.prompts))
        if len(shown) > MOST_POINTS:
            rng = np.random.default_rng(seed + number)
            shown = np.sort(rng.choice(len(shown), MOST_POINTS, replace=False))
        for at in shown.tolist():
            x, y = places[start + at].tolist()
            distance = float(near.distance[at]) if near and not number else None
            points.append(
                result.Point(prompt_set=one.name, id=one.ids[at], x=x, y=y, nearest=distance)
            )
        start += len(one.prompts)
    novel = []
    if near:
        others = [(one.name, prompt) for one in references for prompt in one.prompts]
        for at in np.argsort(-near.distance, kind="stable")[:MOST_NOVEL].tolist():
            name, prompt = others[near.place[at]]
            novel.append(
                result.NovelPrompt(
                    id=own.ids[at],
                    prompt=shortened(own.prompts[at], LONGEST_PROMPT),
                    distance=near.distance[at],
                    nearest_set=name,
                    nearest_prompt=shortened(prompt, LONGEST_PROMPT),
                )
            )
    return result.EmbeddingMap(
        points=tuple(points),
        explained=explained,
        nearest=quartiles(near.distance.tolist()) if near else None,
        most_novel=tuple(novel),
        left_out={str(NotAnalyzed.NOT_SHOWN): start - len(points)} if start > len(points) else {},
    )
