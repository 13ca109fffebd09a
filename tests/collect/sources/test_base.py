"""What holds of every source: found by name, total, and unmoved by hostile records."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.collect.collect import Collect
from echo_hf.collect.records import read_records
from echo_hf.collect.sources.base import SOURCES as REGISTRY
from echo_hf.collect.sources.base import PostNotice, PostReject, split_json
from echo_hf.config.collection import SourceColumns
from echo_hf.config.sections import PostsSource
from echo_hf.pipeline.result import StageResult
from echo_hf.pipeline.stage_runner import run_stage
from tests.collect.hostile_posts import FORMS, Said

BUNDLED = {"quickstart"}  # reads our own format, and no other file
SOURCES = sorted(set(REGISTRY.list_names()) - BUNDLED)
MARK = "in the place of this stands what nests"
POSTS = [Said(1, image="https://p.example/a.png", replies=3), Said(2, parent=1)]
WHOLE = [json.loads(line) for form in FORMS.values() for line in form.write(POSTS).splitlines()]
# Names that some reader looks at beside those, and values that it gives a meaning to.
NAMES = re.findall(
    r"\S+",
    """note_tweet entities urls expanded_url fullUrl altText alt_text path engagement keywords
    missing author username referenced_posts retweetedTweet quotedTweet content links tcourl
    id_str includes tweets errors resource_type resource_id value title detail __twarc query
    _missing _included _findings _edge _above edit_history_tweet_ids quoted_url lang name
    replies selftext permalink crosspost_parent removed_by_category gallery_data items
    media_id preview source reblog quote quoted_status labels embed embeds record facets features
    index thread parent reply langs _came_along""",
)
TELLING = re.findall(
    r"\S+",
    """1 99 photo retweeted quoted replied_to tweet https://x.com/m/status/1 https://t.co/a https://[
    javascript:alert(1) ../x.png /etc/passwd 2026-03-02T17:12:40Z t1_a t3_a t1 t3 more Listing
    app.bsky.feed.post""",
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([*TELLING, "\ud83d", "\x00", "&#" + "9" * 5000 + ";"])
)
JSON = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), inner, max_size=6)
    ),
    max_leaves=25,
)
Read = Callable[[str, str], tuple[dict[str, Any], StageResult]]


def with_mark(value: Any) -> Iterator[Any]:
    yield MARK
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from ({**value, name: one} for one in with_mark(inner))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from ([*value[:at], one, *value[at + 1 :]] for one in with_mark(inner))


MARKED = [json.dumps(one) for whole in WHOLE for one in with_mark(whole)]
SPOILED = st.tuples(st.sampled_from(MARKED), JSON.map(json.dumps)).map(
    lambda pair: pair[0].replace(json.dumps(MARK), pair[1])
)


@pytest.mark.parametrize("source", SOURCES)
@given(lines=st.lists(JSON.map(json.dumps) | SPOILED, max_size=3))
def test_no_record_breaks_a_source_and_none_is_lost(
    collect: Collect, record_table: Callable[..., pa.Table], source: str, lines: list[str]
) -> None:
    table = record_table(source, lines, ["lumen"])
    rows = collect(table).to_pylist()
    assert {place for row in rows for place in row["_parent"]} == set(table["place"].to_pylist())
    for row in rows:
        if row["_status"] == "kept":
            assert row["url"].startswith(("https://", "http://"))
            for image in row["pictures"]:
                assert (image["url"] or "http").startswith("http")
        else:
            assert row["_reason"] in [*PostReject, *PostNotice]
            assert row["_detail"]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("text", [" \ufeff", "{", "a\x00\x1f", "\u2028", "NaN"])
def test_any_text_is_a_record_or_blank(
    collect: Collect, record_table: Callable[..., pa.Table], source: str, text: str
) -> None:
    table = record_table(source, [text])
    assert table.num_rows == (1 if text.strip().removeprefix("\ufeff") else 0)
    assert collect(table).num_rows >= table.num_rows


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], []),
        (["1", "2"], [(":1", "1"), (":2", "2")]),
        (["", "{", '"a": 1', "}"], [(":2", '{\n"a": 1\n}')]),
        (["{", "2"], [(":1", "{"), (":2", "2")]),
        (["1", "{", "3"], [(":1", "1"), (":2", "{"), (":3", "3")]),
    ],
)
def test_a_file_is_lines_or_one_document(lines: list[str], expected: list[tuple[str, str]]) -> None:
    assert list(split_json(lines)) == expected


@pytest.fixture
def read(collect: Collect, tmp_path: Path) -> Read:

    def run(source: str, text: str) -> tuple[dict[str, Any], StageResult]:
        path, names = tmp_path / "posts.jsonl", FORMS[source].columns
        path.write_text(text, "utf-8")
        columns = SourceColumns.model_validate(names) if names else None
        given = PostsSource(source=source, path=path, columns=columns)
        result = run_stage(collect, read_records([given]))
        return {row["url"]: row for row in result.dataset}, result

    return run


@pytest.mark.parametrize("source", SOURCES)
class TestHostile:
    def said_of(self, read: Read, source: str, *posts: Said) -> tuple[Sequence[Any], set[str]]:
        found, result = read(source, FORMS[source].write(posts))
        return list(found.values()), set(result.notices["_reason"])

    @pytest.mark.parametrize("claimed", [1_000_000, 2**70, "many"])
    def test_a_count_that_is_none_is_told(self, read: Read, source: str, claimed: Any) -> None:
        (post,), said = self.said_of(read, source, Said(1, replies=claimed))
        usable = claimed == 1_000_000 and FORMS[source].replies
        told = FORMS[source].replies and claimed != 1_000_000
        assert (post["engagement"] or {}).get("replies") == (claimed if usable else None)
        assert said == ({"bad_field"} if told else set())

    def test_what_no_table_can_hold_is_taken_out_and_told(self, read: Read, source: str) -> None:
        (first, _), said = self.said_of(read, source, Said(1, text="a\x00b\ud83dc"), Said(2))
        assert (first["text"], said) == ("ab?c", {"bad_field"})

    @pytest.mark.parametrize(
        "address",
        [
            "javascript:alert(1)",
            "file:///etc/passwd",
            "https://p.example/\u202egnp.exe",
            "a" * 5000,
        ],
    )
    def test_an_image_whose_address_is_none(self, read: Read, source: str, address: str) -> None:
        (post,), said = self.said_of(read, source, Said(1, image=address))
        for image in post["pictures"]:
            assert image["url"] is None or image["url"].startswith("https://p.example/%E2%80")
            assert image["sha256"] is None
        kept = any(image["url"] for image in post["pictures"])
        assert bool(said) == (not kept)

    @pytest.mark.parametrize("depth", [960])
    def test_a_field_that_nests_costs_its_line(self, read: Read, source: str, depth: int) -> None:
        form, deep = FORMS[source], "[" * depth + "]" * depth
        text = form.write([Said(1, parent=2, image="https://p.example/a.png", replies=3)])
        marked = [mark for line in text.splitlines() for mark in with_mark(json.loads(line))]
        bad = [json.dumps(one).replace(json.dumps(MARK), deep) for one in marked]
        found, result = read(source, "\n".join([*bad, form.write([Said(7)])]))
        assert len(bad) > 5
        assert form.url(7) in found
        assert len(result.dataset) + sum(result.stats.rejected.values()) >= len(bad)
