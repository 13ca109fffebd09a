"""Images read ahead of their turn, and conversations as vLLM takes them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from echo_hf.engines.base import ImageRef, Message, Request, Text
from echo_hf.engines.pixels import pixel_budget, prepare_image_ref
from echo_hf.engines.vllm import REQUESTS_AHEAD, read_images_ahead, render_conversation
from tests.engines.test_conformance import image


def showing(*references: ImageRef) -> Request:
    return Request("look", (Message("user", (*references, Text("What is it?"))),), None, 8)


def test_images_of_the_next_few_requests_are_read_meanwhile() -> None:
    read, taken = list[str](), list[int]()

    def reading(reference: ImageRef, _: Path | None) -> None:
        read.append(reference.sha256)

    def requests() -> Iterator[tuple[int, Request]]:
        for number in range(20):
            taken.append(number)
            yield number, showing(ImageRef(f"{number}"), ImageRef("both"))

    announced = read_images_ahead(requests(), reading)
    assert next(announced)[0] == 0
    assert taken == list(range(REQUESTS_AHEAD + 1))
    assert read == [name for number in taken for name in (f"{number}", "both")]
    assert [number for number, _ in announced] == list(range(1, 20))


def test_an_image_in_another_size_is_another_content(tmp_path: Path) -> None:
    reference = image(tmp_path, 1, (560, 280))
    # The whole image, and half the sides in a quarter of the pixels: whole numbers of patches.
    for width, height in ((560, 280), (280, 140)):
        read = partial(prepare_image_ref, budget=pixel_budget("qwen2_5_vl", None, width * height))
        part = render_conversation(showing(reference), read)[0]["content"][0]
        assert part["image_pil"].size == (width, height)
        assert part["uuid"] == f"{reference.sha256}-{width}x{height}"


def test_text_alone_is_sent_as_text() -> None:
    turns = (Message("system", (Text("a"),)), Message("user", (Text("b"), Text("c"))))
    parts = [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]
    assert render_conversation(Request("t", turns, None, 8), prepare_image_ref) == [
        {"role": "system", "content": "a"},
        {"role": "user", "content": parts},
    ]
