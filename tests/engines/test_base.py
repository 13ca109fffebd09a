"""What engines are given and give back, and how they are found by name."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest
from pydantic import BaseModel

from echo_hf.engines.base import (
    Completion,
    Engine,
    ImageRef,
    Message,
    Text,
    Usage,
    engine_names,
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
        (Completion(None, "lost", "error"), False),
        (Completion("yes", finish_reason="tool_calls"), False),
    ],
)
def test_only_a_whole_answer_is_an_answer(completion: Completion, answer: bool) -> None:
    """Errors, refusals, cut answers and endings nobody knows are not worth keeping."""
    assert completion.is_answer is answer


def test_tokens_add_up() -> None:
    """Each kind of token for itself; nothing used is the neutral element."""
    assert Usage(1, 20, 300) + Usage(4, 50, 600) == Usage(5, 70, 900)
    assert Usage() + Usage(1, 2, 3) == Usage(1, 2, 3)


def test_a_text_is_not_an_image() -> None:
    """Parts of different kinds are different, even when their strings are equal."""
    assert len({Text("a"), ImageRef("a"), Text("a")}) == 2
    assert Message("user", (Text("a"),)) != Message("user", (ImageRef("a"),))


def test_requests_and_messages_cannot_be_changed() -> None:
    """A key that was computed stays true."""
    asked = request("red")
    with pytest.raises(FrozenInstanceError):
        asked.max_tokens = 3  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        asked.messages[0].role = "user"  # type: ignore[misc]


def test_an_engine_is_known_by_what_it_can_do() -> None:
    """Whatever has the five members is an engine; a class of ours is not needed."""
    assert isinstance(Scripted(), Engine)
    assert not isinstance(object(), Engine)


def test_a_registered_engine_is_made_by_its_name() -> None:
    """The config's other keys are its arguments."""
    register("scripted")(Scripted)
    engine = make_engine("scripted", model="two", window=2)
    assert engine == Scripted("two", 2)
    assert "scripted" in engine_names()


def test_an_option_that_an_engine_does_not_take_is_told() -> None:
    """One line with the engine, the options' names, not their values, and what is wrong."""
    register("scripted")(Scripted)
    with pytest.raises(EngineError) as caught:
        make_engine("scripted", modle="two")
    message = str(caught.value)
    assert message.startswith("engine 'scripted' does not take ['modle']: ")
    assert "unexpected keyword argument 'modle'" in message
    assert "\n" not in message


def test_the_rules_need_no_options() -> None:
    """The engine without a model is made as it is, keeps nothing, and says what it is."""
    engine = make_engine("rules")
    assert engine.stored is False
    assert engine.signature()["kind"] == "rules"
    assert engine.signature() == make_engine("rules").signature()


def test_an_answer_is_declared_by_a_pydantic_model() -> None:
    """A request carries the class itself, so that an engine can enforce its schema."""
    assert issubclass(request("red").answer, BaseModel)


def test_what_is_missing_is_told_before_the_hub_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the engine's packages a name that no cache holds needs no network to fail."""
    asked: list[object] = []

    def ask(*what: object, **more: object) -> str:
        asked.append((what, more))
        return "config.json"

    def absent(name: str) -> None:
        del name

    monkeypatch.setattr("huggingface_hub.hf_hub_download", ask)
    monkeypatch.setattr("echo_hf._infra.registry.find_spec", absent)

    for kind in ("vllm", "transformers"):
        with pytest.raises(MissingExtraError, match=rf"echo-hf\[{kind}\]"):
            make_engine(kind, model="acme/none").signature()
    assert asked == []
