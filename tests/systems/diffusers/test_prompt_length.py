"""A prompt that a text encoder cuts is told: its end changes nothing in the image."""

from __future__ import annotations

from typing import Any

import pytest

from echo_hf.systems.diffusers import prompt_length
from echo_hf.systems.diffusers_classes import KINDS, PromptReader
from echo_hf.systems.registry import make_system
from tests.systems.tasks_for_tests import config, task
from tests.systems.tiny_pipelines import Write

CALLS: dict[str, dict[str, Any]] = {
    "flux": {"max_sequence_length": 48},
    "klein": {"max_sequence_length": 64, "text_encoder_out_layers": [1]},
}


class Spaces:
    """A tokenizer with a token for each word."""

    def __call__(self, text: str) -> Any:
        """The words in place of numbers."""
        return type("Tokens", (), {"input_ids": text.split()})


class Pipe:
    """A pipeline that wraps a prompt into three words, of which it does not read the first two."""

    tokenizer = Spaces()
    before, start = "draw this {} now", 2

    def __call__(self, prompt: str, max_sequence_length: int = 4) -> None:
        """Draws nothing."""


READER = PromptReader(template="before", template_start="start")


@pytest.mark.parametrize(
    ("arguments", "counted"),
    [
        ({"prompt": "a red fox"}, (4, 4, False)),
        ({"prompt": "a small red fox"}, (5, 4, True)),
        ({"prompt": "a small red fox", "max_sequence_length": 5}, (5, 5, False)),
        ({"prompt": "a small red fox", "max_sequence_length": 2}, (5, 2, True)),
    ],
)
def test_tokens_are_counted_as_the_pipeline_counts_them(
    arguments: dict[str, Any], counted: tuple[int, int, bool]
) -> None:
    """By hand: with the words around the prompt that are read, up to the call's own limit."""
    names = ("prompt_tokens", "prompt_tokens_used", "prompt_cut")
    assert prompt_length(Pipe(), READER, arguments) == dict(zip(names, counted, strict=True))


@pytest.mark.parametrize("reader", [None, PromptReader("tokenizer_3")])
def test_nothing_is_told_where_it_cannot_be_known(reader: PromptReader | None) -> None:
    """Of a class that nobody has looked at, or with a part that was left out."""
    assert prompt_length(Pipe(), reader, {"prompt": "a red fox"}) == {}


@pytest.mark.extras
@pytest.mark.parametrize("name", CALLS)
def test_a_prompt_that_is_cut_is_told(tiny: Write, name: str) -> None:
    """Two that differ past the limit give one image, and say so; shorter ones are read whole."""
    call = {"num_inference_steps": 1, **CALLS[name]}
    size = {"width": 64, "height": 48}
    parameters = {"call": call, "dtype": "float32", "device": "cpu"}
    long = "a fox in the snow " * 20
    system = make_system(config("diffusers", tiny(name), size=size, parameters=parameters))
    with system:
        prompts = ("a fox", "an owl", f"{long} at noon", f"{long} at dawn")
        short, other, noon, dawn = (system.draw(task(prompt=prompt)) for prompt in prompts)
    assert noon.image == dawn.image
    assert short.image != other.image
    for one in (noon, dawn):
        assert one.details["prompt_cut"] is True
        assert one.details["prompt_tokens_used"] == CALLS[name]["max_sequence_length"]
        assert one.details["prompt_tokens"] > CALLS[name]["max_sequence_length"]
    for one in (short, other):
        assert one.details["prompt_cut"] is False
        assert one.details["prompt_tokens_used"] == one.details["prompt_tokens"]


@pytest.mark.extras
@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.reader])
def test_the_parts_that_are_counted_with_are_the_pipelines_own(name: str) -> None:
    """Each class has the tokenizer that the table names."""
    diffusers = pytest.importorskip("diffusers", reason="needs diffusers: see `make test-extras`")
    reader = KINDS[name].reader
    assert reader is not None
    found = getattr(diffusers, name)
    assert reader.tokenizer in found._get_signature_keys(found)[0]
