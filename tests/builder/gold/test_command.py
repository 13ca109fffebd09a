"""`echo-hf check-engine`, as a user meets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builder.gold.gold_for_tests import write_gold


def check_engine(
    *arguments: str | Path, cwd: Path, columns: int = 80
) -> subprocess.CompletedProcess[str]:
    """Runs the command in a folder."""
    command = [sys.executable, "-m", "echo_hf", "check-engine", *map(str, arguments)]
    env = {**os.environ, "COLUMNS": str(columns)}
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, env=env)


def test_the_rules_on_the_bundled_posts(tmp_path: Path) -> None:
    """One command shows what an engine is worth, also to machines, and prints nobody's words."""
    done = check_engine("--engine", "rules", "--json", cwd=tmp_path)
    lines = done.stderr.splitlines()
    figures = json.loads(done.stdout)

    assert done.returncode == 0
    title = "rules on Lumen Image in the bundled posts, held-out half, "
    assert any(line.startswith(title) for line in lines)
    header = next(number for number, line in enumerate(lines) if line.startswith("stage"))
    assert lines[header].split() == (
        ["stage", "measure", "%", "interval", "n", "coverage", "%", "strict", "%"]
    )
    assert sum(len(one["measures"]) for one in figures["stages"]) == 30
    assert max(map(len, lines[header:])) <= 80
    assert "https://" not in done.stderr + done.stdout
    assert (figures["half"], figures["stages"][0]["engine"]["kind"]) == ("held_out", "rules")


def test_gold_of_ones_own(tmp_path: Path) -> None:
    """A user's folder is checked for the config's target, stage by stage if one likes."""
    write_gold(tmp_path)
    done = check_engine(
        "config.yaml", "--gold", "gold", "--stage", "extract", "--half", "tune", "--errors",
        cwd=tmp_path,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (0, "")
    assert "rules on Tern 2 in gold/posts.jsonl, half for tuning, 1 thread" in done.stdout
    assert "sample recall" in done.stdout
    assert "keep recall" not in done.stdout


MISTAKES = {
    (): "echo-hf check-engine CONFIG checks those of a config, echo-hf check-engine --engine KIND",
    ("--engine", "rules", "--model", "org/m"): "got ['model']",
    ("--engine", "recorded", "--option", "path=x"): "repeats what somebody wrote down",
    ("--engine", "rules", "--errors"): "errors of half 'held_out' are not shown",
    ("--engine", "rules", "--stage", "threads"): "stage 'threads' asks no model",
    ("--engine", "auto", "--option", "api_key=hush"): "environment variable",
    ("config.yaml", "--gold", "gold"): "relevance.jsonl:4: unknown key 'scroe'",
}


@pytest.mark.parametrize(("arguments", "said"), MISTAKES.items(), ids=map(str, MISTAKES))
def test_a_users_mistake_is_one_line(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    """Bad input ends with exit code 2 and one line that names it."""
    gold = write_gold(tmp_path)
    with (gold / "relevance.jsonl").open("a") as file:
        file.write('{"url": "https://example.org/o2", "scroe": 4}\n')
    done = check_engine(*arguments, cwd=tmp_path)

    assert done.returncode == 2, done.stdout
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("echo-hf: ")
    assert said in done.stderr
    assert "hush" not in done.stderr
