"""Each fault damages the picture in the way that its name says."""

from __future__ import annotations

import re

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from echo_hf.images.faults import FAULTS, misspell
from echo_hf.images.tricks import NotDrawn, PlacedFace, PlacedText, Scene
from tests.images.test_tricks import SIZE, STREET, bounds, difference

LEVELS = np.asarray(STREET, np.float64)
WIDTH, HEIGHT = SIZE
WITHOUT_SCENE = [
    name for name in FAULTS.list_names() if name not in ("misspelt_words", "other_face")
]


def draw(name: str, image: Image.Image = STREET, scene: Scene | None = None) -> Image.Image:
    picture = FAULTS.find(name)(image, scene or Scene())
    assert isinstance(picture, Image.Image)
    return picture


@pytest.mark.parametrize("name", WITHOUT_SCENE)
def test_a_fault_is_the_same_each_time_and_leaves_the_output_alone(name: str) -> None:
    before = STREET.tobytes()
    picture = draw(name)
    assert (picture.mode, picture.tobytes()) == ("RGB", draw(name).tobytes())
    assert STREET.tobytes() == before
    assert picture.size != SIZE or picture.tobytes() != before


def test_a_tint_takes_blue_away() -> None:
    ratio = np.asarray(draw("tint"), np.float64).mean(axis=(0, 1)) / LEVELS.mean(axis=(0, 1))
    assert ratio == pytest.approx([1, 0.94, 0.55], abs=0.01)


def test_halves_are_mirrored_or_swapped() -> None:
    mirrored, half = np.asarray(draw("mirrored_half")), WIDTH // 2
    assert np.array_equal(mirrored, mirrored[:, ::-1])
    assert np.array_equal(mirrored[:, :half], np.asarray(STREET)[:, :half])
    swapped = np.asarray(draw("swapped_halves"))
    assert np.array_equal(swapped[:, :half], np.asarray(STREET)[:, half:])
    assert np.array_equal(swapped[:, half:], np.asarray(STREET)[:, :half])


def test_a_region_stands_there_three_times() -> None:
    cell, copied = (HEIGHT // 4, WIDTH // 4), np.asarray(draw("copied_region"))
    cells = [
        copied[top : top + cell[0], left : left + cell[1]].tobytes()
        for top in range(0, HEIGHT, cell[0])
        for left in range(0, WIDTH, cell[1])
    ]
    assert max(map(cells.count, cells)) == 3
    assert (difference(draw("copied_region")) > 0).mean() <= 2 / 16


def test_a_region_is_filled_with_one_color() -> None:
    filled = draw("filled_region")
    left, top, right, bottom = bounds(difference(filled) > 0)
    part = np.asarray(filled)[top : bottom + 1, left : right + 1]
    assert len(np.unique(part.reshape(-1, 3), axis=0)) == 1
    assert part.shape[0] * part.shape[1] == pytest.approx(WIDTH * HEIGHT / 16, rel=0.1)


def test_a_blur_and_a_poor_jpeg_lose_detail() -> None:
    blurred = np.abs(np.diff(np.asarray(draw("blur"), np.float64), axis=1)).mean()
    assert blurred < 0.9 * np.abs(np.diff(LEVELS, axis=1)).mean()
    compressed = np.asarray(draw("jpeg_10").convert("L"), np.float64)
    steps = np.abs(np.diff(compressed, axis=1)).mean(axis=0)
    borders = np.arange(len(steps)) % 8 == 7  # JPEG codes blocks of 8 x 8 pixels alone
    assert steps[borders].mean() > 1.2 * steps[~borders].mean()


def test_a_crop_keeps_the_upper_left_part() -> None:
    cropped = draw("crop")
    assert cropped.size == (0.6 * WIDTH, 0.6 * HEIGHT)
    assert np.array_equal(np.asarray(cropped), np.asarray(STREET)[: 6 * HEIGHT // 10, :384])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("OPEN LATE", "OPEN LAET"),
        ("cada domingo, 9 a 14 h", "cada domigno, 9 a 14 h"),
        ("Grand hotel", "Grnad hotel"),
        ("12:30 on", None),
        ("AAAA", None),
    ],
)
def test_two_letters_of_the_longest_word_change_places(text: str, expected: str | None) -> None:
    if expected is not None:
        assert sorted(expected) == sorted(text)
    assert misspell(text) == expected


def draw_sign(text: str) -> tuple[Image.Image, PlacedText]:
    sign = Image.new("RGB", SIZE, (240, 236, 220))
    draw = ImageDraw.Draw(sign)
    font = ImageFont.load_default(70)
    draw.text((60, 180), text, (160, 20, 40), font)
    left, top, right, bottom = map(int, draw.textbbox((60, 180), text, font))
    return sign, PlacedText(text, (left - 2, top - 2, right + 2, bottom + 2))


def test_misspelt_words_stand_in_the_place_and_the_colors_of_the_right_ones() -> None:
    sign, placed = draw_sign("OPEN LATE")
    misspelt = draw("misspelt_words", sign, Scene(words=[placed]))
    left, top, right, bottom = bounds(difference(misspelt, sign) > 0)
    box = placed.box
    assert left >= box[0] - 3
    assert right <= box[2] + 3
    assert top >= box[1] - 20
    assert bottom <= box[3] + 20
    colors = np.asarray(misspelt).reshape(-1, 3).astype(int)
    ink = (np.abs(colors - (160, 20, 40)).sum(axis=1) < 30).mean()
    assert ink == pytest.approx(
        (np.asarray(sign).reshape(-1, 3) == (160, 20, 40)).all(axis=1).mean(), rel=0.6
    )
    assert FAULTS.find("misspelt_words")(sign, Scene()) is NotDrawn.NO_WORDS


@pytest.mark.extras
def test_the_text_reader_reads_the_misspelt_word() -> None:
    pytest.importorskip("rapidocr", reason="needs the extra `ocr`")
    from echo_hf.metrics.ocr_accuracy import TextReader, order_blue_first

    sign, placed = draw_sign("OPEN LATE")
    reader = TextReader()
    letters = []
    for picture in (sign, draw("misspelt_words", sign, Scene(words=[placed]))):
        lines = reader.read(order_blue_first(picture)).lines
        letters.append(re.sub(r"\W", "", "".join(line.text for line in lines)))
    assert letters == ["OPENLATE", "OPENLAET"]


def test_another_face_fills_the_place_of_the_first_alone() -> None:
    other = Image.new("RGB", (50, 70), (10, 200, 30))
    box = (100, 80, 220, 240)
    swapped = draw("other_face", scene=Scene(face=PlacedFace(box, other)))
    left, top, right, bottom = bounds(difference(swapped) > 0)
    assert box[0] <= left < right < box[2]
    assert box[1] <= top < bottom < box[3]
    assert swapped.getpixel((160, 160)) == (10, 200, 30)
    assert FAULTS.find("other_face")(STREET, Scene()) is NotDrawn.NO_OTHER_FACE


def test_a_tiny_picture_has_no_region_to_damage() -> None:
    dot = Image.new("RGB", (3, 3))
    for name in ("copied_region", "filled_region"):
        assert FAULTS.find(name)(dot, Scene()) is NotDrawn.LOOKS_THE_SAME
