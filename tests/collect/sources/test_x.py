"""Posts of the X API: pages as they come, and the flattened form."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Json = dict[str, Any]
Rows = list[Json]
CollectLines = Callable[..., Rows]
NEW_NAMES = {
    "referenced_tweets": "referenced_posts",
    "note_tweet": "note_post",
    "edit_history_tweet_ids": "edit_history_post_ids",
}


def page(*data: Any, **rest: Any) -> str:
    return json.dumps({"data": list(data), **rest, "meta": {"result_count": len(data)}})


def kept(rows: Rows) -> dict[str, Json]:
    return {row["post_id"]: row for row in rows if row["_status"] == "kept"}


def said(rows: Rows) -> list[tuple[str, str]]:
    return [(row["_parent"][0], row["_reason"]) for row in rows if row["_status"] != "kept"]


def text_of(collect_lines: CollectLines, **post: Any) -> str | None:
    row, *_ = collect_lines("x", [json.dumps({"id": "1", **post})])
    text: str | None = row["text"]
    return text


def link(short: str, expanded: Any, **more: Any) -> Json:
    return {"url": short, "expanded_url": expanded, **more}


def renamed(value: Any) -> Any:
    if isinstance(value, list):
        return [renamed(one) for one in value]
    if not isinstance(value, dict):
        return value
    new = {NEW_NAMES.get(name, name): renamed(inner) for name, inner in value.items()}
    if "users" in new and "tweets" in new:
        new["posts"] = new.pop("tweets")
    return new


# --- the real page


@pytest.fixture
def real(test_data: Path) -> Path:
    folder = test_data / "posts" / "x_api_v2"
    if not folder.is_dir():
        pytest.skip(f"no folder {str(folder)!r}")
    return folder


def test_a_page_and_its_flattened_form_are_the_same_posts(
    real: Path, collect_file: Callable[..., Any]
) -> None:
    pages, read = collect_file("x", real / "noflat.jsonl")
    flat, flat_read = collect_file("x", real / "flat.jsonl")

    assert pages == flat
    assert read.stats.rejected == flat_read.stats.rejected
    assert set(read.stats.noted) == set(flat_read.stats.noted) == {"picture_without_address"}


def test_every_post_of_the_real_page_is_kept_or_a_rejected_repost(
    real: Path, collect_file: Callable[..., Any]
) -> None:
    raw = json.loads((real / "noflat.jsonl").read_text())
    every = {post["id"]: post for post in [*raw["data"], *raw["includes"]["tweets"]]}
    reposts = {
        name
        for name, post in every.items()
        if any(one["type"] == "retweeted" for one in post.get("referenced_tweets", []))
    }
    posts, read = collect_file("x", real / "noflat.jsonl")

    assert (len(every), len(reposts), len(raw["data"])) == (164, 47, 100)
    assert reposts <= {post["id"] for post in raw["data"]}
    assert {post["post_id"] for post in posts} == set(every) - reposts
    assert len(posts) == 117
    assert read.stats.rejected == {"repost": 47}


def test_the_new_spelling_gives_the_same_posts(
    real: Path, tmp_path: Path, collect_file: Callable[..., Any]
) -> None:
    raw = json.loads((real / "noflat.jsonl").read_text())
    new = renamed(raw)
    assert any("referenced_posts" in post for post in new["data"])
    assert not any("referenced_tweets" in post for post in new["data"])
    assert "tweets" not in new["includes"]
    (tmp_path / "new.jsonl").write_text(json.dumps(new, indent=1))
    expected, _ = collect_file("x", real / "noflat.jsonl")

    assert collect_file("x", tmp_path / "new.jsonl")[0] == expected


def test_fields_of_the_real_page_are_those_of_the_raw_file(
    real: Path, collect_file: Callable[..., Any]
) -> None:
    raw = json.loads((real / "noflat.jsonl").read_text())
    users = {one["id"]: one["username"] for one in raw["includes"]["users"]}
    media = {one["media_key"]: one for one in raw["includes"]["media"]}
    every = {post["id"]: post for post in [*raw["data"], *raw["includes"]["tweets"]]}
    posts, _ = collect_file("x", real / "noflat.jsonl")
    found = {post["id"] for post in raw["data"]}
    for post in posts:
        source = every[post["post_id"]]
        linked = {one["type"]: one["id"] for one in source.get("referenced_tweets", [])}
        keys = source.get("attachments", {}).get("media_keys", [])
        photos = [media[key]["url"] for key in keys if media.get(key, {}).get("type") == "photo"]
        address = "https://x.com/i/status/{}".format
        assert post["author"] == users[source["author_id"]]
        assert post["timestamp"].isoformat() == source["created_at"].replace(".000Z", "+00:00")
        links = (("parent_url", "replied_to"), ("quoted_url", "quoted"))
        for column, kind in links:
            assert post[column] == (address(linked[kind]) if kind in linked else None)
        assert post["engagement"]["likes"] == source["public_metrics"]["like_count"]
        assert post["engagement"]["views"] is None
        assert [one["url"] for one in post["pictures"]] == photos
        assert post["keywords"] == (["obama"] if post["post_id"] in found else [])
    assert any(post["pictures"] for post in posts)


# --- what is in a page


def test_posts_that_came_along_carry_no_keyword(collect_lines: CollectLines) -> None:
    line = page(
        {"id": "1", "text": "a", "referenced_tweets": [{"type": "replied_to", "id": "2"}]},
        includes={"tweets": [{"id": "2", "text": "b"}, {"id": "3", "text": "c"}]},
        __twarc={"url": "https://api.example/search?max=9&query=lumen%20image"},
    )
    posts = kept(collect_lines("x", [line], ["lumen"]))

    assert {name: post["keywords"] for name, post in posts.items()} == {
        "1": ["lumen", "lumen image"],
        "2": [],
        "3": [],
    }


def test_a_pure_repost_is_rejected_and_the_original_is_there(collect_lines: CollectLines) -> None:
    line = page(
        {"id": "1", "text": "RT", "referenced_tweets": [{"type": "retweeted", "id": "2"}]},
        {"id": "3", "text": "RT", "referenced_tweets": [{"type": "retweeted", "id": "9"}]},
        includes={"tweets": [{"id": "2", "text": "the original", "author_id": "7"}],
                  "users": [{"id": 7, "username": "mira_draws"}]},
    )  # fmt: skip
    rows = collect_lines("x", [line])

    assert {name: (post["text"], post["author"]) for name, post in kept(rows).items()} == {
        "2": ("the original", "mira_draws")
    }
    assert said(rows) == [("f:1#0", "repost"), ("f:1#1", "repost")]
    assert [row["_detail"] for row in rows if row["_detail"]] == [
        "of https://x.com/i/status/2",
        "of https://x.com/i/status/9",
    ]


def test_a_quotation_is_a_post_and_a_quoted_repost_is_none(collect_lines: CollectLines) -> None:
    repost = {"id": "2", "text": "RT", "referenced_tweets": [{"type": "retweeted", "id": "3"}]}
    line = page(
        {"id": "1", "text": "see", "referenced_tweets": [{"type": "quoted", "id": "2"}]},
        includes={"tweets": [repost, {"id": "3", "text": "the original"}]},
    )
    rows = collect_lines("x", [line])
    posts = kept(rows)

    assert set(posts) == {"1", "3"}
    assert posts["1"]["quoted_url"] == "https://x.com/i/status/2"
    assert posts["1"]["parent_url"] is None
    assert said(rows) == [("f:1#0", "repost")]


@pytest.mark.parametrize(
    ("error", "missing"),
    [
        ({"title": "Not Found Error", "detail": "Could not find tweet"}, "not_found"),
        ({"title": "Authorization Error", "detail": "not authorized to see"}, "protected"),
        ({"title": "Forbidden", "detail": "User has been suspended"}, "blocked"),
        ({"title": "Content Withheld"}, "blocked"),
        ({"title": "Gone", "detail": "The post was deleted."}, "deleted"),
        ({}, "not_found"),
        ({"title": ["a"], "detail": {}}, "not_found"),
    ],
)
@pytest.mark.parametrize("kind", ["tweet", "post"])
def test_an_error_that_names_a_post_is_a_missing_post(
    error: Json, missing: str, kind: str, collect_lines: CollectLines
) -> None:
    named = {"resource_type": kind, "resource_id": "9", **error}
    post = kept(collect_lines("x", [page({"id": "1"}, errors=[named])]))["9"]

    assert (post["url"], post["missing"]) == ("https://x.com/i/status/9", missing)
    assert (post["text"], post["keywords"]) == (None, [])


def test_other_errors_are_no_posts(collect_lines: CollectLines) -> None:
    user = {"resource_type": "user", "resource_id": "9", "title": "Forbidden"}
    rows = collect_lines("x", [page({"id": "1"}, errors=[user])])
    failed = collect_lines("x", [json.dumps({"errors": [{"message": "Too many requests"}]})])

    assert (set(kept(rows)), said(rows)) == ({"1"}, [])
    assert said(failed) == [("f:1#errors.0", "no_url")]
    assert "Too many requests" in failed[0]["_detail"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({"data": None, "meta": {}}, []),
        ({"meta": {"result_count": 0}}, []),
        ({"data": 5}, [("f:1#0", "not_a_post")]),
        ({"data": ["a", {"id": "1"}]}, [("f:1#0", "not_a_post")]),
        ({"data": {"id": "1"}, "includes": []}, [("f:1#page", "bad_field")]),
        ({"data": [], "includes": {"tweets": {}}}, [("f:1#page", "bad_field")]),
        ({"data": [{"id": [1]}]}, [("f:1#0", "no_url")]),
        ({"data": [{"id": True}]}, [("f:1#0", "no_url")]),
        ({"data": [{"text": "a"}]}, [("f:1#0", "no_url")]),
        ({"id": "²"}, [("f:1", "no_url")]),
        ([], [("f:1", "not_a_post")]),
        (
            {"data": [{"id": "1", "referenced_tweets": [{"type": "replied_to", "id": []}]}]},
            [("f:1#0", "bad_field")],
        ),
        ({"id": "1", "_missing": []}, []),
        ({"_missing": {"resource_id": "gone"}}, [("f:1", "no_url")]),
    ],
)
def test_a_spoiled_page_is_told_by_its_parts(
    line: Any, expected: list[tuple[str, str]], collect_lines: CollectLines
) -> None:
    rows = collect_lines("x", [json.dumps(line)])

    assert said(rows) == expected
    assert ("1" in kept(rows)) == ('"id": "1"' in json.dumps(line))


# --- the text


@pytest.mark.parametrize("name", ["note_tweet", "note_post"])
def test_the_long_text_stands_for_the_cut_one(name: str, collect_lines: CollectLines) -> None:
    long = "a prompt " * 60 + "https://t.co/a"
    note = {"text": long, "entities": {"urls": [link("https://t.co/a", "https://a.example/")]}}

    assert text_of(collect_lines, text=long[:280], **{name: note}) == (
        "a prompt " * 60 + "https://a.example/"
    )


@pytest.mark.parametrize(
    ("text", "urls", "expected"),
    [
        ("see https://t.co/a", [link("https://t.co/a", "https://a.example/b")],
         "see https://a.example/b"),
        # an address is not escaped, the text around it is
        ("1 &lt; 2 &amp;amp; https://t.co/a", [link("https://t.co/a", "https://a.example/?b&lt=1")],
         "1 < 2 &amp; https://a.example/?b&lt=1"),
        # one link may begin like another, and may stand in the place of another
        ("https://t.co/ab https://t.co/a",
         [link("https://t.co/a", "https://t.co/ab"), link("https://t.co/ab", "https://b.example/")],
         "https://b.example/ https://t.co/ab"),
        ("https://t.co/abc", [link("https://t.co/a", "https://a.example/")], "https://t.co/abc"),
        ("(https://t.co/a).", [link("https://t.co/a", "https://a.example/")],
         "(https://a.example/)."),
        # what cannot be expanded stays
        ("https://t.co/a", [link("https://t.co/a", None)], "https://t.co/a"),
        ("https://t.co/a", [link("https://t.co/a", 5)], "https://t.co/a"),
        ("a", [link("", "https://a.example/")], "a"),
        # its own images are not text; those of others are links
        ("mine https://t.co/a", [link("https://t.co/a", "https://twitter.com/m/status/1/photo/1")],
         "mine"),
        ("mine https://t.co/a", [link("https://t.co/a", "https://x.com/m/status/1/video/1")],
         "mine"),
        ("mine https://t.co/a", [link("https://t.co/a", "https://x.com/m/status/8/photo/1")],
         "mine"),
        ("other https://t.co/a", [link("https://t.co/a", "https://x.com/m/status/2/photo/1")],
         "other https://x.com/m/status/2/photo/1"),
        ("mine https://t.co/a", [link("https://t.co/a", "https://x.com/any", media_key="3_1")],
         "mine"),
        ("other https://t.co/a", [link("https://t.co/a", "https://x.com/any", media_key="3_2")],
         "other https://x.com/any"),
        ("a &eacute; &#38; &#" + "9" * 5000 + ";", [], "a &eacute; &#38; &#" + "9" * 5000 + ";"),
    ],
)  # fmt: skip
def test_texts_are_as_their_authors_wrote_them(
    text: str, urls: list[Json], expected: str, collect_lines: CollectLines
) -> None:
    attachments = {"media_keys": ["3_1"]}
    history = ["8", "1"]

    assert expected == text_of(
        collect_lines,
        text=text,
        entities={"urls": urls},
        attachments=attachments,
        edit_history_tweet_ids=history,
    )


def test_images_are_photos_with_their_descriptions(collect_lines: CollectLines) -> None:
    media = [
        {"media_key": "b", "type": "photo", "url": "https://p.example/b", "alt_text": "a prompt"},
        {"media_key": "a", "type": "photo", "url": "https://p.example/a"},
        {"media_key": "v", "type": "video", "url": "https://p.example/v"},
        {"media_key": "j", "type": "photo", "url": "javascript:alert(1)"},
    ]
    post = {"id": "1", "attachments": {"media_keys": ["a", "b", "v", "j", "unknown"]}}
    rows = collect_lines("x", [page(post, includes={"media": media})])

    assert kept(rows)["1"]["pictures"] == [
        {"sha256": None, "url": "https://p.example/a", "alt_text": None},
        {"sha256": None, "url": "https://p.example/b", "alt_text": "a prompt"},
    ]
    assert said(rows) == [("f:1#0", "bad_field")]


def test_a_quote_within_a_quote_is_a_post(collect_lines: CollectLines) -> None:
    inner = {"type": "quoted", "id": "1", "text": "first"}
    middle = {"type": "quoted", "id": "2", "text": "second", "referenced_tweets": [inner]}
    outer = {"id": "3", "text": "third", "referenced_tweets": [middle]}
    rows = kept(collect_lines("x", [json.dumps(outer)]))

    assert {name: row["quoted_url"] for name, row in rows.items()} == {
        "3": "https://x.com/i/status/2",
        "2": "https://x.com/i/status/1",
        "1": None,
    }


@pytest.mark.parametrize(
    "post",
    [
        {"url": "https://x.com/mira_draws/status/7", "author": "mira_draws", "text": "hello"},
        {"id": 7, "url": "https://x.com/mira_draws/status/7", "rawContent": "hello"},
        {"id": 7, "url": "https://twitter.com/mira_draws/status/7", "content": "hello"},
    ],
    ids=["ours", "newer", "older"],
)
def test_posts_of_another_format_are_not_misread(post: Json, collect_lines: CollectLines) -> None:
    rows = collect_lines("x", [json.dumps(post)])

    assert said(rows) == [("f:1", "not_a_post")]
