"""Which posts are read for gold."""

from __future__ import annotations

from pathlib import Path

from echo_hf.builder.gold.folder import read_posts
from echo_hf.config.sections import Posts
from echo_hf.images.store import PictureStore
from tests.builder.gold.gold_for_tests import write_lines


def url(name: str) -> str:
    """Address of a post."""
    return f"https://example.org/{name}"


def test_whole_threads_and_no_others_are_read(tmp_path: Path) -> None:
    """Posts above, below and beside the named one are read; a quote and other threads are not."""
    rows = [
        {"url": url("b"), "parent_url": url("a")},
        {"url": url("c"), "parent_url": url("b")},
        {"url": url("d"), "parent_url": url("gone"), "quoted_url": url("b")},
        {"url": url("e"), "parent_url": url("a")},
        {"url": url("f")},
    ]
    write_lines(tmp_path / "posts.jsonl", rows)
    entry = Posts(source="jsonl", path=tmp_path / "posts.jsonl")
    found = read_posts([entry], [url("b")], PictureStore(tmp_path / "pictures"))

    assert set(found.posts["url"]) == {url("b"), url("c"), url("e")}
    # The root was never collected, and is known all the same.
    assert set(found.root_of.items()) == {(url(name), url("a")) for name in "abce"}
    assert "a" not in found.pictures


def test_lines_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    """A bad line may be the post that somebody looks for: it is a reject with its place."""
    (tmp_path / "posts.jsonl").write_text('{"url": "https://example.org/a"}\n{"url": \n', "utf-8")
    entry = Posts(source="jsonl", path=tmp_path / "posts.jsonl")
    found = read_posts([entry], [url("a")], PictureStore(tmp_path / "pictures"))

    assert found.read.rejects["place"] == ["posts.jsonl:2"]
    assert found.read.stats.rejected == {"not_json": 1}


def test_a_circle_of_replies_ends(tmp_path: Path) -> None:
    """Posts that answer each other are one thread."""
    rows = [{"url": url("a"), "parent_url": url("b")}, {"url": url("b"), "parent_url": url("a")}]
    write_lines(tmp_path / "posts.jsonl", rows)
    entry = Posts(source="jsonl", path=tmp_path / "posts.jsonl")
    found = read_posts([entry], [url("a")], PictureStore(tmp_path / "pictures"))

    assert len(set(found.root_of.values())) == 1
    assert set(found.root_of) == {url("a"), url("b")}
