"""Outputs that somebody made before, and what other programs report of theirs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, Field, ValidationError, model_validator
from xxhash import xxh3_128

from echo_hf._infra.regular_file import open_regular, read_regular
from echo_hf._infra.text import plain
from echo_hf.config.checks import File, Name, Section, Whole, first_error
from echo_hf.config.systems import Dollars, SystemConfig
from echo_hf.errors import GenerationError, ImageError
from echo_hf.images.store import MOST_BYTES, check_image
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import GenerationResult, JsonMapping, Task, failed
from echo_hf.systems.registry import options_of, register

# Where a task ended whose teller does not say so.
ENDED = {
    Outcome.REFUSED: OutcomeStage.INPUT,
    Outcome.NO_IMAGE: OutcomeStage.ANSWER,
    Outcome.FAILED: OutcomeStage.REQUEST,
    Outcome.UNSUPPORTED: OutcomeStage.TASK,
    Outcome.RETIRED: OutcomeStage.PREFLIGHT,
}
Model = TypeVar("Model", bound=BaseModel)
Short = Annotated[str, Field(max_length=200)]


class ExternalResult(Section):
    """What became of a task, in somebody else's words."""

    outcome: Outcome = Outcome.OK
    stage: OutcomeStage | None = None
    code: Short | None = None
    text: str | None = None
    seed: Annotated[Whole, Field(ge=0, lt=2**63)] | None = None
    revised_prompt: str | None = None
    model: Short | None = None
    cost_usd: Dollars | None = None
    details: JsonMapping = {}  # noqa: RUF012 - a Section is frozen

    def result(self, image: bytes | None, details: Mapping[str, Any]) -> GenerationResult:
        """What became of the task; `ok` ends nowhere, and what is retired was never asked."""
        usual = ENDED.get(self.outcome)
        is_told = self.stage and self.outcome not in (Outcome.OK, Outcome.RETIRED)
        return GenerationResult(
            outcome=self.outcome,
            image=image,
            stage=self.stage if is_told else usual,
            code=self.code,
            text=self.text,
            seed=self.seed,
            revised_prompt=self.revised_prompt,
            model_reported=self.model,
            cost_usd=self.cost_usd,
            details=details,
        )


def read_told(line: bytes, model: type[Model], place: str) -> Model:
    try:
        return model.model_validate_json(line)
    except ValidationError as error:
        if error.errors()[0]["type"] in ("json_invalid", "model_type"):
            raise ValueError(f"{place} is {line[:80]!r}: expected a JSON object") from None
        raise ValueError(first_error(error, place, model)) from None


class BadFileError(ImageError):
    """A file that is not taken as an image, and the code of the task whose image it was to be."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code

    def drawn(self) -> GenerationResult:
        return failed(str(self), self.code, OutcomeStage.ANSWER)


def read_image(path: Path, folder: Path) -> bytes:
    """An image in a folder, wherever its links lead."""
    data = read_bytes(path, folder)
    try:
        check_image(data)
    except ImageError as error:
        # Of an oversized file only the beginning was read: the number of its bytes is not known.
        said = f"more than {MOST_BYTES} bytes" if len(data) > MOST_BYTES else str(error)
        raise BadFileError("bad_picture", f"{path.name!r}: {said}") from None
    return data


CODES = {"outside": "outside", "irregular": "no_regular_file"}


def read_bytes(path: Path, folder: Path) -> bytes:
    """The beginning of a regular file inside a folder."""
    try:
        with open_regular(path, folder) as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        code = CODES.get(getattr(error, "code", ""), "no_picture_file")
        raise BadFileError(code, f"{path.name!r} is not read: {error.strerror}") from None


IMAGE_SUFFIXES = {".avif", ".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"}
MANIFEST = "manifest.jsonl"
FIRST_OUTPUT = "gen_0"
# Where the outputs of a split lie, and how a message shows the place of one.
LAYOUTS = {
    "autoeval": ("{split}/{system}", "SPLIT/{system}/ID.png"),
    "generated": ("{system}/{split}", "{system}/SPLIT/ID/gen_0.png"),
    "flat": ("", "ID.png"),
}
MOST_SHOWN = 8
MOST_TABLE_BYTES = 1 << 27


def names_in(folder: Path) -> list[str]:
    """The names in a folder, in order; none where it is not there."""
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def _below(file: str) -> str:
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts or "\0" in file:
        raise ValueError("expected a path below the folder of the manifest")
    return file


class FileEntry(ExternalResult):
    sample_id: Annotated[str, Field(min_length=1)]
    file: Annotated[str, Field(min_length=1), AfterValidator(_below)] | None = None


class Outputs:
    """The files of one system's outputs in one split; with a table, those that it names."""

    def __init__(self, folder: Path, nested: bool, table: str | None = None) -> None:
        self.folder, self.nested, self.table = folder, nested, table

    @cached_property
    def told(self) -> Mapping[str, FileEntry]:
        """What the manifest, or the table, says, by sample."""
        found: dict[str, FileEntry] = {}
        for place, line in self._lines():
            try:
                entry = read_told(line, FileEntry, place)
            except ValueError as error:
                raise GenerationError(str(error)) from None
            if entry.sample_id in found:
                raise GenerationError(
                    f"{place} is about {entry.sample_id!r}, as an earlier one is: keep one of them"
                )
            found[entry.sample_id] = entry
        return found

    def of(self, sample_id: str) -> list[Path]:
        """The files of a sample: its images, or what else has its name."""
        found = [] if self.nested else self._by_stem.get(sample_id, [])
        if self.nested and sample_id in self._names:
            found = _by_stem(self.folder / sample_id).get(FIRST_OUTPUT, [])
        return [path for path in found if path.suffix.lower() in IMAGE_SUFFIXES] or found

    def every(self) -> Iterator[Path]:
        for name in self._names:
            path = self.folder / name
            if path.is_file():
                yield path
            elif self.nested:
                yield from _by_stem(path).get(FIRST_OUTPUT, [])

    @cached_property
    def _names(self) -> Mapping[str, None]:
        """In order, and found at once: each sample asks for its own."""
        return dict.fromkeys(names_in(self.folder) if self.table is None else [self.table])

    @cached_property
    def _by_stem(self) -> Mapping[str, list[Path]]:
        return _by_stem(self.folder) if self.table is None else {}

    def _lines(self) -> Iterator[tuple[str, bytes]]:
        """The lines of the manifest, or of the table as a manifest has them, and their places."""
        from pandas import read_csv

        path = self.folder / (self.table or MANIFEST)
        if self.table is None and not path.is_file():
            return
        try:
            told = read_regular(path, self.folder, most_bytes=MOST_TABLE_BYTES)
            if self.table is None:
                first, lines = 1, told.split(b"\n")
            else:
                columns, file = {"id": "sample_id", "path": "file"}, BytesIO(told)
                rows = read_csv(file, usecols=[*columns], dtype=str, keep_default_na=False)
                every = rows.rename(columns=columns).to_dict("records")
                first, lines = 2, [json.dumps(row).encode() for row in every]
        except (OSError, ValueError) as error:
            expected = "expected a manifest, or a CSV with the columns id and path"
            raise GenerationError(
                f"cannot read {str(path)!r} ({plain(str(error))}): {expected}"
            ) from None
        for number, line in enumerate(lines, first):
            if line.strip():
                yield f"{str(path)!r}, line {number}", line


