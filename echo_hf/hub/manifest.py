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
from pydantic import JsonValue, NonNegativeInt, StringConstraints, ValidationError, field_validator

from echo_hf._infra.regular_file import open_regular, read_regular
from echo_hf._infra.summary import SummaryMixin
from echo_hf.config.checks import Name, Section
from echo_hf.config.sections import Target
from echo_hf.errors import ReleaseError
from echo_hf.hub.commitments import Opening, Reveal, Seal, Sha256, TagName
from echo_hf.hub.facts import (
    CardStatements,
    ColumnEntry,
    FailedCalls,
    NestedCounts,
    ReleaseFacts,
    SampleCounts,
    describe_problem,
)
from echo_hf.images.embedded import NotEmbeddedError
from echo_hf.tables import SAMPLES, arrow_batches

MANIFEST = "manifest.json"
CARD = "README.md"
STATS = "stats.json"
EVAL_FILE = "eval.yaml"
PROOFS = "revealed.jsonl"
HYDRATION = "hydration.json"  # may lie beside what a manifest lists: it is about this copy alone
SPLIT = "test"
ROWS_PER_BATCH = 1000
FORMAT_VERSION: Literal[2] = 2
MAX_TEXT_BYTES = 1 << 23  # of a manifest, of counts, of a card

ConfigName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
# A manifest may come from anywhere: its paths must not leave the release.
ReleasePath = Annotated[
    str,
    StringConstraints(
        pattern=r"^(?:README\.md|stats\.json|eval\.yaml|revealed\.jsonl"
        r"|[a-z][a-z0-9_]{0,63}/test-[0-9]{5}-of-[0-9]{5}\.parquet)$"
    ),
]


class FileEntry(Section):
    path: ReleasePath
    bytes: int
    sha256: Sha256


class ConfigEntry(Section):
    """One config: its rows, embedded images, size as Arrow, and content digest."""

    rows: int
    pictures: int
    loaded_bytes: int
    digest: Sha256
    dehydrated: int = 0
    files: tuple[FileEntry, ...]


class StageCounts(Section):
    stage: str
    counts: NestedCounts


class StageOrigin(Section):
    """Origin of the result of a stage: its digest, engine signature and prompt sha256."""

    digest: str
    engine: Mapping[str, JsonValue] | None = None
    prompt: Sha256 | None = None


class Manifest(SummaryMixin, Section):
    """Contents and origin of a release; format 1 had no `stats` and no `benchmark`."""

    format: Literal[1, 2] = FORMAT_VERSION
    echo_hf: str
    name: Name
    target: Target
    protocol: Literal["published", "corrected"]
    rules_built: bool
    open_reviews: int = 0
    unscreened: int = 0
    hashed_authors: bool = False
    configs: Mapping[ConfigName, ConfigEntry]
    columns: Mapping[ConfigName, ColumnEntry] = {}
    funnel: tuple[StageCounts, ...]
    provenance: Mapping[str, StageOrigin]
    statements: CardStatements = CardStatements()
    card: FileEntry | None = None
    stats: FileEntry | None = None
    benchmark: FileEntry | None = None
    sealed: Seal | None = None
    revealed: Mapping[TagName, Reveal] = {}
    proofs: FileEntry | None = None

    @field_validator("columns")
    @classmethod
    def _check_columns(cls, columns: Mapping[str, ColumnEntry]) -> Mapping[str, ColumnEntry]:
        if taken := sorted(columns.keys() & SAMPLES.columns):
            raise ValueError(f"expected no column of samples among them, such as {taken[0]!r}")
        return columns

    @property
    def files(self) -> list[FileEntry]:
        files = [file for config in self.configs.values() for file in config.files]
        others = filter(None, [self.card, self.stats, self.benchmark, self.proofs])
        return sorted([*files, *others], key=lambda file: file.path)

    def compute_digest(self) -> str:
        """Return the sha256 of the manifest's JSON."""
        return hashlib.sha256(self.to_text().encode()).hexdigest()

    def to_text(self) -> str:
        """Return the manifest's JSON: sorted keys, indented, without a timestamp."""
        # Without columns of other packages or sealed samples as it was before there were any.
        later = ("columns", "sealed", "revealed", "proofs")
        unused = {name for name in later if not getattr(self, name)}
        data = self.model_dump(mode="json", exclude=unused)
        return json.dumps(data, sort_keys=True, indent=2, ensure_ascii=False) + "\n"


