"""The posts and pictures that somebody has, to look up what a release left out."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from echo_hf.apply import run_stage
from echo_hf.collect.collect import Collect
from echo_hf.collect.merge import Merge
from echo_hf.collect.records import read_records
from echo_hf.config_sections import Posts
from echo_hf.context.source_spans import Source, sources_of
from echo_hf.curate.privacy import cleaned_image
from echo_hf.errors import PictureError, SourceError
from echo_hf.image_metadata import without_metadata
from echo_hf.pictures import MOST_BYTES, PictureStore

Post = Mapping[str, Any]


@dataclass(frozen=True)
class Archive:
    """Posts and pictures at hand.

    Attributes:
        table: Rows of `POSTS`, an address once.
        pictures: Their pictures, and others.
        fetched: Digest of the picture that came from an address.
        cleaned: Digests of pictures without metadata by those as posted, null for one that cannot
            be cleaned; empty for a release whose pictures are as posted.
    """

    table: pa.Table
    pictures: PictureStore
    fetched: Mapping[str, str] = field(default_factory=dict)
    cleaned: Mapping[str, str | None] = field(default_factory=dict)

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {url: row for row, url in enumerate(self.table["url"].to_pylist())}

    def post(self, url: str | None) -> Post | None:
        """The post of an address, null when it is not here, or its content is not."""
        row = self._rows.get(url) if url is not None else None
        if row is None:
            return None
        post: Post = self.table.slice(row, 1).to_pylist()[0]
        return None if post["missing"] is not None else post

    def sources(self, urls: Iterable[str]) -> list[Source]:
        """The texts of some posts, as far as they are here."""
        return sources_of(post for url in urls if (post := self.post(url)))

    def has(self, digest: str) -> bool:
        """Whether a picture is here.

        Raises:
            PictureError: That is no digest.
        """
        return self.pictures.path(digest).exists()

    def copies(self, post_url: str | None, url: str | None) -> list[str]:
        """Digests of the pictures that may be the one that a post showed at an address.

        Args:
            post_url: The post.
            url: Where its picture was; null when nobody knows.

        Returns:
            What came from there, else the pictures of the post, as a release may have them.
        """
        post = self.post(post_url)
        shown = [one for one in (post["pictures"] or [] if post else []) if one["sha256"]]
        there = [one["sha256"] for one in shown if url is not None and one["url"] == url]
        fetched = self.fetched.get(url) if url is not None else None
        named = [one for one in (fetched, *there) if one] or [one["sha256"] for one in shown]
        return list(dict.fromkeys(filter(None, (self.cleaned.get(one, one) for one in named))))

    def without_metadata(self) -> Archive:
        """The archive with each picture as a release has it from which metadata was removed."""
        shown = {one["sha256"] for each in self.table["pictures"].to_pylist() for one in each or ()}
        new = {*shown, *self.fetched.values()} - {None, *self.cleaned}
        cleaned = {digest: cleaned_image(digest, self.pictures).sha256 for digest in sorted(new)}
        return replace(self, cleaned={**self.cleaned, **cleaned})


def read_archive(posts: Sequence[Posts], pictures: PictureStore) -> Archive:
    """Reads files of posts as a build does, with the pictures beside them.

    Args:
        posts: The files, and how each is read.
        pictures: Where the pictures go.

    Returns:
        What is there.

    Raises:
        ConfigError: A source is unknown.
        SourceError: A file cannot be read, or holds no post.
    """
    read = run_stage(Collect(pictures), read_records(posts)).dataset
    if not len(read):
        names = ", ".join(repr(str(entry.path or entry.source)) for entry in posts)
        raise SourceError(f"{names} holds no post: expected the posts that the release was made of")
    return Archive(run_stage(Merge(), read).dataset.with_format("arrow")[:], pictures)


def take_in(folder: Path, wanted: Collection[str], pictures: PictureStore, *, strips: bool) -> None:
    """Puts those files of a folder into a store that are wanted, whatever they are called.

    Args:
        folder: A folder of pictures, with folders in it or not.
        wanted: Digests.
        pictures: The store.
        strips: Whether a file may be wanted without its metadata.

    Raises:
        SourceError: There is no such folder.
    """
    if not folder.is_dir():
        raise SourceError(f"no folder {str(folder)!r}: expected one with pictures of the posts")
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.stat().st_size <= MOST_BYTES:
            data = path.read_bytes()
            for one in (data, *(_without_metadata(data) if strips else ())):
                if hashlib.sha256(one).hexdigest() in wanted:
                    pictures.put(one)


def _without_metadata(data: bytes) -> Iterator[bytes]:
    with suppress(PictureError):  # no picture, or one that is wanted as it is or not at all
        yield without_metadata(data).data
