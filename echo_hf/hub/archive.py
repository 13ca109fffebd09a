"""Posts and images that somebody has, and samples rebuilt from them."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from echo_hf.collect.collect import Collect, Merge
from echo_hf.collect.records import read_records
from echo_hf.config.sections import Posts
from echo_hf.curate.privacy import cleaned_image
from echo_hf.curate.provenance import (
    INPUT,
    OUTPUT,
    SCREENSHOT,
    Quote,
    ValuePath,
    prompt_source,
    quotes_in,
    with_texts,
)
from echo_hf.errors import ImageError, SourceError, SpanError
from echo_hf.hub.dehydrate import distance, size_in
from echo_hf.hub.redistribution import images_in
from echo_hf.images.decode import BadImageError
from echo_hf.images.metadata import without_metadata
from echo_hf.images.store import MOST_BYTES, ImageStore
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.reasons import Match
from echo_hf.samples.boxes import cut, upright
from echo_hf.samples.sample import sample_digest
from echo_hf.samples.spans import Source, sources_of, spans_from, text_digest, text_of

Post = Mapping[str, Any]


@dataclass(frozen=True)
class Archive:
    table: pa.Table
    images: ImageStore
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
        return sources_of(post for url in urls if (post := self.post(url)))

    def has(self, digest: str) -> bool:
        return self.images.path(digest).exists()

    def copies(self, post_url: str | None, url: str | None) -> list[str]:
        """Digests of the images that may be the one that a post showed at an address."""
        post = self.post(post_url)
        shown = [one for one in (post["pictures"] or [] if post else []) if one["sha256"]]
        there = [one["sha256"] for one in shown if url is not None and one["url"] == url]
        fetched = self.fetched.get(url) if url is not None else None
        named = [one for one in (fetched, *there) if one] or [one["sha256"] for one in shown]
        return list(dict.fromkeys(filter(None, (self.cleaned.get(one, one) for one in named))))

    def without_metadata(self) -> Archive:
        shown = {one["sha256"] for each in self.table["pictures"].to_pylist() for one in each or ()}
        new = {*shown, *self.fetched.values()} - {None, *self.cleaned}
        cleaned = {digest: cleaned_image(digest, self.images).sha256 for digest in sorted(new)}
        return replace(self, cleaned={**self.cleaned, **cleaned})


def read_archive(posts: Sequence[Posts], images: ImageStore) -> Archive:
    """Reads files of posts as a build does, with the images beside them."""
    read = run_stage(Collect(images), read_records(posts)).dataset
    if not len(read):
        names = ", ".join(repr(str(entry.path or entry.source)) for entry in posts)
        raise SourceError(f"{names} holds no post: expected the posts that the release was made of")
    return Archive(run_stage(Merge(), read).dataset.with_format("arrow")[:], images)


def take_in(folder: Path, wanted: Collection[str], images: ImageStore, *, strips: bool) -> None:
    """Puts those files of a folder into a store that are wanted, whatever they are called."""
    if not folder.is_dir():
        raise SourceError(f"no folder {str(folder)!r}: expected one with images of the posts")
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.stat().st_size <= MOST_BYTES:
            data = path.read_bytes()
            for one in (data, *(_without_metadata(data) if strips else ())):
                if hashlib.sha256(one).hexdigest() in wanted:
                    images.put(one)


def _without_metadata(data: bytes) -> Iterator[bytes]:
    with suppress(ImageError):  # no image, or one that is wanted as it is or not at all
        yield without_metadata(data).data


Entry = Mapping[str, Any]


class Rebuilt(NamedTuple):
    value: str | None
    match: Match
    detail: str = ""


def rebuilt_text(
    spans: Iterable[Any] | None,
    sha256: str | None,
    archive: Archive,
    sources: Sequence[Source] = (),
) -> Rebuilt:
    if spans is None or sha256 is None:
        return Rebuilt(None, Match.MISSING, "nobody noted where it stands")
    try:
        pieces = spans_from(spans)
        if not pieces and sha256 != text_digest(""):
            return Rebuilt(None, Match.MISSING, "no words of posts: run the model again for it")
        urls = list(dict.fromkeys(one.post_url for one in pieces if one.post_url is not None))
        lacking = next((url for url in urls if archive.post(url) is None), None)
        if lacking is not None:
            return Rebuilt(None, Match.MISSING, f"no post {lacking}")
        text = text_of(pieces, [*sources, *archive.sources(urls)])
    except SpanError as error:
        return Rebuilt(None, Match.DIFFERENT, str(error))
    if text_digest(text) != sha256:
        return Rebuilt(None, Match.DIFFERENT, "other words stand there now")
    return Rebuilt(text, Match.EXACT)


def rebuilt_images(
    entries: Sequence[Entry], archive: Archive, at_hand: Sequence[str] = ()
) -> list[Rebuilt]:
    """Finds the images of a sample, and cuts out again what was cut out."""
    found: dict[int, Rebuilt] = {}
    # Screenshots come before what is cut out of them.
    for number in sorted(range(len(entries)), key=lambda number: entries[number]["of"] is not None):
        entry = entries[number]
        shots = {entries[one]["sha256"]: shot for one, shot in found.items()}
        try:
            found[number] = _image(entry, entries, archive, at_hand, shots)
        except (ImageError, SpanError) as error:
            found[number] = Rebuilt(None, Match.DIFFERENT, str(error))
    return [found[number] for number in range(len(entries))]


def _image(
    entry: Entry,
    entries: Sequence[Entry],
    archive: Archive,
    at_hand: Sequence[str],
    shots: Mapping[str, Rebuilt],
) -> Rebuilt:
    if entry["sha256"] is None:
        return Rebuilt(None, Match.MISSING, "no digest was noted")
    if archive.has(entry["sha256"]):
        return Rebuilt(entry["sha256"], Match.EXACT)
    if entry["of"] is not None:
        return _crop(entry, archive, shots.get(entry["of"]), _signature(entry["of"], entries))
    others = {one["sha256"] for one in entries}
    copies = [one for one in archive.copies(entry["post_url"], entry["url"]) if one not in others]
    likely = [*copies, *(one for one in at_hand if one not in others)]
    return _nearest(entry["signature"], likely, archive) or _none(entry, bool(copies), archive)


def _none(entry: Entry, has_others: bool, archive: Archive) -> Rebuilt:
    if has_others:
        return Rebuilt(None, Match.DIFFERENT, f"{entry['post_url']} shows another image")
    if archive.post(entry["post_url"]) is None:
        return Rebuilt(None, Match.MISSING, f"no post {entry['post_url']}")
    return Rebuilt(None, Match.MISSING, f"no image of {entry['post_url']} is available")


def _nearest(signature: str | None, digests: Iterable[str], archive: Archive) -> Rebuilt | None:
    """The copy that is nearest to the image: the edited one may be beside it."""
    if signature is None:
        return None
    near: dict[str, float] = {}
    for digest in digests:
        with suppress(BadImageError):  # what cannot be shown is nobody's copy
            levels = distance(archive.images.path(digest), signature)
            near |= {} if levels is None else {digest: levels}
    return Rebuilt(min(near, key=lambda one: near[one]), Match.SAME_IMAGE) if near else None


def _crop(
    entry: Entry, archive: Archive, shot: Rebuilt | None, shot_signature: str | None
) -> Rebuilt:
    if shot is None or shot.value is None:
        match = Match.MISSING if shot is None else shot.match
        return Rebuilt(None, match, f"its screenshot {entry['of']} stays left out")
    image = upright(archive.images.open(shot.value))
    if shot.match is not Match.EXACT and shot_signature:
        size = size_in(shot_signature)
        if size != image.size:
            return Rebuilt(None, Match.DIFFERENT, f"its screenshot was of {size[0]} x {size[1]}")
    left, top, right, bottom = _box(entry["box"])
    digest = archive.images.put(cut(image, (left, top, right, bottom)))
    if digest == entry["sha256"]:
        return Rebuilt(digest, Match.EXACT)
    same = _nearest(entry["signature"], [digest], archive)
    return same or Rebuilt(None, Match.DIFFERENT, "another image stands in the box now")


def _signature(digest: str, entries: Iterable[Entry]) -> str | None:
    return next((one["signature"] for one in entries if one["sha256"] == digest), None)


def _box(box: Sequence[int | None] | None) -> list[int]:
    sides = [side for side in box or [] if side is not None]
    if len(sides) != 4:
        raise ImageError(f"box {str(box)[:80]} has no four sides")
    return sides


Row = Mapping[str, Any]
ORDER = list(Match)
COLUMNS = {INPUT: "input_images", OUTPUT: "output_images"}
PUT_BACK = frozenset({Match.EXACT, Match.SAME_IMAGE})
NOT_NOTED = Rebuilt(None, Match.MISSING, "nobody noted which images it has")


@dataclass(frozen=True)
class RestoredPart:
    """One text or image of a sample.

    Attributes:
        name: prompt, feedback.<n>, provenance.<n>, or the role of an image and its number.
        match: How it matches what was left out.
        detail: Why it stays left out.
    """

    name: str
    match: Match
    detail: str


@dataclass(frozen=True)
class SampleMatch:
    id: str
    parts: tuple[RestoredPart, ...]

    @property
    def match(self) -> Match:
        """The worst of its parts'."""
        return max((part.match for part in self.parts), key=ORDER.index, default=Match.EXACT)


