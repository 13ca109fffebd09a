"""Join posts into unique reply trees, and keep those that are about the target (section 3.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from echo_hf.collect.collect import merge_posts
from echo_hf.pipeline.stage import RowIssue, Stage, kept_rows, row_issues
from echo_hf.reasons import Missing, Notice, Reject, Status
from echo_hf.tables import POSTS, THREADS, Table

if TYPE_CHECKING:
    from echo_hf.config.loading import Config
    from echo_hf.images.store import ImageStore


NO_PARENT = -1
Moment = tuple[bool, int, str]


@dataclass(frozen=True, slots=True)
class Forest:
    """Reply trees in depth-first order."""

    order: list[int] = field(default_factory=list)
    parent: list[int] = field(default_factory=list)
    depth: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    self_parents: list[int] = field(default_factory=list)
    cycles: list[int] = field(default_factory=list)


def plant(parents: Sequence[int], moments: Sequence[Moment]) -> Forest:
    """Orders posts into reply trees."""
    forest = Forest()
    cut = list(parents)
    for post, parent in enumerate(parents):
        if post == parent:
            cut[post] = NO_PARENT
            forest.self_parents.append(post)
    for circle in _cycles(cut):
        first = min(circle, key=moments.__getitem__)
        cut[first] = NO_PARENT
        forest.cycles.append(first)
    children: list[list[int]] = [[] for _ in range(len(cut) + 1)]
    for post in sorted(range(len(cut)), key=moments.__getitem__, reverse=True):
        children[cut[post]].append(post)  # -1: the last list holds the roots
    for root in reversed(children[NO_PARENT]):
        start = len(forest.order)
        forest.starts.append(start)
        waiting = [(root, NO_PARENT, 0)]
        while waiting:
            post, above, level = waiting.pop()
            place = len(forest.order) - start
            forest.order.append(post)
            forest.parent.append(above)
            forest.depth.append(level)
            waiting.extend((child, place, level + 1) for child in children[post])
    forest.starts.append(len(forest.order))
    return forest


def _cycles(parents: Sequence[int]) -> Iterator[list[int]]:
    seen_in = [0] * len(parents)
    for walk, start in enumerate(range(len(parents)), 1):
        path, post = [], start
        while post != NO_PARENT and not seen_in[post]:
            seen_in[post] = walk
            path.append(post)
            post = parents[post]
        if post != NO_PARENT and seen_in[post] == walk:
            yield path[path.index(post) :]


POSTS_OF_TREE = THREADS.schema.field("posts").type


@dataclass(frozen=True)
class Threads(Stage):
    """Joins posts into reply trees; a tree stays when one of its posts is relevant enough.

    The root is the topmost known address, even when its content is missing. All posts of a kept
    tree stay as context. A quoted post is no parent.

    Attributes:
        keep: Relevance scores that keep a tree.
    """

    name: ClassVar[str] = "threads"
    version: ClassVar[int] = 1
    inputs: ClassVar[Table] = POSTS
    outputs: ClassVar[Table] = THREADS
    whole: ClassVar[bool] = True

    keep: tuple[int, ...] = (4, 5)

    def __call__(self, table: pa.Table) -> pa.Table:
        """Joins all posts at once; a post may come more than once."""
        collected, _ = merge_posts(table.select(list(POSTS.columns)))
        posts = _with_unknown_parents(collected)
        trees = _Trees(posts, _forest(posts), posts["url"].to_pylist(), collected.num_rows)
        score = pc.struct_field(trees.posts["relevance"].combine_chunks(), "score")
        keeps = trees.any_of(pc.is_in(score, pa.array(self.keep, pa.int8())))
        said = [*trees.rejected(keeps), *trees.cuts()]
        return pa.concat_tables([trees.kept(keeps), row_issues(THREADS, said)])

    @classmethod
    def from_config(cls, config: Config, images: ImageStore) -> Self:
        """The stage with the scores that the config keeps."""
        del images
        return cls(config.stages.relevance.keep)

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        """Counts the posts of the kept trees, and those among them that were never collected."""
        posts = pc.list_flatten(kept["posts"])
        missing = pc.struct_field(posts, "missing")
        return {"posts": len(posts), "posts_missing": len(posts) - missing.null_count}


@dataclass(frozen=True)
class _Trees:
    posts: pa.Table
    forest: Forest
    urls: list[str]
    collected: int  # the posts from here on are only known by their address

    def any_of(self, of_post: pa.BooleanArray) -> list[bool]:
        """For each tree, whether it holds for one of its posts."""
        if not self.forest.order:
            return []
        in_order = of_post.to_numpy(zero_copy_only=False)[np.asarray(self.forest.order)]
        holds: list[bool] = np.logical_or.reduceat(in_order, self.forest.starts[:-1]).tolist()
        return holds

    def kept(self, keeps: Sequence[bool]) -> pa.Table:
        """One row a kept tree."""
        spans = [
            span for span, keep in zip(pairwise(self.forest.starts), keeps, strict=True) if keep
        ]
        places = np.array([p for start, end in spans for p in range(start, end)], dtype=np.int64)
        offsets = pa.array(np.cumsum([0, *(end - start for start, end in spans)]), pa.int32())
        rows = self.posts.take(pa.array(np.asarray(self.forest.order, dtype=np.int64)[places]))
        posts = pa.ListArray.from_arrays(offsets, self._items(rows, places))
        roots = rows["url"].combine_chunks().take(offsets[:-1])
        parents = [self._urls(span) for span in spans]
        columns = pa.table([roots, posts.cast(POSTS_OF_TREE)], schema=THREADS.schema)
        return kept_rows(columns, pa.array(parents, pa.list_(pa.string())))

    def rejected(self, keeps: Sequence[bool]) -> Iterator[RowIssue]:
        """One remark a tree that does not stay."""
        relevance = self.posts["relevance"].combine_chunks()
        failed = pc.and_(relevance.is_valid(), pc.struct_field(relevance, "score").is_null())
        asked, unsure = self.any_of(relevance.is_valid()), self.any_of(failed)
        for tree, span in enumerate(pairwise(self.forest.starts)):
            if not keeps[tree]:
                reason = Reject.NOT_RELEVANT if asked[tree] else Reject.NOT_ASKED
                reason = Reject.NOT_SCORED if unsure[tree] else reason
                yield RowIssue(Status.REJECTED, self._urls(span), reason)

    def cuts(self) -> Iterator[RowIssue]:
        """One remark a link that was cut."""
        cut = {Notice.SELF_PARENT: self.forest.self_parents, Notice.CYCLE: self.forest.cycles}
        for notice, posts in cut.items():
            yield from (RowIssue(Status.NOTED, [self.urls[post]], notice) for post in posts)

    def _items(self, rows: pa.Table, places: np.ndarray) -> pa.StructArray:
        shape = {"parent": self.forest.parent, "depth": self.forest.depth}
        fields = list(POSTS_OF_TREE.value_type)
        arrays = [
            pa.array(np.asarray(shape[field.name], dtype=np.int32)[places])
            if field.name in shape
            else rows[field.name].combine_chunks().cast(field.type)
            for field in fields
        ]
        return pa.StructArray.from_arrays(arrays, fields=fields)

    def _urls(self, span: tuple[int, int]) -> list[str]:
        posts = self.forest.order[span[0] : span[1]]
        return [self.urls[post] for post in posts if post < self.collected]


def _with_unknown_parents(posts: pa.Table) -> pa.Table:
    parents = pc.unique(posts["parent_url"].combine_chunks().drop_null())
    unknown = parents.filter(pc.invert(pc.is_in(parents, posts["url"].combine_chunks())))
    count = len(unknown)
    columns = {
        "url": unknown,
        "missing": pa.repeat(pa.scalar(Missing.NOT_FETCHED.value), count),
    }
    for name in ("keywords", "pictures"):
        columns[name] = pa.array([[]] * count, POSTS.schema.field(name).type)
    arrays = [columns.get(field.name, pa.nulls(count, field.type)) for field in POSTS.schema]
    stubs = pa.table(arrays, schema=POSTS.schema)
    return pa.concat_tables([posts, stubs]).combine_chunks()


def _forest(posts: pa.Table) -> Forest:
    parents = pc.index_in(posts["parent_url"].combine_chunks(), posts["url"].combine_chunks())
    parents = pc.if_else(posts["parent_url"].is_null().combine_chunks(), None, parents)
    times = posts["timestamp"].cast(pa.int64()).to_pylist()
    moments: list[Moment] = [
        (time is None, time or 0, url)
        for time, url in zip(times, posts["url"].to_pylist(), strict=True)
    ]
    return plant(parents.fill_null(NO_PARENT).to_pylist(), moments)
