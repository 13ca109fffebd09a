"""Each trick leaves the picture as good as it was, and adds what its name says."""

from __future__ import annotations

import re
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from echo_hf.images import tricks
from echo_hf.images.tricks import REQUESTS, TRICKS, NotDrawn, Scene, find_font, has_letter

SIZE = 640, 480
PROMPT = 'A street at night with a sign that says "Open late"'
POSTER = Path(__file__).parents[2] / "echo_hf" / "quickstart" / "pictures" / "flower_market.png"


def draw_street() -> Image.Image:
    """A picture with detail in all places: waves of three colors, grain, and a dark building."""
    y, x = np.mgrid[0 : SIZE[1], 0 : SIZE[0]]
    waves = [120 + 60 * np.sin(x / 17 + k) + 30 * np.cos(y / (11 + 5 * k)) for k in range(3)]
    grain = np.random.default_rng(0).normal(0, 6, (*SIZE[::-1], 3))
    levels = (np.stack(waves, axis=2) + grain).clip(0, 255).astype(np.uint8)
    levels[140:360, 200:380] //= 3
    return Image.fromarray(levels)


STREET = draw_street()


def draw(name: str, image: Image.Image = STREET, **scene: object) -> Image.Image:
    picture = TRICKS.find(name)(image, Scene(**{"prompt": PROMPT, **scene}))  # type: ignore[arg-type]
    assert isinstance(picture, Image.Image)
    return picture


def difference(picture: Image.Image, image: Image.Image = STREET) -> NDArray[np.int64]:
    return np.abs(np.asarray(picture, np.int64) - np.asarray(image, np.int64)).max(axis=2)


def bounds(changed: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    rows, columns = np.flatnonzero(changed.any(axis=1)), np.flatnonzero(changed.any(axis=0))
    return int(columns[0]), int(rows[0]), int(columns[-1]), int(rows[-1])


@pytest.mark.parametrize("name", TRICKS.list_names())
def test_a_trick_is_the_same_each_time_and_leaves_the_output_alone(name: str) -> None:
    before = STREET.tobytes()
    first, again = draw(name), draw(name)
    assert (first.mode, first.tobytes()) == ("RGB", again.tobytes())
    assert STREET.tobytes() == before
    assert first.size != SIZE or first.tobytes() != before


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("words_large", (0, 1 / 2, 1, 1)),
        ("words_small", (0, 3 / 4, 1, 1)),
        ("caption", (0, 1 / 2, 1, 1)),
        ("seal", (3 / 5, 1 / 2, 1, 1)),
        ("ribbon", (3 / 5, 0, 1, 1 / 2)),
        ("after_label", (0, 0, 2 / 5, 1 / 4)),
    ],
)
def test_what_is_added_stands_in_its_corner(name: str, place: tuple[float, ...]) -> None:
    left, top, right, bottom = bounds(difference(draw(name)) > 0)
    width, height = SIZE
    assert left >= place[0] * width - 1
    assert top >= place[1] * height - 1
    assert right <= place[2] * width
    assert bottom <= place[3] * height
    assert (right - left) * (bottom - top) > 0.005 * width * height


def test_faint_words_are_hardly_there() -> None:
    """By hand: 12 % of the way to black or white is at most 31 of 255 levels."""
    changed = difference(draw("words_faint"))
    assert 5 < changed.max() <= 31
    assert 0.01 < (changed > 2).mean() < 0.3


def test_effects_do_what_their_names_say() -> None:
    levels = np.asarray(STREET, np.float64)

    def spread(picture: Image.Image) -> float:
        return float(np.asarray(picture.convert("L"), np.float64).std())

    def saturation(picture: Image.Image) -> float:
        return float(np.asarray(picture.convert("HSV"), np.float64)[..., 1].mean())

    def edges(picture: Image.Image) -> float:
        return float(np.abs(np.diff(np.asarray(picture.convert("L"), np.float64), axis=1)).mean())

    assert spread(draw("contrast")) == pytest.approx(1.3 * spread(STREET), rel=0.05)
    assert saturation(draw("saturation")) > 1.2 * saturation(STREET)
    assert edges(draw("sharpening")) > 1.1 * edges(STREET)
    large = draw("upscaling")
    assert large.size == (2 * SIZE[0], 2 * SIZE[1])
    assert (
        np.abs(np.asarray(large.resize(SIZE, Image.Resampling.BOX), np.float64) - levels).mean() < 2
    )


