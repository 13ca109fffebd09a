"""Losses of texts under a causal language model, against a direct loop over transformers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from echo_hf.config.evaluation import PerplexityOptions
from echo_hf.errors import EngineError
from echo_hf.report.analysis.perplexity import Loss, token_losses
from tests.report.analysis.tiny_causal_model import CONTEXT, REASON, write_tiny_neox

pytestmark = pytest.mark.extras
torch = pytest.importorskip("torch", reason=REASON)
pytest.importorskip("transformers", reason=REASON)
pytest.importorskip("accelerate", reason=REASON)

TEXTS = ["a cat", "a", "", "Turn the photo into a drawing", "将照片变成", "x" * 50, "ab"]


def _load(folder: Path) -> Any:
    from echo_hf.report.analysis.perplexity import load_causal_model

    return load_causal_model(PerplexityOptions(model=str(folder), device="cpu", dtype="float32"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose tokenizer puts nothing before a text, as Pythia's."""
    return write_tiny_neox(tmp_path_factory.mktemp("neox"))


def _direct(model: Any, tokens: Sequence[int], size: int, stride: int) -> tuple[float, int]:
    """One text at a time, one window at a time, without padding or mask."""
    total, count, end = 0.0, 0, 0
    while end < len(tokens):
        new = min(end + (stride if end else size), len(tokens))
        start = max(new - size, 0)
        with torch.no_grad():
            logits = model(torch.tensor([tokens[start:new]])).logits[0].double()
        logs = logits.log_softmax(-1)
        for at in range(max(end, 1), new):
            total -= float(logs[at - start - 1, tokens[at]])
            count += 1
        end = new
    return total, count


@pytest.mark.parametrize(("size", "stride"), [(CONTEXT, 32), (16, 8), (5, 4), (2, 1)])
@pytest.mark.parametrize("batch_tokens", [1, 64, 4096])
def test_equals_a_direct_loop(folder: Path, size: int, stride: int, batch_tokens: int) -> None:
    """To 1e-5, whatever is padded, cut into windows or batched together."""
    causal = _load(folder)
    found = token_losses(causal, TEXTS, size=size, stride=stride, batch_tokens=batch_tokens)
    for text, loss in zip(TEXTS, found, strict=True):
        nll, count = _direct(causal.model, causal.tokenizer(text)["input_ids"], size, stride)
        if count == 0:
            assert loss is None
        else:
            assert loss is not None
            assert loss.tokens == count
            assert loss.nll / count == pytest.approx(nll / count, abs=1e-5)


def test_without_a_beginning_the_first_token_is_not_scored(folder: Path) -> None:
    """A tokenizer that knows of a beginning and puts none, as Pythia's, has none put for it."""
    causal = _load(folder)
    assert causal.begin is None
    one, none = token_losses(causal, ["abc", "a"], size=64, stride=32, batch_tokens=64)
    assert one is not None
    assert (one.tokens, none) == (2, None)


def test_a_beginning_that_the_tokenizer_puts_conditions_the_first_token(tmp_path: Path) -> None:
    """Every token of the text is scored, and the beginning itself is not."""
    causal = _load(write_tiny_neox(tmp_path / "begins", begins=True))
    assert causal.begin == 0
    (found,) = token_losses(causal, ["abc"], size=64, stride=32, batch_tokens=64)
    tokens = causal.tokenizer("abc")["input_ids"]
    assert len(tokens) == 4
    assert found is not None
    assert (found.nll, found.tokens) == (pytest.approx(_direct(causal.model, tokens, 64, 32)[0]), 3)


def test_a_special_token_in_a_prompt_is_text(folder: Path) -> None:
    """Who writes one out has written its letters: one token each, and no end of the text."""
    causal = _load(folder)
    (tokens,) = causal.tokens(["a<|endoftext|>"])
    assert len(tokens) == len("a<|endoftext|>")
    assert causal.tokenizer("a<|endoftext|>")["input_ids"][-1] == 0
    assert 0 not in tokens


def test_a_batch_that_does_not_fit_is_halved(folder: Path) -> None:
    """A device that runs out of memory above 100 tokens gets smaller batches, and equal numbers."""
    causal, seen = _load(folder), []

    def cramped(**given: Any) -> Any:
        seen.append(given["input_ids"].numel())
        if seen[-1] > 100:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return causal.model(**given)

    cramped.device = causal.model.device  # type: ignore[attr-defined]
    small = SimpleNamespace(model=cramped, tokens=causal.tokens, begin=None)
    texts = [f"a prompt about {at} cats" for at in range(30)]
    found = token_losses(small, texts, size=64, stride=32, batch_tokens=700)
    plain = token_losses(causal, texts, size=64, stride=32, batch_tokens=700)
    assert [one.nll for one in found if one] == pytest.approx([one.nll for one in plain if one])
    assert max(seen) > 100
    assert min(seen) <= 100


def test_a_window_that_does_not_fit_alone_is_an_error(folder: Path) -> None:
    """Nothing smaller can be tried: memory really is too small."""
    causal = _load(folder)

    def full(**_: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    full.device = causal.model.device  # type: ignore[attr-defined]
    small = SimpleNamespace(model=full, tokens=causal.tokens, begin=None)
    with pytest.raises(torch.OutOfMemoryError):
        token_losses(small, ["abc", "abcd"], size=64, stride=32, batch_tokens=64)


def test_a_missing_model_is_named() -> None:
    """A name that is no folder and nothing the cache holds is refused in one line."""
    with pytest.raises(EngineError, match="no/such-model"):
        _load(Path("no/such-model"))


def test_a_loss_beyond_floats_is_infinite() -> None:
    """A text that the model holds to be impossible has no finite perplexity."""
    assert Loss(5000.0, 1).perplexity == float("inf")
