"""What a release says of itself: failed calls, and what its samples lean towards."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from datasets import Dataset

from echo_hf.engines.base import make_engine
from echo_hf.hub.facts import (
    MOST_LISTED,
    FailedCalls,
    failed_calls,
    measure,
)
from echo_hf.pipeline.answer_store import Store, request_keys
from echo_hf.pipeline.result import StageResult
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.tables import POSTS
from tests.hub.conftest import Samples
from tests.stages_for_tests import Guess, Scripted, request
from tests.stages_for_tests import posts as stage_posts


def quarantined(folder: Path, *texts: str) -> StageResult:
    with closing(Store(folder / "answers.sqlite")) as store:
        return run_stage(Guess(), stage_posts(*texts), engine=Scripted(), store=store)


def keys(*lines: str) -> tuple[str, ...]:
    found = request_keys(Scripted().signature(), [request(line) for line in lines])
    return tuple(sorted(key.hex() for key in found))


def test_calls_are_counted_by_reason(tmp_path: Path) -> None:
    result = quarantined(tmp_path, "red", "refuse a", "refuse b", "refuse b", "babble c")
    assert failed_calls(result) == {
        "refused": FailedCalls(rows=3, requests=keys("refuse a", "refuse b")),
        "unreadable": FailedCalls(rows=1, requests=keys("babble c")),
    }
    assert failed_calls(quarantined(tmp_path, "red")) == {}
    # Rules abstain without a call.
    result = run_stage(Guess(), stage_posts("red", "blue"), engine=make_engine("rules"))
    assert failed_calls(result) == {"needs_model": FailedCalls(rows=2)}


def test_of_many_the_first_thousand_are_listed(tmp_path: Path) -> None:
    lines = [f"refuse {number}" for number in range(MOST_LISTED + 5)]
    (told,) = failed_calls(quarantined(tmp_path, *lines)).values()
    assert (told.rows, told.unlisted) == (MOST_LISTED + 5, 5)
    assert told.requests == keys(*lines)[:MOST_LISTED]


POSTED = [
    {"url": "u1", "lang": "en-US", "platform": "x", "author": "mira"},
    {"url": "u2", "lang": "und", "platform": "x", "author": "mira"},
    {"url": "u3", "lang": "iw", "platform": "bluesky", "author": "mira"},
    {"url": "u4", "lang": None, "platform": None, "author": None},
    {"url": "unused", "lang": "fr", "platform": "x", "author": "jo"},
]


def test_each_sample_is_counted_once_by_its_primary_post(samples: Samples) -> None:
    tasks = {"u1": "edit", "u2": "edit", "u3": None, "u4": "edit", "?": None}
    rows = [{"post_urls": [url, "unused"], "task": task} for url, task in tasks.items()]
    rows[2]["doubts"], rows[4]["doubts"] = ["lacks_input"], ["lacks_input", "roles_contradict"]
    every = samples(*rows, {"post_urls": []})
    configs = {
        "image_to_image": every.select([0, 1, 3]),
        "text_to_image": every.select([]),
        "analysis": every,
    }
    posts = [{**dict.fromkeys(POSTS.columns), **row} for row in POSTED]
    found = measure(configs, Dataset.from_list(posts, features=POSTS.features))
    assert list(found) == ["all", "image_to_image", "text_to_image", "analysis"]
    assert found["all"] == found["analysis"]
    assert found["all"].model_dump() == {
        "samples": 6,
        "languages": {"unknown": 4, "en": 1, "he": 1},
        "platforms": {"unknown": 3, "x": 2, "bluesky": 1},
        "tasks": {"edit": 3, "unknown": 3},
        "doubts": {"lacks_input": 2, "roles_contradict": 1},
        "authors": 2,
        "repeated_authors": 1,
        "unknown_authors": 3,
    }
    assert found["image_to_image"].languages == {"unknown": 2, "en": 1}
    assert found["image_to_image"].repeated_authors == 1
    assert found["text_to_image"].samples == found["text_to_image"].authors == 0
