"""Posts of Mastodon: recorded answers, and what an invented one can get wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

Json = dict[str, Any]
CollectLines = Callable[..., list[Json]]
ADDRESS = "https://mastodon.example/users/mira/statuses/{}".format
FILES = ("test_hashtag_tl", "test_search", "test_status_context", "test_status_reply")


def status(number: int, above: int | None = None, **fields: Any) -> Json:
    return {
        "id": str(number),
        "uri": ADDRESS(number),
        "content": f"<p>{number}</p>",
        "visibility": "public",
        "in_reply_to_id": None if above is None else str(above),
        "account": {"acct": "mira", "url": "https://mastodon.example/@mira"},
        **fields,
    }


def rows_of(document: Any, collect_lines: CollectLines, keywords: tuple[str, ...] = ()) -> Any:
    line = document if isinstance(document, str) else json.dumps(document)
    rows = collect_lines("mastodon", [line], keywords)
    kept = {row["url"].rpartition("/")[2]: row for row in rows if row["_status"] == "kept"}
    return kept, [(row["_parent"][0], row["_reason"]) for row in rows if row["_status"] != "kept"]


def recorded(path: Path) -> list[str]:
    interactions = yaml.safe_load(path.read_text())["interactions"]
    return [one["response"]["body"]["string"] for one in interactions]


def statuses_in(node: Any) -> list[Json]:
    found, stack = [], [node]
    while stack:
        one = stack.pop()
        stack += one if isinstance(one, list) else []
        if isinstance(one, dict):
            found += [one] if "visibility" in one else []
            stack += [value for name, value in one.items() if name != "account"]
    return found


@pytest.mark.parametrize("name", FILES)
def test_recorded_answers_are_read_whole(
    name: str, test_data: Path, collect_lines: CollectLines
) -> None:
    for body in recorded(test_data / "posts" / "mastodon" / f"{name}.yaml"):
        expected = {one["uri"]: one["visibility"] for one in statuses_in(json.loads(body))}
        rows = collect_lines("mastodon", [body])
        kept = {row["url"]: row for row in rows if row["_status"] == "kept"}

        assert {url: row["text"] is not None for url, row in kept.items()} == {
            uri: visibility == "public" for uri, visibility in expected.items()
        }
        assert [row["_reason"] for row in rows].count("hidden_by_author") == sum(
            visibility != "public" for visibility in expected.values()
        )


def test_a_recorded_reply_is_read_in_all_fields(
    test_data: Path, collect_lines: CollectLines
) -> None:
    bodies = recorded(test_data / "posts" / "mastodon" / "test_status_reply.yaml")
    first, reply = (json.loads(bodies[number]) for number in (0, 2))
    rows = collect_lines("mastodon", [json.dumps({"statuses": [first, reply]})], ["toot"])
    row = {one["url"]: one for one in rows}[reply["uri"]]

    assert (row["text"], row["author"]) == ("@mastodonpy_test_2 same!", "admin@localhost:3000")
    assert row["parent_url"] == first["uri"]
    assert (row["post_id"], row["lang"], row["keywords"]) == (reply["id"], "en", ["toot"])
    assert row["timestamp"].isoformat() == "2026-08-01T13:53:15.910000+00:00"
    assert row["engagement"] == {
        "likes": 0, "views": None, "reposts": 0, "replies": 0, "bookmarks": None
    }  # fmt: skip


def test_what_is_no_status_is_rejected(test_data: Path, collect_lines: CollectLines) -> None:
    body = recorded(test_data / "posts" / "mastodon" / "test_status_reply.yaml")[1]

    assert rows_of(body, collect_lines) == ({}, [("f:1", "not_a_post")])


def test_replies_are_linked_within_an_answer(collect_lines: CollectLines) -> None:
    kept, said = rows_of([status(3, 2), status(2, 1), status(1), status(9, 8)], collect_lines)

    assert {key: row["parent_url"] for key, row in kept.items()} == {
        "3": ADDRESS(2), "2": ADDRESS(1), "1": None, "9": None
    }  # fmt: skip
    assert said == [("f:1#3", "unnamed_parent")]


def test_what_stands_around_a_status_is_linked_to_it(collect_lines: CollectLines) -> None:
    context = {"ancestors": [status(1), status(2, 1)], "descendants": [status(4, 3)]}
    wrapped = {"about": {"id": "3", "url": ADDRESS(3)}, "context": context}
    kept, said = rows_of(wrapped, collect_lines, ("fox",))

    assert {key: row["parent_url"] for key, row in kept.items()} == {
        "1": None, "2": ADDRESS(1), "3": ADDRESS(2), "4": ADDRESS(3)
    }  # fmt: skip
    assert (kept["3"]["missing"], kept["3"]["text"], kept["3"]["post_id"]) == (
        "not_fetched", None, "3"
    )  # fmt: skip
    assert [row["keywords"] for row in kept.values()] == [[]] * 4
    assert said == []


@pytest.mark.parametrize("visibility", ["unlisted", "private", "direct", "secret", 5])
def test_only_public_statuses_are_taken_in(visibility: Any, collect_lines: CollectLines) -> None:
    media = [{"type": "image", "url": "https://p.example/1"}]
    hidden = status(2, 1, visibility=visibility, media_attachments=media, favourites_count=1)
    kept, said = rows_of([status(1), hidden], collect_lines, ("fox",))
    row = kept["2"]

    assert (row["missing"], row["parent_url"]) == ("protected", ADDRESS(1))
    assert [row[name] for name in ("text", "author", "engagement")] == [None] * 3
    assert (row["pictures"], row["keywords"]) == ([], [])
    assert said == [("f:1#1", "hidden_by_author")]


def test_images_carry_their_descriptions(collect_lines: CollectLines) -> None:
    media = [
        {"type": "image", "url": "https://p.example/1", "description": "prompt: a fox"},
        {"type": "image", "url": None, "remote_url": "https://p.example/2", "description": None},
        {"type": "gifv", "url": "https://p.example/3"},
        {"type": "image", "url": None, "id": "7"},
        {"type": "image", "url": "data:image/png;base64,"},
    ]
    kept, said = rows_of([status(1, media_attachments=media)], collect_lines)

    assert kept["1"]["pictures"] == [
        {"sha256": None, "url": "https://p.example/1", "alt_text": "prompt: a fox"},
        {"sha256": None, "url": "https://p.example/2", "alt_text": None},
    ]
    assert [reason for _, reason in said] == [
        "picture_without_address", "bad_field", "picture_without_address"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"spoiler_text": "AI picture", "content": "<p>a fox</p>"}, "AI picture\n\na fox"),
        ({"spoiler_text": "AI picture", "content": ""}, "AI picture"),
        ({"spoiler_text": "", "content": ""}, ""),
        ({"content": None, "text": "plain <b>"}, "plain <b>"),
    ],
)
def test_a_warning_stands_before_what_it_hides(
    fields: Json, text: str, collect_lines: CollectLines
) -> None:
    kept, _ = rows_of([status(1, **fields)], collect_lines)

    assert kept["1"]["text"] == text


def test_a_quoted_status_is_a_post(collect_lines: CollectLines) -> None:
    inner = status(1)
    middle = status(2, quote={"state": "accepted", "quoted_status": inner})
    outer = status(3, quote={"state": "accepted", "quoted_status": middle})
    gone = status(4, quote={"state": "deleted", "quoted_status": None})
    kept, said = rows_of([outer, gone], collect_lines, ("fox",))

    assert {key: row["quoted_url"] for key, row in kept.items()} == {
        "3": ADDRESS(2), "2": ADDRESS(1), "1": None, "4": None
    }  # fmt: skip
    assert [kept[key]["keywords"] for key in "1234"] == [[], [], ["fox"], ["fox"]]
    assert said == []


def test_names_are_told_apart_by_their_servers(collect_lines: CollectLines) -> None:
    far = {"acct": "mira@far.example", "url": "https://far.example/@mira"}
    kept, _ = rows_of([status(1), status(2, account=far), status(3, account=5)], collect_lines)

    assert [kept[key]["author"] for key in "123"] == [
        "mira@mastodon.example", "mira@far.example", None
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"uri": "tag:old.example,2020:1", "url": ADDRESS(7)}, "7"),
        ({"uri": f"{ADDRESS(7)}?utm_source=a"}, "7"),
        ({"uri": "https://mastodon.example/ap/users/5/statuses/12345"}, "12345"),
    ],
)
def test_a_status_is_called_by_its_address(
    fields: Json, expected: str, collect_lines: CollectLines
) -> None:
    kept, _ = rows_of([status(1, **fields)], collect_lines)

    assert set(kept) == {expected}
    assert kept[expected]["platform"] == "mastodon"


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ([], []),
        ({"statuses": 5}, [("f:1#0", "bad_field")]),
        ([5, status(1)], [("f:1#0", "not_a_post")]),
        ([{"content": "a"}], [("f:1#0", "no_url")]),
        ([{"uri": "javascript:a", "content": "a"}], [("f:1#0", "no_url")]),
        ({"error": "Record not found"}, [("f:1", "not_a_post")]),
        ({"about": 5}, [("f:1#0", "bad_field")]),
        ({"about": {"id": "1"}}, [("f:1#0", "no_url")]),
        ({"about": {"id": "1", "url": ADDRESS(1)}, "context": 5}, [("f:1#1", "bad_field")]),
        ({"ancestors": None, "descendants": [status(1)]}, []),
        ({"_edge": 5}, [("f:1", "no_url")]),
        ("[" * 5000, [("f:1", "not_json")]),
        ("5", [("f:1", "not_a_post")]),
    ],
    ids=range(13),
)
def test_a_spoiled_answer_is_told_by_its_parts(
    document: Any, expected: list[tuple[str, str]], collect_lines: CollectLines
) -> None:
    kept, said = rows_of(document, collect_lines)

    assert said == expected
    assert ("1" in kept) == (ADDRESS(1) in json.dumps(document))
