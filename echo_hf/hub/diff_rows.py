"""The samples of a release as a comparison needs them, drift of counts, comparability of scores."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from echo_hf.errors import ReleaseError, SpanError
from echo_hf.hub.dehydrate import dehydrated
from echo_hf.hub.facts import BENCHMARK_CONFIGS, SAMPLE_CONFIGS
from echo_hf.hub.parquet import without_images
from echo_hf.tables import SAMPLES

# Chinese characters and Japanese syllables: scripts that put no space between words.
UNSPACED = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
TOKEN = re.compile(rf"[{UNSPACED}]|(?:(?![{UNSPACED}_])\w)+")


@dataclass(frozen=True)
class Mover:
    name: str
    a: int
    b: int
    change: float


@dataclass(frozen=True)
class Drift:
    distance: float | None
    a: int
    b: int
    movers: tuple[Mover, ...] = ()


def drift(a: Mapping[str, int], b: Mapping[str, int]) -> Drift:
    sizes = sum(a.values()), sum(b.values())
    if not all(sizes):
        return Drift(None, *sizes)
    moved = [_mover(name, a.get(name, 0), b.get(name, 0), sizes) for name in {**a, **b}]
    ordered = sorted(moved, key=lambda mover: (-abs(mover.change), mover.name))
    distance = sum(abs(mover.change) for mover in moved) / 2
    return Drift(distance, *sizes, tuple(mover for mover in ordered if mover.change))


def first_bigram(prompt: str) -> str | None:
    """The first two words of a prompt, in lower case."""
    found = TOKEN.finditer(prompt)
    words = [match[0].casefold() for match, _ in zip(found, range(2), strict=False)]
    return " ".join(words) if len(words) == 2 else None


def _mover(name: str, a: int, b: int, sizes: tuple[int, int]) -> Mover:
    return Mover(name, a, b, b / sizes[1] - a / sizes[0])


DIGEST_BYTES = 8
PROVENANCE = "provenance"
FEEDBACK = "community_feedback"
NAMED = "picture_sources"
IMAGES = ("input_images", "output_images", "screenshot")
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SampleView:
    names: tuple[str, ...]
    digests: bytes
    sources: bytes
    provenance: str | None
    sample_digest: str | None
    bigram: str | None
    task: str | None
    keywords: tuple[str, ...]
    configs: list[str] = field(default_factory=list)

    @property
    def columns(self) -> dict[str, bytes]:
        """A digest of each column's value."""
        starts = range(0, len(self.digests), DIGEST_BYTES)
        values = (self.digests[start : start + DIGEST_BYTES] for start in starts)
        return dict(zip(self.names, values, strict=True))


def dehydrated_ids(folder: Path, files: Mapping[str, Sequence[str]]) -> set[str]:
    """Ids of the samples of a release without what people posted; arguments as below."""
    names = [name for config in SAMPLE_CONFIGS for name in files.get(config, ())]
    rows = (row for name in names for row in _rows(folder / name, ["id", "dehydrated"]))
    return {row["id"] for row in rows if row.get("dehydrated")}


def sample_views(
    folder: Path, files: Mapping[str, Sequence[str]], silent: Collection[str] = ()
) -> dict[str, SampleView]:
    """Reads the samples of a release, a row group at a time and without their images."""
    views: dict[str, SampleView] = {}
    shared: dict[Any, Any] = {}  # equal for many samples, kept once
    for config in SAMPLE_CONFIGS:
        for name in files.get(config, ()):
            for row in _rows(folder / name):
                if row["id"] not in views:
                    seen = _without_content(row) if row["id"] in silent else row
                    views[row["id"]] = _view(seen, shared)
                views[row["id"]].configs.append(config)
    return views


def _without_content(row: Row) -> Row:
    try:
        bare = dehydrated({**dict.fromkeys(SAMPLES.columns), **row})
    except SpanError:  # nobody knows what it quotes
        return row
    named = [{**one, "signature": None} for one in bare[NAMED] or []]
    return {name: value for name, value in {**bare, NAMED: named}.items() if name in row}


def _rows(path: Path, columns: list[str] | None = None) -> Iterator[Row]:
    try:
        with pq.ParquetFile(path) as file:
            if "id" not in file.schema_arrow.names:
                raise ReleaseError(f"{str(path)!r} has no column 'id': expected samples")
            leaves = columns or without_images(file.schema_arrow)
            for group in range(file.num_row_groups):
                yield from file.read_row_group(group, columns=leaves).to_pylist()
    except (OSError, pa.ArrowException) as error:
        said = " ".join(str(error).split())
        raise ReleaseError(
            f"cannot read {str(path)!r} ({said}): write or download the release again"
        ) from None


def _view(row: Row, shared: dict[Any, Any]) -> SampleView:
    said = row.get(FEEDBACK) or []
    names = tuple(name for name in row if name != PROVENANCE)
    provenance = row.get(PROVENANCE)
    return SampleView(
        names=shared.setdefault(names, names),
        digests=b"".join(_digest(row[name]) for name in names),
        sources=_digest(sorted({*_posts(row), *_images(row)})),
        provenance=shared.setdefault(provenance, provenance),
        sample_digest=row.get("sample_digest"),
        bigram=first_bigram(row.get("prompt") or ""),
        task=row.get("task"),
        keywords=tuple(one["keyword"] for one in said if one.get("keyword")),
    )


def _posts(row: Row) -> list[str]:
    said = [one.get("post_url") for one in row.get(FEEDBACK) or []]
    return [url for url in [*(row.get("post_urls") or []), *said] if url]


def _images(row: Row) -> Iterator[str]:
    if row.get("dehydrated"):
        yield from (one["sha256"] for one in row.get(NAMED) or [])
    for column in IMAGES:
        value = row.get(column)
        for image in value if isinstance(value, list) else [value]:
            if image:
                yield json.dumps(image, sort_keys=True)


def _digest(value: Any) -> bytes:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).digest()


Views = Mapping[str, SampleView]


@dataclass(frozen=True)
class SharedSamples:
    shared: int
    a: int
    b: int


@dataclass(frozen=True)
class Comparability:
    same_protocol: bool
    configs: Mapping[str, SharedSamples]

    def verdict(self, config: str) -> str:
        """What may be compared on one config, in a sentence."""
        found = self.configs[config]
        if not found.shared:
            return "not comparable: no sample is in both"
        if not self.same_protocol:
            return "not comparable: the protocols differ; score both again by one"
        if found.a or found.b:
            said = f"comparable on the samples that both have ({found.shared:,})"
            return f"{said}, once recomputed on those"
        return "comparable: the same samples under the same protocol"


def comparability(a: Views, b: Views, *, same_protocol: bool) -> Comparability:
    configs = {name: _shared(_seen(a, name), _seen(b, name)) for name in BENCHMARK_CONFIGS}
    return Comparability(same_protocol, configs)


def _seen(views: Views, config: str) -> set[tuple[str, str]]:
    return {
        (name, view.sample_digest)
        for name, view in views.items()
        if config in view.configs and view.sample_digest is not None
    }


def _shared(a: set[tuple[str, str]], b: set[tuple[str, str]]) -> SharedSamples:
    return SharedSamples(len(a & b), len(a - b), len(b - a))
