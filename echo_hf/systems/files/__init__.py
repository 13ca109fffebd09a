"""Outputs that somebody made before: the only way to score a system that is no longer there.

A sample without a file, and without a line in the manifest, is not counted against the system:
why there is none is not known, and the official evaluation skips such a sample, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, Literal, Self

from xxhash import xxh3_128

from echo_hf.config_fields import File, Name, Section
from echo_hf.errors import GenerationError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.adapter_options import options_of
from echo_hf.systems.base import Drawn, Task
from echo_hf.systems.config import SystemConfig
from echo_hf.systems.files.layout import LAYOUTS, MANIFEST, Outputs, names_in
from echo_hf.systems.files.manifest import Entry, read_manifest
from echo_hf.systems.picture_file import BadFileError, read_bytes, read_picture
from echo_hf.systems.registry import register
from echo_hf.systems.told import drawn_as_told

MOST_SHOWN = 8


class FilesOptions(Section):
    """The parameters of `files`.

    Attributes:
        folder: Where the outputs lie.
        system: What the folder calls the system; null for the name of the config.
        layout: `autoeval`: SPLIT/SYSTEM/ID.png; `generated`: SYSTEM/SPLIT/ID/gen_0.png. Anything
            else can be described by a manifest.
    """

    folder: File
    system: Name | None = None
    layout: Literal["autoeval", "generated"] = "autoeval"


@register("files", "outputs that somebody made before")
class FilesSystem:
    """Gives the pictures of a folder.

    Args:
        config: The config of the system.
    """

    determinism = "the same files give the same pictures"

    def __init__(self, config: SystemConfig) -> None:
        options = options_of(config, FilesOptions)
        self.concurrency = 4
        self._config, self._layout = config, LAYOUTS[options.layout]
        self._options, self._system = options, options.system or config.name
        self._splits: dict[str, tuple[Outputs, Mapping[str, Entry]]] = {}
        self._reading = Lock()

    def signature(self) -> Mapping[str, Any]:
        """The layout and a digest of the files, by name and content, taken once.

        A file that was replaced, added or removed since an earlier run is so noticed, and a folder
        that was copied to another machine has the same signature. The digest reads the files once,
        which costs no more than drawing from them.
        """
        return {
            "adapter": "files",
            "model": self._config.model,
            "layout": self._options.layout,
            "files": self._digest,
        }

    def preflight(self) -> None:
        """Makes sure that there are outputs, and that every manifest can be read.

        Raises:
            GenerationError: The folder is missing or holds no output of the system, or a line of a
                manifest cannot be read.
        """
        if not self._options.folder.is_dir():
            raise GenerationError(f"{self._place}: no folder {self._shown}: set parameters.folder")
        if not any(True for outputs in self._every() for _ in outputs.every()):
            raise GenerationError(
                f"{self._place}: no file {self._pattern!r} in {self._shown}, which has "
                f"{_names(self._options.folder)}: set parameters.folder, system or layout"
            )
        for outputs in self._every():
            read_manifest(outputs.folder / MANIFEST)

    def draw(self, task: Task) -> Drawn:
        """The picture of a sample, or what the manifest says became of it.

        Args:
            task: The sample.

        Returns:
            `failed` with the code `no_file` where nothing is known of it.

        Raises:
            GenerationError: A line of the manifest cannot be read.
        """
        outputs, entries = self._split(task.split)
        entry = entries.get(task.sample_id)
        found = outputs.of(task.sample_id)
        if entry is None and not found:
            return self._unknown(task)
        told = entry or Entry(sample_id=task.sample_id)
        try:
            path, picture = self._picture(told, found, outputs.folder)
        except BadFileError as error:
            return error.drawn()
        return drawn_as_told(told, picture, _details(told, path, found))

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
            for entry in read_manifest(outputs.folder / MANIFEST).values():
                if entry.file is not None:
                    yield outputs.folder / entry.file

    def _every(self) -> Iterator[Outputs]:
        root = self._options.folder
        nested = self._layout.nested
        above = root / self._system if nested else root
        for split in names_in(above):
            yield Outputs(root / self._layout.place(self._system, split), nested)

    def _split(self, split: str) -> tuple[Outputs, Mapping[str, Entry]]:
        with self._reading:
            if split not in self._splits:
                folder = self._options.folder / self._layout.place(self._system, split)
                outputs = Outputs(folder, self._layout.nested)
                self._splits[split] = outputs, read_manifest(folder / MANIFEST)
            return self._splits[split]

    def _picture(
        self, told: Entry, found: list[Path], folder: Path
    ) -> tuple[Path | None, bytes | None]:
        if told.outcome is not Outcome.OK:
            return None, None
        path = _only(found, told, folder)
        return path, read_picture(path, self._options.folder)

    def _unknown(self, task: Task) -> Drawn:
        wanted = self._pattern.replace("SPLIT", task.split).replace("ID", task.sample_id)
        return Drawn(
            Outcome.FAILED,
            stage=OutcomeStage.REQUEST,
            code="no_file",
            text=f"no file {wanted!r}, whatever its suffix, and no line in the manifest",
        )


def _only(found: list[Path], told: Entry, folder: Path) -> Path:
    if told.file is not None:
        return folder / told.file
    if not found:
        raise BadFileError("no_file", "the manifest says that there is a picture, and no file is")
    if len(found) > 1:
        named = ", ".join(repr(path.name) for path in found[:MOST_SHOWN])
        raise BadFileError("several_files", f"{named} are of one sample: keep one of them")
    return found[0]


def _details(told: Entry, used: Path | None, found: list[Path]) -> Mapping[str, Any]:
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
