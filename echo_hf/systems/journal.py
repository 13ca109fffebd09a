"""The journal of a system's outputs, written as each is known, and the table made of journals."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from echo_hf._infra.atomic import lock_file, replace_file
from echo_hf._infra.parquet import read_parquet
from echo_hf.config.checks import ANSWERED_BY
from echo_hf.engines.base import Usage
from echo_hf.errors import RunError
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.answer_store import signature_digest
from echo_hf.reasons import Reason
from echo_hf.systems.base import OutcomeStage
from echo_hf.tables import DRAW, OUTPUTS, Outcome, fill_draws


class NotTabled(Reason):
    """Why an output that a journal holds is not in the table of outputs."""

    OTHER_SETTINGS = "other_settings", "not by its system's last settings; the journal keeps it"


FOLDER, SUFFIX = "outputs", ".jsonl"
OUTPUTS_FILE = "outputs.parquet"
KEPT_FILE = "kept.parquet"  # of an older release, in a part of a run
MAX_WAIT_SECONDS = 60
# Outcomes that another attempt would not change.
SETTLED = frozenset({Outcome.OK, Outcome.REFUSED, Outcome.NO_IMAGE, Outcome.UNSUPPORTED})
# An answer came without an image: it is asked again only on request.
UNUSABLE = frozenset({Outcome.NO_IMAGE})


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    sample_id: str
    sample_digest: str
    split: str
    signature: str
    outcome: Outcome
    draw: Annotated[int, Field(ge=0)] = 0
    image: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    image_bytes: Annotated[int, Field(ge=0)] | None = None
    stage: OutcomeStage | None = None
    code: str | None = None
    text: str | None = None
    seed: int | None = None
    revised_prompt: str | None = None
    model_reported: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    latency_s: float | None = None
    attempts: int = 1
    at: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def output_key(self) -> tuple[str, int]:
        return self.sample_id, self.draw


@dataclass(frozen=True, slots=True)
class SignatureRow:
    """The settings behind a signature: they hold for the outputs on the lines after it."""

    signature: str
    describes: Mapping[str, Any]
    determinism: str | None = None
    answered_by: Mapping[str, str | None] = field(default_factory=dict)


ENTRY_ADAPTER, SIGNATURE_ADAPTER = TypeAdapter(JournalEntry), TypeAdapter(SignatureRow)


class Journal:
    """The outputs of one system in one run; several threads may add to it."""

    def __init__(self, root: Path, system: str) -> None:
        self.path, self.system = root / FOLDER / f"{system}{SUFFIX}", system
        self.entries: dict[tuple[str, int], JournalEntry] = {}
        self.current: str | None = None
        self._signatures: dict[str, SignatureRow] = {}
        self._lock = Lock()
        for _, row in _read_rows(self.path):
            self._take(row)

    @property
    def images(self) -> set[str]:
        return {entry.image for entry in self.entries.values() if entry.image is not None}

    def sign(
        self,
        signature: Mapping[str, Any],
        determinism: str | None = None,
        answered_by: Mapping[str, str | None] | None = None,
    ) -> str:
        """Write down the settings of the next outputs, unless the last line has the same."""
        row = SignatureRow(
            hash_signature(signature), dict(signature), determinism, answered_by or {}
        )
        with self._lock:
            stored = self._signatures.get(row.signature)
            renamed = stored is None or stored.answered_by != row.answered_by
            if row.signature != self.current or renamed:
                self._append(row)
        return row.signature

    def add(self, entry: JournalEntry) -> JournalEntry:
        """Write an output to disk, and return it as it will be read back."""
        try:
            # Not by pydantic's JSON: it refuses surrogates and deep details, which are read back.
            line = json.dumps(asdict(entry), default=lambda number: number.item())  # NumPy's
            stored = ENTRY_ADAPTER.validate_python(json.loads(line))
        except (AttributeError, TypeError, ValueError, RecursionError) as error:
            raise RunError(
                f"{str(self.path)!r}: the output of {entry.sample_id!r} cannot be written down "
                f"({' '.join(str(error).split())}): fix the adapter of {self.system!r}"
            ) from None
        with self._lock:
            self._append(stored)
        return stored

    def build_rows(self) -> Iterator[dict[str, Any]]:
        """Yield the outputs under the current settings as rows of the table."""
        for entry in self.entries.values():
            if entry.signature != self.current:
                continue
            settings = self._signatures.get(entry.signature, SignatureRow(entry.signature, {}))
            provenance = {
                "made_by": __name__,
                "signature": entry.signature,
                "system": settings.describes,
                "determinism": settings.determinism,
                ANSWERED_BY: settings.answered_by,
                **{name: getattr(entry, name) for name in ("split", "attempts", "at", "details")},
            }
            own = {name: getattr(entry, name) for name in OUTPUTS.columns if hasattr(entry, name)}
            usage = entry.usage and asdict(entry.usage)
            yield {
                **own,
                "system": self.system,
                "usage": usage and {f"{kind}_tokens": count for kind, count in usage.items()},
                "provenance": json.dumps(provenance, sort_keys=True),
            }

    def _append(self, row: JournalEntry | SignatureRow) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fields_by_name = asdict(row)
        if isinstance(row, JournalEntry) and not row.draw:
            del fields_by_name[DRAW]  # so that a first output reads as it always has
        line = json.dumps(fields_by_name, sort_keys=True).encode() + b"\n"
        with self.path.open("a+b") as file:
            if end := file.seek(0, os.SEEK_END):
                file.seek(end - 1)
                if file.read(1) != b"\n":  # a killed process left a part of a line
                    file.seek(0)
                    file.truncate(file.read().rfind(b"\n") + 1)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self._take(row)

    def _take(self, row: JournalEntry | SignatureRow) -> None:
        self.current = row.signature
        if isinstance(row, JournalEntry):
            self.entries[row.output_key] = row
        else:
            self._signatures[row.signature] = row


def _read_rows(path: Path) -> Iterator[tuple[bytes, JournalEntry | SignatureRow]]:
    """Yield the complete lines of a journal, and their content."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            is_signature = isinstance(row, dict) and "describes" in row
            yield line, (SIGNATURE_ADAPTER if is_signature else ENTRY_ADAPTER).validate_python(row)
            continue
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            problem = ": ".join([*map(str, first["loc"]), first["msg"]])
        except (ValueError, RecursionError) as error:
            problem = " ".join(str(error).split())
        raise RunError(
            f"{str(path)!r}, line {number}, is not an output that this version wrote ({problem}): "
            "remove the line to have it drawn again"
        )


