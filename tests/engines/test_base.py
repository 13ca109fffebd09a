"""What engines are given and give back, how they are found, and that one is loaded at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self

import pytest

from echo_hf.config.checks import EngineChoice
from echo_hf.engines.base import (
    Engine,
    RunEngines,
    engine_names,
    engine_requirements,
    has_gpu,
    make_engine,
    register,
)
from echo_hf.errors import EngineError
from tests.errors_for_tests import said_by
from tests.stages_for_tests import Scripted


def test_a_registered_engine_is_made_by_its_name() -> None:
    register("scripted")(Scripted)
    assert make_engine("scripted", model="two", window=2) == Scripted("two", 2)
    assert {"scripted", "openai", "rules"} <= set(engine_names())
    assert not isinstance(object(), Engine)
    with pytest.raises(EngineError, match=r"^engine 'scripted' does not take \['modle'\]: "):
        make_engine("scripted", modle="two")


def test_a_device_file_is_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    (tmp_path / "dev").mkdir()
    for device in ("nvidia0", "kfd", "dxg"):
        assert not has_gpu(tmp_path)
        (tmp_path / "dev" / device).touch()
        assert has_gpu(tmp_path)
        (tmp_path / "dev" / device).rename(tmp_path / device)
    (tmp_path / "dev" / "kfd").touch()
    for hidden in ("", "-1", " "):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
        assert not has_gpu(tmp_path)


@pytest.mark.parametrize("server", ["http://127.0.0.1:9/v1", None])
def test_auto_takes_server_of_the_environment(monkeypatch: pytest.MonkeyPatch, server: Any) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    chooses = engine_requirements()["auto"].chooses
    assert chooses is not None
    assert chooses() is None
    said = said_by(EngineError, partial(make_engine, "auto", model="some/model"))
    for way in ("echo-hf[vllm]", "export OPENAI_BASE_URL=", "kind: transformers"):
        assert way in said
    given = {"base_url": server} if server else {}
    monkeypatch.setenv(*(("OPENAI_BASE_URL", server) if server else ("OPENAI_API_KEY", "none")))
    chosen = make_engine("auto", model="some/model").signature()
    assert chosen == make_engine("openai", model="some/model", **given).signature()
    assert chooses() == "openai"


# --- one model in memory at a time ---


@dataclass
class Life:
    events: list[str] = field(default_factory=list)

    def engine(self, model: str) -> Scripted:
        life = self

        class Watched(Scripted):
            def __enter__(self) -> Self:
                if model == "broken":
                    raise EngineError("the model does not fit")
                life.events.append(f"+{model}")
                return self

            def __exit__(self, *_: object) -> None:
                life.events.append(f"-{model}")

            def sleep(self) -> bool:
                if sleepy := model.startswith("sleepy"):
                    life.events.append(f"z{model}")
                return sleepy

        return Watched(model)


@pytest.fixture
def life() -> Life:
    made = Life()
    register("watched")(made.engine)
    return made


def engines() -> RunEngines:
    models = {"a": "one", "b": "two", "c": "one", "d": "broken", "s": "sleepy", "t": "sleepy too"}
    return RunEngines(
        {name: EngineChoice(kind="watched", model=one) for name, one in models.items()}
    )


@pytest.mark.parametrize(
    ("used", "events"),
    [
        ("aa", ["+one", "-one"]),
        ("ac", ["+one", "-one"]),
        ("aba", ["+one", "-one", "+two", "-two", "+one", "-one"]),
        ("", []),
        # One that can sleep is kept; all that are kept are freed at the end.
        ("sas", ["+sleepy", "zsleepy", "+one", "-one", "-sleepy"]),
        ("sa", ["+sleepy", "zsleepy", "+one", "-one", "-sleepy"]),
        (
            "stst",
            [
                *("+sleepy", "zsleepy", "+sleepy too", "zsleepy too", "zsleepy"),
                *("-sleepy too", "-sleepy"),
            ],
        ),
    ],
)
def test_another_engine_takes_the_place_of_the_first(life: Life, used: str, events: Any) -> None:
    with engines() as loaded:
        for name in used:
            loaded.use(name)
    assert life.events == events


@pytest.mark.parametrize("end", [ValueError, KeyboardInterrupt, EngineError])
def test_the_engine_is_left_whatever_ends_the_run(life: Life, end: type[BaseException]) -> None:
    def run() -> None:
        with engines() as loaded:
            loaded.use("s")
            loaded.use("a")
            if end is EngineError:
                loaded.use("d")
            raise end("stop")

    with pytest.raises(end):
        run()
    assert life.events == ["+sleepy", "zsleepy", "+one", "-one", "-sleepy"]
