"""The two sets of colors: GitHub shows the one that goes with its own page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Theme:
    page: str
    card: str
    edge: str
    ink: str
    quiet: str
    parts: Mapping[str, str]
    wash: float


LIGHT = Theme(
    page="#f6f8fa",
    card="#ffffff",
    edge="#d1d9e0",
    ink="#1f2328",
    quiet="#59636e",
    parts={
        "prompt": "#8250df",
        "input_images": "#0969da",
        "output_images": "#1a7f37",
        "community_feedback": "#bc4c00",
    },
    wash=0.09,
)
DARK = Theme(
    page="#0d1117",
    card="#161b22",
    edge="#343b44",
    ink="#e6edf3",
    quiet="#9198a1",
    parts={
        "prompt": "#bc8cff",
        "input_images": "#58a6ff",
        "output_images": "#3fb950",
        "community_feedback": "#f0883e",
    },
    wash=0.14,
)
