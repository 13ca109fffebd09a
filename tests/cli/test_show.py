"""The table in a terminal, and the figures as JSON."""

from __future__ import annotations

import dataclasses
import io
import json

import pytest
from rich.console import Console

from echo_hf._infra.console import say_json
from echo_hf.builder.gold.check import CheckResult, StageCheck
from echo_hf.builder.gold.measures import Item, Measure, measured
from echo_hf.cli.check_view import as_json, interval, percent, show_check, show_errors
from echo_hf.config.checks import EngineChoice
from echo_hf.pipeline.batch_inference import FillStats

HOSTILE = "\x1b[31m[bold]wrong\u202e"


def measure(
    name: str, right: int, count: int, missing: int = 0, *, errors: bool = False
) -> Measure:
    scores = [1.0] * right + [0.0] * (count - right) + [None] * missing
    items = [(name, Item("t", f"p{n}", "right", HOSTILE, score)) for n, score in enumerate(scores)]
    (found,) = measured("relevance", [name], items, errors=errors)
    return found


def checked(*measures: Measure, model: str = "org/model") -> CheckResult:
    stage = StageCheck(
        "relevance",
        EngineChoice(kind="vllm", model=model),
        "d" * 64,
        {"engine": {"kind": "vllm", "model": model}},
        measures,
        {"cut": 2},
        FillStats(stage_cost_usd=1.5),
    )
    return CheckResult("Tern 2", "posts.jsonl", "tune", "g" * 64, 12, (stage,), ("a note",))


def printed(result: CheckResult, width: int, *, errors: bool = False) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width)
    show_check(console, result)
    if errors:
        show_errors(console, result)
    return out.getvalue().splitlines()


def test_the_table_by_hand() -> None:
    lines = printed(checked(measure("keep_recall", 30, 40, 10), measure("x", 3, 3)), 120)
    text = " ".join(lines)
    assert lines[1] == ("vllm org/model on Tern 2 in posts.jsonl, half for tuning, 12 threads")
    row = next(line for line in lines if "keep recall" in line).split()
    # Wilson's ends for 30 of 40 are 0.5981 and 0.8581.
    assert row == ["relevance", "keep", "recall", "75.0", "59", "to", "86", "40", "80.0", "60.0"]
    assert "as wrong in strict %" in text
    assert "1 of 2 measures have n below 30" in text
    assert "a note." in text
    assert "These answers cost $1.50." in text


def test_it_fits_its_terminal() -> None:
    names = ("picture_role_accuracy", "screenshot_recall")
    result = checked(*(measure(name, 999, 1234, 617) for name in names))
    stage = dataclasses.replace(result.stages[0], stage="screenshots")
    lines = printed(dataclasses.replace(result, stages=(stage,)), 80)
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines)
    # 999 of 1,234 are right; with 617 more without an answer it is 999 of 1,851.
    assert next(line for line in lines if "picture role" in line).split()[-1] == "54.0"


def test_errors_are_shown_as_plain_text() -> None:
    lines = printed(checked(measure("x", 1, 2, 1, errors=True)), 120, errors=True)
    told = lines[lines.index("relevance, x: 2 not right") :]

    assert told[1:4] == ["  p1", "    expected right", "    given    [31m[bold]wrong"]
    assert "\x1b" not in "".join(lines)


def test_several_engines_are_named_with_their_stages_and_nothing_is_a_dash() -> None:
    one, other = checked(measure("x", 1, 1)), checked(measure("y", 0, 0), model="org/other")
    stages = (*one.stages, *other.stages)
    lines = printed(CheckResult("Tern 2", "p", "all", "g", 1, stages, ()), 120)
    assert lines[1] == (
        "vllm org/model (relevance), vllm org/other (relevance) on Tern 2 in p, both halves, "
        "1 thread"
    )
    row = next(line for line in lines if " y " in line)
    assert row.split() == ["relevance", "y", "-", "-", "0", "-", "-"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (0.0004, "0.1"), (0.5, "50.0"), (0.99996, "99.9"), (1.0, "100")],
)
def test_only_all_is_all_and_only_nothing_is_nothing(value: float, shown: str) -> None:
    """A share is never rounded to 0 or 100; an interval that is shown holds the true one."""
    assert percent(value) == shown
    assert interval(0.301, 0.309) == "30 to 31"
    assert interval(0.29, 0.57) == "29 to 57"  # 100 * 0.29 is a little less than 29


def test_json_has_the_figures_and_no_words(capsys: pytest.CaptureFixture[str]) -> None:
    result = checked(measure("keep_recall", 3, 4, 1, errors=True))
    say_json(as_json(result))
    text = capsys.readouterr().out
    read = json.loads(text)

    stage = read["stages"][0]
    assert stage["engine"] == {"kind": "vllm", "model": "org/model"}
    assert stage["failed"] == {"cut": 2}
    found = stage["measures"][0]
    assert (found["value"], found["n"], found["coverage"], found["strict"]) == (0.75, 4, 0.8, 0.6)
    assert "wrong" not in text
