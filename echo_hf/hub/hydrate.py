"""Put back into a release what was left out of it, from the posts that somebody has."""

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
from echo_hf._infra.text import plain
from echo_hf.collect.collect import Collect, PostMerge
from echo_hf.collect.fetch import FetchStats, fetch_images
from echo_hf.collect.records import read_records
from echo_hf.config.collection import FetchPolicy
from echo_hf.config.sections import Posts
from echo_hf.curate.privacy import clean_image
from echo_hf.curate.provenance import (
    INPUT,
    OUTPUT,
    SCREENSHOT,
    add_texts,
    prompt_source,
    read_quotes,
)
from echo_hf.errors import ImageError, ReleaseError, SourceError, SpanError
from echo_hf.hub.facts import SAMPLE_CONFIGS
from echo_hf.hub.manifest import HYDRATION, row_digest
from echo_hf.hub.redistribution import check_apart, distance, images_in, read_signature
from echo_hf.hub.release import (
    Release,
    read_release,
    released_facts,
    unpacked,
    verify_release,
    write_release,
)
from echo_hf.images.loader import BadImageError
from echo_hf.images.metadata import VERSION, without_metadata
from echo_hf.images.store import MOST_BYTES, ImageStore
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.reasons import Match
from echo_hf.samples.boxes import cut_box, rotate_upright
from echo_hf.samples.sample import sample_digest
from echo_hf.samples.spans import SpanSource, join_spans, parse_spans, span_sources, text_digest
from echo_hf.tables import OF_POST, SAMPLES, arrow_rows

Row = Mapping[str, Any]
WORDS = ("prompt", "feedback", "provenance")
COLUMNS = {INPUT: "input_images", OUTPUT: "output_images", SCREENSHOT: "screenshot"}
BEST_FIRST = list(Match).index
MOST_CAUSES = 5


class Rebuilt(NamedTuple):
    """A text, or the digest of an image; how it matches what was left out, and why it stays out."""

    value: str | None
    match: Match
    detail: str = ""


@dataclass(frozen=True)
class SampleMatch:
    """A sample's parts: prompt, feedback.<n>, provenance.<n>, or the role of an image and <n>."""

    id: str
    parts: Mapping[str, Rebuilt]

    @property
    def match(self) -> Match:
        """The worst of its parts'."""
        return max((one.match for one in self.parts.values()), key=BEST_FIRST, default=Match.EXACT)


