"""What plain measures see in pictures drawn for the purpose."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from echo_hf.engines.rules.images import LONGEST_SIDE, Look, alike, look_at
from tests.engines.rules.multimodal.drawn_pictures import (
    FADED,
    NIGHT,
    portrait,
    saved,
    scene,
    sketch,
)


def seen(folder: Path, *pictures: Image.Image) -> list[Look]:
    """The pictures as they are seen."""
    looks = [look_at(file) for file in saved(folder, pictures)]
    assert all(looks)
    return [look for look in looks if look]


def test_measures_of_flat_pictures_are_known(tmp_path: Path) -> None:
    """Brightness is the weighted mean of 299, 587 and 114 in 1000; one tint has no colours."""
    red, half = Image.new("RGB", (64, 64), (200, 0, 0)), Image.new("RGB", (64, 64), "black")
    half.paste((0, 0, 255), (0, 0, 64, 32))
    one, other = seen(tmp_path, red, half)

    assert one.brightness == pytest.approx(0.299 * 200, abs=0.01)
    assert one.colourfulness == pytest.approx(0, abs=1e-4)
    # Blue over black: red-green is 0, yellow-blue is -255 or 0, so its deviation is 127.5.
    assert other.colourfulness == pytest.approx(127.5, rel=0.01)
    assert one.is_empty
    assert not other.is_empty


def test_a_picture_is_seen_small_and_as_it_is_shown(tmp_path: Path) -> None:
    """Scaled down, upright, its clear parts white, whatever its mode."""
    wide = Image.new("L", (900, 300), 40)
    clear = Image.new("RGBA", (80, 40), (255, 0, 0, 0))
    turned = Image.new("RGB", (40, 80), "navy")
    exif = Image.Exif()
    exif[0x0112] = 6
    file = tmp_path / "turned.jpg"
    turned.save(file, exif=exif)
    one, other = seen(tmp_path, wide, clear)
    third = look_at(file)

    assert one.rgb.shape == (64, LONGEST_SIDE, 3)
    assert one.size == (900, 300)
    assert np.unique(other.rgb).tolist() == [255.0]
    assert third is not None
    assert third.rgb.shape == (40, 80, 3)


def test_a_line_drawing_is_strokes_on_paper(tmp_path: Path) -> None:
    """Paintings, portraits and empty paper are none; faint pencil on grey paper is one."""
    paper = Image.new("RGB", (200, 150), "white")
    pencil = Image.eval(sketch().convert("L"), lambda level: 40 + level * 3 // 4)
    looks = seen(tmp_path, sketch(), pencil, scene(), scene(FADED), portrait(), paper)

    assert [look.is_line_drawing for look in looks] == [True, True, False, False, False, False]


def test_pictures_of_the_same_scene_are_alike(tmp_path: Path) -> None:
    """By day, by night, faded or drawn: more than any is to another subject."""
    same = seen(tmp_path, scene(), scene(NIGHT), scene(FADED), sketch())
    other = seen(tmp_path, portrait())[0]

    assert alike(other, other) == pytest.approx(1)
    among = [alike(one, two) for one in same for two in same]
    assert min(among) > 0.5 > 0.3 > max(alike(one, other) for one in same)


@pytest.mark.parametrize("content", [b"", b"GIF89a", b"no picture at all", b"\x89PNG\r\n\x1a\n"])
def test_what_cannot_be_read_is_not_seen(tmp_path: Path, content: bytes) -> None:
    """Neither it nor a missing file raises."""
    file = tmp_path / "x.png"
    file.write_bytes(content)

    assert look_at(file) is None
    assert look_at(tmp_path / "missing.png") is None
    assert look_at(None) is None
