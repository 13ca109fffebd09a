"""What models mean by the numbers of a box, and the way back to the image's own pixels."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.engines.checkpoint import FAMILIES
from echo_hf.engines.pixels import fitted
from echo_hf.errors import EngineError, ImageError
from echo_hf.samples.boxes import WORDS, Box, Convention, Frame, Size, box_text, convention_of

ABS, THOUSANDTHS = Convention.ABS_RESIZED, Convention.REL_1000
ROUNDS = 5000


def forth(box: tuple[int, ...], frame: Frame) -> list[Fraction]:
    """Where a box of the original lies in the numbers of a frame, without any rounding."""
    pixels = frame.convention is ABS
    scale = {Convention.REL_1: 1}.get(frame.convention, 1000)
    ends = frame.sent if pixels else (scale, scale)
    left, top, right, bottom = (
        Fraction(at * end, side)
        for at, end, side in zip(box, ends * 2, frame.original * 2, strict=True)
    )
    if frame.convention is Convention.REL_1000_YX:
        return [top, left, bottom, right]
    return [left, top, right, bottom]


def random_frame(chance: random.Random, convention: Convention) -> Frame:
    """An image of any size and shape, sent under any budget of any family."""
    while True:
        size = (chance.randint(1, 9000), chance.randint(1, 9000))
        budget = chance.choice([None, 1_003_520, chance.randint(50_000, 12_000_000)])
        try:
            sent = fitted(size, family=chance.choice(sorted(FAMILIES)), max_pixels=budget)
        except (EngineError, ImageError):
            continue
        return Frame(convention, size, sent if convention is ABS else size)


def random_box(chance: random.Random, size: Size) -> tuple[int, int, int, int]:
    """A box in an image of this size."""
    left, right = sorted(chance.sample(range(size[0] + 1), 2))
    top, bottom = sorted(chance.sample(range(size[1] + 1), 2))
    return left, top, right, bottom


@pytest.mark.parametrize("convention", Convention)
def test_a_box_comes_back_to_where_it_was(convention: Convention) -> None:
    """Thousands of random sizes, budgets and boxes: the same pixels, to the last digits."""
    chance = random.Random(f"exact {convention}")
    for _ in range(ROUNDS):
        frame = random_frame(chance, convention)
        box = random_box(chance, frame.original)
        back = frame.to_original([float(at) for at in forth(box, frame)])
        assert max(abs(one - other) for one, other in zip(back, box, strict=True)) < 1e-6
        assert tuple(map(round, back)) == box


@pytest.mark.parametrize("convention", [ABS, THOUSANDTHS, Convention.REL_1000_YX])
def test_whole_numbers_are_off_by_half_a_step(convention: Convention) -> None:
    """What a model that answers in whole numbers can miss, it misses by no more than that.

    A step is a pixel of the image that it got, or a thousandth of a side; where it is no more
    than two pixels of the original, the box is at most one pixel off.
    """
    chance = random.Random(f"whole {convention}")
    within_one = 0
    for _ in range(ROUNDS):
        frame = random_frame(chance, convention)
        box = random_box(chance, frame.original)
        back = frame.to_original([round(at) for at in forth(box, frame)])
        ends = frame.sent if convention is ABS else (1000, 1000)
        steps = [Fraction(s, e) for s, e in zip(frame.original, ends, strict=True)] * 2
        for one, other, step in zip(back, box, steps, strict=True):
            assert abs(one - other) <= step / 2 + Fraction(1, 10**6)
            if step <= 2:
                assert abs(round(one) - other) <= 1
                within_one += 1
    assert within_one > ROUNDS / 2


def test_a_phone_under_the_usual_budget() -> None:
    """1290 x 2796 at 1,003,520 pixels is sent as 672 x 1456: every number times 1.92."""
    sent = fitted((1290, 2796), family="qwen2_5_vl", max_pixels=1_003_520)
    frame = Frame(ABS, (1290, 2796), sent)
    # 112 / 672 and 560 / 672 of the width, 364 / 1456 and 1092 / 1456 of the height.
    assert sent == (672, 1456)
    assert frame.to_original([112, 364, 560, 1092]) == (215.0, 699.0, 1075.0, 2097.0)


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


@given(
    st.sampled_from(Convention),
    st.tuples(*[st.integers(1, 9000)] * 2),
    st.tuples(*[st.integers(1, 9000)] * 2),
)
def test_the_whole_image_is_the_whole_image(
    convention: Convention, original: Size, sent: Size
) -> None:
    """Its far corner maps to the far corner, without a rounding error."""
    frame = Frame(convention, original, sent)
    across, down = frame.extent
    end = [down, across] if convention is Convention.REL_1000_YX else [across, down]
    assert frame.to_original([0, 0, *end]) == (0, 0, *original)


@pytest.mark.parametrize(
    ("convention", "boxes", "expected"),
    [
        (ABS, [], None),
        (ABS, [[0, 0, 504, 504], [-20, 1, 529.2, 2]], None),
        (ABS, [[0, 0, 530, 504]], "[0, 0, 530, 504]"),
        (ABS, [[0, 0, 1, 2], [0, 0, 504, 530]], "[0, 0, 504, 530]"),
        (ABS, [[-26, 0, 504, 504]], "[-26, 0, 504, 504]"),
        (ABS, [[0.1, 0.2, 0.5, 1.0]], "[0.1, 0.2, 0.5, 1]"),
        (ABS, [[0.1, 0.2, 0.5, 1.5]], None),
        (THOUSANDTHS, [[0, 0, 1000, 1000], [-50, 0, 5, 5]], None),
        (THOUSANDTHS, [[0, 0, 1001, 900]], "[0, 0, 1001, 900]"),
        (THOUSANDTHS, [[0, 1200, 10, 900]], "[0, 1200, 10, 900]"),
        (THOUSANDTHS, [[-51, 0, 10, 10]], "[-51, 0, 10, 10]"),
        (THOUSANDTHS, [[0.2, 0.2, 0.9, 0.9]], "[0.2, 0.2, 0.9, 0.9]"),
        (Convention.REL_1000_YX, [[0, 0, 900, 1001]], "[0, 0, 900, 1001]"),
        (Convention.REL_1, [[0.2, 0.2, 0.9, 0.9]], None),
        (Convention.REL_1, [[0, 0, 1.01, 1]], "[0, 0, 1.01, 1]"),
        (Convention.REL_1, [[0, 0, 640, 480]], "[0, 0, 640, 480]"),
    ],
)
def test_numbers_that_betray_another_convention(
    convention: Convention, boxes: list[list[float]], expected: str | None
) -> None:
    """Pixels may be 5 % past the image, shares never; all up to 1 are parts of a side."""
    assert Frame(convention, (500, 500), (504, 504)).betrayed_by(boxes) == expected


@pytest.mark.parametrize(
    ("family", "model", "expected"),
    [
        ("qwen2_vl", "", THOUSANDTHS),
        ("qwen2_5_vl", "any/name", ABS),
        ("qwen3_vl", "", THOUSANDTHS),
        (None, "google/gemini-2.5-flash", Convention.REL_1000_YX),
        (None, "Gemini-3", Convention.REL_1000_YX),
        (None, "zai-org/GLM-4.5V", THOUSANDTHS),
        (None, "glm4v-9b", THOUSANDTHS),
        (None, "zai-org/GLM-4.5", None),
        (None, "org/other-vl", None),
        (None, "", None),
    ],
)
def test_models_of_known_conventions(
    family: str | None, model: str, expected: Convention | None
) -> None:
    """As their makers publish them; of others nothing is claimed."""
    assert convention_of(family, model) == expected


def test_every_family_has_a_convention() -> None:
    """A family that is added to the pixel rules says how it names places, too."""
    assert all(convention_of(family) for family in FAMILIES)


def test_how_boxes_are_asked_for() -> None:
    """Pixels with the size of what is sent, shares without; rows first where so meant."""
    frames = {one: Frame(one, (1290, 2796), (672, 1456)) for one in Convention}
    assert frames[ABS].words.startswith("The picture is 672 pixels wide and 1456 pixels high. ")
    assert all("[y1, x1, y2, x2]" in WORDS[one] for one in Convention if one.endswith("yx"))
    for convention in Convention:
        if convention is not ABS:
            assert frames[convention].words == WORDS[convention]
            assert "1290" not in WORDS[convention]


def test_numbers_as_text() -> None:
    """Short, whatever they are: they stand in reports."""
    box: Box = (0.0, 12.25, 1e5, 1 / 3)
    assert box_text(box) == "[0, 12.25, 100000, 0.333333]"
