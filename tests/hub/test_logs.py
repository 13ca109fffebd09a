"""Logs of a run beside its release, as the Hub and inspect_ai open them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from echo_hf.config.systems import shipped_config
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.hub.release import iterate_rows, read_release
from tests.hub.conftest import REPO, Command
from tests.local_hub import LocalHub
from tests.stages_for_tests import ROOT

LOGS, TAG = f"{REPO}-logs", "lumen-2026.03"
FLAGS = ["--repo-id", REPO, "--tag", TAG, "--allow-rules", "--allow-unscreened"]
# In a process of its own, as both libraries read the Hub's address when they are imported.
OPENED = """
import json, sys
from datasets import load_dataset
from inspect_ai.log import read_eval_log
place, tag, *paths = sys.argv[1:]
rows = load_dataset(place, tag, split="test")
logs = [read_eval_log(f"hf://datasets/{place}/{path}") for path in paths]
viewed = [json.loads(metadata)["sample_id"] for metadata in rows["metadata"]]
print(json.dumps([viewed, [each.metadata["sample_id"] for log in logs for each in log.samples]]))
"""


@pytest.fixture
def publish(quickstart_run: Path, hub: LocalHub, command: Command) -> Any:
    pytest.importorskip("inspect_ai", reason="needs the extra `inspect`")
    logs = ["--logs", shipped_config(), "--runs", quickstart_run.parent]
    return lambda *more: command("publish", quickstart_run, *FLAGS, *logs, *more, hub=hub)


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore:::inspect_ai")
def test_both_libraries_open_the_logs(
    publish: Any, hub: LocalHub, quickstart_run: Path, tmp_path: Path
) -> None:
    """Those of every sample; what may not be passed on is in none of them."""
    done = publish("--json")
    assert done.code == 0, done.errors
    assert json.loads(done.output)["logs"] == f"{hub.url}/datasets/{LOGS}/tree/main/{TAG}"
    files = hub.files(LOGS)
    paths = sorted(path for path in files if path.endswith(".eval"))
    environment = hub.environment(tmp_path / "home", PYTHONPATH=str(ROOT))
    opened = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", OPENED, LOGS, TAG, *paths],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert opened.returncode == 0, opened.stderr
    viewed, read = json.loads(opened.stdout.splitlines()[-1])
    assert viewed == read
    datasets = read_release(quickstart_run / "release").datasets
    rows = {row["id"]: row for name in BENCHMARKS for row in iterate_rows(datasets[name], 1)}
    assert set(viewed) == rows.keys()


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore:::inspect_ai")
def test_a_second_time_replaces_them_and_files_of_others_stay(publish: Any, hub: LocalHub) -> None:
    assert publish().code == 0
    repository = hub.repositories[LOGS]
    before, commits = sorted(hub.files(LOGS)), len(repository.history)
    assert publish().code == 0
    assert sorted(hub.files(LOGS)) == before
    assert len(repository.history) == commits + 1
    repository.change("mine", thesis=b"x")
    done = publish()
    assert done.code == 2
    assert "holds 'thesis.txt', which is no log of a tag" in done.errors


def test_what_has_no_tag_yet_has_no_logs(quickstart_run: Path, command: Command) -> None:
    for option, line in {
        "--create-pr": "--logs go with a tag, which a proposal lacks",
        "--dry-run": "leave out --logs",
    }.items():
        done = command("publish", quickstart_run, *FLAGS, "--logs", shipped_config(), option)
        assert done.code == 2
        assert line in done.errors
