"""The platform of the simulated year, as a plugin: a crawl asks it, and it says what is gone."""

from __future__ import annotations

import datetime
import json
import os
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

from echo_hf.collect.platforms.base import Answer, Question, Tariff
from echo_hf.collect.sources.base import Finding, Parsed, Post, json_documents
from echo_hf.reasons import Missing, Reject

NAME, HOST, ADDRESS = "town", "https://town.example", "TOWN_ADDRESS"
ENTRY_POINTS = f"""[echo_hf.platforms]
{NAME} = tests.schedule.town:Town
[echo_hf.sources]
{NAME} = tests.schedule.town:TownSource
"""
FIRST_DAY = datetime.date(2025, 1, 6)
PAGE = 20


def date(day: int) -> datetime.date:
    return FIRST_DAY + datetime.timedelta(days=day)


class Town:
    """The platform, free of charge; it can say what is gone."""

    name = NAME
    tariff = Tariff(0.0, None, PAGE)
    most_refreshed = 50

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Holds nothing."""

    def ask(self, question: Question, cursor: str | None = None) -> Answer:
        given = {"ids": ",".join(question.about)}
        if question.window:
            window = {"since": question.window.start, "until": question.window.end}
            given = {"q": question.about[0], **{key: str(at) for key, at in window.items()}}
        body = _fetched(question.kind, given | ({"cursor": cursor} if cursor else {}))
        page = json.loads(body)
        return Answer(body, page.get("cursor"), len(page["posts"]))

    def around(self, posts: Sequence[Post]) -> Sequence[Question]:
        above = [_name(post.parent_url) for post in posts if post.parent_url]
        below = [_name(post.url) for post in posts]
        return [Question("posts", (one,)) for one in above] + [
            Question("replies", (one,)) for one in below
        ]

    def estimate(self, question: Question) -> int | None:
        del question
        return None

    def gone(self, urls: Sequence[str]) -> Mapping[str, Missing]:
        said = json.loads(_fetched("gone", {"ids": ",".join(map(_name, urls))}))
        return dict.fromkeys((f"{HOST}/{one}" for one in said), Missing.DELETED)


class TownSource:
    def split(self, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
        for place, text in json_documents(lines):
            for number, post in enumerate(json.loads(text)["posts"]):
                yield f"{place}#{number}", json.dumps(post)

    def posts(self, record: Any, keywords: Sequence[str]) -> Iterator[Parsed]:
        if not isinstance(record, dict) or not {"id", "text", "day"} <= record.keys():
            yield Finding(Reject.NOT_A_POST, "no id, text or day")
            return
        yield Post(
            url=f"{HOST}/{record['id']}",
            post_id=record["id"],
            platform=NAME,
            author=f"author_{record['id']}",
            text=record["text"],
            timestamp=_noon(record["day"]),
            edited=_noon(record.get("edited")),
            keywords=list(keywords),
            parent_url=f"{HOST}/{record['parent']}" if record.get("parent") else None,
        )


def _fetched(what: str, given: Mapping[str, str]) -> str:
    address = f"{os.environ[ADDRESS]}/town/{what}?{urlencode(given)}"
    with urllib.request.urlopen(address, timeout=20) as response:  # noqa: S310
        body: bytes = response.read()
    return body.decode()


def _noon(day: int | None) -> datetime.datetime | None:
    noon = datetime.time(12)
    return None if day is None else datetime.datetime.combine(date(day), noon, datetime.UTC)


def _name(url: str) -> str:
    return url.rpartition("/")[2]


def registered(folder: Path) -> Path:
    about = folder / f"{NAME}-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 1\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder
