"""Both layouts that transformers had for a ViT."""

from __future__ import annotations

from types import SimpleNamespace as Part

import pytest

from echo_hf.metrics.self_similarity import blocks_of, key_projection
from tests.metrics.vit_for_tests import REASON

OLD = Part(encoder=Part(layer=[Part(attention=Part(attention=Part(key=at))) for at in range(3)]))
NEW = Part(layers=[Part(attention=Part(k_proj=at)) for at in range(3)])


@pytest.mark.parametrize("model", [OLD, NEW], ids=["to 5.8", "from 5.9"])
def test_blocks_and_keys_are_found_in_either(model: object) -> None:
    """In order, each block with its own."""
    assert [key_projection(block) for block in blocks_of(model)] == [0, 1, 2]


@pytest.mark.extras
def test_the_installed_version_has_one_of_them() -> None:
    """A change of names would be seen here first."""
    transformers = pytest.importorskip("transformers", reason=REASON)
    shape = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 16}
    config = transformers.ViTConfig(num_hidden_layers=2, image_size=32, patch_size=16, **shape)
    blocks = blocks_of(transformers.ViTModel(config))
    assert len(blocks) == 2
    assert key_projection(blocks[1]).weight.shape == (8, 8)
