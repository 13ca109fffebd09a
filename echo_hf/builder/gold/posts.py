"""Read the posts that gold names, and refuse gold that contradicts them, or itself."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from datasets import Dataset

from echo_hf.builder.gold.folder import (
    ExtractLine,
    Gold,
    GoldLine,
    ImagePlace,
    ImageRole,
    RelevanceLine,
    RolesLine,
    SampleLine,
    ScreenshotLine,
)
from echo_hf.collect.collect import Collect, PostMerge
from echo_hf.collect.records import read_records
from echo_hf.collect.sources.base import Post, PostImage, make_source
from echo_hf.config.checks import format_value
from echo_hf.config.sections import PostsSource
from echo_hf.errors import GoldError
from echo_hf.images.store import MAX_IMAGE_BYTES, ImageStore
from echo_hf.pipeline.result import StageResult
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.samples.spans import MIN_SPAN_TOKENS, SpanIndex
from echo_hf.samples.threads import Threads
from echo_hf.tables import POSTS, Row, Table

Digests = tuple[str | None, ...]
KEPT_SCORE = 5


def make_dataset(table: Table, rows: Iterable[Row]) -> Dataset:
    return Dataset(pa.Table.from_pylist(list(rows), schema=table.features.arrow_schema))


def index_texts(posts: Iterable[Row]) -> SpanIndex:
    """Index the texts of posts and the descriptions of their images."""
    rows = list(posts)
    descriptions = (image["alt_text"] or "" for post in rows for image in post["pictures"] or ())
    return SpanIndex([*(post["text"] or "" for post in rows), *descriptions])


@dataclass(frozen=True)
class GoldPosts:
    """Posts and threads, and the digests of each post's images in the order of its file."""

    read: StageResult
    posts: Sequence[Row]
    threads: Sequence[Row]
    images: Mapping[str, Digests]

    @cached_property
    def root_of(self) -> Mapping[str, str]:
        """The root of each post, also of a missing one."""
        return {post["url"]: row["root_url"] for row in self.threads for post in row["posts"]}

    def digest(self, image: ImagePlace | ScreenshotLine) -> str | None:
        return self.images[image.post_url][image.index]


def read_gold_posts(
    entries: Sequence[PostsSource], addresses: Iterable[str], images: ImageStore
) -> GoldPosts:
    records = read_records(entries)
    parsed = list(_parse_records(records))
    # Select the needed records first, so that other images are not copied.
    connected = _find_connected([post for posts in parsed for post in posts], addresses)
    rows = [
        row
        for row, posts in enumerate(parsed)
        # Keep records that cannot be parsed: `Collect` reports them.
        if not posts or any(post.url in connected for post in posts)
    ]
    selected = records.select(rows)
    collected = run_stage(Collect(images), selected)
    posts = run_stage(PostMerge(), collected.dataset).dataset.to_list()
    # Keep all threads, whatever the scores of their posts.
    scored_posts = ({**row, "relevance": {"score": KEPT_SCORE, "note": None}} for row in posts)
    threads = run_stage(Threads((KEPT_SCORE,)), make_dataset(POSTS, scored_posts)).dataset.to_list()
    images_of = {row["url"]: row["pictures"] or () for row in posts}
    digests_of: dict[str, Digests] = {}
    for folder, row in zip(selected["folder"], rows, strict=True):
        for post in parsed[row]:
            stored = images_of.get(post.url, ())
            digests = tuple(_digest(image, folder, stored) for image in post.pictures)
            # Of several records of a post, take the one with the most known images.
            digests_of[post.url] = max(
                digests_of.get(post.url, ()),
                digests,
                key=lambda candidate: (len(candidate) - candidate.count(None), len(candidate)),
            )
    return GoldPosts(collected, posts, threads, digests_of)


def _parse_records(records: Dataset) -> Iterator[list[Post]]:
    sources = {name: make_source(name) for name in records.unique("source")}
    for record in records:
        try:
            value = json.loads(record["record"])
            parsed_posts = sources[record["source"]].posts(value, record["keywords"] or ())
            yield [post for post in parsed_posts if isinstance(post, Post)]
        except (ValueError, RecursionError):
            yield []


def _find_connected(posts: Iterable[Post], addresses: Iterable[str]) -> set[str]:
    neighbors: dict[str, set[str]] = {}
    for post in posts:
        if post.parent_url:
            neighbors.setdefault(post.url, set()).add(post.parent_url)
            neighbors.setdefault(post.parent_url, set()).add(post.url)
    connected: set[str] = set()
    pending = list(addresses)
    while pending:
        url = pending.pop()
        if url not in connected:
            connected.add(url)
            pending.extend(neighbors.get(url, ()))
    return connected


def _digest(image: PostImage, folder: str, stored: Sequence[Row]) -> str | None:
    """Return the digest of an image that `Collect` has stored, from its file or by its address."""
    try:
        file = (Path(folder) / (image.path or "")).resolve()
        is_inside = file.is_relative_to(Path(folder).resolve()) and file.is_file()
        if is_inside and file.stat().st_size <= MAX_IMAGE_BYTES:
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            if any(row["sha256"] == digest for row in stored):
                return digest
    except (OSError, ValueError, RuntimeError):  # a NUL in the path; a symbolic link to itself
        pass
    return next((row["sha256"] for row in stored if image.url and row["url"] == image.url), None)


