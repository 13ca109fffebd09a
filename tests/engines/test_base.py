"""What engines are given and give back, how they are found, and that one is loaded at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field
from pathlib import Path
from typing import Self

import pytest

from echo_hf.config.checks import EngineChoice
from echo_hf.engines.auto import Engines, has_gpu
from echo_hf.engines.base import (
    Completion,
    Engine,
    ImageRef,
    Message,
    Text,
    Usage,
    engine_names,
    engine_needs,
    make_engine,
    register,
)
from echo_hf.errors import EngineError, MissingExtraError
from tests.stages_for_tests import Scripted, request


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        (Completion("yes"), True),
        (Completion(""), True),
        (Completion(None), False),
        (Completion("yes", error="lost"), False),
        (Completion("ye", finish_reason="length"), False),
        (Completion("no", finish_reason="refusal"), False),
        (Completion("yes", finish_reason="tool_calls"), False),
    ],
)
def test_only_a_whole_answer_is_an_answer(completion: Completion, answer: bool) -> None:
    assert completion.is_answer is answer


def test_values_of_the_contract() -> None:
    assert Usage(1, 20, 300) + Usage(4, 50, 600) == Usage(5, 70, 900)
    assert Message("user", (Text("a"),)) != Message("user", (ImageRef("a"),))
    with pytest.raises(FrozenInstanceError):
        request("red").max_tokens = 3  # type: ignore[misc]
    assert isinstance(Scripted(), Engine)
    assert not isinstance(object(), Engine)


def test_a_registered_engine_is_made_by_its_name() -> None:
    register("scripted")(Scripted)
    assert make_engine("scripted", model="two", window=2) == Scripted("two", 2)
    assert {"scripted", "openai", "rules"} <= set(engine_names())
    with pytest.raises(EngineError) as caught:
        make_engine("scripted", modle="two")
    message = str(caught.value)
    assert message.startswith("engine 'scripted' does not take ['modle']: ")
    assert "unexpected keyword argument 'modle'" in message


def test_what_is_missing_is_told_before_the_hub_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.hf_hub_download", lambda *_, **__: pytest.fail("asked"))
    monkeypatch.setattr("echo_hf._infra.registry.find_spec", lambda _: None)
    for kind in ("vllm", "transformers"):
        with pytest.raises(MissingExtraError, match=rf"echo-hf\[{kind}\]"):
            make_engine(kind, model="acme/none").signature()


# --- auto ---


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    return monkeypatch


@pytest.mark.parametrize("device", ["dev/nvidia0", "dev/kfd", "dev/dxg"])
def test_a_device_file_is_a_gpu(bare: pytest.MonkeyPatch, tmp_path: Path, device: str) -> None:
    bare.delenv("CUDA_VISIBLE_DEVICES")
    (tmp_path / device).parent.mkdir(parents=True)
    assert not has_gpu(tmp_path)
    (tmp_path / device).touch()
    assert has_gpu(tmp_path)
    for hidden in ("", "-1", " "):
        bare.setenv("CUDA_VISIBLE_DEVICES", hidden)
        assert not has_gpu(tmp_path)


@pytest.mark.parametrize("server", ["http://127.0.0.1:9/v1", None])
def test_a_server_in_the_environment_is_used(bare: pytest.MonkeyPatch, server: str | None) -> None:
    chooses = engine_needs()["auto"].chooses
    assert chooses is not None
    assert chooses() is None
    with pytest.raises(EngineError) as raised:
        make_engine("auto", model="some/model")
    for way in ("echo-hf[vllm]", "export OPENAI_BASE_URL=", "kind: transformers"):
        assert way in str(raised.value)
    bare.setenv("OPENAI_API_KEY", "no-such-key")
    if server:
        bare.setenv("OPENAI_BASE_URL", server)
    given = {"base_url": server} if server else {}
    chosen = make_engine("auto", model="some/model").signature()
    assert chosen == make_engine("openai", model="some/model", **given).signature()
    assert chooses() == "openai"


# --- one model in memory at a time ---


@dataclass
class Life:
    events: list[str] = field(default_factory=list)

    def engine(self, model: str = "one", breaks: bool = False) -> Scripted:
        life = self

        class Watched(Scripted):
            def __enter__(self) -> Self:
                if breaks:
                    raise EngineError("the model does not fit")
                life.events.append(f"+{self.model}")
                return self

            def __exit__(self, *_: object) -> None:
                life.events.append(f"-{self.model}")

        return Watched(model)


@pytest.fixture
def life() -> Life:
    made = Life()
    register("watched")(made.engine)
    return made


def engines(**models: str) -> Engines:
    return Engines({name: EngineChoice(kind="watched", model=one) for name, one in models.items()})


@pytest.mark.parametrize(
    ("used", "events"),
    [
        ("aa", ["+one", "-one"]),
        ("ac", ["+one", "-one"]),
        ("aba", ["+one", "-one", "+two", "-two", "+one", "-one"]),
        ("", []),
    ],
)
def test_another_engine_takes_the_place_of_the_first(
    life: Life, used: str, events: list[str]
) -> None:
    with engines(a="one", b="two", c="one") as loaded:
        for name in used:
            loaded.use(name)
    assert life.events == events


@pytest.mark.parametrize("end", [ValueError, KeyboardInterrupt])
def test_the_engine_is_left_whatever_ends_the_run(life: Life, end: type[BaseException]) -> None:

    def run(then: Callable[[Engines], object]) -> None:
        with engines(a="one", b="two") as loaded:
            loaded.use("a")
            then(loaded)

    def fail(_: Engines) -> None:
        raise end("stop")

    with pytest.raises(end):
        run(fail)
    register("watched")(lambda model: life.engine(model, breaks=model == "two"))
    with pytest.raises(EngineError, match="does not fit"):
        run(lambda loaded: loaded.use("b"))
    assert life.events == ["+one", "-one"] * 2
