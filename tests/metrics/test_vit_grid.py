"""How images are divided into patches."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from echo_hf.errors import ScoreError
from echo_hf.metrics.vit_loading import grid_of

DINO: dict[str, Any] = {
    "model_type": "vit",
    "num_channels": 3,
    "num_hidden_layers": 12,
    "patch_size": 16,
    "image_size": 224,
}


@pytest.mark.parametrize(("size", "tokens"), [(16, 2), (224, 197), (448, 785)])
def test_there_is_a_token_for_each_patch_and_the_class(size: int, tokens: int) -> None:
    """Positions are learned for one size alone, and the definition says so."""
    grid = grid_of(SimpleNamespace(**DINO), "dino", 11, size)
    assert grid.definition["tokens"] == tokens
    assert grid.interpolated == (size != 224)
    assert ("224" in grid.definition["positions"]) == grid.interpolated


@pytest.mark.parametrize(
    ("settings", "size", "says"),
    [
        ({}, 225, "size is 225: expected a multiple of 16, the side of a patch of model 'dino'"),
        ({}, 8, "size is 8: expected a multiple of 16"),
        ({"num_hidden_layers": 11}, 224, "layer is 11: expected a number from 0 to 10, the last"),
        ({"model_type": "clip"}, 224, "model 'dino' is of type 'clip': expected a 'vit' of 3"),
        ({"image_size": [224, 112]}, 224, "takes [224, 112] pixels: expected a model of squares"),
    ],
)
def test_what_cannot_be_divided_is_told(settings: dict[str, Any], size: int, says: str) -> None:
    """In one line."""
    with pytest.raises(ScoreError) as caught:
        grid_of(SimpleNamespace(**{**DINO, **settings}), "dino", 11, size)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
