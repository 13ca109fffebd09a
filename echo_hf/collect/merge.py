"""Make posts that were collected more than once one row each, whatever the order of arrival."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from echo_hf.collect.same_pictures import merge_pictures
from echo_hf.stage import Stage, kept, parents_of
from echo_hf.tables import POSTS, Table

Post = Mapping[str, Any]
COUNTS = tuple(POSTS.schema.field("engagement").type.names)
ORDER = [("timestamp", "ascending"), ("url", "ascending")]
PLAIN = ("post_id", "platform", "author", "timestamp", "lang", "parent_url", "quoted_url")


@dataclass(frozen=True)
class Merge(Stage):
    """Merges posts with the same address, the last step of collection."""

    name: ClassVar[str] = "merge"
    version: ClassVar[int] = 1
    inputs: ClassVar[Table] = POSTS
    outputs: ClassVar[Table] = POSTS
    whole: ClassVar[bool] = True

    def __call__(self, table: pa.Table) -> pa.Table:
        """One row an address."""
        posts = merge_posts(table.select(list(POSTS.columns)))
        return kept(posts, parents_of(posts["url"].combine_chunks()))


def merge_posts(posts: pa.Table) -> pa.Table:
    """Merges posts with the same address.

    A post with content beats a missing one, a longer text a shorter one. What one row lacks the
    others fill in; where they differ, the choice depends on the values alone. Counts are the
    greatest seen, the time the earliest, keywords and pictures the union.

    Args:
        posts: Rows of `posts` in any order, addresses repeated or not.

    Returns:
        One row an address, by time (unknown last) and address. Merging is free of order, merging
        what is merged changes nothing, and posts may be merged in parts: only the order of a
        post's pictures can then be another one.
    """
    posts = posts.combine_chunks()
    counts = pc.value_counts(posts["url"].combine_chunks())
    twice = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
    to_merge = pc.or_(pc.is_in(posts["url"], twice), _unsettled(posts))
    if pc.any(to_merge).as_py():
        merged = _merged_rows(posts.filter(to_merge).to_pylist())
        posts = pa.concat_tables([posts.filter(pc.invert(to_merge)), merged])
    return posts.take(pc.sort_indices(posts, ORDER)).combine_chunks()


def _unsettled(posts: pa.Table) -> pa.ChunkedArray:
    # Lists that merging a post with itself would change.
    several = pc.fill_null(pc.greater(pc.list_value_length(posts["pictures"]), 1), True)
    return pc.or_(several, _unsorted(posts["keywords"].combine_chunks()))


def _unsorted(words: pa.ListArray) -> pa.BooleanArray:
    flat, owner = pc.list_flatten(words), pc.list_parent_indices(words)
    falls = pc.and_(pc.equal(owner[1:], owner[:-1]), pc.less_equal(flat[1:], flat[:-1]))
    found = np.zeros(len(words), dtype=bool)
    found[owner[1:].filter(falls).to_numpy()] = True
    return pa.array(found)


def _merged_rows(rows: Iterable[Post]) -> pa.Table:
    groups: dict[str, list[Post]] = {}
    for row in rows:
        groups.setdefault(row["url"], []).append(row)
    return pa.Table.from_pylist([_merged(group) for group in groups.values()], schema=POSTS.schema)


def _merged(group: Sequence[Post]) -> dict[str, Any]:
    complete = any(row["missing"] is None for row in group)
    return {
        "url": group[0]["url"],
        **{name: min(_known(group, name), default=None) for name in PLAIN},
        "text": max(_known(group, "text"), key=_by_length, default=None),
        "missing": None if complete else min(_known(group, "missing")),
        "keywords": _keywords([row["keywords"] for row in group]),
        "pictures": merge_pictures([row["pictures"] or [] for row in group]),
        "engagement": _engagement(_known(group, "engagement")),
        "relevance": max(_known(group, "relevance"), key=_by_score, default=None),
    }


def _known(group: Sequence[Post], name: str) -> list[Any]:
    return [row[name] for row in group if row[name] is not None]


def _keywords(lists: Sequence[Sequence[str] | None]) -> list[str] | None:
    found = sorted({word for words in lists for word in words or ()})
    return None if not found and None in lists else found


def _by_length(text: str) -> tuple[int, str]:
    return len(text), text


def _by_score(relevance: Post) -> tuple[int, bool, str]:
    return relevance["score"] or 0, relevance["note"] is not None, relevance["note"] or ""


def _engagement(known: Sequence[Post]) -> dict[str, int | None] | None:
    if not known:
        return None
    return {name: max(_known(known, name), default=None) for name in COUNTS}
