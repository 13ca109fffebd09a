"""Find images that are the same one: in one post, or re-encoded in different posts."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
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
    SignatureIndex,
    Size,
    block_signature,
    same_colors,
    same_details,
    same_shape,
)

BATCH = 256
COMPARED_AT_ONCE = 4096


def reencoded_copies(
    images: Mapping[str, Path],
    *,
    unreadable: Callable[[str, BadImageError], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
    workers: int | None = None,
) -> dict[str, str]:
    """For each copy of another image that one; the first of equal ones is the original."""
    means = np.empty((len(images), BLOCKS, BLOCKS, CHANNELS), np.float16)
    contrasts = np.empty(means.shape, np.uint8)
    names: list[str] = []
    sizes: list[Size] = []
    waiting, done = iter(images.items()), 0
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        while batch := list(islice(waiting, BATCH)):
            every = pool.map(_signature, [path for _, path in batch])
            for (name, _), found in zip(batch, every, strict=True):
                done += 1
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
    if not names:
        return {}
    means, contrasts = means[: len(names)], contrasts[: len(names)]
    index = SignatureIndex(means, contrasts)
    first_of: dict[int, int] = {}
    for first in range(len(names)):
        if first in first_of:
            continue
        free = (one for one in index.near(first) if one > first and one not in first_of)
        likely = [one for one in free if same_shape(sizes[first], sizes[one])]
        alike: list[int] = []
        for start in range(0, len(likely), COMPARED_AT_ONCE):
            some = np.array(likely[start : start + COMPARED_AT_ONCE])
            fine = same_colors(means[first], contrasts[first], means[some], contrasts[some])
            alike += map(int, some[fine])
        if alike:
            original = load_rgb(images[names[first]])
            for one in alike:
                if same_details(original, load_rgb(images[names[one]])):
                    first_of[one] = first
    return {names[copy]: names[first] for copy, first in first_of.items()}


def _signature(path: Path) -> BlockSignature | BadImageError:
    try:
        return block_signature(path)
    except BadImageError as error:
        return error


Entry = Mapping[str, Any]


class _Name(NamedTuple):
    url: str | None
    sha256: str | None


def merge_images(rows: Sequence[Sequence[Entry]]) -> list[dict[str, Any]]:
    """The images of one post that several rows tell of, each once and by its whole name."""
    fullest = min(
        rows, key=lambda images: (-len(images), [_spelt(one) for one in images]), default=[]
    )
    every = [*fullest, *sorted((one for row in rows for one in row), key=_spelt)]
    names = dict.fromkeys(name for one in every if (name := _name(one)) != (None, None))
    sharing: dict[tuple[int, str], list[_Name]] = {}
    for name in names:
        for kind, value in enumerate(name):
            if value is not None:
                sharing.setdefault((kind, value), []).append(name)
    # For each name the one that stands for all that share, step by step, an address or digest.
    group_of: dict[_Name, _Name] = {}
    for start in names:
        waiting = [start]
        while waiting:
            name = waiting.pop()
            if name not in group_of:
                group_of[name] = start
                for kind, value in enumerate(name):
                    waiting += sharing.get((kind, value), []) if value is not None else []
    longest: dict[_Name, str | None] = {}
    for one in every:
        if (name := _name(one)) in names:
            group = group_of[name]
            longest[group] = max(longest.get(group), one["alt_text"], key=_by_length)
    images: list[dict[str, Any]] = [
        {"sha256": name.sha256, "url": name.url, "alt_text": longest[group_of[name]]}
        for name in dict.fromkeys(full for one in names for full in _whole(one, sharing))
    ]
    # An image that could not be read may still be described.
    bare = [one["alt_text"] for one in every if _name(one) == (None, None)]
    described = dict.fromkeys(text for text in bare if text is not None)
    # One that only another row has by name is not lost.
    lost = len(fullest) - len(images) - len(described) if None in bare else 0
    unnamed = [*described, *[None] * lost]
    return images + [{"sha256": None, "url": None, "alt_text": text} for text in unnamed]


def _whole(name: _Name, sharing: Mapping[tuple[int, str], Sequence[_Name]]) -> list[_Name]:
    """In the place of half a name the whole ones that it is half of."""
    if None not in name:
        return [name]
    shared = [sharing[kind, value] for kind, value in enumerate(name) if value is not None]
    return [full for full in shared[0] if None not in full] or [name]


def distinct_images(images: Sequence[Entry]) -> list[dict[str, Any]]:
    """Joins the images of one row: only equal bytes are one image."""
    found: dict[object, dict[str, Any]] = {}
    for number, one in enumerate(images):
        key = one["sha256"] or (one["url"] and ("url", one["url"])) or number
        first = found.setdefault(key, dict(one))
        texts = [each["alt_text"] for each in (first, one) if each["alt_text"]]
        if first != one:
            first["sha256"], first["url"] = (
                first["sha256"] or one["sha256"],
                first["url"] or one["url"],
            )
            first["alt_text"] = "\n".join(dict.fromkeys(texts)) or None
    return list(found.values())


def _name(entry: Entry) -> _Name:
    return _Name(entry["url"], entry["sha256"])


def _by_length(text: str | None) -> tuple[bool, int, str]:
    return text is not None, len(text or ""), text or ""


def _spelt(entry: Entry) -> tuple[tuple[bool, str], ...]:
    values = (entry[name] for name in ("sha256", "url", "alt_text"))
    return tuple((value is not None, value or "") for value in values)
