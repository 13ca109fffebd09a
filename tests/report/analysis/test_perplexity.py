"""Perplexity of prompt sets."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import bootstrap

from echo_hf.config.evaluation import PerplexityOptions
from echo_hf.reasons import NotAnalyzed
from echo_hf.report.analysis.perplexity import Loss, perplexities, perplexity
from echo_hf.report.analysis.prompts import prompt_set
from tests.report.analysis.tiny_causal_model import REASON, write_tiny_neox


def _losses(seed: int, level: float) -> list[Loss]:
    rng = np.random.default_rng(seed)
    tokens = rng.integers(2, 40, 80)
    means = rng.normal(level, 0.3, 80)
    return [Loss(float(m * t), int(t)) for m, t in zip(means, tokens, strict=True)]


def test_levels_are_means_over_tokens_and_over_prompts() -> None:
    """By numpy, apart from the code under test: exp of the pooled mean, mean of each one's exp."""
    losses = _losses(1, 3.0)
    (found,) = perplexities(["own"], [losses], draws=0)
    nll = np.array([one.nll for one in losses])
    tokens = np.array([one.tokens for one in losses])
    assert found.token_level.value == pytest.approx(np.exp(nll.sum() / tokens.sum()))
    assert found.prompt_level.value == pytest.approx(np.exp(nll / tokens).mean())
    assert found.median == pytest.approx(np.median(np.exp(nll / tokens)))
    assert (found.prompts, found.tokens, found.ratio) == (80, tokens.sum(), None)


def test_the_interval_is_that_of_scipys_bootstrap() -> None:
    """Scipy's percentile bootstrap of the same mean gives the same ends, but for the widening."""
    losses = _losses(2, 3.0)
    (found,) = perplexities(["own"], [losses], draws=4000)
    values = np.array([one.perplexity for one in losses])
    ends = bootstrap((values,), np.mean, method="percentile", n_resamples=4000, rng=1)
    low, high = ends.confidence_interval
    width = high - low
    assert found.prompt_level.low == pytest.approx(low, abs=0.1 * width)
    assert found.prompt_level.high == pytest.approx(high, abs=0.1 * width)


def test_the_ratio_is_the_references_through_the_benchmarks() -> None:
    """A set one nat harder has e times the perplexity, and its interval holds that."""
    own, other = perplexities(["own", "other"], [_losses(3, 3.0), _losses(4, 4.0)], draws=1000)
    assert own.ratio is None
    assert other.ratio is not None
    assert other.ratio.low < math.e < other.ratio.high
    assert other.ratio.value == pytest.approx(other.token_level.value / own.token_level.value)


def test_prompts_without_a_number_are_counted_out() -> None:
    """Single tokens and what the model gives no finite probability each have their reason."""
    losses = [Loss(4.0, 2), None, None, Loss(9000.0, 1), Loss(math.nan, 3)]
    (found,) = perplexities(["own"], [losses], draws=0)
    assert found.left_out == {"no_scored_token": 2, "not_finite": 2}
    assert found.prompts == 1


def test_the_mean_of_immense_perplexities_is_a_number() -> None:
    """Each is one that a float holds, though their sum is none."""
    (found,) = perplexities(["own"], [[Loss(709.0, 1)] * 12], draws=20)
    assert found.prompt_level.value == pytest.approx(math.exp(709))


def test_a_set_without_numbers_says_so() -> None:
    """Neither a value nor a ratio, and the other sets have theirs."""
    own, other = perplexities(["own", "other"], [[None], [Loss(4.0, 2)]], draws=10)
    assert own.token_level.reason is NotAnalyzed.NO_PROMPTS
    assert own.token_level.value is None
    assert other.token_level.value == pytest.approx(math.e**2)
    assert other.ratio is not None
    assert other.ratio.value is None


def test_without_a_model_nothing_is_loaded() -> None:
    """A config that names none has no figures, and the reason."""
    assert perplexity([prompt_set("own", ["a cat"])], None).reason is NotAnalyzed.NOT_CONFIGURED


@pytest.mark.extras
def test_a_model_from_a_folder(tmp_path: Path) -> None:
    """Real files are loaded through accelerate; the definition names what was done."""
    for package in ("torch", "transformers", "accelerate"):
        pytest.importorskip(package, reason=REASON)
    options = PerplexityOptions(model=str(write_tiny_neox(tmp_path / "tiny")), window=16)
    sets = [prompt_set(name, ["a cat", "a" * 40, "a"]) for name in ("own", "other")]
    part = perplexity(sets, options, draws=20)
    assert part.reason is None
    assert part.found is not None
    assert part.found[1].ratio is not None
    assert part.found[1].ratio.value == pytest.approx(1)
    assert part.found[0].left_out == {"no_scored_token": 1}
    assert part.definition["first_token"] == "not scored: nothing stands before it"  # noqa: S105
    assert (part.definition["window"], part.definition["stride"]) == (16, 8)
    assert part.definition["model"] == "tiny"


@pytest.mark.extras
def test_a_model_that_is_not_there_says_so(tmp_path: Path) -> None:
    """The part has a reason; nothing is raised."""
    for package in ("torch", "transformers", "accelerate"):
        pytest.importorskip(package, reason=REASON)
    part = perplexity([prompt_set("own", ["a cat"])], PerplexityOptions(model=str(tmp_path)))
    assert part.reason is NotAnalyzed.MODEL_UNAVAILABLE
    assert part.detail
