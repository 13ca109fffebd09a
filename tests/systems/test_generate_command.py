"""`echo-hf generate`, as a user meets it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.systems.command_for_tests import Answering, answering, config, drawing


@pytest.fixture
def server() -> Iterator[Answering]:
    """A running server."""
    with answering() as one:
        yield one


def test_it_says_what_it_will_do_and_what_it_did(tmp_path: Path, server: Answering) -> None:
    """A plan before, the outcomes, the cost and the place of the outputs after."""
    path = config(tmp_path, 5)
    with drawing(server, path, "--limit", "3") as process:
        said, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    words = [line.split() for line in said.splitlines() if line.strip()]
    assert " ".join(words[0]).startswith("mine 3 to draw, 0 of them again, 0 kept; about $?")
    assert ["mine", "3"] in words
    assert "cost, as far as it is known: $0.03" in said
    assert said.splitlines()[-1] == f"outputs: {tmp_path / 'run' / 'outputs.parquet'}"
    assert sorted(server.asked) == ["t0", "t1", "t2"]


def test_a_dry_run_asks_nobody(tmp_path: Path, server: Answering) -> None:
    """And says so."""
    with drawing(server, config(tmp_path, 5), "--dry-run", "--systems", "mine") as process:
        said, errors = process.communicate()
    assert (process.returncode, errors, server.asked) == (0, "", [])
    assert said.splitlines()[-1] == "nothing was asked: leave out --dry-run to draw"


def test_five_failures_of_five_are_an_error_that_names_the_cause(
    tmp_path: Path, server: Answering
) -> None:
    """Fewer than stop a system, and all there are: exit code 2; the same command goes on."""
    path = config(tmp_path, 5)
    server.broken = True
    with drawing(server, path) as process:
        _, errors = process.communicate()
    assert process.returncode == 2
    assert errors.count("\n") == 1
    assert "system 'mine': all 5 tasks failed, the last with " in errors
    server.broken = False
    with drawing(server, path) as process:
        said, _ = process.communicate()
    assert "5 ok" in said
    assert len(server.asked) == 10


def test_a_system_that_stops_is_an_error_at_the_end(tmp_path: Path, server: Answering) -> None:
    """Ten failures in a row: exit code 2, and one line that says what happened."""
    server.broken = True
    with drawing(server, config(tmp_path, 30)) as process:
        said, errors = process.communicate()
    assert process.returncode == 2
    assert errors.count("\n") == 1
    assert "10 tasks in a row failed" in errors
    assert "mine was stopped\n" in said
    assert len(server.asked) < 30


def test_an_unknown_system_is_one_line(tmp_path: Path, server: Answering) -> None:
    """With the nearest name that there is."""
    with drawing(server, config(tmp_path, 1), "--systems", "mime") as process:
        said, errors = process.communicate()
    assert (process.returncode, said) == (2, "")
    assert errors == "echo-hf: --systems: unknown system 'mime'; did you mean 'mine'? known: mine\n"
