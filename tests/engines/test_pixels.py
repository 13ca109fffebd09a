"""The size in which an image is sent, and how it is put into an address."""

from __future__ import annotations

import base64
import hashlib
import io
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from PIL import Image

from echo_hf.engines.base import ImageRef
from echo_hf.engines.pixels import (
    FAMILY_BUDGETS,
    PixelBudget,
    encode_data_url,
    fit_size,
    pixel_budget,
    prepare_image_ref,
)
from echo_hf.errors import EngineError, ImageError
from echo_hf.images.loader import PixelSize
from tests.errors_for_tests import said_by

SIDES = st.integers(1, 12_000)
SIZES = st.tuples(SIDES, SIDES).filter(lambda size: max(size) <= 200 * min(size))
NAMES = st.sampled_from(sorted(FAMILY_BUDGETS))
# From budgets that are hardly wide enough to those of published checkpoints.
LEAST = st.one_of(st.none(), st.integers(1, 300_000))
MOST = st.one_of(st.none(), st.integers(784, 20_000_000))
ASKED = st.tuples(NAMES, LEAST, MOST)
Asked = tuple[str, int | None, int | None]


@pytest.mark.parametrize(
    ("family", "least", "most", "budget"),
    [
        # What the published checkpoints' preprocessor settings say, in pixels.
        ("qwen2_vl", None, None, PixelBudget(28, 3136, 12_845_056)),
        ("qwen2_5_vl", None, 602_112, PixelBudget(28, 3136, 602_112)),
        ("qwen3_vl", 4096, None, PixelBudget(32, 4096, 16_777_216)),
        (None, None, 5, PixelBudget(1, 1, 5)),
        ("qwen2_5_vl", 0, None, "no image has min_pixels 0 and max_pixels 12845056: "),
        ("qwen2_5_vl", 100, 783, "no image has "),
        (None, 6, 5, "no image has "),
        ("qwen25_vl", None, None, "unknown family 'qwen25_vl'; did you mean 'qwen2_5_vl'? known: "),
    ],
)
def test_what_is_asked_for_replaces_the_familys_own(
    family: str | None, least: int | None, most: int | None, budget: PixelBudget | str
) -> None:
    if isinstance(budget, PixelBudget):
        assert pixel_budget(family, least, most) == budget
    else:
        assert said_by(EngineError, pixel_budget, family, least, most).startswith(budget)


@pytest.mark.parametrize(
    ("size", "family", "most", "expected"),
    [
        # 512 / 28 = 18.3, so 18 patches of 28; 512 / 32 = 16 exactly.
        ((512, 512), "qwen2_5_vl", None, (504, 504)),
        ((512, 512), "qwen3_vl", None, (512, 512)),
        # 100 / 28 = 3.6 and 300 / 28 = 10.7: 4 and 11.
        ((100, 300), "qwen2_5_vl", None, (112, 308)),
        # Halves go to the even neighbour: 1.5 to 2, 2.5 to 2.
        ((42, 70), "qwen2_vl", None, (56, 56)),
        # A phone's screen, as published for the checkpoint's budget and for 1280 patches.
        ((1290, 2796), "qwen2_5_vl", None, (1288, 2800)),
        ((1290, 2796), "qwen2_5_vl", 1_003_520, (672, 1456)),
        # sqrt(3136 / 100) = 5.6 times as large: 56 x 56.
        ((10, 10), "qwen2_5_vl", None, (56, 56)),
        # sqrt(65536 / 10000) = 2.56 times: 256 x 256.
        ((100, 100), "qwen3_vl", None, (256, 256)),
        # 1 x 200 at sqrt(3136 / 200) = 3.96 times: 4 and 792, of 28 each 1 and 29.
        ((1, 200), "qwen2_5_vl", None, (28, 812)),
        # No family: 2000 x 1000 at sqrt(500000 / 2000000) = 1/2.
        ((2000, 1000), None, 500_000, (1000, 500)),
        ((2000, 1000), None, 499_999, (999, 499)),
        ((2000, 1000), None, 2_000_000, (2000, 1000)),
        ((1, 90_000), None, None, (1, 90_000)),
    ],
)
def test_sizes_by_hand(
    size: PixelSize, family: str | None, most: int | None, expected: PixelSize
) -> None:
    assert fit_size(size, pixel_budget(family, None, most)) == expected


