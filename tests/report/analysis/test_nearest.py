"""The nearest of others."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from echo_hf.report.analysis.embedding import nearest


def test_the_nearest_is_scipys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cosine distances of scipy, row by row, whatever fits in memory at once."""
    monkeypatch.setattr("echo_hf.report.analysis.embedding.AT_ONCE", 7)
    rng = np.random.default_rng(5)
    rows, others = (rng.normal(size=(size, 6)) for size in (40, 25))
    rows, others = (one / np.linalg.norm(one, axis=1, keepdims=True) for one in (rows, others))
    distances = cdist(rows, others, "cosine")
    found = nearest(rows, others)
    assert found.distance == pytest.approx(distances.min(axis=1), abs=1e-9)
    assert found.place.tolist() == distances.argmin(axis=1).tolist()


def test_no_row_has_no_neighbour() -> None:
    """Empty arrays, not an error."""
    found = nearest(np.empty((0, 2)), np.array([[1.0, 0.0]]))
    assert (len(found.distance), len(found.place)) == (0, 0)