def make_manifest(
    facts: ReleaseFacts, entries: Mapping[str, ConfigEntry], samples: Iterable[Dataset] = ()
) -> Manifest:
    """Make the manifest of a release without its card; samples may be in two configs."""
    open_ids, unscreened, has_authors = set(), set(), False
    for dataset in samples:
        columns = ["id", "author", "community_feedback", "safety", "review"]
        batches = arrow_batches(dataset, ROWS_PER_BATCH, columns)
        for rows in batches:
            is_open = pc.greater(pc.list_value_length(rows["review"]), 0)
            open_ids.update(rows["id"].filter(is_open).to_pylist())
            unscreened.update(rows["id"].filter(pc.is_null(rows["safety"])).to_pylist())
            commenters = pc.struct_field(pc.list_flatten(rows["community_feedback"]), "author")
            has_authors = has_authors or any(
                len(column) > column.null_count for column in (rows["author"], commenters)
            )
    return Manifest(
        echo_hf=get_version(),
        name=facts.name,
        target=facts.target,
        protocol=facts.protocol,
        rules_built=facts.rules_built,
        open_reviews=len(open_ids),
        unscreened=len(unscreened),
        hashed_authors=has_authors,
        configs=entries,
        columns=facts.columns,
        sealed=facts.sealed,
        revealed=facts.revealed,
        funnel=tuple(StageCounts(stage=name, counts=row) for name, row in facts.funnel.items()),
        provenance={name: StageOrigin(**origin) for name, origin in facts.provenance.items()},
        statements=CardStatements(
            **{field.name: getattr(facts, field.name) for field in fields(CardStatements)}
        ),
    )


class NoManifestError(ReleaseError):
    """A folder without a manifest, as the dataset of ECHO's authors is."""


def read_manifest(folder: Path) -> Manifest:
    """Read a release's manifest, validated as untrusted input."""
    path = folder / MANIFEST
    try:
        with catch_read_errors(path, "download the release again"):
            if not path.parent.is_dir() or not os.path.lexists(path):
                raise NoManifestError(
                    f"no release in {str(folder)!r}: expected a folder with {MANIFEST}, as `build` "
                    "writes"
                )
            text = read_regular(path, folder, max_bytes=MAX_TEXT_BYTES)
        return Manifest.model_validate_json(text)
    except ValidationError as error:
        raise ReleaseError(
            f"{str(path)!r}: {describe_problem(error)}: write the release again, or read it with "
            "the version that wrote it"
        ) from None


# What the readers of a hostile file raise: beside errors of Arrow, those of a text, of a time that
# is none, of JSON that nests too deeply, and of an image that is not in its table.
READ_ERRORS = (
    *(OSError, pa.ArrowException, ValueError, OverflowError, RecursionError, NotEmbeddedError),
)


@contextmanager
def catch_read_errors(
    path: Path, mend: str = "write or download the release again"
) -> Iterator[None]:
    """Turn errors of reading a release's file into one line."""
    try:
        yield
    except READ_ERRORS as error:
        problem = describe_problem(error) if isinstance(error, ValidationError) else str(error)
        message = " ".join(problem.split())[:300]
        raise ReleaseError(f"{str(path)!r} cannot be read ({message}): {mend}") from None


def file_entry(folder: Path, path: str) -> FileEntry:
    with open_regular(folder / path, folder) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return FileEntry(path=path, bytes=(folder / path).stat().st_size, sha256=digest)


