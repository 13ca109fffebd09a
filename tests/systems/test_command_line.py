"""`echo-hf generate`, as a user meets it: what it says, and how a run that is stopped goes on."""

from __future__ import annotations

import json
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import datasets
import pyarrow.parquet as pq
import pytest

from echo_hf.cli import main
from echo_hf.images.store import ImageStore
from echo_hf.systems.registry import register
from tests.systems.command_for_tests import (
    CONCURRENCY,
    PATIENCE_S,
    Answering,
    answering,
    config,
    drawing,
)
from tests.systems.draw_over_http import Fetching
from tests.systems.runs_for_tests import png, sha

OUTPUTS, KILLS = 200, 5


@pytest.fixture
def server() -> Iterator[Answering]:
    with answering() as one:
        yield one


def answered(folder: Path) -> set[str]:
    path = folder / "run" / "outputs" / "mine.jsonl"
    whole = path.read_bytes().rpartition(b"\n")[0].splitlines() if path.exists() else []
    rows = [json.loads(line) for line in whole]
    return {row["sample_id"] for row in rows if row.get("outcome") == "ok"}


@pytest.fixture
def command(
    server: Answering, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., tuple[object, str, str]]]:
    monkeypatch.setattr(Fetching, "address", server.url)
    register("fetching")(Fetching)
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}

    def run(path: Path, *options: str) -> tuple[object, str, str]:
        arguments = ["echo-hf", "generate", str(path), "--runs", str(path.parent), *options]
        monkeypatch.setattr(sys, "argv", arguments)
        monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", path.parent / "cache")
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, *capsys.readouterr()

    yield run
    for number, handler in before.items():
        signal.signal(number, handler)


def test_it_says_what_it_will_do_and_what_it_did(
    tmp_path: Path, server: Answering, command: Callable[..., tuple[object, str, str]]
) -> None:
    path = config(tmp_path, 5)
    code, said, errors = command(path, "--limit", "3")
    assert (code, errors) == (0, "")
    words = [line.split() for line in said.splitlines() if line.strip()]
    assert " ".join(words[0]).startswith("mine 3 to draw, 0 of them again, 0 kept; about $?")
    assert ["mine", "3"] in words
    assert "cost, as far as it is known: $0.03" in said
    assert f"outputs: {tmp_path / 'run' / 'outputs.parquet'}" in said.replace("\n", " ")
    assert sorted(server.asked) == ["t0", "t1", "t2"]
    code, said, errors = command(path, "--dry-run", "--systems", "mine")
    assert (code, errors, len(server.asked)) == (0, "", 3)
    assert said.splitlines()[-1] == "nothing was asked: leave out --dry-run to draw"


def test_five_failures_of_five_are_an_error_that_names_the_cause(
    tmp_path: Path, server: Answering, command: Callable[..., tuple[object, str, str]]
) -> None:
    """Fewer than stop a system, and all there are: exit code 2; the same command goes on."""
    path = config(tmp_path, 5)
    server.broken = True
    code, said, errors = command(path)
    assert (code, errors.count("\n")) == (2, 1)
    assert "system 'mine': all 5 tasks failed, the last with " in errors
    assert "mine was stopped\n" in said
    server.broken = False
    assert "5 ok" in command(path)[1]
    assert len(server.asked) == 10


@pytest.mark.slow
def test_a_killed_run_asks_for_no_answer_twice(tmp_path: Path, server: Answering) -> None:
    chosen = random.Random(7)
    path = config(tmp_path, OUTPUTS)
    kept: set[str] = set()
    for _ in range(KILLS):
        before = len(server.asked)
        with drawing(server, path) as process:
            server.until_asked(before + chosen.randint(1, 60))
            process.kill()
        assert kept.isdisjoint(server.asked[before:])
        assert kept <= answered(tmp_path)
        kept = answered(tmp_path)
    before = len(server.asked)
    with drawing(server, path) as process:
        said, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert f"{OUTPUTS - len(kept):,} ok" in said

    assert kept.isdisjoint(server.asked[before:])
    times = Counter(server.asked)
    assert set(times) == {f"t{number}" for number in range(OUTPUTS)}
    assert len(server.asked) - OUTPUTS <= KILLS * CONCURRENCY
    rows = pq.read_table(tmp_path / "run" / "outputs.parquet").to_pylist()
    assert {row["sample_id"]: row["image"] for row in rows} == {
        name: sha(png(name)) for name in times
    }
    images = ImageStore(tmp_path / "run" / "pictures")
    assert all(images.open(row["image"]) for row in rows)


def test_ctrl_c_keeps_what_is_under_way(tmp_path: Path, server: Answering) -> None:
    path = config(tmp_path, 12)
    server.free.clear()
    with drawing(server, path) as process:
        server.until_asked(CONCURRENCY)
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        said = next(line for line in process.stdout if "stopping" in line)
        server.free.set()
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert said == "note: mine: stopping; 4 under way are waited for and kept\n"
    assert errors == "echo-hf: stopped; the same command resumes where it stopped\n"
    assert process.returncode == 130
    assert len(server.asked) == CONCURRENCY
    assert answered(tmp_path) == set(server.asked)
    rows = pq.read_table(tmp_path / "run" / "outputs.parquet").to_pylist()
    assert {row["sample_id"] for row in rows} == set(server.asked)


def test_a_stop_while_a_system_is_looked_for_is_no_error_of_it(
    tmp_path: Path, server: Answering
) -> None:
    """As a cluster ends a job, before anything is drawn: exit code 130, and how to go on."""
    server.free.clear()
    with drawing(server, config(tmp_path, 3, look=True)) as process:
        server.until_asked(1)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert errors == "echo-hf: stopped; the same command resumes where it stopped\n"
    assert (process.returncode, server.asked) == (130, ["preflight"])
