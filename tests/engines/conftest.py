"""A server on loopback, engines that ask it, and tiny models for those that load one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from echo_hf.engines.openai import OpenAIEngine
from tests.bundled_threads import Bundled, bundled
from tests.engines.openai.loopback_server import LoopbackServer, running
from tests.tiny_guard import write_tiny_guard
from tests.tiny_models import REASON, write_tiny_llava, write_tiny_qwen2_5_vl

KEY = "sk-test-0123456789abcdefghij-ABCDEFGHIJ"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with running() as loopback:
        yield loopback


@pytest.fixture
def engine(server: LoopbackServer) -> Callable[..., OpenAIEngine]:

    def make(**options: object) -> OpenAIEngine:
        usual = {"model": "tiny", "base_url": server.url, "backoff_s": 0.001}
        return OpenAIEngine(**{**usual, **options})

    return make


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


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Bundled:
    return bundled(tmp_path_factory.mktemp("corpus"))


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
