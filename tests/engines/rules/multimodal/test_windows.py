"""Chat windows and what stands in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from echo_hf.engines.rules.images import Window, look_at
from tests.engines.rules.multimodal.drawn_pictures import (
    NIGHT,
    chat,
    portrait,
    saved,
    scene,
    sketch,
)

LIGHT, DARK, TINTED = (
    ("white", "#ededf2", "black"),
    ("#202225", "#3a3d42", "white"),
    (
        "#f6f3ff",
        "#dcd0fa",
        "#241b3a",
    ),
)


def window(folder: Path, picture: Image.Image) -> Window:
    """A picture, looked at as a window."""
    look = look_at(saved(folder, [picture])[0])
    assert look is not None
    return Window(look)


@pytest.mark.parametrize("colours", [LIGHT, DARK, TINTED])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_chat_window_is_a_conversation(
    tmp_path: Path, colours: tuple[str, str, str], size: int
) -> None:
    """In any colours and size, with a picture in it or without."""
    for shown in (scene(), portrait(), None):
        drawn = chat(shown, *colours)
        found = window(tmp_path, drawn.resize((drawn.width * size, drawn.height * size)))

        assert found.is_conversation
        assert found.has_controls
        assert found.shows_a_picture == (shown is not None)


@pytest.mark.parametrize("picture", [scene(), scene(NIGHT), portrait()])
def test_pictures_are_no_windows(tmp_path: Path, picture: Image.Image) -> None:
    """They have no plain ground, or nothing to either side of it."""
    assert not window(tmp_path, picture).is_conversation


def test_a_drawing_on_paper_has_no_controls(tmp_path: Path) -> None:
    """It stands on a plain ground as well, but nobody types below it."""
    found = window(tmp_path, sketch())

    assert not found.has_controls
    assert not found.shows_a_picture
