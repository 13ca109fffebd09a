"""The whole of an evaluation, against a judge that is a real server on loopback."""

from __future__ import annotations

import base64
import io
import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import datasets
import pyarrow.parquet as pq
import pytest
import yaml
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner, Result

import echo_hf
from echo_hf.cli import app
from echo_hf.cli.evaluation_view import show_evaluation_plan
from echo_hf.errors import ConfigError, EngineError, GenerationError, UnusableAnswersError
from echo_hf.report.evaluation import Evaluation, PlannedWork
from echo_hf.systems.base import GenerationResult, Task
from echo_hf.tables import Outcome
from tests.engines.openai.loopback_server import (
    Answer,
    Asked,
    LoopbackServer,
    completion,
    fault,
    running,
)
from tests.progress_for_tests import Heard
from tests.systems.runs_for_tests import Acting, benchmark, known, png

RED, BLUE = (200, 30, 30), (30, 30, 200)
TEXTS, EDITS = 10, 2
SPLITS = ("image_to_image", "text_to_image")
IDS = [*(f"e{number}" for number in range(EDITS)), *(f"t{number}" for number in range(TEXTS))]
# Of 1,000 tokens of a prompt and 100 of an answer: a call is a cent.
USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
PRICES = {"usd_per_million_prompt_tokens": 5.0, "usd_per_million_completion_tokens": 50.0}
CENT = 0.01


def by_color(asked: Asked) -> Answer:
    parts = asked.body["messages"][1]["content"]
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    with Image.open(io.BytesIO(base64.b64decode(urls[-1].partition(",")[2]))) as image:
        red, _, blue = image.convert("RGB").getpixel((1, 1))
    return completion(f"I looked at it. [[{9 if red > blue else 3}]]", usage=USAGE)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    with running() as loopback:
        loopback.behave = by_color
        yield loopback


OPENED = list[Counter[str]]()


