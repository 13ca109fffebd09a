"""The whole of an evaluation: generate, judge, score and report, after one estimate of its cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import pyarrow as pa
from datasets import Dataset

from echo_hf._infra.summary import Summarized
from echo_hf.config.checks import EngineChoice
from echo_hf.config.evaluation import Evaluated, ImageSize, JudgeConfig
from echo_hf.engines.base import ImageRef, check_installed
from echo_hf.engines.memory import check_fit
from echo_hf.engines.planner import Expected
from echo_hf.errors import GenerationError, JudgeError
from echo_hf.judging import session
from echo_hf.judging.judge import APPLICABILITY as FITTING
from echo_hf.judging.judge import (
    RUBRICS,
    SentImages,
    chosen_judges,
    fitting_question,
    rated_outputs,
    rating_questions,
)
from echo_hf.judging.rate import ToRate, outputs_to_rate
from echo_hf.judging.run_tables import read_applicability, read_table
from echo_hf.judging.score import Scores, score
from echo_hf.judging.session import Asking, JudgeTask, JudgingResult
from echo_hf.metrics import METRICS
from echo_hf.pipeline.progress import NullProgress, ProgressListener
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.pipeline.runs import run_folder
from echo_hf.reasons import Outcome, unusable_in
from echo_hf.report.report import report
from echo_hf.scores.win_rate import make_board
from echo_hf.systems.base import Task
from echo_hf.systems.benchmark import Tasks, benchmark_of, evaluation_folder, load_evaluation
from echo_hf.systems.generate import Generated, drawn_outputs
from echo_hf.tables import OUTPUTS

NUMBERS = ("win_rate", "low", "high", "coverage", *METRICS)
TEXTS = {"split": pa.string(), "system": pa.string(), "in_place_of": pa.string()}
BOARD = pa.schema({**TEXTS, "tier": pa.int64(), **dict.fromkeys(NUMBERS, pa.float64())})


@dataclass(frozen=True)
class PlannedWork:
    """What one system or judge is about to be asked.

    Attributes:
        who: The system or judge.
        about: What for: `images`, a rubric, or `applicability`.
        todo: Calls to make; of judges also about images that are yet to be drawn.
        at_most: Whether it may become fewer: of equal images, drawn or not, one is asked about.
        stored: What is there already, and not asked again.
        expected: What the calls are expected to cost and how long they take, with what that
            rests on: three numbers are the least, the likely and the most.
        in_place_of: What of the paper it stands in for; null where it is what it is called.
    """

    who: str
    about: str
    todo: int
    stored: int
    expected: Expected
    in_place_of: str | None = None
    at_most: bool = False

    @property
    def cost_usd(self) -> float | None:
        """About what the calls cost, in US dollars; null where no price is known."""
        return self.expected.cost_usd


@dataclass(frozen=True, repr=False)
class Evaluation(Summarized):
    """What an evaluation came to.

    Attributes:
        board: A row for each split and system: `win_rate` with `low` and `high`, the ends of its
            95 % interval, `tier`, `coverage`, and the value of each metric; null where it has none.
        results: All figures, as `echo-hf score` writes them; null after a dry run.
        report: The page, `index.html`; null after a dry run.
        plan: What was to be asked when it began, a part for each system, judge and rubric.
        cost_usd: What this call cost in US dollars, as far as it is known.
        spent: Whether the budget ended it before all was asked.
        stopped: What stopped a system or a judge, a line each; the others went on.
    """

    board: Dataset
    results: Scores | None
    report: Path | None
    plan: tuple[PlannedWork, ...]
    cost_usd: float = 0.0
    spent: bool = False
    stopped: tuple[str, ...] = ()

    def _rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.board.with_format(None).to_list()
        return rows


def evaluate_systems(
    config: Evaluated | Path | str,
    *,
    runs: Path | str | None = None,
    systems: Sequence[str] | None = None,
    judges: Sequence[str] | None = None,
    limit: int | None = None,
    budget_usd: float | None = None,
    dry_run: bool = False,
    again: bool = False,
    keep_going: bool = False,
    before: Callable[[tuple[PlannedWork, ...]], None] | None = None,
    watch: ProgressListener | None = None,
) -> Evaluation:
    """Has systems draw a benchmark and judges rate what they drew, scores it, and writes a report.

    What a run holds is not asked for again: the same call goes on after a stop. Without a judge,
    the metrics are computed alone. A system or judge that stops does not stop the others.

    Args:
        config: The YAML file that names systems and a benchmark or posts, or what it holds.
        runs: Folder of runs; this one is named by its config. Null for ECHO_HF_RUNS, the config's
            `runs`, or `runs` beside its file.
        systems: Names of those that draw; null for all. Judges rate whatever the run holds.
        judges: Names of those that are asked; null for all.
        limit: Most samples of each split, the first of its random order; null for all.
        budget_usd: US dollars after which neither systems nor judges are asked any more; what is
            under way then is waited for. Null for no limit.
        dry_run: Only plan: nobody is asked, and no table changes.
        again: Judges are asked again where their stored answer cannot be used, and systems where
            no image came.
        keep_going: A judge is asked on where none of its answers can be used.
        before: Is given the plan before anybody is asked; what it raises ends the call.
        watch: Is told of progress.

    Returns:
        Board, figures, report, and what was planned.

    Raises:
        ConfigError: The config cannot be used, or does not name the systems or judges.
        EngineError: A judge's model does not fit on the GPU that is here, or that its engine names.
        GenerationError: No system could draw; or one has no known price, and there is a budget.
        JudgeError: A judge has no known price, and there is a budget; or it is no model.
        UnusableAnswersError: None of a judge's answers can be used, and it is not to keep going.
        MissingExtraError: Packages of a judge are missing.
    """
    config = load_evaluation(config)
    chosen = chosen_judges(config, judges) if config.judges or judges else []
    watch, engines = watch or NullProgress(), _engines(config, chosen)
    check_fit(engines, estimates=dry_run)
    drawing: Any = {"budget_usd": budget_usd, "again": again}
    made = drawn_outputs(config, runs, systems, limit, dry_run=True, **drawing)
    root, limits = run_folder(config, runs).root, (limit, budget_usd)
    plan = _planned(config, root, made, chosen, *limits, watch, again=again)
    for said in made.stopped:
        watch.noticed(said)
    if not chosen:
        watch.noticed("no judge is named: metrics alone; win rates need one under `judges`")
    about = sum(one.cost_usd or 0.0 for one in plan)
    if budget_usd is not None and about > budget_usd:
        watch.noticed(
            f"all of it costs about ${about:.2f}, the budget of ${budget_usd:.2f} ends it before: "
            "a limit asks for fewer samples of everybody"
        )
    if before is not None:
        before(plan)
    if dry_run:
        return Evaluation(Dataset(BOARD.empty_table()), None, None, plan, stopped=made.stopped)
    for who, engine in engines.items() if config.runner.kind == "local" else ():
        check_installed(engine.kind, f"judge {who!r}")  # before anything is spent
    made = drawn_outputs(config, runs, systems, limit, **drawing, watch=watch)
    if made.stopped and not any(counts.get(Outcome.OK) for counts in made.outcomes.values()):
        raise GenerationError("; ".join(made.stopped))
    for name, counts in made.outcomes.items():
        if empty := counts.get(Outcome.NO_IMAGE, 0):
            watch.noticed(f"{name}: {empty:,} no_image; --again asks anew")
    cost_usd, spent, stopped = made.cost_usd or 0.0, made.spent, [*made.stopped]
    if engines:
        left = None if budget_usd is None else max(budget_usd - cost_usd, 0.0)
        folder = evaluation_folder(config, runs)
        how: Any = {"again": again, "keep_going": keep_going}
        with session.asking_in(folder, engines, left, watch, config.runner, **how) as asking:
            for done in _judged(asking, config, chosen, limit):
                if isinstance(done, JudgeError):
                    stopped.append(str(done))
                    continue
                spent |= done.spent
                for one in done.answered:
                    others = {name: n for name, n in one.outcomes.items() if name != Outcome.OK}
                    if others:
                        told = ", ".join(f"{n:,} {name}" for name, n in sorted(others.items()))
                        asked = sum(one.outcomes.values())
                        told = f"{one.who}, {one.rubric}: {told}, of {asked:,}"
                        if anew := unusable_in(one.outcomes):
                            told += f"; --again asks for {anew:,} of them anew"
                        watch.noticed(told)
        cost_usd += asking.spent_usd
    scores = score(config, runs=runs)
    page, board = report(config, runs=runs).path, _board(scores)
    return Evaluation(board, scores, page, plan, cost_usd, spent, tuple(stopped))


def _engines(config: Evaluated, judges: Sequence[JudgeConfig]) -> dict[str, EngineChoice]:
    """Who answers for each judge, and for what is asked of which metrics fit."""
    asked = {FITTING: config.applicability.engine} if config.applicability else {}
    return {**asked, **{one.name: one.engine for one in judges}}


def _planned(
    config: Evaluated,
    root: Path,
    made: Generated,
    judges: Sequence[JudgeConfig],
    limit: int | None,
    budget_usd: float | None,
    watch: ProgressListener,
    *,
    again: bool,
) -> tuple[PlannedWork, ...]:
    places = {one.name: one.answered_by.in_place_of for one in config.systems}
    planned = [
        PlannedWork(
            one.system, "images", len(one.todo), one.stored, one.expected, places.get(one.system)
        )
        for one in made.plans
    ]
    if not (engines := _engines(config, judges)):
        return tuple(planned)
    places = {one.name: one.answered_by.in_place_of for one in judges}
    with TemporaryDirectory() as aside:
        benchmark = benchmark_of(config, RunFolder(root))
        folder = RunFolder(root if root.exists() else Path(aside))  # a plan leaves nothing there
        tasks = replace(benchmark, cache=folder.cache).tasks(folder.images)
        to_rate = _with_pending(folder, tasks, made, limit)
        pending = {one.system: ImageRef(one.system) for one in made.plans}
        shown = SentImages(folder.images, {how: dict(pending) for how in get_args(ImageSize)})
        fits, _ = read_applicability(benchmark, folder)
        with session.asking_in(folder, engines, budget_usd, watch, again=again) as asking:
            for question in (
                *_fitting(config, to_rate.tasks, shown),
                *rating_questions(config, judges, RUBRICS, to_rate, fits, shown),
            ):
                one = asking.plan(question)
                calls, place = one.plan, places.get(one.who)
                is_open = (
                    bool(calls.calls)
                    and one.who != FITTING
                    and any(system.todo for system in made.plans)
                )
                counts = calls.calls, calls.stored, one.expected, place, is_open
                planned.append(PlannedWork(one.who, one.rubric, *counts))
    return tuple(planned)


def _with_pending(folder: RunFolder, tasks: Tasks, made: Generated, limit: int | None) -> ToRate:
    """The outputs to rate once all is drawn: those yet to come are named by their systems."""
    todo = {(task.sample_id, one.system) for one in made.plans for task in one.todo}
    table = read_table(folder.root, OUTPUTS)
    there = (OUTPUTS.empty() if table is None else table).to_pylist()
    kept = [row for row in there if (row["sample_id"], row["system"]) not in todo]
    to_rate = outputs_to_rate(pa.Table.from_pylist(kept, OUTPUTS.schema), tasks, limit)
    outputs = {name: list(rows) for name, rows in to_rate.outputs.items()}
    for sample_id, system in sorted(todo):
        outputs.setdefault(sample_id, []).append({"system": system, "image": system})
    return replace(to_rate, outputs=outputs)


def _fitting(config: Evaluated, tasks: Sequence[Task], shown: SentImages) -> list[JudgeTask]:
    asked = config.applicability
    return [fitting_question(asked, tasks, shown)] if asked else []


def _judged(
    asking: Asking, config: Evaluated, judges: Sequence[JudgeConfig], limit: int | None
) -> Iterator[JudgingResult | JudgeError]:
    """Asks which metrics fit, then has judges rate: what has text to render is known only then."""
    root = asking.folder.root
    to_rate, shown = rated_outputs(config, asking.folder, limit), SentImages(asking.folder.images)
    samples = {task.sample_id for task in to_rate.tasks}

    def ratings() -> Iterator[JudgeTask]:
        fits, _ = read_applicability(benchmark_of(config, asking.folder), asking.folder)
        return rating_questions(config, judges, RUBRICS, to_rate, fits, shown)

    for questions, write in (
        (partial(_fitting, config, to_rate.tasks, shown), session.write_applicability),
        (ratings, session.write_ratings),
    ):
        try:
            yield session.ask_judges(asking, [*questions()], {}, partial(write, root), samples)
        except JudgeError as error:  # the others were asked, and their answers are written
            yield error


def _board(scores: Scores) -> Dataset:
    """A row for each split and system, the best first."""
    every: list[dict[str, Any]] = []
    places = {name: one.in_place_of for name, one in scores.models.systems.items()}
    for split in scores.splits:
        found = split.win_rates
        rows: dict[str, dict[str, Any]] = {}
        for row in make_board(found.rates, found.tiers) if found else ():
            low, high = row.interval or (None, None)
            known = {"win_rate": row.value, "low": low, "high": high, "coverage": row.coverage}
            rows[row.system] = {**known, "tier": row.tier}
        for one in split.metrics:
            rows.setdefault(one.system, {})[one.metric] = one.result.value if one.result else None
        every += [
            {"split": split.split, "system": name, "in_place_of": places.get(name), **row}
            for name, row in rows.items()
        ]
    return Dataset(pa.Table.from_pylist(every, BOARD))