def canonical_json(row: Mapping[str, Any]) -> bytes:
    """Return a row as canonical JSON: sorted keys, no spaces, UTF-8."""
    options: dict[str, Any] = {"sort_keys": True, "ensure_ascii": False, "separators": (",", ":")}
    return json.dumps(row, **options, default=datetime.datetime.isoformat).encode()


def hash_row(row: Mapping[str, Any]) -> bytes:
    """Return the sha256 of a row's `canonical_json`."""
    return hashlib.sha256(canonical_json(row)).digest()


def hash_rows(rows: Iterable[bytes]) -> str:
    """Return the sha256 of the sorted row digests, whatever their order and encoding."""
    return hashlib.sha256(b"".join(sorted(rows))).hexdigest()


def get_version() -> str:
    """Return the installed version of the toolkit, or `source`."""
    try:
        return version("echo-hf")
    except PackageNotFoundError:
        return "source"


MAX_PROOF_BYTES = 1 << 26


def read_openings(folder: Path, manifest: Manifest) -> tuple[Opening, ...]:
    """Read the proofs of a release's revealed rows, or of all rows of a private one, untrusted."""
    if manifest.proofs is None:
        if rows := sum(reveal.rows for reveal in manifest.revealed.values()):
            raise ReleaseError(
                f"release {str(folder)!r} says that {rows:,} rows were revealed, and has no "
                f"{PROOFS}: download it again, or ask its owner"
            )
        return ()
    path, advice = folder / PROOFS, "write or download the release again"
    rows = sum(entry.rows for entry in manifest.configs.values())
    roots = {tag: reveal.root for tag, reveal in manifest.revealed.items()}
    if manifest.sealed is not None and manifest.sealed.private:
        roots[""] = manifest.sealed.root
    with catch_read_errors(path, advice):
        lines = read_regular(path, folder, max_bytes=MAX_PROOF_BYTES).splitlines()
        if len(lines) > rows * len(roots):
            raise ValueError(f"{len(lines):,} proofs of {rows:,} rows under {len(roots):,} roots")
        openings = tuple(map(Opening.model_validate_json, lines))
        for opening in openings:
            if roots.get(opening.tag) != opening.root:
                raise ValueError(f"tag {opening.tag!r} has another root than the manifest says")
        if len({(opening.tag, opening.id) for opening in openings}) < len(openings):
            raise ValueError("a row has two proofs under one root")
    return openings


class ConfigCounts(Section):
    """Rows, embedded images (repetitions counted) and bytes on disk of one config."""

    rows: NonNegativeInt
    pictures: NonNegativeInt
    bytes: NonNegativeInt


class Stats(Section):
    """Counts of a release: by config, by stage, over its samples, and of what is left out."""

    configs: Mapping[str, ConfigCounts]
    funnel: Mapping[str, NestedCounts]
    measured: Mapping[str, SampleCounts] = {}
    left_out: Mapping[str, Mapping[str, int]] = {}
    failed: Mapping[str, Mapping[str, FailedCalls]] = {}


def make_stats(manifest: Manifest, facts: ReleaseFacts | None = None) -> Stats:
    details = {name: getattr(facts, name) for name in ("measured", "left_out", "failed") if facts}
    configs = {
        name: ConfigCounts(
            rows=entry.rows, pictures=entry.pictures, bytes=sum(file.bytes for file in entry.files)
        )
        for name, entry in manifest.configs.items()
    }
    funnel = {row.stage: row.counts for row in manifest.funnel}
    return Stats(configs=configs, funnel=funnel, **details)


def read_stats(folder: Path, manifest: Manifest) -> Stats:
    """Read the counts of a release, validated as untrusted input."""
    if manifest.stats is None:
        return make_stats(manifest)
    with catch_read_errors(folder / STATS):
        text = read_regular(folder / STATS, folder, max_bytes=MAX_TEXT_BYTES)
        return Stats.model_validate_json(text)
