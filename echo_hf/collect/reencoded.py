"""Link pictures of different posts that are one picture, packed or scaled anew.

A copy is linked to the first picture that it is a copy of, never to a copy of a copy: a chain of
small steps would lead from a picture to an edited one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from echo_hf.collect.block_signature import (
    BLOCKS,
    CHANNELS,
    BlockSignature,
    Contrasts,
    Means,
    Size,
    block_signature,
    same_colours,
    same_details,
    same_shape,
)
from echo_hf.collect.signature_index import SignatureIndex
from echo_hf.load_rgb import load_rgb
from echo_hf.open_picture import BadPictureError

BATCH = 256
COMPARED_AT_ONCE = 4096

Unreadable = Callable[[str, BadPictureError], None]
Progress = Callable[[int, int], None]


def reencoded_copies(
    pictures: Mapping[str, Path],
    *,
    unreadable: Unreadable | None = None,
    progress: Progress | None = None,
    workers: int | None = None,
) -> dict[str, str]:
    """Finds the copies among pictures.

    The result depends on nothing but the pictures and their order: the first of those that are
    one picture stands for it. Memory is 3 kB a picture, and a few decoded ones.

    Args:
        pictures: The file of each picture by its sha256, the earliest first.
        unreadable: Told of each picture that cannot be loaded, which then is nobody's copy;
            without it, such a picture is an error.
        progress: Called with the numbers of pictures looked at and of all.
        workers: Threads that decode; null for one a core.

    Returns:
        For each copy the picture that it is a copy of; nothing for the others.

    Raises:
        BadPictureError: A picture cannot be loaded, and nobody is told.
    """
    names, signatures = _signatures(pictures, unreadable, progress, workers or os.cpu_count() or 1)
    if not names:
        return {}
    files = [pictures[name] for name in names]
    return {names[copy]: names[first] for copy, first in _links(signatures, files).items()}


@dataclass(frozen=True)
class _Signatures:
    sizes: Sequence[Size]
    means: Means
    contrasts: Contrasts


def _signatures(
    pictures: Mapping[str, Path],
    unreadable: Unreadable | None,
    progress: Progress | None,
    workers: int,
) -> tuple[list[str], _Signatures]:
    means = np.empty((len(pictures), BLOCKS, BLOCKS, CHANNELS), np.float16)
    contrasts = np.empty(means.shape, np.uint8)
    names: list[str] = []
    sizes: list[Size] = []
    for done, (name, found) in enumerate(_read(pictures, workers), 1):
        if isinstance(found, BlockSignature):
            means[len(names)], contrasts[len(names)] = found.means, found.contrasts
            names.append(name)
            sizes.append(found.size)
        elif unreadable is None:
            raise found
        else:
            unreadable(name, found)
        if progress is not None:
            progress(done, len(pictures))
    return names, _Signatures(sizes, means[: len(names)], contrasts[: len(names)])


def _read(
    pictures: Mapping[str, Path], workers: int
) -> Iterator[tuple[str, BlockSignature | BadPictureError]]:
    waiting = iter(pictures.items())
    with ThreadPoolExecutor(workers) as pool:
        while batch := list(islice(waiting, BATCH)):
            found = pool.map(_signature, [path for _, path in batch])
            yield from zip((name for name, _ in batch), found, strict=True)


def _signature(path: Path) -> BlockSignature | BadPictureError:
    try:
        return block_signature(path)
    except BadPictureError as error:
        return error


def _links(signatures: _Signatures, files: Sequence[Path]) -> dict[int, int]:
    index = SignatureIndex(signatures.means, signatures.contrasts)
    first_of: dict[int, int] = {}
    for first in range(len(files)):
        if first in first_of:
            continue
        free = [one for one in index.near(first) if one > first and one not in first_of]
        likely = _with_same_colours(signatures, first, free)
        first_of |= dict.fromkeys(_with_same_details(files, first, likely), first)
    return first_of


def _with_same_colours(signatures: _Signatures, first: int, others: Sequence[int]) -> list[int]:
    size = signatures.sizes[first]
    shaped = [one for one in others if same_shape(size, signatures.sizes[one])]
    means, contrasts = signatures.means, signatures.contrasts
    likely: list[int] = []
    for start in range(0, len(shaped), COMPARED_AT_ONCE):
        some = np.array(shaped[start : start + COMPARED_AT_ONCE])
        fine = same_colours(means[first], contrasts[first], means[some], contrasts[some])
        likely += map(int, some[fine])
    return likely


def _with_same_details(files: Sequence[Path], first: int, others: Sequence[int]) -> list[int]:
    if not others:
        return []
    original = load_rgb(files[first])
    return [one for one in others if same_details(original, load_rgb(files[one]))]
