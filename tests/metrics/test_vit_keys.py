"""Self-similarities of a ViT, whatever the program around it has set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
from PIL import Image

from echo_hf.metrics.self_similarity import (
    MEAN,
    SPREAD,
    blocks_of,
    key_projection,
    self_similarities,
)
from echo_hf.metrics.vit_loading import LoadedVit, VitOptions, load_vit
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
    """A ViT of 17 tokens."""
    return _loaded(tmp_path)


def _cosines(keys: Any) -> Any:
    lengths = np.sqrt((keys**2).sum(axis=-1, keepdims=True))
    return keys @ np.swapaxes(keys, -1, -2) / (lengths * np.swapaxes(lengths, -1, -2))


@pytest.mark.parametrize("layer", [0, 2])
def test_they_are_the_cosines_of_the_keys_of_a_plain_vit(vit: LoadedVit, layer: int) -> None:
    """Image by image, in float32, symmetric, 1 with itself."""
    found = self_similarities(vit, layer, IMAGES)
    expected = [_cosines(keys_of(WEIGHTS, TINY, layer, one)) for one in SQUARES]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert found.dtype == np.float32
    assert (found == found.swapaxes(1, 2)).all()
    np.testing.assert_allclose(found.diagonal(axis1=1, axis2=2), 1, atol=1e-6)


@pytest.fixture(params=["float64", "float16", "bfloat16"])
def default_type(request: pytest.FixtureRequest) -> Iterator[None]:
    """The type that torch gives numbers of Python, as a program may set it."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, request.param))
    yield
    torch.set_default_dtype(before)


@pytest.fixture
def plain(vit: LoadedVit) -> Any:
    """What is found where the program has set nothing."""
    return self_similarities(vit, 2, IMAGES)


def test_the_default_type_of_torch_changes_no_number(
    plain: Any, vit: LoadedVit, default_type: None, tmp_path: Path
) -> None:
    """Neither of a ViT that was there before, nor of one that is loaded under it."""
    for one in (vit, _loaded(tmp_path / "anew")):
        found = self_similarities(one, 2, IMAGES)
        assert found.dtype == np.float32
        assert (found == plain).all()


def test_two_threads_leave_cudnn_as_it_was(vit: LoadedVit) -> None:
    """Also where the first that began ends first: else it would stay switched off."""
    began, entered, ended = Event(), Event(), Event()

    def wait(*_: Any) -> None:
        assert not torch.backends.cudnn.enabled
        if not began.is_set():
            began.set()
            assert entered.wait(30)
        else:
            entered.set()
            assert ended.wait(30)

    hook = vit.model.embeddings.register_forward_pre_hook(wait)
    first = Thread(target=lambda: (self_similarities(vit, 2, IMAGES), ended.set()))
    second = Thread(target=lambda: self_similarities(vit, 2, IMAGES))
    before = torch.backends.cudnn.enabled
    assert before
    try:
        first.start()
        assert began.wait(30)
        second.start()
        first.join()
        second.join()
        assert ended.is_set()
        assert torch.backends.cudnn.enabled
    finally:
        hook.remove()
        torch.backends.cudnn.enabled = before


@pytest.mark.parametrize("size", [8, 24, 64])
@pytest.mark.parametrize("layer", [0, 2])
def test_another_size_is_what_transformers_makes_of_it(
    tmp_path: Path, size: int, layer: int
) -> None:
    """Its own hidden states with interpolated positions, and the cosines of their keys."""
    vit = _loaded(tmp_path, size)
    image = np.asarray(SQUARES[0].resize((size, size), Image.Resampling.BILINEAR))
    levels = (image / 255 - np.array(MEAN)) / np.array(SPREAD)
    pixels = torch.tensor(levels.transpose(2, 0, 1)[None], dtype=torch.float32)
    with torch.inference_mode():
        states = vit.model(
            pixels, interpolate_pos_encoding=True, output_hidden_states=True
        ).hidden_states
        block = blocks_of(vit.model)[layer]
        keys = key_projection(block)(block.layernorm_before(states[layer])).double().numpy()
    found = self_similarities(vit, layer, image[None])
    assert found.shape == (1, (size // 8) ** 2 + 1, (size // 8) ** 2 + 1)
    np.testing.assert_allclose(found, _cosines(keys), atol=1e-5)
