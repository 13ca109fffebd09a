"""A year on loopback: people post about four models, edit and delete; models answer, and count."""

from __future__ import annotations

import datetime
import hashlib
import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, urlsplit

from PIL import Image

from tests.engines.openai.loopback_server import Answer, Asked, completion
from tests.images_for_tests import encoded
from tests.schedule.town import FIRST_DAY, PAGE, date
from tests.systems.drawing_for_tests import image_answer

QUARTER = 91
QUARTERS = 4
A_WEEK = 3  # tasks that are posted in one
NEVER = 10**6
MARK, EDITED = "Prompt: ", ", again"
WORDS = (
    ("a copper fox", "two tired robots", "an old ferry", "a paper owl", "three glass cats", "a"),
    ("mending a kite", "in the rain", "under a lamp", "on a roof", "selling plums", "asleep"),
    ("in watercolor", "as a linocut", "in blue ink", "as an oil sketch", "in chalk", "at noon"),
)
PAID = ("/v1/chat/completions", "/v1/images/generations")


@dataclass(frozen=True)
class Posted:
    """A post; it is there from its day on, but for the days from `gone` until `back`."""

    name: str
    day: int
    model: str
    text: str
    parent: str | None = None
    gone: int = NEVER
    back: int = NEVER
    edited: int = NEVER

    def is_there(self, today: int) -> bool:
        return self.day < today and not self.gone <= today < self.back

    def said(self, today: int) -> str:
        return f"{self.text}{EDITED}" if self.edited <= today else self.text

    @property
    def thread(self) -> str:
        return self.parent or self.name

    @property
    def prompt(self) -> str:
        return self.text.partition(MARK)[2]


def model_of(quarter: int) -> str:
    return f"lumen{quarter + 1}"


