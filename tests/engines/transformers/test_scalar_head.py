"""Reward models with a sequence-classification head: whose number it is, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from echo_hf.engines.base import Request, Text, make_engine
from echo_hf.errors import EngineError
from tests.engines.test_conformance import ask, image
from tests.tiny_models import REASON, write_tiny_gemma_scorer

pytestmark = [
    pytest.mark.extras,
    pytest.mark.models,
    pytest.mark.filterwarnings("ignore"),  # of the libraries that run a model
]


@pytest.fixture(scope="module")
def scorers(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    pytest.importorskip("transformers", reason=REASON)
    pytest.importorskip("accelerate", reason=REASON)
    folder = tmp_path_factory.mktemp("scorers")
    return {count: write_tiny_gemma_scorer(folder / f"of_{count}", count) for count in (1, 2)}


def answer(folder: Path, requests: list[Request], **options: Any) -> list[float]:
    with make_engine("scalar_head", model=str(folder), dtype="float32", **options) as engine:
        answers = dict(engine.stream(requests))
    assert [answers[number].error for number in range(len(requests))] == [None] * len(requests)
    return [float(answers[number].text or "") for number in range(len(requests))]


def compute_logits(folder: Path, request: Request) -> list[float]:
    """What the model's own classes give for the conversation, one request at a time."""
    import torch
    from transformers import AutoProcessor, Gemma3ForSequenceClassification

    processor = AutoProcessor.from_pretrained(folder)
    content = [
        {"type": "text", "text": part.text} if isinstance(part, Text) else {"type": "image"}
        for part in request.messages[0].parts
    ]
    text = processor.apply_chat_template([{"role": "user", "content": content}], tokenize=False)
    images = [Image.open(part.file) for part in request.images if part.file]
    inputs = processor(text=[text], images=[images] if images else None, return_tensors="pt")
    with torch.inference_mode():
        model = Gemma3ForSequenceClassification.from_pretrained(folder)
        logits: list[float] = model(**inputs).logits[0].tolist()
    return logits


@pytest.fixture
def questions(tmp_path: Path) -> list[Request]:
    pairs = [(10, 200), (10, 60), (90, 120)]
    shown = [[image(tmp_path, at) for at in pair] for pair in pairs]
    return [ask("rate", *images, "x" * at) for at, images in enumerate(shown, 1)] + [ask("words")]


def test_number_is_the_models_own_also_in_a_batch(
    scorers: dict[int, Path], questions: list[Request]
) -> None:
    expected = [compute_logits(scorers[1], request)[0] for request in questions]
    assert len(set(expected)) == len(questions)
    assert answer(scorers[1], questions) == pytest.approx(expected, abs=1e-4)


def test_difference_is_the_log_odds_of_the_second(
    scorers: dict[int, Path], questions: list[Request]
) -> None:
    import torch

    expected = []
    for request in questions:
        first, second = torch.tensor(compute_logits(scorers[2], request)).softmax(0).tolist()
        expected.append(float(torch.tensor(second / first).log()))
    assert answer(scorers[2], questions, head="difference") == pytest.approx(expected, abs=1e-4)


def test_another_number_of_outputs_is_refused_before_any_answer(
    scorers: dict[int, Path], questions: list[Request]
) -> None:
    with pytest.raises(EngineError, match="the head has 2 outputs, and `head: single` takes 1"):
        answer(scorers[2], questions)


def test_model_without_a_trained_head_is_refused(
    scorers: dict[int, Path], questions: list[Request], tmp_path: Path
) -> None:
    """Transformers would draw its weights at random, and only warn."""
    import shutil

    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(scorers[1], tmp_path / "headless")
    weights = load_file(folder / "model.safetensors")
    heads = [name for name in weights if name.startswith("score")]
    assert heads
    for name in heads:
        del weights[name]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(EngineError, match="its weights have no 'score"):
        answer(folder, questions)
