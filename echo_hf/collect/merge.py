"""Make posts that were collected more than once one row each; of two texts the newer one stays."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Value

from echo_hf.collect.same_pictures import merge_pictures
from echo_hf.reasons import Reject, Status
from echo_hf.stage import Remark, Stage, kept, keys_of, remarks
from echo_hf.tables import POSTS, Column, Table

Post = Mapping[str, Any]
COUNTS = tuple(POSTS.schema.field("engagement").type.names)
ORDER = [("timestamp", "ascending"), ("url", "ascending")]
PLAIN = ("post_id", "platform", "author", "timestamp", "lang", "parent_url", "quoted_url")


# How a text ends that its source has shortened.
CUT = re.compile(r"…(?:\s*https?://\S+)?\s*$")

# What X puts behind a text for its own pictures, and not all readers keep.
SHORT_LINKS = re.compile(r"(?:\s*https?://t\.co/\w+)+\s*$")

READ_POSTS = Table(
    "posts",
    "one post as one record has it",
    ("place", "url"),
    {
        **POSTS.columns,
        "place": Column(Value("string"), "where its record stands"),
        "edited": Column(Value("timestamp[us, tz=UTC]"), "when its text was last changed"),
    },
)


@dataclass(frozen=True)
class Merge(Stage):
    """Merges posts with the same address, the last step of collection."""

    name: ClassVar[str] = "merge"
    version: ClassVar[int] = 2
    inputs: ClassVar[Table] = READ_POSTS
    outputs: ClassVar[Table] = POSTS
    whole: ClassVar[bool] = True

    def __call__(self, table: pa.Table) -> pa.Table:
        """One row an address, and a remark for each post that a newer version replaces."""
        table = table.select(list(READ_POSTS.columns))
        posts, replaced = merge_posts(table)
        urls, keys = table["url"].to_pylist(), keys_of(table, READ_POSTS).to_pylist()
        parents: dict[str, list[str]] = {}
        for row, (url, key) in enumerate(zip(urls, keys, strict=True)):
            if row not in replaced:
                parents.setdefault(url, []).append(key)
        named = pa.array([parents[url] for url in posts["url"].to_pylist()], pa.list_(pa.string()))
        said = [
            Remark(
                Status.REJECTED,
                [keys[row]],
                Reject.SUPERSEDED,
                f"{urls[row]}: {table['place'][newer]} has its newer text",
            )
            for row, newer in replaced.items()
        ]
        return pa.concat_tables([kept(posts, named), remarks(POSTS, said)])


def merge_posts(posts: pa.Table) -> tuple[pa.Table, dict[int, int]]:
    """Merges posts with the same address.

    A post with content beats a missing one, a whole text a cut one. Where texts differ, the newest
    one replaces the others, and their pictures with them: the one with the latest `edited`, or
    without it `timestamp`, where all of them say one; else the last one in the table. Among rows
    of one text what one lacks the others fill in; where they differ, the choice depends on the
    values alone. Counts are the greatest seen, the time the earliest, pictures the union.
    Keywords are the union over all rows, since they say how the post was found.

    Args:
        posts: Rows of `posts`, addresses repeated or not; `edited` may be a column of them.

    Returns:
        One row an address, by time (unknown last) and address; and for the number of each row that
        was replaced the number of one that took its place. Merging what is merged changes nothing.
        Where no texts differ it is free of order, and may be done in parts: only the order of a
        post's pictures, and how many of them have no name, can then be others.
    """
    posts = posts.combine_chunks()
    counts = pc.value_counts(posts["url"].combine_chunks())
    twice = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
    to_merge = pc.or_(pc.is_in(posts["url"], twice), _unsettled(posts))
    replaced: dict[int, int] = {}
    merged = posts.select(list(POSTS.columns))
    if pc.any(to_merge).as_py():
        rows = np.flatnonzero(to_merge.to_numpy()).tolist()
        groups: dict[str, dict[int, Post]] = {}
        for row, post in zip(rows, posts.filter(to_merge).to_pylist(), strict=True):
            groups.setdefault(post["url"], {})[row] = post
        made = [_merged(group, replaced) for group in groups.values()]
        rest = merged.filter(pc.invert(to_merge))
        merged = pa.concat_tables([rest, pa.Table.from_pylist(made, schema=POSTS.schema)])
    return merged.take(pc.sort_indices(merged, ORDER)).combine_chunks(), replaced


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


def _merged(rows: Mapping[int, Post], replaced: dict[int, int]) -> dict[str, Any]:
    replaced |= _replaced(rows)
    group = [post for row, post in rows.items() if row not in replaced]
    complete = any(row["missing"] is None for row in group)
    return {
        "url": group[0]["url"],
        **{name: min(_known(group, name), default=None) for name in PLAIN},
        "text": max(_known(group, "text"), key=_by_length, default=None),
        "missing": None if complete else min(_known(group, "missing")),
        "keywords": _keywords([row["keywords"] for row in rows.values()]),
        "pictures": merge_pictures([row["pictures"] or [] for row in group]),
        "engagement": _engagement(_known(group, "engagement")),
        "relevance": max(_known(group, "relevance"), key=_by_score, default=None),
    }


def _replaced(rows: Mapping[int, Post]) -> dict[int, int]:
    """The rows of one post that have another text than the newest, each with one that has that."""
    texts = {row: _as_written(post["text"] or "") for row, post in rows.items()}
    versions: dict[str, list[int]] = {}
    for row, text in texts.items():
        if text:
            versions.setdefault(_whole(text, texts.values()), []).append(row)
    if len(versions) < 2:
        return {}
    said = {row: rows[row].get("edited") or rows[row]["timestamp"] for row in texts}
    # Where one does not say when it was written, the times do not tell which is newer.
    timed = all(any(said[row] for row in some) for some in versions.values())

    def age(some: Sequence[int]) -> tuple[Any, ...]:
        known = [said[row] for row in some if said[row]] if timed else ()
        return any(rows[row]["missing"] is None for row in some), *sorted(known)[-1:], some[-1]

    newest = max(versions.values(), key=age)
    return {row: newest[-1] for some in versions.values() if some is not newest for row in some}


def _as_written(text: str) -> str:
    """The text without what readers of one platform write differently."""
    return " ".join(SHORT_LINKS.sub("", html.unescape(text)).split())


def _whole(text: str, texts: Iterable[str]) -> str:
    """The text that a text is the beginning of, if its source has cut it."""
    begin = CUT.sub("", text)
    if begin in ("", text):
        return text
    return max((one for one in texts if one.startswith(begin)), key=_by_length)


def _known(group: Sequence[Post], name: str) -> list[Any]:
    return [row[name] for row in group if row[name] is not None]


def _keywords(lists: Sequence[Sequence[str] | None]) -> list[str] | None:
    found = sorted({word for words in lists for word in words or ()})
    return None if not found and None in lists else found


def _by_length(text: str) -> tuple[bool, int, str]:
    return not CUT.search(text), len(text), text


def _by_score(relevance: Post) -> tuple[int, bool, str]:
    return relevance["score"] or 0, relevance["note"] is not None, relevance["note"] or ""


def _engagement(known: Sequence[Post]) -> dict[str, int | None] | None:
    if not known:
        return None
    return {name: max(_known(known, name), default=None) for name in COUNTS}
