"""What speaks for one of two pictures as what went in."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from echo_hf.engines.rules.images import Edit, alt_weight, blend_among, change_weight, look_at
from echo_hf.engines.rules.words import names_of
from tests.engines.rules.multimodal.drawn_pictures import (
    FADED,
    NIGHT,
    portrait,
    saved,
    scene,
    sketch,
)

NAMES = names_of(
    {"name": "Lumen", "developer": "", "aliases": [], "others": [], "chat_window": None}
)
RESTORE = "Restore it: remove the scratches and add a golden frame. Keep the little boat."


@pytest.mark.parametrize(
    ("alt_text", "sign"),
    [
        ("the original scan", 1),
        ("a scratched print", 1),
        ("the result", -1),
        ("a print in a golden frame", -1),
        ("a print with the scratches removed", -1),
        ("a little boat", 0),
        ("", 0),
    ],
)
def test_a_description_speaks_for_a_role(alt_text: str, sign: int) -> None:
    """By its words for roles, what the prompt takes away, and what it adds; not what it keeps."""
    weight = alt_weight(alt_text, RESTORE, NAMES)

    assert (weight > 0) - (weight < 0) == sign


@pytest.mark.parametrize(
    ("edit", "before", "after"),
    [
        (Edit(1, "from_sketch"), sketch(), scene()),
        (Edit(1, "to_sketch"), scene(), sketch()),
        (Edit(1, "add_colour"), scene(FADED), scene()),
        (Edit(1, "take_colour"), scene(), scene().convert("L")),
        (Edit(1, "darken"), scene(), scene(NIGHT)),
        (Edit(1, "brighten"), scene(NIGHT), scene()),
        (Edit(1, None), sketch(), scene()),
    ],
)
def test_a_change_is_seen_both_ways_round(
    tmp_path: Path, edit: Edit, before: Image.Image, after: Image.Image
) -> None:
    """What speaks for the one as an input speaks as much against the other."""
    one, other = (look_at(file) for file in saved(tmp_path, [before, after]))
    assert one is not None
    assert other is not None

    assert change_weight(edit, one, other) > 0
    assert change_weight(edit, other, one) == -change_weight(edit, one, other)
    assert change_weight(edit, one, one) == 0


def test_a_blend_stands_out_or_there_is_none(tmp_path: Path) -> None:
    """A picture with all the colours of the others; not where they are much the same."""
    blend = scene()
    blend.paste(portrait().crop((50, 20, 190, 180)).resize((90, 110)), (120, 60))
    one, other, both = (look_at(file) for file in saved(tmp_path, [portrait(), scene(), blend]))

    assert blend_among([one, other, both]) == 2
    assert blend_among([both, one, other]) == 0
    assert blend_among([one, one, one]) is None
    assert blend_among([one, other, None]) is None
