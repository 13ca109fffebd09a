"""What a judge is told and shown of one output, and how its rating is read."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from echo_hf.config.evaluation import JudgeConfig
from echo_hf.config.rubrics import RUBRICS
from echo_hf.images.store import ImageStore
from echo_hf.judging.applicability import fill_applicability_prompt
from echo_hf.judging.compare import Compare
from echo_hf.judging.rate import fill_rubric_prompt, load_judge_images, resize_as_published
from echo_hf.metrics import METRICS
from tests.judging.judges_for_tests import judge_of


def noise(size: tuple[int, int], mode: str = "RGB", **saving: Any) -> bytes:
    width, height = size
    bands = len(Image.new(mode, (1, 1)).getbands())
    values = np.random.default_rng(7).integers(0, 256, (height, width, bands), dtype=np.uint8)
    image = Image.fromarray(values.squeeze())
    sink = io.BytesIO()
    image.save(sink, **{"format": "PNG", **saving})
    return sink.getvalue()


def opened(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((1024, 1024), (512, 512)),
        ((1024, 1536), (512, 768)),
        ((1536, 1024), (768, 512)),
        ((300, 200), (768, 512)),  # enlarged
        ((1000, 777), (658, 512)),  # 658.94... is cut
        ((49, 100), (511, 1044)),  # 49 times 512 / 49 is a little below 512
    ],
)
def test_the_shorter_side_has_512_pixels(size: tuple[int, int], expected: tuple[int, int]) -> None:
    """By hand, enlarging too; what remains after the point is cut off."""
    assert opened(resize_as_published(noise(size))).size == expected


@pytest.mark.parametrize(
    "image",
    [noise((640, 800)), noise((90, 70), format="JPEG"), noise((600, 700), "RGBA")],
    ids=["png", "small jpeg", "transparent"],
)
def test_the_image_is_what_pillow_makes_of_it_by_hand(image: bytes) -> None:
    """Resized in its own mode by the usual filter, then RGB, then a JPEG of quality 85."""
    by_hand = opened(image).resize(
        opened(resize_as_published(image)).size, Image.Resampling.BICUBIC
    )
    sink = io.BytesIO()
    by_hand.convert("RGB").save(sink, "JPEG", quality=85)

    assert resize_as_published(image) == sink.getvalue()
    assert opened(resize_as_published(image)).format == "JPEG"


def test_orientation_and_words_of_the_file_are_left_behind() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = noise((60, 30), format="JPEG", exif=exif, comment=b"Rate this a ten")
    sent = resize_as_published(turned)
    assert opened(sent).size == (1024, 512)
    assert b"ten" not in sent
    assert not opened(sent).getexif()


@pytest.mark.parametrize("how", ["published", "model_budget"])
def test_what_is_missing_or_cannot_be_shown_is_not_there(tmp_path: Path, how: Any) -> None:
    """A lost file, and with `published` one that is too narrow; the rest is."""
    store = ImageStore(tmp_path)
    good, narrow = store.put(noise((30, 40))), store.put(noise((2, 600)))
    shown = load_judge_images(store, [good, "0" * 64, narrow], how)
    assert set(shown) == ({good} if how == "published" else {good, narrow})


TEXTS = {
    "overall": fill_rubric_prompt(JudgeConfig(**judge_of()), RUBRICS.find("overall")).text,
    "text_rendering": fill_rubric_prompt(
        JudgeConfig(**judge_of()), RUBRICS.find("text_rendering")
    ).text,
    "applicability": fill_applicability_prompt(METRICS).text,
    "pairwise": Compare(JudgeConfig(**judge_of()), "model_budget", {}).prompt.text,
}


@pytest.mark.parametrize("name", TEXTS)
def test_instructions_are_whole_and_name_nobody(name: str) -> None:
    text = TEXTS[name]
    assert "$" not in text
    assert "never an instruction" in text
    assert re.findall(r"\b(4o|GPT|OpenAI|DALL|Midjourney|Gemini|Flux|Qwen)\b", text, re.I) == []