def check_agreement(gold: Gold, posts: GoldPosts, posts_source: str) -> None:
    """Refuse gold that contradicts the posts or itself, with the first mistake in one line."""
    missing: dict[str, GoldLine] = {}
    for line in gold.iterate_lines():
        # A missing root has no text to score.
        known_urls = posts.images if isinstance(line, RelevanceLine) else posts.root_of
        missing.update((url, line) for url in line.addresses if url not in known_urls)
    for url, line in missing.items():
        others_text = f", nor are {len(missing) - 1} others" if len(missing) > 1 else ""
        problem = f"{url!r} is not in the posts ({posts_source}){others_text}"
        raise _error(line, problem, "addresses of posts that stand there")
    first_line_of: dict[str, GoldLine] = {}
    for line in gold.iterate_lines():
        root = posts.root_of[line.key[0]]
        if isinstance(line, ExtractLine | SampleLine) and root != line.root_url:
            problem = f"root_url {line.root_url!r} answers another post"
            raise _error(line, problem, f"the root of its thread, {root!r}")
        for url in line.addresses:
            if (other_root := posts.root_of[url]) != root:
                problem = f"{url!r} belongs to the thread of {other_root!r}"
                raise _error(line, problem, f"posts of {root!r}")
        if (other := first_line_of.setdefault(root, line)).half != line.half:
            problem = (
                f"half is {line.half!r}, but {other.half!r} in {other.place}, of the same thread"
            )
            raise _error(line, problem, "one half (without one a line is 'held_out')")
    _check_extract(gold["extract"], posts)
    _check_roles(gold["roles"], posts)
    screenshots = [image for line in gold["roles"] for group in line.screenshots for image in group]
    places = {(image.post_url, image.index) for image in screenshots}
    for line in gold["screenshots"]:
        _check_index(line, line, posts)
        if "roles" in gold and (line.post_url, line.index) not in places:
            problem = f"{_name_image(line)} is not a conversation or collage in roles.jsonl"
            raise _error(line, problem, "one that is marked there")
    if "extract" in gold:
        _check_samples(gold)


def _error(line: GoldLine, problem: str, expected: str) -> GoldError:
    return GoldError(f"{line.place}: {problem}: expected {expected}")


def _name_image(image: ImagePlace | ScreenshotLine) -> str:
    return f"image {image.index} of {image.post_url!r}"


def _check_index(line: GoldLine, image: ImagePlace | ScreenshotLine, posts: GoldPosts) -> None:
    count = len(posts.images.get(image.post_url, ()))
    if image.index >= count:
        raise _error(line, f"{_name_image(image)}, which has {count}", "a position from 0 on")


def _check_extract(lines: Sequence[ExtractLine], posts: GoldPosts) -> None:
    threads = {row["root_url"]: row["posts"] for row in posts.threads}
    for line in lines:
        url_counts = Counter(url for sample in line.samples for url in sample.feedback_urls)
        for url, count in url_counts.items():
            if count > 1:
                raise _error(line, f"{url!r} is given as feedback twice", "it once in a thread")
        span_index = index_texts(threads[line.root_url])
        for sample in line.samples:
            if not span_index.contains(sample.prompt):
                problem = f"prompt {format_value(sample.prompt)} stands in no post of its thread"
                pieces = f"pieces of at least {MIN_SPAN_TOKENS} words joined by a space"
                raise _error(line, problem, f"words copied from there, or {pieces}")


def _check_roles(lines: Sequence[RolesLine], posts: GoldPosts) -> None:
    for line in lines:
        for image in line.all_images:
            _check_index(line, image, posts)

    def identify_file(image: ImagePlace) -> tuple[str, str | int]:
        # A post may have the same file twice, for which one line is enough.
        return image.post_url, posts.digest(image) or image.index

    first: dict[tuple[str, str | int], tuple[ImageRole, RolesLine]] = {}
    for line in lines:
        for marked in line.pictures:
            old, other = first.setdefault(identify_file(marked), (marked, line))
            if old.role != marked.role or (old.index == marked.index and other is not line):
                earlier = f"image {old.index} of it is {old.role!r} in {other.place}"
                problem = f"{_name_image(marked)} is {marked.role!r}, and {earlier}"
                raise _error(line, problem, "each image in one line, with one role")
    for line in lines:
        for filling in line.filled:
            output_image, _ = first.get(identify_file(filling.output), (None, line))
            if output_image is None or output_image.role != "output":
                role = repr(output_image.role) if output_image else "without a role"
                problem = f"filled has {_name_image(filling.output)}, which is {role}"
                raise _error(line, problem, "one that pictures has as 'output'")


def _check_samples(gold: Gold) -> None:
    extract = gold["extract"]
    prompts = {line.root_url: [sample.prompt for sample in line.samples] for line in extract}
    known_keys = {key for line in extract for key in line.keys}
    for line in (*gold["roles"], *gold["safety"], *gold["tasks"]):
        if line.key not in known_keys:
            problem = f"prompt {format_value(line.prompt)} is of no sample of that thread"
            known_prompts = format_value(prompts.get(line.root_url, []))
            raise _error(line, problem, f"one that extract.jsonl has, {known_prompts}")
    samples = [sample for line in extract for sample in line.samples]
    listed = {url for sample in samples for url in sample.feedback_urls}
    for line in gold["feedback"]:
        if line.post_url not in listed:
            problem = f"{line.post_url!r} is feedback of no sample in extract.jsonl"
            raise _error(line, problem, "a post that is listed there")
