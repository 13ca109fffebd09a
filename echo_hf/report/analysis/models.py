"""Apply models to prompts: perplexity (figure 3), and a map by sentence embeddings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from echo_hf._infra.bootstrap import METHOD, Floats, compute_interval, draw_weights
from echo_hf._infra.registry import Requirements
from echo_hf.config.evaluation import EmbeddingOptions, PerplexityOptions
from echo_hf.engines.checkpoint import Checkpoint, find_checkpoint
from echo_hf.engines.transformers import is_out_of_memory
from echo_hf.errors import EngineError, MissingExtraError
from echo_hf.metrics.result import describe_error, get_versions
from echo_hf.report.analysis import result
from echo_hf.report.analysis.prompts import PromptSet, compute_quartiles, shorten_prompt
from echo_hf.report.analysis.result import AnalysisPart, IntervalFigure, NotAnalyzed

EXTRA = "analysis-models"
AUTO = "auto"
DEFAULT_WINDOW = 2048
FILLER = 0  # any token: it is masked, and the model is causal


def omit_for_error(error: Exception) -> AnalysisPart[Any]:
    """Return a part without figures whose model could not be loaded or run."""
    if isinstance(error, MissingExtraError):
        return AnalysisPart.omit(NotAnalyzed.MISSING_EXTRA, str(error))
    detail = str(error) if isinstance(error, EngineError) else describe_error(error)
    return AnalysisPart.omit(NotAnalyzed.MODEL_UNAVAILABLE, detail)


class TokenWindow(NamedTuple):
    text: int
    start: int
    end: int
    scored: int  # index of the first token that counts

    @property
    def size(self) -> int:
        return self.end - self.start


def windows(text: int, tokens: int, size: int, stride: int) -> Iterator[TokenWindow]:
    """Yield windows over a text, in which each token but the first counts exactly once."""
    scored, end = 1, min(size, tokens)
    while scored < end:
        yield TokenWindow(text, max(end - size, 0), end, scored)
        scored, end = end, min(end + stride, tokens)


def batch_windows(parts: Sequence[TokenWindow], max_tokens: int) -> Iterator[list[TokenWindow]]:
    """Group windows of similar sizes, the longest first, so that there is little padding."""
    batch: list[TokenWindow] = []
    for part in sorted(parts, key=lambda window: (-window.size, window.text, window.start)):
        if batch and (len(batch) + 1) * batch[0].size > max_tokens:
            yield batch
            batch = []
        batch.append(part)
    if batch:
        yield batch


class TokenLoss(NamedTuple):
    nll: float
    tokens: int

    @property
    def perplexity(self) -> float:
        """Return the exponential of the mean loss; infinite where it overflows."""
        try:
            return math.exp(self.nll / self.tokens)
        except OverflowError:
            return math.inf


class LoadedCausalModel(NamedTuple):
    model: Any
    tokenizer: Any
    checkpoint: Checkpoint
    begin: int | None

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenize each text, without special tokens."""
        if not texts:
            return []
        # Text that spells a special token is text. `verbose` would warn of texts that are longer
        # than the model's window, but windows are cut from them.
        encoded = self.tokenizer(
            list(texts), add_special_tokens=False, split_special_tokens=True, verbose=False
        )
        return [list(tokens) for tokens in encoded["input_ids"]]


def load_causal_model(options: PerplexityOptions) -> LoadedCausalModel:
    """Load a model without running code that comes with it."""
    needed = Requirements(extra=EXTRA, packages=("torch", "transformers", "accelerate"))
    needed.check_installed("perplexity")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    checkpoint = find_checkpoint(options.model, options.revision)
    options_ = {"revision": checkpoint.commit, "trust_remote_code": False}
    tokenizer = AutoTokenizer.from_pretrained(checkpoint.source, **options_)
    model = AutoModelForCausalLM.from_pretrained(
        checkpoint.source,
        dtype=options.dtype,
        device_map=AUTO if options.device == AUTO else {"": options.device},
        use_safetensors=True,
        **options_,
    ).eval()
    # Only a token that the tokenizer itself puts first, not one that it merely defines.
    begin = tokenizer.bos_token_id
    if begin is not None and tokenizer("a")["input_ids"][:1] != [begin]:
        begin = None
    return LoadedCausalModel(model, tokenizer, checkpoint, begin)


