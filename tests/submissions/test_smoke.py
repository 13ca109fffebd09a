from pathlib import Path
import yaml, json
from tests.submissions.conftest import *
from tests.hub.conftest import Command
from echo_hf.cli import app
from typer.testing import CliRunner
from tests.schedule.conftest import change
def test_smoke(board, command, tmp_path, eyes):
    CliRunner().invoke(app, ["init", "benchmark", str(tmp_path/"mine")])
    config = tmp_path/"mine"/"benchmark.yaml"
    change(config, schedule={"repo_id": REPO, "budget_usd": 100, "allow_rules": True, "allow_unscreened": True}, judges=[judge_of()])
    folder_of(tmp_path/"fern")
    d = command("submit", f"{REPO}@{TAG}", "--images", f"fern={tmp_path/'fern'}", hub=board, token="hf_stranger")
    assert d.code == 0, d.errors
    print(d.output)
    d = command("schedule", config, "--submissions", hub=board); print(d.output, d.errors)
    from echo_hf.schedule import turn as t
    with t.open_submissions(config) as (loop, req):
        print(loop.submissions())
        print(loop.submissions())
    print(board.repositories[REPO].pulls[1].said)
    d = command("schedule", config, "--submissions", hub=board); print(d.output, d.errors)
    d = command("schedule", config, "--accept", "1", hub=board); print(d.output, d.errors)
    print(board.repositories[REPO].pulls[1].said[-1])
    print(board.files(REPO,"refs/pr/1")["submissions/fern/result.json"].decode())
    d = command("schedule", config, "--submissions", hub=board); print(d.output, d.errors)
    print(len(eyes.asked))
    assert d.code == 0
