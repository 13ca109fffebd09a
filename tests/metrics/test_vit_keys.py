"""The keys of a ViT, against a plain reading and transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from echo_hf.metrics.structure_distance import (
    MEAN,
    SPREAD,
    LoadedVit,
    VitOptions,
    load_vit,
    self_similarities,
)
from tests.metrics.images_for_metrics import noise
from tests.metrics.vit_for_tests import REASON, TINY, keys_of, weights_of, write_vit

torch = pytest.importorskip("torch", reason=REASON)
pytest.importorskip("transformers", reason=REASON)
pytestmark = pytest.mark.extras

WEIGHTS = weights_of(TINY)
SQUARES = [noise(seed, size=(TINY.side, TINY.side)) for seed in range(3)]
IMAGES = np.stack([np.asarray(one) for one in SQUARES])


def _loaded(folder: Path, size: int = TINY.side) -> LoadedVit:
    model = write_vit(folder / "tiny", TINY, WEIGHTS)
    return load_vit(VitOptions(str(model), None, 2, size, "cpu"))


@pytest.fixture
def vit(tmp_path: Path) -> LoadedVit:
    return _loaded(tmp_path)


def _cosines(keys: Any) -> Any:
    lengths = np.sqrt((keys**2).sum(axis=-1, keepdims=True))
    return keys @ np.swapaxes(keys, -1, -2) / (lengths * np.swapaxes(lengths, -1, -2))


@pytest.mark.parametrize("layer", [0, 2])
def test_they_are_the_cosines_of_the_keys_of_a_plain_vit(vit: LoadedVit, layer: int) -> None:
    found = self_similarities(vit, layer, IMAGES)
    expected = [_cosines(keys_of(WEIGHTS, TINY, layer, one)) for one in SQUARES]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert found.dtype == np.float32
    assert (found == found.swapaxes(1, 2)).all()
    np.testing.assert_allclose(found.diagonal(axis1=1, axis2=2), 1, atol=1e-6)


@pytest.mark.parametrize("size", [8, 24, 64])
@pytest.mark.parametrize("layer", [0, 2])
def test_another_size_is_what_transformers_makes_of_it(
    tmp_path: Path, size: int, layer: int
) -> None:
    vit = _loaded(tmp_path, size)
    image = np.asarray(SQUARES[0].resize((size, size), Image.Resampling.BILINEAR))
    levels = (image / 255 - np.array(MEAN)) / np.array(SPREAD)
    pixels = torch.tensor(levels.transpose(2, 0, 1)[None], dtype=torch.float32)
    with torch.inference_mode():
        states = vit.model(
            pixels, interpolate_pos_encoding=True, output_hidden_states=True
        ).hidden_states
        blocks = vit.model.layers if hasattr(vit.model, "layers") else vit.model.encoder.layer
        attention = blocks[layer].attention
        project = getattr(attention, "k_proj", None) or attention.attention.key
        keys = project(blocks[layer].layernorm_before(states[layer])).double().numpy()
    found = self_similarities(vit, layer, image[None])
    assert found.shape == (1, (size // 8) ** 2 + 1, (size // 8) ** 2 + 1)
    np.testing.assert_allclose(found, _cosines(keys), atol=1e-5)


def test_cudnn_is_off_while_the_vit_runs(vit: LoadedVit) -> None:
    before, enabled = torch.backends.cudnn.enabled, []
    torch.backends.cudnn.enabled = True
    try:
        vit.model.embeddings.register_forward_pre_hook(
            lambda *_: enabled.append(torch.backends.cudnn.enabled)
        )
        self_similarities(vit, 0, IMAGES)
        assert torch.backends.cudnn.enabled
    finally:
        torch.backends.cudnn.enabled = before
    assert enabled == [False]
