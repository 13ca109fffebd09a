"""Which picture stands at which position of its post, as the posts' file has it.

Collection drops pictures that are not there and joins equal ones, so that positions in its tables
are others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from echo_hf.collect.sources.base import Picture, Post
from echo_hf.pictures import MOST_BYTES

Digests = tuple[str | None, ...]


def placed_pictures(
    records: Iterable[tuple[str, Post]], collected: Mapping[str, Sequence[Mapping[str, Any]]]
) -> dict[str, Digests]:
    """The pictures of posts in the order of their file.

    Args:
        records: The posts as a source reads them, each with the folder of its file.
        collected: The pictures of each post as collection keeps them.

    Returns:
        For each post the digests of its pictures, null for one that is not there; of a post that
        is there more than once, those of the record with most pictures that are there.
    """
    placed: dict[str, Digests] = {}
    for folder, post in records:
        known = collected.get(post.url, ())
        digests = tuple(_digest(one, folder, known) for one in post.pictures)
        # A record whose text a newer one replaces has pictures that are not the post's any more.
        placed[post.url] = max(placed.get(post.url, ()), digests, key=_found)
    return placed


def _found(digests: Digests) -> tuple[int, int]:
    return len(digests) - digests.count(None), len(digests)


def _digest(picture: Picture, folder: str, known: Sequence[Mapping[str, Any]]) -> str | None:
    digests = {one["sha256"] for one in known}
    if picture.path and (found := _digest_of_file(Path(folder), picture.path)) in digests:
        return found
    by_address = {one["url"]: one["sha256"] for one in known if one["url"]}
    return by_address.get(picture.url) if picture.url else None


def _digest_of_file(folder: Path, path: str) -> str | None:
    try:
        file = (folder / path).resolve()
        inside = file.is_relative_to(folder.resolve()) and file.is_file()
        if not inside or file.stat().st_size > MOST_BYTES:
            return None
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except (OSError, ValueError, RuntimeError):  # a NUL in the path; a link that leads to itself
        return None
