"""The map of prompts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from echo_hf.config.evaluation import EmbeddingOptions
from echo_hf.reasons import NotAnalyzed
from echo_hf.report.analysis.embedding import MOST_POINTS, embedding_map, mapped
from echo_hf.report.analysis.prompts import prompt_set

REASON = "needs sentence-transformers: see `make test-extras`"


def _unit(*rows: tuple[float, ...]) -> np.ndarray:
    vectors = np.array(rows, dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_the_most_novel_prompt_is_the_farthest_from_every_reference() -> None:
    """A prompt at a right angle to all references comes before one beside them."""
    own = prompt_set("benchmark", ["beside", "far"], ids=["s1", "s2"])
    sets = [own, prompt_set("a", ["x"]), prompt_set("b", ["y"])]
    vectors = [_unit((1, 0.1, 0), (0, 0, 1)), _unit((1, 0, 0)), _unit((0, 1, 0))]
    found = mapped(sets, vectors)
    first, second = found.most_novel
    assert (first.id, first.prompt, first.distance) == ("s2", "far", pytest.approx(1, abs=1e-6))
    assert (second.id, second.nearest_set, second.nearest_prompt) == ("s1", "a", "x")
    assert [point.nearest is None for point in found.points] == [False, False, True, True]
    assert [point.prompt_set for point in found.points] == ["benchmark", "benchmark", "a", "b"]


def test_a_large_set_is_drawn_from_and_says_so() -> None:
    """Points are a plot's; distances are those of all prompts."""
    size = MOST_POINTS + 5
    own = prompt_set("benchmark", [f"prompt {at}" for at in range(size)])
    vectors = np.random.default_rng(1).normal(size=(size, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = mapped([own, prompt_set("a", ["x"])], [vectors, _unit((1, 0, 0, 0))])
    assert len(found.points) == MOST_POINTS + 1
    assert found.left_out == {"not_shown": 5}
    assert found.nearest is not None
    assert found.nearest.median == pytest.approx(np.median(1 - vectors[:, 0]), abs=1e-6)


def test_without_references_there_is_a_map_without_distances() -> None:
    """Nothing is near nothing."""
    found = mapped([prompt_set("benchmark", ["x", "y"])], [_unit((1, 0), (0, 1))])
    assert (found.nearest, found.most_novel, found.points[0].nearest) == (None, (), None)


def test_without_a_model_nothing_is_loaded() -> None:
    """A config that names none has no map, and the reason."""
    part = embedding_map([prompt_set("benchmark", ["x"])], None)
    assert part.reason is NotAnalyzed.NOT_CONFIGURED


@pytest.mark.extras
def test_a_plain_encoder_is_averaged_over_its_tokens(tmp_path: Path) -> None:
    """A checkpoint that states no pooling gets the mean over tokens, padding left out."""
    pytest.importorskip("sentence_transformers", reason=REASON)
    model, tokenizer = _write_tiny_bert(tmp_path / "bert")
    prompts = ["cat", "a cat and a dog and a cat", "dog " * 40]
    sets = [prompt_set("benchmark", prompts), prompt_set("a", ["a cat"])]
    options = EmbeddingOptions(model=str(tmp_path / "bert"), device="cpu", longest=16)
    part = embedding_map(sets, options)
    assert part.found is not None, part.detail
    assert part.definition["pooling"] == "mean"
    assert part.definition["cut"] == {"benchmark": 1, "a": 0}
    direct = [_mean(model, tokenizer, prompt) for prompt in (*prompts, "a cat")]
    expected = [1 - direct[at] @ direct[3] for at in range(3)]
    found = [point.nearest for point in part.found.points[:3]]
    assert found == pytest.approx(expected, abs=1e-5)


def _mean(model: object, tokenizer: object, prompt: str) -> np.ndarray:
    import torch

    given = tokenizer(prompt, return_tensors="pt", truncation=True, max_length=16)  # type: ignore[operator]
    with torch.no_grad():
        mean = model(**given).last_hidden_state[0].mean(dim=0)  # type: ignore[operator]
    return (mean / mean.norm()).numpy()


def _write_tiny_bert(folder: Path) -> tuple[object, object]:
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    torch.manual_seed(3)
    folder.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "and", "cat", "dog"]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", "utf-8")
    tokenizer = BertTokenizerFast(vocab_file=str(folder / "vocab.txt"))
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        initializer_range=0.5,
    )
    model = BertModel(config).eval()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


@pytest.mark.extras
def test_a_model_that_is_not_there_says_so(tmp_path: Path) -> None:
    """The part has a reason; nothing is raised."""
    pytest.importorskip("sentence_transformers", reason=REASON)
    options = EmbeddingOptions(model=str(tmp_path), device="cpu")
    part = embedding_map([prompt_set("benchmark", ["x"])], options)
    assert part.reason is NotAnalyzed.MODEL_UNAVAILABLE
    assert part.detail
