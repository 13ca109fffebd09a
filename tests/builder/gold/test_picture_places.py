"""Positions of pictures, as whoever annotates counts them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from PIL import Image

from echo_hf.builder.gold.folder import GoldPosts, read_posts
from echo_hf.config.sections import Posts
from echo_hf.images.store import PictureStore
from tests.builder.gold.gold_for_tests import write_lines

URL = "https://example.org/1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a red and a blue picture, the blue one outside the folder of the posts."""
    (tmp_path / "posts").mkdir()
    Image.new("RGB", (4, 4), "red").save(tmp_path / "posts" / "red.png")
    Image.new("RGB", (4, 4), "blue").save(tmp_path / "blue.png")
    return tmp_path / "posts"


def read(folder: Path, *posts: list[dict[str, str]]) -> GoldPosts:
    """A post with these pictures, once for each list."""
    write_lines(folder / "posts.jsonl", [{"url": URL, "pictures": one} for one in posts])
    entry = Posts(source="jsonl", path=folder / "posts.jsonl")
    return read_posts([entry], [URL], PictureStore(folder / "store"))


def test_what_is_not_there_keeps_its_position(folder: Path) -> None:
    """Pictures that cannot be read, equal ones and ones of the web do not move the others."""
    os.mkfifo(folder / "pipe.png")
    (folder / "broken.png").write_bytes(b"no picture")
    found = read(
        folder,
        [
            {"path": "none.png"},
            {"path": "red.png"},
            {"path": "broken.png"},
            {"path": "../blue.png"},
            {"url": "https://example.org/web.png"},
            {"path": "pipe.png"},
            {"path": "red.png", "alt_text": "again"},
        ],
    )
    red = hashlib.sha256((folder / "red.png").read_bytes()).hexdigest()

    assert found.pictures[URL] == (None, red, None, None, None, None, red)


def test_of_two_records_the_fuller_one_counts(folder: Path) -> None:
    """A post that was collected twice is counted in the record that shows more of it."""
    Image.new("RGB", (4, 4), "green").save(folder / "green.png")
    green, red = ({"path": f"{name}.png"} for name in ("green", "red"))
    digests = [
        hashlib.sha256((folder / one["path"]).read_bytes()).hexdigest() for one in (green, red)
    ]

    for posts in ([[red], [green, red]], [[green, red], [red]]):
        assert read(folder, *posts).pictures[URL] == tuple(digests)
