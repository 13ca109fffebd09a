"""Put back into a release what was left out of it, from the posts that somebody has."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import Dataset
from rich.console import Console
from rich.table import Table
from rich.text import Text

from echo_hf._infra.console import say
from echo_hf._infra.text import plain
from echo_hf.collect.fetch import FetchStats, fetch_images
from echo_hf.config.collection import FetchPolicy
from echo_hf.config.sections import Posts
from echo_hf.errors import ImageError, ReleaseError
from echo_hf.hub.archive import Archive, SampleMatch, hydrated, read_archive, take_in
from echo_hf.hub.dehydrate import check_apart
from echo_hf.hub.facts import SAMPLE_CONFIGS
from echo_hf.hub.manifest import HYDRATION, Manifest, read_stats, row_digest
from echo_hf.hub.release import (
    Release,
    read_release,
    released_facts,
    unpacked,
    verify_release,
    write_release,
)
from echo_hf.images.metadata import VERSION
from echo_hf.images.store import ImageStore
from echo_hf.reasons import LeftOut, Match
from echo_hf.tables import SAMPLES

WORDS = ("prompt", "feedback", "provenance")
MOST_CAUSES = 5
NOT_PUT_BACK = (LeftOut.MAY_QUOTE, LeftOut.SILENCED)


@dataclass(frozen=True)
class Hydration:
    """A release with all that could be put back."""

    release: Release
    samples: tuple[SampleMatch, ...]

    def counts(self) -> dict[str, dict[str, int]]:
        parts = [part for sample in self.samples for part in sample.parts]
        texts = [part for part in parts if part.name.partition(".")[0] in WORDS]
        return {
            "samples": _counted(sample.match for sample in self.samples),
            "texts": _counted(part.match for part in texts),
            "pictures": _counted(part.match for part in parts if part not in texts),
        }

    def beside(self) -> dict[str, dict[str, int]]:
        """By config how many rows beside the samples are left out, or their texts, and stay so."""
        counts = read_stats(self.release.path, self.release.manifest).left_out
        found = {
            name: {reason: count for reason, count in some.items() if reason in NOT_PUT_BACK}
            for name, some in counts.items()
        }
        return {name: some for name, some in found.items() if some}

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values, without a word of what people posted."""
        return {
            "release": self.release.manifest.name,
            "counts": self.counts(),
            "beside": self.beside(),
            "samples": [
                {
                    "id": sample.id,
                    "match": sample.match,
                    "parts": [
                        {"name": part.name, "match": part.match, "detail": part.detail}
                        for part in sample.parts
                    ],
                }
                for sample in self.samples
            ],
        }

    def write(self) -> Path:
        """Writes `hydration.json` beside the files of the release."""
        path = self.release.path / HYDRATION
        text = json.dumps(self.as_json(), indent=1, ensure_ascii=False)
        path.write_text(text + "\n", "utf-8", newline="\n")
        return path


def show_hydration(console: Console, hydration: Hydration) -> None:
    counts = hydration.counts()
    table = Table(*("", *counts, "meaning"), box=None, pad_edge=False)
    for match in Match:
        numbers = [f"{each[match.value]:,}" for each in counts.values()]
        table.add_row(Text(match.value, "bold"), *numbers, match.meaning)
    console.print(table)
    for line, times in _causes(hydration.samples).most_common(MOST_CAUSES):
        say(console, f"  {times:,} x {plain(line)}", "dim")


def _causes(samples: Iterable[SampleMatch]) -> Counter[str]:
    lacking = (part for sample in samples for part in sample.parts if part.detail)
    return Counter(f"{part.match}: {part.detail}" for part in lacking)


def _counted(matches: Iterable[Match]) -> dict[str, int]:
    found = Counter(matches)
    return {match.value: found[match] for match in Match}


Row = Mapping[str, Any]
HydrateProgress = Callable[[FetchStats], None]


