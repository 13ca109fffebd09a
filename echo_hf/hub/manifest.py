"""`manifest.json` and `stats.json`: what a release holds, and what made it."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset
from pydantic import (
    BaseModel,
    ConfigDict,
    JsonValue,
    NonNegativeInt,
    StringConstraints,
    ValidationError,
)

from echo_hf._infra.regular_file import open_regular, read_regular
from echo_hf._infra.summary import Summarized
from echo_hf.config.checks import Name
from echo_hf.config.sections import Target
from echo_hf.errors import ReleaseError
from echo_hf.hub.facts import Counts, FailedCalls, ReleaseFacts, SampleCounts, Statements, problem
from echo_hf.images.embedded import NotEmbeddedError
from echo_hf.tables import arrow_batches

MANIFEST = "manifest.json"
CARD = "README.md"
STATS = "stats.json"
BENCHMARK = "eval.yaml"
HYDRATION = "hydration.json"  # may lie beside what a manifest lists: it is about this copy alone
SPLIT = "test"
ROWS_AT_ONCE = 1000
FORMAT: Literal[2] = 2
MOST_TEXT_BYTES = 1 << 23  # of a manifest, of counts, of a card

ConfigName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
# A manifest may come from anywhere: its paths must not leave the release.
ReleasePath = Annotated[
    str,
    StringConstraints(
        pattern=r"^(?:README\.md|stats\.json|eval\.yaml"
        r"|[a-z][a-z0-9_]{0,63}/test-[0-9]{5}-of-[0-9]{5}\.parquet)$"
    ),
]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class ManifestModel(BaseModel):
    """A part of the manifest: immutable, and closed to keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class FileEntry(ManifestModel):
    path: ReleasePath
    bytes: int
    sha256: Sha256


class ConfigEntry(ManifestModel):
    """One config: its embedded images with repetitions, its size as Arrow, its content digest."""

    rows: int
    pictures: int
    loaded_bytes: int
    digest: Sha256
    dehydrated: int = 0
    files: tuple[FileEntry, ...]


class StageCounts(ManifestModel):
    stage: str
    counts: Counts


class StageOrigin(ManifestModel):
    """Digest of all that decides a stage's result, its engine's signature, its prompt's sha256."""

    digest: str
    engine: Mapping[str, JsonValue] | None = None
    prompt: Sha256 | None = None


class Manifest(Summarized, ManifestModel):
    """What a release holds and what made it; format 1 had no `stats` and no `benchmark`."""

    format: Literal[1, 2] = FORMAT
    echo_hf: str
    name: Name
    target: Target
    protocol: Literal["published", "corrected"]
    rules_built: bool
    open_reviews: int = 0
    unscreened: int = 0
    hashed_authors: bool = False
    configs: Mapping[ConfigName, ConfigEntry]
    funnel: tuple[StageCounts, ...]
    provenance: Mapping[str, StageOrigin]
    statements: Statements = Statements()
    card: FileEntry | None = None
    stats: FileEntry | None = None
    benchmark: FileEntry | None = None

    @property
    def files(self) -> list[FileEntry]:
        listed = [file for config in self.configs.values() for file in config.files]
        beside = filter(None, [self.card, self.stats, self.benchmark])
        return sorted([*listed, *beside], key=lambda file: file.path)

    def text(self) -> str:
        """The manifest as its file holds it: sorted keys, indented, nothing of the moment."""
        data = self.model_dump(mode="json")
        return json.dumps(data, sort_keys=True, indent=2, ensure_ascii=False) + "\n"


def make_manifest(
    facts: ReleaseFacts, entries: Mapping[str, ConfigEntry], samples: Iterable[Dataset] = ()
) -> Manifest:
    """The manifest of a release whose card is not written yet; a sample may be in two configs."""
    waiting, unscreened, named = set(), set(), False
    for dataset in samples:
        columns = ["id", "author", "community_feedback", "safety", "review"]
        batches = arrow_batches(dataset, ROWS_AT_ONCE, columns)
        for rows in batches:
            is_waiting = pc.greater(pc.list_value_length(rows["review"]), 0)
            waiting.update(rows["id"].filter(is_waiting).to_pylist())
            unscreened.update(rows["id"].filter(pc.is_null(rows["safety"])).to_pylist())
            said = pc.struct_field(pc.list_flatten(rows["community_feedback"]), "author")
            named = named or any(len(one) > one.null_count for one in (rows["author"], said))
    return Manifest(
        echo_hf=toolkit_version(),
        name=facts.name,
        target=facts.target,
        protocol=facts.protocol,
        rules_built=facts.rules_built,
        open_reviews=len(waiting),
        unscreened=len(unscreened),
        hashed_authors=named,
        configs=entries,
        funnel=tuple(StageCounts(stage=name, counts=row) for name, row in facts.funnel.items()),
        provenance={name: StageOrigin(**origin) for name, origin in facts.provenance.items()},
        statements=Statements(**{one.name: getattr(facts, one.name) for one in fields(Statements)}),
    )


