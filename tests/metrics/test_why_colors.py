"""The table of color shifts on the page "Why" is what our functions make of the published means."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from echo_hf.metrics.color_shift import tints
from tests.metrics.published_colors import INPUTS, PUBLISHED

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "why.md"
LINE = re.compile(
    r"^\| (?P<system>[^|]+) \| (?P<shift>[\d.]+) \| (?P<rest>[−+\d. |]+) \|$", re.MULTILINE
)


def test_every_number_of_the_table_is_current() -> None:
    """All eight systems, to the shown decimals: shift, lighter, yellower, difference."""
    lines = {line["system"]: line for line in LINE.finditer(PAGE.read_text("utf-8"))}
    for system, (mean, printed) in PUBLISHED.items():
        shown = [float(one.replace("−", "-")) for one in lines[system]["rest"].split("|")]
        lighter, _, yellower, difference = tints(INPUTS, mean)
        assert float(lines[system]["shift"]) == printed
        assert round(float(np.linalg.norm(np.subtract(INPUTS, mean))), 2) == printed
        assert shown == pytest.approx([lighter, yellower, difference], abs=0.05001)
