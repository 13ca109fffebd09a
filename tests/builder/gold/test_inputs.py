"""The input of each stage, made from gold."""

from __future__ import annotations

import copy
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from echo_hf.builder.gold.folder import read_gold
from echo_hf.builder.gold.posts import read_posts
from echo_hf.builder.gold.stages import CHECKS, Material, sample_key
from echo_hf.config.loading import load_config
from echo_hf.config.sections import Posts
from echo_hf.config.systems import shipped_config
from echo_hf.images.store import ImageStore
from tests.builder.gold.gold_for_tests import (
    BUNDLED,
    GOLD,
    KITE,
    KITE_PROMPT,
    OTTER,
    OTTER_PROMPT,
    POSTS,
    REPLY,
    read_lines,
    write_gold,
    write_lines,
)


def read(folder: Path, **changed: list[Any]) -> dict[str, list[Any]]:
    """What each stage reads for a gold folder of which some files are written anew."""
    for name, rows in changed.items():
        write_lines(folder / f"{name}.jsonl", rows)
    gold = read_gold(folder)
    own = folder / "posts.jsonl"
    entry = Posts(source="jsonl", path=own) if own.exists() else Posts(source="quickstart")
    named = {url for line in gold.every() for url in line.addresses}
    posts = read_posts([entry], named, ImageStore(folder.parent / "store"))
    given = Material(load_config(shipped_config()), gold, posts)
    return {name: list(check.read(given)) for name, check in CHECKS.items()}


def by_key(samples: list[Any]) -> dict[tuple[str, str], Any]:
    """Rows by the sample of gold that each was made from."""
    return {sample_key(row): row for row in samples}


def digest(folder: Path, name: str) -> str:
    """Sha256 of an image."""
    return hashlib.sha256((folder / "pictures" / f"{name}.png").read_bytes()).hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A gold folder."""
    return write_gold(tmp_path)


def test_posts_to_score(folder: Path) -> None:
    """The posts with a line, as they were written, whether or not a search found them."""
    scores = [{"url": OTTER, "score": 5}, {"url": REPLY, "score": 2}]
    rows = read(folder, relevance=scores)["relevance"]

    assert {row["url"]: row["text"] for row in rows} == {
        post["url"]: post["text"] for post in POSTS if post["url"] in (OTTER, REPLY)
    }
    # An empty list would keep the stage from asking.
    assert {row["url"]: row["keywords"] for row in rows} == {OTTER: ["tern"], REPLY: None}


def test_samples_to_look_at(folder: Path) -> None:
    """Each sample with its posts, all their images, and what was said; no role is given away."""
    stages = read(folder)
    samples = by_key(stages["roles"])
    kite, otter = samples[KITE, KITE_PROMPT], samples[OTTER, OTTER_PROMPT]

    assert kite["output_images"] == [digest(folder, "before"), digest(folder, "after")]
    assert kite["input_images"] == []
    assert [one["post_url"] for one in otter["community_feedback"]] == [REPLY]
    assert otter["community_feedback"][0]["feedback"] == POSTS[1]["text"]
    assert [post["url"] for post in otter["context"]] == [OTTER, REPLY]
    assert (otter["prompt"], otter["prompt_modified"]) == (OTTER_PROMPT, False)
    # `feedback` and `safety` read them with the roles that people gave their images.
    for name in ("feedback", "safety"):
        judged = by_key(stages[name])
        assert judged[KITE, KITE_PROMPT]["input_images"] == [digest(folder, "before")]
        assert judged[KITE, KITE_PROMPT]["output_images"] == [digest(folder, "after")]
        assert judged[OTTER, OTTER_PROMPT]["community_feedback"][0]["post_url"] == REPLY


def test_what_nobody_wrote_down_is_left_out(folder: Path) -> None:
    """Threads without a line of samples, and samples without one of roles."""
    stages = read(
        folder,
        extract=GOLD["extract"],
        roles=GOLD["roles"][:1],
        safety=GOLD["safety"][:1],
        tasks=GOLD["tasks"][:1],
    )
    assert [sample_key(row)[0] for row in stages["roles"]] == [OTTER]
    for name in ("roles", "safety", "tasks"):
        (folder / f"{name}.jsonl").unlink()
    stages = read(folder, extract=GOLD["extract"][:1])
    (thread,) = stages["extract"]

    assert [post["url"] for post in thread["posts"]] == [OTTER, REPLY]
    assert len(stages["roles"]) == 0


def test_samples_to_take_apart(folder: Path) -> None:
    """Those whose conversation or collage people marked, with the roles of the other images."""
    line = copy.deepcopy(GOLD["roles"][1])
    line["collage"] = {"post_url": KITE, "index": 1}
    line["pictures"][1]["role"] = "neither"
    (row,) = read(folder, roles=[GOLD["roles"][0], line])["screenshots"]

    assert sample_key(row) == (KITE, KITE_PROMPT)
    assert (row["screenshot"], row["is_screenshot"]) == (digest(folder, "after"), False)
    assert (row["input_images"], row["output_images"]) == ([digest(folder, "before")], [])


def test_a_completion_without_its_image_is_none(folder: Path) -> None:
    """Where the image's bytes are not there, nothing shows the completion."""
    (folder / "pictures" / "after.png").unlink()
    filled = [
        {"prompt": f"{name} kite", "output": {"post_url": KITE, "index": index}}
        for index, name in enumerate(("a red", "a blue"))
    ]
    rows = read(folder, roles=[{**GOLD["roles"][1], "filled": filled}])["feedback"]

    assert [(row["prompt"], row["prompt_fill_blank"]) for row in rows] == [("a red kite", True)]


def test_a_thread_of_any_length_is_one_input(folder: Path) -> None:
    """More posts than an answer can name, each with feedback: the sample has them all."""
    replies = [
        {"url": f"https://example.org/r{number:03}", "text": f"great {number}", "parent_url": OTTER}
        for number in range(300)
    ]
    line = copy.deepcopy(GOLD["extract"][0])
    line["samples"][0]["feedback"] = [reply["url"] for reply in replies]
    rows = read(folder, posts=[*POSTS, *replies], extract=[line])["roles"]

    said = {one["post_url"] for one in rows[0]["community_feedback"]}
    assert said == {reply["url"] for reply in replies}


def test_the_bundled_templates_are_completed(tmp_path: Path) -> None:
    """Each completed prompt is a row of its own, with the outputs that show it."""
    (tmp_path / "gold").symlink_to(BUNDLED / "gold")
    stages = read(tmp_path / "gold")
    raw = read_lines(BUNDLED / "gold" / "roles.jsonl")
    filled = [one["prompt"] for line in raw for one in line["filled"]]
    rows = stages["feedback"]
    completions = [row for row in rows if row["prompt_fill_blank"]]

    assert len(stages["roles"]) == len(raw)
    assert sorted(row["prompt"] for row in completions) == sorted(set(filled))
    assert sum(len(row["output_images"]) for row in completions) == len(filled)
    assert len({row["id"] for row in rows}) == len(rows)
    assert all("roles" in json.loads(row["provenance"]) for row in completions)
