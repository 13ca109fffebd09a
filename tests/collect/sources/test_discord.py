"""Messages of exported Discord channels."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

Json = dict[str, Any]
CollectLines = Callable[..., list[Json]]
CHANNEL = "https://discord.com/channels/100/200/"


def export(*messages: Json, server: str = "100") -> str:
    channel = {"id": "200", "name": "prompts", "type": "GuildTextChat"}
    whole = {"guild": {"id": server, "name": "Foxes"}, "channel": channel, "messages": messages}
    return json.dumps(whole, indent=2)


def message(number: int, **more: Any) -> Json:
    author = {"id": "7", "name": "mira_draws", "nickname": "Mira", "isBot": False}
    time = "2026-03-02T17:12:40.5+02:00"
    base = {"id": str(number), "type": "Default", "timestamp": time, "author": author}
    return {**base, "content": f"fox {number}", "attachments": [], "reactions": [], **more}


def test_messages_are_posts_and_replies_name_their_parent(collect_lines: CollectLines) -> None:
    reference = {"messageId": "1", "channelId": "200", "guildId": "100"}
    lines = export(message(1), message(2, type="Reply", reference=reference)).splitlines()
    first, second = collect_lines("discord", lines, ["lumen"])

    assert (first["url"], first["author"], first["text"]) == (f"{CHANNEL}1", "mira_draws", "fox 1")
    assert first["timestamp"].isoformat() == "2026-03-02T15:12:40.500000+00:00"
    assert (first["parent_url"], second["parent_url"]) == (None, f"{CHANNEL}1")
    assert (first["platform"], first["keywords"], first["engagement"]) == (
        "discord",
        ["lumen"],
        None,
    )


def test_images_are_beside_the_export_or_at_an_address(collect_lines: CollectLines) -> None:
    attachments = [
        {"id": "1", "url": "https://cdn.example/fox.PNG?ex=1", "fileName": "fox.PNG"},
        {"id": "2", "url": "prompts_Files/owl.webp", "fileName": "owl.webp"},
        {"id": "3", "url": "https://cdn.example/a.mp4", "fileName": "a.mp4"},
        {"id": "4", "url": "javascript:alert(1)", "fileName": "a.png"},
    ]
    rows = collect_lines("discord", export(message(1, attachments=attachments)).splitlines())
    (post,) = (row for row in rows if row["_status"] == "kept")

    assert [one["url"] for one in post["pictures"] if one["url"]] == [
        "https://cdn.example/fox.PNG?ex=1"
    ]
    assert {row["_reason"] for row in rows[1:]} == {"bad_field", "picture_not_found"}


@pytest.mark.parametrize(
    "document",
    [
        export(message(1), server="0"),
        export(message(1, type="GuildMemberJoin")),
        export(),
        json.dumps(message(1)),
        json.dumps({**message(1), "_channel": "200"}),
    ],
)
def test_what_no_person_said_in_public_is_rejected(
    collect_lines: CollectLines, document: str
) -> None:
    rows = collect_lines("discord", document.splitlines())

    assert [row["_reason"] for row in rows] == ["not_a_post"]
