"""Hydrate a release: restore posted words and images from an archive of posts."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from datasets import Dataset
from rich.console import Console
from rich.table import Table
from rich.text import Text

from echo_hf._infra.console import say
from echo_hf._infra.regular_file import read_regular
from echo_hf._infra.text import clean
from echo_hf.collect.collect import Collect, PostMerge
from echo_hf.collect.fetch import FetchStats, fetch_images
from echo_hf.collect.records import read_records
from echo_hf.config.collection import FetchPolicy
from echo_hf.config.sections import PostsSource
from echo_hf.curate.privacy import clean_image
from echo_hf.curate.provenance import (
    INPUT,
    OUTPUT,
    SCREENSHOT,
    add_texts,
    prompt_source,
    read_left_out,
    read_quotes,
)
from echo_hf.errors import ImageError, ReleaseError, SourceError, SpanError
from echo_hf.hub.facts import POSTED_CONFIGS
from echo_hf.hub.manifest import HYDRATION, hash_row
from echo_hf.hub.redistribution import (
    check_other_folder,
    list_images,
    measure_distance,
    read_signature,
)
from echo_hf.hub.release import (
    Release,
    find_table,
    read_release,
    read_release_facts,
    unpack_release,
    verify_release,
    write_release,
)
from echo_hf.images.loader import BadImageError
from echo_hf.images.metadata import VERSION, remove_metadata
from echo_hf.images.store import MAX_IMAGE_BYTES, ImageStore
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.reasons import Reason
from echo_hf.samples.boxes import cut_box, rotate_upright
from echo_hf.samples.sample import sample_digest
from echo_hf.samples.spans import SpanSource, join_spans, parse_spans, span_sources, text_digest
from echo_hf.tables import PRIMARY_POST_COLUMNS, Row, arrow_rows


class Match(Reason):
    """How what `hydrate` puts back matches what was left out, the best first."""

    EXACT = "exact", "the very words, or the very bytes of the image"
    SAME_IMAGE = "same_picture", "the image packed or scaled again, as far as a signature tells"
    DIFFERENT = "different", "the text or image there has changed; it stays left out"
    MISSING = "missing", "what is available does not hold it; it stays left out"


COLUMN = "column"
TEXTS = ("prompt", "feedback", "provenance", COLUMN)
ROLE_COLUMNS = {INPUT: "input_images", OUTPUT: "output_images", SCREENSHOT: "screenshot"}
MATCH_ORDER = list(Match).index
MAX_CAUSES = 5


class Restored(NamedTuple):
    """A restored text or image digest, how it matches, and why it stays left out."""

    value: str | None
    match: Match
    detail: str = ""


@dataclass(frozen=True)
class SampleMatch:
    """A sample's parts: prompt, feedback.<n>, provenance.<n>, column.<name>, an image role.<n>."""

    id: str
    parts: Mapping[str, Restored]

    @property
    def match(self) -> Match:
        """The worst match among its parts."""
        return max(
            (part.match for part in self.parts.values()), key=MATCH_ORDER, default=Match.EXACT
        )