@given(SIZES, ASKED)
def test_a_fitted_size_keeps_the_rule(size: PixelSize, asked: Asked) -> None:
    try:
        budget = pixel_budget(*asked)
        sent = fit_size(size, budget)
    except (EngineError, ImageError):
        assume(False)
    factor, low, high = budget
    assert [side % factor for side in sent] == [0, 0]
    assert high is not None
    assert low <= sent[0] * sent[1] <= high
    area = size[0] * size[1]
    assert any(
        all(abs(side * by - to) <= factor for side, to in zip(size, sent, strict=True))
        for by in (1.0, math.sqrt(low / area), math.sqrt(high / area))
    )
    assert fit_size(sent, budget) == fit_size(sent, pixel_budget(asked[0], 1, 10**9)) == sent
    assert fit_size(size[::-1], budget) == sent[::-1]


@pytest.mark.models
@given(SIZES, ASKED)
def test_the_rule_is_that_of_transformers(size: PixelSize, asked: Asked) -> None:
    smart_resize = _processors().smart_resize
    own = FAMILY_BUDGETS[asked[0]]
    least, most = asked[1] or own.min_pixels, asked[2] or own.max_pixels
    assert most is not None
    assume(own.factor**2 <= most >= least)
    height, width = smart_resize(size[1], size[0], own.factor, least, most)
    is_taken_again = max(width, height) <= 200 * min(width, height)
    if least <= width * height <= most and is_taken_again:
        assert fit_size(size, pixel_budget(*asked)) == (width, height)
    else:
        with pytest.raises(ImageError):
            fit_size(size, pixel_budget(*asked))


@pytest.mark.parametrize(
    ("size", "most"),
    [
        ((201, 1), None),
        # 29 x 5615 is 194 times as high as wide, 28 x 5628 is 201: the server would refuse it.
        ((29, 5615), None),
        # A strip one patch high and 200 long has 156,800 pixels at least.
        ((5600, 28), 100_000),
    ],
)
def test_a_shape_that_cannot_be_sent_is_told(size: PixelSize, most: int | None) -> None:
    """Exactly 200 times as long as high is not too long."""
    said = said_by(ImageError, partial(fit_size, size, pixel_budget("qwen2_5_vl", None, most)))
    assert said.startswith(f"an image of {size[0]} x {size[1]} pixels has no size between min_pix")
    assert fit_size((5600, 28), FAMILY_BUDGETS["qwen2_5_vl"]) == (5600, 28)


def noise(width: int, height: int) -> Any:
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)


def kept(folder: Path, pixels: Any, kind: str = "PNG", **options: Any) -> ImageRef:
    file = folder / "picture"
    Image.fromarray(pixels).save(file, kind, **options)
    return ImageRef(hashlib.sha256(file.read_bytes()).hexdigest(), file)


def test_an_image_is_sent_upright_and_as_its_rule_says(tmp_path: Path) -> None:
    """Without family and budget not a pixel changes; one stored on its side is 100 x 300."""
    pixels = noise(900, 2)
    sent = prepare_image_ref(kept(tmp_path, pixels))
    np.testing.assert_array_equal(np.asarray(sent), pixels)
    exif = Image.Exif()
    exif[0x0112] = 6
    sideways = kept(tmp_path, noise(300, 100), "JPEG", exif=exif)
    assert prepare_image_ref(sideways, FAMILY_BUDGETS["qwen2_5_vl"]).size == (112, 308)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF"])
def test_what_every_server_takes_is_sent_as_it_is(tmp_path: Path, kind: str) -> None:
    pixels = noise(50, 30)
    image = kept(tmp_path, pixels, kind)
    head, _, text = encode_data_url(image, None).partition(",")
    data = base64.b64decode(text, validate=True)
    if kind in ("BMP", "TIFF"):
        assert head == "data:image/png;base64"
        assert np.array_equal(np.asarray(Image.open(io.BytesIO(data))), pixels)
    else:
        assert head == f"data:image/{kind.lower()};base64"
        assert hashlib.sha256(data).hexdigest() == image.sha256
    # 50 x 30 is 1500 pixels; at most 800 is 36 x 21 before rounding: one patch of 28 each way.
    budget = pixel_budget("qwen2_5_vl", 784, 800)
    data = base64.b64decode(encode_data_url(image, budget).partition(",")[2])
    assert Image.open(io.BytesIO(data)).size == (28, 28)


def _processors() -> Any:
    name = "transformers.models.qwen2_vl.image_processing_pil_qwen2_vl"
    reason = "needs transformers: see `make test-vllm`"
    return pytest.importorskip(name, reason=reason, exc_type=ImportError)