def count_opened(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and OPENED and isinstance(arguments[0], str | Path):
        OPENED[-1][str(arguments[0])] += 1


@pytest.fixture(scope="module")
def hook() -> None:
    sys.addaudithook(count_opened)  # stays until the interpreter ends


@pytest.fixture
def opened(hook: None) -> Iterator[Counter[str]]:
    OPENED.append(Counter())
    yield OPENED[-1]
    OPENED.clear()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    benchmark(tmp_path, texts=TEXTS, edits=EDITS)
    for name, color in (("warm", RED), ("cold", BLUE)):
        (tmp_path / name).mkdir()
        for at, one in enumerate(IDS):
            other = RED if color == BLUE else BLUE
            red, _, blue = other if one == "t0" else color  # of one sample the other is the better
            image = Image.new("RGB", (16, 16), (red, 30 + at, blue))
            image.paste((90, 90, 90), (8, 8, 16, 16))
            image.save(tmp_path / name / f"{one}.png")
    return tmp_path


def system(name: str, **more: Any) -> dict[str, Any]:
    parameters = {"folder": name, "layout": "flat"}
    known = {"name": name, "adapter": "files", "developer": "Northlight", "status": "replay"}
    return {**known, "parameters": parameters, **more}


def judge_at(server: LoopbackServer, **engine: Any) -> dict[str, Any]:
    usual = {"kind": "openai", "model": "tiny", "base_url": server.url, "backoff_s": 0.001}
    known = {"name": "mira", "developer": "Northlight", "status": "current"}
    return {**known, "engine": {**usual, **PRICES, **engine}}


def config_of(folder: Path, judges: list[Any], *systems: dict[str, Any], **more: Any) -> Path:
    drawn = list(systems) or [system("warm"), system("cold")]
    known = {"name": "measured", "benchmark": "release", "systems": drawn, "judges": judges}
    path = folder / "comparison.yaml"
    path.write_text(yaml.safe_dump({**known, **more}), "utf-8")
    return path


def evaluated(config: Path, **more: Any) -> Evaluation:
    return echo_hf.evaluate_systems(config, **{"runs": config.parent / "runs", **more})


def test_a_board_figures_and_a_page_come_of_one_call(folder: Path, server: LoopbackServer) -> None:
    done = evaluated(config_of(folder, [judge_at(server)]))
    rates = {(row["split"], row["system"]): row["win_rate"] for row in done.board}
    assert rates == {
        ("image_to_image", "warm"): 1.0,
        ("image_to_image", "cold"): 0.0,
        ("text_to_image", "warm"): 0.9,
        ("text_to_image", "cold"): pytest.approx(0.1),
    }
    texts = [row for row in done.board if row["split"] == "text_to_image"]
    told = [(row["system"], row["tier"], row["coverage"]) for row in texts]
    assert told == [("warm", 1, 1.0), ("cold", 2, 1.0)]
    assert all(row["low"] <= row["win_rate"] <= row["high"] for row in texts)
    assert len(server.asked) == 2 * len(IDS)
    assert done.report == folder / "runs" / "measured" / "report" / "index.html"
    assert "warm" in done.report.read_text("utf-8")
    written = {
        (one["split"], one["system"], one["metric"]): one["value"]
        for one in json.loads(done.results.path.read_bytes())["results"]
        if one["metric"] != "win_rate" or one["protocol"] == "corrected"
    }
    for row in done.board:
        for name in ("win_rate", "color_shift"):
            assert row[name] == written.get((row["split"], row["system"], name))
    assert (done.spent, done.stopped) == (False, ())
    assert done.cost_usd == pytest.approx(2 * len(IDS) * CENT)


def test_a_benchmark_is_opened_once(
    folder: Path, server: LoopbackServer, opened: Counter[str]
) -> None:
    """As often as to load it, by what the interpreter says of each file that is opened."""
    config = config_of(folder, [judge_at(server)])
    files = set((folder / "release").rglob("*.parquet"))
    for split in SPLITS:
        echo_hf.load_benchmark(folder / "release", split)
    of_loading = {file.parent.name: opened.pop(str(file.resolve()), 0) for file in files}
    assert {name for name, count in of_loading.items() if count} == {*SPLITS}
    evaluated(config)
    assert {file.parent.name: opened[str(file.resolve())] for file in files} == of_loading


def test_a_judge_that_cannot_fit_is_refused_with_the_sum(folder: Path) -> None:
    """A dry run counts the estimate of working memory as well; a run only what is certain."""
    engine = {"kind": "vllm", "model": "Qwen/Qwen2.5-VL-32B-Instruct", "gpu_memory_gib": 79.1}
    judge = {"name": "mira", "developer": "Alibaba", "status": "current"}
    config = config_of(folder, [{**judge, "engine": {**engine, "max_model_len": 20_400}}])
    common = [str(config), "--runs", str(folder / "runs")]
    planned = CliRunner().invoke(app, ["eval", *common, "--dry-run"])
    assert CliRunner().invoke(app, ["generate", *common]).exit_code == 0
    for done in (planned, CliRunner().invoke(app, ["judge", *common, "--dry-run"])):
        assert isinstance(done.exception, EngineError)
        assert str(done.exception).startswith("engine 'mira' does not fit: weights 62.3 GiB + 1 ")
    config = config_of(folder, [{**judge, "engine": engine}])
    with pytest.raises(EngineError, match=r"1 request of 128,000 tokens 31\.2 GiB"):
        evaluated(config)


def test_the_same_call_asks_nothing_again(folder: Path, server: LoopbackServer) -> None:
    config = config_of(folder, [judge_at(server, concurrency=1)])
    server.behave = lambda asked: (
        by_color(asked) if len(server.asked) <= 5 else fault(401, "no more for now")
    )
    stopped = evaluated(config)
    assert "status 401" in stopped.stopped[0]
    failed = len(server.asked) - 5
    server.behave = by_color
    done = evaluated(config)
    assert len(server.asked) == 2 * len(IDS) + failed
    assert [one.todo for one in done.plan] == [0, 0, 2 * len(IDS) - 5]
    again = evaluated(config)
    assert len(server.asked) == 2 * len(IDS) + failed
    assert {(one.todo, one.cost_usd) for one in again.plan} == {(0, 0.0)}
    assert again.board.to_list() == done.board.to_list()
    assert again.cost_usd == 0


def test_whose_place_is_taken_is_said_before_and_after(
    folder: Path, server: LoopbackServer
) -> None:
    """Of a system and a judge, in the plan and on the board; answers without a rating are told."""
    server.behave = lambda _: completion("I would rather not say.", usage=USAGE)
    place = {"status": "substitute", "note": "The old one is gone."}
    systems = [system("warm", **place, stands_for="Old Warm"), system("cold")]
    judge = {**judge_at(server), **place, "stands_for": "Old Mira"}
    config, sink, heard = config_of(folder, [judge], *systems), io.StringIO(), Heard()
    done = evaluated(config, keep_going=True, watch=heard)
    assert [one.in_place_of for one in done.plan] == ["Old Warm", None, "Old Mira"]
    show_evaluation_plan(Console(file=sink, width=120), done.plan)
    assert "warm, in place of Old Warm" in sink.getvalue()
    assert "mira, in place of Old Mira" in sink.getvalue()
    expected = {"warm": "Old Warm", "cold": None}
    assert {row["system"]: row["in_place_of"] for row in done.board} == expected
    rows = pq.read_table(folder / "runs" / "measured" / "outputs.parquet").to_pylist()
    told = {row["system"]: json.loads(row["provenance"])["answered_by"] for row in rows}
    assert {name: one["stands_for"] for name, one in told.items()} == expected
    assert "mira, overall: 24 no_rating, of 24; --again asks for 24 of them anew" in heard.remarks


VAGUE = "It is a boat, maybe 7 out of 10"


def evaluated_by_command(config: Path, *options: str) -> Result:
    known = ["eval", str(config), "--runs", str(config.parent / "runs"), "--yes"]
    return CliRunner().invoke(app, [*known, *options], env={"COLUMNS": "200"})


def test_a_judge_that_never_rates_ends_the_evaluation(
    folder: Path, server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After ten answers, before another is asked; once it rates, those alone are asked anew."""
    server.behave = lambda _: completion(VAGUE, usage=USAGE)
    broken = judge_at(server, concurrency=1)
    config = config_of(folder, [broken, {**judge_at(server), "name": "dora"}])
    run = folder / "runs" / "measured"
    done = evaluated_by_command(config)
    said = str(done.exception)
    assert isinstance(done.exception, UnusableAnswersError)
    assert said.startswith(f"mira overall: none of 10 answers can be used, such as {VAGUE!r} (no_")
    assert "where a whole number from 1 to 10 as [[rating]] at the end is wanted" in said
    assert len(server.asked) == 10
    assert not (run / "results.json").exists()

    monkeypatch.setattr(server, "behave", by_color)
    config_of(folder, [broken])
    assert evaluated_by_command(config).exit_code == 0
    assert len(server.asked) == 24
    rated = pq.read_table(run / "ratings.parquet").to_pylist()
    assert sorted(row["outcome"] for row in rated) == ["no_rating"] * 10 + ["ok"] * 14
    assert evaluated_by_command(config).exit_code == 0
    assert len(server.asked) == 24
    vague = {body_of(one) for one in server.asked[:10]}
    assert evaluated_by_command(config, "--again").exit_code == 0
    assert {body_of(one) for one in server.asked[24:]} == vague
    assert len(server.asked) == 34
    rated = pq.read_table(run / "ratings.parquet").to_pylist()
    assert {row["outcome"] for row in rated} == {"ok"}
    assert evaluated_by_command(config, "--again").exit_code == 0
    assert len(server.asked) == 34


def body_of(asked: Asked) -> str:
    return json.dumps(asked.body, sort_keys=True)


def test_whoever_keeps_going_is_told_how_to_ask_again(folder: Path, server: LoopbackServer) -> None:
    server.behave = lambda _: completion(VAGUE, usage=USAGE)
    config = config_of(folder, [judge_at(server)])
    done = evaluated_by_command(config, "--keep-going")
    assert done.exit_code == 0
    assert "mira, overall: 24 no_rating, of 24; --again asks for 24 of them anew" in done.output
    asked = len(server.asked)
    again = evaluated_by_command(config)
    assert isinstance(again.exception, UnusableAnswersError)
    assert "none of 24 answers can be used" in str(again.exception)
    assert len(server.asked) == asked == 24


SECRET = "sk-trial-0123456789abcdef"  # noqa: S105 - invented


def test_a_trial_shows_a_request_and_its_answer_and_keeps_nothing(
    folder: Path, server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is kept of another run, one request is sent; a secret is not shown."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    config_of(folder, [judge_at(server)])
    saved = folder / "runs" / "measured" / "config.yaml"  # as whoever opens a run leaves it
    for verb in ("generate", "judge"):
        assert called(folder, verb).exit_code == 0
    before, asked = contents(folder / "runs"), len(server.asked)
    done = called(folder, "judge", "--try", "1")
    assert done.exit_code == 0
    sent = server.asked[asked:]
    assert len(sent) == 1
    system, user = sent[0].body["messages"]
    shown = done.output.splitlines()
    for said in (system["content"], *(one["text"] for one in user["content"] if "text" in one)):
        assert set(said.splitlines()) <= set(shown)
    image = (folder / "cold" / "e0.png").read_bytes()
    lines = [line for line in shown if line.startswith("[image: ")]
    assert len(lines) == sum(one["type"] == "image_url" for one in user["content"])
    assert f"[image: 16 x 16, {len(image)} bytes, sha256 {sha256(image).hexdigest()}]" in lines
    assert {"I looked at it. [[3]]", '{"rating": 3.0}'} <= set(shown)
    assert "1,000 tokens asked, 100 answered; " in shown[-1]
    assert shown[-1].endswith(" s; $0.010000")
    assert contents(folder / "runs") == before

    server.behave = lambda _: completion(f"Maybe 7 out of 10, said {SECRET}", usage=USAGE)
    free = dict.fromkeys(PRICES)
    config_of(folder, [judge_at(server, **free), {**judge_at(server), "name": "dora"}])
    done = called(folder, "judge", "--try", "3", "--json")
    trials = json.loads(done.stdout)["trials"]
    assert [one["who"] for one in trials] == ["mira overall", "mira overall", "dora overall"]
    assert len(server.asked) == asked + 4
    assert {one["answer"] for one in trials} == {"Maybe 7 out of 10, said [hidden]"}
    assert all(one["problem"].startswith("no_rating: ") for one in trials)
    assert [one["cost_usd"] for one in trials] == [None, None, CENT]
    assert SECRET not in done.output
    assert "no price known for tiny" in done.stderr
    after = contents(folder / "runs")
    assert {path for path in after if after[path] != before.get(path)} == {saved}


def called(folder: Path, verb: str, *options: str) -> Result:
    known = [verb, str(folder / "comparison.yaml"), "--runs", str(folder / "runs")]
    return CliRunner().invoke(app, [*known, *options], env={"COLUMNS": "200"})


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed")
def test_a_dry_run_counts_what_a_judge_would_be_asked_before_it_is_installed(folder: Path) -> None:
    engine = {"kind": "vllm", "model": "Qwen/Qwen2.5-VL-32B-Instruct"}
    known = {"name": "mira", "developer": "Alibaba", "status": "current"}
    config, heard = config_of(folder, [{**known, "engine": engine}]), Heard()
    done = evaluated(config, dry_run=True, watch=heard)
    (judge,) = (one for one in done.plan if one.who == "mira")
    assert (judge.todo, judge.stored) == (2 * len(IDS), 0)
    assert judge.expected.seconds is not None
    assert any("judge 'mira': engine 'vllm' needs" in said for said in heard.remarks)


def test_a_dry_run_asks_and_writes_nothing(folder: Path, server: LoopbackServer) -> None:
    config = config_of(folder, [judge_at(server)])
    before = sorted(path for path in folder.rglob("*") if "cache" not in path.parts)
    heard, plans = Heard(), list[Any]()

    def refuse(plan: tuple[PlannedWork, ...]) -> None:
        plans.append(plan)
        raise InterruptedError

    with pytest.raises(InterruptedError):  # whatever `before` raises ends the call
        evaluated(config, before=refuse)
    given: dict[str, Any] = {"dry_run": True, "budget_usd": 0.1, "watch": heard}
    done = evaluated(config, **given)
    assert plans == [done.plan]
    # A cent for each of 24 ratings, and a dime to spend.
    assert any("the budget of $0.10 ends it before" in said for said in heard.remarks)
    assert (len(done.board), done.results, done.report, server.asked) == (0, None, None, [])
    assert sorted(path for path in folder.rglob("*") if "cache" not in path.parts) == before
    assert [(one.who, one.about, one.todo, one.stored) for one in done.plan] == [
        ("warm", "images", len(IDS), 0),
        ("cold", "images", len(IDS), 0),
        ("mira", "overall", 2 * len(IDS), 0),
    ]
    assert [one.cost_usd for one in done.plan[:2]] == [0.0, 0.0]
    assert done.plan[2].cost_usd
    evaluated(config, systems=["warm"], limit=3)
    assert len(server.asked) == EDITS + 3
    left = evaluated(config, dry_run=True).plan
    assert [(one.todo, one.stored) for one in left] == [
        (TEXTS - 3, EDITS + 3),
        (len(IDS), 0),
        (2 * len(IDS) - EDITS - 3, EDITS + 3),
    ]


def test_a_budget_ends_judging_and_the_next_call_goes_on(
    folder: Path, server: LoopbackServer
) -> None:
    config = config_of(folder, [judge_at(server, concurrency=1)])
    done = evaluated(config, budget_usd=4 * CENT)
    assert (len(server.asked), done.spent) == (4, True)
    assert done.report.is_file()
    # A free judge rates without a dollar.
    config = config_of(folder, [judge_at(server, **dict.fromkeys(PRICES, 0.0))])
    done = evaluated(config, budget_usd=0.0)
    assert (len(server.asked), done.spent) == (2 * len(IDS), False)


@pytest.mark.parametrize("stated", [pytest.param(0.5, marks=pytest.mark.slow), None])
def test_what_images_cost_is_taken_off_the_budget(
    folder: Path, server: LoopbackServer, stated: float | None
) -> None:
    """Images of half a dollar: two of them leave nothing to judge with, and more is never drawn."""

    def draw(task: Task) -> GenerationResult:
        return GenerationResult(Outcome.OK, png(task.prompt), cost_usd=stated)

    paid = {**system("mine", adapter="acting", parameters={}), "limits": {"concurrency": 1}}
    priced = {**paid, "price": {"usd_per_image": 0.5, "as_of": "2026-03-02"}}
    one = Acting(draw)
    with known(one):
        config = config_of(folder, [judge_at(server, concurrency=1)], priced)
        done = evaluated(config, budget_usd=1.0)
        assert (len(one.asked), server.asked, done.spent) == (2, [], True)
        assert done.cost_usd == 1.0
        part = evaluated(config, budget_usd=1 + 1.5 * CENT, limit=2)
        assert (len(one.asked), len(server.asked), part.spent) == (4, 2, True)


def test_a_budget_needs_prices_before_anything_is_asked(
    folder: Path, server: LoopbackServer
) -> None:
    one = Acting()
    config = config_of(folder, [judge_at(server)], system("mine", adapter="acting", parameters={}))
    with known(one), pytest.raises(GenerationError, match="'mine' has no known p"):
        evaluated(config, budget_usd=1)
    assert (server.asked, one.asked) == ([], [])


def test_without_a_judge_the_metrics_are_computed(folder: Path) -> None:
    heard = Heard()
    done = evaluated(config_of(folder, []), watch=heard)
    assert {row["win_rate"] for row in done.board} == {None}
    assert {row["system"] for row in done.board} == {"warm", "cold"}
    assert any("no judge is named" in remark for remark in heard.remarks)
    with pytest.raises(ConfigError, match="names no judges"):
        evaluated(config_of(folder, []), judges=["mira"])


def test_a_system_that_cannot_run_does_not_stop_the_others(
    folder: Path, server: LoopbackServer
) -> None:
    wrong = system("off", parameters={"folder": "warm", "layout": "autoeval"})
    config = config_of(folder, [judge_at(server)], wrong, system("warm"), system("cold"))
    done = evaluated(config)
    (said,) = done.stopped
    assert "system 'off': no file 'SPLIT/off/ID.png'" in said
    rates = {row["system"]: row["win_rate"] for row in done.board}
    assert (rates["warm"], rates["cold"]) == (0.9, pytest.approx(0.1))
    told = ran(config_of(folder, [], wrong, system("warm")), "--json")
    assert isinstance(told.exception, GenerationError)  # after the board
    assert json.loads(told.stdout)["board"]
    alone = config_of(folder, [judge_at(server)], wrong)
    with pytest.raises(GenerationError, match="system 'off'"):
        evaluated(alone, runs=folder / "other")


def test_metrics_are_asked_about_before_text_is_rated(folder: Path, server: LoopbackServer) -> None:
    judge = {**judge_at(server), "rubrics": ["overall", "text_rendering"]}

    def behave(asked: Asked) -> Answer:
        if "response_format" in asked.body:
            names = asked.body["response_format"]["json_schema"]["schema"]["properties"]
            first = "t0" in str(asked.body["messages"][1])
            flags = {name: int(first) for name in names if name != "rationale"}
            return completion(json.dumps({**flags, "rationale": "So."}), usage=USAGE)
        return by_color(asked)

    server.behave = behave
    config = config_of(folder, [judge], applicability={"engine": judge["engine"]})
    done = evaluated(config)
    texts = [row for row in done.board if row["split"] == "text_to_image"]
    rated = {row["system"]: row["text_rendering"] for row in texts}
    assert rated == {"warm": 0.3, "cold": 0.9}  # on a scale of 0 to 1
    assert len(server.asked) == len(IDS) + 2 * len(IDS) + 2
    plan = ["applicability applicability", "mira overall", "mira text_rendering"]
    assert [f"{one.who} {one.about}" for one in done.plan[2:]] == plan


@pytest.mark.parametrize(("budget", "share"), [(None, 1.0), (100.0, 0.1)])
def test_where_pairs_are_the_board_judges_choose_before_they_rate(
    folder: Path, server: LoopbackServer, budget: float | None, share: float
) -> None:
    """Evenly by their share without a budget; with one of all pairs, as long as it lasts."""
    asked = list[str]()

    def behave(request: Asked) -> Answer:
        is_choice = "<second>" in json.dumps(request.body["messages"][1])
        asked.append("choice" if is_choice else "rating")
        if not is_choice:
            return by_color(request)
        choice = ("first", "second", "tie")[len(asked) % 3]
        return completion(f"I looked at both. [[{choice}]]", usage=USAGE)

    server.behave = behave
    judge = {**judge_at(server, concurrency=1), "pairwise": {"share": share}}
    done = evaluated(config_of(folder, [judge], board="pairwise"), budget_usd=budget)
    assert asked == ["choice"] * 2 * len(IDS) + ["rating"] * 2 * len(IDS)
    plan = {f"{work.who} {work.about}": (work.todo, work.at_most) for work in done.plan}
    assert plan["mira pairwise"] == (2 * len(IDS), True)
    assert plan["mira overall"][0] == 2 * len(IDS)
    texts = {row["system"]: row for row in done.board if row["split"] == "text_to_image"}
    assert done.results is not None
    written = {
        (row.split, row.system): row.value
        for row in done.results.results
        if row.metric == "choice_strength"
    }
    for system, row in texts.items():
        assert row["choice_strength"] == written["text_to_image", system]
        assert row["choice_tier"] == 1  # ten samples decide nothing


RATING_FILE = """---
form: rating
answer: 'Rating: (?P<rating>[0-9]+)'
scale: [1, 10]
---
{task}{output}
Rate it.
"""


def by_request(request: Asked) -> Answer:
    """Choose the first of two outputs; rate an output alone by its color."""
    if "<second>" in json.dumps(request.body["messages"]):
        return completion("I looked at both. [[first]]", usage=USAGE)
    return completion("Rating: 7", usage=USAGE)


@pytest.mark.parametrize("budget", [None, 100.0])
def test_judges_that_only_compare_are_a_board_from_pairs(
    folder: Path, server: LoopbackServer, budget: float | None
) -> None:
    server.behave = by_request
    chooser = {**judge_at(server), "form": "choice", "pairwise": {"share": 1}}
    done = evaluated(config_of(folder, [chooser], board="pairwise"), budget_usd=budget)
    assert done.stopped == ()
    asked = {(work.who, work.about) for work in done.plan}
    assert {work for work in asked if work[0] == "mira"} == {("mira", "pairwise")}
    assert len(server.asked) == 2 * len(IDS)
    assert {row["win_rate"] for row in done.board} == {None}
    assert {row["choice_tier"] for row in done.board if row["split"] == "text_to_image"} == {1}


def test_each_judge_is_asked_what_its_form_can_do(folder: Path, server: LoopbackServer) -> None:
    """One that only compares beside one that only rates."""
    server.behave = by_request
    (folder / "rater.md").write_text(RATING_FILE, "utf-8")
    chooser = {**judge_at(server), "form": "choice", "pairwise": {"share": 1}}
    rater = {**judge_at(server), "name": "nils", "judge_file": "rater.md"}
    config = config_of(folder, [chooser, rater], board="pairwise", protocol="corrected")
    done = evaluated(config)
    assert done.stopped == ()
    plan = {(work.who, work.about): work.todo for work in done.plan}
    assert {work: todo for work, todo in plan.items() if work[0] in ("mira", "nils")} == {
        ("mira", "pairwise"): 2 * len(IDS),
        ("nils", "overall"): 2 * len(IDS),
    }
    assert len(server.asked) == 4 * len(IDS)
    with pytest.raises(ConfigError, match=r"'nils' .* compares no two outputs"):
        evaluated(config, judges=["nils"])


def ran(config: Path, *options: str) -> Any:
    runs = str(config.parent / "runs")
    return CliRunner().invoke(app, ["eval", str(config), "--runs", runs, *options])


def test_a_script_says_yes_to_costs(folder: Path, server: LoopbackServer) -> None:
    config = config_of(folder, [judge_at(server)])
    asked = ran(config)
    assert isinstance(asked.exception, ConfigError)
    assert "add --yes" in str(asked.exception)
    assert "mira" in asked.output
    assert (server.asked, (folder / "runs").exists()) == ([], False)
    page = folder / "runs" / "measured" / "report" / "index.html"
    done = ran(config, "--yes", "--json")
    found = json.loads(done.stdout)  # one object: everything else goes to standard error
    assert found["board"][0] | {"system": "warm", "win_rate": 1.0} == found["board"][0]
    assert found["cost_usd"] == pytest.approx(2 * len(IDS) * CENT)
    assert Path(found["report"]) == page
    assert "judged by mira" in done.stderr
    assert "judge mira" in (folder / "runs" / "measured" / "echo-hf.log").read_text("utf-8")
    again = ran(config)  # all of it is stored
    assert again.exit_code == 0, again.output
    for words in (
        "judged by mira",
        "warm             1.000     -     -          0.900",
        f"report: {page}",
    ):
        assert words in " ".join(again.output.splitlines()), again.output


def test_of_a_judge_with_a_share_the_part_is_planned_asked_and_scored(
    folder: Path, server: LoopbackServer
) -> None:
    for name, color in (("warm", RED), ("cold", BLUE)):
        for at in range(TEXTS, 20):
            Image.new("RGB", (16, 16), (color[0], 30 + at, color[2])).save(
                folder / name / f"t{at}.png"
            )
    shutil.rmtree(folder / "release")
    benchmark(folder, texts=20, edits=EDITS)
    some = {**judge_at(server, model="large"), "name": "nora", "share": 0.5}
    config = config_of(folder, [judge_at(server), some])
    *_, whole, part = evaluated(config, dry_run=True).plan
    assert (whole.todo, part.todo) == (2 * (20 + EDITS), 2 * (10 + EDITS))
    done = evaluated(config)
    assert len(server.asked) == whole.todo + part.todo
    (rates,) = [one.win_rates.rates for one in done.results.splits[1:] if one.win_rates]
    assert (rates.definition["samples"], rates.definition["voted"]) == (20, 10)
    assert [row["coverage"] for row in done.board if row["split"] == "text_to_image"] == [1, 1]
