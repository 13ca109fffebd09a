"""What runs, plans, systems and checks of engines look like in a terminal."""

from __future__ import annotations

import io
import json
import re
import time
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from datasets import Dataset, Features, Value
from rich.console import Console

from echo_hf._infra.console import print_json
from echo_hf.builder.gold.check import CheckResult, StageCheck
from echo_hf.builder.gold.measures import Item, Measure, summarize
from echo_hf.cli.build_view import (
    check_as_json,
    format_interval,
    format_share,
    show_check,
    show_errors,
)
from echo_hf.cli.evaluation_view import list_remedies, make_outcome_table, make_system_table
from echo_hf.cli.progress import TerminalProgress, find_commonest_failure, format_reason_places
from echo_hf.collect.fetch import FetchStats, Unfetched
from echo_hf.config.checks import EngineChoice
from echo_hf.engines.base import Failed, Usage
from echo_hf.engines.planner import ExpectedCost, Range, RequestPlan
from echo_hf.pipeline.batch_inference import FillStats
from echo_hf.pipeline.result import StageResult, StageStats
from echo_hf.pipeline.stage import CONTROL
from echo_hf.systems.generate import GenerationSummary, SystemListing, list_systems
from echo_hf.systems.runner import GenerationPlan, GenerationStats
from echo_hf.tables import POSTS, Outcome
from tests.systems.runs_for_tests import entry, system, task

FETCHED = FetchStats(1010, 7, 1000, reasons=Counter({Unfetched.GONE: 2}), seconds=50.0)
FILLED = FillStats(calls=2, seconds=4.0, usage=Usage(100, 20, 75), cost_usd=0.5)
PRICE = ExpectedCost(Range(41, 61.5, 123), Range.exactly(3725.4))
HARBOR = GenerationPlan("mine", tuple(map(task, range(1500))), 20, 3, PRICE)
UNKNOWN = GenerationPlan("theirs", (), 0, 0, ExpectedCost())
CALLS = RequestPlan(
    requests=12, stored=2, prompt_tokens=3_000_000, usd_per_million_prompt_tokens=0.5
)


def console(width: int = 120, **options: Any) -> Console:
    return Console(file=io.StringIO(), width=width, **options)


def lines(one: Console) -> list[str]:
    assert isinstance(one.file, io.StringIO)
    return [" ".join(line.split()) for line in one.file.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("stats", "expected"),
    [
        (
            FillStats(calls=1, seconds=1.0, cost_usd=0.5, stage_cost_usd=2.0),
            "1 call, $0.50, $2.00 with earlier runs",
        ),
        (FILLED, "2 calls (30 a minute), 120 tokens, 75 % of prompts from cache, $0.50"),
        (FETCHED, "1,000 images (20/s), 7 known before, 2 gone"),
        (
            HARBOR,
            "1,500 to draw, 3 of them again, 20 kept, price $61.50 (41.00 to 123.00), time 62 min",
        ),
        (UNKNOWN, ""),
        (
            CALLS,
            "10 calls to make, 2 answered before; about 3,000,000 prompt tokens, 0 images, $1.50 "
            "and the answers",
        ),
        (RequestPlan(), ""),
    ],
)
def test_figures_are_told_whatever_is_known_of_them(stats: object, expected: str) -> None:
    one = console(200)
    TerminalProgress(one).report_start("extract", 1, stats)
    assert lines(one) == ([f"extract {expected}"] if expected else [])


def test_each_kind_of_work_has_a_bar_of_its_own() -> None:
    one = console(force_terminal=True)

    def work() -> None:
        with TerminalProgress(one) as watch:
            watch.report_progress("pictures", 1, FetchStats(2, fetched=1), 2)
            watch.report_progress("pictures", 2, FetchStats(2, fetched=2), 2)
            watch.report_progress("compared", 1, "looked at", 9)
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        work()
    text = "".join(lines(one))
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 2
    assert "2/2" in text
    assert "1/9" in text


def test_what_a_system_gave_is_told_with_rate_and_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock of our own: two outputs in 30 seconds are 4 a minute; no bar in a file."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    given, one = GenerationStats("mine", began=now[0]), console()
    with TerminalProgress(one) as watch:
        watch.report_start("mine", len(HARBOR.todo), HARBOR)
        for number, cost_usd in enumerate((0.25, 0.5)):
            now[0] += 15
            given.entries.append(entry(number, cost_usd=cost_usd))
            watch.report_progress("mine", len(given.entries), given)
        watch.report_result(given)
    assert lines(one)[-2:] == [
        "2 of 1,500: mine: 2 refused (4 a minute), $0.75",
        "mine: 2 refused (4 a minute), $0.75",
    ]


