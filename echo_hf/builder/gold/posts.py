"""Read the posts that gold speaks of, and refuse gold that does not fit them, or itself."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import Dataset

from echo_hf.builder.gold.folder import (
    ExtractLine,
    Gold,
    ImageAt,
    ImageRole,
    Line,
    RelevanceLine,
    RolesLine,
    SampleLine,
    ScreenshotLine,
)
from echo_hf.collect.collect import Collect, Merge
from echo_hf.collect.records import read_records
from echo_hf.collect.sources.base import Post, PostImage, make_source
from echo_hf.config.checks import shown_value
from echo_hf.config.sections import Posts
from echo_hf.errors import GoldError
from echo_hf.images.store import MOST_BYTES, ImageStore
from echo_hf.pipeline.result import StageResult
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.samples.spans import SHORTEST_SPAN, SpanIndex
from echo_hf.samples.threads import Threads
from echo_hf.tables import POSTS, Table

Row = Mapping[str, Any]
Digests = tuple[str | None, ...]
KEEP = 5


def dataset(table: Table, rows: Iterable[Row]) -> Dataset:
    return Dataset(pa.Table.from_pylist(list(rows), schema=table.features.arrow_schema))


def written_in(posts: Iterable[Row]) -> SpanIndex:
    """What people wrote in posts and in the descriptions of their images."""
    rows = list(posts)
    described = (one["alt_text"] or "" for post in rows for one in post["pictures"] or ())
    return SpanIndex([*(post["text"] or "" for post in rows), *described])


@dataclass(frozen=True)
class GoldPosts:
    """Posts and threads, and the digests of each post's images in the order of its file."""

    read: StageResult
    posts: Sequence[Row]
    threads: Sequence[Row]
    images: Mapping[str, Digests]

    @cached_property
    def root_of(self) -> Mapping[str, str]:
        """The root of each post, that of a missing one included."""
        return {post["url"]: row["root_url"] for row in self.threads for post in row["posts"]}

    def digest(self, image: ImageAt | ScreenshotLine) -> str | None:
        return self.images[image.post_url][image.index]


def read_posts(entries: Sequence[Posts], addresses: Iterable[str], images: ImageStore) -> GoldPosts:
    records = read_records(entries)
    parsed = list(_parsed(records))
    # The images of a large collection need not be copied to read a hundred threads of it.
    wanted = _connected([post for some in parsed for post in some], addresses)
    rows = [
        row
        for row, some in enumerate(parsed)
        # What cannot be read at all is told by `Collect`.
        if not some or any(post.url in wanted for post in some)
    ]
    near = records.select(rows)
    read = run_stage(Collect(images), near)
    posts = run_stage(Merge(), read.dataset).dataset.to_list()
    # All threads are wanted, whatever their posts were scored.
    scored = ({**row, "relevance": {"score": KEEP, "note": None}} for row in posts)
    threads = run_stage(Threads((KEEP,)), dataset(POSTS, scored)).dataset.to_list()
    known = {row["url"]: row["pictures"] or () for row in posts}
    placed: dict[str, Digests] = {}
    for folder, row in zip(near["folder"], rows, strict=True):
        for post in parsed[row]:
            digests = tuple(_digest(one, folder, known.get(post.url, ())) for one in post.pictures)
            # A record whose text a newer one replaces has images that are no more the post's.
            placed[post.url] = max(
                placed.get(post.url, ()),
                digests,
                key=lambda some: (len(some) - some.count(None), len(some)),
            )
    return GoldPosts(read, posts, threads, placed)


def _parsed(records: Dataset) -> Iterator[list[Post]]:
    sources = {name: make_source(name) for name in records.unique("source")}
    for record in records:
        try:
            value = json.loads(record["record"])
            every = sources[record["source"]].posts(value, record["keywords"] or ())
            yield [one for one in every if isinstance(one, Post)]
        except (ValueError, RecursionError):
            yield []


def _connected(posts: Iterable[Post], addresses: Iterable[str]) -> set[str]:
    beside: dict[str, set[str]] = {}
    for post in posts:
        if post.parent_url:
            beside.setdefault(post.url, set()).add(post.parent_url)
            beside.setdefault(post.parent_url, set()).add(post.url)
    found: set[str] = set()
    waiting = list(addresses)
    while waiting:
        url = waiting.pop()
        if url not in found:
            found.add(url)
            waiting.extend(beside.get(url, ()))
    return found


def _digest(image: PostImage, folder: str, known: Sequence[Row]) -> str | None:
    """The digest of an image that `Collect` has taken, from its file or by its address."""
    try:
        file = (Path(folder) / (image.path or "")).resolve()
        is_inside = file.is_relative_to(Path(folder).resolve()) and file.is_file()
        if is_inside and file.stat().st_size <= MOST_BYTES:
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            if any(one["sha256"] == digest for one in known):
                return digest
    except (OSError, ValueError, RuntimeError):  # a NUL in the path; a link that leads to itself
        pass
    return next((one["sha256"] for one in known if image.url and one["url"] == image.url), None)


