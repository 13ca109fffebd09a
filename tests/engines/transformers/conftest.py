"""A tiny model that every test of this folder shares, where torch and transformers are."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tiny_guard import write_tiny_guard
from tests.tiny_models import REASON, write_tiny_llava, write_tiny_qwen2_5_vl


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a Qwen2.5-VL with random weights."""
    _wanted("torchvision")
    return write_tiny_qwen2_5_vl(tmp_path_factory.mktemp("models") / "tiny-qwen2.5-vl")


@pytest.fixture(scope="session")
def tiny_llava(tmp_path_factory: pytest.TempPathFactory) -> Path:
    _wanted()
    return write_tiny_llava(tmp_path_factory.mktemp("models") / "tiny-llava")


@pytest.fixture(scope="session")
def tiny_guard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a safety guard of Llama 4's kind."""
    _wanted("torchvision")
    return write_tiny_guard(tmp_path_factory.mktemp("models") / "tiny-guard")


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    torch = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch else 1
    if torch:
        torch.set_num_threads(1)
    yield
    if torch:
        torch.set_num_threads(threads)


def _wanted(*packages: str) -> None:
    for package in ("torch", "transformers", "accelerate", *packages):
        pytest.importorskip(package, reason=REASON, exc_type=ImportError)
