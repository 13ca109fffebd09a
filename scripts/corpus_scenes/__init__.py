"""Every image of the bundled posts, as a list of brushes under its file name.

To add an image, put a `Scene` into the `SCENES` of a module here; a new module is named below.
"""

from __future__ import annotations

from collections.abc import Mapping

from corpus_scenes import (
    balloons,
    bottle,
    cart,
    chair,
    chat,
    clay,
    desk,
    fox,
    grandpa,
    hands,
    house,
    lake,
    lamps,
    mug,
    paintings,
    papers,
    parrot,
    pins,
    portrait,
    posters,
    probes,
    robot,
    room,
    shadowbox,
    small_worlds,
    stamps,
    train,
    windows,
)
from corpus_scenes.canvas import Scene

_MODULES = (
    *(fox, clay, room, lake, portrait, robot, posters, papers, paintings, chat),
    *(shadowbox, pins, stamps, lamps, cart, mug, house, parrot, chair, windows),
    *(bottle, train, grandpa, hands, balloons, probes, small_worlds, desk),
)

SCENES: Mapping[str, Scene] = {
    name: scene for module in _MODULES for name, scene in module.SCENES.items()
}
