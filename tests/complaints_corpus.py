"""Drawn posts about an invented model: outputs with planted faults, and replies that name them.

One engine reads them by the rules that echo-hf brings, writes questions, and answers them by the
pixels: it sees a yellow tint and a blank sign, and counts fingers by the flip of a coin.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from PIL import Image

from echo_hf.engines.base import Completion, ImageRef, Request, Text, Usage, register
from echo_hf.engines.rules import RULES
from echo_hf.systems.evaluation_run import EvaluationRun
from echo_hf.tables import OUTPUTS

KIND = "drawn_eyes"
RELEASED = datetime(2026, 3, 2, tzinfo=UTC)
THINGS = ("boat", "fox", "tree", "lamp", "bridge", "teapot", "owl", "tower", "bicycle", "cloud")
PLACES = ("at dawn", "in the snow", "on a hill", "by a river", "in a garden", "under stars")
REPLIES: Mapping[str, str] = {
    "colour cast": "the whole thing came out too yellow",
    "extra fingers": "six fingers on that hand",
    "misspelt text": "the sign is misspelled",
    "": "gorgeous, exactly right",
}
QUESTIONS: Mapping[str, tuple[str, str]] = {
    "colour cast": (
        "Does a yellow or warm cast lie over the whole picture although its task asks for none?",
        "A yes needs a visible cast on areas that should be neutral. A warm lamp or a low sun that "
        "the task asks for is a no.",
    ),
    "extra fingers": (
        "Does any hand in the picture have more than five fingers?",
        "A yes needs a hand with at least six fingers. Hidden or blurred hands are a no.",
    ),
    "misspelt text": (
        "Is any word in the picture spelled wrongly or made of broken letters?",
        "A yes needs a letter that is wrong, missing or unreadable. Words too small to read are "
        "a no.",
    ),
}


def draw(seed: int, fault: str = "", size: int = 48) -> bytes:
    """A scene of blocks and noise, with a tint or a blank sign where that is the fault."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(60, 200, (size // 8, size // 8, 1)).repeat(8, 0).repeat(8, 1)
    pixels = np.clip(pixels + rng.normal(0, 12, (size, size, 3)), 0, 255)
    if fault == "colour cast":
        pixels *= np.array([1.0, 0.95, 0.62])
    if fault == "misspelt text":
        pixels[:8, :8] = 255
    sink = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(sink, "PNG")
    return sink.getvalue()


