"""Judges and carried samples: kept outputs beside new ones, by today's judges, asked once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from echo_hf.config.evaluation import JudgeConfig
from echo_hf.engines.base import Request
from echo_hf.judging.judge import judge
from echo_hf.judging.ruler import measure_ruler
from echo_hf.judging.score import score
from echo_hf.judging.stopping import judge_until_decided
from echo_hf.report.evaluation import evaluate_systems
from echo_hf.systems.base import GenerationResult
from echo_hf.systems.evaluation_run import EvaluationRun
from echo_hf.systems.generate import generate
from echo_hf.tables import Outcome
from tests.judging.judges_for_tests import Row, ScriptedJudge, judge_of, prompt_of
from tests.systems.carried_for_tests import carrying, sharing
from tests.systems.runs_for_tests import Acting, drawn_for, known, png, system


def judged(run: EvaluationRun, *judges: Row) -> EvaluationRun:
    chosen = tuple(map(JudgeConfig.model_validate, judges or (judge_of(),)))
    config = run.config.model_copy(update={"judges": chosen})
    return EvaluationRun(config, run.folder)


def ratings_of(run: EvaluationRun) -> list[Row]:
    (part,) = run.parts
    return list(pq.read_table(part.folder.root / "ratings.parquet").to_pylist())


@pytest.fixture
def run(tmp_path: Path) -> EvaluationRun:
    opened = judged(carrying(tmp_path))
    with known(Acting()):
        generate(opened)
    return opened


def test_kept_and_new_outputs_are_rated_by_todays_judges_once(run: EvaluationRun) -> None:
    engine = ScriptedJudge().use()
    judge(run)
    rows = ratings_of(run)
    assert Counter(row["system"] for row in rows) == {"mine": 4, "past": 4}
    assert {(row["judge"], row["rating"], row["outcome"]) for row in rows} == {("mira", 7.0, "ok")}
    assert {row["split"] for row in rows} == {"text_to_image", "image_to_image"}
    # Both systems of these tests draw the same image of a prompt, so that one answer serves both.
    assert len(engine.asked) == 5 + 4
    judge(run)
    assert len(engine.asked) == 5 + 4


def test_each_judge_is_loaded_once_for_the_run_and_its_parts(
    run: EvaluationRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []

    def hear(name: str) -> ScriptedJudge:
        def says(request: Request) -> str:
            order.append(name)
            return "Rating: [[5]]"

        return ScriptedJudge(says, model=name)

    hear("first").use("first_judge")
    hear("second").use("second_judge")
    other = judged(run, judge_of("first", "first_judge"), judge_of("second", "second_judge"))
    judge(other)
    assert order == ["first"] * 9 + ["second"] * 9


def test_a_sample_of_the_benchmark_as_well_is_rated_once(tmp_path: Path) -> None:
    sharing(tmp_path)
    run, engine = judged(carrying(tmp_path, samples=50)), ScriptedJudge().use()
    with known(Acting()):
        generate(run)
    planned = sum(plan.plan.calls for plan in judge(run, dry_run=True).plans)
    judge(run)
    assert planned == len(engine.asked) == 3 + 9
    assert Counter(map(prompt_of, engine.asked))["o0"] == 1
    assert {row["sample_id"] for row in ratings_of(run)} >= {"o0"}


def test_a_plan_has_rows_for_parts(run: EvaluationRun) -> None:
    ScriptedJudge().use()
    plans = judge(run, dry_run=True).plans
    assert [(plan.about, plan.plan.calls) for plan in plans] == [
        ("overall", 5),
        ("overall carried from old", 4),
    ]


def test_a_budget_covers_parts_and_the_next_call_goes_on(run: EvaluationRun) -> None:
    """An answer costs a quarter of a dollar: six are five of the run and one of the part."""
    engine = ScriptedJudge().use()
    assert judge(run, budget_usd=1.5).spent
    assert len(engine.asked) < 9
    judge(run)
    assert len(engine.asked) == 9


def test_scores_are_as_without_carrying(run: EvaluationRun, tmp_path: Path) -> None:
    ScriptedJudge().use()
    judge(run)
    carried = score(run).path.read_bytes()
    plain = EvaluationRun(run.config.model_copy(update={"carry": ()}), run.folder)
    assert score(plain).path.read_bytes() == carried
    assert b"past" not in carried


def test_evaluating_in_one_call_plans_and_asks_parts(tmp_path: Path) -> None:
    run, engine = judged(carrying(tmp_path)), ScriptedJudge().use()
    with known(Acting()):
        plan = evaluate_systems(run, dry_run=True).plan
        assert [(work.who, work.about, work.todo) for work in plan] == [
            ("mine", "images", 5),
            ("mine", "images carried from old", 4),
            ("mira", "overall", 5),
            ("mira", "overall carried from old", 8),
        ]
        evaluate_systems(run)
        assert (len(engine.asked), len(ratings_of(run))) == (9, 8)
        assert not any(work.todo for work in evaluate_systems(run, dry_run=True).plan)


def test_the_rubric_of_boards_alone_is_asked_for(tmp_path: Path) -> None:
    run = judged(carrying(tmp_path), judge_of(rubrics=["overall", "text_rendering"]))
    ScriptedJudge().use()
    with known(Acting()):
        generate(run)
    judge(run)
    own = pq.read_table(run.folder.root / "ratings.parquet")["rubric"].to_pylist()
    assert {*own} == {"overall", "text_rendering"}
    assert {row["rubric"] for row in ratings_of(run)} == {"overall"}


def test_carried_samples_are_rated_whole_where_boards_stop_early(tmp_path: Path) -> None:
    run = judged(carrying(tmp_path, system("mine"), system("other")))
    ScriptedJudge().use()
    with known(Acting()):
        generate(run)
    judge_until_decided(run)
    rows = ratings_of(run)
    assert Counter(row["system"] for row in rows) == {"mine": 4, "other": 4, "past": 4}
    gathered = pq.read_table(run.folder.root / "carried" / "ratings.parquet")
    assert gathered.num_rows == 12


def test_the_tables_of_a_run_have_the_ratings_that_count(run: EvaluationRun) -> None:
    """A rating of an output in whose place the system drew another is none."""
    ScriptedJudge().use()
    judge(run)
    folder = run.folder.root / "carried"
    rows = pq.read_table(folder / "ratings.parquet").to_pylist()
    assert Counter(row["system"] for row in rows) == {"mine": 4, "past": 4}
    assert {row["release"] for row in rows} == {"old"}
    outputs = pq.read_table(folder / "outputs.parquet").to_pylist()
    samples = pq.read_table(folder / "samples.parquet").to_pylist()
    assert {row["id"] for row in samples} == {row["sample_id"] for row in outputs}
    again = Acting(lambda _: GenerationResult(Outcome.OK, png("new")), more={"steps": 50})
    with known(again):
        generate(run)
    rows = pq.read_table(folder / "ratings.parquet").to_pylist()
    assert Counter(row["system"] for row in rows) == {"past": 4}


def test_another_model_of_a_kept_name_is_planned_and_stands_beside_it(tmp_path: Path) -> None:
    run = judged(carrying(tmp_path, system("past", model="another-model-2"), samples=6))
    ScriptedJudge(lambda request: f"Rating: [[{len(prompt_of(request)) % 7 + 2}]]").use()
    with known(Acting()):
        planned = [work.todo for work in evaluate_systems(run, dry_run=True).plan]
        evaluate_systems(run)
    assert planned == [5, 10, 5, 20]
    assert len(ratings_of(run)) == 20
    scale = measure_ruler([run]).splits["text_to_image"]
    assert scale.strength.keys() == {"past", "past (old)"}
    assert scale.difference("past", "past (old)").samples == 6


def test_another_model_of_a_kept_name_is_rated_beside_it(tmp_path: Path) -> None:
    """Where the new one has no image, the old one's is not rated as its own."""
    run = judged(carrying(tmp_path, system("past", model="another-model-2")))
    failure = GenerationResult(Outcome.REFUSED)
    own = {task.sample_id for task in run.read_tasks().tasks}
    draws = Acting(lambda task: drawn_for(task) if task.sample_id in own else failure)
    with known(past=draws):
        generate(run)
    ScriptedJudge().use()
    judge(run)
    ratings = pq.read_table(run.folder.root / "carried" / "ratings.parquet").to_pylist()
    assert Counter(row["system"] for row in ratings if row["rating"]) == {"past (old)": 4}