def hydrated(row: Row, archive: Archive) -> tuple[dict[str, Any], SampleMatch]:
    """A dehydrated sample with all that can be put back."""
    words = _Words.of(row, archive)
    images = _images(row, archive)
    match = SampleMatch(str(row["id"]), tuple(_parts({**words.parts, **images})))
    new = {**row, **words.columns(row), **_image_columns(images)}
    if new["prompt"] is not None and _are_whole(images, INPUT):
        new["sample_digest"] = sample_digest(new["prompt"], new["input_images"])
    if match.match in PUT_BACK:
        entries = [{**one, "signature": None} for one in new["picture_sources"]]
        new |= {"dehydrated": False, "picture_sources": entries}
    return new, match


@dataclass(frozen=True)
class _Words:
    prompt: Rebuilt
    feedback: list[Rebuilt]
    quotes: list[Rebuilt]
    provenance: str | None

    @classmethod
    def of(cls, row: Row, archive: Archive) -> _Words:
        prompt = _text(row["prompt"], row["prompt_spans"], row["prompt_sha256"], archive)
        feedback = [
            _text(one["feedback"], one["spans"], one["sha256"], archive)
            for one in row["community_feedback"] or []
        ]
        provenance, quotes = _provenance(row["provenance"], prompt.value, archive)
        return cls(prompt, feedback, quotes, provenance)

    @property
    def parts(self) -> dict[str, list[Rebuilt]]:
        return {"prompt": [self.prompt], "feedback": self.feedback, "provenance": self.quotes}

    def columns(self, row: Row) -> dict[str, Any]:
        said = zip(row["community_feedback"] or [], self.feedback, strict=True)
        return {
            "prompt": self.prompt.value,
            "community_feedback": [{**one, "feedback": text.value} for one, text in said],
            "provenance": self.provenance,
        }