def test_failures_are_told_by_code_with_an_example() -> None:
    given = GenerationStats("mine")
    for number, code in enumerate(("no_file", "timeout", "no_file")):
        failed = {"outcome": Outcome.FAILED, "code": code, "text": f"{code} {number}"}
        given.entries.append(entry(number, **failed))
    said = ["mine: 2 failed, no_file: no_file 0", "mine: 1 failed, timeout: timeout 1"]
    assert list(given.describe_failures()) == said


def aside(*said: tuple[str, str], key: str = "url") -> pa.Table:
    features = {**POSTS.features, **CONTROL} if key == "url" else CONTROL
    schema = Features({name: features[name] for name in (key, "_reason")}).arrow_schema
    rows = [{key: [one] if key == "_parent" else one, "_reason": reason} for one, reason in said]
    return pa.Table.from_pylist(rows, schema)


@pytest.mark.parametrize(
    ("rejects", "notices", "expected"),
    [
        ("", "", ""),
        ("", "aaab", " (a, b)"),
        ("", "aaabc", " (a, b, ...)"),
        ("ab", "aaa", " (a, b)"),
        ("b", "aaac", " (b, a, ...)"),
        ("aaaabc", "", " (a, b, ...)"),
    ],
)
def test_places_are_two_and_a_hint_at_the_rest(rejects: str, notices: str, expected: str) -> None:
    tables = (
        aside(*((one, "spoilt") for one in rejects), ("z", "other")),
        aside(),
        aside(*((one, "spoilt") for one in notices), ("y", "other"), key="_parent"),
    )
    assert format_reason_places(tables, "spoilt") == expected


def test_a_remark_is_one_line_without_control_characters() -> None:
    one = console(60)
    with TerminalProgress(one) as watch:
        watch.report_notice("the release has 'a\x1b[31m\nb' [bold]and[/bold] " + "more " * 200)
    (line,) = lines(one)
    assert line.startswith("note: the release has 'a[31m b' [bold]and[/bold] more more")
    assert len(line) < 500


def test_a_stage_tells_every_loss_with_its_meaning() -> None:
    one = console()
    counts = {"rejected": {"no_sample": 2}, "quarantined": {"cut": 1}, "noted": {"cycle": 3}}
    stats = StageStats("extract", 9, 5, **counts)  # type: ignore[arg-type]
    TerminalProgress(one).show_stage(stats, [aside(), aside(), aside(key="_parent")])
    assert lines(one)[1:] == [
        "2 no_sample: the model found no sample in the thread",
        "1 cut: the answer ended at the token limit",
        "3 cycle: replies form a circle; it is cut at its earliest post",
        "1 answer cannot be used: --again asks anew",
    ]


def quarantined(**details: str) -> pa.Table:
    schema = Features({name: CONTROL[name] for name in ("_reason", "_detail")}).arrow_schema
    rows = [{"_reason": reason, "_detail": detail} for reason, detail in details.items()]
    table = pa.Table.from_pylist(rows, schema)
    return table.append_column("url", pa.array(details.values(), pa.string()))


@pytest.mark.parametrize(
    ("failed", "requests", "shown"),
    [
        ({"cut": 8, "refused": 3}, 50, "11 failed, 8 of them cut (the answer ended at the token "),
        ({"cut": 8, "refused": 3}, 55, None),  # a fifth, and no more
        ({"cut": 1}, 0, None),  # of nine rows, where nothing was asked in this run
        ({"needs_model": 50}, 50, None),  # an engine that is no model
    ],
)
def test_a_stage_of_which_much_failed_says_why_with_an_answer(
    failed: dict[str, int], requests: int, shown: str | None
) -> None:
    stats = StageStats("relevance", 9, 5, quarantined=failed, fill=FillStats(requests=requests))
    said = find_commonest_failure(stats, quarantined(**dict.fromkeys(failed, '{"score": 1, "no')))
    if shown is None:
        assert said is None
    else:
        assert said is not None
        assert said.startswith(shown)
        assert said.endswith("""such as '{"score": 1, "no'""")


def test_the_headlines_are_the_papers_figures() -> None:
    """With the paper's own counts the shares are the 47, 20 and 66 tenths that it prints."""
    scores = {"score_1": 36_000, "score_4": 20_000, "score_5": 12_000}
    kinds = {"Benchmark": 7000, "Analysis": 23_100, "Trash": 4900}
    splits = {"image_to_image": 710, "text_to_image": 848, "analysis": 30_100}
    watch = TerminalProgress(console())
    assert watch.list_headlines() == []  # stages that have not run say nothing
    watch.stats = [
        StageStats("collect", 70_000, 68_000, tally={"posts": 68_000, "merged": 2000}),
        StageStats("relevance", 68_000, 68_000, tally=scores),
        StageStats("threads", 68_000, 9000, tally={"posts": 51_000}),
        StageStats("extract", 9000, 35_000, tally=kinds),
        StageStats("splits", 35_000, 30_100, tally=splits),
    ]
    assert watch.list_headlines() == [
        "68,000 posts collected from 70,000 records, 2,000 seen more than once",
        "32,000 of 68,000 scored posts are relevant (47 %); 9,000 threads with 51,000 posts stay",
        "35,000 samples extracted: 20 % Benchmark, 66 % Analysis, 14 % Trash",
        "710 image_to_image, 848 text_to_image, 30,100 analysis samples released",
    ]