def _by_stem(folder: Path) -> Mapping[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for name in names_in(folder):
        stem, dot, _ = name.rpartition(".")
        if dot and name != MANIFEST:
            found.setdefault(stem, []).append(folder / name)
    return found


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
    concurrency = 4
    determinism = "the same files give the same pictures"

    def __init__(self, config: SystemConfig) -> None:
        self._config, self._options = config, options_of(config, FilesOptions)
        self._system = self._options.system or config.name
        self._place, pattern = LAYOUTS[self._options.layout]
        self._pattern = pattern.format(system=self._system)
        self._splits: dict[str, Outputs] = {}

    def signature(self) -> Mapping[str, Any]:
        """The layout and a digest of the files, by name and content, taken once."""
        known = {"adapter": "files", "model": self._config.model}
        return {**known, "layout": self._options.layout, "files": self._digest}

    def preflight(self) -> None:
        """Makes sure that there are outputs, and that every manifest can be read."""
        folder, every = self._options.folder, list(self._every())
        for outputs in every:
            outputs.told  # noqa: B018 - reads it
        if not any(next(outputs.every(), None) for outputs in every):
            raise GenerationError(
                f"system {self._config.name!r}: no file {self._pattern!r} in {str(folder)!r}, "
                f"which has {plain(', '.join(map(repr, names_in(folder)))) or 'nothing'}: set "
                "parameters.folder, system or layout (flat: ID.png)"
            )

    def draw(self, task: Task) -> GenerationResult:
        """The image of a sample, or what the manifest says became of it."""
        outputs = self._outputs(task.split)
        found, told = outputs.of(task.sample_id), outputs.told.get(task.sample_id)
        if told is None and not found:
            wanted = self._pattern.replace("SPLIT", task.split).replace("ID", task.sample_id)
            text = f"no file {wanted!r}, whatever its suffix, and no line in the manifest"
            return failed(text, "no_file")
        told = told or FileEntry(sample_id=task.sample_id)
        path, image = None, None
        if told.outcome is Outcome.OK:
            if told.file is None and len(found) != 1:
                named = ", ".join(repr(path.name) for path in found[:MOST_SHOWN])
                text = f"{named or 'no file'} of one sample, of which there should be one file"
                return failed(text, "several_files" if found else "no_file", OutcomeStage.ANSWER)
            path = found[0] if told.file is None else outputs.folder / told.file
            try:
                image = read_image(path, self._options.folder)
            except BadFileError as error:
                return error.drawn()
        details = {
            "file": path and path.name,
            "files_not_used": [one.name for one in found if one != path],
            "manifest_says": dict(told.details),
        }
        return told.result(image, {name: value for name, value in details.items() if value})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Frees nothing: no file stays open."""

    @cached_property
    def _digest(self) -> str:
        state, folder = xxh3_128(), self._options.folder
        for outputs in self._every():
            named = (one.file for one in outputs.told.values() if one.file is not None)
            for path in (*outputs.every(), *(outputs.folder / file for file in named)):
                name = path.relative_to(folder).as_posix()
                state.update(f"{name}\0".encode("utf-8", "surrogateescape"))
                try:
                    state.update(xxh3_128(read_bytes(path, folder)).digest())
                except BadFileError as error:
                    state.update(error.code.encode())
        return state.hexdigest()

    def _every(self) -> Iterator[Outputs]:
        root, layout = self._options.folder, self._options.layout
        above = root / self._system if layout == "generated" else root
        for split in [""] if layout == "flat" else names_in(above):
            yield self._outputs(split)

    def _outputs(self, split: str) -> Outputs:
        if split not in self._splits:
            folder = self._options.folder / self._place.format(system=self._system, split=split)
            nested = self._options.layout == "generated"
            self._splits[split] = Outputs(folder, nested, self._options.table)
        return self._splits[split]
