"""A ViT over images: each looked at once, in batches, with what a cache holds left out."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from echo_hf.metrics import SimilarityCache
from echo_hf.metrics.self_similarity import SelfSimilarities, Squashed, resized
from echo_hf.metrics.vit_loading import VitOptions
from tests.metrics.images_for_metrics import noise
from tests.metrics.vit_for_tests import REASON, TINY, keys_of, weights_of, write_vit

pytest.importorskip("torch", reason=REASON)
pytest.importorskip("transformers", reason=REASON)
pytestmark = pytest.mark.extras

WEIGHTS = weights_of(TINY)
IMAGES = [noise(seed, size=(TINY.side, TINY.side)) for seed in range(5)]
SQUARES = [resized(one, TINY.side) for one in IMAGES]


@pytest.fixture
def options(tmp_path: Path) -> VitOptions:
    """Which keys of a ViT of 17 tokens."""
    model = write_vit(tmp_path / "tiny", TINY, WEIGHTS)
    return VitOptions(str(model), None, 2, TINY.side, "cpu")


def _made(
    options: VitOptions, batch_size: int = 2, cache: SimilarityCache | None = None
) -> SelfSimilarities:
    return SelfSimilarities(options, batch_size=batch_size, cache=cache)


@pytest.mark.parametrize("batch_size", [1, 2, 9])
def test_each_image_gets_its_own(options: VitOptions, batch_size: int) -> None:
    """By its digest, as a plain ViT has it; equal ones are looked at once."""
    similarities = _made(options, batch_size)
    found = similarities.of([*SQUARES[:3], SQUARES[0]], [*SQUARES[2:], SQUARES[4]])
    assert set(found) == {one.digest for one in SQUARES}
    assert similarities.forwards == 5
    for image, square in zip(IMAGES, SQUARES, strict=True):
        keys = keys_of(WEIGHTS, TINY, 2, image)
        lengths = np.sqrt((keys**2).sum(axis=1))
        expected = keys @ keys.T / np.outer(lengths, lengths)
        np.testing.assert_allclose(found[square.digest], expected, atol=1e-5)


def test_inputs_are_kept_and_outputs_are_not(options: VitOptions) -> None:
    """Outputs are looked up all the same: one may be an input of another sample."""
    cache = SimilarityCache()
    first, second = _made(options, cache=cache), _made(options, cache=cache)
    once = first.of(SQUARES[:2], SQUARES[2:4])
    again = second.of(SQUARES[2:3], SQUARES[:2])
    assert (first.forwards, second.forwards, len(cache)) == (4, 1, 3)
    for one in SQUARES[:2]:
        assert (once[one.digest] == again[one.digest]).all()


def test_without_a_cache_nothing_is_kept(options: VitOptions) -> None:
    """The next batch is looked at as if there had been none before."""
    similarities = _made(options)
    for looked_at in (2, 4):
        similarities.of(SQUARES[:1], SQUARES[1:2])
        assert similarities.forwards == looked_at


def test_no_images_are_no_work(options: VitOptions) -> None:
    """Nothing is found, and nothing is run."""
    nothing: list[Squashed] = []
    similarities = _made(options)
    assert similarities.of(nothing, nothing) == {}
    assert similarities.forwards == 0


def test_a_copy_states_what_it_was_made_with(options: VitOptions, tmp_path: Path) -> None:
    """Without weights, also where the model is not."""
    similarities = _made(options, cache=SimilarityCache())
    similarities.of(SQUARES[:2], [])
    definition = similarities.definition
    packed = pickle.dumps(similarities)
    (tmp_path / "tiny").rename(tmp_path / "elsewhere")
    copy = pickle.loads(packed)  # noqa: S301 - what was just written
    assert len(packed) < 5000
    assert (copy.definition, copy.forwards) == (definition, 2)
