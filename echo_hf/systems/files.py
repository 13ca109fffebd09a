"""Outputs that were made before, and results that other programs report."""

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
from echo_hf._infra.text import clean
from echo_hf.config.checks import Name, ReadablePath, Section, StrictInt, first_error
from echo_hf.config.systems import MAX_OUTPUTS, CappedDollars, SystemConfig
from echo_hf.errors import ConfigError, GenerationError, ImageError
from echo_hf.images.store import MAX_IMAGE_BYTES, check_image
from echo_hf.systems.base import GenerationResult, JsonMapping, OutcomeStage, Task, failure_result
from echo_hf.systems.registry import parse_options, register
from echo_hf.tables import Outcome

NO_FILE, SEVERAL_FILES = "no_file", "several_files"  # codes of samples without just one
# The stage in which a task ended, where the report does not name one.
DEFAULT_STAGES = {
    Outcome.REFUSED: OutcomeStage.INPUT,
    Outcome.NO_IMAGE: OutcomeStage.ANSWER,
    Outcome.FAILED: OutcomeStage.REQUEST,
    Outcome.UNSUPPORTED: OutcomeStage.TASK,
    Outcome.RETIRED: OutcomeStage.PREFLIGHT,
}
ModelT = TypeVar("ModelT", bound=BaseModel)
ShortText = Annotated[str, Field(max_length=200)]


class ExternalResult(Section):
    """The result of a task, as another program reports it."""

    outcome: Outcome = Outcome.OK
    stage: OutcomeStage | None = None
    code: ShortText | None = None
    text: str | None = None
    seed: Annotated[StrictInt, Field(ge=0, lt=2**63)] | None = None
    revised_prompt: str | None = None
    model: ShortText | None = None
    cost_usd: CappedDollars | None = None
    details: JsonMapping = {}  # noqa: RUF012 - a Section is frozen

    def build_result(self, image: bytes | None, details: Mapping[str, Any]) -> GenerationResult:
        """Convert the report; `ok` has no stage, and of a retired model nothing was asked."""
        default = DEFAULT_STAGES.get(self.outcome)
        is_told = self.stage and self.outcome not in (Outcome.OK, Outcome.RETIRED)
        return GenerationResult(
            outcome=self.outcome,
            image=image,
            stage=self.stage if is_told else default,
            code=self.code,
            text=self.text,
            seed=self.seed,
            revised_prompt=self.revised_prompt,
            model_reported=self.model,
            cost_usd=self.cost_usd,
            details=details,
        )


def parse_result(line: bytes, model: type[ModelT], place: str) -> ModelT:
    try:
        return model.model_validate_json(line)
    except ValidationError as error:
        if error.errors()[0]["type"] in ("json_invalid", "model_type"):
            raise ValueError(f"{place} is {line[:80]!r}: expected a JSON object") from None
        raise ValueError(first_error(error, place, model)) from None


