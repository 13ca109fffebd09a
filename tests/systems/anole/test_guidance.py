"""How three branches become one distribution, and a token is drawn from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

from echo_hf.systems.anole_tokens import draw_token, guided
from tests.systems.tiny_anole import REASON

Numbers = np.ndarray[Any, np.dtype[np.float64]]
LOGITS = [3.0, 1.0, 2.0, -4.0, 0.0]


@pytest.fixture
def three() -> Numbers:
    """Logits of three branches."""
    return np.random.default_rng(0).normal(size=(3, 50))


def _mixed(three: Numbers, text: float, image: float) -> Numbers:
    found: Numbers = guided(*three, text_scale=text, image_scale=image)
    return found


@pytest.mark.parametrize(("text", "image"), [(3.0, 1.2), (1.0, 1.0), (0.0, 2.5), (7.5, 0.0)])
def test_guidance_weighs_the_branches(three: Numbers, text: float, image: float) -> None:
    """In log-probabilities it is a product of powers that sum to 1, up to a constant."""
    weights = np.array([text, image - text, 1 - image])
    assert weights.sum() == pytest.approx(1)
    found = softmax(_mixed(three, text, image))
    powers = np.prod(softmax(three, axis=1) ** weights[:, None], axis=0)
    np.testing.assert_allclose(found, powers / powers.sum(), rtol=1e-9)


def test_a_scale_of_one_is_no_guidance(three: Numbers) -> None:
    """What the model says after everything stands."""
    np.testing.assert_allclose(_mixed(three, 1.0, 1.0), three[0], atol=1e-12)


def test_without_inputs_only_the_prompt_guides(three: Numbers) -> None:
    """The second branch is the third: u + 3 (f - u), whatever the other scale."""
    full, nothing = three[0], three[2]
    alike = np.stack([full, nothing, nothing])
    expected = nothing + 3 * (full - nothing)
    np.testing.assert_allclose(_mixed(alike, 3.0, 1.2), expected, atol=1e-12)
    np.testing.assert_allclose(_mixed(alike, 3.0, 9.0), expected, atol=1e-12)


def _kept(logits: list[float], temperature: float, top_p: float) -> Numbers:
    """The distribution, by its definition: the fewest tokens that hold the share."""
    chances = softmax(np.array(logits) / temperature)
    order = np.argsort(-chances, kind="stable")
    count = int(np.searchsorted(np.cumsum(chances[order]), top_p) + 1)
    kept = np.zeros_like(chances)
    kept[order[:count]] = chances[order[:count]]
    return kept / kept.sum()


@pytest.mark.extras
@pytest.mark.parametrize(("temperature", "top_p"), [(0.7, 0.9), (2.0, 0.6), (1.0, 1.0), (0.5, 0.1)])
def test_draws_are_as_frequent_as_their_chances(temperature: float, top_p: float) -> None:
    """Within five standard errors of 4000 draws; a token left out never comes."""
    torch = pytest.importorskip("torch", reason=REASON)
    generator = torch.Generator().manual_seed(0)
    logits = torch.tensor(LOGITS)
    drawn = [draw_token(logits, temperature, top_p, generator) for _ in range(4000)]
    expected = _kept(LOGITS, temperature, top_p)
    found = np.bincount(drawn, minlength=len(LOGITS)) / 4000
    error = np.sqrt(expected * (1 - expected) / 4000)
    assert (np.abs(found - expected) <= 5 * error + 1e-12).all()
