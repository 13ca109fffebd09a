"""What a terminal shows of systems at work."""

from __future__ import annotations

import io
import re
import time
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from echo_hf.cli.evaluation_view import outcome_table, system_table, what_seeds_give
from echo_hf.cli.progress import Watch
from echo_hf.reasons import Outcome
from echo_hf.systems.generate import Generated, SystemListing, list_systems
from echo_hf.systems.runner import GenerationPlan, Generations
from tests.systems.runs_for_tests import entry, system, task

TASKS = tuple(task(number) for number in range(1500))
PLAN = GenerationPlan("mine", TASKS, 20, 3, 61.5, 3725.4)
UNKNOWN = GenerationPlan("theirs", (), 0, 0, None, None)


def console(**options: Any) -> Console:
    """A terminal that keeps what is printed."""
    return Console(file=io.StringIO(), width=120, **options)


def shown(*tables: Table) -> str:
    """What a table looks like."""
    one = console()
    one.print(*tables)
    return written(one)


def written(one: Console) -> str:
    """What was printed."""
    assert isinstance(one.file, io.StringIO)
    return one.file.getvalue()


def test_the_plan_says_how_many_and_for_how_much() -> None:
    """A question mark stands where nothing is known."""
    one = console()
    for plan in (PLAN, UNKNOWN):
        Watch(one).started(plan.system, len(plan.todo), plan)
    assert [" ".join(line.split()) for line in written(one).splitlines()] == [
        "mine 1,500 to draw, 3 of them again, 20 kept; about $61.50, about 1:02:05",
        "theirs 0 to draw, 0 of them again, 0 kept; about $?, about ?",
    ]


def test_what_a_system_gave_is_told_with_rate_and_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock of our own: two outputs in 30 seconds are 4 a minute."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    given, one = Generations("mine", began=now[0]), console()
    with Watch(one) as watch:
        watch.started("mine", len(PLAN.todo), PLAN)
        for number, cost_usd in enumerate((0.25, 0.5)):
            now[0] += 15
            given.entries.append(entry(number, cost_usd=cost_usd))
            watch.advanced("mine", len(given.entries), given)
        watch.finished(given)
    assert [line.strip() for line in written(one).splitlines()[-2:]] == [
        "2 of 1,500: mine: 2 refused (4 a minute), $0.75",
        "mine: 2 refused (4 a minute), $0.75",
    ]


def test_failures_are_told_by_code_with_an_example() -> None:
    """So that nobody has to open a table to see why all of a system failed."""
    given = Generations("mine")
    for number, code in enumerate(("no_file", "timeout", "no_file")):
        failed = {"outcome": Outcome.FAILED, "code": code, "text": f"{code} {number}"}
        given.entries.append(entry(number, **failed))
    assert list(given.failures()) == [
        "mine: 2 failed, no_file: no_file 0",
        "mine: 1 failed, timeout: timeout 1",
    ]


def test_outcomes_have_a_column_only_when_there_are_some() -> None:
    """In the order of their list."""
    made = Generated(
        None,
        (),
        {"mine": {Outcome.FAILED: 2, Outcome.OK: 1100}, "theirs": {Outcome.OK: 1}},
        None,
        {},
    )
    lines = [line.split() for line in shown(outcome_table(made)).splitlines()]
    assert lines == [["system", "ok", "failed"], ["mine", "1,100", "2"], ["theirs", "1", "0"]]


def test_the_list_says_what_to_do() -> None:
    """Extras, keys and folders that are missing; nothing of a name is markup."""
    config = system("mine", status="replay", stands_for="[bold]GPT-4o")

    def one(**changes: Any) -> SystemListing:
        given = {"known": True, "extra": None, "keys": {}, "no_folder": None}
        given |= {"usd_per_image": None, **changes}
        return SystemListing(config=config, file=None, **given)

    text = shown(
        system_table(
            [
                one(usd_per_image=0.0421),
                one(keys={"A_KEY": True}),
                one(extra="openai", keys={"A_KEY": False, "B_KEY": True}),
                one(known=False),
                one(no_folder="Bagel"),
            ]
        )
    )
    rows = [line.rstrip() for line in text.splitlines()]
    assert "[bold]GPT-4o" in rows[1]
    assert "0.042" in rows[1]
    assert [row.split("  ")[-1].strip() for row in rows[1:]] == [
        "nothing",
        "nothing",
        "[openai], A_KEY",
        "no adapter 'acting' is installed",
        "folder 'Bagel'",
    ]


def test_a_narrow_terminal_leaves_out_nothing() -> None:
    """At 80 columns every heading and all that is missing is there, in lines that fit."""
    systems = list_systems()
    one = Console(file=io.StringIO(), width=80)
    one.print(system_table(systems))
    lines = written(one).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split()[-1] == "missing"
    start = lines[0].index("missing")
    column = re.sub(r"\s", "", "".join(line[start:] for line in lines))
    names = [name for system in systems for name, is_set in system.keys.items() if not is_set]
    assert names
    assert all(name in column for name in names)


def test_what_a_seed_gives_is_a_line_each() -> None:
    """Of the systems that say so."""
    given = {"file": None, "known": True, "extra": None, "keys": {}, "no_folder": None}
    one = SystemListing(config=system("mine"), usd_per_image=None, **given)
    told = replace(one, determinism="always the same")
    assert list(what_seeds_give([one, told])) == ["mine, with the same seed: always the same"]