def measure_losses(
    causal: LoadedCausalModel, texts: Sequence[str], *, size: int, stride: int, batch_tokens: int
) -> list[TokenLoss | None]:
    """Score each token of each text once, given the tokens before it."""
    begin = [] if causal.begin is None else [causal.begin]
    rows = [[*begin, *tokens] for tokens in causal.tokenize(texts)]
    parts = list[TokenWindow]()
    for number, row in enumerate(rows):
        parts += windows(number, len(row), size, stride)
    nll, counts = [0.0] * len(rows), [0] * len(rows)
    for batch in batch_windows(parts, batch_tokens):
        for part, loss in zip(batch, _score(causal.model, rows, batch), strict=True):
            nll[part.text] += loss
            counts[part.text] += part.end - part.scored
    return [TokenLoss(*pair) if pair[1] else None for pair in zip(nll, counts, strict=True)]


def _score(model: Any, rows: Sequence[Sequence[int]], batch: Sequence[TokenWindow]) -> list[float]:
    """Score the windows; a batch that does not fit into memory is halved."""
    try:
        return _score_batch(model, rows, batch)
    except Exception as error:
        if not is_out_of_memory(error) or len(batch) == 1:
            raise
    # Not in the handler: there the error would keep its tensors alive.
    half = len(batch) // 2
    return _score(model, rows, batch[:half]) + _score(model, rows, batch[half:])


def _score_batch(
    model: Any, rows: Sequence[Sequence[int]], batch: Sequence[TokenWindow]
) -> list[float]:
    import torch

    longest = batch[0].size
    inputs = [list(rows[part.text][part.start : part.end]) for part in batch]
    padded = [row + [FILLER] * (longest - len(row)) for row in inputs]
    mask = [[1] * len(row) + [0] * (longest - len(row)) for row in inputs]
    ids, hidden = (torch.tensor(values, device=model.device) for values in (padded, mask))
    sums = []
    with torch.inference_mode():
        logits = model(input_ids=ids, attention_mask=hidden, use_cache=False).logits
        # In 32 bits for one text at a time: for the whole batch it would take twice the memory.
        for at, part in enumerate(batch):
            first, last = part.scored - part.start, part.end - part.start
            losses = torch.nn.functional.cross_entropy(
                logits[at][first - 1 : last - 1].float(),
                ids[at].to(logits.device)[first:last],
                reduction="none",
            )
            sums.append(float(losses.double().sum()))
    return sums


