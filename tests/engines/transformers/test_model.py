"""What a model is given, how it draws and keeps to a form, and which models are refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from echo_hf.engines.base import ImageRef, Message, Request, Text, make_engine
from echo_hf.engines.transformers import (
    SCHEMA_WORDS,
    PreparedRequest,
    is_out_of_memory,
    make_sampling_processors,
    prepare,
)
from echo_hf.errors import EngineError
from tests.errors_for_tests import said_by
from tests.stages_for_tests import Color, request
from tests.tiny_models import REASON

IMAGES = {"a": (40, 30), "b": (20, 10)}
PLAIN = replace(request("red"), answer=None)


def asked(one: Request) -> PreparedRequest:
    return prepare(one, json.dumps, lambda ref: Image.new("RGB", IMAGES[ref.sha256]))


def test_parts_keep_their_order_and_the_form_follows_the_instructions() -> None:
    turns = (
        Message("system", (Text("Look."),)),
        Message("user", (ImageRef("a"), Text("and"), ImageRef("b"))),
        Message("assistant", (Text("Well."),)),
    )
    made = asked(Request("t", turns, None, 8))
    contents = [[part.get("text") for part in turn["content"]] for turn in json.loads(made.text)]
    assert contents == [["Look."], [None, "and", None], ["Well."]]
    assert [image.size for image in made.images] == [(40, 30), (20, 10)]
    # 1200 + 200 pixels, and the characters of the rendered conversation.
    assert made.size == (1400, len(made.text))
    first, second = json.loads(asked(request("red", "Name a colour.")).text)
    start, added = (part["text"] for part in first["content"])
    words, _, schema = added.removeprefix("\n\n").partition("\n")
    assert (start, words) == ("Name a colour.", SCHEMA_WORDS)
    assert json.loads(schema) == Color.model_json_schema()
    assert second["content"] == [{"type": "text", "text": "red"}]
    plain, regex = (json.loads(asked(one).text)[0] for one in (PLAIN, replace(PLAIN, regex="[1]")))
    assert len(plain["content"]) == 1
    assert regex["content"][1]["text"].endswith("\n[1]")


def test_what_a_batch_must_have_in_common_and_what_its_draws() -> None:
    one, two = (asked(request("red", images=names)).group for names in ("a", "ab"))
    others = [asked(each).group for each in (request("red"), request("red", max_tokens=9), PLAIN)]
    assert one == two
    assert len({one, *others}) == 4
    given = [request("red"), request("blue"), *(request("red", images=[n]) for n in IMAGES)]
    seeds = [asked(one).seed(0) for one in given] + [asked(given[0]).seed(1)]
    assert len(set(seeds)) == 5
    assert asked(request("red", max_tokens=99)).seed(0) == seeds[0]
    assert all(0 <= one < 2**63 for one in seeds)


# --- draws and grammars ---

SCORES = [0.0, 1.0, 2.0, -1.0, 0.5, -float("inf")]
DRAWS = 5_000


@pytest.fixture
def torch() -> Any:
    pytest.importorskip("transformers", reason=REASON)
    return pytest.importorskip("torch", reason=REASON)


def drawn(torch: Any, temperature: float, top_p: float) -> Any:
    processors, tokens = make_sampling_processors([7], temperature, top_p, "cpu"), []
    for _ in range(DRAWS):
        scores = torch.tensor([SCORES])
        for processor in processors:
            scores = processor(None, scores)
        tokens.append(int(scores.argmax()))
    return np.bincount(tokens, minlength=len(SCORES)) / DRAWS


@pytest.mark.models
@pytest.mark.parametrize(("temperature", "top_p"), [(0.5, 1.0), (2.0, 1.0), (1.0, 0.7)])
def test_draws_have_the_chances_of_softmax(torch: Any, temperature: float, top_p: float) -> None:
    weights = np.exp(np.array(SCORES) / temperature)
    if top_p < 1:  # the two likeliest make up 0.7 together, not one alone
        chances = weights / weights.sum()
        assert chances[2] < top_p < chances[2] + chances[1]
        weights[[0, 3, 4, 5]] = 0
    expected = weights / weights.sum()
    error = np.sqrt(expected * (1 - expected) / DRAWS)
    assert (np.abs(drawn(torch, temperature, top_p) - expected) <= 5 * error).all()
    assert make_sampling_processors([1, 2], 0.0, 0.5, "cpu") == []


@pytest.mark.models
def test_a_rows_draws_do_not_depend_on_its_neighbours(torch: Any) -> None:
    rows = torch.zeros(3, 50)

    def noise(*seeds: int) -> Any:
        return make_sampling_processors(seeds, 1.0, 1.0, "cpu")[-1](None, rows[: len(seeds)])

    together = noise(1, 2, 3)
    assert torch.equal(together[[2, 0, 1]], noise(3, 1, 2))
    assert torch.equal(together[1:2], noise(2))
    assert not torch.equal(together[0], together[1])


# --- loading ---

MARKER = "ran"
CODE = f"""
from pathlib import Path
Path(__file__).with_name({MARKER!r}).touch()
from transformers import PretrainedConfig
class Config(PretrainedConfig):
    model_type = "of_its_own"
"""


def with_code(folder: Path) -> None:
    (folder / "own.py").write_text(CODE)
    config = {"model_type": "of_its_own", "auto_map": {"AutoConfig": "own.Config"}}
    (folder / "config.json").write_text(json.dumps(config))


def with_pickles(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def without_template(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink()


@pytest.mark.models
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (with_code, "(code that comes with a model is never run)"),
        (with_pickles, "with safetensors weights that fit into memory"),
        (without_template, "it has no chat template: name a file as `chat_template`"),
    ],
)
def test_a_model_that_cannot_be_loaded_is_one_line(
    tiny: Path, tmp_path: Path, spoil: Any, said: str
) -> None:
    copy = shutil.copytree(tiny, tmp_path / "model")
    spoil(copy)
    with make_engine("transformers", model=str(copy)) as engine:
        told = said_by(EngineError, lambda: list(engine.stream([request("red")])))
    assert (repr(str(copy)) in told, said in told) == (True, True)
    assert not list(copy.rglob(MARKER))


@pytest.mark.models
def test_what_a_lack_of_memory_looks_like(torch: Any) -> None:
    pytest.importorskip("accelerate", reason=REASON)
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60)
    assert is_out_of_memory(caught.value)
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"))
    assert is_out_of_memory(MemoryError())
    assert not is_out_of_memory(RuntimeError("CUDA error: device-side assert triggered"))
    assert not is_out_of_memory(ValueError("out of memory."))
