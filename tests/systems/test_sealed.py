"""Systems and judges see sealed samples; nothing that is passed on does."""

from __future__ import annotations

import io
import logging
import re
import shutil
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from echo_hf.builder.build import build
from echo_hf.builder.takedown import forget
from echo_hf.cli.progress import TerminalProgress
from echo_hf.config.evaluation import CarriedRelease, EvaluationConfig, JudgeConfig
from echo_hf.engines.base import Completion, Request
from echo_hf.errors import ConfigError, EchoError, EngineError, GenerationError, ReleaseError
from echo_hf.hub.release import read_release
from echo_hf.hub.sealed import SealedSamples
from echo_hf.judging.complaints import read_complaints
from echo_hf.judging.judge import judge
from echo_hf.pipeline.progress import ProgressListener
from echo_hf.report.evaluation import evaluate_systems
from echo_hf.report.export import export
from echo_hf.systems.base import GenerationResult, Task, TransientError, failure_result
from echo_hf.systems.evaluation_run import EvaluationRun
from echo_hf.systems.generate import generate
from echo_hf.tables import Outcome
from tests.judging.judges_for_tests import ScriptedJudge, judge_of, prompt_of
from tests.recorded_as_model import RecordedAsModel
from tests.sealed_for_tests import (
    PRIVATE,
    built,
    holding,
    released,
    run_of,
    sealed_rows,
    set_key,
    words_of,
)
from tests.systems.runs_for_tests import Acting, known, png, system

FILES = ("outputs", "ratings")


def telling(task: Task) -> GenerationResult:
    """A system that repeats what it was asked, wherever it can."""
    words = {"text": task.prompt, "revised_prompt": task.prompt, "code": task.sample_id}
    return GenerationResult(Outcome.OK, png(task.prompt), cost_usd=0.5, **words)


def open_run(folder: Path) -> EvaluationRun:
    run = EvaluationRun.from_config(folder / "config.yaml", folder / "runs")
    judges = (JudgeConfig.model_validate(judge_of()),)
    systems = (system("mine"), system("yours"))
    return EvaluationRun(
        run.config.model_copy(update={"judges": judges, "systems": systems}), run.folder
    )


@pytest.fixture(scope="module")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    set_key(folder)
    built(folder)
    return folder


@pytest.fixture
def folder(built_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built_once, tmp_path / "lab"))


@pytest.fixture(name="judge")
def rating_judge() -> ScriptedJudge:
    def says(request: Request) -> str:
        return f"{prompt_of(request)}: that is it. Rating: [[7]]"

    return ScriptedJudge(says).use()


@pytest.fixture
def acting() -> Iterator[dict[str, Acting]]:
    systems = {name: Acting(telling, more={"name": name}) for name in ("mine", "yours")}
    with ExitStack() as stack:
        stack.enter_context(known(**systems))
        yield systems


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    return list(pq.read_table(folder / f"{name}.parquet").to_pylist())


def test_what_is_drawn_and_rated_of_them_stays_with_them(
    folder: Path, acting: dict[str, Acting], judge: ScriptedJudge, caplog: pytest.LogCaptureFixture
) -> None:
    run, sealed, public = run_of(folder), sealed_rows(folder), released(run_of(folder) / "release")
    benchmark = {row["id"] for row in public.values() if row["quality"] == "Benchmark"}
    with caplog.at_level(logging.DEBUG):
        evaluate_systems(open_run(folder))
    assert sealed.keys() <= {*acting["mine"].asked} <= sealed.keys() | benchmark
    for name in FILES:
        assert {row["sample_id"] for row in read(run / "sealed", name)} == sealed.keys()
        assert {row["sample_id"] for row in read(run, name)}.isdisjoint(sealed)
    build(folder / "config.yaml", runs=folder / "runs", with_responses=True)
    for form in ("csv", "lmms-eval"):
        export(open_run(folder), folder / "exported" / form, to=form)
    words = {word for row in sealed.values() for word in words_of(row)}
    words |= {png(row["prompt"]) for row in sealed.values()}
    assert holding(words, run / "sealed" / "outputs.parquet")
    beside = [path for path in run.iterdir() if path.name not in {*PRIVATE, "release"}]
    names = {path.name for path in beside}
    assert names >= {"report", "results.json", "outputs.parquet", "ratings.parquet", "outputs"}
    assert holding(words, run / "release", *beside, folder / "exported") == set()
    logged = [record.getMessage() for record in caplog.records]
    assert [line for line in logged if any(name in line for name in sealed)] == []
    # The images and answers of both parts lie apart.
    stored = {path.name for path in (run / "pictures").glob("*/*")}
    drawn = {row["image"] for row in read(run / "sealed", "outputs")}
    own = {row["image"] for row in read(run, "outputs")}
    assert (drawn - own).isdisjoint(stored)
    private = read_release(run / "sealed" / "release").manifest.configs
    assert {name: private[name].rows for name in FILES} == dict.fromkeys(FILES, 2 * len(sealed))


