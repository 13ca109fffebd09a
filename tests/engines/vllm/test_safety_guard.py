"""A safety guard of Llama 4's kind in a real vLLM, which says what it says through transformers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")

from echo_hf.engines.base import Completion, ImageRef, make_engine
from echo_hf.engines.vllm import VllmEngine
from tests.tiny_guard import TOKENS, asked, noise

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]

EXCLUDED = ["S2", "S10"]
HALF_A_CHARACTER = "\ufffd"
# vLLM on a processor stops at an image of one tile that is computed by itself: what it multiplies
# is then a view whose numbers do not lie next to each other (`Expected a.stride(-1) == 1`).
SHOWN = {size: tokens for size, tokens in TOKENS.items() if size != (40, 40)}


@pytest.fixture(scope="module")
def options(tiny_guard: Path) -> dict[str, Any]:
    return {
        "model": str(tiny_guard),
        "dtype": "float32",
        "max_pixels": None,
        "chat_template_kwargs": {"excluded_category_keys": EXCLUDED},
    }


@pytest.fixture(scope="module")
def engine(options: dict[str, Any]) -> Iterator[VllmEngine]:
    with VllmEngine(**options, max_num_seqs=8, limit_images=3, enforce_eager=True) as entered:
        yield entered


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[ImageRef]:
    folder = tmp_path_factory.mktemp("pictures")
    return [noise(folder, *size) for size in SHOWN]


def _whole(answer: Completion) -> tuple[str, int]:
    # vLLM keeps back the bytes of a character that has not ended, transformers marks them.
    return (answer.text or "").rstrip(HALF_A_CHARACTER), answer.usage.prompt


def test_both_engines_say_the_same(engine: VllmEngine, options: Any, images: Any) -> None:
    requests = [
        asked("a red cat"),
        *[asked(image, "a red cat") for image in images],
        asked(*images, "three pictures"),
        asked("a longer description " * 80),
    ]
    with make_engine("transformers", **options) as other:
        expected = dict(other.stream(requests))
    answers = dict(engine.stream(requests))
    assert len({answer.text for answer in answers.values()}) == len(requests)
    for number in range(len(requests)):
        assert _whole(answers[number]) == _whole(expected[number])
