"""The configs of the paper, whole: posts to report, on the drawn corpus with tiny systems."""

from __future__ import annotations

import hashlib
import html
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from echo_hf.config.evaluation import load_named_files
from echo_hf.config.loading import load_config
from echo_hf.config.systems import shipped_configs
from echo_hf.metrics import registered
from tests.engines.openai.loopback_server import Answer, Asked, LoopbackServer, completion, running
from tests.test_cli import echo_hf

# As the guide to workers has it: one color for each task and system.
WORKER = """
import hashlib, json, sys
from PIL import Image
print(json.dumps({"echo_hf_worker": 1, "name": sys.argv[1], "most_inputs": 16}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    color = hashlib.sha256((sys.argv[1] + request["prompt"]).encode()).digest()
    Image.new("RGB", (32, 32), tuple(color[:3])).save(request["output"])
    print(json.dumps({"id": request["id"], "outcome": "ok"}), flush=True)
"""
FITS = dict.fromkeys(("face_identity", "color_shift", "structure_distance"), 1)
RECORDED = ("relevance", "extract", "roles", "screenshots", "safety")


def answered(asked: Asked) -> Answer:
    """Says what fits, or rates by the bytes that it is sent."""
    if "response_format" in asked.body:
        return completion(json.dumps({**FITS, "text_rendering": 1, "rationale": "So."}))
    drawn = hashlib.sha256(json.dumps(asked.body["messages"]).encode()).digest()[0] % 10 + 1
    return completion(f"I expected a picture. Rating: [[{drawn}]]")


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackServer]:
    with running() as loopback, pytest.MonkeyPatch.context() as patch:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            patch.delenv(name, raising=False)
            patch.delenv(name.lower(), raising=False)
        loopback.behave = answered
        yield loopback


def rehearsed(name: str, folder: Path, url: str) -> Path:
    """A config of the paper over the bundled posts: its systems tiny, its judges on loopback."""
    shipped = shipped_configs()
    data = yaml.safe_load((shipped / f"{name}.yaml").read_text("utf-8"))
    data = load_named_files(data, shipped)
    corpus = yaml.safe_load((shipped / "quickstart.yaml").read_text("utf-8"))
    (folder / "worker.py").write_text(WORKER, "utf-8")
    recorded = {"kind": "recorded", "source": "quickstart"}

    def asks(engine: dict[str, Any]) -> dict[str, Any]:
        local = {"kind": "openai", "base_url": url, "api_key_env": None}
        prices = {f"usd_per_million_{one}_tokens": 0 for one in ("prompt", "completion")}
        return {**local, **prices, "model": engine["model"]}

    data |= {one: corpus[one] for one in ("target", "posts")}
    data["engines"] = dict.fromkeys(data["engines"], recorded)
    sets = data["analysis"]["references"]
    for one in sets:
        (folder / f"{one['name']}.txt").write_text("add a hat\na cat in the rain\n", "utf-8")
    data["analysis"] |= {
        "references": [{"name": one["name"], "path": f"{one['name']}.txt"} for one in sets],
        "perplexity": {"model": str(folder / "pythia-12b")},
    }
    for system in data["systems"]:
        command = [sys.executable, str(folder / "worker.py"), system["name"]]
        system |= {"adapter": "command", "parameters": {"command": command}, "size": "auto"}
        system |= {"price": {"usd_per_image": 0, "as_of": "2026-11-21"}}
    for one in (*data["judges"], data["applicability"]):
        one["engine"] = asks(one["engine"])
    rehearsal = "The bundled corpus, whose answers were written by hand."
    told = data["paper"]["differences"]
    told["posts"] = rehearsal
    told |= {f"stages.{stage}.engine": rehearsal for stage in RECORDED}
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(data), "utf-8")
    return folder / f"{name}.yaml"


@pytest.mark.parametrize("name", ["paper", "paper_open"])
def test_a_config_of_the_paper_runs_from_posts_to_report(
    name: str, tmp_path: Path, server: LoopbackServer
) -> None:
    """The report and the build name every difference; every system gets its place on the board."""
    config = rehearsed(name, tmp_path, server.url)
    verbs = [("build", "-v"), ("eval", "--yes", "--limit", "2"), ("analyze",), ("report",)]
    said = {}
    for verb, *options in verbs:
        done = echo_hf(verb, config.name, *options, cwd=tmp_path)
        assert done.returncode == 0, (verb, done.stderr)
        said[verb] = " ".join(done.stdout.split())

    given = yaml.safe_load(config.read_text("utf-8"))
    run = tmp_path / "runs" / given["name"]
    page = " ".join(html.unescape((run / "report" / "index.html").read_text("utf-8")).split())
    reasons = {*given["paper"]["differences"].values()}
    reasons |= {one["note"] for one in (*given["systems"], *given["judges"]) if one.get("note")}
    for reason in reasons:
        assert " ".join(reason.split()) in page
        assert " ".join(reason.split()) in said["build"]
    for one in given["systems"]:
        if one["status"] == "substitute":
            assert f"system {one['name']}, in place of {one['stands_for']}" in page

    results = json.loads((run / "results.json").read_text("utf-8"))
    assert results["protocol"] == "published"
    names = {one.name for one in load_config(config).systems}
    rated = {
        row["system"]
        for row in results["results"]
        if row["metric"] == "win_rate" and row["value"] is not None
    }
    assert rated == names
    compared = json.loads((run / "analysis.json").read_text("utf-8"))["sets"]
    shipped = yaml.safe_load((shipped_configs() / "references/figure3.yaml").read_text("utf-8"))
    assert [one["name"] for one in compared] == ["benchmark", *(one["name"] for one in shipped)]
    measured = [name for name, metric in registered().items() if metric.enabled]
    assert {row["metric"] for row in results["results"]} == {"win_rate", *measured}
