"""CIELAB and CIEDE2000, against published tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from echo_hf.metrics.color_shift import ciede2000, lab_of

# Sharma, Wu, Dalal 2005 (Color Research and Application 30), table 1: two colors in CIELAB, and
# their difference. Each line tests another branch of the formula.
SHARMA = np.loadtxt(Path(__file__).parents[1] / "data" / "ciede2000.csv", delimiter=",")


@pytest.mark.parametrize("row", SHARMA, ids=range(1, 35))
def test_differences_are_those_of_the_published_table(row: np.ndarray) -> None:
    assert ciede2000(row[:3], row[3:6]).round(4) == row[6]


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ((255, 255, 255), (100, 0, 0)),
        ((0, 0, 0), (0, 0, 0)),
        ((255, 0, 0), (53.24, 80.09, 67.20)),
        ((0, 255, 0), (87.74, -86.18, 83.18)),
        ((0, 0, 255), (32.30, 79.19, -107.86)),
    ],
)
def test_the_corners_of_srgb_are_where_tables_have_them(levels: Any, expected: Any) -> None:
    assert lab_of(levels) == pytest.approx(expected, abs=0.03)
