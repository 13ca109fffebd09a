"""A map of prompts against reference sets, and the prompts that are farthest from all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echo_hf.analysis.embedding import load_encoder
from echo_hf.analysis.failures import shortened
from echo_hf.analysis.figures import Part
from echo_hf.analysis.lengths import quartiles
from echo_hf.analysis.nearest import Nearest, nearest
from echo_hf.analysis.options import EmbeddingOptions
from echo_hf.analysis.principal_plane import Plane, principal_plane
from echo_hf.analysis.prompt_set import PromptSet
from echo_hf.analysis.result import EmbeddingMap, NovelPrompt, Point
from echo_hf.errors import EngineError, MissingExtraError
from echo_hf.metrics.extras import said
from echo_hf.reasons import NotAnalyzed

MOST_POINTS = 2000  # of a set: a plot with more shows no more
MOST_NOVEL = 20
LONGEST_PROMPT = 280
Vectors = NDArray[np.float32]
MapPart = Part[EmbeddingMap]


def embedding_map(
    sets: Sequence[PromptSet], options: EmbeddingOptions | None, *, seed: int = 0
) -> MapPart:
    """Places prompts on a map.

    Args:
        sets: The prompt sets, the benchmark's own first.
        options: The embedding model; null for none.
        seed: Of the draw of points where a set has more than a plot can show.

    Returns:
        The map; or why there is none.
    """
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
        detail = str(error) if isinstance(error, EngineError) else said(error)
        return MapPart(reason=NotAnalyzed.MODEL_UNAVAILABLE, detail=detail)
    found = mapped([one for one in sets if one.prompts], vectors, seed=seed)
    definition = {**encoder.definition(), "cut": cut, **_definition(seed)}
    return MapPart(found=found, definition=definition)


def mapped(sets: Sequence[PromptSet], vectors: Sequence[Vectors], *, seed: int = 0) -> EmbeddingMap:
    """The map of prompts that are embedded already.

    Args:
        sets: The prompt sets, the benchmark's own first, each with prompts.
        vectors: For each set an array [prompt, dimension], rows of length 1.
        seed: Of the draw of points.

    Returns:
        The map. The plane is that of all prompts, drawn as points or not.
    """
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
