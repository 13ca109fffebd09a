"""Carried samples on the Hub: a tag is carried, and the release that carries it is published."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import yaml

from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.load import load_benchmark
from echo_hf.hub.publish import publish
from echo_hf.hub.release import Release, read_release, verify_release, write_release
from echo_hf.hub.remote import find_revisions_with_posts
from echo_hf.hub.run_tables import select_released_tables
from echo_hf.systems.generate import generate
from tests.hub.conftest import REPO
from tests.local_hub import LocalHub
from tests.systems.carried_for_tests import carrying, older_release
from tests.systems.runs_for_tests import TARGET, Acting, benchmark, known, png

OPEN = {"allow_rules": True, "allow_unscreened": True}


def released(folder: Path) -> Release:
    """A release with carried tables, as a build takes them from its run."""
    run = carrying(folder)
    with known(Acting()):
        generate(run)
    tables = select_released_tables(run.folder.root, {}, carries=True).configs
    facts = ReleaseFacts(name="new", target=TARGET)
    return write_release(folder / "new", tables, run.folder.images, facts)


def test_a_tag_on_the_hub_is_carried_along(tmp_path: Path, hub: LocalHub) -> None:
    """In a process of its own, which reads its addresses when it starts."""
    past = older_release(tmp_path / "then")
    publish(past, REPO, "then-1", api=hub.api(), **OPEN)
    config = {
        "name": "measured",
        "benchmark": str(benchmark(tmp_path)),
        "systems": [
            {"name": "a", "adapter": "files", "developer": "N", "status": "replay"}
            | {"parameters": {"folder": "made"}}
        ],
        "carry": [{"release": f"{REPO}@then-1", "samples": 2}],
    }
    made = tmp_path / "made" / "text_to_image" / "a" / "t0.png"
    made.parent.mkdir(parents=True)
    made.write_bytes(png("t0"))
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config), "utf-8")

    def call(reference: str) -> subprocess.CompletedProcess[str]:
        config["carry"] = [{"release": reference, "samples": 2}]
        path.write_text(yaml.safe_dump(config), "utf-8")
        command = [sys.executable, "-m", "echo_hf", "generate", str(path), "--json"]
        environment = hub.environment(tmp_path / "home")
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    done = call(f"{REPO}@then-1")
    assert done.returncode == 0, done.stderr
    plans = json.loads(done.stdout)["plans"]
    assert [(plan["part"], plan["todo"]) for plan in plans] == [
        ("", 5),
        (f"carried from {REPO}@then-1", 4),
    ]
    (draw,) = (tmp_path / "runs" / "measured" / "carried").glob("from-then-1/draw.json")
    assert json.loads(draw.read_text())["systems"] == ["past"]
    lost = call(f"{REPO}@then-2")
    assert lost.returncode == 2
    assert "then-2" in lost.stderr
    assert "Traceback" not in lost.stderr


def test_a_release_with_carried_tables_is_published_and_loaded(
    tmp_path: Path, hub: LocalHub
) -> None:
    release = released(tmp_path)
    verify_release(release.path)
    publish(release, REPO, "new-1", api=hub.api(), **OPEN)
    options = {"revision": "new-1", "api": hub.api(), "cache_dir": tmp_path / "cache"}
    for name in ("carried_samples", "carried_outputs"):
        there = load_benchmark(REPO, name, **options)
        here = read_release(release.path).datasets[name]
        assert there.with_format(None).to_list() == here.with_format(None).to_list()
        assert len(there) == {"carried_samples": 4, "carried_outputs": 8}[name]
    (row, *_) = read_release(release.path).datasets["carried_samples"]
    held = find_revisions_with_posts(REPO, row["post_urls"], api=hub.api())
    assert [(each.revision, each.samples) for each in held if each.kind == "tag"] == [
        ("new-1", (row["id"],))
    ]
