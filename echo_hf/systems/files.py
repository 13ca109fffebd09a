"""Outputs that somebody made before: the only way to score a system that is no longer there."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from xxhash import xxh3_128

from echo_hf._infra.text import plain
from echo_hf.config.checks import File, Name, Section
from echo_hf.config.systems import SystemConfig
from echo_hf.errors import GenerationError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import GenerationResult, Task
from echo_hf.systems.external_results import (
    BadFileError,
    ExternalResult,
    read_bytes,
    read_image,
    read_told,
    result_as_reported,
)
from echo_hf.systems.registry import options_of, register

IMAGE_SUFFIXES = frozenset(
    {".avif", ".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"}
)
MANIFEST = "manifest.jsonl"
FIRST_OUTPUT = "gen_0"


@dataclass(frozen=True, slots=True)
class Layout:
    pattern: str
    place: Callable[[str, str], str]
    nested: bool


LAYOUTS: Mapping[str, Layout] = {
    "autoeval": Layout(
        "SPLIT/{system}/ID.png", lambda system, split: f"{split}/{system}", nested=False
    ),
    "generated": Layout(
        "{system}/SPLIT/ID/gen_0.png", lambda system, split: f"{system}/{split}", nested=True
    ),
    "flat": Layout("ID.png", lambda _system, _split: "", nested=False),
}


def names_in(folder: Path) -> list[str]:
    """The names in a folder, in order; none where it is not there."""
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


class Outputs:
    """The files of one system's outputs in one split; with a table, those that it names."""

    def __init__(self, folder: Path, nested: bool, table: str | None = None) -> None:
        self.folder, self.nested, self.table = folder, nested, table

    def told(self) -> Mapping[str, FileEntry]:
        """What the manifest, or the table, says, by sample."""
        if self.table is not None:
            return read_table(self.folder / self.table)
        return read_manifest(self.folder / MANIFEST)

    def of(self, sample_id: str) -> list[Path]:
        if not self.nested:
            return _images_first(self._by_stem.get(sample_id, []))
        if sample_id not in self._names:
            return []
        return _images_first(_by_stem(self.folder / sample_id).get(FIRST_OUTPUT, []))

    def every(self) -> Iterator[Path]:
        for name in sorted(self._names):
            path = self.folder / name
            if path.is_file():
                yield path
            elif self.nested:
                yield from sorted(_by_stem(path).get(FIRST_OUTPUT, []))

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(names_in(self.folder) if self.table is None else [self.table])

    @cached_property
    def _by_stem(self) -> Mapping[str, list[Path]]:
        return _by_stem(self.folder) if self.table is None else {}


