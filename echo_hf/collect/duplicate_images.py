"""Find images that are the same one: in one post, or re-encoded in different posts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from echo_hf.images.decode import BadImageError
from echo_hf.images.loader import load_rgb
from echo_hf.images.similarity import (
    BLOCKS,
    CHANNELS,
    BlockSignature,
    Contrasts,
    Means,
    SignatureIndex,
    Size,
    block_signature,
    same_colors,
    same_details,
    same_shape,
)

BATCH = 256
COMPARED_AT_ONCE = 4096

Unreadable = Callable[[str, BadImageError], None]
Progress = Callable[[int, int], None]


def reencoded_copies(
    images: Mapping[str, Path],
    *,
    unreadable: Unreadable | None = None,
    progress: Progress | None = None,
    workers: int | None = None,
) -> dict[str, str]:
    names, signatures = _signatures(images, unreadable, progress, workers or os.cpu_count() or 1)
    if not names:
        return {}
    files = [images[name] for name in names]
    return {names[copy]: names[first] for copy, first in _links(signatures, files).items()}


@dataclass(frozen=True)
class _Signatures:
    sizes: Sequence[Size]
    means: Means
    contrasts: Contrasts


def _signatures(
    images: Mapping[str, Path],
    unreadable: Unreadable | None,
    progress: Progress | None,
    workers: int,
) -> tuple[list[str], _Signatures]:
    means = np.empty((len(images), BLOCKS, BLOCKS, CHANNELS), np.float16)
    contrasts = np.empty(means.shape, np.uint8)
    names: list[str] = []
    sizes: list[Size] = []
    for done, (name, found) in enumerate(_read(images, workers), 1):
        if isinstance(found, BlockSignature):
            means[len(names)], contrasts[len(names)] = found.means, found.contrasts
            names.append(name)
            sizes.append(found.size)
        elif unreadable is None:
            raise found
        else:
            unreadable(name, found)
        if progress is not None:
            progress(done, len(images))
    return names, _Signatures(sizes, means[: len(names)], contrasts[: len(names)])


def _read(
    images: Mapping[str, Path], workers: int
) -> Iterator[tuple[str, BlockSignature | BadImageError]]:
    waiting = iter(images.items())
    with ThreadPoolExecutor(workers) as pool:
        while batch := list(islice(waiting, BATCH)):
            found = pool.map(_signature, [path for _, path in batch])
            yield from zip((name for name, _ in batch), found, strict=True)


def _signature(path: Path) -> BlockSignature | BadImageError:
    try:
        return block_signature(path)
    except BadImageError as error:
        return error


def _links(signatures: _Signatures, files: Sequence[Path]) -> dict[int, int]:
    index = SignatureIndex(signatures.means, signatures.contrasts)
    first_of: dict[int, int] = {}
    for first in range(len(files)):
        if first in first_of:
            continue
        free = [one for one in index.near(first) if one > first and one not in first_of]
        likely = _with_same_colors(signatures, first, free)
        first_of |= dict.fromkeys(_with_same_details(files, first, likely), first)
    return first_of


def _with_same_colors(signatures: _Signatures, first: int, others: Sequence[int]) -> list[int]:
    size = signatures.sizes[first]
    shaped = [one for one in others if same_shape(size, signatures.sizes[one])]
    means, contrasts = signatures.means, signatures.contrasts
    likely: list[int] = []
    for start in range(0, len(shaped), COMPARED_AT_ONCE):
        some = np.array(shaped[start : start + COMPARED_AT_ONCE])
        fine = same_colors(means[first], contrasts[first], means[some], contrasts[some])
        likely += map(int, some[fine])
    return likely


def _with_same_details(files: Sequence[Path], first: int, others: Sequence[int]) -> list[int]:
    if not others:
        return []
    original = load_rgb(files[first])
    return [one for one in others if same_details(original, load_rgb(files[one]))]


Entry = Mapping[str, Any]


class _Name(NamedTuple):
    url: str | None
    sha256: str | None


def merge_images(rows: Sequence[Sequence[Entry]]) -> list[dict[str, Any]]:
    fullest = min(rows, key=_fewest, default=[])
    every = [*fullest, *sorted((one for row in rows for one in row), key=_spelt)]
    named = [one for one in every if one["url"] is not None or one["sha256"] is not None]
    alt_texts = _alt_texts(named)
    images = [
        {"sha256": name.sha256, "url": name.url, "alt_text": alt_texts[name]}
        for name in _whole(_name(one) for one in named)
    ]
    # An image that could not be read may still be described.
    bare = [one["alt_text"] for one in every if _name(one) == (None, None)]
    described = dict.fromkeys(text for text in bare if text is not None)
    # One that only another row has by name is not lost.
    room = len(fullest) - len(images) - len(described)
    lost = room if None in bare else 0
    unnamed = [{"sha256": None, "url": None, "alt_text": text} for text in described]
    return images + unnamed + [{"sha256": None, "url": None, "alt_text": None}] * lost


def distinct_images(images: Sequence[Entry]) -> list[dict[str, Any]]:
    """Joins the images of one row: only equal bytes are one image."""
    found: dict[object, dict[str, Any]] = {}
    for number, one in enumerate(images):
        key = one["sha256"] or (one["url"] and ("url", one["url"])) or number
        found[key] = _both(found[key], one) if key in found else dict(one)
    return list(found.values())


def _both(first: Entry, second: Entry) -> dict[str, Any]:
    texts = [one["alt_text"] for one in (first, second) if one["alt_text"]]
    return {
        **first,
        "sha256": first["sha256"] or second["sha256"],
        "url": first["url"] or second["url"],
        "alt_text": "\n".join(dict.fromkeys(texts)) or None,
    }


def _whole(given: Iterable[_Name]) -> list[_Name]:
    names = list(dict.fromkeys(given))
    whole: dict[_Name, list[_Name]] = {}
    for name in names:
        if None not in name:
            whole.setdefault(_Name(name.url, None), []).append(name)
            whole.setdefault(_Name(None, name.sha256), []).append(name)
    # In the place of half a name stand the whole ones that it is half of.
    return list(dict.fromkeys(full for name in names for full in whole.get(name, [name])))


def _alt_texts(named: Sequence[Entry]) -> dict[_Name, str | None]:
    group_of = _groups(named)
    longest: dict[_Name, str | None] = {}
    for one in named:
        group, text = group_of[_name(one)], one["alt_text"]
        longest[group] = max(longest.get(group), text, key=_by_length)
    return {name: longest[group] for name, group in group_of.items()}


def _groups(named: Sequence[Entry]) -> dict[_Name, _Name]:
    """For each name the one that stands for all that share, step by step, an address or digest."""
    names = dict.fromkeys(_name(one) for one in named)
    linked: dict[tuple[int, str], list[_Name]] = {}
    for name in names:
        for kind, value in enumerate(name):
            if value is not None:
                linked.setdefault((kind, value), []).append(name)
    found: dict[_Name, _Name] = {}
    for start in names:
        waiting = [start]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found[name] = start
                for kind, value in enumerate(name):
                    waiting.extend(linked.pop((kind, value), []) if value is not None else [])
    return found


def _name(entry: Entry) -> _Name:
    return _Name(entry["url"], entry["sha256"])


def _by_length(text: str | None) -> tuple[bool, int, str]:
    return text is not None, len(text or ""), text or ""


def _fewest(images: Sequence[Entry]) -> tuple[int, list[tuple[tuple[bool, str], ...]]]:
    return -len(images), [_spelt(one) for one in images]


def _spelt(entry: Entry) -> tuple[tuple[bool, str], ...]:
    values = (entry[name] for name in ("sha256", "url", "alt_text"))
    return tuple((value is not None, value or "") for value in values)