def drawn(draw: random.Random) -> dict[str, Posted]:
    """The year's posts: a fifth is deleted, and of these a third comes back."""

    def absent(day: int) -> tuple[int, int]:
        gone = day + draw.randrange(3, 60) if draw.random() < 0.2 else NEVER
        return gone, gone + draw.randrange(10, 30) if draw.random() < 0.33 else NEVER

    every = [" ".join(words) for words in product(*WORDS)]
    draw.shuffle(every)
    weeks, posts = QUARTER // 7, []
    for number in range(QUARTERS * weeks * A_WEEK):
        quarter, day = divmod(number * 7 // A_WEEK, QUARTER)
        model, start = model_of(quarter), quarter * QUARTER + day
        edited = start + draw.randrange(3, 30) if draw.random() < 0.1 else NEVER
        text = f"{model} made this\n\n{MARK}{every[number]}"
        posts.append(Posted(f"p{number}", start, model, text, None, *absent(start), edited))
        for reply in range(draw.randrange(3)):
            day, name = start + draw.randrange(0, 25), f"p{number}r{reply}"
            said = draw.choice(("love it", "the hands are wrong", "wrong colors, and blurry"))
            # Posts of the same words share an answer, which goes with each of them.
            said = f"{said} ({name})"
            posts.append(Posted(name, day, model, said, f"p{number}", *absent(day)))
    return {one.name: one for one in posts}


@dataclass
class Services:
    """Everything a turn asks, but the Hub; the process sees `today` by what is there to read.

    Attributes:
        today: Days since the first one.
        before: Called before each request; false leaves it without an answer.
        attempt: Number of the turn's attempt that asks now.
        paid: What was paid for, by the request's digest: the attempts in which it was.
        received: Bytes of requests that were paid for.
    """

    posts: Mapping[str, Posted]
    today: int = 0
    before: Callable[[], bool] = lambda: True
    attempt: int = 0
    paid: dict[str, list[int]] = field(default_factory=dict)
    received: int = 0
    _lock: Lock = field(default_factory=Lock)

    def behave(self, asked: Asked) -> Answer:
        if not self.before():
            return Answer(cut_after=0)
        parts = urlsplit(asked.path)
        given = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path.startswith("/town/"):
            return Answer(getattr(self, f"_{parts.path.rpartition('/')[2]}")(given))
        if parts.path not in PAID:
            return Answer({"id": "tiny", "object": "model"})
        digest = hashlib.sha256(asked.data).hexdigest()
        kind = asked.body.get("response_format", {}).get("json_schema", {}).get("name")
        with self._lock:
            self.paid.setdefault(digest, []).append(self.attempt)
            self.received += len(asked.data)
        if parts.path.endswith("generations"):
            color = (*bytes.fromhex(digest[:6]),)
            return image_answer(encoded(Image.new("RGB", (64, 48), color), "PNG"))
        if kind is None:
            return completion(f"Rating: [[{1 + int(digest, 16) % 10}]]")
        return completion(json.dumps(ANSWERS[kind](json.dumps(asked.body["messages"][1]))))

    def _search(self, given: Mapping[str, str]) -> dict[str, Any]:
        days = range(*(_day(given[one]) for one in ("since", "until")))
        found = [one for one in self._there() if one.model == given["q"] and one.day in days]
        start = int(given.get("cursor", 0))
        more = str(start + PAGE) if len(found) > start + PAGE else None
        return {"posts": self._shown(found[start : start + PAGE]), "cursor": more}

    def _replies(self, given: Mapping[str, str]) -> dict[str, Any]:
        names = given["ids"].split(",")
        return {"posts": self._shown(one for one in self._there() if one.parent in names)}

    def _posts(self, given: Mapping[str, str]) -> dict[str, Any]:
        names = given["ids"].split(",")
        return {"posts": self._shown(one for one in self._there() if one.name in names)}

    def _gone(self, given: Mapping[str, str]) -> list[str]:
        names = given["ids"].split(",")
        return [one for one in names if not self.posts[one].is_there(self.today)]

    def _there(self) -> Iterator[Posted]:
        return (one for one in self.posts.values() if one.is_there(self.today))

    def _shown(self, posts: Iterable[Posted]) -> list[dict[str, Any]]:
        return [
            {
                "id": one.name,
                "parent": one.parent,
                "time": _noon(one.day),
                "author": f"author_{one.name}",
                "text": one.said(self.today),
                "edited": _noon(one.edited) if one.edited <= self.today else None,
            }
            for one in posts
        ]


def _noon(day: int) -> str:
    return f"{date(day)}T12:00:00+00:00"


def _day(moment: str) -> int:
    return (datetime.datetime.fromisoformat(moment).date() - FIRST_DAY).days


def _between(question: str, tag: str) -> Any:
    text = json.loads(question)["content"]
    if not isinstance(text, str):
        text = text[-1]["text"]
    return json.loads(text.split(f"<{tag}>")[1].split(f"</{tag}>")[0])


def _extracted(question: str) -> dict[str, Any]:
    posts = _between(question, "thread")
    prompts = [one for one in posts if MARK in (one["text"] or "")]
    feedback = [
        {"post": one["number"], "feedback": one["text"]}
        for one in posts
        if one["text"] and one not in prompts
    ]
    return {
        "samples": [
            {
                "prompt": one["text"].partition(MARK)[2],
                "quality": "Benchmark",
                "posts": [one["number"]],
                "feedback": feedback,
            }
            for one in prompts[:1]
        ]
    }


def _judged(question: str) -> dict[str, Any]:
    comments = _between(question, "sample")["comments"]
    feedback = [
        {"comment": one["comment"], "verdict": "failure", "keyword": "wrong colors"}
        if "wrong" in one["text"]
        else {"comment": one["comment"], "verdict": "success"}
        for one in comments
    ]
    return {"kind": "task", "task": "text_to_image", "feedback": feedback}


ANSWERS: dict[str, Callable[[str], dict[str, Any]]] = {
    "RelevanceAnswer": lambda _: {"score": 5},
    "ExtractAnswer": _extracted,
    "FeedbackAnswer": _judged,
    "PhraseAnswer": lambda _: {"task_phrase": "draw a picture"},
    "SafetyAnswer": lambda _: {"hazards": []},
}
