"""Collection: every record accounted for, images taken in from beside the posts alone."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from echo_hf.collect.collect import Collect
from echo_hf.collect.records import read_records
from echo_hf.collect.takedown import Tombstones, hash_url
from echo_hf.config.sections import PostsSource
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.stage_runner import run_stage
from tests.images_for_tests import encoded

Rows = list[dict[str, Any]]
CollectLines = Callable[..., Rows]
URL = "https://example.org/a"


def png(color: str = "teal") -> bytes:
    return encoded(Image.new("RGB", (3, 2), color), "PNG")


def post(**fields: Any) -> str:
    return json.dumps({"url": URL, **fields})


def of_images(collect_lines: CollectLines, folder: Path, *images: Any) -> tuple[Rows, Rows]:
    first, *rest = collect_lines("jsonl", [post(pictures=list(images))], folder=folder)
    return first["pictures"], rest


STATUS = {"uri": "https://art.example/users/mira/statuses/11111", "content": "<p>a</p>"}


@pytest.mark.parametrize(
    ("source", "record"),
    [
        ("jsonl", {"url": URL, "edited": "2026-03-02T17:12:40Z"}),
        ("mastodon", {**STATUS, "visibility": "public", "edited_at": "2026-03-02T17:12:40.000Z"}),
        ("reddit", {"id": "1k2abc", "title": "A fox", "is_self": True, "edited": 1772471560.0}),
    ],
)
def test_when_a_text_was_last_changed_is_read(
    collect_lines: CollectLines, source: str, record: dict[str, Any]
) -> None:
    (row,) = collect_lines(source, [json.dumps(record)])

    assert row["edited"].isoformat() == "2026-03-02T17:12:40+00:00"


def test_a_reject_that_names_a_forgotten_post_keeps_nothing_of_it(
    collect: Collect, tmp_path: Path
) -> None:
    (tmp_path / "posts.jsonl").write_text(post(platform="x") + "\n", "utf-8")
    records = read_records([PostsSource(source="jsonl", path=tmp_path / "posts.jsonl")])
    forgotten = Tombstones(frozenset({hash_url(URL)}))
    before, after = (
        run_stage(replace(collect, forgotten=one), records) for one in (Tombstones(), forgotten)
    )

    assert before.rejects["_detail"][:] == [f"'x': {URL}"]
    assert (len(after.rejects), after.notices["_reason"][:]) == (0, ["forgotten"])
    assert not after.notices["_detail"][0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder, outside = tmp_path / "posts", tmp_path / "secret"
    (folder / "folder").mkdir(parents=True)
    outside.mkdir()
    (outside / "s.png").write_bytes(png("#123456"))
    (folder / "link.png").symlink_to(outside / "s.png")
    (folder / "sub").symlink_to(outside)
    (folder / "circle").symlink_to("circle")
    os.mkfifo(folder / "pipe")
    for name, data in (("fox", png()), ("empty", b""), ("text", b"none"), ("cut", png()[:40])):
        (folder / f"{name}.png").write_bytes(data)
    with (folder / "huge.png").open("wb") as file:
        file.truncate(2**40)
    return folder


REASONS = {
    "picture_outside": ("/s.png", "../secret/s.png", "link.png", "sub/s.png"),
    "picture_not_found": ("none.png", "folder", "pipe", "circle", "x" * 5000, "fox.png/inner"),
    "broken_picture": ("empty.png", "text.png", "cut.png", "huge.png"),
}


@pytest.mark.parametrize("reason", REASONS)
def test_an_image_that_cannot_be_read_or_lies_outside_is_noted(
    reason: str, folder: Path, collect: Collect, collect_lines: CollectLines
) -> None:
    for name in REASONS[reason]:
        path = str(folder.parent / "secret/s.png") if name == "/s.png" else name
        images, rest = of_images(collect_lines, folder, {"path": path, "alt_text": "a fox"})

        assert images == [{"sha256": None, "url": None, "alt_text": "a fox"}]
        assert [(row["_status"], row["_reason"]) for row in rest] == [("noted", reason)]
        assert rest[0]["_detail"].startswith(repr(path))
        assert str(folder) not in rest[0]["_detail"].removeprefix(repr(path))
    assert not collect.images.path(hashlib.sha256(png("#123456")).hexdigest()).exists()


def test_a_full_disk_is_not_taken_for_a_missing_image(
    record_table: Callable[..., pa.Table], tmp_path: Path
) -> None:
    (tmp_path / "fox.png").write_bytes(png())
    (tmp_path / "store").write_text("a file where the folder should be")
    table = record_table("jsonl", [post(pictures=[{"path": "fox.png"}])], folder=tmp_path)

    with pytest.raises(OSError, match="store"):
        Collect(ImageStore(tmp_path / "store"))(table)


def test_images_are_kept_as_the_bytes_they_were_and_equal_bytes_once(
    collect: Collect, collect_lines: CollectLines, tmp_path: Path
) -> None:
    for name, color in (("a.png", "teal"), ("b.png", "teal"), ("c.png", "navy")):
        (tmp_path / name).write_bytes(png(color))
    images, rest = of_images(
        collect_lines,
        tmp_path,
        {"path": "a.png", "alt_text": "one"},
        {"path": "c.png"},
        {"path": "b.png", "url": "https://p.example/b", "alt_text": "two"},
        {"url": "https://p.example/c"},
        {"url": "https://p.example/c", "alt_text": "three"},
        {"path": "none.png", "alt_text": "lost 1"},
        {"path": "none.png", "alt_text": "lost 2"},
    )
    teal, navy = (hashlib.sha256(png(color)).hexdigest() for color in ("teal", "navy"))

    assert [tuple(one.values()) for one in images] == [
        (teal, "https://p.example/b", "one\ntwo"),
        (navy, None, None),
        (None, "https://p.example/c", "three"),
        (None, None, "lost 1"),
        (None, None, "lost 2"),
    ]
    assert [row["_reason"] for row in rest] == ["picture_not_found"] * 2
    assert collect.images.open(teal) == png()


def test_a_detail_holds_only_what_a_table_can(collect_lines: CollectLines) -> None:
    rows = collect_lines("jsonl", [r'{"url": "https://example.org/a", "x\ud83d": 1}'])

    assert [row["_detail"] for row in rows] == [None, r"x\ud83d"]


@pytest.mark.parametrize("name", ["x", " X ", "Twitter", "twitter.com"])
def test_a_post_that_says_it_is_of_x_needs_an_address_there(
    collect_lines: CollectLines, name: str
) -> None:
    elsewhere = "https://mirror.example/mira/status/7"
    urls = (elsewhere, "https://x.com/mira_draws/status/7")
    first, second = collect_lines("jsonl", [post(url=url, platform=name) for url in urls])

    assert (first["_status"], first["_reason"]) == ("rejected", "other_platform")
    assert elsewhere in first["_detail"]
    assert (second["_status"], second["url"]) == ("kept", "https://x.com/i/status/7")


LINES = [
    post(text="a"),
    post(url="https://x.com/m/status/1", timestamp="never"),
    post(pictures=[{"path": "../x.png"}], text="b"),
    "{",
    "[]",
    '{"data": [{"id": "1", "text": "c"}], "meta": {}}',
]


@given(st.lists(st.sampled_from(LINES), max_size=12), st.integers(1, 5))
def test_batches_make_no_difference(
    collect: Collect, record_table: Callable[..., pa.Table], lines: list[str], size: int
) -> None:
    table = record_table("jsonl", lines)
    whole = collect(table)
    pieces = [collect(table.slice(at, size)) for at in range(0, len(lines), size)]

    assert pa.concat_tables([whole.slice(0, 0), *pieces]).equals(whole)
    if lines:
        dataset = Dataset(table)
        arguments = {**collect.map_arguments(dataset), "batch_size": size}
        mapped = dataset.with_format("arrow").map(collect, **arguments)
        assert mapped.with_format("arrow")[:].replace_schema_metadata(None).equals(whole)


def test_the_digest_does_not_depend_on_where_images_go(tmp_path: Path) -> None:
    assert len({Collect(ImageStore(tmp_path / name)).digest() for name in "ab"}) == 1
