"""The engine that fits the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from echo_hf.engines.auto import has_gpu
from echo_hf.engines.base import engine_needs, make_engine
from echo_hf.errors import EngineError


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No server in the environment, and no GPU that may be used."""
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    return monkeypatch


@pytest.mark.parametrize("device", ["dev/nvidia0", "dev/kfd", "dev/dxg"])
def test_a_device_file_is_a_gpu(bare: pytest.MonkeyPatch, tmp_path: Path, device: str) -> None:
    """NVIDIA, AMD, and Windows' own way of passing one on."""
    bare.delenv("CUDA_VISIBLE_DEVICES")
    (tmp_path / device).parent.mkdir(parents=True)

    assert not has_gpu(tmp_path)
    (tmp_path / device).touch()
    assert has_gpu(tmp_path)


@pytest.mark.parametrize("hidden", ["", "-1", " "])
def test_a_hidden_gpu_is_none(bare: pytest.MonkeyPatch, tmp_path: Path, hidden: str) -> None:
    """What is hidden from CUDA is not used."""
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidia0").touch()
    bare.setenv("CUDA_VISIBLE_DEVICES", hidden)

    assert not has_gpu(tmp_path)


@pytest.mark.usefixtures("bare")
def test_without_gpu_and_server_the_three_ways_are_shown() -> None:
    """One line with a command for each of them."""
    with pytest.raises(EngineError) as raised:
        make_engine("auto", model="some/model")

    said = str(raised.value)
    assert "\n" not in said
    for way in ("echo-hf[vllm]", "export OPENAI_BASE_URL=", "kind: transformers"):
        assert way in said


@pytest.mark.parametrize("server", ["http://127.0.0.1:9/v1", None])
def test_a_server_in_the_environment_is_used(bare: pytest.MonkeyPatch, server: str | None) -> None:
    """The signature is that of the engine that was taken, so that its answers are shared."""
    bare.setenv("OPENAI_API_KEY", "no-such-key")
    if server:
        bare.setenv("OPENAI_BASE_URL", server)
    given = {"base_url": server} if server else {}

    chosen = make_engine("auto", model="some/model").signature()

    assert chosen == make_engine("openai", model="some/model", **given).signature()


def test_the_list_says_what_it_takes_here(bare: pytest.MonkeyPatch) -> None:
    """Nothing on a bare machine, and the server as soon as one is named."""
    chooses = engine_needs()["auto"].chooses
    assert chooses is not None
    assert chooses() is None
    bare.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert chooses() == "openai"