# --- systems ---


def listing(**changes: Any) -> SystemListing:
    given = {"known": True, "extra": None, "keys": {}, "no_folder": None, "image": ExpectedCost()}
    config = system("mine", status="replay", stands_for="[bold]GPT-4o")
    return SystemListing(config=config, file=None, **{**given, **changes})


def test_the_list_says_what_to_do() -> None:
    one = console()
    given = [
        listing(image=ExpectedCost(Range(0.01, 0.0421, 0.2))),
        listing(extra="openai", keys={"A_KEY": False, "B_KEY": True}),
        listing(known=False),
        listing(no_folder="Bagel"),
    ]
    one.print(make_system_table(given))
    rows = lines(one)[1:]
    assert "[bold]GPT-4o" in rows[0]
    assert "0.042 nothing" in rows[0]
    ends = ["[openai], A_KEY", "no adapter 'acting' is installed", "folder 'Bagel'"]
    assert all(row.endswith(end) for row, end in zip(rows[1:], ends, strict=True))
    told = replace(given[0], determinism="always the same")
    assert list(list_remedies([listing(), told])) == ["mine, with the same seed: always the same"]


def test_a_narrow_terminal_leaves_out_nothing() -> None:
    """At 80 columns every heading and all that is missing is there, in lines that fit."""
    systems, one = list_systems(), console(80)
    one.print(make_system_table(systems))
    assert isinstance(one.file, io.StringIO)
    printed = one.file.getvalue().splitlines()
    assert max(map(len, printed)) <= 80
    start = printed[0].index("missing")
    column = re.sub(r"\s", "", "".join(line[start:] for line in printed))
    names = [name for each in systems for name, is_set in each.keys.items() if not is_set]
    assert names
    assert all(name in column for name in names)


def test_outcomes_have_a_column_only_when_there_are_some() -> None:
    mine = {Outcome.FAILED: 2, Outcome.OK: 1100}
    one = console()
    one.print(
        make_outcome_table(
            GenerationSummary(None, (), {"mine": mine, "no": {Outcome.OK: 1}}, None, {})
        )
    )
    assert lines(one) == ["system ok failed", "mine 1,100 2", "no 1 0"]


HOSTILE = "\x1b[31m[bold]wrong\u202e"


def measure(
    name: str, right: int, count: int, missing: int = 0, *, errors: bool = False
) -> Measure:
    scores = [1.0] * right + [0.0] * (count - right) + [None] * missing
    items = [(name, Item("t", f"p{n}", "right", HOSTILE, score)) for n, score in enumerate(scores)]
    (found,) = summarize("relevance", [name], items, errors=errors)
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
    assert format_share(value) == shown
    assert format_interval(0.301, 0.309) == "30 to 31"
    assert format_interval(0.29, 0.57) == "29 to 57"  # 100 * 0.29 is a little less than 29


def test_json_has_the_figures_and_no_words(capsys: pytest.CaptureFixture[str]) -> None:
    result = checked(measure("keep_recall", 3, 4, 1, errors=True))
    print_json(check_as_json(result))
    text = capsys.readouterr().out
    read = json.loads(text)

    stage = read["stages"][0]
    assert stage["engine"] == {"kind": "vllm", "model": "org/model"}
    assert stage["failed"] == {"cut": 2}
    found = stage["measures"][0]
    assert (found["value"], found["n"], found["coverage"], found["strict"]) == (0.75, 4, 0.8, 0.6)
    assert "wrong" not in text


def test_a_row_that_several_stages_lose_counts_once() -> None:
    names = ("id", "_reason", "_detail")
    features = Features(dict.fromkeys(names, Value("string")))
    of_stage = {name: {"id": [name], "_reason": [Failed.REFUSED]} for name in ("a", "b")}
    of_stage["c"] = {"id": ["a", "d"], "_reason": [Failed.REFUSED, Failed.NEEDS_MODEL]}
    with TerminalProgress(console(), details=False) as watch:
        for name, rows in of_stage.items():
            lost = Dataset.from_dict({**rows, "_detail": [""] * len(rows["id"])}, features)
            counts = dict(Counter(rows["_reason"]))
            nothing = Dataset.from_dict({"_parent": [], "_reason": []})
            stats = StageStats(name, 2, 0, quarantined=counts, reads="samples")
            watch.report_result(StageResult(lost, lost.select([]), lost, nothing, stats))
    assert [(str(loss), loss.reason) for loss in watch.collect_losses()] == [
        ("2 samples", "refused"),
        ("1 sample", "needs_model"),
    ]