@dataclass(frozen=True)
class HydrationResult:
    """A release with everything restored that was available."""

    release: Release
    samples: tuple[SampleMatch, ...]

    def count_matches(self) -> dict[str, dict[str, int]]:
        counters: dict[str, Counter[Match]] = {
            "samples": Counter(sample.match for sample in self.samples),
            "texts": Counter(),
            "pictures": Counter(),
        }
        for sample in self.samples:
            for name, part in sample.parts.items():
                counters["texts" if name.partition(".")[0] in TEXTS else "pictures"][
                    part.match
                ] += 1
        return {
            name: {match.value: counter[match] for match in Match}
            for name, counter in counters.items()
        }

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values, without any posted content."""
        samples = [
            {
                "id": sample.id,
                "match": sample.match,
                "parts": [
                    {"name": name, "match": part.match, "detail": part.detail}
                    for name, part in sample.parts.items()
                ],
            }
            for sample in self.samples
        ]
        name = self.release.manifest.name
        return {"release": name, "counts": self.count_matches(), "samples": samples}


def show_hydration(console: Console, hydration: HydrationResult) -> None:
    counts = hydration.count_matches()
    table = Table(*("", *counts, "meaning"), box=None, pad_edge=False)
    for match in Match:
        numbers = [f"{group[match.value]:,}" for group in counts.values()]
        table.add_row(Text(match.value, "bold"), *numbers, match.meaning)
    console.print(table)
    parts = (part for sample in hydration.samples for part in sample.parts.values() if part.detail)
    causes = Counter(f"{part.match}: {part.detail}" for part in parts)
    for line, times in causes.most_common(MAX_CAUSES):
        say(console, f"  {times:,} x {clean(line)}", "dim")


def hydrate(
    release_path: Path,
    to: Path,
    posts: Sequence[PostsSource],
    *,
    images: Path | None = None,
    fetch: FetchPolicy | None = None,
    progress: Callable[[FetchStats], None] | None = None,
) -> HydrationResult:
    """Write a release with posted words and images restored, as far as available."""
    check_other_folder(release_path, to)
    verify_release(release_path)
    release = read_release(release_path)
    stripper = release.manifest.statements.metadata_stripper
    if stripper not in (None, VERSION):
        raise ReleaseError(
            f"its images lost their metadata to version {stripper} of what removes it, and this is "
            f"version {VERSION}: use echo-hf {release.manifest.echo_hf}, which wrote the release"
        )
    strips = stripper is not None
    with _open_workplace(to.resolve(), keep=fetch is not None) as folder:
        store = ImageStore(folder / "pictures")
        datasets = unpack_release(release, store)
        names = [name for name in POSTED_CONFIGS if name in datasets]
        configs = {name: arrow_rows(datasets[name]).to_pylist() for name in names}
        lacking = [row for rows in configs.values() for row in rows if row["dehydrated"]]
        entries = [
            entry for row in lacking for entry in row["picture_sources"] or [] if entry["sha256"]
        ]
        archive = read_archive(posts, store, strips=strips)
        if images is not None:
            take_in(images, {entry["sha256"] for entry in entries}, store, strips=strips)
        if fetch is not None:
            urls = {
                entry["url"]
                for entry in entries
                if entry["url"] and not archive.has(entry["sha256"])
            }
            results = fetch_images(sorted(urls), store, policy=fetch, progress=progress)
            archive.add_fetched({result.url: result.sha256 for result in results if result.sha256})
        restored = {hash_row(row): hydrate_sample(row, archive) for row in lacking}
        for name, rows in configs.items():
            values = [restored[hash_row(row)][0] if row["dehydrated"] else row for row in rows]
            schema = find_table(release, name).features.arrow_schema
            datasets[name] = Dataset(pa.Table.from_pylist(values, schema))
        release_written = write_release(to, datasets, store, read_release_facts(release))
    matches = {match.id: match for _, match in restored.values()}
    hydration = HydrationResult(release_written, tuple(matches.values()))
    text = json.dumps(hydration.to_json(), indent=1, ensure_ascii=False)
    (release_written.path / HYDRATION).write_text(text + "\n", "utf-8", newline="\n")
    return hydration


@contextmanager
def _open_workplace(to: Path, *, keep: bool) -> Iterator[Path]:
    """Open a work folder beside the result; after an interruption it may be kept."""
    folder = to.with_name(f".{to.name}.hydrating")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder
    except BaseException:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Archive:
    """Posts and images at hand; `strips` removes metadata as the release did."""

    table: pa.Table
    images: ImageStore
    strips: bool = False
    fetched: Mapping[str, str] = field(default_factory=dict)  # digests by address
    cleaned: dict[str, str | None] = field(default_factory=dict)  # null where metadata stays

    @cached_property
    def _row_numbers(self) -> dict[str, int]:
        return {url: row for row, url in enumerate(self.table["url"].to_pylist())}

    def find_post(self, url: str | None) -> Row | None:
        """Return the post at an address; null where it or its content is missing."""
        row = self._row_numbers.get(url) if url is not None else None
        if row is None:
            return None
        post: Row = self.table.slice(row, 1).to_pylist()[0]
        return None if post["missing"] is not None else post

    def has(self, digest: str) -> bool:
        try:
            return self.images.path(digest).exists()
        except ImageError:  # no digest, which is said where the image is looked for
            return False

    def copies(self, post_url: str | None, url: str | None) -> list[str]:
        """Return digests of images that may be the one that a post showed at an address."""
        post = self.find_post(post_url)
        entries = [entry for entry in (post["pictures"] or [] if post else []) if entry["sha256"]]
        listed = [entry["sha256"] for entry in entries if url is not None and entry["url"] == url]
        fetched = self.fetched.get(url) if url is not None else None
        likely = [digest for digest in (fetched, *listed) if digest] or [
            entry["sha256"] for entry in entries
        ]
        return list(
            dict.fromkeys(filter(None, (self.cleaned.get(digest, digest) for digest in likely)))
        )

    def add_fetched(self, fetched: Mapping[str, str]) -> None:
        """Add fetched images; strip metadata from these and the posts' images if asked."""
        self.fetched = fetched
        if self.strips:
            posted = {
                entry["sha256"]
                for group in self.table["pictures"].to_pylist()
                for entry in group or ()
            }
            for digest in sorted({*posted, *fetched.values()} - {None, *self.cleaned}):
                self.cleaned[digest] = clean_image(digest, self.images).sha256


