"""Every picture of the bundled posts, as a list of brushes under its file name.

To add a picture, put a `Scene` into the `SCENES` of a module here; a new module is named below.
"""

from __future__ import annotations

from collections.abc import Mapping

from corpus_scenes import (
    chat,
    clay,
    fox,
    lake,
    paintings,
    papers,
    portrait,
    posters,
    robot,
    room,
)
from corpus_scenes.canvas import Scene

_MODULES = (fox, clay, room, lake, portrait, robot, posters, papers, paintings, chat)

SCENES: Mapping[str, Scene] = {
    name: scene for module in _MODULES for name, scene in module.SCENES.items()
}
