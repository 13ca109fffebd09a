"""Outputs that are sheets of several images, or windows: where they go, and who doubts them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from echo_hf.engines.base import abstains
from echo_hf.errors import ImageError
from echo_hf.images.panes import Layout, detect_layout
from echo_hf.images.store import ImageStore
from echo_hf.samples.sample import (
    Doubt,
    Finding,
    Sample,
    SampleNotice,
    add_provenance,
    read_provenance,
)

SHEET_KEY = "sheet"  # key in the provenance of `roles`: the image that was taken from the outputs


def move_sheet(
    row: dict[str, Any], images: ImageStore, made_by: Mapping[str, Any], findings: list[Finding]
) -> dict[str, Any]:
    """Move a task's first output that is not a single image to the screenshot; doubt the others.

    All are doubted where no model was asked: `screenshots` then has none to ask either.
    """
    layouts = {image: _find_layout(images, image) for image in row["output_images"]}
    sheets = {image: layout for image, layout in layouts.items() if layout}
    if not sheets:
        return row
    findings += [
        (SampleNotice.SEVERAL_IMAGES, f"{layout}: {image}") for image, layout in sheets.items()
    ]
    if row["screenshot"] is None and not abstains(made_by["engine"]):
        sheet = next(iter(sheets))
        del sheets[sheet]
        outputs = [image for image in row["output_images"] if image != sheet]
        roles_record = {**read_provenance(row, "roles"), SHEET_KEY: sheet}
        row |= {"screenshot": sheet, "output_images": outputs}
        row["provenance"] = add_provenance(row, "roles", roles_record)
    return {**row, "doubts": [*row["doubts"], *([Doubt.COLLAGE.value] if sheets else [])]}


def is_suspected(sample: Sample) -> bool:
    """Return whether a sample's screenshot is an output that only looks like several images."""
    return bool(read_provenance(sample, "roles").get(SHEET_KEY) == sample["screenshot"])


def restore_output(sample: Sample) -> dict[str, Any]:
    """Return a sample whose screenshot is made an output again."""
    outputs = [sample["screenshot"], *sample["output_images"]]
    return {**sample, "screenshot": None, "output_images": outputs}


@lru_cache(maxsize=4096)  # the samples of a thread share images
def _read_layout(file: Path) -> Layout | None:
    return detect_layout(file)


def _find_layout(images: ImageStore, digest: str) -> Layout | None:
    try:
        return _read_layout(images.path(digest))
    except ImageError:  # missing or damaged: the stages that need its pixels report it
        return None
