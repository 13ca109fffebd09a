"""What stages ask, with its keys."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from echo_hf.engines.base import make_engine
from echo_hf.pipeline.answer_store import Store, request_keys
from echo_hf.pipeline.stage_runner import keyed_requests
from tests.stages_for_tests import Echo, Guess, Scripted, posts, request, url


def test_each_question_comes_with_its_key(tmp_path: Path) -> None:
    """In the order of stages, rows and lines; of the engine that answers the stage."""
    one, two = Scripted("one"), Scripted("two")
    first, second = posts("red\nblue", "green"), posts("red")
    with closing(Store(tmp_path / "answers.sqlite")) as store:
        stages = [(Guess(), one), (Guess(loud=True), two)]
        found = list(keyed_requests(stages, [first, second], store))
    lines = [
        request(line, sources=(url(n),)) for line, n in (("red", 0), ("blue", 0), ("green", 1))
    ]
    expected = [
        *zip(request_keys(one.signature(), lines), lines, strict=True),
        *zip(request_keys(two.signature(), lines[:1]), lines[:1], strict=True),
    ]
    assert found == expected
    assert (one.asked, two.asked) == ([], [])


def test_what_is_kept_nowhere_is_left_out(tmp_path: Path) -> None:
    """Stages without a model, and those that plain rules answer, have no stored answers."""
    rules = make_engine("rules")
    stages = [(Echo(), None), (Guess(), None), (Guess(), rules)]
    with closing(Store(tmp_path / "answers.sqlite")) as store:
        assert list(keyed_requests(stages, [posts("red")] * 3, store)) == []
