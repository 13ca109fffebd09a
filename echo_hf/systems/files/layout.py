"""Where the outputs of a system lie in a folder, by the conventions of the official evaluation.

Names are looked up in listings and never made into patterns or paths: an id is somebody's text,
and one id may begin like another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PICTURE_SUFFIXES = frozenset(
    {".avif", ".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"}
)
MANIFEST = "manifest.jsonl"
FIRST_OUTPUT = "gen_0"


@dataclass(frozen=True, slots=True)
class Layout:
    """A convention of naming outputs.

    Attributes:
        pattern: What a path looks like, for messages.
        place: Folder of the outputs to one split's samples, below the root.
        nested: Whether each sample has a folder of its own, in which the picture is `gen_0`.
    """

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
}


def names_in(folder: Path) -> list[str]:
    """The names in a folder, in order; none where it is not there."""
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


class Outputs:
    """The files of one system's outputs in one split.

    Args:
        folder: Where they lie; it need not be there.
        nested: As `Layout.nested`.
    """

    def __init__(self, folder: Path, nested: bool) -> None:
        self.folder, self.nested = folder, nested

    def of(self, sample_id: str) -> list[Path]:
        """The files that may be the output to a sample.

        Args:
            sample_id: The sample.

        Returns:
            Those named as pictures; where there are none, others of that name; in order.
        """
        if not self.nested:
            return _pictures_first(self._by_stem.get(sample_id, []))
        if sample_id not in self._names:
            return []
        return _pictures_first(_by_stem(self.folder / sample_id).get(FIRST_OUTPUT, []))

    def every(self) -> Iterator[Path]:
        """All files of the outputs, the manifest included, in order."""
        for name in sorted(self._names):
            path = self.folder / name
            if path.is_file():
                yield path
            elif self.nested:
                yield from sorted(_by_stem(path).get(FIRST_OUTPUT, []))

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(names_in(self.folder))

    @cached_property
    def _by_stem(self) -> Mapping[str, list[Path]]:
        return _by_stem(self.folder)


def _by_stem(folder: Path) -> Mapping[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for name in names_in(folder):
        stem, dot, _ = name.rpartition(".")
        if dot and name != MANIFEST:
            found.setdefault(stem, []).append(folder / name)
    return found


def _pictures_first(paths: list[Path]) -> list[Path]:
    return [path for path in paths if path.suffix.lower() in PICTURE_SUFFIXES] or paths
