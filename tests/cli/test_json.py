"""`--json`: one object for machines on standard output."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from echo_hf._infra.console import print_json
from echo_hf.cli import _handle_options, app
from echo_hf.cli.verb import Payload, verb
from echo_hf.config.sections import BUILT_IN_STAGES as STAGES
from echo_hf.pipeline.batch_inference import FillStats
from tests.finished_run import NAME, unpacked

SPLITS = ("image_to_image", "text_to_image", "analysis")


class Color(StrEnum):
    RED = "red"


class Pair(NamedTuple):
    a: float
    b: float


def test_an_object_is_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    value = {
        "path": Path("a/b"),
        Color.RED: Pair(1.5, math.nan),
        "c": {"d": -math.inf},
        "e": "\x9b",
        "\ud800": datetime(2026, 3, 2, 1, tzinfo=UTC),
    }
    print_json({**value, "f": FillStats(calls=3), "g": None, "h": True})
    (line,) = capsys.readouterr().out.splitlines()
    assert line.isascii()
    read = json.loads(line)
    assert read.pop("f")["usage"] == {"prompt": 0, "completion": 0, "cached": 0}
    assert read == {"path": "a/b", "red": [1.5, None], "c": {"d": None}, "e": "\x9b"} | {
        "g": None,
        "h": True,
        "\ud800": "2026-03-02 01:00:00+00:00",
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    unpacked(folder)
    return folder


@pytest.fixture
def run(finished: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(finished)
    return Path("runs") / NAME


def told(*arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.count("\n") == 1
    assert done.stderr
    read: dict[str, Any] = json.loads(done.stdout, parse_constant=lambda what: pytest.fail(what))
    assert read["verb"] == arguments[0]
    return read


def count(file: Path) -> int:
    return pq.ParquetFile(file).metadata.num_rows


def test_a_build(run: Path) -> None:
    built = told("build", "config.yaml")
    assert Path(built["path"]) == (run / "release").resolve()
    assert built["samples"] == {
        name: sum(map(count, (run / "release" / name).glob("*.parquet"))) for name in SPLITS
    }
    assert [one["stage"] for one in built["stages"]] == list(STAGES)
    for one in built["stages"]:
        folder = run / "stages" / one["stage"]
        assert one["kept"] == count(folder / "kept.parquet")
        assert sum(one["rejected"].values()) == count(folder / "rejects.parquet")
    part = told("build", "config.yaml", "--until", "threads")
    assert (part["path"], [one["stage"] for one in part["stages"]]) == (None, list(STAGES[:3]))


def test_what_would_run_and_what_differs(run: Path) -> None:
    updated = told("update", "config.yaml")
    assert (updated["changed"], updated["calls"], updated["previous"]) == (False, 0, None)
    assert told("why", "config.yaml")["changes"] == []
    release = str(run / "release")
    assert told("diff", release, release)["removed"] == []
    assert {one["id"] for one in told("review", "config.yaml")["open"]} <= set(
        pq.read_table(run / "stages" / "privacy" / "kept.parquet")["id"].to_pylist()
    )


def test_systems_and_judges(run: Path) -> None:
    generated = told("generate", "config.yaml")
    rows = pq.read_table(run / "outputs.parquet").to_pylist()
    assert Path(generated["path"]) == run / "outputs.parquet"
    assert generated["outcomes"] == {
        name: dict(Counter(row["outcome"] for row in rows if row["system"] == name))
        for name in sorted({row["system"] for row in rows})
    }
    judged = told("judge", "config.yaml")
    assert Path(judged["path"]) == run / "ratings.parquet"
    assert sum(sum(one["outcomes"].values()) for one in judged["answered"]) == count(
        run / "ratings.parquet"
    )
    assert sum(one["fill"]["calls"] for one in judged["answered"]) == 0
    planned = told("judge", "config.yaml", "--dry-run")
    assert (planned["path"], {one["calls"] for one in planned["plans"]}) == (None, {0})


@pytest.mark.parametrize(("name", "file"), [("score", "results.json"), ("agree", "agreement.json")])
def test_figures(run: Path, name: str, file: str) -> None:
    figures = told(name, "config.yaml")
    assert figures.pop("verb") == name
    assert Path(figures.pop("path")) == run / file
    assert figures == json.loads((run / file).read_bytes())


def test_lists() -> None:
    engines = {one["name"]: one for one in told("engines")["engines"]}
    assert engines["rules"]["missing"] == []
    assert engines["vllm"]["extra"] == "vllm"
    assert {one["name"] for one in told("systems")["systems"]} >= {"anole"}


def made(function: Callable[..., Payload | None]) -> typer.Typer:
    one = typer.Typer()
    one.callback()(_handle_options)
    one.command()(verb(function))
    return one


def test_what_others_print_goes_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:

    def noisy() -> Payload:
        print("chatter")
        os.system("echo child")  # noqa: S605, S607 - our own words
        return {"path": None}

    done = CliRunner().invoke(made(noisy), ["noisy", "--json"])
    assert json.loads(done.stdout) == {"verb": "noisy", "path": None}
    assert "chatter" in done.stderr
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "child\n")
    done = CliRunner().invoke(made(noisy), ["-q", "noisy", "--json"])
    assert json.loads(done.stdout) == {"verb": "noisy", "path": None}
    assert (done.stderr, *capfd.readouterr()) == ("", "", "")
    done = CliRunner().invoke(made(noisy), ["noisy"])
    assert (done.stdout, done.stderr, capfd.readouterr().out) == ("chatter\n", "", "child\n")