def write_posts(
    folder: Path, threads: Mapping[str, int], *, day: int = 1, seed: int = 0, name: str = "posts"
) -> Path:
    """Threads by fault, praise under the empty one: a post with prompt and output, and a reply."""
    path, lines = folder / f"{name}.jsonl", list[str]()
    (folder / "drawn").mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    for fault, count in threads.items():
        for number in range(count):
            key = int(rng.integers(1 << 40))
            image = folder / "drawn" / f"{name}-{key}.png"
            image.write_bytes(draw(key, fault))
            thing, place = THINGS[key % len(THINGS)], PLACES[key // 16 % len(PLACES)]
            url = f"https://posts.example/{name}/{key}"
            time = RELEASED + timedelta(days=day + number % 20, minutes=number)
            post = {
                "url": url,
                "author": f"maker{key % 97}",
                "text": f'Lumen Image made it. Prompt: "Draw a {thing} {place}, plate {key}"',
                "timestamp": time.isoformat(),
                "pictures": [{"path": f"drawn/{image.name}"}],
            }
            reply = {
                "url": f"{url}/1",
                "author": f"reader{key % 89}",
                "text": REPLIES[fault],
                "timestamp": (time + timedelta(hours=1)).isoformat(),
                "parent_url": url,
            }
            lines += [json.dumps(post), json.dumps(reply)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def write_config(folder: Path, files: Iterable[Path], **more: Any) -> Path:
    """A config that builds from such posts with a reader and a judge that look."""
    settings = {
        "name": "lumen",
        "target": {
            "name": "Lumen Image",
            "developer": "Northlight",
            "released": RELEASED.date(),
            "aliases": ["lumen"],
        },
        "posts": [{"source": "jsonl", "path": path.name} for path in files],
        "engines": {"reader": {"kind": KIND}},
        "judges": [{"name": "eyes", "developer": "Northlight", "engine": {"kind": KIND}}],
        **more,
    }
    path = folder / "lumen.yaml"
    path.write_text(yaml.safe_dump(settings), "utf-8")
    return path


def write_outputs(config: Path) -> dict[str, float]:
    """Outputs of two systems with tints; returns the share of tinted ones by system."""
    run = EvaluationRun.from_config(config)
    rng, rows, shares = np.random.default_rng(7), [], dict[str, float]()
    tasks = run.read_tasks().tasks
    for start, (system, share) in enumerate((("amber", 0.5), ("birch", 0.1))):
        tinted = rng.random(len(tasks)) < share
        shares[system] = float(tinted.mean())
        for number, task in enumerate(tasks):
            fault = "colour cast" if tinted[number] else ""
            image = run.folder.images.put(draw(start * 1000 + number, fault))
            row = {"sample_id": task.sample_id, "system": system, "image": image}
            rows.append({**row, "sample_digest": task.sample_digest, "outcome": "ok"})
    path = run.folder.root / "outputs.parquet"
    pq.write_table(pa.Table.from_pylist(rows, OUTPUTS.schema), path)
    return shares


@dataclass
class DrawnEyes:
    """An engine that writes the question of a keyword, and answers by the pixels it is shown."""

    stored: bool = True
    sees_images: bool | None = True
    asked: list[Request] = field(default_factory=list)
    cost_usd: float = 0.0
    prices: tuple[float, float] = (0.0, 0.0)
    written: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # instead, by keyword

    def signature(self) -> Mapping[str, Any]:
        return {"kind": KIND, "model": "eyes-1"}

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        for number, request in enumerate(requests):
            self.asked.append(request)
            text = self.answer(request)
            yield number, Completion(text, usage=Usage(100, 20, 0), cost_usd=self.cost_usd)

    def answer(self, request: Request) -> str:
        if request.task == "checks":
            return self.write(request)
        if request.task == "rate":
            return self.look(request)
        if request.task == "applicability":
            return json.dumps({"colour_cast@1": int(self.fits(request)), "rationale": "it says so"})
        if request.task == "safety":
            return json.dumps({"hazards": []})
        if request.task == "relevance":
            return json.dumps({"score": 5, "note": None})
        if request.task == "feedback" and "comments" not in request.inputs:
            return json.dumps({"task_phrase": "draw a picture"})
        answer = RULES[request.task](request.inputs)
        if request.task == "roles":  # rules do not look; nobody is drawn
            for sample in answer["samples"]:
                sample["may_show_minor"] = False
        return json.dumps(answer)

    @property
    def usd_per_million_prompt_tokens(self) -> float:
        return self.prices[0]

    @property
    def usd_per_million_completion_tokens(self) -> float:
        return self.prices[1]

    def fits(self, request: Request) -> bool:
        """Whether a task is of a boat or a fox."""
        return any(thing in request.inputs["prompt"] for thing in ("boat", "fox"))

    def write(self, request: Request) -> str:
        keyword = request.inputs["keyword"]
        question, counts = QUESTIONS.get(keyword, (f"Is there {keyword} in the picture?", "A yes."))
        answer = {"question": question, "counts_as_yes": counts, "fits": None}
        return json.dumps({**answer, **self.written.get(keyword, {})})

    def look(self, request: Request) -> str:
        system, user = request.messages
        (opening,) = (part.text for part in system.parts if isinstance(part, Text))
        shown = [part for part in user.parts if isinstance(part, ImageRef)][-1]
        question = re.search(r"^Question: (.*)$", opening, re.MULTILINE)
        if question is None:
            return "It is a picture. Rating: [[7]]"
        with Image.open(shown.file) as image:
            pixels = np.asarray(image.convert("RGB"), float)
        red, _, blue = pixels.mean((0, 1))
        if "yellow" in question[1]:
            is_yes = red - blue > 12
        elif "spelled" in question[1]:
            is_yes = pixels[:8, :8].min() > 250
        else:
            is_yes = hashlib.sha256(shown.sha256.encode()).digest()[0] < 128
        return f"I looked. [[{'yes' if is_yes else 'no'}]]"

    def use(self, kind: str = KIND) -> Self:
        register(kind)(lambda **_: self)
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass
