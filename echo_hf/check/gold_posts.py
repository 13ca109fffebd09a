"""The posts that gold speaks of, with all of their threads, read by the stages of a build."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from datasets import Dataset

from echo_hf.apply import run_stage
from echo_hf.check.picture_places import Digests, placed_pictures
from echo_hf.collect.collect import Collect
from echo_hf.collect.merge import Merge
from echo_hf.collect.records import read_records
from echo_hf.collect.sources.base import Post, make_source
from echo_hf.config_sections import Posts
from echo_hf.context.threads import Threads
from echo_hf.pictures import PictureStore
from echo_hf.stage_result import StageResult
from echo_hf.tables import POSTS

KEEP = 5


@dataclass(frozen=True)
class GoldPosts:
    """Posts and threads.

    Attributes:
        read: What became of the records.
        posts: The posts, each once.
        threads: Their reply trees, all of them.
        pictures: Digests of each post's pictures in the order of its file; null for one that is
            not there.
    """

    read: StageResult
    posts: Dataset
    threads: Dataset
    pictures: Mapping[str, Digests]

    @cached_property
    def root_of(self) -> Mapping[str, str]:
        """The root of each post, that of a missing one included."""
        rows = self.threads.to_list()
        return {post["url"]: row["root_url"] for row in rows for post in row["posts"]}


def read_posts(
    entries: Sequence[Posts], addresses: Iterable[str], pictures: PictureStore
) -> GoldPosts:
    """Reads the posts that are named, and all others of their threads.

    Args:
        entries: Where the posts are.
        addresses: Those that are named, in their canonical form.
        pictures: Where the bytes of their pictures go.

    Returns:
        The posts and their threads; what names nothing that is there is left out.
    """
    records = read_records(entries)
    parsed = list(_parsed(records))
    rows = list(_near(parsed, set(addresses)))
    near = records.select(rows)
    read = run_stage(Collect(pictures), near)
    posts = run_stage(Merge(), read.dataset).dataset
    folders = zip(near["folder"], rows, strict=True)
    written = ((folder, post) for folder, row in folders for post in parsed[row])
    kept = {row["url"]: row["pictures"] or [] for row in posts.to_list()}
    return GoldPosts(read, posts, _threads(posts), placed_pictures(written, kept))


def _threads(posts: Dataset) -> Dataset:
    # All threads are wanted, whatever their posts were scored.
    scored = [{**row, "relevance": {"score": KEEP, "note": None}} for row in posts.to_list()]
    table = pa.Table.from_pylist(scored, schema=POSTS.features.arrow_schema)
    return run_stage(Threads((KEEP,)), Dataset(table)).dataset


def _parsed(records: Dataset) -> Iterator[list[Post]]:
    sources = {name: make_source(name) for name in records.unique("source")}
    for record in records:
        keywords = record["keywords"] or ()
        try:
            every = sources[record["source"]].posts(json.loads(record["record"]), keywords)
            yield [one for one in every if isinstance(one, Post)]
        except (ValueError, RecursionError):
            yield []


def _near(parsed: Sequence[Sequence[Post]], addresses: set[str]) -> Iterator[int]:
    # The pictures of a large collection need not be copied to read a hundred threads of it.
    beside: dict[str, set[str]] = {}
    for post in (post for some in parsed for post in some):
        beside.setdefault(post.url, set())
        if post.parent_url:
            beside[post.url].add(post.parent_url)
            beside.setdefault(post.parent_url, set()).add(post.url)
    wanted = _connected(beside, addresses)
    for row, some in enumerate(parsed):
        # What cannot be read at all is told by `Collect`.
        if not some or any(post.url in wanted for post in some):
            yield row


def _connected(beside: Mapping[str, set[str]], addresses: Iterable[str]) -> set[str]:
    found: set[str] = set()
    waiting = list(addresses)
    while waiting:
        url = waiting.pop()
        if url not in found:
            found.add(url)
            waiting.extend(beside.get(url, ()))
    return found
