"""The input of each stage, made from gold."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from echo_hf.builder.gold.consistency import addresses_of
from echo_hf.builder.gold.folder import Gold, GoldPosts, read_gold, read_posts
from echo_hf.builder.gold.inputs import (
    posts_to_score,
    sample_key,
    samples_to_judge,
    samples_to_look_at,
    samples_to_take_apart,
    threads_to_read,
)
from echo_hf.config.sections import Posts, Target
from echo_hf.images.store import PictureStore
from tests.builder.gold.gold_for_tests import (
    BUNDLED,
    GOLD,
    KITE,
    KITE_PROMPT,
    OTTER,
    OTTER_PROMPT,
    POSTS,
    REPLY,
    write_gold,
    write_lines,
)

TARGET = Target(name="Tern 2", developer="Sandbar", released="2026-05-04")


def read(folder: Path) -> tuple[Gold, GoldPosts]:
    """A gold folder and its posts."""
    lines = read_gold(folder)
    posts = Posts(source="jsonl", path=folder / "posts.jsonl")
    return lines, read_posts([posts], addresses_of(lines), PictureStore(folder / "store"))


def digest(folder: Path, name: str) -> str:
    """Sha256 of a picture."""
    return hashlib.sha256((folder / "pictures" / f"{name}.png").read_bytes()).hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A gold folder."""
    return write_gold(tmp_path)


def test_posts_to_score(folder: Path) -> None:
    """The posts with a line, as they were written, whether or not a search found them."""
    write_lines(
        folder / "relevance.jsonl", [{"url": OTTER, "score": 5}, {"url": REPLY, "score": 2}]
    )
    gold, posts = read(folder)
    rows = posts_to_score(gold.relevance or (), posts).to_list()

    assert {row["url"]: row["text"] for row in rows} == {
        post["url"]: post["text"] for post in POSTS if post["url"] in (OTTER, REPLY)
    }
    # An empty list would keep the stage from asking.
    assert {row["url"]: row["keywords"] for row in rows} == {OTTER: ["tern"], REPLY: None}


def test_threads_to_read(folder: Path) -> None:
    """The threads with a line, whole."""
    gold, posts = read(folder)
    rows = threads_to_read((gold.extract or ())[:1], posts).to_list()

    assert [row["root_url"] for row in rows] == [OTTER]
    assert [post["url"] for post in rows[0]["posts"]] == [OTTER, REPLY]


def test_samples_to_look_at(folder: Path) -> None:
    """Each sample with its posts, all their pictures, and what was said; no role is given away."""
    gold, posts = read(folder)
    samples = samples_to_look_at(gold.extract or (), gold.roles or (), posts, TARGET)
    by_key = {sample_key(row): row for row in samples.to_list()}
    kite, otter = by_key[KITE, KITE_PROMPT], by_key[OTTER, OTTER_PROMPT]

    assert kite["output_images"] == [digest(folder, "before"), digest(folder, "after")]
    assert kite["input_images"] == []
    assert [one["post_url"] for one in otter["community_feedback"]] == [REPLY]
    assert otter["community_feedback"][0]["feedback"] == POSTS[1]["text"]
    assert [post["url"] for post in otter["context"]] == [OTTER, REPLY]
    assert (otter["prompt"], otter["prompt_modified"]) == (OTTER_PROMPT, False)


def test_a_sample_without_roles_is_left_out(folder: Path) -> None:
    """Nobody said what its pictures are."""
    gold, posts = read(folder)
    samples = samples_to_look_at(gold.extract or (), (gold.roles or ())[:1], posts, TARGET)

    assert [sample_key(row)[0] for row in samples.to_list()] == [OTTER]
    assert len(samples_to_look_at((), (), posts, TARGET)) == 0


