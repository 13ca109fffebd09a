"""The decoder of Anole's VQGAN."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from echo_hf.errors import GenerationError
from echo_hf.systems.anole import LoadedAnole
from echo_hf.systems.anole_tokens import in_order, make_decoder, weights_name
from tests.systems.tiny_anole import CODES, TOKENS, in_original_order

pytestmark = pytest.mark.extras
SQUARE = [number % CODES for number in range(TOKENS)]


def _weights(tiny: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return dict(load_file(tiny / "decoder" / "model.safetensors"))


def test_codes_become_a_square(loaded: LoadedAnole) -> None:
    """In colors, and other codes give another one."""
    image, other = (loaded.decoder.image(one) for one in (SQUARE, SQUARE[::-1]))
    assert (image.mode, image.size) == ("RGB", (32, 32))
    assert image.tobytes() != other.tobytes()


def test_codes_are_read_row_by_row(loaded: LoadedAnole) -> None:
    """The first eight change the upper rows most, and the left columns no more than the right."""
    changed = [*((code + 5) % CODES for code in SQUARE[:8]), *SQUARE[8:]]
    before, after = (np.asarray(loaded.decoder.image(one), dtype=int) for one in (SQUARE, changed))
    far = np.abs(before - after).sum(axis=2)
    assert far[:8].sum() > 2 * far[-8:].sum()
    assert far[:, :8].sum() < 1.5 * far[:, -8:].sum()


def test_levels_are_those_of_the_network(loaded: LoadedAnole) -> None:
    """From -1 to 1 they become 0 to 255, rounded."""
    import torch

    parts = loaded.decoder.network
    with torch.inference_mode():
        codebook = parts["quantize"]["embedding"].weight[torch.tensor(SQUARE)]
        square = codebook.T.reshape(1, -1, 8, 8)
        values = parts["decoder"](parts["post_quant_conv"](square))[0].numpy()
    expected = np.round((np.clip(values, -1, 1) + 1) / 2 * 255).transpose(1, 2, 0)
    found = np.asarray(loaded.decoder.image(SQUARE), dtype=float)
    np.testing.assert_allclose(found, expected, atol=1)


@pytest.mark.parametrize("prefix", ["", "model.vqmodel.", "vqmodel."])
@pytest.mark.parametrize("original", [False, True])
def test_both_orders_of_levels_are_read(
    tiny: Path, loaded: LoadedAnole, prefix: str, original: bool
) -> None:
    """With the names of the whole model too; the encoder's weights are left alone."""
    weights = _weights(tiny)
    stored = in_original_order(weights) if original else weights
    named = {f"{prefix}{name}": value for name, value in stored.items()}
    assert any(name.startswith(f"{prefix}encoder.") for name in named)
    decoder = make_decoder(loaded.model.config.vq_config, named, "system 'tiny'")
    assert decoder.image(SQUARE).tobytes() == loaded.decoder.image(SQUARE).tobytes()


def test_there_is_no_attention_in_the_lowest_level(tiny: Path, loaded: LoadedAnole) -> None:
    """That of Janus is told from Chameleon's by it, and refused."""
    assert not any(name.startswith("decoder.up.0.attn") for name in in_order(_weights(tiny)))
    weights = _weights(tiny)
    weights["decoder.up.0.attn.0.q.weight"] = weights["post_quant_conv.weight"]
    with pytest.raises(GenerationError) as caught:
        make_decoder(loaded.model.config.vq_config, weights, "system 'tiny'")
    said = str(caught.value)
    assert said.startswith("system 'tiny': the decoder does not fit the model (Unexpected key(s)")
    assert "\n" not in said


def test_weights_without_a_decoder_are_told(tiny: Path, loaded: LoadedAnole) -> None:
    """What Chameleon has published holds an encoder alone."""
    weights = {n: value for n, value in _weights(tiny).items() if not n.startswith("decoder.")}
    with pytest.raises(GenerationError, match=r"does not fit the model \(Missing key"):
        make_decoder(loaded.model.config.vq_config, weights, "system 'tiny'")


def test_the_original_file_is_read_where_there_is_no_other(tmp_path: Path) -> None:
    """On the Hub it is always safetensors."""
    assert weights_name(str(tmp_path)) == weights_name("acme/vqgan") == "model.safetensors"
    (tmp_path / "vqgan.ckpt").touch()
    assert weights_name(str(tmp_path)) == "vqgan.ckpt"
    (tmp_path / "model.safetensors").touch()
    assert weights_name(str(tmp_path)) == "model.safetensors"
