"""Images on their way to a system and back: sizes, formats, stitching, checks."""

from __future__ import annotations

import base64
import binascii
import io
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from PIL import Image, ImageChops

from echo_hf.config.systems import FixedSize, Size
from echo_hf.engines.base import ImageRef
from echo_hf.engines.pixels import sent_reference
from echo_hf.errors import ImageError
from echo_hf.images.decode import open_image
from echo_hf.images.loader import ORIENTATION, TURNS, load_image, load_rgb, upright_rgb
from echo_hf.images.store import check_image
from echo_hf.reasons import ImageNotice, Outcome, OutcomeStage
from echo_hf.systems.base import GenerationResult, Task


def open_inputs(task: Task) -> tuple[Image.Image, ...]:
    images = []
    for reference in task.inputs:
        if reference.file is None:
            raise ImageError(f"image {reference.sha256!r} has no file: run `collect` again")
        images.append(upright_rgb(reference.file, reference.sha256))
    return tuple(images)


def as_png(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


DATA_URL = re.compile(r"data:[a-z0-9.+/-]*(?:;[a-z0-9=-]+)*;base64,", re.IGNORECASE)
ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
LONGEST_START = 100


def decoded(encoded: str) -> bytes:
    if ADDRESS.match(encoded):
        raise ImageError(
            "the answer names an address instead of an image, and addresses are not followed: "
            "ask the server for base64, mostly by `extra: {response_format: b64_json}`"
        )
    start = DATA_URL.match(encoded[:LONGEST_START])
    try:
        return base64.b64decode(encoded[start.end() if start else 0 :], validate=True)
    except (binascii.Error, ValueError):
        raise ImageError("the answer's image is not base64") from None


def with_image(drawn: GenerationResult, data: bytes) -> GenerationResult:
    try:
        check_image(data)
    except ImageError as error:
        return unusable(drawn, str(error))
    return replace(drawn, outcome=Outcome.OK, image=data, stage=None)


def unusable(drawn: GenerationResult, why: str) -> GenerationResult:
    """An outcome whose answer holds nothing that can be kept."""
    return replace(drawn, outcome=Outcome.FAILED, stage=OutcomeStage.ANSWER, text=why)


Pixels = tuple[int, int]
WRITTEN = re.compile(r"([1-9][0-9]{0,4})x([1-9][0-9]{0,4})")


def chosen_size(
    size: Size, first_input: Pixels | None, like: Callable[[Pixels], Pixels]
) -> Pixels | None:
    if isinstance(size, FixedSize):
        return size.width, size.height
    if size == "match_input" and first_input is not None:
        return like(first_input)
    return None


def nearest(size: Pixels, choices: Sequence[Pixels]) -> Pixels:
    return min(choices, key=lambda choice: (_apart(size, choice), _larger(size, choice)))


def within(size: Pixels, most_pixels: int, multiple: int = 16, longest: float = math.inf) -> Pixels:
    """About the largest size in the shape of an image whose sides are multiples of a number."""
    ratio = min(max(size) / min(size), longest)
    exact = math.sqrt(most_pixels / ratio) / multiple
    shorts = {max(1, math.floor(exact)), math.ceil(exact)}
    steps = most_pixels // multiple**2
    sizes = [_steps(short, ratio, steps, longest) for short in sorted(shorts) if short**2 <= steps]
    long, short = min(sizes, key=lambda one: (abs(math.log(one[0] / one[1] / ratio)), -one[1]))
    sides = long * multiple, short * multiple
    return sides if size[0] >= size[1] else sides[::-1]


def written(size: Pixels) -> str:
    return f"{size[0]}x{size[1]}"


def read_size(text: str) -> Pixels:
    found = WRITTEN.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a size: expected width and height such as '1536x1024'")
    return int(found[1]), int(found[2])


def _steps(short: int, ratio: float, most: int, longest: float) -> Pixels:
    # Rounding the longer side up may take it over the number of pixels, or make it too long.
    limit = math.floor(min(most / short, short * longest))
    return max(short, min(round(short * ratio), limit)), short


def _apart(one: Pixels, other: Pixels) -> float:
    return abs(math.log(one[0] * other[1] / (one[1] * other[0])))


def _larger(one: Pixels, other: Pixels) -> float:
    return abs(math.log(one[0] * one[1] / (other[0] * other[1])))


# What all makers take, by Pillow's name of the format.
TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp"}
ENDINGS = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp"}
PNG = "image/png"
INK = "CMYK"
NOTICED = {ImageNotice.TRANSPARENT: "transparent", ImageNotice.SIXTEEN_BITS: "depth"}


@dataclass(frozen=True, slots=True)
class SentInput:
    data: bytes
    mime_type: str
    size: Pixels
    changed: tuple[str, ...] = ()

    @property
    def data_url(self) -> str:
        return f"data:{self.mime_type};base64,{base64.b64encode(self.data).decode()}"

    @property
    def ending(self) -> str:
        return ENDINGS[self.mime_type]

    def details(self) -> dict[str, Any]:
        return {"type": self.mime_type, "size": list(self.size), "changed": list(self.changed)}


def sent_input(reference: ImageRef) -> SentInput:
    seen = sent_reference(reference, family=None)
    data = reference.file.read_bytes() if reference.file is not None else b""
    changed = tuple(_changes(data))
    if changed:
        return SentInput(_png(seen), PNG, seen.size, changed)
    with open_image(data) as image:
        return SentInput(data, TYPES[image.format or ""], seen.size)


def _changes(data: bytes) -> Iterator[str]:
    with open_image(data) as image:
        if image.format not in TYPES:
            yield "format"
        if getattr(image, "is_animated", False):
            yield "animated"
        if image.getexif().get(ORIENTATION, 1) in TURNS:
            yield "turned"
        if image.mode == INK:
            yield "inks"
        elif image.info.get("icc_profile") and _profile_counts(data):
            yield "profile"
    notices = load_image(data).notices
    yield from (name for notice, name in NOTICED.items() if notice in notices)


def _profile_counts(data: bytes) -> bool:
    managed, plain = (load_rgb(data, color_management=on) for on in (True, False))
    return ImageChops.difference(managed, plain).getbbox() is not None


def _png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=1)  # it travels once
    return buffer.getvalue()


def stitched(
    images: Sequence[Image.Image],
    like: Callable[[Pixels], Pixels],
    most_pixels: int,
    multiple: int,
) -> Image.Image:
    sizes = stitched_sizes([one.size for one in images], like, most_pixels, multiple)
    whole = Image.new("RGB", (sum(width for width, _ in sizes), sizes[0][1]))
    left = 0
    for image, size in zip(images, sizes, strict=True):
        whole.paste(image.resize(size, Image.Resampling.LANCZOS), (left, 0))
        left += size[0]
    return whole


def stitched_sizes(
    sizes: Sequence[Pixels],
    like: Callable[[Pixels], Pixels],
    most_pixels: int,
    multiple: int,
) -> list[Pixels]:
    first_width, first_height = like(sizes[0])
    ratios = [first_width / first_height, *(width / height for width, height in sizes[1:])]
    height = min(first_height, math.sqrt(most_pixels / sum(ratios)))
    height = _whole(height, multiple)
    return [(_whole(ratio * height, multiple), height) for ratio in ratios]


def _whole(side: float, multiple: int) -> int:
    return max(multiple, math.floor(side / multiple + 1e-9) * multiple)
