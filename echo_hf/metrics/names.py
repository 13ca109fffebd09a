"""The metrics that a run computes beside win rates, in the order in which they are asked about."""

from __future__ import annotations

from typing import NamedTuple

HIGHER, LOWER = "↑", "↓"  # is better
TEXT_RENDERING = "text_rendering"


class Named(NamedTuple):
    """A metric as pages show it."""

    name: str
    title: str
    better: str


LISTED = (
    Named("face_identity", "Face identity", HIGHER),
    Named("color_shift", "Color shift", LOWER),
    Named("structure_distance", "Structure distance", LOWER),
    Named(TEXT_RENDERING, "Text rendering", HIGHER),
)
METRICS = tuple(one.name for one in LISTED)
TITLES = {one.name: one.title for one in LISTED}
BETTER = {one.name: one.better for one in LISTED}
