"""Boxes: what their numbers mean, by which images may be cut, and the crops."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageCms

from echo_hf.engines.base import make_engine
from echo_hf.engines.pixels import FAMILY_BUDGETS
from echo_hf.errors import ImageError
from echo_hf.images.loader import PixelSize
from echo_hf.samples.boxes import (
    BOX_INSTRUCTIONS,
    CheckedBoxes,
    Convention,
    EngineFrames,
    Frame,
    PixelBox,
    area,
    choose_engine_frames,
    convert_boxes,
    cut_box,
    get_inner_box,
    intersection,
    intersection_over_union,
    read_upright_size,
    rotate_upright,
    sort_boxes,
)
from tests.images_for_tests import encoded

# A thousandth is a pixel across, and two down.
FRAME = Frame(Convention.REL_1000, (1000, 2000), (1000, 2000))
SIDE = st.integers(0, 12)
BOX = st.tuples(SIDE, SIDE, SIDE, SIDE)
NUMBER = st.floats(-200, 1200) | st.integers(-100, 1100) | st.sampled_from([0, 1, 500, 1000])
NUMBERS = st.lists(st.lists(NUMBER, min_size=4, max_size=4), max_size=5)


def reasons(boxes: CheckedBoxes) -> list[str]:
    return [str(notice) for notice, _ in boxes.findings]


def mask(box: PixelBox) -> Any:
    left, top, right, bottom = box
    grid = np.zeros((12, 12), bool)
    grid[top:bottom, left:right] = True
    return grid


def test_boxes_by_hand() -> None:
    boxes = convert_boxes([[100, 50, 400, 200]], [[0, 500, 1000, 900.4]], FRAME)
    assert (boxes.inputs, boxes.outputs) == ([(100, 100, 400, 400)], [(0, 1000, 1000, 1801)])
    assert (boxes.findings, boxes.usable) == ([], True)


@pytest.mark.parametrize(
    ("numbers", "expected", "usable"),
    [
        ([0, 0, 1001, 500], ["wrong_convention"], False),
        ([400, 0, 400, 500], ["degenerate_box"], False),
        ([0, 500, 500, 400], ["degenerate_box"], False),
        ([100.1, 0, 100.4, 500], ["degenerate_box"], False),
        # 0.2 % of 1000 x 2000 are 4000 pixels: 100 x 40, and one row less.
        ([0, 0, 100, 20], [], True),
        ([0, 0, 100, 19.5], ["tiny_box"], False),
        # 95 % are 1000 x 1900.
        ([0, 0, 1000, 950], [], True),
        ([0, 0, 1000, 950.5], ["whole_box"], False),
        ([-30, 0, 500, 500], ["clamped_box"], True),
        ([-0.4, 0, 500, 500], [], True),
        ([-40, -40, 1000, 1000], ["clamped_box", "whole_box"], False),
    ],
)
def test_what_is_wrong_with_a_box(numbers: list[float], expected: list[str], usable: bool) -> None:
    for given_ in (([numbers], []), ([], [numbers])):
        boxes = convert_boxes(*given_, FRAME)
        assert (reasons(boxes), boxes.usable) == (expected, usable)


def test_findings_show_the_numbers_of_the_answer_and_one_image_is_named_once() -> None:
    boxes = convert_boxes([[0, 0, 500, 500]], [[400, 0, 300, 500]], FRAME)
    assert [detail for _, detail in boxes.findings] == ["output 1: [400, 0, 300, 500]"]
    boxes = convert_boxes([], [[0, 0, 1500, 500]], FRAME)
    assert [detail for _, detail in boxes.findings] == ["[0, 0, 1500, 500] in rel_1000"]
    boxes = convert_boxes([], [[2, 2, 500, 500], [0, 0, 500, 500], [600, 0, 900, 500]], FRAME)
    assert boxes.outputs == [(0, 0, 500, 1000), (600, 0, 900, 1000)]
    assert (reasons(boxes), boxes.usable) == (["duplicate_box"], True)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([0, 0, 500, 500], [500, 0, 1000, 500], []),
        # A tenth of the smaller one, and a hair more.
        ([0, 0, 500, 500], [450, 0, 950, 500], []),
        ([0, 0, 500, 500], [449, 0, 949, 500], ["overlapping_boxes"]),
        # A thumbnail on an image shares all of itself, though little of the image.
        ([0, 0, 1000, 900], [10, 10, 110, 60], ["overlapping_boxes"]),
        ([0, 0, 500, 500], [0, 0, 500, 500], ["overlapping_boxes"]),
    ],
)
def test_boxes_that_share_a_part(one: list[float], other: list[float], expected: list[str]) -> None:
    assert reasons(convert_boxes([one], [other], FRAME)) == expected


@given(NUMBERS, NUMBERS, st.sampled_from(Convention), st.randoms(use_true_random=False))
def test_boxes_keep_to_the_image(
    inputs: list[list[float]], outputs: list[list[float]], convention: Convention, chance: Any
) -> None:
    frame = Frame(convention, (300, 500), (280, 504))
    boxes = convert_boxes(inputs, outputs, frame)
    every = [*boxes.inputs, *boxes.outputs]
    for left, top, right, bottom in every:
        assert 0 <= left < right <= 300
        assert 0 <= top < bottom <= 500
    if boxes.usable:
        assert len(every) + reasons(boxes).count("duplicate_box") == len(inputs) + len(outputs)
        for number, one in enumerate(every):
            for other in every[number + 1 :]:
                assert 10 * intersection(one, other) <= min(area(one), area(other))
    if frame.find_contradiction([*inputs, *outputs]) is None:
        turned = convert_boxes(
            chance.sample(inputs, len(inputs)), chance.sample(outputs, len(outputs)), frame
        )
        assert (turned.inputs, turned.outputs) == (boxes.inputs, boxes.outputs)
        assert Counter(reasons(turned)) == Counter(reasons(boxes))


@given(BOX, BOX)
def test_overlaps_are_those_of_the_pixels(one: PixelBox, other: PixelBox) -> None:
    shared, either = (mask(one) & mask(other)).sum(), (mask(one) | mask(other)).sum()
    assert area(one) == mask(one).sum()
    assert intersection(one, other) == shared
    assert intersection_over_union(one, other) == (shared / either if shared else 0)


def test_rows_are_read_from_the_left() -> None:
    """By hand: two rows whose images are a few pixels off each other's height."""
    first, second = (
        [(0, 12, 90, 100), (100, 10, 190, 98)],
        [(0, 110, 90, 200), (100, 108, 190, 190)],
    )
    assert sort_boxes([*second, *first]) == [*first, *second]


