"""A build does not depend on how many rows are in memory at once."""

from __future__ import annotations

import importlib
import json
import random
from pathlib import Path
from typing import Any

import pytest

from echo_hf import tables
from echo_hf.builder.build import run_until
from echo_hf.config.loading import load_config
from echo_hf.pipeline import stage
from echo_hf.samples.threads import Threads

COUNT = 1000
WORDS = ("boat", "fox", "castle", "snow", "lake")


def posts() -> list[dict[str, Any]]:
    """Posts in no order, some of them twice, some with a prompt, most of them replies."""
    rng, made = random.Random(0), []
    for number in range(COUNT):
        above = rng.randrange(max(0, number - 40), number + 1) if rng.random() < 0.7 else None
        said = f"Made with Lumen Image. Prompt: draw a {rng.choice(WORDS)}, number {number}"
        post = {
            "url": f"https://example.org/{number}",
            "author": f"author{rng.randrange(300)}",
            "timestamp": 1_772_000_000 + rng.randrange(COUNT),
            "text": said if above is None else f"Great {rng.choice(WORDS)}!",
            "keywords": ["lumen"],
        }
        post |= {} if above is None else {"parent_url": f"https://example.org/{above}"}
        made += [post] * (2 if number % 50 == 0 else 1)
    rng.shuffle(made)
    return made


def built(folder: Path) -> dict[str, bytes]:
    config = {
        "name": "parts",
        "target": {"name": "Lumen Image", "developer": "Northlight", "released": "2026-03-02"},
        "posts": [{"source": "jsonl", "path": "posts.jsonl"}],
        "engines": {"reader": {"kind": "rules"}},
    }
    folder.mkdir()
    (folder / "config.yaml").write_text(json.dumps(config))
    (folder / "posts.jsonl").write_text("".join(json.dumps(post) + "\n" for post in posts()))
    run_until(load_config(folder / "config.yaml"), "extract", runs=folder / "runs")
    stages = folder / "runs" / "parts" / "stages"
    files = [*stages.rglob("*.parquet"), *stages.rglob("digest.json")]
    return {str(path.relative_to(stages)): path.read_bytes() for path in files}


def test_small_parts_give_the_bytes_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = built(tmp_path / "whole")
    monkeypatch.setattr(Threads, "part_posts", 90)
    monkeypatch.setattr(tables, "NEAR", 64)
    monkeypatch.setattr(stage, "BATCH", 90)
    atomic = importlib.import_module("echo_hf._infra.atomic")
    monkeypatch.setattr(atomic, "MOST_ROWS", 70)
    parted = built(tmp_path / "parted")

    assert len(whole) == 25
    assert [name for name in whole if whole[name] != parted[name]] == []
