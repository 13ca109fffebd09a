"""What became of each task, written down the moment it is known: a file for each system.

```
runs/<name>/outputs/<system>.jsonl    one JSON object a line; the last one about a sample counts
```

A line is either what a signature stands for, or one output under that signature. A process that is
killed leaves whole lines, and at most half of one, which is cut off when the file is opened again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from echo_hf.engines.base import Usage
from echo_hf.errors import RunError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.request_key import signature_digest

FOLDER = "outputs"
SUFFIX = ".jsonl"
SIGNATURE = "signature"
DESCRIBES = "describes"
DETERMINISM = "determinism"
# What asking again would not change: the others are asked again.
SETTLED = frozenset({Outcome.OK, Outcome.REFUSED, Outcome.NO_IMAGE, Outcome.UNSUPPORTED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What became of one task.

    Attributes:
        sample_id: The sample.
        sample_digest: Sha256 of the prompt and inputs that the system saw.
        split: Config of the benchmark that the sample is in.
        signature: Digest of what decided the picture.
        outcome: What became of it.
        image: Digest of the picture, null when there is none.
        image_bytes: Size of its file; null when there is none, and where it was not noted.
        stage: Where it ended, null for `ok`.
        code: The system's own error code.
        text: What was said beside or instead of a picture.
        seed: Seed that was used.
        revised_prompt: The prompt as the system rewrote it.
        model_reported: Name of the model in the answer.
        usage: Tokens, null where the system counts none.
        cost_usd: Price in US dollars, null when unknown.
        latency_s: Seconds that the last attempt took.
        attempts: How many there were.
        at: When it was known, ISO 8601 in UTC.
        details: What else decides or explains the picture.
    """

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


ENTRY = TypeAdapter(Entry)


class Journal:
    """The outputs of one system in one run; several threads may add to it.

    Args:
        root: The run's folder.
        system: Name of the system.

    Raises:
        RunError: A line is none that this version writes.
    """

    def __init__(self, root: Path, system: str) -> None:
        self.path = root / FOLDER / f"{system}{SUFFIX}"
        self.system = system
        self._signatures: dict[str, Mapping[str, Any]] = {}
        self._determinism: dict[str, str | None] = {}
        self._entries: dict[str, Entry] = {}
        self._current: str | None = None
        self._lock = Lock()
        for number, line in enumerate(_lines(self.path), 1):
            self._take(_parsed(self.path, line, number))

    @property
    def entries(self) -> Mapping[str, Entry]:
        """The last entry about each sample."""
        return self._entries

    @property
    def current(self) -> str | None:
        """Digest of the settings that the last line was written under; null without a line."""
        return self._current

    @property
    def pictures(self) -> set[str]:
        """Digests of the pictures that the entries name."""
        return {one.image for one in self._entries.values() if one.image is not None}

    def describes(self, signature: str) -> Mapping[str, Any]:
        """What a signature stands for."""
        return self._signatures.get(signature, {})

    def determinism(self, signature: str) -> str | None:
        """What the same seed gives under a signature, null where nobody said so."""
        return self._determinism.get(signature)

    def sign(self, signature: Mapping[str, Any], determinism: str | None = None) -> str:
        """Writes down what decides the pictures to come, unless the last line was written under it.

        Args:
            signature: As the system tells it.
            determinism: What the same seed gives, as the system tells it.

        Returns:
            Its digest.
        """
        digest = digest_of(signature)
        with self._lock:
            if digest != self._current:
                row = {SIGNATURE: digest, DESCRIBES: dict(signature), DETERMINISM: determinism}
                self._append(row)
                self._take(row)
        return digest

    def add(self, entry: Entry) -> None:
        """Writes an output down; it survives a killed process when this returns.

        Raises:
            RunError: It could not be read back.
        """
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
                f"({said}): mend the adapter of {self.system!r}"
            ) from None

    def _take(self, row: Entry | Mapping[str, Any]) -> None:
        if isinstance(row, Entry):
            self._entries[row.sample_id] = row
            self._current = row.signature
        else:
            self._current = row[SIGNATURE]
            self._signatures[row[SIGNATURE]] = row[DESCRIBES]
            self._determinism[row[SIGNATURE]] = row.get(DETERMINISM)


def digest_of(signature: Mapping[str, Any]) -> str:
    """Digest of what decides a system's pictures, as entries name it.

    Args:
        signature: As the system tells it.

    Returns:
        16 hexadecimal characters.
    """
    return signature_digest(signature).hex()[:16]


def journals(root: Path) -> list[Journal]:
    """The journals of a run, by name of their systems.

    Args:
        root: The run's folder.

    Returns:
        All of them.

    Raises:
        RunError: As for `Journal`.
    """
    paths = sorted((root / FOLDER).glob(f"*{SUFFIX}"))
    return [Journal(root, path.name.removesuffix(SUFFIX)) for path in paths]


def drop_samples(root: Path, samples: Collection[str]) -> None:
    """Deletes what was written down about samples.

    Nobody may draw meanwhile: see `echo_hf.systems.locks.locked_all`.

    Args:
        root: The run's folder.
        samples: Ids of the samples.

    Raises:
        RunError: As for `Journal`; nothing is deleted then.
    """
    kept = {
        path: b"".join(line + b"\n" for line in _lines_of_others(path, samples))
        for path in sorted((root / FOLDER).glob(f"*{SUFFIX}"))
    }
    for path, data in kept.items():
        if data != path.read_bytes():
            # Whole or not at all: a killed process leaves the old file or the new one.
            partial = path.with_name(f".{path.name}.partial")
            partial.write_bytes(data)
            partial.replace(path)


def _lines_of_others(path: Path, samples: Collection[str]) -> list[bytes]:
    """The whole lines about none of the samples; half a line may be about one."""
    rows = [(line, _parsed(path, line, number)) for number, line in enumerate(_lines(path), 1)]
    return [line for line, row in rows if not (isinstance(row, Entry) and row.sample_id in samples)]


def _lines(path: Path) -> list[bytes]:
    """The whole lines of a file."""
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


def _parsed(path: Path, line: bytes, number: int) -> Entry | Mapping[str, Any]:
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
        f"{str(path)!r}, line {number}, is no output that this version wrote ({said}): remove the "
        "line to have it drawn again"
    )


def _is_signature(row: Any) -> bool:
    return (
        isinstance(row, dict)
        and isinstance(row.get(SIGNATURE), str)
        and isinstance(row.get(DESCRIBES), dict)
    )
