"""What decides an answer, and what does not; neither vLLM nor the network is needed to say so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from echo_hf.engines.vllm import VllmEngine
from echo_hf.errors import EngineError, MissingExtraError
from tests.engines.test_checkpoint import WEIGHTS
from tests.stages_for_tests import ROOT


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with what looks like a model."""
    (tmp_path / "config.json").write_text('{"model_type": "qwen2_5_vl"}')
    (tmp_path / "model.safetensors").write_bytes(WEIGHTS)
    return tmp_path


def signature(folder: Path, **options: Any) -> dict[str, Any]:
    """The signature of an engine with these options."""
    return VllmEngine(model=str(folder), **options).signature()


def test_it_is_plain_and_whole(folder: Path) -> None:
    """Kind, model, digest, types, sampling, pixels of an image, template, grammar."""
    said = signature(folder)
    assert json.loads(json.dumps(said)) == said
    assert said.pop("revision").startswith("sha256:")
    assert said == {
        "kind": "vllm",
        "model": folder.name,
        "dtype": "auto",
        "quantization": None,
        "kv_cache_dtype": "auto",
        "max_model_len": None,
        "sampling": {"temperature": 0.0},
        "pixels": [28, 3136, 1_003_520],
        "chat_template": None,
        "chat_template_kwargs": {},
        "structured": "xgrammar",
    }


@pytest.mark.parametrize(
    "options",
    [
        {"max_num_seqs": 2},
        {"gpu_memory_utilization": 0.5},
        {"tensor_parallel_size": 2},
        {"limit_images": 1},
        {"enforce_eager": True},
        {"seed": 3, "top_p": 0.5},  # nothing is drawn at temperature 0
        {"min_pixels": 3136},  # the family's own
        {"family": "qwen2_5_vl"},
    ],
)
def test_what_decides_no_answer_is_left_out(folder: Path, options: dict[str, Any]) -> None:
    """Answers are found again on another machine, or with more requests at a time."""
    assert signature(folder, **options) == signature(folder)


@pytest.mark.parametrize(
    "options",
    [
        {"dtype": "float16"},
        {"quantization": "fp8"},
        {"kv_cache_dtype": "fp8"},
        {"max_model_len": 4096},
        {"max_pixels": 50_176},
        {"min_pixels": 50_176},
        {"family": "qwen3_vl"},
        {"temperature": 0.7},
        {"temperature": 0.7, "seed": 1},
        {"temperature": 0.7, "top_p": 0.9},
        {"chat_template_kwargs": {"enable_thinking": False}},
        {"structured": False},
    ],
)
def test_what_decides_an_answer_is_in_it(folder: Path, options: dict[str, Any]) -> None:
    """Other answers are kept under other keys, and draws under their seed."""
    assert signature(folder, **options) != signature(folder)
    assert signature(folder, **options) != signature(folder, temperature=0.7, seed=2)


def test_a_template_counts_by_its_text(folder: Path) -> None:
    """Not by its name."""
    files = [folder / name for name in ("a.jinja2", "b.jinja2")]
    said = []
    for file, text in zip(files * 2, ("x", "x", "x", "y"), strict=True):
        file.write_text(text)
        said.append(signature(folder, chat_template=str(file))["chat_template"])
    assert said[0] == said[1] == said[2] != said[3]


def test_an_unknown_model_is_told_when_it_is_asked_for(tmp_path: Path) -> None:
    """Making an engine costs nothing; its signature says that there is no such folder."""
    engine = VllmEngine(model=str(tmp_path / "absent"))
    with pytest.raises(EngineError, match="neither a folder"):
        engine.signature()


def test_importing_the_engine_loads_no_library() -> None:
    """Neither vLLM nor torch, which take seconds."""
    heavy = "{'vllm', 'torch', 'transformers'}"
    code = f"import sys, echo_hf.engines.vllm; print(*{heavy} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""


def test_without_vllm_it_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the first request comes; no request, no complaint."""
    import importlib.util

    from tests.stages_for_tests import request

    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n: None if n == "vllm" else found(n))
    with VllmEngine(model=str(folder)) as engine:
        assert list(engine.stream([])) == []
        with pytest.raises(MissingExtraError, match=r'pip install "echo-hf\[vllm\]"'):
            next(engine.stream([request("red")]))
