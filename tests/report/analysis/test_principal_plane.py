"""The principal plane."""

from __future__ import annotations

import numpy as np
import pytest

from echo_hf.report.analysis.embedding import principal_plane


def test_the_plane_is_that_of_the_singular_value_decomposition() -> None:
    """Up to the sign of each axis, and with the shares of the squared singular values."""
    vectors = np.random.default_rng(3).normal(size=(50, 8)) * np.arange(8, 0, -1)
    left, values, _ = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    found = principal_plane(vectors)
    expected = left[:, :2] * values[:2]
    assert np.abs(found.points) == pytest.approx(np.abs(expected), abs=1e-9)
    assert found.explained == pytest.approx(tuple(values[:2] ** 2 / (values**2).sum()))


def test_the_plane_does_not_depend_on_which_way_axes_point() -> None:
    """Points that are turned round their mean twice lie where they lay."""
    vectors = np.random.default_rng(4).normal(size=(30, 5))
    assert principal_plane(vectors).points == pytest.approx(
        principal_plane(vectors[::-1]).points[::-1], abs=1e-9
    )


@pytest.mark.parametrize("vectors", [np.zeros((3, 4)), np.ones((1, 1)), np.zeros((0, 4))])
def test_points_without_spread_lie_in_one_place(vectors: np.ndarray) -> None:
    """No division by the variance that there is not."""
    found = principal_plane(vectors)
    assert found.points.tolist() == [[0.0, 0.0]] * len(vectors)
    assert found.explained == (0.0, 0.0)
