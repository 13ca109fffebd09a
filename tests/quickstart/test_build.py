"""The whole build of the bundled corpus with rules: what it makes, and what cannot sway it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from echo_hf.builder.build import build
from echo_hf.builder.steps import STAGES
from echo_hf.collect.urls import canonical_url
from echo_hf.config.systems import shipped_config
from echo_hf.samples.blanks import placeholders

CORPUS = Path(__file__).parent.parent.parent / "echo_hf" / "quickstart"
# What the posts were written to hold, in the order of the stages.
FUNNEL = {
    "collect": {"rows_in": 121, "kept": 121},
    "relevance": {"kept": 121, "quarantined": {"needs_model": 1}},
    "threads": {"kept": 35, "rejected": {"not_relevant": 18, "not_scored": 1}},
    "download": {
        "kept": 35,
        "noted": {},
        "tally": {"copies": 0, "not_there": 0, "pictures": 57},
    },
    "extract": {"kept": 41, "quarantined": {"needs_model": 1}},
    "roles": {
        "kept": 43,
        "quarantined": {},
        "noted": {
            "neither": 1,
            "no_task": 1,
            "not_completed": 1,
            "not_parsed": 1,
            "template_left": 5,
        },
    },
    "screenshots": {
        "kept": 43,
        "quarantined": {},
        "noted": {"prompt_not_read": 1},
        "tally": {"cut": 1, "pictures": 2, "screenshots": 1},
    },
    "feedback": {"kept": 43, "quarantined": {}},
    "safety": {
        "kept": 43,
        "quarantined": {"needs_model": 43},
        "tally": {"screened": 0, "unscreened": 43, "flagged": 0, "removed": 0},
    },
    "privacy": {
        "kept": 43,
        "noted": {"no_author_key": 43},
        "tally": {"authors": 0, "to_review": 0},
    },
    "splits": {
        "kept": 42,
        "rejected": {"duplicate_of": 1},
        "tally": {"analysis": 42, "image_to_image": 8, "text_to_image": 21},
    },
}
HOSTILE = ("</thread>", "</post>", "\x1b")
Edit = Callable[[dict[str, Any]], dict[str, Any]]


def built(folder: Path, edit: Edit) -> Path:
    """Builds a copy of the corpus whose posts were edited; returns the run's folder."""
    shutil.copytree(CORPUS / "pictures", folder / "pictures")
    lines = (CORPUS / "posts.jsonl").read_text("utf-8").splitlines()
    posts = [json.dumps(edit(json.loads(line)), ensure_ascii=False) for line in lines]
    (folder / "posts.jsonl").write_text("\n".join(posts), "utf-8")
    config = yaml.safe_load(shipped_config().read_text("utf-8"))
    config["posts"] = [{"source": "jsonl", "path": "posts.jsonl"}]
    (folder / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    build(folder / "config.yaml", runs=folder / "runs")
    return folder / "runs" / "quickstart"


def rows(run: Path, stage: str, part: str = "kept") -> list[dict[str, Any]]:
    """Rows of a part of a stage's result."""
    return list(pq.read_table(run / "stages" / stage / f"{part}.parquet").to_pylist())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build of the corpus as it is."""
    return built(tmp_path_factory.mktemp("plain"), lambda post: post)


def test_the_funnel_is_as_the_corpus_was_written(run: Path) -> None:
    """Each stage keeps, rejects and sets aside the numbers of rows that are expected of rules."""
    for stage, expected in FUNNEL.items():
        stats = json.loads((run / "stages" / stage / "stats.json").read_text("utf-8"))
        assert {name: stats[name] for name in expected} == expected, stage
    assert tuple(FUNNEL) == STAGES


def test_no_template_is_in_the_benchmark(run: Path) -> None:
    """Whatever is given to a system can be drawn; an unfilled template is for analysis, noted."""
    drawn = [row for row in rows(run, "splits") if row["splits"] != ["analysis"]]
    left = {row["prompt"] for row in rows(run, "splits") if placeholders(row["prompt"])}
    noted = {row["_detail"] for row in rows(run, "roles", "notices")}

    assert [row["prompt"] for row in drawn if placeholders(row["prompt"])] == []
    assert any("<subject>" in prompt for prompt in left)
    assert {blank for prompt in left for blank in placeholders(prompt)} <= noted


def test_another_build_gives_the_same_bytes(run: Path, tmp_path: Path) -> None:
    """Two builds in two places write the same rows at every stage and the same release."""
    again = built(tmp_path, lambda post: post)

    for stage in STAGES:
        for part in ("kept", "rejects", "quarantine", "notices"):
            assert rows(again, stage, part) == rows(run, stage, part)
    for file in sorted((run / "release").rglob("*.parquet")):
        other = again / "release" / file.relative_to(run / "release")
        assert other.read_bytes() == file.read_bytes()


def test_what_the_rules_cannot_read_waits_for_a_model(run: Path) -> None:
    """Abstentions stand in the quarantine with their input row, and nowhere among the samples."""
    (thread,) = rows(run, "extract", "quarantine")
    sampled = {url for row in rows(run, "splits") for url in row["post_urls"]}

    assert thread["_reason"] == "needs_model"
    assert thread["posts"]
    assert not sampled & {post["url"] for post in thread["posts"]}


def test_hostile_posts_change_nothing_but_themselves(run: Path, tmp_path: Path) -> None:
    """With a bare remark in place of each hostile post, every sample of the others is the same."""
    hostile: set[str] = set()

    def disarmed(post: dict[str, Any]) -> dict[str, Any]:
        described = [one.get("alt_text") or "" for one in post.get("pictures") or []]
        words = "\n".join([post.get("text") or "", *described])
        if not any(mark in words for mark in HOSTILE):
            return post
        hostile.add(canonical_url(post["url"]))
        bare = [{**one, "alt_text": None} for one in post.get("pictures") or []]
        return {**post, "text": "ok", "pictures": bare}

    calm = built(tmp_path, disarmed)

    def others(folder: Path) -> list[dict[str, Any]]:
        samples = rows(folder, "splits")
        return [
            {name: value for name, value in row.items() if name != "provenance"}
            for row in samples
            if not hostile & set(row["post_urls"])
        ]

    assert len(hostile) == 5
    assert others(calm) == others(run)
