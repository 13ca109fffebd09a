"""The contract of sources, and how they are found by name."""

from __future__ import annotations

import datetime
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from echo_hf._infra.registry import Registry
from echo_hf.config.collection import PLATFORM_MODULES
from echo_hf.reasons import NoticeReason, Reason, RejectReason

if TYPE_CHECKING:
    from echo_hf.config.collection import SourceColumns


class PostReject(RejectReason):
    """Why a record is no post that goes on."""

    NOT_JSON = "not_json", "the line or file is not valid JSON"
    NOT_A_POST = "not_a_post", "the JSON is not a post in the source's format"
    BROKEN_ROW = "broken_row", "the row of the table cannot be read; the detail has its line"
    NO_URL = "no_url", "the post has no usable address"
    OTHER_PLATFORM = "other_platform", "it names X as its platform, and its address is elsewhere"
    SUPERSEDED = "superseded", "another record of the post has a newer text; the detail names it"
    REPOST = "repost", "a pure repost: the original post stands for it"


class PostNotice(NoticeReason):
    """Notices about a post, or about its record."""

    FORGOTTEN = "forgotten", "a post whose removal was asked for; nothing of it is taken in"
    FORGOTTEN_LINK = "forgotten_link", "it answers or quotes a forgotten post, named by a hash"
    BAD_TIMESTAMP = "bad_timestamp", "the date cannot be read; the post stays without one"
    BAD_FIELD = "bad_field", "a field has a value of the wrong kind; what can be read of it is kept"
    UNKNOWN_FIELD = "unknown_field", "a field that the format does not have"
    CUT_NOTE = "cut_note", "the note of an answer is too long: its end is left out, the rest counts"
    BROKEN_IMAGE = "broken_picture", "the image cannot be decoded"
    IMAGE_NOT_FOUND = "picture_not_found", "the image file does not exist"
    IMAGE_WITHOUT_ADDRESS = "picture_without_address", "an image is named, but not where it is"
    REPLIES_NOT_FETCHED = "replies_not_fetched", "the answer lacks replies that it says there are"
    UNNAMED_PARENT = "unnamed_parent", "it answers a post that only its reply tree names"
    UNLISTED = "unlisted", "kept out of searches by its author: its address alone is taken in"
    HIDDEN_BY_AUTHOR = "hidden_by_author", "hidden from the public: its address alone is taken in"
    LABELLED = "labelled", "the platform or the author put labels on the post; the detail has them"
    CLAIMED_TIME = "claimed_time", "its author dates it after the platform, whose time is taken"
    IMAGE_OUTSIDE = "picture_outside", "the image's path leaves the folder of the posts"


class Missing(Reason):
    """Why the content of a post is not there: the values of `posts.missing`."""

    DELETED = "deleted", "removed by its author or the platform"
    PROTECTED = "protected", "the account is private"
    BLOCKED = "blocked", "the account blocks, or is suspended or withheld"
    NOT_FOUND = "not_found", "the platform knows no such post"
    NOT_FETCHED = "not_fetched", "named by another post, never collected"
    REMOVED = "removed", "taken out because somebody asked for it; its address is a hash"


SOURCES: Registry[type[Source], None] = Registry(
    "source", "echo_hf.sources", packages=(__package__, *PLATFORM_MODULES)
)


@dataclass(frozen=True, slots=True)
class PostImage:
    """An image that a post names: a file beside the posts, or an address."""

    path: str | None = None
    url: str | None = None
    alt_text: str | None = None


@dataclass(slots=True)
class Post:
    """A post as a source reads it, with the columns of the posts table.

    `edited` is when its text was last changed; of two texts of one post the newer one stays.
    `unnamed_parent` says that it answers a post whose address was not given: where the answer to
    another question gives it, a crawl asks that.
    """

    url: str
    post_id: str | None = None
    platform: str | None = None
    author: str | None = None
    text: str | None = None
    timestamp: datetime.datetime | None = None
    lang: str | None = None
    keywords: Sequence[str] = ()
    pictures: Sequence[PostImage] = ()
    parent_url: str | None = None
    quoted_url: str | None = None
    engagement: Mapping[str, int | None] | None = None
    missing: str | None = None
    edited: datetime.datetime | None = None
    unnamed_parent: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem with a record, or with a part of it.

    Attributes:
        reason: A `PostReject` when no post comes of it, a `PostNotice` when one does.
        detail: What a person needs to see the cause.
    """

    reason: PostReject | PostNotice
    detail: str


Parsed = Post | Finding


class Source(Protocol):
    """A format of posts.

    `split` takes a file apart into records without judging them; `posts` reads one record. Both
    are pure, and neither raises on bad content. A class may have a `keyword_sign`, a regular
    expression that is found in a record which says what search found it.
    """

    def split(self, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield (place within the file, record as text)."""
        ...

    def posts(self, record: Any, keywords: Sequence[str]) -> Iterator[Parsed]:
        """Yield the posts of a decoded JSON record, and the problems with it.

        Args:
            record: The record, decoded.
            keywords: Search terms of the whole file, for formats that do not say their own.
        """
        ...


@runtime_checkable
class TableSource(Protocol):
    """A source whose files are tables, not lines of text."""

    def records(
        self, path: Path, columns: SourceColumns, *, rows: str | None = None
    ) -> Iterator[tuple[str, str]]:
        """Yield (place within the file, record as text).

        Args:
            path: The table.
            columns: Which column is what.
            rows: The key of the rows in a JSON document, with dots for keys below keys; asked for
                only where a config names it.
        """
        ...


SourceT = TypeVar("SourceT", bound=type[Source])


def register(name: str) -> Callable[[SourceT], SourceT]:
    """Register a source under a name; other packages use the `echo_hf.sources` entry points.

    Args:
        name: The `source` that a config names it by.

    Returns:
        A decorator for a class without constructor arguments.
    """
    return SOURCES.register(name)


def make_source(name: str) -> Source:
    return SOURCES.find(name)()


def number_lines(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each line that is not blank, with its number as its place."""
    for number, line in enumerate(lines, 1):
        # Concatenated files have byte order marks inside.
        text = line.strip().removeprefix("\ufeff")
        if text:
            yield f":{number}", text


def split_json(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield one JSON document per line; or the whole file, if its first line alone is not JSON."""

    def is_json(text: str) -> bool:
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return False
        return True

    numbered = number_lines(lines)
    for place, text in numbered:
        if is_json(text):
            yield place, text
            yield from numbered
            return
        documents = [(place, text), *numbered]
        whole = "\n".join(text for _, text in documents)
        yield from [(place, whole)] if is_json(whole) else documents


def read_page_posts(body: str, source: Source, keywords: Sequence[str] = ()) -> list[Post]:
    """Return the posts of a page, as far as they can be read."""
    posts: list[Post] = []
    for _, record in source.split(io.StringIO(body, newline="\n")):
        try:
            decoded = json.loads(record)
        except (ValueError, RecursionError):
            decoded = None
        posts += [parsed for parsed in source.posts(decoded, keywords) if isinstance(parsed, Post)]
    return posts
