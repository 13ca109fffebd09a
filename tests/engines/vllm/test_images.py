"""Images decoded ahead of their turn, and conversations as vLLM takes them."""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from PIL import Image

from echo_hf.engines.base import ImageRef, Message, Request, Text
from echo_hf.engines.pixels import sent_reference
from echo_hf.engines.vllm import IMAGES_AHEAD, MOST_KEPT, REQUESTS_AHEAD, ImagesAhead, conversation
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
    """Unless more came between than are kept: it is read again then."""
    one, other = image(tmp_path, 1), image(tmp_path, 2)
    reading = Reading()
    requests = [showing(one), showing(one, other), showing(other), showing(one)]
    with ImagesAhead(reading) as images:
        assert list(images.announced(enumerate(requests))) == list(enumerate(requests))
        assert [images.get(part).getpixel((0, 0))[0] for part in (one, other, one)] == [1, 2, 1]
        assert reading.often == {one.sha256: 1, other.sha256: 1}
        many = [image(tmp_path, number) for number in range(3, MOST_KEPT + 6)]
        list(images.announced([(0, showing(*many))]))
        red = [images.get(part).getpixel((0, 0))[0] for part in (one, *many)]
    assert red == [1, *range(3, MOST_KEPT + 6)]


@pytest.mark.parametrize(("shown", "ahead"), [(1, 1 + REQUESTS_AHEAD), (IMAGES_AHEAD, 2)])
def test_fewer_are_taken_ahead_with_many_images(tmp_path: Path, shown: int, ahead: int) -> None:
    some, taken = [image(tmp_path, number) for number in range(shown)], list[int]()

    def requests() -> Iterator[tuple[int, Request]]:
        for number in range(20):
            taken.append(number)
            yield number, showing(*some)

    with ImagesAhead(Reading()) as images:
        announced = images.announced(requests())
        assert next(announced)[0] == 0
        assert taken == list(range(ahead))
        assert [number for number, _ in announced] == list(range(1, 20))


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
    # The whole image, and half the sides in a quarter of the pixels: whole numbers of patches.
    for width, height in ((560, 280), (280, 140)):
        read = partial(sent_reference, family="qwen2_5_vl", max_pixels=width * height)
        part = conversation(showing(reference), read)[0]["content"][0]
        assert part["image_pil"].size == (width, height)
        assert part["uuid"] == f"{reference.sha256}-{width}x{height}"


def test_text_alone_is_sent_as_text() -> None:
    turns = (Message("system", (Text("a"),)), Message("user", (Text("b"), Text("c"))))
    parts = [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]
    assert conversation(Request("t", turns, None, 8), Reading()) == [
        {"role": "system", "content": "a"},
        {"role": "user", "content": parts},
    ]