class BadFileError(ImageError):
    """A file that cannot be used as an image, with the code for its task."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code

    def to_result(self) -> GenerationResult:
        return failure_result(str(self), self.code, OutcomeStage.ANSWER)


def read_image(path: Path, folder: Path) -> bytes:
    """Read an image in a folder; links must not lead out of it."""
    encoded = read_bytes(path, folder)
    try:
        check_image(encoded)
    except ImageError as error:
        # A file that is too large was read in part, so that its size is not known.
        problem = (
            f"more than {MAX_IMAGE_BYTES} bytes" if len(encoded) > MAX_IMAGE_BYTES else str(error)
        )
        raise BadFileError("bad_picture", f"{path.name!r}: {problem}") from None
    return encoded


ERROR_CODES = {"outside": "outside", "irregular": "no_regular_file"}


def read_bytes(path: Path, folder: Path) -> bytes:
    """Read a regular file inside a folder, up to the largest size of an image."""
    try:
        with open_regular(path, folder) as file:
            return file.read(MAX_IMAGE_BYTES + 1)
    except OSError as error:
        code = ERROR_CODES.get(getattr(error, "code", ""), "no_picture_file")
        raise BadFileError(code, f"{path.name!r} is not read: {error.strerror}") from None


IMAGE_SUFFIXES = {".avif", ".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"}
MANIFEST = "manifest.jsonl"
OUTPUT_STEM = "gen_{draw}"
# The folder of a split's outputs, and a pattern of their paths for messages.
LAYOUTS = {
    "autoeval": ("{split}/{system}", "SPLIT/{system}/ID.png"),
    "generated": ("{system}/{split}", "{system}/SPLIT/ID/gen_0.png"),
    "flat": ("", "ID.png"),
}
MAX_LISTED_FILES = 8
MAX_TABLE_BYTES = 1 << 27


def list_names(folder: Path) -> list[str]:
    """List the names in a folder in order; empty where there is none."""
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def _check_below(file: str) -> str:
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts or "\0" in file:
        raise ValueError("expected a path below the folder of the manifest")
    return file


class FileEntry(ExternalResult):
    sample_id: Annotated[str, Field(min_length=1)]
    draw: Annotated[StrictInt, Field(ge=0, lt=MAX_OUTPUTS)] = 0
    file: Annotated[str, Field(min_length=1), AfterValidator(_check_below)] | None = None


class OutputFolder:
    """The files of one system's outputs in one split; with a table, those that it lists."""

    def __init__(self, folder: Path, nested: bool, table: str | None = None) -> None:
        self.folder, self.nested, self.table = folder, nested, table

    @cached_property
    def entries(self) -> Mapping[tuple[str, int], FileEntry]:
        """Read the entries of the manifest or the table, by sample and draw."""
        entries: dict[tuple[str, int], FileEntry] = {}
        for place, line in self._read_lines():
            try:
                entry = parse_result(line, FileEntry, place)
            except ValueError as error:
                raise GenerationError(str(error)) from None
            key = entry.sample_id, entry.draw
            if key in entries:
                draw = f", draw {entry.draw}" if entry.draw else ""
                raise GenerationError(
                    f"{place} is about {entry.sample_id!r}{draw}, as an earlier one is: keep one "
                    "of them"
                )
            entries[key] = entry
        return entries

    def find_files(self, sample_id: str, draw: int = 0) -> list[Path]:
        """Find the files of a sample's output: images, or else other files of its name."""
        stem = f"{sample_id}.{draw}" if draw else sample_id
        paths = [] if self.nested else self._by_stem.get(stem, [])
        if self.nested and sample_id in self._names:
            stem = OUTPUT_STEM.format(draw=draw)
            paths = _group_by_stem(self.folder / sample_id).get(stem, [])
        return [path for path in paths if path.suffix.lower() in IMAGE_SUFFIXES] or paths

    def iterate_files(self) -> Iterator[Path]:
        for name in self._names:
            path = self.folder / name
            if path.is_file():
                yield path
            elif self.nested:
                by_stem = _group_by_stem(path)
                for draw in range(MAX_OUTPUTS):
                    yield from by_stem.get(OUTPUT_STEM.format(draw=draw), [])

    @cached_property
    def _names(self) -> Mapping[str, None]:
        """The names in order, as a mapping, since each sample looks for its own."""
        return dict.fromkeys(list_names(self.folder) if self.table is None else [self.table])

    @cached_property
    def _by_stem(self) -> Mapping[str, list[Path]]:
        return _group_by_stem(self.folder) if self.table is None else {}

    def _read_lines(self) -> Iterator[tuple[str, bytes]]:
        """Yield the lines of the manifest, or of the table in its form, with their places."""
        from pandas import read_csv

        path = self.folder / (self.table or MANIFEST)
        if self.table is None and not path.is_file():
            return
        try:
            content = read_regular(path, self.folder, max_bytes=MAX_TABLE_BYTES)
            if self.table is None:
                first, lines = 1, content.split(b"\n")
            else:
                columns, file = {"id": "sample_id", "path": "file"}, BytesIO(content)
                rows = read_csv(file, usecols=[*columns], dtype=str, keep_default_na=False)
                records = rows.rename(columns=columns).to_dict("records")
                first, lines = 2, [json.dumps(row).encode() for row in records]
        except (OSError, ValueError) as error:
            expected = "expected a manifest, or a CSV with the columns id and path"
            raise GenerationError(
                f"cannot read {str(path)!r} ({clean(str(error))}): {expected}"
            ) from None
        for number, line in enumerate(lines, first):
            if line.strip():
                yield f"{str(path)!r}, line {number}", line


def _group_by_stem(folder: Path) -> Mapping[str, list[Path]]:
    by_stem: dict[str, list[Path]] = {}
    for name in list_names(folder):
        stem, dot, _ = name.rpartition(".")
        if dot and name != MANIFEST:
            by_stem.setdefault(stem, []).append(folder / name)
    return by_stem


class FilesOptions(Section):
    """The parameters of `files`.

    Attributes:
        folder: Where the outputs lie.
        system: What the folder calls the system; null for the name of the config.
        layout: `flat`: ID.png; `autoeval`: SPLIT/SYSTEM/ID.png; `generated`:
            SYSTEM/SPLIT/ID/gen_0.png. The second output of a sample is ID.1.png or gen_1.png, and
            so on. Anything else can be described by a manifest, whose lines may have a `draw`.
        table: Name of a CSV in the folder, whose columns id and path alone say which file is of
            which sample; it goes with `flat`.
    """

    folder: ReadablePath
    system: Name | None = None
    layout: Literal["autoeval", "generated", "flat"] = "autoeval"
    table: Annotated[str, Field(min_length=1), AfterValidator(_check_below)] | None = None

    @model_validator(mode="after")
    def _check_layout(self) -> Self:
        if self.table is not None and self.layout != "flat":
            raise ValueError("table goes with layout: flat")
        return self