def read_archive(
    posts: Sequence[PostsSource], images: ImageStore, *, strips: bool = False
) -> Archive:
    """Read files of posts as a build does, with the images beside them."""
    collected = run_stage(Collect(images), read_records(posts)).dataset
    if not len(collected):
        names = ", ".join(repr(str(entry.path or entry.source)) for entry in posts)
        raise SourceError(f"{names} holds no post: expected the posts that the release was made of")
    archive = Archive(arrow_rows(run_stage(PostMerge(), collected).dataset), images, strips)
    archive.add_fetched({})
    return archive


def take_in(folder: Path, digests: Collection[str], images: ImageStore, *, strips: bool) -> None:
    """Copy the wanted images from a folder into a store, whatever their names."""
    if not folder.is_dir():
        raise SourceError(f"no folder {str(folder)!r}: expected one with images of the posts")
    for path in sorted(folder.rglob("*")):
        with suppress(OSError):  # a folder, a link out of it, or more than an image may have
            versions = [read_regular(path, folder, max_bytes=MAX_IMAGE_BYTES)]
            with suppress(ImageError):  # no image, or one that is wanted as it is or not at all
                versions += [remove_metadata(versions[0]).data] if strips else []
            for data in versions:
                if hashlib.sha256(data).hexdigest() in digests:
                    images.put(data)


def hydrate_sample(row: Row, archive: Archive) -> tuple[dict[str, Any], SampleMatch]:
    """Restore everything possible in a dehydrated sample."""
    prompt = restore_text(row["prompt"], row["prompt_spans"], row["prompt_sha256"], archive)
    comments = row["community_feedback"] or []
    feedback = [
        restore_text(comment["feedback"], comment["spans"], comment["sha256"], archive)
        for comment in comments
    ]
    sources = [prompt_source(prompt.value)] if prompt.value is not None else []
    provenance = row["provenance"]
    columns: dict[str, Restored] = {}
    try:
        for name in read_left_out(provenance):
            detail = f"column {name!r}: build the posts again, with the stage that adds it"
            columns[f"{COLUMN}.{name}"] = Restored(None, Match.MISSING, detail)
        quotes = read_quotes(provenance)
        texts = [
            restore_text(None, quote.spans, quote.sha256, archive, sources) for quote in quotes
        ]
        restored = {quote.path: text.value for quote, text in zip(quotes, texts, strict=True)}
        texts_by_path = {path: text for path, text in restored.items() if text is not None}
        provenance = add_texts(provenance, texts_by_path)
    except SpanError as error:
        texts = [Restored(None, Match.DIFFERENT, str(error))]
    images = restore_images(row, archive)
    parts = {"feedback": feedback, "provenance": texts, **images}
    numbered = {
        f"{name}.{index}": part for name, group in parts.items() for index, part in enumerate(group)
    }
    match = SampleMatch(str(row["id"]), {"prompt": prompt, **numbered, **columns})
    values = {
        **row,
        "prompt": prompt.value,
        "community_feedback": [
            {**comment, "feedback": text.value}
            for comment, text in zip(comments, feedback, strict=True)
        ],
        "provenance": provenance,
    }
    if post := archive.find_post(next(iter(row["post_urls"] or ()), None)):
        values |= {name: post[name] for name in PRIMARY_POST_COLUMNS}
    for role, group in images.items():
        digests = [part.value for part in group]
        if role in ROLE_COLUMNS and None not in digests:
            values[ROLE_COLUMNS[role]] = (
                next(iter(digests), None) if role == SCREENSHOT else digests
            )
    inputs = [part.value for part in images.get(INPUT, ())]
    if values["prompt"] is not None and INPUT in images and None not in inputs:
        values["sample_digest"] = sample_digest(values["prompt"], values["input_images"])
    if match.match in (Match.EXACT, Match.SAME_IMAGE):
        entries = [{**entry, "signature": None} for entry in values["picture_sources"]]
        values |= {"dehydrated": False, "picture_sources": entries}
    return values, match


def restore_text(
    present: str | None,
    spans: Iterable[Any] | None,
    sha256: str | None,
    archive: Archive,
    sources: Sequence[SpanSource] = (),
) -> Restored:
    """Restore a text from the posts that it quotes, unless an earlier run did."""
    if present is not None and text_digest(present) == sha256:
        return Restored(present, Match.EXACT)
    if spans is None or sha256 is None:
        return Restored(None, Match.MISSING, "nobody noted where it stands")
    try:
        pieces = parse_spans(spans)
        if not pieces and sha256 != text_digest(""):
            return Restored(None, Match.MISSING, "no words of posts: run the model again for it")
        urls = list(dict.fromkeys(span.post_url for span in pieces if span.post_url is not None))
        posts = {url: archive.find_post(url) for url in urls}
        lacking = next((url for url, post in posts.items() if post is None), None)
        if lacking is not None:
            return Restored(None, Match.MISSING, f"no post {lacking}")
        text = join_spans(pieces, [*sources, *span_sources(filter(None, posts.values()))])
    except SpanError as error:
        return Restored(None, Match.DIFFERENT, str(error))
    if text_digest(text) != sha256:
        return Restored(None, Match.DIFFERENT, "other words stand there now")
    return Restored(text, Match.EXACT)


