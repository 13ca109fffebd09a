"""Tiny pipelines that the tests of this folder share, where torch and diffusers are."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.systems import tiny_pipelines
from tests.systems.tiny_pipelines import REASON, Write, write_tiny


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Write:
    """Folder of a tiny pipeline by the name of its function; each is written once."""
    for package in ("torch", "diffusers", "transformers", "accelerate"):
        pytest.importorskip(package, reason=REASON, exc_type=ImportError)
    written: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in written:
            place = tmp_path_factory.mktemp("pipelines") / f"tiny-{name}"
            written[name] = write_tiny(getattr(tiny_pipelines, name), place)
        return written[name]

    return folder


@pytest.fixture
def _small_qwen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Qwen's pipeline looks at small images, without the part for videos."""
    pytest.importorskip("diffusers", reason=REASON, exc_type=ImportError)
    from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit_plus as module

    monkeypatch.setattr(module, "VAE_IMAGE_SIZE", 64 * 64)
    monkeypatch.setattr(module, "CONDITION_IMAGE_SIZE", 56 * 56)
    # The very module that diffusers looks into: importing a part of it replaces the one before.
    transformers: Any = sys.modules["transformers"]
    monkeypatch.setattr(transformers, "Qwen2VLProcessor", tiny_pipelines.qwen_processor_class())


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Threads that share such small sums wait for each other longer than they add."""
    torch = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch else 1
    if torch:
        torch.set_num_threads(1)
    yield
    if torch:
        torch.set_num_threads(threads)
