"""`why --check` shows what a check rests on, and `update` and `forget` what became of checks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from echo_hf.cli import app
from echo_hf.errors import ConfigError
from echo_hf.systems.checks import read_own_checks, write_checks
from tests.complaints_corpus import DrawnEyes, write_config, write_posts
from tests.systems.test_checks import make


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def read(*arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    read: dict[str, Any] = json.loads(done.stdout)
    return read


@pytest.fixture(scope="module")
def updated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    DrawnEyes().use()
    folder = tmp_path_factory.mktemp("updated")
    posts = write_posts(folder, {"colour cast": 30, "extra fingers": 30, "": 24})
    config = write_config(folder, [posts], checks={})
    told = run("update", str(config))
    assert "check colour_cast@1 appeared and is kept: J 1.00" in told
    assert "check extra_fingers@1 appeared and fell short: J is below 0.3; J " in told
    assert "54 image_to_image" not in told
    return config


@pytest.fixture
def config(updated: Path) -> Path:
    DrawnEyes().use()
    return updated


def test_why_a_check_is_kept(config: Path) -> None:
    told = run("why", str(config), "--check", "colour_cast")
    (first, *_) = told.splitlines()
    assert first.startswith("colour_cast@1 is kept since 2026-03-")
    assert "complaint, for writing: 10 threads, samples " in told
    assert "complaint, for proof: 20 threads, samples " in told
    assert "praise, for proof: 24 threads, samples " in told
    assert "eyes: yes to 20 of 20 outputs that people complained about, no to 24 of 24" in told
    assert len(told.splitlines()) <= 24
    assert " more: -v" in told
    (check, *_) = read_own_checks(config.parent / "runs/lumen") or ()
    in_full = run("-v", "why", str(config), "--check", "colour_cast")
    assert all(each.sample_id in in_full for each in check.evidence)


def test_why_a_check_fell(config: Path) -> None:
    told = run("why", str(config), "--check", "extra_fingers@1")
    assert told.splitlines()[0].startswith("extra_fingers@1 fell short since 2026-03-")
    assert ": J is below 0.3" in told.splitlines()[0]


def test_why_tells_machines_all_of_it(config: Path) -> None:
    told = read("why", str(config), "--check", "extra_fingers")
    (version,) = told["versions"]
    assert (told["check"], version["status"], version["reason"]) == (
        "extra_fingers",
        "fell",
        "weak",
    )
    assert version["meaning"] == "J is below 0.3"
    assert {"label": "praise", "part": "proof", "threads": 24} in version["threads"]
    assert len(version["evidence"]) == 54


def test_why_shows_the_versions_before(tmp_path: Path) -> None:
    config = write_config(tmp_path, [write_posts(tmp_path, {"": 1})])
    (root := tmp_path / "runs/lumen").mkdir(parents=True)
    first = make(status="replaced", question="Is it [bold]yellow[/bold]?")
    write_checks(
        root, [first, make(version=2, origin="person", status="retired", reason="all_pass")]
    )
    told = run("why", str(config), "--check", "cast")
    assert "cast@2 is retired: each system fails in less than 2 % of its outputs" in told
    assert "before, cast@1, written by a model, replaced: Is it [bold]yellow[/bold]?" in told
    assert "no judge has a certificate for it" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--check", "color_cast"], "did you mean 'colour_cast'?"),
        (["threads", "--check", "colour_cast"], "give one at a time"),
    ],
)
def test_a_mistake_is_one_line(config: Path, arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["why", str(config), *arguments])
    assert isinstance(done.exception, ConfigError)
    assert message in str(done.exception)
    assert "\n" not in str(done.exception)


def test_an_update_tells_machines_what_became_of_checks(config: Path) -> None:
    told = read("update", str(config))
    assert (told["checks"], told["changed"], told["calls"]) == ([], False, 0)
    assert not {"checks", "eyes colour_cast@1"} & {stage["stage"] for stage in told["stages"]}


def test_forget_says_what_became_of_checks(tmp_path: Path) -> None:
    DrawnEyes().use()
    config = write_config(tmp_path, [write_posts(tmp_path, {"colour cast": 24, "": 15})], checks={})
    told = read("update", str(config))
    assert [(change["name"], change["event"]) for change in told["checks"]] == [
        ("colour_cast", "appeared")
    ]
    posts = [json.loads(line) for line in (tmp_path / "posts.jsonl").read_text().splitlines()]
    praise = next(post for post in posts if "gorgeous" in post["text"])
    told = run("forget", str(config), praise["parent_url"])
    assert "check colour_cast@1 is withdrawn: posts were forgotten, and too few threads" in told
