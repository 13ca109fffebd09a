"""The engine with a language model that reads no images: real weights, asked by real stages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from echo_hf.builder.build import build
from echo_hf.collect.relevance import Relevance
from echo_hf.curate.feedback import Feedback
from echo_hf.engines.base import Engine, ImageRef, Message, Request, Text, make_engine
from echo_hf.errors import EngineError
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.stage_runner import run_stage
from tests.bundled_threads import TARGET
from tests.samples_for_tests import dataset, post, sample
from tests.small_language_model import write_small_language_model
from tests.stages_for_tests import posts, request

pytestmark = pytest.mark.models
TEXTS = (
    "Made with Lumen Image. Prompt: a fox of folded paper on a teal background",
    "Lumen Image changed the face of my sister when I only asked for another hat",
)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_language_model(tmp_path_factory.mktemp("models") / "smollm2")


@pytest.fixture(scope="module")
def engine(small: Path) -> Iterator[Engine]:
    with make_engine("transformers", model=str(small), dtype="float32") as entered:
        yield entered


def test_its_answer_is_that_of_the_bare_model(engine: Engine, small: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    told, asked = "Answer in one word.", "What color is the sky on a clear day?"
    turns = (Message("system", (Text(told),)), Message("user", (Text(asked),)))
    ((_, completion),) = engine.stream([Request("t", turns, None, 12)])
    tokenizer = AutoTokenizer.from_pretrained(small)
    chat = [{"role": "system", "content": told}, {"role": "user", "content": asked}]
    inputs = tokenizer.apply_chat_template(
        chat, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    model = AutoModelForCausalLM.from_pretrained(small, dtype="float32")
    written = model.generate(**inputs, max_new_tokens=12, do_sample=False)[0]
    length = inputs["input_ids"].shape[1]
    assert completion.text == tokenizer.decode(written[length:], skip_special_tokens=True)
    assert completion.usage.prompt == length


def test_stages_without_images_get_valid_answers(engine: Engine) -> None:
    """Of posts by `relevance`, of a comment by `feedback`; nothing is quarantined."""
    scored = run_stage(Relevance(TARGET), posts(*TEXTS), engine=engine, store=Store(":memory:"))
    assert len(scored.quarantine) == 0
    assert all(1 <= row["score"] <= 5 for row in scored.dataset["relevance"])
    context = [post(0, -1, "a fox in the snow"), post(1, 0, "The fox has a fifth leg", author="bo")]
    commented = dataset(sample(context, feedback=[1]))
    judged = run_stage(Feedback(TARGET), commented, engine=engine, store=Store(":memory:"))
    assert len(judged.quarantine) == 0
    assert len(judged.dataset) == 1


def test_images_are_refused(engine: Engine, small: Path, tmp_path: Path) -> None:
    """A request with one is an error; a build with a stage that sends them does not begin."""
    asked = Request("t", (Message("user", (Text("look"), ImageRef("a"))),), None, 4)
    answers = dict(engine.stream([asked, request("red")]))
    assert answers[0].error
    assert answers[1].error is None
    config: dict[str, Any] = {
        "name": "lumen",
        "target": TARGET.model_dump(mode="json"),
        "posts": [{"source": "jsonl", "path": str(tmp_path / "posts.jsonl")}],
        "engines": {"reader": {"kind": "transformers", "model": str(small)}},
    }
    (tmp_path / "posts.jsonl").write_text("not even read")
    (tmp_path / "lumen.yaml").write_text(yaml.safe_dump(config))
    with pytest.raises(EngineError, match="stage 'roles' sends images, and 'smollm2' reads text"):
        build(tmp_path / "lumen.yaml", runs=tmp_path / "runs")
