"""Keys and models that are missing, found out before anything is spent."""

from __future__ import annotations

from pathlib import Path

import pytest

from echo_hf.errors import GenerationError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import Retired
from echo_hf.systems.generate import generate
from echo_hf.systems.registry import make_system
from tests.engines.openai.loopback_server import Answer, LoopbackServer, fault
from tests.systems.drawing_for_tests import KEY, task
from tests.systems.openai_images.images_for_tests import HTML, Make, config, drawn_by
from tests.systems.runs_for_tests import benchmark, evaluation


def test_a_missing_key_is_told_before_anything_is_asked(
    server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its variable, in one line."""
    system = make_system(config({"base_url": "https://draw.example/v1"}))
    with system, pytest.raises(GenerationError, match="'OPENAI_API_KEY' is not set"):
        system.preflight()
    with system, pytest.raises(GenerationError, match="'OPENAI_API_KEY' is not set"):
        system.draw(task())


def test_of_a_model_that_is_known_to_be_shut_down_nobody_is_asked(
    tmp_path: Path, server: LoopbackServer, make: Make
) -> None:
    """All of its tasks are retired, without a key or a call; who serves it elsewhere is asked."""
    gone = config({}, model="gpt-image-1")
    made = generate(evaluation(benchmark(tmp_path), gone), runs=tmp_path / "runs")
    assert made.outcomes == {gone.name: {Outcome.RETIRED: 5}}
    assert make({"model": "gpt-image-1"}).preflight() is None
    assert server.asked


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer({"id": "tiny-image", "shutdown_date": None}), None),
        (Answer({"id": "tiny-image", "shutdown_date": "2999-01-01"}), None),
        (Answer({"id": "tiny-image", "shutdown_date": "soon"}), None),
        (
            Answer({"id": "tiny-image", "shutdown_date": "2026-10-23"}),
            Retired("shutdown_date is 2026-10-23", "shutdown_date"),
        ),
        (
            fault(404, "The model tiny-image has been deprecated", type="invalid_request_error"),
            Retired("The model tiny-image has been deprecated", "invalid_request_error"),
        ),
        (Answer(b"no model here", 404), None),
        (HTML, None),
        (fault(500, "oops"), None),
        (fault(403, "no"), None),
        (Answer(b"", cut_after=0), None),
    ],
    ids=str,
)
def test_a_model_that_is_gone_is_found_out_beforehand(
    server: LoopbackServer, make: Make, answer: Answer, expected: Retired | None
) -> None:
    """By the model's own entry; a server that does not tell is not taken at its silence."""
    server.behave = lambda _: answer
    with make() as system:
        assert system.preflight() == expected
    assert [asked.path for asked in server.asked] == ["/v1/models/tiny-image"]


def test_a_model_that_never_was_is_found_out_beforehand(server: LoopbackServer, make: Make) -> None:
    """Its name may be mistyped: it is told, and nothing is retired."""
    server.behave = lambda _: fault(404, "No such model, or no access", code="model_not_found")
    with make() as system, pytest.raises(GenerationError, match="model is 'tiny-image', expected"):
        system.preflight()


def test_a_wrong_key_is_found_out_beforehand(server: LoopbackServer, make: Make) -> None:
    """No task could succeed with it."""
    server.behave = lambda _: fault(401, f"Incorrect API key: {KEY}")
    with make() as system, pytest.raises(GenerationError, match="put a valid key into") as caught:
        system.preflight()
    assert KEY not in str(caught.value)


def test_a_model_that_goes_during_a_run_is_retired(server: LoopbackServer, make: Make) -> None:
    """Some makers tell only whoever asks for an image."""
    server.behave = lambda _: fault(404, "This model is no longer available to new users")
    drawn = drawn_by(make())
    assert (drawn.outcome, drawn.stage) == (Outcome.RETIRED, OutcomeStage.REQUEST)
