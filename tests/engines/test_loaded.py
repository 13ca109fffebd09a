"""The engines of a run: one model in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import pytest

from echo_hf.config.checks import EngineChoice
from echo_hf.engines.auto import Engines
from echo_hf.engines.base import register
from echo_hf.errors import EngineError
from tests.stages_for_tests import Scripted


@dataclass
class Life:
    """What happened to engines, in order, and how many are loaded."""

    events: list[str] = field(default_factory=list)
    loaded: int = 0
    most: int = 0

    def engine(self, model: str = "one", breaks: bool = False) -> Scripted:
        """An engine that writes down when it is entered and left."""
        life = self

        class Watched(Scripted):
            def __enter__(self) -> Self:
                if breaks:
                    raise EngineError("the model does not fit")
                life.events.append(f"+{self.model}")
                life.loaded += 1
                life.most = max(life.most, life.loaded)
                return self

            def __exit__(
                self,
                kind: type[BaseException] | None,
                error: BaseException | None,
                trace: TracebackType | None,
            ) -> None:
                life.events.append(f"-{self.model}")
                life.loaded -= 1

        return Watched(model)


@pytest.fixture
def life() -> Iterator[Life]:
    """Watched engines under the name `watched`; all of them are left in the end."""
    watched = Life()
    register("watched")(watched.engine)
    yield watched
    assert watched.loaded == 0


def _choice(**options: object) -> EngineChoice:
    return EngineChoice.model_validate({"kind": "watched", **options})


CHOICES = {
    "text": _choice(),
    "vision": _choice(model="two"),
    "again": _choice(),
    "large": _choice(model="three", breaks=True),
}


def test_nothing_is_made_before_it_is_used(life: Life) -> None:
    """Opening the engines of a run loads none."""
    with Engines(CHOICES):
        assert life.events == []


def test_an_engine_is_made_once_and_left_at_the_end(life: Life) -> None:
    """Using it again gives the same one."""
    with Engines(CHOICES) as engines:
        assert engines.use("text") is engines.use("text")
        assert life.events == ["+one"]
    assert life.events == ["+one", "-one"]


def test_two_names_for_one_choice_share_an_engine(life: Life) -> None:
    """Equal kind and options are one model, whatever the config calls it."""
    with Engines(CHOICES) as engines:
        assert engines.use("text") is engines.use("again")
    assert life.events == ["+one", "-one"]


def test_one_model_is_freed_before_the_next_is_loaded(life: Life) -> None:
    """At no time are two in memory."""
    with Engines(CHOICES) as engines:
        for name in ("text", "vision", "text"):
            engines.use(name)
    assert life.events == ["+one", "-one", "+two", "-two", "+one", "-one"]
    assert life.most == 1


@pytest.mark.parametrize(
    "spoil",
    [lambda engines: engines.use("large"), lambda engines: engines.use("unmade")],
    ids=["does not load", "is not known"],
)
def test_an_engine_that_fails_leaves_none_behind(
    life: Life, spoil: Callable[[Engines], object]
) -> None:
    """After the failure the first engine is loaded anew, and not handed out as freed."""
    unmade = EngineChoice(kind="nothing_of_this_name")
    with Engines({**CHOICES, "unmade": unmade}) as engines:
        first = engines.use("text")
        with pytest.raises(EngineError):
            spoil(engines)
        assert engines.use("text") is not first
        assert life.loaded == 1
    assert life.events == ["+one", "-one", "+one", "-one"]


def test_an_error_in_a_run_frees_the_model(life: Life) -> None:
    """Whatever ends the run, nothing stays loaded."""
    with pytest.raises(KeyError), Engines(CHOICES) as engines:
        raise KeyError(engines.use("text"))
    assert life.events == ["+one", "-one"]


def test_engines_can_be_used_after_they_were_left(life: Life) -> None:
    """A later use loads anew."""
    engines = Engines(CHOICES)
    with engines:
        first = engines.use("text")
    with engines:
        assert engines.use("text") is not first
    assert life.events == ["+one", "-one"] * 2