ABS, THOUSANDTHS = Convention.ABS_RESIZED, Convention.REL_1000


@pytest.mark.parametrize(
    ("convention", "numbers"),
    [
        (ABS, [50, 40, 100, 160]),
        (THOUSANDTHS, [250, 100, 500, 400]),
        (Convention.REL_1, [0.25, 0.1, 0.5, 0.4]),
        (Convention.REL_1000_YX, [100, 250, 400, 500]),
    ],
)
def test_one_box_in_every_convention(convention: Convention, numbers: list[float]) -> None:
    """By hand: a quarter to half of 400 pixels, a tenth to four tenths of 800."""
    frame = Frame(convention, (400, 800), (200, 400))
    assert frame.to_original(numbers) == pytest.approx((100, 80, 200, 320), abs=1e-9)
    across, down = frame.extent  # a corner maps to the corner, without a rounding error
    end = (down, across) if convention is Convention.REL_1000_YX else (across, down)
    for size in ((1, 1), (1290, 2796), (8999, 7)):
        assert Frame(convention, size, (200, 400)).to_original([0, 0, *end]) == (0, 0, *size)


@pytest.mark.parametrize(
    ("convention", "boxes", "expected"),
    [
        (ABS, [[0, 0, 504, 504], [-20, 1, 529.2, 2]], None),
        (ABS, [[0, 0, 530, 504]], "[0, 0, 530, 504]"),
        (ABS, [[-26, 0, 504, 504]], "[-26, 0, 504, 504]"),
        (ABS, [[0.1, 0.2, 0.5, 1.0]], "[0.1, 0.2, 0.5, 1]"),
        (THOUSANDTHS, [[0, 0, 1000, 1000], [-50, 0, 5, 5]], None),
        (THOUSANDTHS, [[0, 0, 1001, 900]], "[0, 0, 1001, 900]"),
        (THOUSANDTHS, [[0.2, 0.2, 0.9, 0.9]], "[0.2, 0.2, 0.9, 0.9]"),
        (Convention.REL_1000_YX, [[0, 0, 900, 1001]], "[0, 0, 900, 1001]"),
        (Convention.REL_1, [[0.2, 0.2, 0.9, 0.9]], None),
        (Convention.REL_1, [[0, 0, 1.01, 1]], "[0, 0, 1.01, 1]"),
    ],
)
def test_numbers_that_betray_another_convention(
    convention: Convention, boxes: list[list[float]], expected: str | None
) -> None:
    """Pixels may be 5 % past the image, shares never; all up to 1 are parts of a side."""
    assert Frame(convention, (500, 500), (504, 504)).find_contradiction(boxes) == expected


