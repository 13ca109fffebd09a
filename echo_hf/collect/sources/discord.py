"""Messages of Discord channels, in the JSON that DiscordChatExporter writes.

A reply's parent is the message it refers to. Messages between two people are not taken in, nor
what the platform itself says in a channel. Reactions are no likes: a thumb may point down.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from echo_hf.collect.fields import Fields, short_repr
from echo_hf.collect.nested_json import taken_apart
from echo_hf.collect.sources.base import Finding, Parsed, Post, PostImage, register
from echo_hf.reasons import Notice, Reject

WRITTEN = frozenset({"Default", "Reply", "ThreadStarterMessage"})
NUMBER = re.compile(r"[1-9][0-9]{0,24}", re.ASCII)
IMAGE_FILE = re.compile(r".+\.(?:png|jpe?g|webp|gif|bmp|avif|heic)", re.IGNORECASE | re.DOTALL)
Json = Mapping[str, Any]


@register("discord")
class Discord:
    def split(self, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
        return taken_apart(lines, _messages)

    def posts(self, record: Any, keywords: Sequence[str]) -> Iterator[Parsed]:
        if not isinstance(record, dict) or "_channel" not in record:
            yield Finding(Reject.NOT_A_POST, f"{short_repr(record)}, expected an exported channel")
            return
        fields = Fields(record)
        kind = fields.text("type")
        url = _address(record, record.get("id"))
        if kind not in WRITTEN:
            yield Finding(
                Reject.NOT_A_POST, f"type is {short_repr(kind)}, expected a person's message"
            )
        elif not _number(record.get("_server")):
            yield Finding(Reject.NOT_A_POST, "a message outside a server, which is not public")
        elif url is None:
            given = (
                f"id is {short_repr(record.get('id'))}, channel {short_repr(record['_channel'])}"
            )
            yield Finding(Reject.NO_URL, f"{given}, expected numbers")
        else:
            yield _post(url, kind, fields, keywords)
            yield from fields.findings


def _messages(document: Any) -> Iterator[tuple[str, Any]]:
    messages = document.get("messages") if isinstance(document, dict) else None
    if isinstance(messages, list):
        where = {"_server": _id(document, "guild"), "_channel": _id(document, "channel")}
        for number, message in enumerate(messages):
            yield f"#{number}", {**message, **where} if isinstance(message, dict) else message


def _post(url: str, kind: str | None, fields: Fields, keywords: Sequence[str]) -> Post:
    return Post(
        url=url,
        post_id=_number(fields.record.get("id")),
        platform="discord",
        author=Fields(fields.object("author"), fields.findings, "author.").text("name"),
        text=fields.text("content"),
        timestamp=fields.moment("timestamp"),
        edited=fields.moment("timestampEdited"),
        keywords=list(keywords),
        pictures=_images(fields),
        parent_url=_parent(fields) if kind == "Reply" else None,
    )


def _parent(fields: Fields) -> str | None:
    reference = fields.object("reference")
    if not reference:
        return None
    channel = reference.get("channelId") or fields.record["_channel"]
    url = _address({**fields.record, "_channel": channel}, reference.get("messageId"))
    if url is None:
        fields.find(Notice.BAD_FIELD, "reference", reference, "the numbers of a message")
    return url


def _images(fields: Fields) -> list[PostImage]:
    images = []
    for one in fields.objects("attachments"):
        inner = Fields(one, fields.findings, "attachments.")
        place = inner.text("url") or ""
        if not IMAGE_FILE.fullmatch(inner.text("fileName") or place.partition("?")[0]):
            continue
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", place, re.ASCII):
            link = inner.link("url")
            images += [PostImage(url=link)] if link else []
        elif place:
            images.append(PostImage(path=place))  # an export with its media beside it
    return images


def _address(record: Json, message: Any) -> str | None:
    numbers = _number(record.get("_server")), _number(record.get("_channel")), _number(message)
    return "https://discord.com/channels/" + "/".join(map(str, numbers)) if all(numbers) else None


def _number(given: Any) -> str | None:
    usable = isinstance(given, int | str) and not isinstance(given, bool)
    text = str(given)[:30] if usable and (isinstance(given, str) or abs(given) < 10**25) else ""
    return text if NUMBER.fullmatch(text) else None


def _id(document: Json, name: str) -> Any:
    inner = document.get(name)
    return inner.get("id") if isinstance(inner, dict) else None