def restore_images(row: Row, archive: Archive) -> dict[str, list[Restored]]:
    """Find or cut out the images of a sample, by role."""
    entries: Sequence[Row] | None = row["picture_sources"]
    if entries is None:
        return {"pictures": [Restored(None, Match.MISSING, "nobody noted which images it has")]}
    parts: dict[int, Restored] = {}
    # Screenshots come before what is cut out of them.
    for number in sorted(range(len(entries)), key=lambda number: entries[number]["of"] is not None):
        entry = entries[number]
        candidates = [index for index in parts if entries[index]["sha256"] == entry["of"]]
        shot = max(candidates, key=lambda index: parts[index].value is not None, default=None)
        try:
            if entry["sha256"] is None:
                parts[number] = Restored(None, Match.MISSING, "no digest was noted")
            elif archive.images.path(entry["sha256"]).exists():
                parts[number] = Restored(entry["sha256"], Match.EXACT)
            elif entry["of"] is None:
                parts[number] = _copy(entry, entries, archive, list_images(row))
            elif shot is None or parts[shot].value is None:
                match = Match.MISSING if shot is None else parts[shot].match
                detail = f"its screenshot {entry['of']} stays left out"
                parts[number] = Restored(None, match, detail)
            else:
                parts[number] = _crop(entry, archive, parts[shot], entries[shot]["signature"])
        except (ImageError, SpanError) as error:
            parts[number] = Restored(None, Match.DIFFERENT, str(error))
    by_role: dict[str, list[Restored]] = {role: [] for role in ROLE_COLUMNS}
    for number, entry in enumerate(entries):
        role = entry["role"]
        wrong = Restored(None, Match.DIFFERENT, f"{role!r} is not a role")
        by_role.get(role, by_role[OUTPUT]).append(parts[number] if role in by_role else wrong)
    return by_role


def _copy(entry: Row, entries: Iterable[Row], archive: Archive, nearby: Iterable[str]) -> Restored:
    """Find the nearest copy of an image, in its post or among the available ones."""
    others = {other["sha256"] for other in entries}
    copies = [
        copy for copy in archive.copies(entry["post_url"], entry["url"]) if copy not in others
    ]
    likely = [*copies, *(digest for digest in nearby if digest not in others)]
    if part := _nearest(entry["signature"], likely, archive):
        return part
    if copies:
        return Restored(None, Match.DIFFERENT, f"{entry['post_url']} shows another image")
    if archive.find_post(entry["post_url"]) is None:
        return Restored(None, Match.MISSING, f"no post {entry['post_url']}")
    return Restored(None, Match.MISSING, f"no image of {entry['post_url']} is available")


def _nearest(signature: str | None, digests: Iterable[str], archive: Archive) -> Restored | None:
    """Return the copy nearest to the image; an edited one may be beside it."""
    distances: dict[str, float] = {}
    for digest in digests if signature is not None else ():
        with suppress(BadImageError):  # what cannot be shown is nobody's copy
            levels = measure_distance(archive.images.path(digest), signature or "")
            distances |= {} if levels is None else {digest: levels}
    return (
        Restored(min(distances, key=lambda digest: distances[digest]), Match.SAME_IMAGE)
        if distances
        else None
    )


def _crop(entry: Row, archive: Archive, shot: Restored, signature: str | None) -> Restored:
    """Cut an image out of its screenshot again."""
    image = rotate_upright(archive.images.open(str(shot.value)))
    if shot.match is not Match.EXACT and signature:
        size = read_signature(signature).size
        if size != image.size:
            return Restored(None, Match.DIFFERENT, "its screenshot was of {} x {}".format(*size))
    sides = [side for side in entry["box"] or [] if side is not None]
    if len(sides) != 4:
        raise ImageError(f"box {str(entry['box'])[:80]} has no four sides")
    left, top, right, bottom = sides
    digest = archive.images.put(cut_box(image, (left, top, right, bottom)))
    if digest == entry["sha256"]:
        return Restored(digest, Match.EXACT)
    part = _nearest(entry["signature"], [digest], archive)
    return part or Restored(None, Match.DIFFERENT, "another image stands in the box now")
