"""Join posts into unique reply trees, and keep those that are about the target (section 3.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset

from echo_hf.collect.collect import ORDER, merge_posts
from echo_hf.collect.sources.base import Missing
from echo_hf.config.loading import Config
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.stage import RowIssue, Stage, issue_rows, keep_rows, register
from echo_hf.reasons import NoticeReason, RejectReason
from echo_hf.tables import POSTS, THREADS, Table, arrow_rows


class ThreadReject(RejectReason):
    """Why a thread does not go on, or gives no sample."""

    NOT_RELEVANT = "not_relevant", "no post of its thread is about images made with the target"
    NOT_ASKED = "not_asked", "no post of its thread was found by a search, so none was scored"
    NOT_SCORED = "not_scored", "no post of its thread passed, and at least one could not be scored"
    NO_SAMPLE = "no_sample", "the model found no sample in the thread"


class ThreadNotice(NoticeReason):
    """Notices about the place of a post in its thread."""

    SELF_PARENT = "self_parent", "the post names itself as its parent; the link is cut"
    CYCLE = "cycle", "replies form a circle; it is cut at its earliest post"


NO_PARENT = -1
THREAD_POSTS_TYPE = THREADS.schema.field("posts").type
SortKey = tuple[bool, int, str]


@dataclass(frozen=True, slots=True)
class ThreadForest:
    """Reply trees in depth-first order."""

    order: list[int] = field(default_factory=list)
    parent: list[int] = field(default_factory=list)
    depth: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    self_parents: list[int] = field(default_factory=list)
    cycles: list[int] = field(default_factory=list)


def build_forest(parents: Sequence[int], moments: Sequence[SortKey]) -> ThreadForest:
    """Order posts into reply trees."""
    forest = ThreadForest()
    cut_parents = list(parents)
    for post, parent in enumerate(parents):
        if post == parent:
            cut_parents[post] = NO_PARENT
            forest.self_parents.append(post)
    for cycle in _find_cycles(cut_parents):
        first = min(cycle, key=moments.__getitem__)
        cut_parents[first] = NO_PARENT
        forest.cycles.append(first)
    children: list[list[int]] = [[] for _ in range(len(cut_parents) + 1)]
    for post in sorted(range(len(cut_parents)), key=moments.__getitem__, reverse=True):
        children[cut_parents[post]].append(post)  # -1: the last list holds the roots
    for root in reversed(children[NO_PARENT]):
        start = len(forest.order)
        forest.starts.append(start)
        pending = [(root, NO_PARENT, 0)]
        while pending:
            post, parent_place, depth = pending.pop()
            place = len(forest.order) - start
            forest.order.append(post)
            forest.parent.append(parent_place)
            forest.depth.append(depth)
            pending.extend((child, place, depth + 1) for child in children[post])
    forest.starts.append(len(forest.order))
    return forest


def _find_cycles(parents: Sequence[int]) -> Iterator[list[int]]:
    visited_in = [0] * len(parents)
    for walk, start in enumerate(range(len(parents)), 1):
        path, post = [], start
        while post != NO_PARENT and not visited_in[post]:
            visited_in[post] = walk
            path.append(post)
            post = parents[post]
        if post != NO_PARENT and visited_in[post] == walk:
            yield path[path.index(post) :]


def find_roots(posts: pa.Table) -> pa.Array:
    """Return the address of each post's root, as `Threads` finds it, without building the trees.

    Args:
        posts: Columns `url`, each once, `parent_url` and `timestamp`, by which cycles are cut.

    Returns:
        As many addresses as posts; that of a post whose parent was never collected is the parent's.
    """
    urls, parents = (posts[name].combine_chunks() for name in ("url", "parent_url"))
    nodes = pc.unique(pa.concat_arrays([urls, parents.drop_null()]))
    node_numbers = np.arange(len(nodes))
    parent_of = node_numbers.copy()
    parent_of[np.flatnonzero(parents.is_valid())] = pc.index_in(parents.drop_null(), nodes)
    roots = _find_topmost(parent_of)
    if (parent_of[roots] != roots).any():
        moments = _compute_moments(posts)
        parents_or_none = np.where(parent_of == node_numbers, NO_PARENT, parent_of)
        for cycle in _find_cycles(parents_or_none.tolist()):
            first = min(cycle, key=moments.__getitem__)
            parent_of[first] = first
        roots = _find_topmost(parent_of)
    return nodes.take(pa.array(roots[: len(urls)]))


def _find_topmost(parent_of: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    for _ in range(len(parent_of).bit_length()):
        parent_of = parent_of[parent_of]  # each step doubles the distance to the post
    return parent_of


@register
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
    after: ClassVar[str | None] = "relevance"
    makes_rows: ClassVar[bool] = True
    inputs: ClassVar[Table] = POSTS
    outputs: ClassVar[Table] = THREADS
    whole: ClassVar[bool] = True

    part_posts: ClassVar[int] = 50_000

    keep: tuple[int, ...] = (4, 5)

    def parts(self, dataset: Dataset) -> Iterator[Sequence[int]] | None:
        """Yield whole trees in their final order, some ten thousand posts at a time."""
        posts = arrow_rows(dataset, ["url", "parent_url", "timestamp"])
        urls = posts["url"].combine_chunks()
        if len(posts) <= self.part_posts or len(pc.unique(urls)) < len(urls):
            return None
        root_of_post = find_roots(posts)
        roots = pc.unique(root_of_post)
        times = posts["timestamp"].combine_chunks().take(pc.index_in(roots, value_set=urls))
        first = pc.sort_indices(pa.table({"timestamp": times, "url": roots}), ORDER)
        tree = pc.index_in(root_of_post, value_set=roots.take(first)).to_numpy()
        rows = np.argsort(tree, kind="stable")
        starts = np.searchsorted(tree[rows], np.arange(len(roots)))
        ends = starts[1:][np.diff(starts // self.part_posts) > 0]
        return (np.sort(part_rows).tolist() for part_rows in np.split(rows, ends))

    def __call__(self, table: pa.Table) -> pa.Table:
        """Join all posts at once; a post may come more than once."""
        collected, _ = merge_posts(table.select(list(POSTS.columns)))
        posts = _add_unknown_parents(collected)
        urls, forest = posts["url"].to_pylist(), _read_forest(posts)
        spans = list(pairwise(forest.starts))

        def check_trees(post_flags: pa.BooleanArray) -> list[bool]:
            """Return for each tree whether a flag holds for one of its posts."""
            if not spans:
                return []
            in_order = post_flags.to_numpy(zero_copy_only=False)[np.asarray(forest.order)]
            holds: list[bool] = np.logical_or.reduceat(in_order, forest.starts[:-1]).tolist()
            return holds

        relevance = posts["relevance"].combine_chunks()
        score = pc.struct_field(relevance, "score")
        is_relevant = check_trees(pc.is_in(score, pa.array(self.keep, pa.int8())))
        was_asked = check_trees(relevance.is_valid())
        unsure = check_trees(pc.and_(relevance.is_valid(), score.is_null()))
        # Rows after the collected posts are parents known only by their address.
        members = [
            [urls[post] for post in forest.order[start:end] if post < collected.num_rows]
            for start, end in spans
        ]
        issues = []
        for tree, keep in enumerate(is_relevant):
            if not keep:
                reason = ThreadReject.NOT_RELEVANT if was_asked[tree] else ThreadReject.NOT_ASKED
                reason = ThreadReject.NOT_SCORED if unsure[tree] else reason
                issues.append(RowIssue(members[tree], reason))
        # A post whose parent was cut off is the root of its tree.
        notice_by_post = dict.fromkeys(forest.self_parents, ThreadNotice.SELF_PARENT)
        notice_by_post |= dict.fromkeys(forest.cycles, ThreadNotice.CYCLE)
        roots = (forest.order[start] for start, _ in spans)
        issues += [
            RowIssue([urls[post]], notice_by_post[post]) for post in roots if post in notice_by_post
        ]
        kept_spans = [span for span, keep in zip(spans, is_relevant, strict=True) if keep]
        kept = _build_trees(posts, forest, kept_spans)
        parents = [urls for urls, keep in zip(members, is_relevant, strict=True) if keep]
        rows = keep_rows(kept, pa.array(parents, pa.list_(pa.string())))
        return pa.concat_tables([rows, issue_rows(THREADS, issues)])

    @classmethod
    def from_config(cls, config: Config, images: ImageStore) -> Self:
        """Return the stage with the scores that the config keeps."""
        del images
        return cls(config.stages.relevance.keep)

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        """Count the posts of the kept trees, and those that were never collected."""
        posts = pc.list_flatten(kept["posts"])
        missing = pc.struct_field(posts, "missing")
        return {"posts": len(posts), "posts_missing": len(posts) - missing.null_count}


def _build_trees(
    posts: pa.Table, forest: ThreadForest, spans: Sequence[tuple[int, int]]
) -> pa.Table:
    """Return one row for each tree."""
    places = np.array([at for start, end in spans for at in range(start, end)], dtype=np.int64)
    offsets = pa.array(np.cumsum([0, *(end - start for start, end in spans)]), pa.int32())
    rows = posts.take(pa.array(np.asarray(forest.order, dtype=np.int64)[places]))
    shape = {"parent": forest.parent, "depth": forest.depth}
    fields = list(THREAD_POSTS_TYPE.value_type)
    arrays = [
        pa.array(np.asarray(shape[field.name], dtype=np.int32)[places])
        if field.name in shape
        else rows[field.name].combine_chunks().cast(field.type)
        for field in fields
    ]
    tree_posts = pa.StructArray.from_arrays(arrays, fields=fields)
    trees = pa.ListArray.from_arrays(offsets, tree_posts).cast(THREAD_POSTS_TYPE)
    roots = rows["url"].combine_chunks().take(offsets[:-1])
    return pa.table([roots, trees], schema=THREADS.schema)


def _add_unknown_parents(posts: pa.Table) -> pa.Table:
    parents = pc.unique(posts["parent_url"].combine_chunks().drop_null())
    unknown = parents.filter(pc.invert(pc.is_in(parents, posts["url"].combine_chunks())))
    empty_columns = {"missing": Missing.NOT_FETCHED.value, "keywords": [], "pictures": []}
    rows = [{"url": url, **empty_columns} for url in unknown.to_pylist()]
    stubs = pa.Table.from_pylist(rows, schema=POSTS.schema)
    return pa.concat_tables([posts, stubs]).combine_chunks()


def _read_forest(posts: pa.Table) -> ThreadForest:
    parents = pc.index_in(posts["parent_url"].combine_chunks(), posts["url"].combine_chunks())
    parents = pc.if_else(posts["parent_url"].is_null().combine_chunks(), None, parents)
    return build_forest(parents.fill_null(NO_PARENT).to_pylist(), _compute_moments(posts))


def _compute_moments(posts: pa.Table) -> list[SortKey]:
    times = posts["timestamp"].cast(pa.int64()).to_pylist()
    urls = posts["url"].to_pylist()
    return [(time is None, time or 0, url) for time, url in zip(times, urls, strict=True)]
