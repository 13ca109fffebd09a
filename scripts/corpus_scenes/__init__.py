"""Every picture of the bundled posts, as a list of brushes under its file name.

To add a picture, put a `Scene` into the `SCENES` of the module it fits, or of a new one named here.
"""

from __future__ import annotations

from collections.abc import Mapping

from corpus_scenes import animals, people, places, prints
from corpus_scenes.brushes import Scene

SCENES: Mapping[str, Scene] = {
    name: scene
    for module in (animals, people, places, prints)
    for name, scene in module.SCENES.items()
}