def restore_entries(
    outputs: pa.Table, system: str, signature: str, images: ImageStore
) -> Iterator[JournalEntry]:
    """Yield the entries of a system's outputs in a table that are under these settings."""
    names = {field.name for field in fields(JournalEntry)} & OUTPUTS.columns.keys()
    for row in outputs.filter(pc.equal(outputs["system"], system)).to_pylist():
        try:
            known = json.loads(row["provenance"])
            if known["signature"] != signature:
                continue
            usage = {name.removesuffix("_tokens"): n for name, n in (row["usage"] or {}).items()}
            stated = {name: known[name] for name in ("split", "attempts", "at", "details")}
            digest = row["image"]
            entry = {name: row[name] for name in names} | stated | {"signature": signature}
            entry["usage"] = usage or None
            entry["image_bytes"] = digest and images.path(digest).stat().st_size
            yield ENTRY_ADAPTER.validate_python(entry)
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            continue  # not a row that a journal gave: it is drawn


def hash_signature(signature: Mapping[str, Any]) -> str:
    """Return the short digest of a signature that entries have."""
    return signature_digest(signature).hex()[:16]


def open_journals(root: Path) -> list[Journal]:
    return [Journal(root, name) for name in _list_systems(root)]


def _list_systems(root: Path) -> list[str]:
    return sorted(path.name.removesuffix(SUFFIX) for path in (root / FOLDER).glob(f"*{SUFFIX}"))