def read_manifest(folder: Path) -> Manifest:
    """Reads a release's manifest, which is checked as something that may come from anywhere."""
    path = folder / MANIFEST
    try:
        with readable(path, "download the release again"):
            if not path.parent.is_dir() or not os.path.lexists(path):
                raise ReleaseError(
                    f"no release in {str(folder)!r}: expected a folder with {MANIFEST}, as `build` "
                    "writes"
                )
            text = read_regular(path, folder, most_bytes=MOST_TEXT_BYTES)
        return Manifest.model_validate_json(text)
    except ValidationError as error:
        raise ReleaseError(
            f"{str(path)!r}: {problem(error)}: write the release again, or read it with the "
            "version that wrote it"
        ) from None


# What the readers of a hostile file raise: beside errors of Arrow, those of a text, of a time that
# is none, of JSON that nests too deeply, and of an image that is not in its table.
UNREADABLE = (
    *(OSError, pa.ArrowException, ValueError, OverflowError, RecursionError, NotEmbeddedError),
)


@contextmanager
def readable(path: Path, mend: str = "write or download the release again") -> Iterator[None]:
    """Says in one line that a file of a release cannot be read."""
    try:
        yield
    except UNREADABLE as error:
        told = problem(error) if isinstance(error, ValidationError) else str(error)
        said = " ".join(told.split())[:300]
        raise ReleaseError(f"{str(path)!r} cannot be read ({said}): {mend}") from None


def file_entry(folder: Path, path: str) -> FileEntry:
    with open_regular(folder / path, folder) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return FileEntry(path=path, bytes=(folder / path).stat().st_size, sha256=digest)


def canonical(row: Mapping[str, Any]) -> bytes:
    """A row as JSON that is the same wherever it is written: sorted keys, no spaces, UTF-8."""
    form: dict[str, Any] = {"sort_keys": True, "ensure_ascii": False, "separators": (",", ":")}
    return json.dumps(row, **form, default=datetime.datetime.isoformat).encode()


def row_digest(row: Mapping[str, Any]) -> bytes:
    """Sha256 of a row: of its `canonical` JSON."""
    return hashlib.sha256(canonical(row)).digest()


def content_digest(rows: Iterable[bytes]) -> str:
    """Sha256 of the sorted digests of rows, whatever their order and encoding."""
    return hashlib.sha256(b"".join(sorted(rows))).hexdigest()


def toolkit_version() -> str:
    """The installed version of the toolkit, `source` where it runs without being installed."""
    try:
        return version("echo-hf")
    except PackageNotFoundError:
        return "source"


class ConfigCounts(ManifestModel):
    """Rows, embedded pictures (repetitions counted) and bytes on disk of one config."""

    rows: NonNegativeInt
    pictures: NonNegativeInt
    bytes: NonNegativeInt


class Stats(ManifestModel):
    """The counts of a release: by config, by stage, in its samples, of what is not in it."""

    configs: Mapping[str, ConfigCounts]
    funnel: Mapping[str, Counts]
    measured: Mapping[str, SampleCounts] = {}
    left_out: Mapping[str, Mapping[str, int]] = {}
    failed: Mapping[str, Mapping[str, FailedCalls]] = {}


def make_stats(manifest: Manifest, facts: ReleaseFacts | None = None) -> Stats:
    known = {name: getattr(facts, name) for name in ("measured", "left_out", "failed") if facts}
    configs = {
        name: ConfigCounts(
            rows=entry.rows, pictures=entry.pictures, bytes=sum(file.bytes for file in entry.files)
        )
        for name, entry in manifest.configs.items()
    }
    funnel = {row.stage: row.counts for row in manifest.funnel}
    return Stats(configs=configs, funnel=funnel, **known)


def read_stats(folder: Path, manifest: Manifest) -> Stats:
    """Reads the counts of a release, which are checked as something that may come from anywhere."""
    if manifest.stats is None:
        return make_stats(manifest)
    with readable(folder / STATS):
        text = read_regular(folder / STATS, folder, most_bytes=MOST_TEXT_BYTES)
        return Stats.model_validate_json(text)
