"""Of calls that failed a release tells how many, of what kind, and which; never a word of them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from echo_hf.engines.base import make_engine
from echo_hf.hub.facts import MOST_LISTED, FailedCalls, failed_calls
from echo_hf.pipeline.answer_store import Store, request_keys
from echo_hf.pipeline.result import StageResult
from echo_hf.pipeline.stage_runner import run_stage
from tests.stages_for_tests import Guess, Scripted, posts, request


def quarantined(folder: Path, *texts: str) -> StageResult:
    """What became of posts whose words say how a model fails on them."""
    with closing(Store(folder / "answers.sqlite")) as store:
        return run_stage(Guess(), posts(*texts), engine=Scripted(), store=store)


def keys(*lines: str) -> tuple[str, ...]:
    """Keys of these questions, in order."""
    found = request_keys(Scripted().signature(), [request(line) for line in lines])
    return tuple(sorted(key.hex() for key in found))


def test_calls_are_counted_by_reason(tmp_path: Path) -> None:
    """Rows, and the keys of their requests in order; one request of two rows is one key."""
    result = quarantined(tmp_path, "red", "refuse a", "refuse b", "refuse b", "babble c")
    assert failed_calls(result) == {
        "refused": FailedCalls(rows=3, requests=keys("refuse a", "refuse b")),
        "unreadable": FailedCalls(rows=1, requests=keys("babble c")),
    }


def test_without_failures_there_is_nothing(tmp_path: Path) -> None:
    """Not even an empty reason."""
    assert failed_calls(quarantined(tmp_path, "red")) == {}


def test_no_word_is_told(tmp_path: Path) -> None:
    """Neither of the post nor of what the model or the parser said."""
    told = repr(failed_calls(quarantined(tmp_path, "refuse zimtstern", "off zimtstern")))
    assert "zimtstern" not in told
    assert "will not" not in told


def test_of_many_the_first_thousand_are_listed(tmp_path: Path) -> None:
    """The others are counted, so that a release of nothing but failures stays small."""
    lines = [f"refuse {number}" for number in range(MOST_LISTED + 5)]
    (told,) = failed_calls(quarantined(tmp_path, *lines)).values()
    assert (told.rows, told.unlisted) == (MOST_LISTED + 5, 5)
    assert told.requests == keys(*lines)[:MOST_LISTED]


def test_rules_abstain_without_a_call(tmp_path: Path) -> None:
    """Their rows are counted; there is no request that somebody could find again."""
    result = run_stage(Guess(), posts("red", "blue"), engine=make_engine("rules"))
    assert failed_calls(result) == {"needs_model": FailedCalls(rows=2)}
