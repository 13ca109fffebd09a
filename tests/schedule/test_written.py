"""The files that have turns taken elsewhere hold what they need, and no secret."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

import echo_hf
from echo_hf.config.loading import load_config
from echo_hf.errors import ConfigError
from echo_hf.pipeline.runs import open_run_folder
from echo_hf.schedule.written import write_workflow
from tests.schedule.conftest import NAME, REPO, SCHEDULE, change
from tests.stages_for_tests import ROOT

MORE = {
    "state": "pixel-lab/echo-run",
    "secrets": ["OPENAI_API_KEY"],
    "extras": ["sources", "openai"],
}


@pytest.fixture
def mine(config: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The config as seen from its folder."""
    change(config, schedule={**SCHEDULE, **MORE, "cron": "41 3 * * 2", "hours": 2})
    monkeypatch.chdir(config.parent)
    return Path(config.name)


def test_a_workflow_exchanges_its_identity_for_tokens(mine: Path) -> None:
    path, todo = write_workflow(mine, "github")
    assert path == Path(f".github/workflows/echo-hf-{NAME}.yml")
    flow = yaml.safe_load(path.read_text("utf-8"))
    assert flow[True]["schedule"] == [{"cron": "41 3 * * 2"}]  # YAML 1.1 reads `on` as true
    assert flow["permissions"] == {"contents": "read", "id-token": "write"}
    (job,) = flow["jobs"].values()
    assert "fork" in job["if"]
    assert job["timeout-minutes"] == 120
    *_, install, fetch, take, keep = job["steps"]
    assert f"echo-hf[openai,sources]=={echo_hf.__version__}" in install["run"]
    run = f"datasets/{MORE['state']}"
    resources = [one["env"]["HF_OIDC_RESOURCE"] for one in (fetch, take, keep)]
    assert resources == [run, f"datasets/{REPO}", run]
    assert take["run"] == 'echo-hf schedule "benchmark.yaml" --once --state state'
    assert take["env"]["OPENAI_API_KEY"] == "${{ secrets.OPENAI_API_KEY }}"
    # What could not be fetched is not replaced by nothing.
    assert keep["if"] == f"always() && steps.{fetch['id']}.outcome == 'success'"
    assert "HF_TOKEN" not in path.read_text("utf-8")
    assert any(f"datasets/{REPO}/settings" in line for line in todo)


def test_a_job_is_one_script_and_the_command_that_plans_it(
    config: Path, mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script takes a turn of the config that lies where its state is mounted."""
    monkeypatch.chdir(config.parent.parent)
    path, todo = write_workflow(config.parent.relative_to(tmp_path) / mine, "hf")
    text = path.read_text("utf-8")
    block = re.search(r"(?m)^# /// script$\s(?P<content>(^#(| .*)$\s)+)^# ///$", text)
    assert block is not None
    about = "".join(line[2:] for line in block["content"].splitlines(keepends=True))
    assert tomllib.loads(about)["dependencies"] == [
        f"echo-hf[openai,sources]=={echo_hf.__version__}"
    ]
    command = todo[-1]
    bucket = f"hf://buckets/{MORE['state']}"
    for part in (f"{bucket}:/state", "--timeout 120m", "'41 3 * * 2'", "--secrets OPENAI_API_KEY"):
        assert part in command
    assert "`echo-hf schedule mine/benchmark.yaml --on hf`" in text
    script = tmp_path / "job.py"
    script.write_text(text.replace('"/state', f'"{tmp_path}'), "utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert f"{tmp_path}/config/benchmark.yaml" in done.stderr


@pytest.mark.parametrize(
    ("runs", "excluded"), [("runs", ["runs/*"]), ("kept", ["runs/*", f"kept/{NAME}/*"])]
)
def test_runs_are_not_sent_along_with_the_config(
    mine: Path, runs: str, excluded: list[str]
) -> None:
    change(mine, runs=runs)
    _, todo = write_workflow(mine, "hf")
    command = shlex.split(todo[1])
    given = [after for before, after in pairwise(command) if before == "--exclude"]
    assert given == [*excluded, ".*"]


def test_the_config_that_a_run_keeps_is_refused(mine: Path) -> None:
    config = load_config(mine)
    open_run_folder(config).root.mkdir(parents=True)
    open_run_folder(config).save_config(config)
    with pytest.raises(ConfigError, match="what a run keeps"):
        write_workflow(open_run_folder(config).root, "github")


def test_a_path_that_a_shell_would_read_is_refused(mine: Path) -> None:
    wicked = mine.rename("$(id).yaml")
    with pytest.raises(ConfigError, match="letters, digits"):
        write_workflow(wicked, "github")
    with pytest.raises(ConfigError, match="letters, digits"):
        write_workflow(Path("..", mine.resolve().parent.name, wicked.rename("a.yaml")), "github")


def test_a_file_of_ours_is_renewed_and_no_other(mine: Path) -> None:
    path, _ = write_workflow(mine, "github")
    change(mine, schedule={**SCHEDULE, **MORE, "cron": "7 1 * * 3"})
    write_workflow(mine, "github")
    assert "7 1 * * 3" in path.read_text("utf-8")
    path.write_text("on: push\n", "utf-8")
    with pytest.raises(ConfigError, match="no file of ours"):
        write_workflow(mine, "github")
    assert path.read_text("utf-8") == "on: push\n"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"cron": "1 2 * * 3\n- run: evil"}, "five fields"),
        ({"repo_id": "no-name"}, "ORGANISATION/NAME"),
        ({"secrets": ["sk-abc"]}, "OPENAI_API_KEY"),
        ({"extras": ["a]b"]}, "such as sources"),
        ({"state": None}, "schedule.state is missing"),
        ({"hours": 6.5}, "at most 6, or --on hf"),
    ],
)
def test_what_could_not_stand_in_such_a_file_is_refused(
    mine: Path, wrong: dict[str, object], said: str
) -> None:
    change(mine, schedule={**SCHEDULE, **MORE, **wrong})
    with pytest.raises(ConfigError, match=said):
        write_workflow(mine, "github")
