"""How much is told, and the log that a run keeps."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from echo_hf.cli import app
from echo_hf.config.sections import BUILT_IN_STAGES as STAGES
from echo_hf.errors import EchoError
from echo_hf.pipeline.run_folder import RunFolder
from tests.cli.test_json import made
from tests.engines.openai.loopback_server import LoopbackServer, fault, running
from tests.recorded_as_model import bundled_posts, config_over

KEY = "tulip-4711"
LINE = re.compile(r"\d{4}-\d\d-\d\d [\d:,]+ [A-Z]+ +echo_hf[\w.]*: .*")


def ran(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--runs", str(folder / "runs")])


def collected(folder: Path, *told: str) -> Result:
    return ran(folder, *(told or ("build",)), str(folder / "config.yaml"), "--until", "collect")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logged")
    config_over(folder, bundled_posts()[:20], "recorded")
    assert ran(folder, "build", str(folder / "config.yaml"), "--until", "threads").exit_code == 0
    return folder


def log_of(folder: Path) -> Path:
    return folder / "runs" / "quickstart" / "echo-hf.log"


def test_the_log_has_start_stages_and_end(built: Path) -> None:
    lines = log_of(built).read_text("utf-8").splitlines()
    assert all(LINE.fullmatch(line) for line in lines)
    first, *stages, last = (line.partition(": ")[2] for line in lines)
    assert re.fullmatch(r"echo-hf [\d.]+\S*: build quickstart", first)
    assert [one.partition(":")[0] for one in stages] == list(STAGES[:3])
    assert all(re.search(r"\d+ \w+ of \d+ \w+.*; \d+\.\d s$", one) for one in stages)
    assert last.startswith("done in ")


def test_who_only_reads_writes_no_log(built: Path) -> None:
    before = log_of(built).read_text("utf-8")
    assert ran(built, "why", str(built / "config.yaml")).exit_code == 0
    assert log_of(built).read_text("utf-8") == before
    assert collected(built).exit_code == 0
    assert log_of(built).read_text("utf-8").startswith(before)
    assert log_of(built).read_text("utf-8").count("build quickstart") == 2


def test_a_log_does_not_grow_for_ever(built: Path) -> None:
    before = log_of(built).read_bytes()
    log_of(built).write_bytes(b"x" * 1_000_000)
    collected(built)
    names = sorted(file.name for file in log_of(built).parent.glob("echo-hf.log*"))
    assert names == ["echo-hf.log", "echo-hf.log.1"]
    assert log_of(built).stat().st_size < 10_000
    log_of(built).write_bytes(before)


@pytest.mark.parametrize("place", [["-v", "build"], ["build", "-v"]], ids=["before", "after"])
def test_how_much_is_told(built: Path, place: list[str]) -> None:
    usual = collected(built)
    assert (usual.stderr, usual.stdout != "") == ("", True)
    assert collected(built, *place).stderr.splitlines()[0] == "run quickstart"
    quiet = collected(built, *(one.replace("v", "q") for one in place))
    assert (quiet.exit_code, quiet.stdout, quiet.stderr) == (0, "", "")


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    config_over(tmp_path, bundled_posts()[:5], "recorded")
    log_of(tmp_path).mkdir(parents=True)
    done = collected(tmp_path)
    assert done.exit_code == 0
    assert done.stderr.startswith("no log is kept: ")
    assert done.stderr.count("\n") == 1


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("LUMEN_WORD", KEY)  # not the name of a secret
    with running() as loopback:
        loopback.behave = lambda _: fault(500, f"\x1b[2Jbroken for {KEY}\nforged: line")
        yield loopback


def test_first_errors_are_logged_without_the_key(tmp_path: Path, server: LoopbackServer) -> None:
    posts = bundled_posts()  # of which more than 50 are asked about
    config = yaml.safe_load(config_over(tmp_path, posts, "recorded").read_text("utf-8"))
    reader = {"kind": "openai", "model": "m", "base_url": server.url, "api_key_env": "LUMEN_WORD"}
    reader |= {"max_attempts": 2, "backoff_s": 0.01}
    config["engines"] = dict.fromkeys(config["engines"], reader)
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(config), "utf-8")
    done = ran(tmp_path, "build", str(file), "--until", "relevance")
    text = log_of(tmp_path).read_text("utf-8")
    failures = re.findall(r"relevance, openai: engine_error: status 500: .*broken for", text)
    assert len(server.asked) > 20
    assert len(failures) == 5
    assert "attempt 1 failed, the next one in " in text
    assert "RequestError: status 500: " in text
    assert all(LINE.fullmatch(line) for line in text.splitlines())
    assert all(KEY not in one for one in (text, done.stdout, done.stderr))
    assert "\x1b" not in text
    assert isinstance(done.exception, EchoError)
    assert "ERROR    echo_hf: ended: engine 'OpenAIEngine' gave 50 equal errors" in text


def test_the_traceback_of_a_bug_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LUMEN_API_KEY", KEY)

    def broken() -> None:
        with RunFolder(tmp_path / "runs" / "quickstart").lock():
            raise ZeroDivisionError(f"{KEY}\n2026-11-22 forged")

    done = CliRunner().invoke(made(broken), ["broken"])
    assert isinstance(done.exception, ZeroDivisionError)
    assert done.stderr == ""
    lines = log_of(tmp_path).read_text("utf-8").splitlines()
    outer = [line for line in lines if LINE.fullmatch(line)]
    assert [line.split()[2] for line in outer] == ["INFO", "CRITICAL"]
    assert outer[0].endswith(": broken quickstart")
    inner = lines[2:]
    assert inner[0] == "  Traceback (most recent call last):"
    assert all(line.startswith("  ") for line in inner)
    assert any("ZeroDivisionError: [hidden]" in line for line in inner)
    assert KEY not in "\n".join(lines)


def test_the_package_alone_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert CliRunner().invoke(app, ["engines", "-vv"]).exit_code == 0
    (handler,) = logging.getLogger("echo_hf").handlers
    assert isinstance(handler, logging.NullHandler)
    logging.getLogger("echo_hf.engines").warning("heard by nobody")
    assert capsys.readouterr().err == ""


def test_who_forgets_a_post_forgets_what_the_log_said_of_it(built: Path) -> None:
    for name in ("echo-hf.log", "echo-hf.log.1"):
        log_of(built).with_name(name).write_text("engine_error: a fox of folded paper\n", "utf-8")
    post = bundled_posts()[0]["url"]
    done = ran(built, "forget", str(built / "config.yaml"), post)
    assert done.exit_code == 0
    assert "what somebody else loaded with datasets may lie in" in done.stdout
    left = (file.read_text("utf-8") for file in log_of(built).parent.glob("echo-hf.log*"))
    assert "fox" not in "".join(left)