def drop_samples(root: Path, samples: Collection[str]) -> None:
    """Remove all lines about samples, and an incomplete line, which may be about one."""
    paths = [root / FOLDER / f"{system}{SUFFIX}" for system in _list_systems(root)]
    # All are read before any is written: one damaged journal leaves all as they were.
    for path, rows in [(path, list(_read_rows(path))) for path in paths]:
        kept = b"".join(
            line + b"\n"
            for line, row in rows
            if isinstance(row, SignatureRow) or row.sample_id not in samples
        )
        if kept != path.read_bytes():
            with replace_file(path) as partial:
                partial.write_bytes(kept)


@contextmanager
def lock_systems(root: Path, systems: Iterable[str]) -> Iterator[None]:
    """Keep other processes from drawing with the same systems in the same run."""
    with ExitStack() as stack:
        for system in sorted(systems):
            (root / FOLDER).mkdir(parents=True, exist_ok=True)
            busy = RunError(
                f"another process is at work on the outputs of {system!r} in {str(root)!r}: wait "
                "for it, or choose other systems with --systems"
            )
            stack.enter_context(lock_file(root / FOLDER / f".{system}.lock", busy))
        yield


def lock_run(root: Path, systems: Iterable[str] = ()) -> AbstractContextManager[None]:
    """Keep all other processes from drawing in a run."""
    return lock_systems(root, {*_list_systems(root), *systems})


def write_outputs(root: Path) -> Path:
    """Write the table of the outputs of all systems of a run."""
    path = root / OUTPUTS_FILE
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    # The last to write has also read last, where several processes end at a time.
    busy = RunError(f"another process has written {str(path)!r} for {MAX_WAIT_SECONDS} s: end it")
    lock = lock_file(root / FOLDER / f".{OUTPUTS_FILE}.lock", busy, MAX_WAIT_SECONDS)
    with lock, replace_file(path) as partial:
        pq.write_table(build_outputs_table(root), partial)
    return path


def _read_outputs(path: Path) -> pa.Table:
    rows = fill_draws(read_parquet(path), OUTPUTS)
    return rows.select(list(OUTPUTS.columns)).cast(OUTPUTS.schema)


def read_kept(root: Path) -> pa.Table:
    path = root / KEPT_FILE
    if not path.exists():
        return OUTPUTS.make_empty()
    return _read_outputs(path)


def build_outputs_table(root: Path) -> pa.Table:
    """Build the table of outputs; rows of systems without a journal stay.

    Kept outputs of an older release stand where the system has not come to an end of its own.
    """
    path, journals, others = root / OUTPUTS_FILE, open_journals(root), OUTPUTS.make_empty()
    if path.exists():
        try:
            others = _read_outputs(path)
        except (KeyError, OSError, pa.ArrowException) as error:
            raise RunError(
                f"{str(path)!r} is not a table of outputs ({' '.join(str(error).split())}): fix "
                "it, or move it away to have it written again from what the systems of this run "
                "have drawn"
            ) from None
        own_systems = pa.array([journal.system for journal in journals], pa.string())
        others = others.filter(pc.invert(pc.is_in(others["system"], own_systems)))
    rows = [row for journal in journals for row in journal.build_rows()]
    if (root / KEPT_FILE).exists():
        by_key = {tuple(row[name] for name in OUTPUTS.key): row for row in rows}
        for row in read_kept(root).to_pylist():
            key = tuple(row[name] for name in OUTPUTS.key)
            if key not in by_key or by_key[key]["outcome"] not in SETTLED:
                by_key[key] = row
        rows, others = [*by_key.values()], OUTPUTS.make_empty()
    table = pa.concat_tables([others, pa.Table.from_pylist(rows, OUTPUTS.schema)])
    return table.sort_by([(name, "ascending") for name in OUTPUTS.key])


def count_untabled(root: Path) -> Mapping[str, Mapping[NotTabled, int]]:
    """Count by system and reason the outputs that the table leaves out."""
    untabled = {}
    for journal in open_journals(root):
        entries = journal.entries.values()
        if count := sum(entry.signature != journal.current for entry in entries):
            untabled[journal.system] = {NotTabled.OTHER_SETTINGS: count}
    return untabled
