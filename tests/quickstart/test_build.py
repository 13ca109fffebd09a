"""The build of the bundled corpus from recorded answers: what it makes, what cannot sway it."""

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
from echo_hf.errors import ReleaseError
from echo_hf.hub.publish import check_publishable
from echo_hf.hub.release import read_release
from echo_hf.samples.blanks import placeholders

CORPUS = Path(__file__).parent.parent.parent / "echo_hf" / "quickstart"
# What the posts were written to hold, in the order of the stages.
FUNNEL = {
    "collect": {"rows_in": 121, "kept": 121},
    "relevance": {"kept": 121, "quarantined": {}},
    "threads": {"kept": 36, "rejected": {"not_relevant": 13}},
    "download": {
        "kept": 36,
        "noted": {},
        "tally": {"copies": 0, "not_there": 0, "pictures": 61},
    },
    "extract": {"kept": 42, "quarantined": {}, "rejected": {}, "noted": {}},
    "roles": {
        "kept": 50,
        "quarantined": {},
        "noted": {"neither": 3, "no_task": 1, "not_parsed": 3},
        "tally": {"filled": 13, "screenshots": 3, "with_inputs": 8},
    },
    "screenshots": {
        "kept": 50,
        "quarantined": {},
        "noted": {},
        "tally": {"cut": 3, "pictures": 5, "screenshots": 3},
    },
    "feedback": {"kept": 50, "quarantined": {}, "noted": {}},
    "safety": {
        "kept": 50,
        "quarantined": {},
        "tally": {"screened": 50, "unscreened": 0, "flagged": 1, "removed": 1, "S1": 1},
    },
    "privacy": {
        "kept": 50,
        "noted": {"no_author_key": 50},
        "tally": {"authors": 0, "to_review": 0},
    },
    "splits": {
        "kept": 48,
        "rejected": {"duplicate_of": 1, "flagged": 1},
        "tally": {"analysis": 48, "image_to_image": 9, "text_to_image": 30},
    },
}
HOSTILE = ("</thread>", "</post>", "\x1b")
Edit = Callable[[dict[str, Any]], dict[str, Any]]


def built(folder: Path, edit: Edit, **more: Any) -> Path:
    """Builds a copy of the corpus whose posts were edited; returns the run's folder."""
    shutil.copytree(CORPUS / "pictures", folder / "pictures")
    lines = (CORPUS / "posts.jsonl").read_text("utf-8").splitlines()
    posts = [json.dumps(edit(json.loads(line)), ensure_ascii=False) for line in lines]
    (folder / "posts.jsonl").write_text("\n".join(posts), "utf-8")
    config = yaml.safe_load(shipped_config().read_text("utf-8"))
    config |= {"posts": [{"source": "jsonl", "path": "posts.jsonl"}], **more}
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
    """Each stage keeps, rejects and sets aside the numbers of rows that the corpus holds."""
    for stage, expected in FUNNEL.items():
        stats = json.loads((run / "stages" / stage / "stats.json").read_text("utf-8"))
        assert {name: stats[name] for name in expected} == expected, stage
    assert tuple(FUNNEL) == STAGES


def test_publishing_it_needs_an_option(run: Path) -> None:
    """Recorded answers are no model's, which is said; every sample was screened."""
    release = read_release(run / "release")
    with pytest.raises(ReleaseError, match="--allow-rules"):
        check_publishable(release)
    check_publishable(release, allow_rules=True)


def test_no_template_is_in_the_benchmark(run: Path) -> None:
    """Whatever is given to a system can be drawn."""
    drawn = [row for row in rows(run, "splits") if row["splits"] != ["analysis"]]
    assert [row["prompt"] for row in drawn if placeholders(row["prompt"])] == []


def test_another_build_gives_the_same_bytes(run: Path, tmp_path: Path) -> None:
    """Two builds in two places write the same rows at every stage and the same release."""
    again = built(tmp_path, lambda post: post)

    for stage in STAGES:
        for part in ("kept", "rejects", "quarantine", "notices"):
            assert rows(again, stage, part) == rows(run, stage, part)
    for file in sorted((run / "release").rglob("*.parquet")):
        other = again / "release" / file.relative_to(run / "release")
        assert other.read_bytes() == file.read_bytes()


def test_hostile_posts_change_nothing_but_themselves(tmp_path: Path) -> None:
    """With a bare remark in place of each hostile post, rules make the same of all others."""
    hostile: set[str] = set()

    def disarmed(post: dict[str, Any]) -> dict[str, Any]:
        described = [one.get("alt_text") or "" for one in post.get("pictures") or []]
        words = "\n".join([post.get("text") or "", *described])
        if not any(mark in words for mark in HOSTILE):
            return post
        hostile.add(canonical_url(post["url"]))
        bare = [{**one, "alt_text": None} for one in post.get("pictures") or []]
        return {**post, "text": "ok", "pictures": bare}

    rules = {"engines": {"reader": {"kind": "rules"}}}
    run = built(tmp_path / "as they are", lambda post: post, **rules)
    calm = built(tmp_path / "disarmed", disarmed, **rules)

    def others(folder: Path) -> list[dict[str, Any]]:
        samples = rows(folder, "splits")
        return [
            {name: value for name, value in row.items() if name != "provenance"}
            for row in samples
            if not hostile & set(row["post_urls"])
        ]

    assert len(hostile) == 5
    assert others(calm) == others(run)
