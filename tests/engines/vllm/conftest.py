"""A tiny model and the bundled posts, which every test of this folder shares."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.bundled_threads import Bundled, bundled
from tests.tiny_guard import write_tiny_guard
from tests.tiny_models import write_tiny_qwen2_5_vl


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a Qwen2.5-VL with random weights, where vLLM is installed."""
    _wanted()
    return write_tiny_qwen2_5_vl(tmp_path_factory.mktemp("models") / "tiny-qwen")


@pytest.fixture(scope="session")
def guard_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a safety guard of Llama 4's kind, likewise."""
    _wanted()
    return write_tiny_guard(tmp_path_factory.mktemp("models") / "tiny-guard")


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Bundled:
    return bundled(tmp_path_factory.mktemp("corpus"))


def _wanted() -> None:
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("needs vLLM: make test-vllm")
