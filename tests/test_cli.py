"""The command line, as a user meets it."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from importlib.metadata import version
from pathlib import Path
from unittest.mock import patch

import pytest

from echo_hf.cli import main
from echo_hf.config.sections import BUILT_IN_STAGES as STAGES
from echo_hf.config.systems import shipped_config
from echo_hf.samples.sample import sample_id
from tests.recorded_as_model import bundled_posts, config_over

ROOT = Path(__file__).resolve().parent.parent
TARGET = "name: x\ntarget: {name: A, developer: B, released: 2026-01-01}\n"
RULES = "engines: {text: {kind: rules}}\n"
POSTS = "posts: [{source: quickstart}]\n"
SYSTEM = "name: x\nbenchmark: lab/echo\nsystems: "
A_SYSTEM = "name: a, developer: D, status: current"
BAD_CONFIGS = {
    f"{TARGET}{POSTS}{RULES}splitz: {{}}\n": "unknown key 'splitz'; did you mean 'splits'?",
    f"{TARGET}{RULES}posts: [{{source: jsnl, path: p}}]\n": "'jsnl'; did you mean 'jsonl'?",
    f"{TARGET}{RULES}posts: [{{source: jsonl, path: none.jsonl}}]\n": "none.jsonl",
    f"{TARGET}{POSTS}engines: {{text: {{kind: ruels}}}}\n": "did you mean 'rules'?",
    f"{SYSTEM}[]": "names no systems",
    f"{SYSTEM}[none.yaml]": "no system '",
    f"{SYSTEM}[{{{A_SYSTEM}, adapter: unheard-of}}]": "unknown adapter 'unheard-of'",
    f"{SYSTEM}[{{{A_SYSTEM}, adapter: x, parameters: {{key: tulip}}}}]": (
        "put the secret into an environment variable"
    ),
}


def echo_hf(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    words, out, err = ["echo-hf", *map(str, arguments)], io.StringIO(), io.StringIO()
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        with (
            chdir(cwd),
            redirect_stdout(out),
            redirect_stderr(err),
            patch.object(sys, "argv", words),
        ):
            main()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("work")
    shutil.copy(shipped_config(), folder / "config.yaml")
    built = echo_hf("build", "config.yaml", cwd=folder)
    assert built.returncode == 0, built.stderr
    return folder


def test_why_names_what_changed(folder: Path) -> None:
    def why(*given: str) -> list[str]:
        return echo_hf("why", *given, cwd=folder).stdout.splitlines()

    changed = folder / "changed.yaml"
    text = (folder / "config.yaml").read_text()
    changed.write_text(text.replace("keep: [4, 5]", "keep: [5]"))
    assert why("config.yaml") == ["every result is up to date: nothing would run"]
    assert why("changed.yaml") == [
        f"threads: parameters.keep changed: {len(STAGES) - 2} stages, from 'threads' on",
        "  - [4, 5]",
        "  + [5]",
    ]
    for stage, lines in (("relevance", 1), ("threads", 3), ("splits", 3)):
        assert len(why("changed.yaml", stage)) == lines
    changed.write_text(text.replace("name: quickstart", "name: other"))
    assert why("changed.yaml") == [f"collect has not run yet: all {len(STAGES)} stages"]
    assert not (folder / "runs" / "other").exists()


def test_why_names_the_file_that_changed(tmp_path: Path) -> None:
    def why() -> list[str]:
        said = echo_hf("why", "config.yaml", cwd=tmp_path).stdout.splitlines()
        return [line for line in said if not line.startswith(" ")]

    config = config_over(tmp_path, bundled_posts()[:5], "recorded")
    assert echo_hf("build", "config.yaml", "--until", "collect", cwd=tmp_path).returncode == 0
    with (tmp_path / "posts.jsonl").open("a", encoding="utf-8") as file:
        file.write('\n{"url": "https://board.example/new", "text": "hello"}')
    assert why() == [f"posts.jsonl changed: all {len(STAGES)} stages"]
    text = config.read_text("utf-8").replace("path: posts.jsonl", "path: more.jsonl")
    config.write_text(text, "utf-8")
    (tmp_path / "posts.jsonl").rename(tmp_path / "more.jsonl")
    names = ("more.jsonl", "posts.jsonl")
    assert why() == [f"{name} changed: all {len(STAGES)} stages" for name in names]


def test_h_is_help(tmp_path: Path) -> None:
    for verb in ([], ["publish"]):
        done = echo_hf(*verb, "-h", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == echo_hf(*verb, "--help", cwd=tmp_path).stdout


@pytest.mark.parametrize("config", BAD_CONFIGS)
def test_a_users_mistake_is_one_line(tmp_path: Path, config: str) -> None:
    """Bad input ends with exit code 2 and one line that names it."""
    (tmp_path / "config.yaml").write_text(config)
    verb = "generate" if config.startswith(SYSTEM) else "build"
    said = refused(verb, "config.yaml", cwd=tmp_path)
    assert BAD_CONFIGS[config] in said
    assert "tulip" not in said


def refused(*arguments: str, cwd: Path) -> str:
    done = echo_hf(*arguments, cwd=cwd)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("echo-hf: ")
    return done.stderr


def test_what_is_no_config_and_no_release_is_one_line(folder: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, said in {"nope.yaml": "'nope.yaml'", "pipe": "not a regular file"}.items():
        assert said in refused("build", name, cwd=tmp_path)
    assert "no release in" in refused("diff", "runs", "runs/quickstart", "--json", cwd=folder)


def test_a_mistake_moves_no_cursor_and_turns_no_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("l\x1b[2Jink\u202e,text\nhttps://a.example/1,a\n", "utf-8")
    posts = "posts: [{source: table, path: a.csv, columns: {url: link}}]\n"
    (tmp_path / "c.yaml").write_text(f"{TARGET}{posts}{RULES}")
    assert "known: l\\x1b[2Jink\\u202e, text\n" in refused("collect", "c.yaml", cwd=tmp_path)


def test_engines_and_the_version_are_told(tmp_path: Path) -> None:
    listed = echo_hf("engines", cwd=tmp_path).stdout
    assert re.search(r"^rules +no model.* ready *$", listed, re.MULTILINE)
    assert echo_hf("--version", cwd=tmp_path).stdout.strip() == version("echo-hf")


def answered(folder: Path, config: str, url: str, prompt: str, *others: str) -> str:
    sample = {"prompt": prompt, "quality": "Benchmark", "posts": [0], "feedback": []}
    roles = {"inputs": [], "outputs": [1], "posts": [0], "may_show_minor": False}
    kind = {"kind": "task", "task": "text_to_image", "feedback": []}
    rows = [
        *(("relevance", one, {"score": 1, "note": None}) for one in others),
        ("relevance", url, {"score": 5, "note": None}),
        ("extract", url, {"samples": [sample]}),
        ("roles", sample_id(url), {"samples": [roles]}),
        ("feedback", sample_id(url), kind),
    ]
    lines = (dict(zip(("stage", "row", "answer"), row, strict=True)) for row in rows)
    (folder / "answers.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    return config.replace("recorded, source: quickstart", "recorded, path: answers.jsonl")


BAD_POSTS = """\
{"url": "https://example.org/1", "text": "Prompt: a red fox on a hill, made with Lumen Image", \
"pictures": [{"path": "broken.png"}, {"path": "../secret.png"}, {"path": "none.png"}]}
this is not JSON
{"text": "no url"}
{"url": "https://example.org/2", "text": "amazing!", "parent_url": "https://example.org/1", \
"timestamp": "yesterday"}
{"url": "https://example.org/3", "text": "me", "parent_url": "https://example.org/3", "txet": 1}
{"url": "https://example.org/4", "text": "circle", "parent_url": "https://example.org/5"}
{"url": "https://example.org/5", "text": "circle", "parent_url": "https://example.org/4"}
"""


def test_bad_input_is_told_with_its_place_and_costs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "posts.jsonl").write_text(BAD_POSTS, "utf-8")
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n and no more")
    config = shipped_config().read_text("utf-8")
    first, *others = (f"https://example.org/{number}" for number in range(1, 6))
    config = answered(tmp_path, config, first, "a red fox on a hill", *others)
    config = config.replace("source: quickstart", "{source: jsonl, path: posts.jsonl}")
    (tmp_path / "config.yaml").write_text(config, "utf-8")
    done = echo_hf("build", "config.yaml", "-v", "--allow-empty", cwd=tmp_path)
    told = {
        words[1].rstrip(":"): line.rpartition("(")[2].rstrip(")")
        for line in done.stdout.splitlines()
        if (words := line.split()) and words[0].isdigit() and line.endswith(")")
    }

    assert done.returncode == 0, done.stderr
    assert told.pop("not_relevant").startswith("https://example.org/")
    assert told.pop("needs_model")  # nothing screens the sample
    assert told.pop("picture_not_there")  # nobody knows whether the broken one is an input
    assert told == {
        "not_json": "posts.jsonl:2",
        "no_url": "posts.jsonl:3",
        "broken_picture": "posts.jsonl:1",
        "picture_outside": "posts.jsonl:1",
        "picture_not_found": "posts.jsonl:1",
        "bad_timestamp": "posts.jsonl:4",
        "unknown_field": "posts.jsonl:5",
        "self_parent": "https://example.org/3",
        "cycle": "https://example.org/4",
    }
    assert "0 text_to_image, 1 analysis samples released" in done.stdout


def test_an_update_says_what_it_cost_and_what_it_changed(tmp_path: Path) -> None:
    config = config_over(tmp_path, bundled_posts()[:30], "recorded")
    first, same = (echo_hf("update", config, "-v", cwd=tmp_path) for _ in range(2))
    config_over(tmp_path, bundled_posts()[:15], "recorded")
    fewer = echo_hf("update", config, "-v", cwd=tmp_path)
    assert [one.returncode for one in (first, same, fewer)] == [0, 0, 0], fewer.stderr
    assert "answers:" not in first.stdout  # nobody was asked
    assert first.stdout.splitlines()[-1].startswith("release: ")
    assert same.stdout.splitlines()[-1] == "nothing changed: it is the one that was there"
    told = fewer.stdout.partition("the one before: ")[2]
    assert told.splitlines()[0] == "runs/quickstart/previous"
    assert re.search(r"removed +[1-9]", told)
    assert not re.search(r"^added ", told, re.MULTILINE)  # none was


@pytest.mark.parametrize("both", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_closed_pipe_ends_no_work(folder: Path, tmp_path: Path, both: bool) -> None:
    """As of `| true`: the build is finished and kept, and one line on standard error says so."""
    copy = shutil.copytree(folder, tmp_path / "work")
    shutil.rmtree(copy / "runs" / "quickstart" / "release")
    command = [sys.executable, "-m", "echo_hf", "build", "config.yaml"]
    errors = subprocess.STDOUT if both else subprocess.PIPE
    reader, writer = os.pipe()
    os.close(reader)  # before the build starts: it must not depend on who is quicker
    with os.fdopen(writer, "wb") as output:
        build = subprocess.run(command, cwd=copy, stdout=output, stderr=errors)
    assert build.returncode == 0
    assert (copy / "runs" / "quickstart" / "release" / "manifest.json").exists()
    if not both:
        assert build.stderr.decode().splitlines() == [
            "echo-hf: nobody reads standard output any more: it is dropped, and the work goes on"
        ]
