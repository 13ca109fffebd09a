"""Models that load, and those that are refused with a reason."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from echo_hf.engines.base import engine_needs, make_engine
from echo_hf.engines.transformers_model import is_out_of_memory
from echo_hf.errors import EngineError, MissingExtraError
from tests.stages_for_tests import request

MARKER = "ran"
CODE = f"""
from pathlib import Path
Path(__file__).with_name({MARKER!r}).touch()
from transformers import PretrainedConfig
class Config(PretrainedConfig):
    model_type = "of_its_own"
"""


def _refused(folder: Path, **options: Any) -> str:
    with (
        make_engine("transformers", model=str(folder), **options) as engine,
        pytest.raises(EngineError) as caught,
    ):
        list(engine.stream([request("red")]))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def copy(tiny: Path, tmp_path: Path) -> Path:
    """The tiny model's files, to be spoilt."""
    return shutil.copytree(tiny, tmp_path / "model")


@pytest.mark.skipif(
    not engine_needs()["transformers"].missing, reason="the packages are installed here"
)
def test_missing_packages_are_told(tmp_path: Path) -> None:
    """One line with the command that installs them, when the first request comes."""
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"")
    engine = make_engine("transformers", model=str(tmp_path), structured="none")
    with pytest.raises(MissingExtraError) as caught:
        next(iter(engine.stream([request("red")])))
    assert str(caught.value) == (
        "engine 'transformers' needs packages that are not here: "
        'pip install "echo-hf[transformers]"'
    )


@pytest.mark.models
def test_code_that_comes_with_a_model_is_not_run(copy: Path) -> None:
    """The model is refused, and its file was never imported."""
    (copy / "own.py").write_text(CODE)
    config = json.loads((copy / "config.json").read_text())
    config |= {"model_type": "of_its_own", "auto_map": {"AutoConfig": "own.Config"}}
    (copy / "config.json").write_text(json.dumps(config))
    assert "comes with code of its own, which is never run here" in _refused(copy)
    assert not list(copy.rglob(MARKER))


@pytest.mark.models
def test_pickled_weights_are_not_read(copy: Path) -> None:
    """To unpickle is to run code: only safetensors are opened."""
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    assert "expected a vision-language model with safetensors weights" in _refused(copy)


@pytest.mark.models
def test_torn_weights_are_told(copy: Path) -> None:
    """One line with the model and what the reader said."""
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:2000])
    assert _refused(copy).startswith(f"cannot load {str(copy)!r} (SafetensorError: ")


@pytest.mark.models
def test_a_model_without_a_chat_template_is_told(copy: Path) -> None:
    """With the option that brings one."""
    (copy / "chat_template.jinja").unlink()
    message = _refused(copy)
    assert "has no tokenizer or no chat template" in message
    assert "`chat_template`" in message


@pytest.mark.models
@pytest.mark.usefixtures("tiny")
def test_a_model_without_images_is_told(tmp_path: Path) -> None:
    """A language model is another kind, and is not loaded as this one."""
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen2"}))
    (tmp_path / "model.safetensors").write_bytes(b"")
    assert "expected a vision-language model" in _refused(tmp_path)


@pytest.mark.models
@pytest.mark.usefixtures("tiny")
def test_what_a_lack_of_memory_looks_like() -> None:
    """On a GPU, on the processor, in Python; other errors are none."""
    import torch

    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60)
    assert is_out_of_memory(caught.value)
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"))
    assert is_out_of_memory(MemoryError())
    assert not is_out_of_memory(RuntimeError("CUDA error: device-side assert triggered"))
    assert not is_out_of_memory(ValueError("out of memory."))
