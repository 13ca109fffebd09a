"""The samples of a release as a comparison needs them: digests of their columns, no picture."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from echo_hf.errors import ReleaseError, SpanError
from echo_hf.hub.configs import SAMPLE_CONFIGS
from echo_hf.hub.dehydrate import dehydrated
from echo_hf.hub.drift import first_bigram
from echo_hf.hub.parquet import without_pictures
from echo_hf.tables import SAMPLES

DIGEST_BYTES = 8
PROVENANCE = "provenance"
FEEDBACK = "community_feedback"
NAMED = "picture_sources"
PICTURES = ("input_images", "output_images", "screenshot")
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SampleView:
    """A sample as a comparison needs it.

    Attributes:
        names: Its columns but `provenance`.
        digests: Digests of their values, of pictures by their names, one after the other.
        sources: Digest of the posts and pictures that it names, whatever their order.
        provenance: Its `provenance`.
        sample_digest: Its `sample_digest`.
        bigram: First two words of its prompt.
        task: Its task.
        keywords: What its feedback says failed.
        configs: The configs that it is in.
    """

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
    """Reads the samples of a release, a row group at a time and without their pictures.

    Args:
        folder: The release.
        files: Paths of the Parquet files of each config; only configs of samples are read.
        silent: Ids of the samples to compare without what people posted, by its digests.

    Returns:
        The samples by id, each once, with the configs that it is in.

    Raises:
        ReleaseError: A file cannot be read, or holds no samples.
    """
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
            leaves = columns or without_pictures(file.schema_arrow)
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
        sources=_digest(sorted({*_posts(row), *_pictures(row)})),
        provenance=shared.setdefault(provenance, provenance),
        sample_digest=row.get("sample_digest"),
        bigram=first_bigram(row.get("prompt") or ""),
        task=row.get("task"),
        keywords=tuple(one["keyword"] for one in said if one.get("keyword")),
    )


def _posts(row: Row) -> list[str]:
    said = [one.get("post_url") for one in row.get(FEEDBACK) or []]
    return [url for url in [*(row.get("post_urls") or []), *said] if url]


def _pictures(row: Row) -> Iterator[str]:
    if row.get("dehydrated"):
        yield from (one["sha256"] for one in row.get(NAMED) or [])
    for column in PICTURES:
        value = row.get(column)
        for picture in value if isinstance(value, list) else [value]:
            if picture:
                yield json.dumps(picture, sort_keys=True)


def _digest(value: Any) -> bytes:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).digest()