def test_complaints_and_their_evidence_are_of_public_samples(folder: Path) -> None:
    run = open_run(folder)
    told = read_complaints(run.benchmark, run.folder)
    assert told.samples
    assert {sample.sample_id for sample in told.samples}.isdisjoint(sealed_rows(folder))


def test_their_cost_is_planned_apart(
    folder: Path, acting: dict[str, Acting], judge: ScriptedJudge
) -> None:
    plans = generate(open_run(folder), dry_run=True).plans
    todo = {(plan.system, plan.part): len(plan.todo) for plan in plans}
    count = len(sealed_rows(folder))
    assert {key: todo[key] for key in todo if key[1]} == {
        ("mine", "sealed"): count,
        ("yours", "sealed"): count,
    }


def test_nobody_is_asked_again_for_what_was_revealed(
    folder: Path, acting: dict[str, Acting], judge: ScriptedJudge
) -> None:
    run, sealed = run_of(folder), sealed_rows(folder)
    evaluate_systems(open_run(folder))
    asked = len(acting["mine"].asked), len(judge.asked)
    manifest = read_release(run / "release").manifest
    assert manifest.sealed
    SealedSamples(open_run(folder).folder).reveal("v1", manifest.sealed.root)
    evaluate_systems(open_run(folder))
    assert (len(acting["mine"].asked), len(judge.asked)) == asked
    for name in FILES:
        assert {row["sample_id"] for row in read(run, name)} >= sealed.keys()
    assert open_run(folder).sealed is None


def test_what_was_revealed_is_planned_as_it_is_drawn(
    folder: Path, acting: dict[str, Acting], judge: ScriptedJudge
) -> None:
    """`mine` has drawn some of them while they were sealed, and `yours` none."""
    generate(open_run(folder), systems=["mine"], limit=2)
    drawn = len(acting["mine"].asked)
    manifest = read_release(run_of(folder) / "release").manifest
    assert manifest.sealed
    SealedSamples(open_run(folder).folder).reveal("v1", manifest.sealed.root)
    plans = generate(open_run(folder), dry_run=True).plans
    assert not (run_of(folder) / "outputs" / "yours.jsonl").exists()
    for one in acting.values():
        one.asked.clear()
    generate(open_run(folder))
    planned = {plan.system: len(plan.todo) for plan in plans}
    assert planned == {name: len(one.asked) for name, one in acting.items()}
    assert drawn > 2
    assert planned["yours"] == planned["mine"] + drawn


def test_a_forgotten_post_takes_outputs_and_ratings_of_its_sealed_sample_along(
    folder: Path, acting: dict[str, Acting], judge: ScriptedJudge
) -> None:
    run, sealed = run_of(folder), sealed_rows(folder)
    evaluate_systems(open_run(folder))
    name, row = next(iter(sealed.items()))
    removal = forget(row["post_urls"][:1], folder / "config.yaml", runs=folder / "runs")
    assert name in removal.samples
    assert holding({name.encode(), png(row["prompt"])}, run) == set()
    RecordedAsModel().use()
    build(folder / "config.yaml", runs=folder / "runs")
    assert {row["sample_id"] for row in read(run / "sealed", "outputs")} == (
        sealed.keys() - {*removal.samples}
    )