def test_samples_to_judge(folder: Path) -> None:
    """Each sample with the roles that people gave its pictures."""
    gold, posts = read(folder)
    samples = samples_to_look_at(gold.extract or (), gold.roles or (), posts, TARGET)
    rows = samples_to_judge(samples, gold.roles or (), posts).to_list()
    by_key = {sample_key(row): row for row in rows}

    assert by_key[KITE, KITE_PROMPT]["input_images"] == [digest(folder, "before")]
    assert by_key[KITE, KITE_PROMPT]["output_images"] == [digest(folder, "after")]
    assert by_key[OTTER, OTTER_PROMPT]["community_feedback"][0]["post_url"] == REPLY


def test_samples_to_take_apart(folder: Path) -> None:
    """Those whose conversation or collage people marked, with the roles of the other pictures."""
    line = json.loads(json.dumps(GOLD["roles"][1]))
    line["collage"] = {"post_url": KITE, "index": 1}
    line["pictures"][1]["role"] = "neither"
    write_lines(folder / "roles.jsonl", [GOLD["roles"][0], line])
    gold, posts = read(folder)
    samples = samples_to_look_at(gold.extract or (), gold.roles or (), posts, TARGET)
    (row,) = samples_to_take_apart(samples, gold.roles or (), posts).to_list()

    assert sample_key(row) == (KITE, KITE_PROMPT)
    assert (row["screenshot"], row["is_screenshot"]) == (digest(folder, "after"), False)
    assert (row["input_images"], row["output_images"]) == ([digest(folder, "before")], [])


def test_a_completion_without_its_picture_is_none(tmp_path: Path) -> None:
    """Where the picture's bytes are not there, nothing shows the completion."""
    folder = write_gold(tmp_path)
    (folder / "pictures" / "after.png").unlink()
    line = json.loads(json.dumps(GOLD["roles"][1]))
    line["filled"] = [
        {"prompt": f"{name} kite", "output": {"post_url": KITE, "index": index}}
        for index, name in enumerate(("a red", "a blue"))
    ]
    write_lines(folder / "roles.jsonl", [line])
    gold, posts = read(folder)
    samples = samples_to_look_at(gold.extract or (), gold.roles or (), posts, TARGET)
    rows = samples_to_judge(samples, gold.roles or (), posts).to_list()

    assert [(row["prompt"], row["prompt_fill_blank"]) for row in rows] == [("a red kite", True)]


def test_a_thread_of_any_length_is_one_input(tmp_path: Path) -> None:
    """More posts than an answer can name, each with feedback: the sample has them all."""
    folder = write_gold(tmp_path)
    replies = [
        {"url": f"https://example.org/r{number:03}", "text": f"great {number}", "parent_url": OTTER}
        for number in range(300)
    ]
    write_lines(folder / "posts.jsonl", [*POSTS, *replies])
    line = json.loads(json.dumps(GOLD["extract"][0]))
    line["samples"][0]["feedback"] = [reply["url"] for reply in replies]
    write_lines(folder / "extract.jsonl", [line])
    gold, posts = read(folder)
    samples = samples_to_look_at(gold.extract or (), gold.roles or (), posts, TARGET)
    said = samples.to_list()[0]["community_feedback"]

    assert {one["post_url"] for one in said} == {reply["url"] for reply in replies}


def test_the_bundled_templates_are_completed(tmp_path: Path) -> None:
    """Each completed prompt is a row of its own, with the outputs that show it."""
    gold = read_gold(BUNDLED / "gold")
    entry = Posts(source="quickstart")
    posts = read_posts([entry], addresses_of(gold), PictureStore(tmp_path))
    samples = samples_to_look_at(gold.extract or (), gold.roles or (), posts, TARGET)
    rows = samples_to_judge(samples, gold.roles or (), posts).to_list()
    raw = [json.loads(line) for line in (BUNDLED / "gold" / "roles.jsonl").read_text().splitlines()]
    filled = [(one["prompt"], 1) for line in raw for one in line["filled"]]

    assert len(samples) == len(raw)
    assert sorted(row["prompt"] for row in rows if row["prompt_fill_blank"]) == sorted(
        {prompt for prompt, _ in filled}
    )
    assert sum(len(row["output_images"]) for row in rows if row["prompt_fill_blank"]) == len(filled)
    assert len({row["id"] for row in rows}) == len(rows)
