"""What a config may say about the `vllm` engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from echo_hf.engines.vllm_model import checked
from echo_hf.errors import EngineError

MODEL = "Qwen/Qwen2.5-VL-7B-Instruct"


def test_only_the_model_is_required() -> None:
    """Defaults: the likeliest answer, 1280 patches of 28 x 28 an image, held to the schema."""
    options = checked({"model": MODEL})
    assert (options.temperature, options.max_pixels, options.structured) == (0.0, 1_003_520, True)
    assert (options.revision, options.dtype, options.tensor_parallel_size) == (None, "auto", 1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "engine 'vllm': model is missing: field required"),
        ({"modle": MODEL}, "engine 'vllm': unknown key 'modle'; did you mean 'model'? known: "),
        ({"model": ""}, "engine 'vllm': model is '': string should have at least 1 character"),
        ({"dtype": "fp16"}, "engine 'vllm': dtype is 'fp16': input should be 'auto', 'bfloat16'"),
        ({"max_num_seqs": 0}, "engine 'vllm': max_num_seqs is 0: input should be greater than"),
        ({"max_num_seqs": "16"}, "engine 'vllm': max_num_seqs is '16': input should be a valid"),
        ({"temperature": -0.1}, "engine 'vllm': temperature is -0.1: input should be greater"),
        ({"top_p": 1.5}, "engine 'vllm': top_p is 1.5: input should be less than or equal to 1"),
        ({"structured": "yes"}, "engine 'vllm': structured is 'yes': input should be a valid bool"),
        ({"gpu_memory_utilization": 0}, "engine 'vllm': gpu_memory_utilization is 0: input"),
        ({"family": "qwen25"}, "engine 'vllm': unknown family 'qwen25'; did you mean 'qwen"),
        ({"min_pixels": 900, "max_pixels": 100}, "no image has min_pixels 900 and max_pixels"),
        ({"chat_template": "absent.jinja"}, "engine 'vllm': chat_template is 'absent.jinja': path"),
    ],
)
def test_a_bad_option_is_told_in_one_line(given: dict[str, Any], said: str) -> None:
    """The option, its value, and what was expected."""
    options = given if given in ({}, {"modle": MODEL}) else {"model": MODEL} | given
    with pytest.raises(EngineError) as caught:
        checked(options)
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_code_of_a_model_cannot_be_asked_for() -> None:
    """`trust_remote_code` is no option: it would run what strangers wrote."""
    with pytest.raises(EngineError, match="unknown key 'trust_remote_code'"):
        checked({"model": MODEL, "trust_remote_code": True})


def test_a_template_is_a_file(tmp_path: Path) -> None:
    """One that exists is taken."""
    template = tmp_path / "chat.jinja"
    template.write_text("{{ messages }}")
    assert checked({"model": MODEL, "chat_template": str(template)}).chat_template == template