@register("files", "outputs that somebody made before")
class FilesSystem:
    concurrency = 4
    determinism = "the same files give the same pictures"

    def __init__(self, config: SystemConfig) -> None:
        self._config, self._options = config, parse_options(config, FilesOptions)
        self._system = self._options.system or config.name
        self._place, pattern = LAYOUTS[self._options.layout]
        self._pattern = pattern.format(system=self._system)
        self._splits: dict[str, OutputFolder] = {}

    def signature(self) -> Mapping[str, Any]:
        """Return the layout and a digest of the files by name and content, computed once."""
        fields = {"adapter": "files", "model": self._config.model}
        return {**fields, "layout": self._options.layout, "files": self._digest}

    def preflight(self) -> None:
        """Check that there are outputs, and that every manifest can be read."""
        folder, output_folders = self._options.folder, list(self._iterate_folders())
        for outputs in output_folders:
            outputs.entries  # noqa: B018 - reads it
        if not any(next(outputs.iterate_files(), None) for outputs in output_folders):
            names = clean(", ".join(map(repr, list_names(folder))))
            raise GenerationError(
                f"system {self._config.name!r}: no file {self._pattern!r} in {str(folder)!r}, "
                f"which has {names or 'nothing'}: set parameters.folder, system or layout (flat: "
                "ID.png)"
            )

    def draw(self, task: Task) -> GenerationResult:
        """Return the image of a sample, or what the manifest says of it."""
        outputs = self._get_folder(task.split)
        paths, entry = outputs.find_files(*task.output_key), outputs.entries.get(task.output_key)
        if entry is None and not paths:
            file_name = self._pattern.replace("SPLIT", task.split).replace("ID", task.sample_id)
            if task.draw:
                first, other = OUTPUT_STEM.format(draw=0), OUTPUT_STEM.format(draw=task.draw)
                stem, _, suffix = file_name.rpartition(".")
                stem = stem.replace(first, other) if outputs.nested else f"{stem}.{task.draw}"
                file_name = f"{stem}.{suffix}"
            text = f"no file {file_name!r}, whatever its suffix, and no line in the manifest"
            return failure_result(text, NO_FILE)
        entry = entry or FileEntry(sample_id=task.sample_id, draw=task.draw)
        path, image = None, None
        if entry.outcome is Outcome.OK:
            if entry.file is None and len(paths) != 1:
                names = ", ".join(repr(path.name) for path in paths[:MAX_LISTED_FILES])
                text = f"{names or 'no file'} of one sample, of which there should be one file"
                code = SEVERAL_FILES if paths else NO_FILE
                return failure_result(text, code, OutcomeStage.ANSWER)
            path = paths[0] if entry.file is None else outputs.folder / entry.file
            try:
                image = read_image(path, self._options.folder)
            except BadFileError as error:
                return error.to_result()
        details = {
            "file": path and path.name,
            "files_not_used": [other.name for other in paths if other != path],
            "manifest_says": dict(entry.details),
        }
        return entry.build_result(image, {name: value for name, value in details.items() if value})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: no file stays open."""

    def list_samples(self) -> set[str]:
        """List the samples that files and lines of a flat folder are of."""
        outputs = self._get_folder("")
        return {path.stem for path in outputs.iterate_files() if path.name != MANIFEST} | {
            sample for sample, _ in outputs.entries
        }

    @cached_property
    def _digest(self) -> str:
        state, folder = xxh3_128(), self._options.folder
        for outputs in self._iterate_folders():
            files = (entry.file for entry in outputs.entries.values() if entry.file is not None)
            for path in (*outputs.iterate_files(), *(outputs.folder / file for file in files)):
                name = path.relative_to(folder).as_posix()
                state.update(f"{name}\0".encode("utf-8", "surrogateescape"))
                try:
                    state.update(xxh3_128(read_bytes(path, folder)).digest())
                except BadFileError as error:
                    state.update(error.code.encode())
        return state.hexdigest()

    def _iterate_folders(self) -> Iterator[OutputFolder]:
        root, layout = self._options.folder, self._options.layout
        parent = root / self._system if layout == "generated" else root
        for split in [""] if layout == "flat" else list_names(parent):
            yield self._get_folder(split)

    def _get_folder(self, split: str) -> OutputFolder:
        if split not in self._splits:
            folder = self._options.folder / self._place.format(system=self._system, split=split)
            nested = self._options.layout == "generated"
            self._splits[split] = OutputFolder(folder, nested, self._options.table)
        return self._splits[split]


def parse_source(source: str) -> SystemConfig:
    """Parse NAME=FOLDER or NAME=FILE.csv into the system whose outputs lie there."""
    name, _, place = source.partition("=")
    path = Path(place).absolute()
    is_table = path.suffix == ".csv" and path.is_file()
    if not place or not (is_table or path.is_dir()):
        raise ConfigError(
            f"--images is {source!r}: expected NAME=FOLDER, with images named by sample id, or "
            "NAME=FILE.csv, with the columns id and path"
        )
    parameters = {"folder": str(path.parent if is_table else path), "layout": "flat"}
    sections = {"name": name, "adapter": "files", "developer": "unknown", "status": "replay"}
    if is_table:
        parameters["table"] = path.name
    try:
        return SystemConfig.model_validate({**sections, "parameters": parameters})
    except ValidationError as error:
        raise ConfigError(first_error(error, f"--images {source!r}", SystemConfig)) from None