@dataclass(frozen=True)
class Hydration:
    """A release with all that could be put back."""

    release: Release
    samples: tuple[SampleMatch, ...]

    def counts(self) -> dict[str, dict[str, int]]:
        found: dict[str, Counter[Match]] = {
            "samples": Counter(sample.match for sample in self.samples),
            "texts": Counter(),
            "pictures": Counter(),
        }
        for sample in self.samples:
            for name, one in sample.parts.items():
                found["texts" if name.partition(".")[0] in WORDS else "pictures"][one.match] += 1
        return {name: {match.value: some[match] for match in Match} for name, some in found.items()}

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values, without a word of what people posted."""
        samples = [
            {
                "id": sample.id,
                "match": sample.match,
                "parts": [
                    {"name": name, "match": one.match, "detail": one.detail}
                    for name, one in sample.parts.items()
                ],
            }
            for sample in self.samples
        ]
        name = self.release.manifest.name
        return {"release": name, "counts": self.counts(), "samples": samples}


def show_hydration(console: Console, hydration: Hydration) -> None:
    counts = hydration.counts()
    table = Table(*("", *counts, "meaning"), box=None, pad_edge=False)
    for match in Match:
        numbers = [f"{each[match.value]:,}" for each in counts.values()]
        table.add_row(Text(match.value, "bold"), *numbers, match.meaning)
    console.print(table)
    parts = (one for sample in hydration.samples for one in sample.parts.values() if one.detail)
    causes = Counter(f"{one.match}: {one.detail}" for one in parts)
    for line, times in causes.most_common(MOST_CAUSES):
        say(console, f"  {times:,} x {plain(line)}", "dim")


def hydrate(
    release_path: Path,
    to: Path,
    posts: Sequence[Posts],
    *,
    images: Path | None = None,
    fetch: FetchPolicy | None = None,
    progress: Callable[[FetchStats], None] | None = None,
) -> Hydration:
    """Writes a release with the posted words and images put back, as far as they are at hand."""
    check_apart(release_path, to)
    verify_release(release_path)
    release = read_release(release_path)
    stripper = release.manifest.statements.metadata_stripper
    if stripper not in (None, VERSION):
        raise ReleaseError(
            f"its images lost their metadata to version {stripper} of what removes it, and this is "
            f"version {VERSION}: use echo-hf {release.manifest.echo_hf}, which wrote the release"
        )
    strips = stripper is not None
    with _workplace(to.resolve(), keep=fetch is not None) as folder:
        store = ImageStore(folder / "pictures")
        every = unpacked(release, store)
        held = [name for name in SAMPLE_CONFIGS if name in every]
        configs = {name: arrow_rows(every[name]).to_pylist() for name in held}
        lacking = [row for rows in configs.values() for row in rows if row["dehydrated"]]
        entries = [one for row in lacking for one in row["picture_sources"] or [] if one["sha256"]]
        archive = read_archive(posts, store, strips=strips)
        if images is not None:
            take_in(images, {one["sha256"] for one in entries}, store, strips=strips)
        if fetch is not None:
            urls = {one["url"] for one in entries if one["url"] and not archive.has(one["sha256"])}
            results = fetch_images(sorted(urls), store, policy=fetch, progress=progress)
            archive.take_fetched({one.url: one.sha256 for one in results if one.sha256})
        made = {row_digest(row): hydrated(row, archive) for row in lacking}
        for name, rows in configs.items():
            new = [made[row_digest(row)][0] if row["dehydrated"] else row for row in rows]
            every[name] = Dataset(pa.Table.from_pylist(new, SAMPLES.features.arrow_schema))
        written = write_release(to, every, store, released_facts(release))
    matches = {match.id: match for _, match in made.values()}
    hydration = Hydration(written, tuple(matches.values()))
    text = json.dumps(hydration.as_json(), indent=1, ensure_ascii=False)
    (written.path / HYDRATION).write_text(text + "\n", "utf-8", newline="\n")
    return hydration


@contextmanager
def _workplace(to: Path, *, keep: bool) -> Iterator[Path]:
    """A folder beside the result; after a stop in the middle what was fetched stays there."""
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
    """Posts and images that somebody has; `strips` them where the release has no metadata."""

    table: pa.Table
    images: ImageStore
    strips: bool = False
    fetched: Mapping[str, str] = field(default_factory=dict)  # digests by address
    cleaned: dict[str, str | None] = field(default_factory=dict)  # null where metadata stays

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {url: row for row, url in enumerate(self.table["url"].to_pylist())}

    def post(self, url: str | None) -> Row | None:
        """The post of an address, null when it is not here, or its content is not."""
        row = self._rows.get(url) if url is not None else None
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
        """Digests of the images that may be the one that a post showed at an address."""
        post = self.post(post_url)
        shown = [one for one in (post["pictures"] or [] if post else []) if one["sha256"]]
        there = [one["sha256"] for one in shown if url is not None and one["url"] == url]
        fetched = self.fetched.get(url) if url is not None else None
        named = [one for one in (fetched, *there) if one] or [one["sha256"] for one in shown]
        return list(dict.fromkeys(filter(None, (self.cleaned.get(one, one) for one in named))))

    def take_fetched(self, fetched: Mapping[str, str]) -> None:
        """Takes images from elsewhere; cleans these and those of the posts where that is asked."""
        self.fetched = fetched
        if self.strips:
            shown = {
                one["sha256"] for some in self.table["pictures"].to_pylist() for one in some or ()
            }
            for digest in sorted({*shown, *fetched.values()} - {None, *self.cleaned}):
                self.cleaned[digest] = clean_image(digest, self.images).sha256


def read_archive(posts: Sequence[Posts], images: ImageStore, *, strips: bool = False) -> Archive:
    """Reads files of posts as a build does, with the images beside them."""
    read = run_stage(Collect(images), read_records(posts)).dataset
    if not len(read):
        names = ", ".join(repr(str(entry.path or entry.source)) for entry in posts)
        raise SourceError(f"{names} holds no post: expected the posts that the release was made of")
    archive = Archive(arrow_rows(run_stage(PostMerge(), read).dataset), images, strips)
    archive.take_fetched({})
    return archive


def take_in(folder: Path, wanted: Collection[str], images: ImageStore, *, strips: bool) -> None:
    """Puts those files of a folder into a store that are wanted, whatever they are called."""
    if not folder.is_dir():
        raise SourceError(f"no folder {str(folder)!r}: expected one with images of the posts")
    for path in sorted(folder.rglob("*")):
        with suppress(OSError):  # a folder, a link out of it, or more than an image may have
            found = [read_regular(path, folder, most_bytes=MOST_BYTES)]
            with suppress(ImageError):  # no image, or one that is wanted as it is or not at all
                found += [without_metadata(found[0]).data] if strips else []
            for data in found:
                if hashlib.sha256(data).hexdigest() in wanted:
                    images.put(data)


def hydrated(row: Row, archive: Archive) -> tuple[dict[str, Any], SampleMatch]:
    """A dehydrated sample with all that can be put back."""
    prompt = rebuilt_text(row["prompt"], row["prompt_spans"], row["prompt_sha256"], archive)
    said = row["community_feedback"] or []
    feedback = [rebuilt_text(one["feedback"], one["spans"], one["sha256"], archive) for one in said]
    told = [prompt_source(prompt.value)] if prompt.value is not None else []
    provenance = row["provenance"]
    try:
        quotes = read_quotes(provenance)
        texts = [rebuilt_text(None, one.spans, one.sha256, archive, told) for one in quotes]
        found = {quote.path: text.value for quote, text in zip(quotes, texts, strict=True)}
        known = {path: text for path, text in found.items() if text is not None}
        provenance = add_texts(provenance, known)
    except SpanError as error:
        texts = [Rebuilt(None, Match.DIFFERENT, str(error))]
    images = rebuilt_images(row, archive)
    parts = {"feedback": feedback, "provenance": texts, **images}
    numbered = {f"{name}.{at}": one for name, some in parts.items() for at, one in enumerate(some)}
    match = SampleMatch(str(row["id"]), {"prompt": prompt, **numbered})
    new = {
        **row,
        "prompt": prompt.value,
        "community_feedback": [
            {**one, "feedback": text.value} for one, text in zip(said, feedback, strict=True)
        ],
        "provenance": provenance,
    }
    if post := archive.post(next(iter(row["post_urls"] or ()), None)):
        new |= {name: post[name] for name in OF_POST}
    for role, some in images.items():
        values = [one.value for one in some]
        if role in COLUMNS and None not in values:
            new[COLUMNS[role]] = next(iter(values), None) if role == SCREENSHOT else values
    inputs = [one.value for one in images.get(INPUT, ())]
    if new["prompt"] is not None and INPUT in images and None not in inputs:
        new["sample_digest"] = sample_digest(new["prompt"], new["input_images"])
    if match.match in (Match.EXACT, Match.SAME_IMAGE):
        entries = [{**one, "signature": None} for one in new["picture_sources"]]
        new |= {"dehydrated": False, "picture_sources": entries}
    return new, match


def rebuilt_text(
    there: str | None,
    spans: Iterable[Any] | None,
    sha256: str | None,
    archive: Archive,
    sources: Sequence[SpanSource] = (),
) -> Rebuilt:
    """A text, which an earlier run may have put back, from the posts in which its pieces stand."""
    if there is not None and text_digest(there) == sha256:
        return Rebuilt(there, Match.EXACT)
    if spans is None or sha256 is None:
        return Rebuilt(None, Match.MISSING, "nobody noted where it stands")
    try:
        pieces = parse_spans(spans)
        if not pieces and sha256 != text_digest(""):
            return Rebuilt(None, Match.MISSING, "no words of posts: run the model again for it")
        urls = list(dict.fromkeys(one.post_url for one in pieces if one.post_url is not None))
        posts = {url: archive.post(url) for url in urls}
        lacking = next((url for url, post in posts.items() if post is None), None)
        if lacking is not None:
            return Rebuilt(None, Match.MISSING, f"no post {lacking}")
        text = join_spans(pieces, [*sources, *span_sources(filter(None, posts.values()))])
    except SpanError as error:
        return Rebuilt(None, Match.DIFFERENT, str(error))
    if text_digest(text) != sha256:
        return Rebuilt(None, Match.DIFFERENT, "other words stand there now")
    return Rebuilt(text, Match.EXACT)


def rebuilt_images(row: Row, archive: Archive) -> dict[str, list[Rebuilt]]:
    """The images of a sample by role, found or cut out again."""
    entries: Sequence[Row] | None = row["picture_sources"]
    if entries is None:
        return {"pictures": [Rebuilt(None, Match.MISSING, "nobody noted which images it has")]}
    found: dict[int, Rebuilt] = {}
    # Screenshots come before what is cut out of them.
    for number in sorted(range(len(entries)), key=lambda number: entries[number]["of"] is not None):
        entry = entries[number]
        shots = [at for at in found if entries[at]["sha256"] == entry["of"]]
        shot = max(shots, key=lambda at: found[at].value is not None, default=None)
        try:
            if entry["sha256"] is None:
                found[number] = Rebuilt(None, Match.MISSING, "no digest was noted")
            elif archive.images.path(entry["sha256"]).exists():
                found[number] = Rebuilt(entry["sha256"], Match.EXACT)
            elif entry["of"] is None:
                found[number] = _copy(entry, entries, archive, images_in(row))
            elif shot is None or found[shot].value is None:
                match = Match.MISSING if shot is None else found[shot].match
                detail = f"its screenshot {entry['of']} stays left out"
                found[number] = Rebuilt(None, match, detail)
            else:
                found[number] = _crop(entry, archive, found[shot], entries[shot]["signature"])
        except (ImageError, SpanError) as error:
            found[number] = Rebuilt(None, Match.DIFFERENT, str(error))
    shown: dict[str, list[Rebuilt]] = {role: [] for role in COLUMNS}
    for number, entry in enumerate(entries):
        role = entry["role"]
        strange = Rebuilt(None, Match.DIFFERENT, f"{role!r} is not a role")
        shown.get(role, shown[OUTPUT]).append(found[number] if role in shown else strange)
    return shown


def _copy(entry: Row, entries: Iterable[Row], archive: Archive, at_hand: Iterable[str]) -> Rebuilt:
    """The nearest copy of an image, among those of its post and those at hand."""
    others = {one["sha256"] for one in entries}
    copies = [one for one in archive.copies(entry["post_url"], entry["url"]) if one not in others]
    likely = [*copies, *(one for one in at_hand if one not in others)]
    if same := _nearest(entry["signature"], likely, archive):
        return same
    if copies:
        return Rebuilt(None, Match.DIFFERENT, f"{entry['post_url']} shows another image")
    if archive.post(entry["post_url"]) is None:
        return Rebuilt(None, Match.MISSING, f"no post {entry['post_url']}")
    return Rebuilt(None, Match.MISSING, f"no image of {entry['post_url']} is available")


def _nearest(signature: str | None, digests: Iterable[str], archive: Archive) -> Rebuilt | None:
    """The copy that is nearest to the image: the edited one may be beside it."""
    near: dict[str, float] = {}
    for digest in digests if signature is not None else ():
        with suppress(BadImageError):  # what cannot be shown is nobody's copy
            levels = distance(archive.images.path(digest), signature or "")
            near |= {} if levels is None else {digest: levels}
    return Rebuilt(min(near, key=lambda one: near[one]), Match.SAME_IMAGE) if near else None


def _crop(entry: Row, archive: Archive, shot: Rebuilt, shot_signature: str | None) -> Rebuilt:
    """What was cut out of a screenshot, cut out again."""
    image = rotate_upright(archive.images.open(str(shot.value)))
    if shot.match is not Match.EXACT and shot_signature:
        size = read_signature(shot_signature).size
        if size != image.size:
            return Rebuilt(None, Match.DIFFERENT, "its screenshot was of {} x {}".format(*size))
    sides = [side for side in entry["box"] or [] if side is not None]
    if len(sides) != 4:
        raise ImageError(f"box {str(entry['box'])[:80]} has no four sides")
    left, top, right, bottom = sides
    digest = archive.images.put(cut_box(image, (left, top, right, bottom)))
    if digest == entry["sha256"]:
        return Rebuilt(digest, Match.EXACT)
    same = _nearest(entry["signature"], [digest], archive)
    return same or Rebuilt(None, Match.DIFFERENT, "another image stands in the box now")