def test_how_boxes_are_asked_for() -> None:
    frames = {one: Frame(one, (1290, 2796), (672, 1456)) for one in Convention}
    assert frames.pop(ABS).instructions == (
        "The picture is 672 pixels wide and 1456 pixels high. Give each box as [x1, y1, x2, y2] in "
        "pixels: the upper left corner, then the lower right one."
    )
    assert all(frame.instructions == BOX_INSTRUCTIONS[one] for one, frame in frames.items())
    assert "[y1, x1, y2, x2]" in BOX_INSTRUCTIONS[Convention.REL_1000_YX]


NOISE = np.random.default_rng(0).integers(0, 256, (30, 50, 4), dtype=np.uint8)
CROPPED = (7, 5, 41, 28)
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def drawn(mode: str) -> Image.Image:
    """Noise in this mode, 50 wide and 30 high."""
    if mode == "I;16":
        return Image.fromarray(NOISE[..., 0].astype(np.uint16) * 257)
    if mode == "P":
        return Image.fromarray(NOISE[..., :3]).quantize(64)
    return Image.fromarray(NOISE).convert(mode)


def opened(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_a_crop_has_the_pixels_of_the_image(mode: str) -> None:
    """Also within a margin that is left out; and the same part gives the same bytes."""
    original = drawn(mode)
    data = cut_box(rotate_upright(encoded(original, "PNG")), CROPPED)
    crop = opened(data)

    assert (crop.format, crop.mode, crop.size) == ("PNG", mode, (34, 23))
    np.testing.assert_array_equal(np.asarray(crop), np.asarray(original)[5:28, 7:41])
    assert get_inner_box((2, 0, 46, 33), 5) == CROPPED
    for options in ({}, {"compress_level": 0, "dpi": (7, 7)}):
        assert (
            cut_box(rotate_upright(encoded(original, "PNG", **options)), (2, 0, 46, 33), 5) == data
        )
    if mode == "P":
        assert crop.getpalette() == original.getpalette()


def test_a_transparent_palette_color_stays_transparent() -> None:
    original = drawn("P")
    crop = opened(cut_box(rotate_upright(encoded(original, "PNG", transparency=3)), CROPPED))
    expected = opened(encoded(original, "PNG", transparency=3)).convert("RGBA").crop(CROPPED)
    assert expected.getextrema()[3] == (0, 255)
    np.testing.assert_array_equal(np.asarray(crop.convert("RGBA")), np.asarray(expected))


# What the eight orientations of a camera do to the pixels that it stored.
TURNS: dict[int, Callable[[Any], Any]] = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.swapaxes(0, 1),
    6: lambda a: np.rot90(a, -1),
    7: lambda a: a[::-1, ::-1].swapaxes(0, 1),
    8: lambda a: np.rot90(a),
}


