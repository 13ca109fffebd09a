"""A tiny Anole that the tests of this folder share, where torch and transformers are."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from echo_hf.systems.anole import LoadedAnole, load_anole
from echo_hf.systems.anole_tokens import AnoleOptions
from echo_hf.systems.local_models import LocalModel
from tests.systems.tiny_anole import REASON, write_tiny_anole


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of an Anole with random weights; its decoder is in `decoder`."""
    for package in ("torch", "transformers", "accelerate"):
        pytest.importorskip(package, reason=REASON, exc_type=ImportError)
    return write_tiny_anole(tmp_path_factory.mktemp("models") / "tiny-anole")


@pytest.fixture(scope="session")
def loaded(tiny: Path) -> LoadedAnole:
    """That model, in 32 bits."""
    options = AnoleOptions(dtype="float32", device="cpu")
    model = LocalModel("tiny", str(tiny), None, "config.json")
    decoder = LocalModel("tiny", str(tiny / "decoder"), None, "model.safetensors")
    return load_anole(model, decoder, options)


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
