"""A platform: its addresses, its posts, and its search."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Self
from urllib.parse import quote
from urllib.request import urlopen

from echo_hf.collect.platforms.base import Page, Question, Tariff
from echo_hf.collect.sources.base import Finding, Parsed, Post, PostReject, split_json
from echo_hf.collect.urls import Site

SITE = Site(
    platform="lantern",
    hosts=("lantern.example",),
    post=re.compile(r"/(?:\w+/)?post-(\d+)"),
    canonical=lambda post: f"https://lantern.example/post-{post[1]}",
    names=("lantern social",),
    account_hosts=r"lantern\.example",
)


class LanternSource:
    """Reads a post a line."""

    split = staticmethod(split_json)

    def posts(self, record: Any, keywords: Sequence[str]) -> Iterator[Parsed]:
        if not isinstance(record, dict) or not isinstance(record.get("number"), int):
            yield Finding(PostReject.NOT_A_POST, f"expected a number, got {record!r:.80}")
            return
        yield Post(
            f"https://lantern.example/post-{record['number']}",
            author=record["author"],
            text=record["text"],
            timestamp=datetime.fromisoformat(record["time"]),
            keywords=keywords,
        )


class Lantern:
    """Asks a server for posts."""

    name = "lantern"
    tariff = Tariff(usd_per_post=0.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *trouble: object) -> None:
        pass

    def ask(self, question: Question, cursor: str | None = None) -> Page:
        del cursor
        server = os.environ["LANTERN_SERVER"]
        with urlopen(f"{server}/search?q={quote(question.about[0])}") as answer:  # noqa: S310
            return Page(answer.read().decode())

    def around(self, posts: Sequence[Post]) -> list[Question]:
        del posts
        return []

    def estimate(self, question: Question) -> int | None:
        del question
        return None
