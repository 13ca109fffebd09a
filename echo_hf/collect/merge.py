"""Make posts that were collected more than once one row each, whatever the order of arrival."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from echo_hf.stage import Stage, kept, parents_of
from echo_hf.tables import POSTS, Table

Post = Mapping[str, Any]
COUNTS = tuple(POSTS.schema.field("engagement").type.names)
ORDER = [("timestamp", "ascending"), ("url", "ascending")]
FROM_WINNER = ("post_id", "platform", "author", "lang", "parent_url", "quoted_url")


@dataclass(frozen=True)
class Merge(Stage):
    """Merges posts with the same address, the last step of collection."""

    name: ClassVar[str] = "collect"
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
    others fill in; counts are the greatest seen, the time the earliest, keywords and pictures the
    union.

    Args:
        posts: Rows of `posts` in any order, addresses repeated or not.

    Returns:
        One row an address, by time (unknown last) and address. Merging is free of order, and
        merging what is merged changes nothing.
    """
    posts = posts.combine_chunks()
    counts = pc.value_counts(posts["url"].combine_chunks())
    twice = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
    if len(twice):
        doubled = pc.is_in(posts["url"], twice)
        merged = _merged_rows(posts.filter(doubled).to_pylist())
        posts = pa.concat_tables([posts.filter(pc.invert(doubled)), merged])
    return posts.take(pc.sort_indices(posts, ORDER)).combine_chunks()


def _merged_rows(rows: Iterable[Post]) -> pa.Table:
    groups: dict[str, list[Post]] = {}
    for row in rows:
        groups.setdefault(row["url"], []).append(row)
    return pa.Table.from_pylist([_merged(group) for group in groups.values()], schema=POSTS.schema)


def _merged(group: Sequence[Post]) -> dict[str, Any]:
    ranked = sorted(group, key=_rank, reverse=True)
    best = ranked[0]
    return {
        **best,
        **{name: _first(best, group, name) for name in FROM_WINNER},
        "timestamp": min((row["timestamp"] for row in group if row["timestamp"]), default=None),
        "keywords": sorted({word for row in group for word in row["keywords"] or []}),
        "pictures": _pictures(group),
        "engagement": _engagement(group),
        "relevance": _relevance(group),
    }


def _rank(row: Post) -> tuple[Any, ...]:
    text = row["text"] or ""
    return row["missing"] is None, len(text), text, row["missing"] or ""


def _first(best: Post, group: Sequence[Post], name: str) -> str | None:
    values = sorted(row[name] for row in group if row[name] is not None)
    # Rows that tie for the best must agree whatever their order.
    of_best = sorted(
        row[name] for row in group if row[name] is not None and _rank(row) == _rank(best)
    )
    return next(iter([*of_best, *values]), None)


def _pictures(group: Sequence[Post]) -> list[dict[str, Any]]:
    longest = max((row["pictures"] or [] for row in group), key=_picture_rank)
    found = {_identity(one): dict(one) for one in longest}
    rest = sorted((one for row in group for one in row["pictures"] or []), key=_spelt)
    for one in rest:
        known = found.setdefault(_identity(one), dict(one))
        for name, value in one.items():
            known[name] = known[name] if known[name] is not None else value
    return list(found.values())


def _picture_rank(pictures: Sequence[Post]) -> tuple[int, list[tuple[str, ...]]]:
    return len(pictures), [_spelt(one) for one in pictures]


def _identity(picture: Post) -> str:
    return picture["url"] or picture["sha256"] or ""


def _spelt(picture: Post) -> tuple[str, ...]:
    return tuple(picture[name] or "" for name in ("sha256", "url", "alt_text"))


def _engagement(group: Sequence[Post]) -> dict[str, int | None] | None:
    known = [row["engagement"] for row in group if row["engagement"]]
    if not known:
        return None
    return {
        name: max((one[name] for one in known if one[name] is not None), default=None)
        for name in COUNTS
    }


def _relevance(group: Sequence[Post]) -> dict[str, Any] | None:
    known = [row["relevance"] for row in group if row["relevance"]]
    return max(known, key=lambda one: (one["score"] or 0, one["note"] or ""), default=None)
