"""Remember which posts were taken down and which samples they went into; clear stored pages.

`echo_hf.builder.takedown` takes posts out of a run.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from echo_hf._infra.atomic import replace_file
from echo_hf._infra.regular_file import read_regular
from echo_hf._infra.text import one_line
from echo_hf.collect.fields import read_json
from echo_hf.collect.sources.base import Missing, Post, make_source, read_page_posts
from echo_hf.collect.urls import canonical_url, identified_urls
from echo_hf.errors import RunError

TOMBSTONES_FILE = "forgotten.jsonl"
STAND_IN = "urn:sha256:"
SHA256_HEX = re.compile(r"[0-9a-f]{64}")
WORD = re.compile(r"[\w~-]+")
OWN_FORMAT_HEADER = "jsonl\n"  # marks a stored page that was rewritten in our own format
MAX_TOMBSTONE_BYTES = 1 << 30
ORIGINS_FILE = "origins.parquet"
ORIGINS_SCHEMA = pa.schema({"sample_id": pa.string(), "post": pa.string()})


@dataclass(frozen=True)
class Tombstones:
    hashes: frozenset[str] = frozenset()

    def __contains__(self, url: str) -> bool:
        return hash_url(url) in self.hashes

    def stand_in(self, url: str | None) -> str | None:
        """Return an address, or its hash if it was taken down."""
        return STAND_IN + hash_url(url) if url is not None and url in self else url

    def clear(self, post: Post) -> Post:
        if not self.hashes:
            return post
        parent, quoted = self.stand_in(post.parent_url), self.stand_in(post.quoted_url)
        if post.url in self:
            place = STAND_IN + hash_url(post.url)
            post = Post(place, place, post.platform, missing=Missing.REMOVED.value)
        return dataclasses.replace(post, parent_url=parent, quoted_url=quoted)

    def occur_in(self, record: Any) -> bool:
        """Return whether a record names one of the posts, by an address or by a number of X."""
        pending = [record] if self.hashes else []
        while pending:
            part = pending.pop()
            if isinstance(part, dict | list):
                pending += part.values() if isinstance(part, dict) else part
                continue
            addresses = (
                canonical_url(part),
                canonical_url(part, fragment=True),
                *identified_urls(part),
            )
            if any(address in self for address in addresses if address):
                return True
        return False


def hash_url(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()


def read_tombstones(path: Path) -> Tombstones:
    hashes = set()
    try:
        text = read_regular(path, max_bytes=MAX_TOMBSTONE_BYTES).decode() if path.exists() else ""
    except (OSError, ValueError) as error:
        raise RunError(
            f"{str(path)!r} does not say which posts are forgotten ({one_line(error)}): bring it "
            "back from a copy"
        ) from None
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        tombstone = read_json(line)
        sha256 = tombstone.get("sha256") if isinstance(tombstone, dict) else None
        if not isinstance(sha256, str) or not SHA256_HEX.fullmatch(sha256):
            raise RunError(
                f"{str(path)!r}: line {number} is {line[:80]!r}, expected the hash of a forgotten "
                "post: fix or remove the line, and forget that post again"
            )
        hashes.add(sha256)
    return Tombstones(frozenset(hashes))


def add_tombstones(path: Path, hashes: Iterable[str]) -> None:
    """Append tombstones to the file; they outlive a killed process."""
    known_hashes = read_tombstones(path).hashes
    new_hashes = dict.fromkeys(sha256 for sha256 in hashes if sha256 not in known_hashes)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps({"sha256": sha256}) + "\n" for sha256 in new_hashes)
        file.flush()
        os.fsync(file.fileno())


def read_origins(path: Path) -> pa.Table:
    """Read the hashes of the posts that samples were made of, also of samples that are gone."""
    if not path.exists():
        return ORIGINS_SCHEMA.empty_table()
    try:
        return pq.read_table(path, columns=ORIGINS_SCHEMA.names).cast(ORIGINS_SCHEMA)
    except (OSError, pa.ArrowException) as error:
        raise RunError(
            f"{str(path)!r} does not say which posts samples were made of ({one_line(error)}): "
            "bring it back from a copy; without it, what was said of samples outlives their posts"
        ) from None


def record_origins(path: Path, samples: Iterable[pa.Table]) -> None:
    """Add the posts of samples, which have an `id` and `post_urls`."""
    origins = read_origins(path)
    tables = [origins]
    for table in samples:
        posts = table["post_urls"].combine_chunks()
        urls = posts.flatten().dictionary_encode()
        hashes = pa.array(map(hash_url, urls.dictionary.to_pylist()), pa.string())
        ids = table["id"].combine_chunks().take(pc.list_parent_indices(posts))
        tables.append(pa.table([ids, hashes.take(urls.indices)], schema=ORIGINS_SCHEMA))
    pairs = pa.concat_tables(tables).group_by(ORIGINS_SCHEMA.names, use_threads=False).aggregate([])
    if len(pairs) > len(origins):
        _write_origins(path, pairs)


def drop_origins(path: Path, samples: Iterable[str]) -> None:
    origins = read_origins(path)
    is_gone = pc.is_in(origins["sample_id"], pa.array(list(samples), pa.string()))
    if pc.any(is_gone).as_py():
        _write_origins(path, origins.filter(pc.invert(is_gone)))


def _write_origins(path: Path, pairs: pa.Table) -> None:
    with replace_file(path) as partial:
        pq.write_table(pairs, partial, compression="zstd")


def detect_page_source(body: str, platform: str) -> tuple[str, str]:
    """Return the name of the source that reads a stored page, and the text that it reads."""
    if body.startswith(OWN_FORMAT_HEADER):
        return "jsonl", body.removeprefix(OWN_FORMAT_HEADER)
    return platform, body


def remove_posts(
    body: str, platform: str, urls: frozenset[str], keywords: Sequence[str] = ()
) -> str:
    """Remove posts from a page; a page that changes keeps its other posts in our own format.

    Platforms repeat a post in reposts, quotes and lists beside: what our reader takes from the
    others is all that is safe to keep.
    """
    identifying_words = {words[-1] for url in urls if (words := WORD.findall(url))}
    if identifying_words.isdisjoint(WORD.findall(body)):
        return body
    source, text = detect_page_source(body, platform)
    posts = read_page_posts(text, make_source(source), keywords)
    return OWN_FORMAT_HEADER + "".join(_format_line(post) for post in posts if post.url not in urls)


def _format_line(post: Post) -> str:
    fields = dataclasses.asdict(post)
    del fields["unnamed_parent"]
    return json.dumps(fields, default=str) + "\n"
