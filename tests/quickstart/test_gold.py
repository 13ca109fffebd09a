"""What people wrote down about the bundled posts is complete; check-engine reads the rest."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, get_args

import pytest
from PIL import Image

from echo_hf.curate.feedback import TaskName

Row = dict[str, Any]
CORPUS = Path(__file__).resolve().parents[2] / "echo_hf" / "quickstart"
GOLD = CORPUS / "gold"
FILES = ("relevance", "extract", "roles", "screenshots", "feedback", "tasks", "safety")
KEPT = (4, 5)
SLOT = re.compile(r'\[[A-Z]+\]|<\w+>|\{argument name="\w+" default="[^"]*"\}|\(\w+\)|【\w+】')


def lines(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


POSTS = {post["url"]: post for post in lines(CORPUS / "posts.jsonl")}
RELEVANCE, EXTRACT, ROLES, SCREENSHOTS, FEEDBACK, TASK_ROWS, SAFETY = (
    lines(GOLD / f"{name}.jsonl") for name in FILES
)
SAMPLES = [
    {**sample, "root_url": thread["root_url"]} for thread in EXTRACT for sample in thread["samples"]
]


def root_of(url: str) -> str:
    while parent := POSTS.get(url, {}).get("parent_url"):
        url = parent
    return url


def posts_of(root: str) -> list[Row]:
    return [post for url, post in POSTS.items() if root_of(url) == root]


def key(row: Row) -> tuple[str, str]:
    return row["root_url"], row["prompt"]


def file_of(reference: Row) -> Path:
    return CORPUS / str(POSTS[reference["post_url"]]["pictures"][reference["index"]]["path"])


@pytest.mark.parametrize("name", FILES)
def test_halves_follow_from_the_thread(name: str) -> None:
    for row in lines(GOLD / f"{name}.jsonl"):
        root = row.get("root_url") or root_of(row.get("url") or row["post_url"])
        first = hashlib.sha256(f"gold:{root}".encode()).digest()[0]
        assert row["half"] == ("tune" if first < 128 else "held_out"), root


def test_every_found_post_has_one_score_and_all_feedback_one_verdict() -> None:
    found = sorted(url for url, post in POSTS.items() if post.get("keywords"))
    assert sorted(row["url"] for row in RELEVANCE) == found
    listed = [url for one in SAMPLES for url in (*one["feedback"], *one["feedback_optional"])]
    assert Counter(row["post_url"] for row in FEEDBACK) == Counter(listed)


def test_every_kept_thread_has_samples_and_no_other() -> None:
    kept = {root_of(row["url"]) for row in RELEVANCE if row["score"] in KEPT}
    assert Counter(row["root_url"] for row in EXTRACT) == dict.fromkeys(kept, 1)
    assert all(any(not one["optional"] for one in row["samples"]) for row in EXTRACT)


def test_every_sample_has_one_line() -> None:
    keys = [key(sample) for sample in SAMPLES]
    assert [key(row) for row in ROLES] == [key(row) for row in SAFETY] == keys


def test_every_image_of_a_kept_thread_has_one_role() -> None:
    listed = Counter((one["post_url"], one["index"]) for row in ROLES for one in row["pictures"])
    posts = (post for row in EXTRACT for post in posts_of(row["root_url"]))
    assert listed == Counter(
        (post["url"], index) for post in posts for index in range(len(post.get("pictures", [])))
    )
    assert {one["role"] for row in ROLES for one in row["pictures"]} == {
        *("input", "output", "neither")
    }
    assert all(bool(SLOT.search(row["prompt"])) is bool(row["filled"]) for row in ROLES)


@pytest.mark.parametrize("row", SCREENSHOTS, ids=lambda row: row["post_url"][-6:])
def test_boxes_hold_images(row: Row) -> None:
    with Image.open(file_of(row)) as file:
        image = file.convert("RGB")
    boxes = [*row["inputs"], *row["outputs"]]
    for left, top, right, bottom in boxes:
        assert 0 <= left < right <= image.width
        assert 0 <= top < bottom <= image.height
        colors = image.crop((left, top, right, bottom)).quantize(16).getcolors()
        assert colors is not None
        assert max(count for count, _ in colors) < 0.7 * (right - left) * (bottom - top)
    for number, (left, top, right, bottom) in enumerate(boxes):
        for other in boxes[number + 1 :]:
            apart = right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
            assert apart, (boxes[number], other)


def test_every_request_for_an_image_has_a_task() -> None:
    asked = [
        key(sample)
        for sample, row in zip(SAMPLES, ROLES, strict=True)
        if sample["quality"] == "Benchmark" or row["conversation"]
    ]
    assert [key(row) for row in TASK_ROWS] == asked
    assert {row["task"] for row in TASK_ROWS} == {*get_args(TaskName)}
    assert sum(row["kind"] == "probe" for row in TASK_ROWS) == 2


def test_hostile_posts_are_in_no_sample() -> None:
    named = {url for one in SAMPLES for url in (*one["post_urls"], *one["feedback"])}
    for url, post in POSTS.items():
        words = json.dumps([post.get("text"), post.get("pictures")])
        if "</thread>" in words or "</post>" in words or "\\u001b" in words:
            assert url not in named