@pytest.mark.parametrize("orientation", TURNS)
@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_boxes_are_those_of_the_upright_image(orientation: int, kind: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(drawn("RGB"), kind, exif=exif)
    seen = TURNS[orientation](NOISE[..., :3])
    left, top, right, bottom = box = (3, 4, 20, 29)
    crop = opened(cut_box(rotate_upright(data), box))

    np.testing.assert_array_equal(np.asarray(crop), seen[top:bottom, left:right])
    assert read_upright_size(data) == (seen.shape[1], seen.shape[0])


def test_a_color_profile_stays_and_nothing_else_does() -> None:
    exif = Image.Exif()
    exif[0x010E] = "in the garden"
    data = encoded(
        drawn("RGB"), "JPEG", exif=exif, icc_profile=PROFILE, comment=b"hello", dpi=(9, 9)
    )
    crop = cut_box(rotate_upright(data), CROPPED)

    assert opened(crop).info == {"icc_profile": PROFILE}
    assert b"garden" not in crop
    assert b"hello" not in crop


def test_colors_that_no_png_holds_are_converted() -> None:
    image = Image.frombytes("CMYK", NOISE.shape[1::-1], NOISE.tobytes())
    data = encoded(image, "TIFF", icc_profile=PROFILE)
    crop = opened(cut_box(rotate_upright(data), CROPPED))
    expected = np.asarray(image.convert("RGB"))[5:28, 7:41]

    np.testing.assert_array_equal(np.asarray(crop), expected)
    assert "icc_profile" not in crop.info


@pytest.mark.parametrize(
    ("box", "inset"), [((0, 0, 51, 30), 0), ((-1, 0, 5, 5), 0), ((0, 0, 50, 20), 10)]
)
def test_a_box_that_leaves_nothing_is_refused(box: tuple[int, int, int, int], inset: int) -> None:
    with pytest.raises(ImageError, match=r"leaves nothing of an image of 50 x 30 pixels") as caught:
        cut_box(rotate_upright(encoded(drawn("RGB"), "PNG")), box, inset)
    assert str(list(box)) in str(caught.value)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"no picture", "it begins with b'no picture'"),
        (encoded(drawn("RGB"), "PNG")[:700], "the file ends before the image does"),
        (encoded(Image.new("F", (9, 9)), "TIFF"), "pixels of mode 'F'"),
    ],
)
def test_what_cannot_be_shown_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(ImageError, match=said):
        rotate_upright(data)


PHONE = (1290, 2796)
YX = Convention.REL_1000_YX
USUAL = [28, 3136, 1_003_520]
OWN_BUDGET = {"factor": 28, "min_pixels": 3136, "max_pixels": 12_845_056}