def measure_perplexity(
    sets: Sequence[PromptSet],
    options: PerplexityOptions | None,
    *,
    draws: int = 1000,
    seed: int = 0,
) -> AnalysisPart[tuple[result.SetPerplexity, ...]]:
    """Measure how natural prompts are to a language model."""
    if options is None:
        detail = "name a language model: analysis.perplexity"
        return AnalysisPart.omit(NotAnalyzed.NOT_CONFIGURED, detail)
    try:
        causal = load_causal_model(options)
        config = causal.model.config.get_text_config()
        longest = int(getattr(config, "max_position_embeddings", None) or DEFAULT_WINDOW)
        size = min(options.window or longest, longest)
        stride = min(options.stride or max(size // 2, 1), size - 1)
        sizes = {"size": size, "stride": stride, "batch_tokens": options.batch_tokens}
        losses = [measure_losses(causal, prompt_set.prompts, **sizes) for prompt_set in sets]
    except Exception as error:
        return omit_for_error(error)
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
        "interval": f"{METHOD}, prompts for samples",
        "draws": draws,
        "seed": seed,
        **get_versions("torch", "transformers"),
    }
    names = [prompt_set.name for prompt_set in sets]
    figures = compare_perplexities(names, losses, draws=draws, seed=seed)
    return AnalysisPart(found=figures, definition=definition)


def compare_perplexities(
    names: Sequence[str],
    losses: Sequence[Sequence[TokenLoss | None]],
    *,
    draws: int = 1000,
    seed: int = 0,
) -> tuple[result.SetPerplexity, ...]:
    figures: list[result.SetPerplexity] = []
    own: Floats | None = None
    own_prompts = 0
    for at, (name, set_losses) in enumerate(zip(names, losses, strict=True)):
        scored = [loss for loss in set_losses if loss]
        finite = [loss for loss in scored if math.isfinite(loss.perplexity)]
        reasons = {
            NotAnalyzed.NO_SCORED_TOKEN: len(set_losses) - len(scored),
            NotAnalyzed.NOT_FINITE: len(scored) - len(finite),
        }
        levels = _compute_levels(finite, draws, seed + at) if finite else None
        if not at:
            own, own_prompts = levels, len(finite)
        token_level, prompt_level = _estimate_levels(levels, len(finite))
        relative = None if levels is None or own is None else levels / own
        ratios = _estimate_levels(relative, min(own_prompts, len(finite)))
        figures.append(
            result.SetPerplexity(
                name=name,
                prompts=len(finite),
                tokens=sum(loss.tokens for loss in finite),
                left_out={str(reason): count for reason, count in reasons.items() if count},
                token_level=token_level,
                prompt_level=prompt_level,
                median=median(loss.perplexity for loss in finite) if finite else None,
                ratio=ratios[0] if at else None,
                prompt_ratio=ratios[1] if at else None,
            )
        )
    return tuple(figures)


def _compute_levels(losses: Sequence[TokenLoss], draws: int, seed: int) -> Floats:
    """Return the perplexity of a set by tokens and by prompts, then those of bootstrap draws."""
    nll, tokens = np.array(losses, np.float64).T
    # Divided first, since the sum of perplexities may overflow.
    parts = np.array([loss.perplexity for loss in losses]) / len(losses)
    own = np.array([[np.exp(nll.sum() / tokens.sum())], [parts.sum()]])
    resampled = (
        np.stack([np.exp((weights @ nll) / (weights @ tokens)), weights @ parts])
        for weights in draw_weights(len(losses), draws, seed)
    )
    return np.concatenate([own, *resampled], axis=1)


def _estimate_levels(levels: Floats | None, prompts: int) -> list[IntervalFigure]:
    if levels is None:
        return [IntervalFigure(value=None, reason=NotAnalyzed.NO_PROMPTS)] * 2
    estimates = []
    for row in levels:
        interval, reason = compute_interval(row[1:], prompts)
        low, high = interval or (None, None)
        estimates.append(IntervalFigure(value=float(row[0]), low=low, high=high, reason=reason))
    return estimates


ROWS_PER_BATCH = 1024  # each row is compared with all others in memory
MAX_POINTS = 2000  # per set; a plot with more looks the same
MAX_NOVEL = 20
MAX_PROMPT = 280
Vectors = NDArray[np.float32]


class NearestNeighbors(NamedTuple):
    distance: Floats
    place: NDArray[np.int64]


def find_nearest(rows: Any, others: Any) -> NearestNeighbors:
    """Find the nearest of the others for each row, dense or sparse, of vectors of length 1."""
    places, distances = [np.empty(0, np.int64)], [np.empty(0)]
    for start in range(0, rows.shape[0], ROWS_PER_BATCH):
        product = rows[start : start + ROWS_PER_BATCH] @ others.T
        similarity = product.toarray() if hasattr(product, "toarray") else product
        places.append(similarity.argmax(axis=1))
        distances.append(1.0 - similarity.max(axis=1).astype(np.float64).clip(-1.0, 1.0))
    return NearestNeighbors(np.concatenate(distances), np.concatenate(places))


def find_principal_plane(vectors: NDArray[np.floating]) -> tuple[Floats, tuple[float, float]]:
    """Return the points in the plane of the two largest variances, and the shares of those."""
    matrix = np.asarray(vectors, dtype=np.float64)
    centred = matrix - matrix.mean(axis=0) if len(matrix) else matrix
    values, directions = np.linalg.eigh(centred.T @ centred)
    axes = directions[:, ::-1][:, :2]
    largest = np.abs(axes).argmax(axis=0)
    axes = axes * np.where(axes[largest, range(axes.shape[1])] < 0, -1.0, 1.0)
    points = np.zeros((len(matrix), 2))
    points[:, : axes.shape[1]] = centred @ axes
    values = np.maximum(values, 0.0)
    # One dimension has only one variance.
    shares: list[float] = [*(values[::-1] / (values.sum() or 1.0)).tolist(), 0.0]
    return points, (shares[0], shares[1])


def build_embedding_map(
    sets: Sequence[PromptSet], options: EmbeddingOptions | None, *, seed: int = 0
) -> AnalysisPart[result.EmbeddingMap]:
    if options is None:
        detail = "name an embedding model: analysis.embedding"
        return AnalysisPart.omit(NotAnalyzed.NOT_CONFIGURED, detail)
    if not sets[0].prompts:
        return AnalysisPart.omit(NotAnalyzed.NO_PROMPTS)
    try:
        vectors, definition = embed_prompts(sets, options)
    except Exception as error:
        return omit_for_error(error)
    definition |= {
        "plane": "principal components of all prompts of all sets, centred",
        "nearest": "cosine distance to the nearest prompt of any reference",
        "most_points": MAX_POINTS,
        "seed": seed,
    }
    filled = [prompt_set for prompt_set in sets if prompt_set.prompts]
    return AnalysisPart(found=build_map(filled, vectors, seed=seed), definition=definition)


def embed_prompts(
    sets: Sequence[PromptSet], options: EmbeddingOptions
) -> tuple[list[Vectors], dict[str, Any]]:
    """Embed prompts, pooled as the model's files state, or else by the mean over tokens."""
    needed = Requirements(extra=EXTRA, packages=("torch", "transformers", "sentence_transformers"))
    needed.check_installed("sentence embeddings")
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
    vectors, cut = [], {prompt_set.name: 0 for prompt_set in sets}
    for prompt_set in (prompt_set for prompt_set in sets if prompt_set.prompts):
        embeddings = model.encode(
            list(prompt_set.prompts),
            batch_size=options.batch_size,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        vectors.append(embeddings.reshape(len(prompt_set.prompts), -1))
        tokens = model.tokenizer(list(prompt_set.prompts), verbose=False)["input_ids"]
        cut[prompt_set.name] = sum(len(row) > longest for row in tokens)
    pooling = [module.get_config_dict() for module in model if hasattr(module, "pooling_mode")]
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


def build_map(
    sets: Sequence[PromptSet], vectors: Sequence[Vectors], *, seed: int = 0
) -> result.EmbeddingMap:
    """Build the map of prompts from their embeddings; the benchmark's own set comes first."""
    places, explained = find_principal_plane(np.concatenate(vectors))
    own, *references = sets
    neighbors = find_nearest(vectors[0], np.concatenate(vectors[1:])) if references else None
    points, start = [], 0
    for number, set_ in enumerate(sets):
        indices = np.arange(len(set_.prompts))
        if len(indices) > MAX_POINTS:
            rng = np.random.default_rng(seed + number)
            indices = np.sort(rng.choice(len(indices), MAX_POINTS, replace=False))
        for at in indices.tolist():
            x, y = places[start + at].tolist()
            distance = float(neighbors.distance[at]) if neighbors and not number else None
            points.append(
                result.MapPoint(prompt_set=set_.name, id=set_.ids[at], x=x, y=y, nearest=distance)
            )
        start += len(set_.prompts)
    novel = []
    if neighbors:
        others = [(set_.name, prompt) for set_ in references for prompt in set_.prompts]
        for at in np.argsort(-neighbors.distance, kind="stable")[:MAX_NOVEL].tolist():
            name, prompt = others[neighbors.place[at]]
            novel.append(
                result.NovelPrompt(
                    id=own.ids[at],
                    prompt=shorten_prompt(own.prompts[at], MAX_PROMPT),
                    distance=neighbors.distance[at],
                    nearest_set=name,
                    nearest_prompt=shorten_prompt(prompt, MAX_PROMPT),
                )
            )
    return result.EmbeddingMap(
        points=tuple(points),
        explained=explained,
        nearest=compute_quartiles(neighbors.distance.tolist()) if neighbors else None,
        most_novel=tuple(novel),
        left_out={str(NotAnalyzed.NOT_SHOWN): start - len(points)} if start > len(points) else {},
    )