def hydrate(
    release_path: Path,
    to: Path,
    posts: Sequence[Posts],
    *,
    images: Path | None = None,
    fetch: FetchPolicy | None = None,
    progress: HydrateProgress | None = None,
) -> Hydration:
    """Writes a release with the posted words and images put back, as far as they are at hand."""
    check_apart(release_path, to)
    verify_release(release_path)
    release = read_release(release_path)
    strips = _strips(release.manifest)
    with _workplace(to.resolve(), keep=fetch is not None) as folder:
        store = ImageStore(folder / "pictures")
        every = unpacked(release, store)
        configs = {name: _rows(every.pop(name)) for name in SAMPLE_CONFIGS if name in every}
        archive = _cleaned(read_archive(posts, store), strips=strips)
        lacking = [row for rows in configs.values() for row in rows if row["dehydrated"]]
        if images is not None:
            take_in(images, _wanted(lacking), store, strips=strips)
        if fetch is not None:
            fetched = _fetched(lacking, archive, fetch, progress)
            archive = _cleaned(replace(archive, fetched=fetched), strips=strips)
        made = {row_digest(row): hydrated(row, archive) for row in lacking}
        whole = {name: _dataset(rows, made) for name, rows in configs.items()}
        written = write_release(to, {**whole, **every}, store, released_facts(release))
    hydration = Hydration(written, _each_once(match for _, match in made.values()))
    hydration.write()
    return hydration


@contextmanager
def _workplace(to: Path, *, keep: bool) -> Iterator[Path]:
    """A folder beside the result; after a stop in the middle what was fetched stays there."""
    folder = to.with_name(f".{to.name}.hydrating")
    folder.mkdir(parents=True, exist_ok=True)
    done = False
    try:
        yield folder
        done = True
    finally:
        if done or not keep:
            shutil.rmtree(folder, ignore_errors=True)


def _strips(manifest: Manifest) -> bool:
    """Whether the release holds images without metadata: then those at hand are to lose theirs."""
    made = manifest.statements.metadata_stripper
    if made not in (None, VERSION):
        raise ReleaseError(
            f"its images lost their metadata to version {made} of what removes it, and this is "
            f"version {VERSION}: use echo-hf {manifest.echo_hf}, which wrote the release"
        )
    return made is not None


def _cleaned(archive: Archive, *, strips: bool) -> Archive:
    return archive.without_metadata() if strips else archive


def _rows(dataset: Dataset) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = dataset.with_format("arrow")[:].to_pylist()
    return rows


def _dataset(
    rows: Iterable[Row], made: Mapping[bytes, tuple[dict[str, Any], SampleMatch]]
) -> Dataset:
    new = [made[row_digest(row)][0] if row["dehydrated"] else dict(row) for row in rows]
    return Dataset(pa.Table.from_pylist(new, schema=SAMPLES.features.arrow_schema))


def _entries(rows: Iterable[Row]) -> Iterator[Mapping[str, Any]]:
    yield from (one for row in rows for one in row["picture_sources"] or [] if one["sha256"])


def _wanted(rows: Iterable[Row]) -> set[str]:
    return {one["sha256"] for one in _entries(rows)}


def _fetched(
    rows: Iterable[Row], archive: Archive, policy: FetchPolicy, progress: HydrateProgress | None
) -> dict[str, str]:
    urls = {one["url"] for one in _entries(rows) if one["url"] and not _is_here(one, archive)}
    results = fetch_images(sorted(urls), archive.images, policy=policy, progress=progress)
    return {result.url: result.sha256 for result in results if result.sha256}


def _is_here(entry: Mapping[str, Any], archive: Archive) -> bool:
    try:
        return archive.has(entry["sha256"])
    except ImageError:  # said again, in its place, when the image is looked for
        return False


def _each_once(matches: Iterable[SampleMatch]) -> tuple[SampleMatch, ...]:
    return tuple({match.id: match for match in matches}.values())
