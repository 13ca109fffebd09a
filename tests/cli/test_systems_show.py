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

from echo_hf.cli.evaluation_view import (
    Show,
    outcome_table,
    plan_table,
    system_table,
    what_seeds_give,
)
from echo_hf.reasons import NoTask, NotTabled, Outcome
from echo_hf.systems.generate import Generated, Listed, list_systems
from echo_hf.systems.plan import Plan
from tests.systems.runs_for_tests import entry, sha, system, task

TASKS = tuple(task(number) for number in range(1500))
PLAN = Plan("mine", TASKS, 20, 3, 61.5, 3725.4)
UNKNOWN = Plan("theirs", (), 0, 0, None, None)


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
    lines = [line.split() for line in shown(plan_table([PLAN, UNKNOWN])).splitlines()[1:]]
    assert lines == [
        ["mine", "1,500", "20", "3", "61.50", "1:02:05"],
        ["theirs", "0", "0", "0", "?", "?"],
    ]


def test_samples_that_are_left_out_are_told_with_the_reason() -> None:
    """Counted, and with what to do."""
    one = console()
    Show(one).planned([PLAN], {NoTask.DEHYDRATED: 1200})
    assert "1,200 samples left out, dehydrated: " in written(one)
    assert "echo-hf hydrate" in written(one)


def test_outputs_that_the_table_does_not_hold_are_told() -> None:
    """Counted, with the reason."""
    one = console()
    Show(one).tabled({"mine": {NotTabled.OTHER_SETTINGS: 1200}})
    assert written(one).startswith("mine: 1,200 outputs not in the table, other_settings: drawn")


def test_a_rate_counts_from_when_the_system_began(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock of our own: two outputs in 30 seconds are 4 a minute, whatever came before."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    one = console()
    with Show(one) as show:
        show.planned([PLAN, replace(UNKNOWN, todo=TASKS[:1])], {})
        now[0] += 15
        show.drawn("mine", entry(0, outcome=Outcome.OK, image=sha(b""), cost_usd=0.25))
        now[0] += 15
        show.drawn("mine", entry(1, cost_usd=0.5))
        show.finished("mine", None)
        now[0] += 60
        show.drawn("theirs", entry(0))
        show.finished("theirs", "no\nkey")
    assert written(one).splitlines()[-5:] == [
        "mine: 2 of 1,500, 1 ok, 1 refused (4 a minute), $0.75",
        "mine: 1 ok, 1 refused (4 a minute), $0.75",
        "theirs: 1 of 1, 1 refused (1 a minute)",
        "theirs: 1 refused (1 a minute)",
        "theirs was stopped",
    ]


def test_failures_are_told_by_code_with_an_example() -> None:
    """So that nobody has to open a table to see why all of a system failed."""
    one = console()
    with Show(one) as show:
        show.planned([PLAN], {})
        for number, code in enumerate(("no_file", "timeout", "no_file")):
            failed = {"outcome": Outcome.FAILED, "code": code, "text": f"{code}\n{number}"}
            show.drawn("mine", entry(number, **failed))
        show.finished("mine", None)
    assert written(one).splitlines()[-2:] == [
        "  2 failed, no_file: no_file 0",
        "  1 failed, timeout: timeout 1",
    ]


def test_a_system_with_nothing_to_do_says_nothing() -> None:
    """And one that could not begin says so; the command's error says why."""
    one = console()
    show = Show(one)
    show.finished("mine", None)
    show.finished("theirs", "no key")
    assert written(one) == "theirs was stopped\n"


def test_a_terminal_gets_a_bar_that_goes_away() -> None:
    """It is stopped for every line, and when all is over."""
    one = console(force_terminal=True)
    with Show(one) as show:
        show.planned([PLAN], {})
        show.drawn("mine", entry(0))
        show.stopping("mine", 3)
        show.drawn("mine", entry(1))
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written(one))
    assert "mine: stopping; 3 under way are waited for and kept" in text
    assert written(one).count("\x1b[?25l") == written(one).count("\x1b[?25h") > 0


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

    def one(**changes: Any) -> Listed:
        given = {"known": True, "extra": None, "keys": {}, "no_folder": None}
        given |= {"usd_per_image": None, **changes}
        return Listed(config=config, file=None, **given)

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
    one = Listed(config=system("mine"), usd_per_image=None, **given)
    told = replace(one, determinism="always the same")
    assert list(what_seeds_give([one, told])) == ["mine, with the same seed: always the same"]
