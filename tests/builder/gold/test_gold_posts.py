"""Which posts are read for gold, and where their images stand for whoever annotates."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from PIL import Image

from echo_hf.builder.gold.posts import GoldPosts, read_posts
from echo_hf.config.sections import Posts
from echo_hf.images.store import ImageStore
from tests.builder.gold.gold_for_tests import write_lines


def url(name: str) -> str:
    """Address of a post."""
    return f"https://example.org/{name}"


def read(folder: Path, *rows: dict[str, Any], named: str = "a") -> GoldPosts:
    """The posts of a file of these rows that are read for the one that is named."""
    if rows:
        write_lines(folder / "posts.jsonl", rows)
    entry = Posts(source="jsonl", path=folder / "posts.jsonl")
    return read_posts([entry], [url(named)], ImageStore(folder / "store"))


def test_whole_threads_and_no_others_are_read(tmp_path: Path) -> None:
    """Posts above, below and beside the named one are read; a quote and other threads are not."""
    found = read(
        tmp_path,
        {"url": url("b"), "parent_url": url("a")},
        {"url": url("c"), "parent_url": url("b")},
        {"url": url("d"), "parent_url": url("gone"), "quoted_url": url("b")},
        {"url": url("e"), "parent_url": url("a")},
        {"url": url("f")},
        named="b",
    )

    assert {row["url"] for row in found.posts} == {url("b"), url("c"), url("e")}
    # The root was never collected, and is known all the same.
    assert set(found.root_of.items()) == {(url(name), url("a")) for name in "abce"}
    assert url("a") not in found.images


def test_lines_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    """A bad line may be the post that somebody looks for: it is a reject with its place."""
    (tmp_path / "posts.jsonl").write_text('{"url": "https://example.org/a"}\n{"url": \n', "utf-8")
    found = read(tmp_path)

    assert found.read.rejects["place"] == ["posts.jsonl:2"]
    assert found.read.stats.rejected == {"not_json": 1}


def test_a_circle_of_replies_ends(tmp_path: Path) -> None:
    """Posts that answer each other are one thread."""
    pairs = (("a", "b"), ("b", "a"))
    found = read(tmp_path, *({"url": url(a), "parent_url": url(b)} for a, b in pairs))

    assert len(set(found.root_of.values())) == 1
    assert set(found.root_of) == {url("a"), url("b")}


def test_what_is_not_there_keeps_its_position(tmp_path: Path) -> None:
    """Images that cannot be read, equal ones and ones of the web do not move the others."""
    folder = tmp_path / "posts"
    folder.mkdir()
    Image.new("RGB", (4, 4), "red").save(folder / "red.png")
    Image.new("RGB", (4, 4), "blue").save(tmp_path / "blue.png")
    os.mkfifo(folder / "pipe.png")
    (folder / "broken.png").write_bytes(b"no picture")
    paths = ("none.png", "red.png", "broken.png", "../blue.png", "pipe.png", "red.png")
    images = [{"path": path} for path in paths]
    web = {"url": "https://example.org/web.png"}
    found = read(folder, {"url": url("a"), "pictures": [*images[:4], web, *images[4:]]})
    red = hashlib.sha256((folder / "red.png").read_bytes()).hexdigest()

    assert found.images[url("a")] == (None, red, None, None, None, None, red)


def test_of_two_records_the_fuller_one_counts(tmp_path: Path) -> None:
    """A post that was collected twice is counted in the record that shows more of it."""
    for name in ("green", "red"):
        Image.new("RGB", (4, 4), name).save(tmp_path / f"{name}.png")
    green, red = ({"path": f"{name}.png"} for name in ("green", "red"))
    digests = [
        hashlib.sha256((tmp_path / one["path"]).read_bytes()).hexdigest() for one in (green, red)
    ]

    for both in ([[red], [green, red]], [[green, red], [red]]):
        found = read(tmp_path, *({"url": url("a"), "pictures": one} for one in both))
        assert found.images[url("a")] == tuple(digests)
