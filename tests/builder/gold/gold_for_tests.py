"""A gold folder written by hand, and an engine that answers what gold says.

The engine reads the files of gold by itself: what is proved with it does not rest on how the
package reads them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from PIL import Image

from echo_hf.collect.urls import canonical_url
from echo_hf.engines.base import Completion, Request, Usage

Row = dict[str, Any]
BUNDLED = Path(__file__).resolve().parents[3] / "echo_hf" / "quickstart"
FILES = ("relevance", "extract", "roles", "screenshots", "safety", "feedback", "tasks")
CONFIG = """\
name: mine
target: {name: Tern 2, developer: Sandbar, released: 2026-05-04, aliases: [tern]}
posts: [{source: jsonl, path: elsewhere.jsonl}]
engines: {text: {kind: rules}}
"""
OTTER, REPLY, KITE, LUNCH = (f"https://example.org/{name}" for name in ("o", "o2", "k", "l"))
OTTER_PROMPT = "An otter in a rowing boat, pencil drawing, soft light, plain paper"
KITE_PROMPT = "Make this kite red and leave everything else as it is"
POSTS: list[Row] = [
    {
        "url": OTTER,
        "author": "ana_ink",
        "text": f"Made with Tern 2. Prompt: {OTTER_PROMPT}",
        "keywords": ["tern"],
        "pictures": [{"path": "pictures/otter.png"}],
    },
    {
        "url": REPLY,
        "author": "bo_kites",
        "text": "wow, the light is perfect, looks amazing",
        "parent_url": OTTER,
        "keywords": [],
    },
    {
        "url": KITE,
        "author": "bo_kites",
        "text": f"Before and after with Tern 2. Prompt: {KITE_PROMPT}",
        "keywords": ["tern"],
        "pictures": [{"path": "pictures/before.png"}, {"path": "pictures/after.png"}],
    },
    {"url": LUNCH, "author": "cy", "text": "lunch by the sea, a tern stole it", "keywords": ["t"]},
]
GOLD: dict[str, list[Row]] = {
    "relevance": [
        {"url": OTTER, "score": 5},
        {"url": KITE, "score": 5, "acceptable": [4, 5], "half": "tune"},
        {"url": LUNCH, "score": 1},
    ],
    "extract": [
        {
            "root_url": OTTER,
            "samples": [
                {
                    "prompt": OTTER_PROMPT,
                    "quality": "Benchmark",
                    "post_urls": [OTTER],
                    "feedback": [REPLY],
                }
            ],
        },
        {
            "root_url": KITE,
            "half": "tune",
            "samples": [{"prompt": KITE_PROMPT, "quality": "Benchmark", "post_urls": [KITE]}],
        },
    ],
    "roles": [
        {
            "root_url": OTTER,
            "prompt": OTTER_PROMPT,
            "pictures": [{"post_url": OTTER, "index": 0, "role": "output"}],
        },
        {
            "root_url": KITE,
            "prompt": KITE_PROMPT,
            "half": "tune",
            "pictures": [
                {"post_url": KITE, "index": 0, "role": "input"},
                {"post_url": KITE, "index": 1, "role": "output"},
            ],
        },
    ],
    "safety": [
        {"root_url": OTTER, "prompt": OTTER_PROMPT, "flagged": False},
        {"root_url": KITE, "prompt": KITE_PROMPT, "flagged": False, "half": "tune"},
    ],
    "feedback": [{"post_url": REPLY, "verdict": "success"}],
    "tasks": [
        {"root_url": OTTER, "prompt": OTTER_PROMPT, "kind": "task", "task": "text_to_image"},
        {
            "root_url": KITE,
            "prompt": KITE_PROMPT,
            "kind": "task",
            "task": "edit",
            "half": "tune",
        },
    ],
}


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


def write_gold(folder: Path, gold: Mapping[str, list[Row]] | None = None) -> Path:
    (folder / "gold" / "pictures").mkdir(parents=True)
    for number, name in enumerate(("otter", "before", "after")):
        color = (80 * number, 120, 200 - 60 * number)
        Image.new("RGB", (8, 8), color).save(folder / "gold" / "pictures" / f"{name}.png")
    write_lines(folder / "gold" / "posts.jsonl", POSTS)
    for name, rows in (GOLD if gold is None else gold).items():
        write_lines(folder / "gold" / f"{name}.jsonl", rows)
    (folder / "config.yaml").write_text(CONFIG, "utf-8")
    return folder / "gold"


def read_lines(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


class Reader:
    """Answers every question with what the files of a gold folder say.

    Attributes:
        asked: How many questions of each task it was asked.
    """

    stored = True

    def __init__(self, posts: Path, gold: Path) -> None:
        self.posts = {canonical_url(post["url"]): post for post in read_lines(posts)}
        self.folder = posts.parent
        self.gold = {name: read_lines(gold / f"{name}.jsonl") for name in FILES}
        self.asked: dict[str, int] = {}

    def signature(self) -> Mapping[str, Any]:
        return {"kind": "reader"}

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        for number, request in enumerate(requests):
            self.asked[request.task] = self.asked.get(request.task, 0) + 1
            answer = getattr(self, request.task)(request)
            yield number, Completion(json.dumps(answer), usage=Usage(10, 2), cost_usd=0.25)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def relevance(self, request: Request) -> Row:
        lines = {canonical_url(line["url"]): line for line in self.gold["relevance"]}
        return {"score": lines[request.sources[0]]["score"]}

    def extract(self, request: Request) -> Row:
        number = {
            url: post["number"]
            for url, post in zip(request.sources, request.inputs["posts"], strict=True)
        }
        line = next(one for one in self.gold["extract"] if canonical_url(one["root_url"]) in number)
        return {"samples": [self._sample(one, number) for one in line["samples"]]}

    def roles(self, request: Request) -> Row:
        line = self._line("roles", request.inputs["prompt"], request.sources)
        number = {one["file"].name: one["number"] for one in request.inputs["pictures"]}
        at = {
            role: [number[d] for d in self._digests(line["pictures"], role) if d in number]
            for role in ("input", "output")
        }
        marked = {
            name: number[self._digest(line[name])] if line.get(name) else None
            for name in ("conversation", "collage")
        }
        plain = {"inputs": at["input"], "outputs": at["output"], "posts": [0], **marked}
        blanks = request.inputs["placeholders"]
        filled: list[Row] = [
            {
                "inputs": at["input"],
                "outputs": [number[self._digest(one["output"])]],
                "posts": [0],
                "prompt_fill_blank": [
                    {"placeholder": blank, "value": value}
                    for blank, value in zip(blanks, one["blanks"].values(), strict=True)
                ],
            }
            for one in line.get("filled", [])
        ]
        return {"samples": filled or [plain]}

    def screenshots(self, request: Request) -> Row:
        file = request.inputs["file"]
        line = next(one for one in self.gold["screenshots"] if self._digest(one) == file.name)
        with Image.open(file) as image:
            ends = image.size * 2
        boxes = {
            role: [
                [1000 * at / end for at, end in zip(box, ends, strict=True)] for box in line[role]
            ]
            for role in ("inputs", "outputs")
        }
        return {"prompt": line["prompt"], **boxes}

    def safety(self, request: Request) -> Row:
        texts = request.inputs["texts"]
        if not texts:
            return {"hazards": []}
        line = self._line("safety", self._template(texts[0]), request.sources)
        return {"hazards": line.get("categories", [])}

    def feedback(self, request: Request) -> Row:
        by_text = {
            " ".join(self.posts[canonical_url(line["post_url"])]["text"].split()): line
            for line in self.gold["feedback"]
        }
        said = [
            {**by_text[" ".join(one["text"].split())], "comment": one["comment"]}
            for one in request.inputs["comments"]
        ]
        prompt = self._template(request.inputs["prompt"])
        try:
            line = self._line("tasks", prompt, request.sources)
        except StopIteration:
            return {"kind": None, "task": None, "feedback": said}
        return {"kind": line["kind"], "task": line["task"], "feedback": said}

    def _sample(self, sample: Row, number: Mapping[str, int]) -> Row:
        heard = [*sample.get("feedback", []), *sample.get("feedback_optional", [])]
        return {
            "prompt": sample["prompt"],
            "quality": sample["quality"],
            "posts": [number[str(canonical_url(url))] for url in sample["post_urls"]],
            "feedback": [
                {
                    "post": number[str(canonical_url(url))],
                    "feedback": self.posts[canonical_url(url)]["text"],
                }
                for url in heard
            ],
        }

    def _template(self, prompt: str) -> str:
        for line in self.gold["roles"]:
            if any(one["prompt"] == prompt for one in line.get("filled", [])):
                return str(line["prompt"])
        return prompt

    def _line(self, name: str, prompt: str, sources: Iterable[str]) -> Row:
        shown = set(sources)
        roots = {self._root(url) for url in shown}
        return next(
            line
            for line in self.gold[name]
            if line["prompt"].split() == prompt.split() and canonical_url(line["root_url"]) in roots
        )

    def _root(self, url: str) -> str:
        while parent := self.posts.get(url, {}).get("parent_url"):
            url = str(canonical_url(parent))
        return url

    def _digests(self, images: Iterable[Row], role: str) -> list[str]:
        return [self._digest(one) for one in images if one["role"] == role]

    def _digest(self, image: Row) -> str:
        post = self.posts[canonical_url(image["post_url"])]
        file = self.folder / post["pictures"][image["index"]]["path"]
        return hashlib.sha256(file.read_bytes()).hexdigest()
