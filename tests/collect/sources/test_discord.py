"""Messages of exported Discord channels."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.collect.sources.conftest import Case, Json, Reads

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


ATTACHMENTS = [
    {"id": "1", "url": "https://cdn.example/fox.PNG?ex=1", "fileName": "fox.PNG"},
    {"id": "2", "url": "prompts_Files/owl.webp", "fileName": "owl.webp"},
    {"id": "3", "url": "https://cdn.example/a.mp4", "fileName": "a.mp4"},
    {"id": "4", "url": "javascript:alert(1)", "fileName": "a.png"},
]
REFERENCE = {"messageId": "1", "channelId": "200", "guildId": "100"}
FIRST = {
    "url": f"{CHANNEL}1",
    "author": "mira_draws",
    "text": "fox 1",
    "timestamp": "2026-03-02T15:12:40.500000+00:00",
    "parent_url": None,
    "platform": "discord",
    "keywords": ["fox"],
    "engagement": None,
}
CASES: dict[str, Case] = {
    "messages are posts, and replies name their parent": (
        export(message(1), message(2, type="Reply", reference=REFERENCE)),
        {"1": FIRST, "2": {"parent_url": f"{CHANNEL}1"}},
        [],
    ),
    "images are beside the export, or at an address": (
        export(message(1, attachments=ATTACHMENTS)),
        {"1": {"pictures": [("https://cdn.example/fox.PNG?ex=1", None), (None, None)]}},
        ["#0 picture_not_found", "#0 bad_field"],
    ),
    "between two people": (export(message(1), server="0"), {}, ["#0 not_a_post"]),
    "the platform itself": (export(message(1, type="GuildMemberJoin")), {}, ["#0 not_a_post"]),
    "no messages": (export(), {}, ["not_a_post"]),
    "a message alone": (message(1), {}, ["not_a_post"]),
    "a message without a server": ({**message(1), "_channel": "200"}, {}, ["not_a_post"]),
}


@pytest.mark.parametrize(("document", "posts", "said"), CASES.values(), ids=CASES)
def test_an_export_is_read(document: Any, posts: Any, said: list[str], reads: Reads) -> None:
    reads("discord", document, posts, said)
