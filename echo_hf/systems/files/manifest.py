"""What the maker of a folder of outputs knows of them: a line of JSON for each sample.

    {"sample_id": "a1", "outcome": "refused", "stage": "input", "text": "I cannot draw that."}
    {"sample_id": "b2", "file": "7/output.png", "seed": 3, "model": "lumen-1", "cost_usd": 0.04}

Without a `file`, a picture lies where the layout has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, Field

from echo_hf.errors import GenerationError
from echo_hf.systems.told import Told, read_told


def _below(file: str) -> str:
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts or "\0" in file:
        raise ValueError("expected a path below the folder of the manifest")
    return file


class Entry(Told):
    """One line.

    Attributes:
        sample_id: The sample.
        file: Where its picture lies, below the folder of the manifest.
    """

    sample_id: Annotated[str, Field(min_length=1)]
    file: Annotated[str, Field(min_length=1), AfterValidator(_below)] | None = None


def read_manifest(path: Path) -> Mapping[str, Entry]:
    """Reads a manifest.

    Args:
        path: The file; it need not be there.

    Returns:
        Its entries, by the id of their sample.

    Raises:
        GenerationError: A line cannot be read, or two are about one sample.
    """
    entries: dict[str, Entry] = {}
    for number, line in enumerate(_lines(path), start=1):
        place = f"{str(path)!r}, line {number}"
        if not line.strip():
            continue
        entry = _entry(line, place)
        if entry.sample_id in entries:
            raise GenerationError(
                f"{place} is about {entry.sample_id!r}, as an earlier one is: keep one of them"
            )
        entries[entry.sample_id] = entry
    return entries


def _lines(path: Path) -> list[bytes]:
    if not path.is_file():
        return []
    try:
        return path.read_bytes().split(b"\n")
    except OSError as error:
        raise GenerationError(f"cannot read {str(path)!r}: {error.strerror}") from None


def _entry(line: bytes, place: str) -> Entry:
    try:
        return read_told(line, Entry, place)
    except ValueError as error:
        raise GenerationError(str(error)) from None
