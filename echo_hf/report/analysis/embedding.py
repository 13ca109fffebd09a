"""A map of prompts by sentence embeddings, and the prompts farthest from reference sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echo_hf.config.evaluation import EmbeddingOptions
from echo_hf.engines.checkpoint import Checkpoint, find_checkpoint
from echo_hf.errors import EngineError, MissingExtraError
from echo_hf.metrics.result import check_extra, error_line, versions_of
from echo_hf.reasons import NotAnalyzed
from echo_hf.report.analysis.failures import shortened
from echo_hf.report.analysis.prompts import PromptSet, quartiles
from echo_hf.report.analysis.result import AnalysisPart, EmbeddingMap, NovelPrompt, Point

EXTRA = "analysis-models"
PACKAGES = ("torch", "transformers", "sentence_transformers")


@dataclass(frozen=True)
class LoadedEncoder:
    model: Any
    checkpoint: Checkpoint
    batch_size: int

    def embed(self, prompts: Sequence[str]) -> NDArray[np.float32]:
        given: NDArray[np.float32] = self.model.encode(
            list(prompts),
            batch_size=self.batch_size,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return given.reshape(len(prompts), -1)

    def cut(self, prompts: Sequence[str]) -> int:
        """How many prompts are longer than the model is shown."""
        longest = self.model.max_seq_length
        tokens = self.model.tokenizer(list(prompts), verbose=False)["input_ids"] if prompts else []
        return sum(len(one) > longest for one in tokens)

    def definition(self) -> dict[str, Any]:
        """Model, pooling, and how much of a prompt it is shown."""
        pooling = [one.get_config_dict() for one in self.model if hasattr(one, "pooling_mode")]
        return {
            "model": self.checkpoint.name,
            "revision": self.checkpoint.revision,
            "pooling": pooling[0].get("pooling_mode") if pooling else None,
            "normalized": True,
            "longest": self.model.max_seq_length,
            **versions_of("sentence-transformers", "transformers", "torch"),
        }


def load_encoder(options: EmbeddingOptions) -> LoadedEncoder:
    """Loads a model with the pooling that its files state, the mean over tokens where none does."""
    check_extra("the map of prompts", EXTRA, PACKAGES)
    from sentence_transformers import SentenceTransformer

    checkpoint = find_checkpoint(options.model, options.revision)
    model = SentenceTransformer(
        checkpoint.source,
        revision=checkpoint.commit,
        device=options.device,
        trust_remote_code=False,
        model_kwargs={"use_safetensors": True},
    )
    model.max_seq_length = min(model.max_seq_length or options.longest, options.longest)
    return LoadedEncoder(model, checkpoint, options.batch_size)


AT_ONCE = 1024  # rows; as many similarities as others are in memory for each


@dataclass(frozen=True)
class Nearest:
    distance: NDArray[np.float64]
    place: NDArray[np.int64]


def nearest(rows: NDArray[np.floating], others: NDArray[np.floating]) -> Nearest:
    """Finds the nearest of others for each row, by comparing it with all of them."""
    places, distances = [np.empty(0, np.int64)], [np.empty(0)]
    for start in range(0, len(rows), AT_ONCE):
        alike = rows[start : start + AT_ONCE] @ others.T
        best = alike.argmax(axis=1)
        places.append(best)
        similarity = alike[np.arange(len(best)), best].astype(np.float64)
        distances.append(1.0 - similarity.clip(-1.0, 1.0))
    return Nearest(np.concatenate(distances), np.concatenate(places))


Floats = NDArray[np.float64]
DIMENSIONS = 2


@dataclass(frozen=True)
class Plane:
    points: Floats
    explained: tuple[float, float]


def principal_plane(vectors: NDArray[np.floating]) -> Plane:
    """Projects points onto the two directions of largest variance."""
    given = np.asarray(vectors, dtype=np.float64)
    centred = given - given.mean(axis=0) if len(given) else given
    values, directions = np.linalg.eigh(centred.T @ centred)
    axes = directions[:, ::-1][:, :DIMENSIONS]
    largest = np.abs(axes).argmax(axis=0)
    axes = axes * np.where(axes[largest, range(axes.shape[1])] < 0, -1.0, 1.0)
    points = np.zeros((len(given), DIMENSIONS))
    points[:, : axes.shape[1]] = centred @ axes
    first, second = (_share(values, at) for at in range(DIMENSIONS))
    return Plane(points, (first, second))


def _share(ascending: Floats, at: int) -> float:
    values = np.maximum(ascending[::-1], 0.0)
    total = float(values.sum())
    return float(values[at]) / total if total and at < len(values) else 0.0


MOST_POINTS = 2000  # of a set: a plot with more shows no more
MOST_NOVEL = 20
LONGEST_PROMPT = 280
Vectors = NDArray[np.float32]
MapPart = AnalysisPart[EmbeddingMap]


def embedding_map(
    sets: Sequence[PromptSet], options: EmbeddingOptions | None, *, seed: int = 0
) -> MapPart:
    if options is None:
        detail = "name an embedding model: analysis.embedding"
        return MapPart(reason=NotAnalyzed.NOT_CONFIGURED, detail=detail)
    if not sets or not sets[0].prompts:
        return MapPart(reason=NotAnalyzed.NO_PROMPTS, detail=NotAnalyzed.NO_PROMPTS.meaning)
    try:
        encoder = load_encoder(options)
        vectors = [encoder.embed(one.prompts) for one in sets if one.prompts]
        cut = {one.name: encoder.cut(one.prompts) for one in sets}
    except MissingExtraError as error:
        return MapPart(reason=NotAnalyzed.MISSING_EXTRA, detail=str(error))
    except Exception as error:  # whatever the driver, the memory or the files are short of
        detail = str(error) if isinstance(error, EngineError) else error_line(error)
        return MapPart(reason=NotAnalyzed.MODEL_UNAVAILABLE, detail=detail)
    found = mapped([one for one in sets if one.prompts], vectors, seed=seed)
    definition = {**encoder.definition(), "cut": cut, **_definition(seed)}
    return MapPart(found=found, definition=definition)


def mapped(sets: Sequence[PromptSet], vectors: Sequence[Vectors], *, seed: int = 0) -> EmbeddingMap:
    """The map of prompts that are embedded already."""
    plane = principal_plane(np.concatenate(vectors))
    near = nearest(vectors[0], np.concatenate(vectors[1:])) if len(vectors) > 1 else None
    drawn = [_drawn(len(one.prompts), seed + at) for at, one in enumerate(sets)]
    total = sum(len(one.prompts) for one in sets)
    shown = sum(map(len, drawn))
    return EmbeddingMap(
        points=tuple(_points(sets, drawn, plane, near)),
        explained=plane.explained,
        nearest=quartiles(near.distance.tolist()) if near else None,
        most_novel=tuple(_novel(sets, near)) if near else (),
        left_out={str(NotAnalyzed.NOT_SHOWN): total - shown} if total > shown else {},
    )


def _drawn(size: int, seed: int) -> list[int]:
    if size <= MOST_POINTS:
        return list(range(size))
    chosen = np.random.default_rng(seed).choice(size, MOST_POINTS, replace=False)
    return sorted(chosen.tolist())


def _points(
    sets: Sequence[PromptSet], drawn: Sequence[Sequence[int]], plane: Plane, near: Nearest | None
) -> list[Point]:
    points, start = [], 0
    for number, (one, places) in enumerate(zip(sets, drawn, strict=True)):
        of_own = near if number == 0 else None
        for at in places:
            x, y = (float(value) for value in plane.points[start + at])
            distance = float(of_own.distance[at]) if of_own else None
            points.append(Point(prompt_set=one.name, id=one.ids[at], x=x, y=y, nearest=distance))
        start += len(one.prompts)
    return points


def _novel(sets: Sequence[PromptSet], near: Nearest) -> list[NovelPrompt]:
    own, *references = sets
    others = [(one.name, prompt) for one in references for prompt in one.prompts]
    order = np.lexsort((np.arange(len(near.distance)), -near.distance))[:MOST_NOVEL]
    return [_novel_prompt(own, int(at), near, others) for at in order]


def _novel_prompt(
    own: PromptSet, at: int, near: Nearest, others: Sequence[tuple[str, str]]
) -> NovelPrompt:
    name, prompt = others[int(near.place[at])]
    return NovelPrompt(
        id=own.ids[at],
        prompt=shortened(own.prompts[at], LONGEST_PROMPT),
        distance=float(near.distance[at]),
        nearest_set=name,
        nearest_prompt=shortened(prompt, LONGEST_PROMPT),
    )


def _definition(seed: int) -> dict[str, Any]:
    return {
        "plane": "principal components of all prompts of all sets, centred",
        "nearest": "cosine distance to the nearest prompt of any reference",
        "most_points": MOST_POINTS,
        "seed": seed,
    }