def test_no_other_run_takes_them(folder: Path, acting: dict[str, Acting]) -> None:
    """Neither as its benchmark nor as samples that it carries along into its own release."""
    private, open_release = (str(run_of(folder) / place) for place in ("sealed/release", "release"))
    taking = EvaluationConfig(name="taking", benchmark=private, systems=(system("mine"),))
    carrying = taking.model_copy(
        update={"benchmark": open_release, "carry": (CarriedRelease(release=private),)}
    )
    for config in (taking, carrying):
        with pytest.raises((ConfigError, ReleaseError), match="holds sealed samples") as refused:
            generate(config, runs=folder / "others")
        assert "\n" not in str(refused.value)
    assert not any((folder / "others").rglob("*.parquet"))
    assert acting["mine"].asked == []


def said_of(
    act: Callable[[ProgressListener], object], caplog: pytest.LogCaptureFixture
) -> tuple[str, str]:
    """What a verb shows, logs and raises; and what it raises alone."""
    out, raised, caplog.records[:] = io.StringIO(), "", []
    with caplog.at_level(logging.DEBUG):
        try:
            act(TerminalProgress(Console(file=out, width=10_000)))
        except EchoError as error:
            raised = "".join(traceback.format_exception(error, chain=True))
    logged = [logging.Formatter().format(record) for record in caplog.records]
    return "\n".join([out.getvalue(), raised, *logged]), raised


def held_in(text: str, rows: dict[str, dict[str, Any]]) -> set[bytes]:
    return {word for row in rows.values() for word in words_of(row) if word in text.encode()}


@pytest.mark.parametrize("failure", ["answer", "raised", "busy"])
def test_a_failing_system_says_nothing_of_them(
    folder: Path, caplog: pytest.LogCaptureFixture, failure: str
) -> None:
    sealed = sealed_rows(folder)

    def act(task: Task) -> GenerationResult:
        if task.sample_id not in sealed:
            return telling(task)
        said = f"no image of {task.sample_id}: {task.prompt}"
        if failure == "raised":
            raise GenerationError(said)
        if failure == "busy":
            raise TransientError(said, task.sample_id, wait_s=0.0)
        return failure_result(said, "bad_prompt")

    run = open_run(folder)
    systems = (system("mine", limits={"attempts": 2}),)
    run = EvaluationRun(run.config.model_copy(update={"systems": systems}), run.folder)
    with known(mine=Acting(act)):
        text, raised = said_of(lambda watch: generate(run, watch=watch), caplog)
    assert held_in(text, sealed) == set()
    assert "'mine (sealed)'" in raised
    assert ("gave up (GenerationError)" if failure == "raised" else "failed, the last") in raised
    if failure == "answer":
        assert re.search(r"mine \(sealed\): \d+ failed, bad_prompt\n", text)
    assert failure != "busy" or "not shown" in text


@pytest.mark.parametrize("failure", ["answer", "error", "raised"])
def test_a_failing_judge_says_nothing_of_them(
    folder: Path, acting: dict[str, Acting], caplog: pytest.LogCaptureFixture, failure: str
) -> None:
    sealed = sealed_rows(folder)
    prompts = {row["prompt"] for row in sealed.values()}
    generate(open_run(folder))

    def says(request: Request) -> Completion | str:
        prompt = prompt_of(request)
        if prompt not in prompts:
            return "Rating: [[7]]"
        if failure == "raised":
            raise EngineError(f"400: {prompt}")
        return prompt if failure == "answer" else Completion(None, prompt, "error")

    ScriptedJudge(says).use()
    for keep_going in (True, False):
        ask = partial(judge, open_run(folder), keep_going=keep_going)
        text, raised = said_of(lambda watch, ask=ask: ask(watch=watch), caplog)  # type: ignore[misc]
        assert held_in(text, sealed) == set()
        assert "sealed" in raised or (keep_going and failure != "raised")
        assert "mira overall sealed" in text
