"""The inputs of a task as pictures, which enter here as they do everywhere."""

from __future__ import annotations

from PIL import Image

from echo_hf.engines.upright import upright_rgb
from echo_hf.errors import PictureError
from echo_hf.systems.base import Task


def open_inputs(task: Task) -> tuple[Image.Image, ...]:
    """Opens the input pictures of a task.

    Args:
        task: The task.

    Returns:
        Its pictures in their order, in mode RGB: upright, opaque on white, in sRGB.

    Raises:
        PictureError: One has no file, has other bytes by now, or is no picture.
    """
    pictures = []
    for reference in task.inputs:
        if reference.file is None:
            raise PictureError(f"picture {reference.sha256!r} has no file: run `collect` again")
        pictures.append(upright_rgb(reference.file, reference.sha256))
    return tuple(pictures)