def _text(
    there: str | None, spans: Sequence[Any] | None, sha256: str | None, archive: Archive
) -> Rebuilt:
    if there is not None and text_digest(there) == sha256:
        return Rebuilt(there, Match.EXACT)  # an earlier run put it back
    return rebuilt_text(spans, sha256, archive)


def _provenance(
    provenance: str | None, prompt: str | None, archive: Archive
) -> tuple[str | None, list[Rebuilt]]:
    told = [prompt_source(prompt)] if prompt is not None else []
    try:
        quotes = quotes_in(provenance)
        texts = [rebuilt_text(one.spans, one.sha256, archive, told) for one in quotes]
        return with_texts(provenance, _found(quotes, texts)), texts
    except SpanError as error:
        return provenance, [Rebuilt(None, Match.DIFFERENT, str(error))]


def _found(quotes: Sequence[Quote], texts: Sequence[Rebuilt]) -> dict[ValuePath, str]:
    pairs = zip(quotes, texts, strict=True)
    return {quote.path: text.value for quote, text in pairs if text.value is not None}


def _images(row: Row, archive: Archive) -> dict[str, list[Rebuilt]]:
    entries = row["picture_sources"]
    if entries is None:
        return {"pictures": [NOT_NOTED]}
    shown: dict[str, list[Rebuilt]] = {INPUT: [], OUTPUT: [], SCREENSHOT: []}
    found = rebuilt_images(entries, archive, images_in(row))
    for entry, image in zip(entries, found, strict=True):
        known = entry["role"] in shown
        one = image if known else Rebuilt(None, Match.DIFFERENT, f"{entry['role']!r} is not a role")
        shown[entry["role"] if known else OUTPUT].append(one)
    return shown


def _image_columns(images: Mapping[str, Sequence[Rebuilt]]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for role, column in COLUMNS.items():
        if _are_whole(images, role):
            columns[column] = [one.value for one in images[role]]
    if _are_whole(images, SCREENSHOT):
        columns["screenshot"] = next((one.value for one in images[SCREENSHOT]), None)
    return columns


def _are_whole(images: Mapping[str, Sequence[Rebuilt]], role: str) -> bool:
    return role in images and all(one.value is not None for one in images[role])


def _parts(named: Mapping[str, Sequence[Rebuilt]]) -> Iterator[RestoredPart]:
    for name, found in named.items():
        for number, one in enumerate(found):
            yield RestoredPart(
                name if name == "prompt" else f"{name}.{number}", one.match, one.detail
            )
