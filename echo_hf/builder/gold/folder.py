"""Read a gold folder and the posts that it speaks of; the first mistake is one line."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import Dataset
from pydantic import ValidationError

from echo_hf.builder.gold.lines import (
    ExtractLine,
    FeedbackLine,
    Line,
    RelevanceLine,
    RolesLine,
    SafetyLine,
    ScreenshotLine,
    TaskLine,
)
from echo_hf.collect.collect import Collect, Merge
from echo_hf.collect.records import read_records
from echo_hf.collect.sources.base import Picture, Post, make_source
from echo_hf.config.checks import first_error, shown_value
from echo_hf.config.sections import Posts
from echo_hf.errors import GoldError
from echo_hf.images.store import MOST_BYTES, PictureStore
from echo_hf.pipeline.result import StageResult
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.samples.threads import Threads
from echo_hf.tables import POSTS

LINES: Mapping[str, type[Line]] = {
    "relevance": RelevanceLine,
    "extract": ExtractLine,
    "roles": RolesLine,
    "screenshots": ScreenshotLine,
    "safety": SafetyLine,
    "feedback": FeedbackLine,
    "tasks": TaskLine,
}


@dataclass(frozen=True)
class Gold:
    """The lines of a gold folder; a file that is not there is null."""

    relevance: tuple[RelevanceLine, ...] | None = None
    extract: tuple[ExtractLine, ...] | None = None
    roles: tuple[RolesLine, ...] | None = None
    screenshots: tuple[ScreenshotLine, ...] | None = None
    safety: tuple[SafetyLine, ...] | None = None
    feedback: tuple[FeedbackLine, ...] | None = None
    tasks: tuple[TaskLine, ...] | None = None

    @property
    def lines(self) -> dict[str, tuple[Any, ...]]:
        """The lines of each file that is there, by its name."""
        every = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: lines for name, lines in every.items() if lines is not None}

    def of(self, half: str) -> Gold:
        """The lines of one half, or of `all`."""
        if half == "all":
            return self
        chosen = {
            name: tuple(line for line in lines if line.half == half)
            for name, lines in self.lines.items()
        }
        return replace(self, **chosen)


POSTS_FILE = "posts.jsonl"
NEAR = 0.75


def read_gold(folder: Path | str) -> Gold:
    """Reads what people wrote down about posts."""
    folder = Path(folder)
    if not folder.is_dir():
        raise GoldError(f"no folder {str(folder)!r}: expected one with {_names()}")
    _refuse_misspelt(folder)
    files = {name: folder / f"{name}.jsonl" for name in LINES}
    found = {name: path for name, path in files.items() if path.exists()}
    if not found:
        raise GoldError(f"{str(folder)!r} holds no gold: expected at least one of {_names()}")
    # By name, because each file has a type of its own.
    lines: dict[str, Any] = {name: _lines(path, LINES[name]) for name, path in found.items()}
    return Gold(**lines)


def _names() -> str:
    return ", ".join(f"{name}.jsonl" for name in LINES)


def _refuse_misspelt(folder: Path) -> None:
    known = (*LINES, "posts")
    for path in sorted(folder.glob("*.jsonl")):
        near = difflib.get_close_matches(path.stem, known, n=1, cutoff=NEAR)
        if path.stem not in known and near:
            raise GoldError(
                f"{str(path)!r} is no file of a gold folder; did you mean '{near[0]}.jsonl'? "
                "rename it, or move it elsewhere"
            )


def _lines(path: Path, kind: type[Line]) -> tuple[Line, ...]:
    seen: dict[tuple[str, ...], Line] = {}
    for number, text in enumerate(_text(path).split("\n"), 1):
        if not text.strip():
            continue
        line = _line(text, f"{path}:{number}", kind)
        first = seen.setdefault(line.key, line)
        if first is not line:
            told = " with prompt ".join(shown_value(part) for part in line.key)
            raise GoldError(f"{line.place}: {told} stands in {first.place} too: keep one of them")
    return tuple(seen.values())


def _text(path: Path) -> str:
    if not path.is_file():  # to read a pipe is to wait for ever
        raise GoldError(f"{str(path)!r} is no regular file: expected one JSON object a line")
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise GoldError(f"{path}: byte {error.start} is no UTF-8: save it as UTF-8") from None


def _line(text: str, place: str, kind: type[Line]) -> Line:
    try:
        data = json.loads(text, object_pairs_hook=partial(_object, place))
    except (ValueError, RecursionError) as error:
        raise GoldError(f"{place}: {shown_value(text)} is not JSON ({error})") from None
    if not isinstance(data, dict):
        raise GoldError(f"{place}: {shown_value(data)} is no object: expected {_keys(kind)}")
    try:
        line = kind.model_validate(data)
    except ValidationError as error:
        raise GoldError(first_error(error, place, kind)) from None
    line._place = place
    return line


def _object(place: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = Counter(name for name, _ in pairs)
    twice = next((name for name, count in names.items() if count > 1), None)
    if twice is not None:
        raise GoldError(f"{place}: key {shown_value(twice)} is given twice: keep one of them")
    return dict(pairs)


def _keys(kind: type[Line]) -> str:
    return "{" + ", ".join(f'"{name}": ...' for name in kind.model_fields) + "}"


Digests = tuple[str | None, ...]


def placed_pictures(
    records: Iterable[tuple[str, Post]], collected: Mapping[str, Sequence[Mapping[str, Any]]]
) -> dict[str, Digests]:
    """The pictures of posts in the order of their file."""
    placed: dict[str, Digests] = {}
    for folder, post in records:
        known = collected.get(post.url, ())
        digests = tuple(_digest(one, folder, known) for one in post.pictures)
        # A record whose text a newer one replaces has pictures that are not the post's any more.
        placed[post.url] = max(placed.get(post.url, ()), digests, key=_found)
    return placed


def _found(digests: Digests) -> tuple[int, int]:
    return len(digests) - digests.count(None), len(digests)


def _digest(picture: Picture, folder: str, known: Sequence[Mapping[str, Any]]) -> str | None:
    digests = {one["sha256"] for one in known}
    if picture.path and (found := _digest_of_file(Path(folder), picture.path)) in digests:
        return found
    by_address = {one["url"]: one["sha256"] for one in known if one["url"]}
    return by_address.get(picture.url) if picture.url else None


def _digest_of_file(folder: Path, path: str) -> str | None:
    try:
        file = (folder / path).resolve()
        inside = file.is_relative_to(folder.resolve()) and file.is_file()
        if not inside or file.stat().st_size > MOST_BYTES:
            return None
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except (OSError, ValueError, RuntimeError):  # a NUL in the path; a link that leads to itself
        return None


KEEP = 5


@dataclass(frozen=True)
class GoldPosts:
    """Posts and threads."""

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
    """Reads the posts that are named, and all others of their threads."""
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
