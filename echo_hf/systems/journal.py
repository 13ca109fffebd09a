"""What became of each task, written down the moment it is known, and the table made of it."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from echo_hf._infra.atomic import held, replaced_file
from echo_hf.engines.base import Usage
from echo_hf.errors import RunError
from echo_hf.pipeline.answer_store import signature_digest
from echo_hf.reasons import NotTabled, Outcome, OutcomeStage
from echo_hf.tables import OUTPUTS

FOLDER = "outputs"
SUFFIX = ".jsonl"
SIGNATURE = "signature"
DESCRIBES = "describes"
DETERMINISM = "determinism"
# What asking again would not change: the others are asked again.
SETTLED = frozenset({Outcome.OK, Outcome.REFUSED, Outcome.NO_IMAGE, Outcome.UNSUPPORTED})


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """What became of one task."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    sample_id: str
    sample_digest: str
    split: str
    signature: str
    outcome: Outcome
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
    def settled(self) -> bool:
        """Whether asking again would change nothing."""
        return self.outcome in SETTLED


ENTRY = TypeAdapter(JournalEntry)


class Journal:
    """The outputs of one system in one run; several threads may add to it."""

    def __init__(self, root: Path, system: str) -> None:
        self.path = root / FOLDER / f"{system}{SUFFIX}"
        self.system = system
        self._signatures: dict[str, Mapping[str, Any]] = {}
        self._determinism: dict[str, str | None] = {}
        self._entries: dict[str, JournalEntry] = {}
        self._current: str | None = None
        self._lock = Lock()
        for number, line in enumerate(_lines(self.path), 1):
            self._take(_parsed(self.path, line, number))

    @property
    def entries(self) -> Mapping[str, JournalEntry]:
        """The last entry about each sample."""
        return self._entries

    @property
    def current(self) -> str | None:
        """Digest of the settings that the last line was written under; null without a line."""
        return self._current

    @property
    def images(self) -> set[str]:
        return {one.image for one in self._entries.values() if one.image is not None}

    def describes(self, signature: str) -> Mapping[str, Any]:
        return self._signatures.get(signature, {})

    def determinism(self, signature: str) -> str | None:
        """What the same seed gives under a signature, null where nobody said so."""
        return self._determinism.get(signature)

    def sign(self, signature: Mapping[str, Any], determinism: str | None = None) -> str:
        """Writes down what decides the images to come, unless the last line says so."""
        digest = digest_of(signature)
        with self._lock:
            if digest != self._current:
                row = {SIGNATURE: digest, DESCRIBES: dict(signature), DETERMINISM: determinism}
                self._append(row)
                self._take(row)
        return digest

    def add(self, entry: JournalEntry) -> None:
        """Writes an output down; it survives a killed process when this returns."""
        row = asdict(entry)
        self._check(row)
        with self._lock:
            self._append(row)
            self._take(entry)

    def _append(self, row: Mapping[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        data = json.dumps(row, sort_keys=True).encode() + b"\n"
        with self.path.open("ab") as file:
            _cut_half_line(self.path)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def _check(self, row: Mapping[str, Any]) -> None:
        try:
            ENTRY.validate_python(json.loads(json.dumps(row)))
        except (TypeError, ValueError, RecursionError) as error:
            said = " ".join(str(error).split())
            raise RunError(
                f"{str(self.path)!r}: the output of {row['sample_id']!r} cannot be written down "
                f"({said}): fix the adapter of {self.system!r}"
            ) from None

    def _take(self, row: JournalEntry | Mapping[str, Any]) -> None:
        if isinstance(row, JournalEntry):
            self._entries[row.sample_id] = row
            self._current = row.signature
        else:
            self._current = row[SIGNATURE]
            self._signatures[row[SIGNATURE]] = row[DESCRIBES]
            self._determinism[row[SIGNATURE]] = row.get(DETERMINISM)


def digest_of(signature: Mapping[str, Any]) -> str:
    """Digest of what decides a system's images, as entries name it."""
    return signature_digest(signature).hex()[:16]


def journals(root: Path) -> list[Journal]:
    paths = sorted((root / FOLDER).glob(f"*{SUFFIX}"))
    return [Journal(root, path.name.removesuffix(SUFFIX)) for path in paths]


def drop_samples(root: Path, samples: Collection[str]) -> None:
    kept = {
        path: b"".join(line + b"\n" for line in _lines_of_others(path, samples))
        for path in sorted((root / FOLDER).glob(f"*{SUFFIX}"))
    }
    for path, data in kept.items():
        if data != path.read_bytes():
            with replaced_file(path) as partial:
                partial.write_bytes(data)


def _lines_of_others(path: Path, samples: Collection[str]) -> list[bytes]:
    """The whole lines about none of the samples; half a line may be about one."""
    rows = [(line, _parsed(path, line, number)) for number, line in enumerate(_lines(path), 1)]
    return [
        line
        for line, row in rows
        if not (isinstance(row, JournalEntry) and row.sample_id in samples)
    ]


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\n")[:-1] if path.exists() else []


def _cut_half_line(path: Path) -> None:
    """Cuts off what a killed process left of its last line."""
    with path.open("rb+") as file:
        end = file.seek(0, os.SEEK_END)
        if not end:
            return
        file.seek(end - 1)
        if file.read(1) != b"\n":
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)


def _parsed(path: Path, line: bytes, number: int) -> JournalEntry | Mapping[str, Any]:
    """A line: an output, or the mapping that says what a signature stands for."""
    try:
        row = json.loads(line)
        return row if _is_signature(row) else ENTRY.validate_python(row)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        said = ": ".join([*map(str, first["loc"]), first["msg"]])
    except (ValueError, RecursionError) as error:
        said = " ".join(str(error).split())
    raise RunError(
        f"{str(path)!r}, line {number}, is not an output that this version wrote ({said}): "
        "remove the "
        "line to have it drawn again"
    )


def _is_signature(row: Any) -> bool:
    return (
        isinstance(row, dict)
        and isinstance(row.get(SIGNATURE), str)
        and isinstance(row.get(DESCRIBES), dict)
    )


@contextmanager
def locked(root: Path, system: str) -> Iterator[None]:
    """Keeps other processes from drawing with the same system in the same run."""
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    busy = RunError(
        f"another process is at work on the outputs of {system!r} in {str(root)!r}: wait for "
        "it, or choose other systems with --systems"
    )
    with held(root / FOLDER / f".{system}.lock", busy):
        yield


@contextmanager
def locked_all(root: Path, systems: Iterable[str] = ()) -> Iterator[None]:
    """Keeps every process from drawing in a run."""
    drawn = (path.name.removesuffix(SUFFIX) for path in (root / FOLDER).glob(f"*{SUFFIX}"))
    with ExitStack() as stack:
        for system in sorted({*drawn, *systems}):
            stack.enter_context(locked(root, system))
        yield


FILE = "outputs.parquet"
LONGEST_WAIT_S = 60
TOLD = ("code", "text", "revised_prompt", "model_reported")


def write_outputs(root: Path) -> Path:
    path = root / FILE
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    # Whoever writes last has read last: several processes may end at a time.
    busy = RunError(f"another process has written {str(path)!r} for {LONGEST_WAIT_S} s: end it")
    lock = held(root / FOLDER / f".{FILE}.lock", busy, LONGEST_WAIT_S)
    with lock, replaced_file(path) as partial:
        pq.write_table(outputs_table(root), partial)
    return path


def outputs_table(root: Path) -> pa.Table:
    drawn = journals(root)
    rows = [row for journal in drawn for row in output_rows(journal)]
    table = pa.Table.from_pylist(rows, OUTPUTS.schema)
    others = _of_others(root / FILE, [journal.system for journal in drawn])
    return pa.concat_tables([others, table]).sort_by([(name, "ascending") for name in OUTPUTS.key])


def not_tabled(root: Path) -> Mapping[str, Mapping[NotTabled, int]]:
    drawn = journals(root)
    counts = {one.system: len(one.entries) - len(output_rows(one)) for one in drawn}
    return {name: {NotTabled.OTHER_SETTINGS: count} for name, count in counts.items() if count}


def output_rows(journal: Journal) -> list[dict[str, Any]]:
    entries = journal.entries.values()
    return [_row(journal, entry) for entry in entries if entry.signature == journal.current]


def _row(journal: Journal, entry: JournalEntry) -> dict[str, Any]:
    made = {
        "made_by": "echo_hf.systems.journal",
        "signature": entry.signature,
        "system": journal.describes(entry.signature),
        "determinism": journal.determinism(entry.signature),
        "split": entry.split,
        "attempts": entry.attempts,
        "at": entry.at,
        "details": entry.details,
    }
    usage = entry.usage
    return {
        "sample_id": entry.sample_id,
        "system": journal.system,
        "sample_digest": entry.sample_digest,
        "image": entry.image,
        "outcome": entry.outcome.value,
        "stage": None if entry.stage is None else entry.stage.value,
        "seed": entry.seed,
        "latency_s": entry.latency_s,
        "usage": usage and {f"{kind}_tokens": count for kind, count in asdict(usage).items()},
        "cost_usd": entry.cost_usd,
        "provenance": json.dumps(made, sort_keys=True),
        **{name: getattr(entry, name) for name in TOLD},
    }


def _of_others(path: Path, ours: Sequence[str]) -> pa.Table:
    if not path.exists():
        return OUTPUTS.empty()
    try:
        table = pq.read_table(path).select(list(OUTPUTS.columns)).cast(OUTPUTS.schema)
    except (KeyError, OSError, pa.ArrowException) as error:
        said = " ".join(str(error).split())
        raise RunError(
            f"{str(path)!r} is not a table of outputs ({said}): fix it, or move it away to have it "
            "written again from what the systems of this run have drawn"
        ) from None
    return table.filter(pc.invert(pc.is_in(table["system"], pa.array(ours, pa.string()))))
