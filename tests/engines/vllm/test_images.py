"""Images decoded ahead of their turn."""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import count, islice
from pathlib import Path

import pytest
from PIL import Image

from echo_hf.engines.base import ImageRef, Message, Request, Text
from echo_hf.engines.pixels import sent_reference
from echo_hf.engines.vllm import IMAGES_AHEAD, REQUESTS_AHEAD, ImagesAhead, conversation
from echo_hf.errors import ImageError


def image(folder: Path, number: int, size: tuple[int, int] = (8, 6)) -> ImageRef:
    buffer = io.BytesIO()
    Image.new("RGB", size, (number, 0, 0)).save(buffer, "PNG")
    digest = hashlib.sha256(buffer.getvalue()).hexdigest()
    (folder / digest).write_bytes(buffer.getvalue())
    return ImageRef(digest, folder / digest)


def showing(*references: ImageRef) -> Request:
    return Request("look", (Message("user", (*references, Text("What is it?"))),), None, 8)


class Reading:
    def __init__(self) -> None:
        self.often: Counter[str] = Counter()

    def __call__(self, reference: ImageRef) -> Image.Image:
        self.often[reference.sha256] += 1
        return sent_reference(reference, family=None)


def test_an_image_that_returns_is_read_once(tmp_path: Path) -> None:
    one, other = image(tmp_path, 1), image(tmp_path, 2)
    reading = Reading()
    requests = [showing(one), showing(one, other), showing(other), showing(one)]
    with ImagesAhead(reading) as images:
        given = list(images.announced(enumerate(requests)))
        colors = [
            images.get(part).getpixel((0, 0))
            for _, request in given
            for part in request.messages[0].parts
            if isinstance(part, ImageRef)
        ]
    assert given == list(enumerate(requests))
    assert colors == [(1, 0, 0), (1, 0, 0), (2, 0, 0), (2, 0, 0), (1, 0, 0)]
    assert reading.often == {one.sha256: 1, other.sha256: 1}


def test_images_of_the_next_requests_are_read_before_they_are_asked_for(tmp_path: Path) -> None:
    taken: list[int] = []

    def requests() -> Iterator[tuple[int, Request]]:
        for number in count():
            taken.append(number)
            yield number, showing(image(tmp_path, number % 250))

    with ImagesAhead(Reading()) as images:
        announced = images.announced(requests())
        assert [number for number, _ in islice(announced, 3)] == [0, 1, 2]
        assert taken == list(range(3 + REQUESTS_AHEAD))


def test_few_requests_with_many_images_are_taken_ahead(tmp_path: Path) -> None:
    many = [image(tmp_path, number) for number in range(IMAGES_AHEAD)]
    taken: list[int] = []

    def requests() -> Iterator[tuple[int, Request]]:
        for number in range(5):
            taken.append(number)
            yield number, showing(*many)

    with ImagesAhead(Reading()) as images:
        announced = images.announced(requests())
        assert next(announced)[0] == 0
        assert taken == [0, 1]
        assert [number for number, _ in announced] == [1, 2, 3, 4]


def test_a_bad_image_fails_when_it_is_asked_for(tmp_path: Path) -> None:
    """Taking a request never fails; the image does, each time, and no other."""
    good, lost = image(tmp_path, 1), ImageRef("0" * 64)
    with ImagesAhead(Reading()) as images:
        given = list(images.announced(enumerate([showing(lost), showing(good), showing(lost)])))
        assert len(given) == 3
        assert images.get(good).size == (8, 6)
        for reference in (lost, lost, ImageRef(good.sha256)):  # not even where another has a file
            with pytest.raises(ImageError, match="has no file"):
                images.get(reference)


def test_an_image_in_another_size_is_another_content(tmp_path: Path) -> None:
    reference = image(tmp_path, 1, (560, 280))

    def name(max_pixels: int) -> str:
        read = partial(sent_reference, family="qwen2_5_vl", max_pixels=max_pixels)
        part = conversation(showing(reference), read)[0]["content"][0]
        assert part["uuid"].endswith("-{}x{}".format(*part["image_pil"].size))
        return str(part["uuid"])

    assert name(560 * 280) == f"{reference.sha256}-560x280"
    # Half the sides of a whole number of patches, which fits a quarter of the pixels exactly.
    assert name(280 * 140) == f"{reference.sha256}-280x140"


def test_text_alone_is_sent_as_text() -> None:
    request = Request(
        "t", (Message("system", (Text("a"),)), Message("user", (Text("b"), Text("c")))), None, 8
    )
    parts = [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]
    assert conversation(request, Reading()) == [
        {"role": "system", "content": "a"},
        {"role": "user", "content": parts},
    ]