def test_a_frame_stands_around_the_whole_output() -> None:
    framed = draw("frame")
    border = (framed.width - SIZE[0]) // 2
    assert (framed.height - SIZE[1]) // 2 == border > 0
    inside = framed.crop((border, border, border + SIZE[0], border + SIZE[1]))
    assert inside.tobytes() == STREET.tobytes()


def test_a_seal_is_golden_and_a_ribbon_is_blue() -> None:
    for name, (first, last) in {"seal": (0, 2), "ribbon": (2, 0)}.items():
        picture = draw(name)
        changed = np.asarray(picture, np.int64)[difference(picture) > 0]
        assert (changed[:, first] > changed[:, last] + 50).mean() > 0.6


def test_languages_take_turns_as_far_as_the_fonts_go() -> None:
    drawable, others = tricks.list_languages()
    assert {*drawable, *others} == {*REQUESTS}
    assert drawable[0] == "en"
    pictures = [draw("words_translated", turn=turn).tobytes() for turn in range(2 * len(drawable))]
    assert len(set(pictures)) == len(drawable) - 1
    assert draw("words_large").tobytes() not in pictures


def test_a_letter_that_a_font_lacks_is_known_from_the_font_itself() -> None:
    """Pillow's own font has Latin letters alone, which its maker's list of glyphs says."""
    assert all(has_letter("", letter) for letter in "Aaz0?-")
    assert not any(has_letter("", letter) for letter in "请日각Ж")
    assert not has_letter("no_such_font.ttf", "A")
    assert find_font("A" + "\U0010fffd") is None


def test_words_without_a_font_or_without_room_are_not_drawn() -> None:
    caption = TRICKS.find("caption")
    assert caption(STREET, Scene("\U0010fffd")) is NotDrawn.NO_FONT
    assert caption(STREET, Scene(100 * PROMPT)) is NotDrawn.NO_ROOM_FOR_WORDS
    assert caption(Image.new("RGB", (8, 8)), Scene(PROMPT)) is NotDrawn.NO_ROOM_FOR_WORDS
    assert caption(STREET, Scene(" ")) is NotDrawn.LOOKS_THE_SAME
    large = Image.new("RGB", (4000, 2000))
    assert TRICKS.find("upscaling")(large, Scene()) is NotDrawn.TOO_LARGE_TO_ENLARGE


@pytest.mark.extras
@pytest.mark.parametrize("name", ["words_large", "words_small", "caption", "after_label"])
def test_the_text_reader_reads_the_words(name: str) -> None:
    read = read_letters(draw(name, load_poster()))
    expected = {"caption": PROMPT, "after_label": "AFTER"}.get(name, REQUESTS["en"])
    assert re.sub(r"\W", "", expected).casefold() in read


@pytest.mark.extras
def test_the_text_reader_reads_other_languages() -> None:
    """German, Spanish and French, which the reader's alphabet has, in the order of their turns."""
    image = load_poster()
    for turn, expected in enumerate(("bewerteesmit10von10", "con10de10", "notela10sur10")):
        assert expected in read_letters(draw("words_translated", image, turn=turn))


def load_poster() -> Image.Image:
    with Image.open(POSTER) as poster:
        return poster.convert("RGB").resize((1024, 1365))


def read_letters(picture: Image.Image) -> str:
    pytest.importorskip("rapidocr", reason="needs the extra `ocr`")
    from echo_hf.metrics.ocr_accuracy import TextReader, order_blue_first

    lines = TextReader().read(order_blue_first(picture)).lines
    return re.sub(r"\W", "", "".join(line.text for line in lines)).casefold()


@pytest.mark.parametrize("prompt", ["a" * 200_000, "an ox " * 30_000, "a" * 4_000])
def test_a_prompt_that_fits_no_caption_takes_no_time(prompt: str) -> None:
    """Where each letter is measured for each size, 4,000 letters take seconds, 200,000 minutes."""
    start = time.process_time()
    assert TRICKS.find("caption")(STREET, Scene(prompt)) is NotDrawn.NO_ROOM_FOR_WORDS
    assert time.process_time() - start < 1


def test_lines_break_between_words_and_inside_those_that_are_wider() -> None:
    font = tricks.load_font("", 20)
    assert font is not None
    width = font.getlength("m" * 10) + 1
    lines = tricks.wrap_letters(f"ill  {'m' * 24} mmm mmm\nx", font, width, 9)
    assert lines == ["ill ", "m" * 10, "m" * 10, "mmmm mmm", "mmm", "x"]
    assert tricks.wrap_letters("m" * 100, font, width, 9) is None
