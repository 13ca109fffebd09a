"""A platform on loopback: pages, cursors, limits, deletions, restarts, and posts found twice.

`World` is what it holds, `Service` the server, `Simulated` and `SimulatedSource` what a crawl
talks to it with; `registered` makes them known as a plugin, as another package would.
"""

from __future__ import annotations

import datetime
import http.client
import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from echo_hf.collect.platforms.base import (
    Page,
    Question,
    RateLimitedError,
    StaleCursorError,
    Tariff,
    UnanswerableError,
)
from echo_hf.collect.sources.base import Finding, Parsed, Post, PostReject, split_json
from tests.collect.loopback import Loopback, answer

NAME = "simulated"
HOST = "https://simulated.example"
ADDRESS = "SIMULATED_ADDRESS"
PRICE = 0.001
PAGE = 50
BATCH = 20
FIRST_DAY = datetime.datetime(2026, 3, 2, tzinfo=datetime.UTC)
OVERLAP = datetime.timedelta(hours=2)  # its windows begin a little early
TERMS = ("lumen", "lumen img", "l image")


@dataclass
class World:
    posts: dict[str, dict[str, Any]]
    deleted: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, count: int, seed: int, days: int = 20) -> World:
        draw = random.Random(seed)
        posts: dict[str, dict[str, Any]] = {}
        for number in range(count):
            parent = f"p{draw.randrange(number)}" if number and draw.random() < 0.6 else None
            terms = [term for term in TERMS if draw.random() < 0.12]
            time = FIRST_DAY + datetime.timedelta(minutes=draw.randrange(days * 24 * 60))
            one = {"id": f"p{number}", "parent": parent, "time": time.isoformat(), "terms": terms}
            posts[one["id"]] = one
        return cls(posts)

    def reachable(self) -> set[str]:
        waiting = [one["id"] for one in self.posts.values() if one["terms"]]
        seen: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                parent = self.posts[name]["parent"]
                waiting += [*self.children[name], *([parent] if parent else [])]
        return seen

    def shown(self, name: str) -> dict[str, Any]:
        return {**self.posts[name], "text": f"post {name}", "replies": len(self.children[name])}

    @cached_property
    def children(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {name: [] for name in self.posts}
        for one in self.posts.values():
            if one["parent"]:
                found[one["parent"]].append(one["id"])
        return found


class Service(Loopback):
    def __init__(self, world: World, limit_each: int = 0) -> None:
        self.world = world
        self.answered: Counter[str] = Counter()
        self.limited = 0
        self.limit_each = limit_each
        self.generation = 0
        self.faults: dict[str, int] = {}
        self.said: dict[str, Any] = {}
        self.before: Callable[[int], None] = lambda _: None
        self.requests = 0
        self._lock = Lock()
        super().__init__()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def respond(self, request: BaseHTTPRequestHandler) -> None:
        status, page = self.page_of(request.path)
        answer(request, status, json.dumps(page).encode())

    def page_of(self, path: str) -> tuple[int, dict[str, Any]]:
        with self._lock:
            self.requests += 1
            if self.limit_each and self.requests % self.limit_each == 0:
                self.limited += 1
                return 429, {"reset_after": 0.01}
            self.before(self.requests)
            parts = urlsplit(path)
            given = {name: values[0] for name, values in parse_qs(parts.query).items()}
            fault = next((one for name, one in self.faults.items() if name in path), None)
            if fault is not None:
                return fault, self.said
            status, page = getattr(self, f"_{parts.path.strip('/')}")(given)
            if status == 200:
                self.answered[path] += 1
            return status, page

    def _search(self, given: dict[str, str]) -> tuple[int, dict[str, Any]]:
        since = (datetime.datetime.fromisoformat(given["since"]) - OVERLAP).isoformat()
        found = [
            name
            for name, one in self.world.posts.items()
            if given["q"] in one["terms"] and since <= one["time"] < given["until"]
        ]
        return self._page(found, given)

    def _replies(self, given: dict[str, str]) -> tuple[int, dict[str, Any]]:
        found = [one for name in given["ids"].split(",") for one in self.world.children[name]]
        return self._page(found, given)

    def _thread(self, given: dict[str, str]) -> tuple[int, dict[str, Any]]:
        above, waiting = self.world.posts[given["ids"]]["parent"], [given["ids"]]
        found: list[str] = []
        while above:
            found.append(above)
            above = self.world.posts[above]["parent"]
        while waiting:
            found.append(waiting.pop())
            waiting += self.world.children[found[-1]]
        return 200, {"posts": [self.world.shown(one) for one in found], "cursor": None}

    def _posts(self, given: dict[str, str]) -> tuple[int, dict[str, Any]]:
        found = []
        for name in given["ids"].split(","):
            gone = name in self.world.deleted
            found.append({"id": name, "gone": True} if gone else self.world.shown(name))
        return 200, {"posts": found, "cursor": None}

    def _page(self, found: Iterable[str], given: dict[str, str]) -> tuple[int, dict[str, Any]]:
        # A cursor names the last post of the page, so that what is deleted moves no other.
        after, generation = -1, str(self.generation)
        if "cursor" in given:
            last, generation = given["cursor"].split("@")
            after = int(last)
        if generation != str(self.generation):
            return 410, {}
        numbers = sorted(int(one[1:]) for one in found if one not in self.world.deleted)
        left = [one for one in numbers if one > after]
        page = [self.world.shown(f"p{one}") for one in left[:PAGE]]
        cursor = f"{left[PAGE - 1]}@{self.generation}" if len(left) > PAGE else None
        return 200, {"posts": page, "cursor": cursor}


class Simulated:
    name = NAME
    tariff = Tariff(PRICE, 0.0, PAGE)

    def __init__(self) -> None:
        self._connection: http.client.HTTPConnection | None = None

    def __enter__(self) -> Simulated:
        self._connection = http.client.HTTPConnection(os.environ[ADDRESS], timeout=20)
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection:
            self._connection.close()

    def ask(self, question: Question, cursor: str | None = None) -> Page:
        body = self.get(path_of(question, cursor))
        page = json.loads(body)
        return Page(body, page.get("cursor"), len(page["posts"]))

    def around(self, posts: Sequence[Post]) -> Sequence[Question]:
        parents = [name_of(post.parent_url) for post in posts if post.parent_url]
        own = [name_of(post.url) for post in posts]
        return [*_in_batches("posts", parents), *_in_batches("replies", own)]

    def estimate(self, question: Question) -> int | None:
        return len(json.loads(self.get(path_of(question, None)))["posts"])

    def get(self, path: str) -> str:
        if self._connection is None:
            raise OSError("not connected")
        try:
            self._connection.request("GET", path)
            response = self._connection.getresponse()
            body = response.read().decode()
        except http.client.HTTPException as error:
            self._connection.close()
            raise OSError(str(error)) from error
        except OSError:
            self._connection.close()
            raise
        if response.status == 429:
            raise RateLimitedError(json.loads(body)["reset_after"])
        if response.status == 410:
            raise StaleCursorError
        if response.status == 422:
            raise UnanswerableError("it does not like the question")
        if response.status != 200:
            raise OSError(f"status {response.status}")
        return body


class SimulatedSource:
    name, host = NAME, HOST

    def split(self, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
        for place, text in split_json(lines):
            for number, post in enumerate(json.loads(text)["posts"]):
                yield f"{place}#{number}", json.dumps(post)

    def posts(self, record: Any, keywords: Sequence[str]) -> Iterator[Parsed]:
        if not isinstance(record, dict) or "id" not in record:
            yield Finding(PostReject.NOT_A_POST, "no id")
            return
        url = f"{self.host}/{record['id']}"
        if record.get("gone"):
            yield Post(url, record["id"], self.name, missing="deleted")
            return
        if "text" not in record:
            yield Finding(PostReject.NOT_A_POST, "not text")
            return
        written, edited = (
            moment and datetime.datetime.fromisoformat(moment)
            for moment in (record["time"], record.get("edited"))
        )
        yield Post(
            url=url,
            post_id=record["id"],
            platform=self.name,
            author=record.get("author"),
            text=record["text"],
            timestamp=written,
            edited=edited,
            keywords=list(keywords),
            parent_url=f"{self.host}/{record['parent']}" if record["parent"] else None,
            engagement={"replies": record["replies"]} if "replies" in record else None,
        )


def registered(folder: Path, platform: Any = Simulated, source: Any = SimulatedSource) -> Path:
    """A folder that makes both known under the platform's name, as an installed package would."""
    about = folder / "plugin-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1\n")
    made = {"platforms": platform, "sources": source}
    points = (
        f"[echo_hf.{group}]\n{platform.name} = {one.__module__}:{one.__name__}\n"
        for group, one in made.items()
    )
    (about / "entry_points.txt").write_text("".join(points))
    return folder


def path_of(question: Question, cursor: str | None) -> str:
    given = {"cursor": cursor} if cursor else {}
    if question.kind == "search" and question.window:
        window = question.window
        given |= {"q": question.about[0], "since": window.start.isoformat()}
        given |= {"until": window.end.isoformat()}
    else:
        given |= {"ids": ",".join(question.about)}
    return f"/{question.kind}?{urlencode(given)}"


def _in_batches(kind: Any, names: Sequence[str]) -> Iterator[Question]:
    for start in range(0, len(names), BATCH):
        yield Question(kind, tuple(names[start : start + BATCH]))


def name_of(url: str) -> str:
    return url.rpartition("/")[2]
