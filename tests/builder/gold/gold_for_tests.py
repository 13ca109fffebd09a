"""A gold folder written by hand, and an engine that answers what careful readers wrote down."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from PIL import Image

from echo_hf.engines.base import Completion, Request, Usage
from echo_hf.engines.recorded import RecordedEngine

Row = dict[str, Any]
BUNDLED = Path(__file__).resolve().parents[3] / "echo_hf" / "quickstart"
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


class Reader(RecordedEngine):
    """Answers what careful readers wrote down, as a model whose answers are kept and cost."""

    stored = True
    abstains = False

    def __init__(self) -> None:
        super().__init__(source="quickstart")
        self.asked: Counter[str] = Counter()

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        for number, request in enumerate(requests):
            self.asked[request.task] += 1
            ((_, given),) = super().stream([request])
            yield number, replace(given, usage=Usage(10, 2), cost_usd=0.25)
