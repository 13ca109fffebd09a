"""The folder of one request: copies of its inputs, with suffixes that tell their formats."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from echo_hf.engines.base import ImageRef
from echo_hf.picture_kinds import format_of
from echo_hf.systems.base import Task

SUFFIXES = {
    "AVIF": ".avif",
    "BMP": ".bmp",
    "GIF": ".gif",
    "JPEG": ".jpg",
    "PNG": ".png",
    "TIFF": ".tiff",
    "WEBP": ".webp",
}


class InputError(Exception):
    """An input of a task cannot be read."""


@contextmanager
def placed(task: Task) -> Iterator[tuple[Task, Path]]:
    """Puts the inputs of a task where a worker may do with them what it likes.

    Args:
        task: The sample.

    Yields:
        The sample with the copies as its inputs, and their folder, which is removed afterwards.

    Raises:
        InputError: An input cannot be read.
    """
    with TemporaryDirectory(prefix="echo-hf-task-", ignore_cleanup_errors=True) as folder:
        place = Path(folder).resolve()
        inputs = tuple(
            _copied(picture, place, number) for number, picture in enumerate(task.inputs)
        )
        yield replace(task, inputs=inputs), place


def _copied(picture: ImageRef, place: Path, number: int) -> ImageRef:
    if picture.file is None:
        raise InputError(f"input {number} has no file")
    try:
        data = picture.file.read_bytes()
    except OSError as error:
        raise InputError(f"input {number} cannot be read: {error.strerror}") from None
    path = place / f"input_{number}{SUFFIXES.get(format_of(data) or '', '')}"
    path.write_bytes(data)
    return replace(picture, file=path)
