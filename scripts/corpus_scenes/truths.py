"""Right images of the tasks for which the bundled posts show a wrong one, or none of their own.

Each is the scene of the posts without the fault that a reply complains about.
"""

from __future__ import annotations

from collections.abc import Mapping

from corpus_scenes.brushes import Fade, Placed, Stroke
from corpus_scenes.canvas import Brush, Scene
from corpus_scenes.cart import cart
from corpus_scenes.chair import FLOOR, WALL, chair, cushion, room
from corpus_scenes.chat import RAMEN
from corpus_scenes.lake import MOONLIGHT, NIGHT, STARS_AND_MOON, lake
from corpus_scenes.mug import logo, mug
from corpus_scenes.outlines import xy
from corpus_scenes.paintings import CAT_RAIN
from corpus_scenes.parrot import GLASS
from corpus_scenes.portrait import BEHIND, HERS, SUIT, head

SECOND_TAIL = Stroke(xy("152,246 196,262 214,292 196,304"), "#d9742b", 15, smooth=True)


def without(scene: Scene, mark: Brush) -> Scene:
    """The scene less one of its marks.

    Raises:
        ValueError: The scene has no such mark.
    """
    marks = list(scene.marks)
    marks.remove(mark)
    return Scene(scene.size, marks)


SCENES: Mapping[str, Scene] = {
    "lake_night_same_shore.png": lake(NIGHT, 24, STARS_AND_MOON, MOONLIGHT),
    "cat_one_tail.png": without(CAT_RAIN, SECOND_TAIL),
    "astronaut_her_face.png": Scene(
        (320, 336), [Fade("#8fb8de", "#6a97c4"), BEHIND[0], *SUIT, BEHIND[1], *head(HERS)]
    ),
    "mug_yellow_sun.png": Scene((320, 288), [*mug(), Placed(logo("#f5c32c"), 152, 166, 0.5)]),
    "cart_gelati.png": Scene((352, 264), cart("GELATI")),
    "chair_cushion.png": room(WALL, FLOOR, [*chair("#8fd6b8", "#63ad90"), *cushion(0)]),
    "ramen.png": RAMEN,
    "parrot_glass.png": GLASS,
}
