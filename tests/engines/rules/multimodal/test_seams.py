"""Two pictures in one."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from echo_hf.engines.rules.images import is_pair, is_split, look_at
from tests.engines.rules.multimodal.drawn_pictures import (
    NIGHT,
    beside,
    portrait,
    saved,
    scene,
    sketch,
)


def split_and_pair(folder: Path, picture: Image.Image) -> tuple[bool, bool]:
    """Whether it falls into two, and into two of the same."""
    look = look_at(saved(folder, [picture])[0])
    assert look is not None
    return is_split(look), is_pair(look)


@pytest.mark.parametrize("gap", [0, 3, 12])
@pytest.mark.parametrize("turned", [False, True])
def test_the_same_scene_twice_is_a_pair(tmp_path: Path, gap: int, turned: bool) -> None:
    """Beside or above each other, with a gutter or without."""
    for before, after in ((scene(), scene(NIGHT)), (sketch(), scene())):
        both = beside(before, after, gap)
        if turned:
            halves = (
                before.transpose(Image.Transpose.ROTATE_90),
                after.transpose(Image.Transpose.ROTATE_90),
            )
            both = beside(*halves, gap).transpose(Image.Transpose.ROTATE_270)

        assert split_and_pair(tmp_path, both) == (True, True)


def test_two_scenes_are_split_but_no_pair(tmp_path: Path) -> None:
    """Their edges are in other places."""
    assert split_and_pair(tmp_path, beside(portrait(), scene(), 4)) == (True, False)


@pytest.mark.parametrize("picture", [scene(), scene(NIGHT), sketch(), portrait()])
def test_one_scene_is_whole(tmp_path: Path, picture: Image.Image) -> None:
    """Nothing runs through its middle."""
    assert split_and_pair(tmp_path, picture) == (False, False)
