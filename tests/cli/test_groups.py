"""The help of the command line, and what it says to a word that is no verb."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from echo_hf import cli
from echo_hf.cli import GROUPS, app
from echo_hf.cli.verb import Payload, call_verb, choice, flag, get_verb_name
from tests.test_cli import echo_hf

COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def shown(*arguments: str, columns: int) -> str:
    done = CliRunner().invoke(app, list(arguments), env={"COLUMNS": str(columns)})
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("columns", [80, 120])
def test_every_verb_stands_in_its_group(columns: int) -> None:
    text = shown("--help", columns=columns)
    listed = text[text.index("\nStart:") :]
    found: dict[str, list[str]] = {}
    for group, verb in re.findall(r"^(\w+):$|^  ([a-z][a-z-]+)  +\S.*$", listed, re.M):
        if group:
            found[group] = []
        else:
            found[[*found][-1]].append(verb)
    assert found == {group: [*map(get_verb_name, verbs)] for group, verbs in GROUPS.items()}
    assert [name for names in found.values() for name in names] == [*COMMANDS]
    assert not re.search(r"\.\.\.$", listed, re.M)
    assert max(map(len, text.splitlines())) <= 80


def test_the_help_ends_with_where_to_begin_and_how_a_verb_ends() -> None:
    begin, codes = shown("--help", columns=80).splitlines()[-2:]
    assert begin.split("`")[1::2] == ["echo-hf quickstart", "echo-hf VERB --help"]
    assert re.findall(r"(\d+) ", codes) == ["0", "2", "130", "70"]


MISTAKES = {
    "biuld c.yaml": "unknown command 'biuld'; did you mean 'build'? known: ",
    "roles c.yaml": "unknown command 'roles': a stage runs with `echo-hf build CONFIG --until ro",
    "build c.yaml --until relevanc": "unknown stage 'relevanc'; did you mean 'relevance'",
    "build c.yaml --until splits --allow-empty": "--until writes no release",
    "collect c.yaml --plan --keywords": "two things: give one at a time",
}


@pytest.mark.parametrize(("arguments", "said"), MISTAKES.items(), ids=MISTAKES)
def test_a_mistake_is_one_line(arguments: str, said: str) -> None:
    """With what to do, on standard error, and code 2."""
    done = echo_hf(*arguments.split(), "-v", cwd=Path())
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("echo-hf: ")
    assert said in done.stderr


def test_a_verb_that_another_calls_has_the_defaults_of_its_options() -> None:

    def drawn(
        config: Path, plan: bool = flag("--plan", "Only plan."), most: int = choice(3, "Most.")
    ) -> Payload:
        return {"config": config, "plan": plan, "most": most}

    expected = {"config": Path("c.yaml"), "plan": False, "most": 3}
    assert call_verb(drawn, Path("c.yaml")) == expected
    assert call_verb(drawn, config=Path("c.yaml"), plan=True) == {**expected, "plan": True}


def test_a_bug_has_a_code_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's own is 1, which would read as a verdict of `compare`."""

    def broken() -> None:
        raise IndexError("list index out of range")

    monkeypatch.setattr(cli, "app", broken)
    done = echo_hf(cwd=Path())
    assert (done.returncode, done.stdout) == (70, "")
    assert done.stderr.startswith("Traceback")
    assert done.stderr.splitlines()[-1] == "IndexError: list index out of range"


def test_a_shell_completes_verbs() -> None:
    asked = {"_ECHO_HF_COMPLETE": "complete_bash", "COMP_WORDS": "echo-hf ju", "COMP_CWORD": "1"}
    done = CliRunner().invoke(app, [], env=asked, prog_name="echo-hf")
    assert done.stdout.split() == ["judge"]
