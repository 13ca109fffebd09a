"""A run to review: the bundled posts and posts that mean harm, which no guard has looked at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml

from echo_hf.builder.build import build
from echo_hf.curate.decisions import Decision, read_decisions
from echo_hf.hub.release import Release
from echo_hf.quickstart.truth import corpus_folder
from echo_hf.samples.sample import sample_id

TARGET = {"name": "Lumen Image", "developer": "Northlight", "released": "2026-03-02"}
HOSTILE = (
    'a fox <img src=x onerror=alert(1)><script>alert(2)</script> on "paper" ${alert(3)} '
    "{{alert(4)}} </textarea><svg onload=alert(5)> 'quoted'"
)
MAIL = "a card for Noor, noor@example.org, teal letters on cream paper"
NAME = "quickstart"
CHAIR = "Paint this chair mint green"
LAKE = "Turn this photo into a night scene"
Row = dict[str, Any]


def reviewed_run(folder: Path) -> Path:
    posts = [
        {"url": f"https://x.com/i/status/{number}", "text": f"Lumen Image! Prompt: {prompt}"}
        | {"author": "mira_draws"}
        for number, prompt in enumerate((HOSTILE, MAIL))
    ]
    (folder / "posts.jsonl").write_text("\n".join(map(json.dumps, posts)), "utf-8")
    ours = (corpus_folder() / "answers.jsonl").read_text("utf-8").splitlines()
    answers = [*map(json.loads, ours), *(one for post in posts for one in answers_about(post))]
    said = [json.dumps(one) for one in answers if one["stage"] != "safety"]
    (folder / "answers.jsonl").write_text("\n".join(said), "utf-8")
    data: Row = {"name": NAME, "target": TARGET | {"chat_window": "Lumen Chat"}}
    data["target"] |= {"aliases": ["lumen", "lumen-img", "l-image"]}
    data |= {"posts": [{"source": "quickstart"}, {"source": "jsonl", "path": "posts.jsonl"}]}
    data |= {"engines": {"text": {"kind": "recorded", "path": "answers.jsonl"}}}
    stages = ("relevance", "extract", "roles", "screenshots", "safety", "feedback")
    data |= {"stages": {name: {"engine": "text"} for name in stages}}
    (folder / "config.yaml").write_text(yaml.safe_dump(data), "utf-8")
    built(folder)
    return folder / "config.yaml"


def answers_about(post: Row) -> Iterator[Row]:
    prompt = post["text"].partition("Prompt: ")[2]
    sample = {"prompt": prompt, "quality": "Benchmark", "posts": [0]}
    yield {"stage": "relevance", "row": post["url"], "answer": {"score": 5}}
    yield {"stage": "extract", "row": post["url"], "answer": {"samples": [sample]}}
    drawn = {"kind": "task", "task": "text_to_image", "feedback": []}
    yield {"stage": "feedback", "row": sample_id(post["url"]), "answer": drawn}


def built(folder: Path) -> Release:
    return build(folder / "config.yaml", runs=folder / "runs")


def root(folder: Path) -> Path:
    return folder / "runs" / NAME


def samples(folder: Path) -> list[Row]:
    file = root(folder) / "stages" / "privacy" / "kept.parquet"
    rows: list[Row] = pq.read_table(file).to_pylist()
    return rows


def named(folder: Path, words: str) -> Row:
    return next(row for row in samples(folder) if row["prompt"].startswith(words))


def released(release: Release) -> dict[str, Row]:
    data = release.datasets["analysis"]
    images = [name for name in data.column_names if name.endswith("_images")]
    shown = data.remove_columns([*images, "screenshot"])
    return {row["id"]: row for row in shown.to_list()}


def decided(folder: Path) -> dict[str, Decision]:
    return dict(read_decisions(root(folder) / "review.jsonl").by_id)
