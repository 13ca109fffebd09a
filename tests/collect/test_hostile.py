"""What strangers write breaks nothing: every source, the merge, and the trees after it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from echo_hf.collect.collect import Collect, Merge
from echo_hf.collect.records import read_records
from echo_hf.collect.sources.base import source_names
from echo_hf.config.collection import Columns
from echo_hf.config.sections import Posts
from echo_hf.pipeline.result import StageResult
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.samples.threads import Threads
from echo_hf.tables import POSTS
from tests.collect.hostile_posts import FORMS, Form, Said

BUNDLED = {"quickstart"}  # reads our own format, and no other file
SOURCES = sorted(set(source_names()) - BUNDLED)
Row = dict[str, Any]
Joined = Callable[[str, Sequence[Said]], tuple[dict[str, Row], StageResult, list[Row]]]
MARK = "in the place of this stands what nests"
OVERRIDE = "\u202efox\u202c a\u0007b\u001b[31m\u200b\ufeffc"


@pytest.fixture
def joined(collect: Collect, tmp_path: Path) -> Joined:
    """Posts of a source by address, what collection said, and the rows of the trees."""

    def run(source: str, posts: Sequence[Said]) -> tuple[dict[str, Row], StageResult, list[Row]]:
        form = FORMS[source]
        path = tmp_path / "posts.jsonl"
        path.write_text(form.write(posts), "utf-8")
        columns = Columns.model_validate(form.columns) if form.columns else None
        read = run_stage(collect, read_records([Posts(source=source, path=path, columns=columns)]))
        merged = run_stage(Merge(), read.dataset).dataset
        table = merged.with_format("arrow")[:]
        at = POSTS.schema.get_field_index("relevance")
        score = pa.array([{"score": 5, "note": None}] * table.num_rows, POSTS.schema.field(at).type)
        trees = Threads()(table.set_column(at, POSTS.schema.field(at), score))
        return {row["url"]: row for row in merged}, read, trees.to_pylist()

    return run


def in_trees(rows: Sequence[Row]) -> list[str]:
    """The address of each post of each kept tree."""
    return [post["url"] for row in rows if row["_status"] == "kept" for post in row["posts"]]


def form_of(source: str) -> Form:
    """How a source writes posts."""
    return FORMS[source]


def test_every_source_is_tried() -> None:
    """A new source needs a form here, so that it meets these posts as well."""
    assert set(SOURCES) <= set(FORMS)


@pytest.mark.parametrize("source", SOURCES)
class TestHostile:
    """The same posts through every source."""

    def test_a_post_that_answers_itself(self, joined: Joined, source: str) -> None:
        """The link is cut and told."""
        posts, _, trees = joined(source, [Said(1, parent=1), Said(2, parent=1)])
        first, second = map(form_of(source).url, (1, 2))

        assert set(posts) == {first, second}
        assert sorted(in_trees(trees)) == sorted([first, second])
        assert [row["_reason"] for row in trees if row["_status"] == "noted"] == ["self_parent"]

    def test_posts_that_answer_each_other_in_a_circle(self, joined: Joined, source: str) -> None:
        """It is one tree, cut once."""
        posts, _, trees = joined(source, [Said(1, 3), Said(2, 1), Said(3, 2)])

        assert (
            sorted(in_trees(trees)) == sorted(posts) == sorted(map(form_of(source).url, (1, 2, 3)))
        )
        assert [row["_reason"] for row in trees if row["_status"] == "noted"] == ["cycle"]

    def test_a_chain_of_ten_thousand(self, joined: Joined, source: str) -> None:
        """Each post is one level below the one that it answers."""
        chain = [Said(n, n - 1 if n else None) for n in range(10_000)]
        posts, _, trees = joined(source, chain)
        (tree,) = (row for row in trees if row["_status"] == "kept")
        own = [post for post in tree["posts"] if post["url"] in posts]
        above = tree["posts"][0]["url"] not in posts  # Reddit's submission, known by its name

        assert len(posts) == len(own) == 10_000
        url = form_of(source).url
        assert [post["url"] for post in own] == [url(n) for n in range(10_000)]
        assert [post["depth"] for post in own] == list(range(above, 10_000 + above))

    @pytest.mark.parametrize("claimed", [1_000_000, 2**70, -1, 1.5, "many", [1], None])
    def test_a_million_replies_claimed(self, joined: Joined, source: str, claimed: Any) -> None:
        """A count is a count, believed or not; what is none is told; nothing waits for them."""
        posts, read, _ = joined(source, [Said(1, replies=claimed)])
        (post,) = posts.values()
        counted = (post["engagement"] or {}).get("replies")
        usable = claimed == 1_000_000 and form_of(source).replies

        assert counted == (claimed if usable else None)
        told = form_of(source).replies and claimed not in (None, 1_000_000)
        assert set(read.notices["_reason"]) == ({"bad_field"} if told else set())

    def test_control_characters_and_overrides(self, joined: Joined, source: str) -> None:
        """They stay what somebody wrote; whatever shows them escapes them."""
        posts, _, _ = joined(source, [Said(1, text=OVERRIDE, author=OVERRIDE)])
        (post,) = posts.values()

        assert (post["text"], post["author"]) == (OVERRIDE, OVERRIDE)

    def test_what_no_table_can_hold(self, joined: Joined, source: str) -> None:
        """NUL and half characters are taken out of the text, and that is told."""
        posts, read, trees = joined(source, [Said(1, text="a\x00b\ud83dc"), Said(2)])

        assert posts[form_of(source).url(1)]["text"] == "ab?c"
        assert set(read.notices["_reason"]) == {"bad_field"}
        assert len(in_trees(trees)) >= 2

    def test_a_text_of_a_hundred_kilobytes(self, joined: Joined, source: str) -> None:
        """Nothing is cut."""
        text = "a fox & <b> 狐 " * 9000 + "."
        posts, _, _ = joined(source, [Said(1, text=text)])
        (post,) = posts.values()

        assert len(text.encode()) > 100_000
        assert post["text"] == text

    @pytest.mark.parametrize(
        "address",
        ["javascript:alert(1)", "data:image/png;base64,AA", "https://", "//p.example/a.png\\",
         "http://[", "file:///etc/passwd", "https://p.example/\u202egnp.exe", "a" * 5000],
    )  # fmt: skip
    def test_an_image_whose_address_is_none(
        self, joined: Joined, source: str, address: str
    ) -> None:
        """The post stays; the image has no address, or one in plain letters, and that is told."""
        posts, read, trees = joined(source, [Said(1, image=address)])
        (post,) = posts.values()

        assert form_of(source).url(1) in in_trees(trees)
        for image in post["pictures"]:
            assert image["url"] is None or image["url"].startswith("https://p.example/%E2%80")
            assert image["sha256"] is None
        kept = any(image["url"] for image in post["pictures"])
        assert bool(read.notices["_reason"]) == (form_of(source).images and not kept)

    @pytest.mark.parametrize("depth", [30, 900, 960, 980])
    def test_a_field_that_nests_as_deep_as_python_goes(
        self, collect: Collect, tmp_path: Path, source: str, depth: int
    ) -> None:
        """Any field of a post: each line is read or rejected, and the good one after them stays."""
        form = form_of(source)
        text = form.write([Said(1, parent=2, image="https://p.example/a.png", replies=3)])
        lines = [line for line in text.splitlines() if line.strip()]
        marked = [mark for line in lines for mark in with_mark(json.loads(line))]
        deep = "[" * depth + "]" * depth
        bad = [json.dumps(one).replace(json.dumps(MARK), deep) for one in marked]
        path = tmp_path / "posts.jsonl"
        path.write_text("\n".join([*bad, form.write([Said(7)])]), "utf-8")
        columns = Columns.model_validate(form.columns) if form.columns else None
        read = run_stage(collect, read_records([Posts(source=source, path=path, columns=columns)]))

        assert len(bad) > 5
        assert form.url(7) in read.dataset["url"][:]
        assert len(read.dataset) + sum(read.stats.rejected.values()) >= len(bad)


def with_mark(value: Any) -> Iterator[Any]:
    """A decoded JSON value, each time with a mark in the place of another part of it."""
    yield MARK
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from ({**value, name: one} for one in with_mark(inner))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from ([*value[:at], one, *value[at + 1 :]] for one in with_mark(inner))