@pytest.mark.parametrize(
    ("model", "pixels", "options", "convention", "sent"),
    [
        # Published sizes of a phone's screen under the usual and the checkpoint's own budget.
        ("Qwen/Qwen2.5-VL-32B-Instruct", USUAL, {}, ABS, (672, 1456)),
        ("Qwen/Qwen2.5-VL-32B-Instruct", OWN_BUDGET, {}, ABS, (1288, 2800)),
        # Shares of the sides need no size.
        ("Qwen/Qwen3-VL-8B-Instruct", None, {}, THOUSANDTHS, PHONE),
        ("Qwen/Qwen3-VL-8B-Instruct", [32, 65_536, 1_003_520], {}, THOUSANDTHS, PHONE),
        ("google/Gemini-2.5-flash", None, {}, YX, PHONE),
        ("zai-org/GLM-4.5V", None, {}, THOUSANDTHS, PHONE),
        ("our-finetune", None, {"family": "qwen3_vl"}, THOUSANDTHS, PHONE),
        ("org/other", USUAL, {"convention": "rel_1"}, Convention.REL_1, PHONE),
        ("Qwen/Qwen2.5-VL-7B-Instruct", None, {"convention": "rel_1000"}, THOUSANDTHS, PHONE),
        # A quarter of 1290 x 2796 pixels, so half of each side.
        ("org/other", [1, 1, 901_710], {"convention": "abs_resized"}, ABS, (645, 1398)),
        # Pixels of an unknown size are not guessed.
        *(
            ("Qwen/Qwen2.5-VL-7B-Instruct", pixels, {}, ABS, None)
            for pixels in (None, [28], [None, 1, 2], {"factor": 28})
        ),
        ("our-finetune", None, {"family": "qwen2_5_vl"}, ABS, None),
    ],
)
def test_how_an_engine_names_places(
    model: str, pixels: Any, options: dict[str, Any], convention: Convention, sent: PixelSize | None
) -> None:
    frames = choose_engine_frames({"kind": "openai", "model": model, "pixels": pixels}, **options)
    assert (frames.convention, frames.is_assumed) == (convention, False)
    assert frames.is_blind is (sent is None)
    assert sent is None or (frames.frame(PHONE).sent, frames.frame(PHONE).original) == (sent, PHONE)


# As their makers write; `docs/how-to/check_engine.md` says where.
DOCUMENTED = {
    "OpenGVLab/InternVL3-8B": THOUSANDTHS,
    "OpenGVLab/InternVL3_5-38B-HF": THOUSANDTHS,
    "openbmb/MiniCPM-V-4_5": THOUSANDTHS,
    "openbmb/MiniCPM-o-2_6": THOUSANDTHS,
    "ByteDance-Seed/UI-TARS-7B-SFT": THOUSANDTHS,
    "ByteDance-Seed/UI-TARS-1.5-7B": ABS,
    "gemini-3-flash": Convention.REL_1000_YX,
}


@pytest.mark.parametrize("model", DOCUMENTED)
def test_what_makers_write_of_their_models_is_known(model: str) -> None:
    frames = choose_engine_frames({"kind": "vllm", "model": model, "pixels": USUAL})
    assert (frames.convention, frames.is_assumed) == (DOCUMENTED[model], False)


UNDOCUMENTED = (
    *("google/gemma-3-27b-it", "google/gemma-4-31B-it", "moonshotai/Kimi-VL-A3B-Instruct"),
    *("XiaomiMiMo/MiMo-VL-7B-RL", "meta-llama/Llama-4-Scout-17B-16E-Instruct", "gpt-5"),
)


@pytest.mark.parametrize("model", ["org/other", "zai-org/GLM-4.5", "", *UNDOCUMENTED])
def test_a_model_of_unknown_convention_is_asked_for_thousandths(model: str) -> None:
    frames = choose_engine_frames({"kind": "openai", "model": model, "pixels": [1, 1, 500_000]})
    assert (frames.convention, frames.is_assumed, frames.is_blind) == (THOUSANDTHS, True, False)


def test_every_family_has_a_convention() -> None:
    assert not any(choose_engine_frames({}, family=one).is_assumed for one in FAMILY_BUDGETS)


def test_plain_rules_count_pixels_of_the_file() -> None:
    for convention in ("auto", "rel_1000"):
        frames = choose_engine_frames(make_engine("rules").signature(), convention, "qwen3_vl")
        assert (frames.frame(PHONE).sent, frames.convention) == (PHONE, ABS)
        assert not frames.is_assumed


def test_a_shape_that_cannot_be_sent_is_refused() -> None:
    """A strip more than 200 times as long as wide; where no size is needed any shape will do."""
    strip = (10, 3000)
    signature = {"kind": "vllm", "model": "Qwen/Qwen2.5-VL-7B-Instruct", "pixels": USUAL}
    with pytest.raises(ImageError, match="more than 200 times"):
        choose_engine_frames(signature).frame(strip)
    assert EngineFrames(THOUSANDTHS).frame(strip).original == strip
