"""Stand-ins for image systems: each draws a scene with a fault of its own, or with none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from corpus_scenes.canvas import Canvas, Scene
from corpus_scenes.misspelling import misspelt_scene
from corpus_scenes.moving import moved_scene

# White becomes #ffffcc: plain to see, and less than the cast of the posts' own yellow fox.
BLUE_KEPT = 0.8


@dataclass(frozen=True)
class LessBlue:
    """A yellow cast: of the blue in every pixel, only this share stays."""

    share: float

    def paint(self, canvas: Canvas) -> None:
        """Takes blue out of the whole image."""
        same, less = list(range(256)), [round(level * self.share) for level in range(256)]
        canvas.image.paste(canvas.image.point([*same, *same, *less]))


def exact_copy(name: str, scene: Scene) -> Scene:  # noqa: ARG001 - as the other systems
    """The scene itself."""
    return scene


def yellow_tint(name: str, scene: Scene) -> Scene:  # noqa: ARG001 - as the other systems
    """The scene with a yellow cast."""
    return replace(scene, marks=[*scene.marks, LessBlue(BLUE_KEPT)])


def misspelt_text(name: str, scene: Scene) -> Scene:  # noqa: ARG001 - as the other systems
    """The scene with a mistake in every line of text."""
    return misspelt_scene(scene)


# By name: what a system makes of the scene with that file name.
SYSTEMS: Mapping[str, Callable[[str, Scene], Scene]] = {
    "exact_copy": exact_copy,
    "yellow_tint": yellow_tint,
    "moved_layout": moved_scene,
    "misspelt_text": misspelt_text,
}
