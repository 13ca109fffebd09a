"""The posts that were taken down and must not be collected again."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from echo_hf.collect.sources.base import Post
from echo_hf.collect.urls import canonical_url, x_status_url
from echo_hf.errors import RunError
from echo_hf.reasons import Missing

TOMBSTONES = "forgotten.jsonl"
STAND_IN = "urn:sha256:"


@dataclass(frozen=True)
class Tombstones:
    hashes: frozenset[str] = frozenset()

    def __contains__(self, url: str) -> bool:
        return hashed(url) in self.hashes

    def stand_in(self, url: str | None) -> str | None:
        """What is written in the place of an address: the address, or its hash if forgotten."""
        return STAND_IN + hashed(url) if url is not None and url in self else url

    def cleared(self, post: Post) -> Post:
        parent, quoted = self.stand_in(post.parent_url), self.stand_in(post.quoted_url)
        if post.url in self:
            place = STAND_IN + hashed(post.url)
            post = Post(place, place, post.platform, missing=Missing.REMOVED.value)
        return dataclasses.replace(post, parent_url=parent, quoted_url=quoted)

    def are_named_in(self, record: Any) -> bool:
        waiting = [record] if self.hashes else []
        while waiting:
            value = waiting.pop()
            if isinstance(value, dict):
                waiting += value.values()
            elif isinstance(value, list):
                waiting += value
            elif any(name in self for name in _addresses(value)):
                return True
        return False


def hashed(url: str) -> str:
    """Sha256 of an address."""
    return hashlib.sha256(url.encode()).hexdigest()


def read_tombstones(path: Path) -> Tombstones:
    if not path.exists():
        return Tombstones()
    lines = path.read_text("utf-8").splitlines()
    return Tombstones(frozenset(_hash(path, number, line) for number, line in enumerate(lines, 1)))


def add_tombstones(path: Path, urls: Iterable[str]) -> None:
    """Writes tombstones down; they outlive a killed process."""
    known = read_tombstones(path)
    new = dict.fromkeys(hashed(url) for url in urls if url not in known)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps({"sha256": one}) + "\n" for one in new)
        file.flush()
        os.fsync(file.fileno())


def _addresses(value: Any) -> Iterator[str]:
    """The posts that a value may name: by an address, or by a number of X."""
    names = [x_status_url(value)]
    if isinstance(value, str):
        names += [canonical_url(value), canonical_url(value, fragment=True)]
    return (name for name in names if name)


def _hash(path: Path, number: int, line: str) -> str:
    try:
        found = json.loads(line)["sha256"]
        if len(found) == 64 and set(found) <= set("0123456789abcdef"):
            return str(found)
    except (ValueError, TypeError, KeyError):
        pass
    raise RunError(
        f"{str(path)!r}: line {number} is {line[:80]!r}, expected the hash of a forgotten post: "
        "fix or remove the line, and forget that post again"
    )