def _by_stem(folder: Path) -> Mapping[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for name in names_in(folder):
        stem, dot, _ = name.rpartition(".")
        if dot and name != MANIFEST:
            found.setdefault(stem, []).append(folder / name)
    return found


def _images_first(paths: list[Path]) -> list[Path]:
    return [path for path in paths if path.suffix.lower() in IMAGE_SUFFIXES] or paths


def _below(file: str) -> str:
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts or "\0" in file:
        raise ValueError("expected a path below the folder of the manifest")
    return file


class FileEntry(ExternalResult):
    """One line.

    Attributes:
        sample_id: The sample.
        file: Where its image lies, below the folder of the manifest.
    """

    sample_id: Annotated[str, Field(min_length=1)]
    file: Annotated[str, Field(min_length=1), AfterValidator(_below)] | None = None


def read_manifest(path: Path) -> Mapping[str, FileEntry]:
    lines = enumerate(_lines(path), start=1)
    places = ((f"{str(path)!r}, line {number}", line) for number, line in lines if line.strip())
    return _by_sample((place, _entry(line, place)) for place, line in places)


MOST_HEADER = 200
TABLE_COLUMNS = {"id": "sample_id", "path": "file"}


def read_table(path: Path) -> Mapping[str, FileEntry]:
    if not path.is_file():
        raise GenerationError(f"no file {str(path)!r}: expected a CSV with the columns id and path")
    try:
        text = b"\n".join(_lines(path)).decode("utf-8-sig")
        return _by_sample(_rows(csv.DictReader(StringIO(text, newline="")), path))
    except (csv.Error, UnicodeDecodeError) as error:
        raise GenerationError(f"cannot read {str(path)!r} as a CSV: {error}") from None


def _rows(rows: csv.DictReader[str], path: Path) -> Iterator[tuple[str, FileEntry]]:
    if missing := TABLE_COLUMNS.keys() - set(rows.fieldnames or ()):
        raise GenerationError(
            f"{str(path)!r} has the columns {plain(repr(rows.fieldnames), MOST_HEADER)}: expected "
            "id and path, "
            f"{' and '.join(sorted(missing))} is missing"
        )
    for row in rows:
        place = f"{str(path)!r}, line {rows.line_num}"
        told = {name: row[column] for column, name in TABLE_COLUMNS.items()}
        yield place, _entry(json.dumps(told).encode(), place)


def _by_sample(told: Iterable[tuple[str, FileEntry]]) -> Mapping[str, FileEntry]:
    entries: dict[str, FileEntry] = {}
    for place, entry in told:
        if entry.sample_id in entries:
            raise GenerationError(
                f"{place} is about {entry.sample_id!r}, as an earlier one is: keep one of them"
            )
        entries[entry.sample_id] = entry
    return entries


def _lines(path: Path) -> list[bytes]:
    if not path.is_file():
        return []
    if not path.resolve().is_relative_to(path.parent.resolve()):
        raise GenerationError(f"{str(path)!r} leads out of its folder: put the file itself there")
    try:
        return path.read_bytes().split(b"\n")
    except OSError as error:
        raise GenerationError(f"cannot read {str(path)!r}: {error.strerror}") from None


def _entry(line: bytes, place: str) -> FileEntry:
    try:
        return read_told(line, FileEntry, place)
    except ValueError as error:
        raise GenerationError(str(error)) from None


MOST_SHOWN = 8


class FilesOptions(Section):
    """The parameters of `files`.

    Attributes:
        folder: Where the outputs lie.
        system: What the folder calls the system; null for the name of the config.
        layout: `flat`: ID.png; `autoeval`: SPLIT/SYSTEM/ID.png; `generated`:
            SYSTEM/SPLIT/ID/gen_0.png. Anything else can be described by a manifest.
        table: Name of a CSV in the folder, whose columns id and path alone say which file is of
            which sample; it goes with `flat`.
    """

    folder: File
    system: Name | None = None
    layout: Literal["autoeval", "generated", "flat"] = "autoeval"
    table: Annotated[str, Field(min_length=1), AfterValidator(_below)] | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.table is not None and self.layout != "flat":
            raise ValueError("table goes with layout: flat")
        return self


@register("files", "outputs that somebody made before")
class FilesSystem:
    determinism = "the same files give the same pictures"

    def __init__(self, config: SystemConfig) -> None:
        options = options_of(config, FilesOptions)
        self.concurrency = 4
        self._config, self._layout = config, LAYOUTS[options.layout]
        self._options, self._system = options, options.system or config.name
        self._splits: dict[str, tuple[Outputs, Mapping[str, FileEntry]]] = {}
        self._reading = Lock()

    def signature(self) -> Mapping[str, Any]:
        """The layout and a digest of the files, by name and content, taken once."""
        return {
            "adapter": "files",
            "model": self._config.model,
            "layout": self._options.layout,
            "files": self._digest,
        }

    def preflight(self) -> None:
        """Makes sure that there are outputs, and that every manifest can be read."""
        if not self._options.folder.is_dir():
            raise GenerationError(f"{self._place}: no folder {self._shown}: set parameters.folder")
        if not any(True for outputs in self._every() for _ in outputs.every()):
            raise GenerationError(
                f"{self._place}: no file {self._pattern!r} in {self._shown}, which has "
                f"{_names(self._options.folder)}: set parameters.folder, system or layout"
            )
        for outputs in self._every():
            outputs.told()

    def draw(self, task: Task) -> GenerationResult:
        """The image of a sample, or what the manifest says became of it."""
        outputs, entries = self._split(task.split)
        entry = entries.get(task.sample_id)
        found = outputs.of(task.sample_id)
        if entry is None and not found:
            return self._unknown(task)
        told = entry or FileEntry(sample_id=task.sample_id)
        try:
            path, image = self._image(told, found, outputs.folder)
        except BadFileError as error:
            return error.drawn()
        return result_as_reported(told, image, _details(told, path, found))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Frees nothing: no file stays open."""

    @property
    def _place(self) -> str:
        return f"system {self._config.name!r}"

    @property
    def _shown(self) -> str:
        return repr(str(self._options.folder))

    @property
    def _pattern(self) -> str:
        return self._layout.pattern.format(system=self._system)

    @cached_property
    def _digest(self) -> str:
        state = xxh3_128()
        for path in self._paths():
            name = path.relative_to(self._options.folder).as_posix()
            state.update(f"{name}\0".encode("utf-8", "surrogateescape"))
            state.update(_content(path, self._options.folder))
        return state.hexdigest()

    def _paths(self) -> Iterator[Path]:
        for outputs in self._every():
            yield from outputs.every()
            for entry in outputs.told().values():
                if entry.file is not None:
                    yield outputs.folder / entry.file

    def _every(self) -> Iterator[Outputs]:
        root = self._options.folder
        above = root / self._system if self._layout.nested else root
        for split in [""] if self._options.layout == "flat" else names_in(above):
            yield self._outputs(split)

    def _outputs(self, split: str) -> Outputs:
        folder = self._options.folder / self._layout.place(self._system, split)
        return Outputs(folder, self._layout.nested, self._options.table)

    def _split(self, split: str) -> tuple[Outputs, Mapping[str, FileEntry]]:
        with self._reading:
            if split not in self._splits:
                outputs = self._outputs(split)
                self._splits[split] = outputs, outputs.told()
            return self._splits[split]

    def _image(
        self, told: FileEntry, found: list[Path], folder: Path
    ) -> tuple[Path | None, bytes | None]:
        if told.outcome is not Outcome.OK:
            return None, None
        path = _only(found, told, folder)
        return path, read_image(path, self._options.folder)

    def _unknown(self, task: Task) -> GenerationResult:
        wanted = self._pattern.replace("SPLIT", task.split).replace("ID", task.sample_id)
        return GenerationResult(
            Outcome.FAILED,
            stage=OutcomeStage.REQUEST,
            code="no_file",
            text=f"no file {wanted!r}, whatever its suffix, and no line in the manifest",
        )


def _only(found: list[Path], told: FileEntry, folder: Path) -> Path:
    if told.file is not None:
        return folder / told.file
    if not found:
        raise BadFileError("no_file", "the manifest says that there is an image, and no file is")
    if len(found) > 1:
        named = ", ".join(repr(path.name) for path in found[:MOST_SHOWN])
        raise BadFileError("several_files", f"{named} are of one sample: keep one of them")
    return found[0]


def _details(told: FileEntry, used: Path | None, found: list[Path]) -> Mapping[str, Any]:
    details = {
        "file": used and used.name,
        "files_not_used": [path.name for path in found if path != used],
        "manifest_says": dict(told.details),
    }
    return {name: value for name, value in details.items() if value}


def _content(path: Path, folder: Path) -> bytes:
    try:
        return xxh3_128(read_bytes(path, folder)).digest()
    except BadFileError as error:
        return error.code.encode()


def _names(folder: Path) -> str:
    names = names_in(folder)
    shown = ", ".join(repr(name) for name in names[:MOST_SHOWN])
    return (shown + ", ...") if len(names) > MOST_SHOWN else shown or "nothing"
