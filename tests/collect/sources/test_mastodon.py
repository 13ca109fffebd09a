"""Posts of Mastodon: recorded answers, and what an invented one can get wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from echo_hf.collect.collect import Collect
from echo_hf.collect.records import read_records
from echo_hf.config.sections import PostsSource
from echo_hf.errors import ConfigError
from echo_hf.pipeline.stage_runner import run_stage
from tests.collect.conftest import Case, Json, Reads, Real

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


def quote(number: int, inner: Json | None) -> Json:
    return status(number, quote={"state": "accepted", "quoted_status": inner})


def parent(number: int | None) -> Json:
    return {"parent_url": None if number is None else ADDRESS(number)}


CONTEXT = {"ancestors": [status(1), status(2, 1)], "descendants": [status(4, 3)]}
ABOUT = {"id": "3", "url": ADDRESS(3)}
MEDIA = [
    {"type": "image", "url": "https://p.example/1", "description": "prompt: a fox"},
    {"type": "image", "url": None, "remote_url": "https://p.example/2", "description": None},
    {"type": "gifv", "url": "https://p.example/3"},
    {"type": "image", "url": None, "id": "7"},
    {"type": "image", "url": "data:image/png;base64,"},
]
FAR = {"acct": "mira@far.example", "url": "https://far.example/@mira"}
CASES: dict[str, Case] = {
    "replies are linked within an answer": (
        [status(3, 2), status(2, 1), status(1), status(9, 8)],
        {"3": parent(2), "2": parent(1), "1": parent(None), "9": parent(None)},
        ["#3 unnamed_parent"],
    ),
    "what stands around a status is linked to it": (
        {"about": ABOUT, "context": CONTEXT},
        {
            "1": {**parent(None), "keywords": []},
            "2": {**parent(1), "keywords": []},
            "3": {**parent(2), "missing": "not_fetched", "text": None, "post_id": "3"},
            "4": {**parent(3), "keywords": []},
        },
        [],
    ),
    "images carry their descriptions": (
        [status(1, media_attachments=MEDIA)],
        {"1": {"pictures": [("https://p.example/1", "prompt: a fox"),
                            ("https://p.example/2", None)]}},
        ["#0 picture_without_address", "#0 bad_field", "#0 picture_without_address"],
    ),
    "a quoted status is a post": (
        [quote(3, quote(2, status(1))), quote(4, None)],
        {
            "3": {"quoted_url": ADDRESS(2), "keywords": ["fox"]},
            "2": {"quoted_url": ADDRESS(1), "keywords": []},
            "1": {"quoted_url": None, "keywords": []},
            "4": {"quoted_url": None, "keywords": ["fox"]},
        },
        [],
    ),
    "names are told apart by their servers": (
        [status(1), status(2, account=FAR), status(3, account=5)],
        {
            "1": {"author": "mira@mastodon.example"},
            "2": {"author": "mira@far.example"},
            "3": {"author": None},
        },
        ["#2 bad_field"],
    ),
    "a uri that is no address": (
        [status(1, uri="tag:old.example,2020:1", url=ADDRESS(7))], {"7": {}}, []),
    "statuses of a number": ({"statuses": 5}, {}, ["#0 bad_field"]),
    "an error": ({"error": "Record not found"}, {}, ["not_a_post"]),
    "no context": ({"about": ABOUT, "context": 5}, {"3": {}}, ["#1 bad_field"]),
}  # fmt: skip


@pytest.mark.parametrize(("document", "posts", "said"), CASES.values(), ids=CASES)
def test_an_answer_is_read(document: Any, posts: Any, said: list[str], reads: Reads) -> None:
    reads("mastodon", document, posts, said)


def lines(*statuses: Json) -> str:
    return "\n".join(map(json.dumps, statuses))


def test_one_status_a_line_is_linked_as_in_one_array(reads: Reads) -> None:
    """Whatever the order; a number that two servers gave names no parent."""
    far = status(2, uri="https://far.example/users/noor/statuses/2")
    reads(
        "mastodon",
        lines(status(3, 2), status(2, 1), status(1)),
        {"3": parent(2), "2": parent(1), "1": parent(None)},
        [],
    )
    reads(
        "mastodon",
        lines(status(1), status(9, 8)),
        {"1": {}, "9": parent(None)},
        ["f:2 unnamed_parent"],
    )
    reads(
        "mastodon",
        lines(status(3, 2), status(2), far),
        {"3": parent(None), "2": {}},
        ["unnamed_parent"],
    )


PUBLIC = "https://www.w3.org/ns/activitystreams#Public"


def activity(number: int, above: int | None = None, to: str = PUBLIC, **fields: Any) -> Json:
    """A post as the export of an account holds it."""
    return {
        "id": f"{ADDRESS(number)}/activity",
        "type": "Create",
        "actor": "https://mastodon.example/users/mira",
        "to": [to],
        "object": {
            "id": ADDRESS(number),
            "type": "Note",
            "summary": None,
            "inReplyTo": None if above is None else ADDRESS(above),
            "published": "2026-03-03T09:15:00Z",
            "url": f"https://mastodon.example/@mira/{number}",
            "attributedTo": "https://mastodon.example/users/mira",
            "to": [to],
            "cc": ["https://mastodon.example/users/mira/followers"],
            "sensitive": False,
            "content": f"<p>{number}</p>",
            "contentMap": {"en": f"<p>{number}</p>"},
            "attachment": [],
            **fields,
        },
    }


def outbox(*activities: Json) -> Json:
    return {"type": "OrderedCollection", "totalItems": 9, "orderedItems": list(activities)}


def test_an_accounts_export_is_read(reads: Reads) -> None:
    repeated = {"type": "Announce", "object": "https://far.example/1", "to": [PUBLIC]}
    images = [
        {
            "type": "Document",
            "mediaType": "image/png",
            "url": "https://p.example/1",
            "name": "a fox",
        },
        {"type": "Document", "mediaType": "video/mp4", "url": "https://p.example/2"},
    ]
    whole = {
        "author": "mira@mastodon.example",
        "text": "Careful\n\n2",
        "timestamp": "2026-03-03T09:15:00+00:00",
        "lang": "en",
        "pictures": [("https://p.example/1", "a fox")],
        "keywords": ["fox"],
        **parent(1),
    }
    hidden = {"missing": "protected", "text": None, "author": None}
    reads(
        "mastodon",
        outbox(
            activity(1),
            activity(2, 1, summary="Careful", attachment=images),
            repeated,
            activity(3, to="https://mastodon.example/users/mira/followers"),
            {"type": "Create", "object": 5},
        ),
        {"1": {"text": "1", **parent(None)}, "2": whole, "3": hidden},
        ["#2 repost", "#3 hidden_by_author", "#4 no_url"],
    )


def test_images_of_an_export_are_files_beside_it(collect_lines: CollectLines) -> None:
    path = "/media_attachments/files/000/original/a.png"
    document = outbox(activity(1, attachment=[{"mediaType": "image/png", "url": path}]))
    rows = collect_lines("mastodon", [json.dumps(document)])
    (notice,) = [row for row in rows if row["_reason"]]
    assert notice["_reason"] == "picture_not_found"
    assert repr(path.lstrip("/")) in notice["_detail"]


def test_unlisted_statuses_are_taken_in_where_a_config_says_so(
    tmp_path: Path, collect: Collect
) -> None:
    """Everybody may read them; those for followers alone stay out either way."""
    some = [status(1), status(2, 1, visibility="unlisted"), status(3, 2, visibility="private")]
    exported = activity(4, to="https://mastodon.example/users/mira/followers", cc=[PUBLIC])
    (tmp_path / "posts.jsonl").write_text(lines(*some, outbox(exported)))
    for taken, texts in ((False, {"1"}), (True, {"1", "2", "4"})):
        entry = PostsSource(source="mastodon", path=tmp_path / "posts.jsonl", unlisted=taken)
        read = run_stage(collect, read_records([entry]))
        assert {text for text in read.dataset["text"] if text} == texts
        assert len(read.dataset) == 4
        reasons = {"hidden_by_author": 1} if taken else {"hidden_by_author": 1, "unlisted": 2}
        assert read.stats.noted == reasons
    with pytest.raises(ConfigError, match="unlisted is true for source 'reddit'"):
        read_records([PostsSource(source="reddit", path=tmp_path / "posts.jsonl", unlisted=True)])


@pytest.mark.parametrize(
    ("visibility", "reason"), [("unlisted", "unlisted"), (5, "hidden_by_author")]
)
def test_only_public_statuses_are_taken_in(visibility: Any, reason: str, reads: Reads) -> None:
    hidden = status(2, 1, visibility=visibility, media_attachments=MEDIA, favourites_count=1)
    row = {**parent(1), "missing": "protected", "pictures": [], "keywords": []}
    none = dict.fromkeys(["text", "author", "engagement"])
    reads("mastodon", [status(1), hidden], {"1": {}, "2": row | none}, [f"#1 {reason}"])


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"spoiler_text": "AI picture", "content": "<p>a fox</p>"}, "AI picture\n\na fox"),
        ({"spoiler_text": "AI picture", "content": ""}, "AI picture"),
        ({"spoiler_text": "", "content": ""}, ""),
        ({"content": None, "text": "plain <b>"}, "plain <b>"),
    ],
)
def test_a_warning_stands_before_what_it_hides(fields: Json, text: str, reads: Reads) -> None:
    reads("mastodon", [status(1, **fields)], {"1": {"text": text}})


def recorded(real: Real, name: str) -> list[str]:
    interactions = yaml.safe_load(real(f"mastodon/{name}.yaml").read_text())["interactions"]
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
    name: str, real: Real, collect_lines: CollectLines
) -> None:
    for body in recorded(real, name):
        expected = {
            one["uri"]: one["visibility"] == "public" for one in statuses_in(json.loads(body))
        }
        rows = collect_lines("mastodon", [body])
        kept = {row["url"]: row["text"] for row in rows if row["_status"] == "kept"}
        assert {url: text is not None for url, text in kept.items()} == expected
        hidden = [row for row in rows if row["_reason"] in ("hidden_by_author", "unlisted")]
        assert len(hidden) == list(expected.values()).count(False)


def test_a_recorded_reply_is_read_in_all_fields(real: Real, collect_lines: CollectLines) -> None:
    bodies = recorded(real, "test_status_reply")
    first, reply = (json.loads(bodies[number]) for number in (0, 2))
    rows = collect_lines("mastodon", [json.dumps({"statuses": [first, reply]})], ["toot"])
    row = {one["url"]: one for one in rows}[reply["uri"]]
    counts = {"likes": 0, "views": None, "reposts": 0, "replies": 0, "bookmarks": None}
    assert (row["text"], row["author"]) == ("@mastodonpy_test_2 same!", "admin@localhost:3000")
    assert row["parent_url"] == first["uri"]
    assert (row["post_id"], row["lang"], row["keywords"]) == (reply["id"], "en", ["toot"])
    assert row["timestamp"].isoformat() == "2026-08-01T13:53:15.910000+00:00"
    assert row["engagement"] == counts
