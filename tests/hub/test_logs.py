"""Logs of a run beside its release, as the Hub and inspect_ai open them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from huggingface_hub import HfApi

from echo_hf.config.systems import shipped_config
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import HubError
from echo_hf.hub.logs import publish_logs
from echo_hf.hub.release import Release, iterate_rows, read_release
from tests.hub.conftest import REPO, Command, Put
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
samples = [sample for log in logs for sample in log.samples]
read = [(each.metadata["sample_id"], each.input[0].content[0].text) for each in samples]
print(json.dumps([viewed, read]))
"""


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore:::inspect_ai")
def test_both_libraries_open_the_logs(
    quickstart_run: Path,
    hub: LocalHub,
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those of every sample; the words of posts that may not be passed on are in none of them."""
    pytest.importorskip("inspect_ai", reason="needs the extra `inspect`")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    logs = ["--logs", shipped_config(), "--runs", quickstart_run.parent]
    done = command("publish", quickstart_run, *FLAGS, *logs, "--json", hub=hub)
    assert done.code == 0, done.errors
    assert json.loads(done.output)["logs"] == f"{hub.url}/datasets/{LOGS}/tree/main/{TAG}"
    paths = sorted(path for path in hub.files(LOGS) if path.endswith(".eval"))
    opened = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", OPENED, LOGS, TAG, *paths],
        env=hub.environment(tmp_path / "home", PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
    )
    assert opened.returncode == 0, opened.stderr
    viewed, read = json.loads(opened.stdout.splitlines()[-1])
    assert viewed == [name for name, _ in read]
    datasets = read_release(quickstart_run / "release").datasets
    rows = {row["id"]: row for name in BENCHMARKS for row in iterate_rows(datasets[name], 1)}
    of_x = {
        name for name, row in rows.items() if any("//x.com/" in url for url in row["post_urls"])
    }
    assert 0 < len(of_x) < len(rows)
    assert dict(read) == {name: "" if name in of_x else rows[name]["prompt"] for name in rows}


def write_logs(folder: Path, *names: str) -> Path:
    folder.mkdir()
    for name in names:
        (folder / name).write_bytes(name.encode())
    return folder


@pytest.fixture
def api(release: Release, put: Put, hub: LocalHub, monkeypatch: pytest.MonkeyPatch) -> HfApi:
    """A client of a Hub that has the tags v1 and v2."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    for tag in ("v1", "v2"):
        put(release, tag)
    return hub.api()


def test_logs_of_a_tag_are_replaced_and_others_stay(
    api: HfApi, hub: LocalHub, tmp_path: Path
) -> None:
    publish_logs(
        write_logs(tmp_path / "a", "ash.eval", "birch.eval", "notes.txt"), REPO, "v1", api=api
    )
    publish_logs(write_logs(tmp_path / "b", "ash.eval"), REPO, "v2", api=api)
    commits = len(hub.repositories[LOGS].history)
    publish_logs(write_logs(tmp_path / "c", "cedar.eval", "ash.eval"), REPO, "v1", api=api)
    files = hub.files(LOGS)
    assert {path for path in files if "/" in path} == {
        "v1/ash.eval",
        "v1/cedar.eval",
        "v2/ash.eval",
    }
    assert len(hub.repositories[LOGS].history) == commits + 1
    # The viewer knows the logs of a tag by a config of its name.
    front = yaml.safe_load(files["README.md"].decode().split("---")[1])
    assert {each["config_name"]: each["data_files"] for each in front["configs"]} == {
        tag: [{"split": "test", "path": f"{tag}/*.eval"}] for tag in ("v1", "v2")
    }


def test_what_is_not_ours_stays_and_what_is_private_stays_so(
    api: HfApi, hub: LocalHub, tmp_path: Path
) -> None:
    logs = write_logs(tmp_path / "a", "ash.eval")
    with pytest.raises(HubError, match="has no tag 'v3': publish the release first"):
        publish_logs(logs, REPO, "v3", api=api)
    hub.repositories[REPO].private = True
    publish_logs(logs, REPO, "v1", api=api)
    assert hub.repositories[LOGS].private
    hub.repositories[LOGS].private = False
    with pytest.raises(HubError, match=f"'{LOGS}' is public, and '{REPO}' is private"):
        publish_logs(logs, REPO, "v1", api=api)
    hub.repositories[LOGS].private = True
    head = hub.repositories[LOGS].change("mine", thesis=b"x")
    with pytest.raises(HubError, match=r"holds 'thesis\.txt', which is no log of a tag"):
        publish_logs(logs, REPO, "v1", api=api)
    assert hub.repositories[LOGS].head == head


def test_what_has_no_tag_yet_has_no_logs(quickstart_run: Path, command: Command) -> None:
    for option, line in {
        "--create-pr": "--logs go with a tag, which a proposal lacks",
        "--dry-run": "leave out --logs",
    }.items():
        done = command("publish", quickstart_run, *FLAGS, "--logs", shipped_config(), option)
        assert done.code == 2
        assert line in done.errors