def check_agreement(gold: Gold, posts: GoldPosts, where: str) -> None:
    """Refuses gold that does not fit the posts, or itself: the first mistake, in one line."""
    missing: dict[str, Line] = {}
    for line in gold.every():
        # A missing root has an address and nothing to score.
        known = posts.images if isinstance(line, RelevanceLine) else posts.root_of
        missing.update((url, line) for url in line.addresses if url not in known)
    for url, line in missing.items():
        more = f", nor are {len(missing) - 1} others" if len(missing) > 1 else ""
        said = f"{url!r} is not in the posts ({where}){more}"
        raise _wrong(line, said, "addresses of posts that stand there")
    half_of: dict[str, Line] = {}
    for line in gold.every():
        root = posts.root_of[line.key[0]]
        if isinstance(line, ExtractLine | SampleLine) and root != line.root_url:
            said = f"root_url {line.root_url!r} answers another post"
            raise _wrong(line, said, f"the root of its thread, {root!r}")
        for url in line.addresses:
            if (other_root := posts.root_of[url]) != root:
                said = f"{url!r} belongs to the thread of {other_root!r}"
                raise _wrong(line, said, f"posts of {root!r}")
        if (other := half_of.setdefault(root, line)).half != line.half:
            said = f"half is {line.half!r}, but {other.half!r} in {other.place}, of the same thread"
            raise _wrong(line, said, "one half (without one a line is 'held_out')")
    _check_extract(gold["extract"], posts)
    _check_roles(gold["roles"], posts)
    shown = [one for line in gold["roles"] for some in line.screenshots for one in some]
    places = {(one.post_url, one.index) for one in shown}
    for line in gold["screenshots"]:
        _check_index(line, line, posts)
        if "roles" in gold and (line.post_url, line.index) not in places:
            said = f"{_told(line)} is not a conversation or collage in roles.jsonl"
            raise _wrong(line, said, "one that is marked there")
    if "extract" in gold:
        _check_samples(gold)


def _wrong(line: Line, said: str, expected: str) -> GoldError:
    return GoldError(f"{line.place}: {said}: expected {expected}")


def _told(image: ImageAt | ScreenshotLine) -> str:
    return f"image {image.index} of {image.post_url!r}"


def _check_index(line: Line, image: ImageAt | ScreenshotLine, posts: GoldPosts) -> None:
    count = len(posts.images.get(image.post_url, ()))
    if image.index >= count:
        raise _wrong(line, f"{_told(image)}, which has {count}", "a position from 0 on")


def _check_extract(lines: Sequence[ExtractLine], posts: GoldPosts) -> None:
    threads = {row["root_url"]: row["posts"] for row in posts.threads}
    for line in lines:
        heard = Counter(url for sample in line.samples for url in sample.heard)
        for url, count in heard.items():
            if count > 1:
                raise _wrong(line, f"{url!r} is given as feedback twice", "it once in a thread")
        written = written_in(threads[line.root_url])
        for sample in line.samples:
            if not written.holds(sample.prompt):
                said = f"prompt {shown_value(sample.prompt)} stands in no post of its thread"
                pieces = f"pieces of at least {SHORTEST_SPAN} words joined by a space"
                raise _wrong(line, said, f"words copied from there, or {pieces}")


def _check_roles(lines: Sequence[RolesLine], posts: GoldPosts) -> None:
    for line in lines:
        for image in line.named:
            _check_index(line, image, posts)

    def file(image: ImageAt) -> tuple[str, str | int]:
        # A post may show the same file twice: it is looked at once, and one line is enough.
        return image.post_url, posts.digest(image) or image.index

    first: dict[tuple[str, str | int], tuple[ImageRole, RolesLine]] = {}
    for line in lines:
        for one in line.pictures:
            known, other = first.setdefault(file(one), (one, line))
            if known.role != one.role or (known.index == one.index and other is not line):
                before = f"image {known.index} of it is {known.role!r} in {other.place}"
                said = f"{_told(one)} is {one.role!r}, and {before}"
                raise _wrong(line, said, "each image in one line, with one role")
    for line in lines:
        for filling in line.filled:
            shown, _ = first.get(file(filling.output), (None, line))
            if shown is None or shown.role != "output":
                role = repr(shown.role) if shown else "without a role"
                said = f"filled has {_told(filling.output)}, which is {role}"
                raise _wrong(line, said, "one that pictures has as 'output'")


def _check_samples(gold: Gold) -> None:
    prompts = {line.root_url: [one.prompt for one in line.samples] for line in gold["extract"]}
    known = {key for line in gold["extract"] for key in line.keys}
    for line in (*gold["roles"], *gold["safety"], *gold["tasks"]):
        if line.key not in known:
            said = f"prompt {shown_value(line.prompt)} is of no sample of that thread"
            there = shown_value(prompts.get(line.root_url, []))
            raise _wrong(line, said, f"one that extract.jsonl has, {there}")
    listed = {url for line in gold["extract"] for sample in line.samples for url in sample.heard}
    for line in gold["feedback"]:
        if line.post_url not in listed:
            said = f"{line.post_url!r} is feedback of no sample in extract.jsonl"
            raise _wrong(line, said, "a post that is listed there")
