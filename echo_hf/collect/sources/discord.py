"""Messages of Discord channels, in the JSON that DiscordChatExporter writes.

A reply's parent is the message it refers to. Messages between two people are not taken in, nor
what the platform itself says in a channel. Reactions are no likes: a thumb may point down.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from echo_hf.collect.fields import Fields, Json, Pages, name_of
from echo_hf.collect.sources.base import Parsed, Post, PostImage, register
from echo_hf.reasons import Reject

WRITTEN = frozenset({"Default", "Reply", "ThreadStarterMessage"})
NUMBER = re.compile(r"[1-9][0-9]{0,24}", re.ASCII)
IMAGE_FILE = re.compile(r".+\.(?:png|jpe?g|webp|gif|bmp|avif|heic)", re.IGNORECASE | re.DOTALL)


@register("discord")
class Discord(Pages):
    expected = "a person's message in an exported channel of a server"

    def parts(self, document: Any) -> list[tuple[str, Any]] | None:
        messages = document.get("messages") if isinstance(document, dict) else None
        if not isinstance(messages, list) or not messages:
            return None
        whole = Fields(document)
        where = {
            "_server": whole.part("guild").record.get("id"),
            "_channel": whole.part("channel").record.get("id"),
        }
        return [
            (f"#{number}", {**one, **where} if isinstance(one, dict) else one)
            for number, one in enumerate(messages)
        ]

    def read(self, fields: Fields, keywords: Sequence[str]) -> Iterator[Parsed | Json]:
        record, kind = fields.record, fields.text("type")
        channel, message = record.get("_channel"), record.get("id")
        url = _address(record, channel, message)
        is_public = "_channel" in record and _number(record.get("_server"))
        if not is_public or kind not in WRITTEN:  # between two people, or by the platform itself
            yield self.refused(Reject.NOT_A_POST, record, "type", "_server")
            return
        if url is None:
            yield self.refused(Reject.NO_URL, record, "id", "_channel")
            return
        refers, parent = fields.part("reference").record if kind == "Reply" else {}, None
        if refers:
            parent = _address(record, refers.get("channelId") or channel, refers.get("messageId"))
            if parent is None:
                fields.bad("reference", refers, "the numbers of a message")
        yield Post(
            url=url,
            post_id=_number(message),
            platform="discord",
            author=fields.part("author").text("name"),
            text=fields.text("content"),
            timestamp=fields.moment("timestamp"),
            edited=fields.moment("timestampEdited"),
            keywords=keywords,
            pictures=list(_images(fields)),
            parent_url=parent,
        )


def _images(fields: Fields) -> Iterator[PostImage]:
    for one in fields.parts("attachments"):
        place = one.text("url") or ""
        if not IMAGE_FILE.fullmatch(one.text("fileName") or place.partition("?")[0]):
            continue
        if not re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", place, re.ASCII):
            yield from [PostImage(path=place)] if place else []  # an export with its media
        elif link := one.link("url"):
            yield PostImage(url=link)


def _address(record: Json, channel: Any, message: Any) -> str | None:
    numbers = _number(record.get("_server")), _number(channel), _number(message)
    return "https://discord.com/channels/" + "/".join(map(str, numbers)) if all(numbers) else None


def _number(given: Any) -> str | None:
    if isinstance(given, int) and abs(given) >= 10**25:
        return None  # Python does not write numbers of thousands of digits
    text = name_of(given) or ""
    return text if NUMBER.fullmatch(text) else None
