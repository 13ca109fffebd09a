"""Evaluate systems in one call: estimate the cost, generate, judge, score and report."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
from datasets import Dataset

from echo_hf._infra.summary import SummaryMixin
from echo_hf.config.checks import EngineChoice
from echo_hf.config.evaluation import EvaluationBase, ImageSize, JudgeConfig, JudgeWork
from echo_hf.engines.base import ImageRef, check_installed
from echo_hf.engines.memory import check_gpu_memory
from echo_hf.engines.planner import ExpectedCost
from echo_hf.errors import GenerationError, JudgeError
from echo_hf.hub.run_tables import CHOICES
from echo_hf.judging.choosing import ask_pairs, asks_until_decided, compare_all
from echo_hf.judging.compare import PAIRWISE
from echo_hf.judging.judge import (
    APPLICABILITY,
    PartToRate,
    SentImages,
    applicability_questions,
    choose_judges,
    engines_of,
    pairwise_questions,
    rating_questions,
    read_outputs_to_rate,
    read_parts_to_rate,
)
from echo_hf.judging.rate import OutputsToRate, select_outputs
from echo_hf.judging.score import Scores, score
from echo_hf.judging.session import (
    JudgeRows,
    JudgeTask,
    JudgingResult,
    JudgingSession,
    ask_judges,
    open_session,
    write_applicability,
    write_ratings,
)
from echo_hf.metrics.base import list_measured
from echo_hf.pipeline.progress import NullProgress, ProgressListener
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import count_unusable
from echo_hf.report.report import report
from echo_hf.scores.win_rate import make_board
from echo_hf.systems.evaluation_run import EvaluationRun
from echo_hf.systems.generate import GenerationSummary, generate_outputs
from echo_hf.systems.run_tables import read_table
from echo_hf.tables import DRAW, OUTPUTS, Outcome

FIGURES = ("win_rate", "low", "high", "coverage")
CHOICE_TIER = "choice_tier"
TEXTS = {"split": pa.string(), "system": pa.string(), "in_place_of": pa.string()}


@dataclass(frozen=True)
class PlannedWork:
    """Work that one system or judge is about to be asked for.

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
    expected: ExpectedCost
    in_place_of: str | None = None
    at_most: bool = False

    @property
    def cost_usd(self) -> float | None:
        """Return the estimated cost of the calls in US dollars; null where no price is known."""
        return self.expected.cost_usd


@dataclass(frozen=True, repr=False)
class Evaluation(SummaryMixin):
    """The result of an evaluation.

    Attributes:
        board: A row for each split and system: `win_rate` with `low` and `high`, the ends of its
            95 % interval, `tier`, `coverage`, and the value of each metric; null where it has none.
            With `board: pairwise` also `choice_strength`, and `choice_tier` by decided pairs.
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
    config: EvaluationRun | EvaluationBase | Path | str,
    *,
    runs: Path | str | None = None,
    systems: Sequence[str] | None = None,
    judges: Sequence[str] | None = None,
    limit: int | None = None,
    budget_usd: float | None = None,
    outputs: int | None = None,
    dry_run: bool = False,
    again: bool = False,
    keep_going: bool = False,
    before: Callable[[tuple[PlannedWork, ...]], None] | None = None,
    watch: ProgressListener | None = None,
) -> Evaluation:
    """Let systems draw a benchmark and judges rate the outputs; score them, and write a report.

    What a run holds is not asked for again: the same call goes on after a stop. Without a judge,
    the metrics are computed alone. A system or judge that stops does not stop the others.

    Args:
        config: The YAML file that names systems and a benchmark or posts, what it holds, or a run
            that is open already.
        runs: Folder of runs; this one is named by its config. Null for ECHO_HF_RUNS, the config's
            `runs`, or `runs` beside its file.
        systems: Names of those that draw; null for all. Judges rate whatever the run holds.
        judges: Names of those that are asked; null for all.
        limit: Most samples of each split, the first of its random order; null for all.
        budget_usd: US dollars after which neither systems nor judges are asked any more; what is
            under way then is waited for. Null for no limit.
        outputs: How many outputs each system draws of a sample; null for the number in the config.
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
    run = EvaluationRun.from_config(config, runs)
    config = run.asked_config
    chosen = _choose_for_board(config, judges) if config.judges or judges else []
    watch, engines = watch or NullProgress(), _map_engines(config, chosen)
    check_gpu_memory(engines, estimates=dry_run)
    generation: Any = {"outputs": outputs, "budget_usd": budget_usd, "again": again}
    summary = generate_outputs(run, None, systems, limit, dry_run=True, **generation)
    plan = _plan_work(run, summary, chosen, limit, budget_usd, watch, again=again)
    for reason in summary.stopped:
        watch.report_notice(reason)
    if not chosen:
        watch.report_notice("no judge is named: metrics alone; win rates need one under `judges`")
    estimate = sum(work.cost_usd or 0.0 for work in plan)
    if budget_usd is not None and estimate > budget_usd:
        watch.report_notice(
            f"all of it costs about ${estimate:.2f}, the budget of ${budget_usd:.2f} ends it "
            "before: a limit asks for fewer samples of everybody"
        )
    if before is not None:
        before(plan)
    if dry_run:
        board = _make_board([], config.metrics.root)
        return Evaluation(board, None, None, plan, stopped=summary.stopped)
    for judge, engine in engines.items() if config.runner.kind == "local" else ():
        check_installed(engine.kind, f"judge {judge!r}")  # before anything is spent
    summary = generate_outputs(run, None, systems, limit, **generation, watch=watch)
    if summary.stopped and not any(counts.get(Outcome.OK) for counts in summary.outcomes.values()):
        raise GenerationError("; ".join(summary.stopped))
    for name, counts in summary.outcomes.items():
        if empty := counts.get(Outcome.NO_IMAGE, 0):
            watch.report_notice(f"{name}: {empty:,} no_image; --again asks anew")
    cost_usd, spent, stopped = summary.cost_usd or 0.0, summary.spent, [*summary.stopped]
    if engines:
        budget = None if budget_usd is None else max(budget_usd - cost_usd, 0.0)
        folder = run.prepare()
        options: Any = {"again": again, "keep_going": keep_going}
        with open_session(folder, engines, budget, watch, config.runner, **options) as session:
            for judged in _run_judges(session, run, chosen, limit):
                if isinstance(judged, JudgeError):
                    stopped.append(str(judged))
                    continue
                spent |= judged.spent
                for judge_rows in judged.answered:
                    if any(outcome != Outcome.OK for outcome in judge_rows.outcomes):
                        watch.report_notice(_describe_failures(judge_rows))
        cost_usd += session.spent_usd
        run.write_carried()
    scores = score(run)
    page, board = report(run).path, _build_board(scores)
    return Evaluation(board, scores, page, plan, cost_usd, spent, tuple(stopped))


def _choose_for_board(config: EvaluationBase, names: Sequence[str] | None) -> list[JudgeConfig]:
    """Choose the judges that rate and, where the board is of pairs, those that compare."""
    if config.board != "pairwise":
        return choose_judges(config, names)
    chosen = choose_judges(config, names, "any")
    if not _select_fit(chosen, "compare"):
        choose_judges(config, names, "compare")  # says why there is none
    return chosen


def _select_fit(judges: Sequence[JudgeConfig], work: JudgeWork) -> list[JudgeConfig]:
    return [judge for judge in judges if judge.can_do(work)]


def _describe_failures(table: JudgeRows) -> str:
    outcomes = sorted(table.outcomes.items())
    counts = ", ".join(f"{count:,} {name}" for name, count in outcomes if name != Outcome.OK)
    message = f"{table.judge}, {table.about}: {counts}, of {sum(table.outcomes.values()):,}"
    if retried := count_unusable(table.outcomes):
        message += f"; --again asks for {retried:,} of them anew"
    return message


def _map_engines(config: EvaluationBase, judges: Sequence[JudgeConfig]) -> dict[str, EngineChoice]:
    """Return the engine of each judge, and of the question which metrics fit."""
    engines = {APPLICABILITY: config.applicability.engine} if config.applicability else {}
    return engines | engines_of(judges)


def _plan_work(
    run: EvaluationRun,
    summary: GenerationSummary,
    judges: Sequence[JudgeConfig],
    limit: int | None,
    budget_usd: float | None,
    watch: ProgressListener,
    *,
    again: bool,
) -> tuple[PlannedWork, ...]:
    config, folder = run.asked_config, run.place
    stand_ins = {system.name: system.answered_by.in_place_of for system in config.systems}
    planned = []
    for plan in summary.plans:
        figures = len(plan.todo), plan.stored, plan.expected, stand_ins.get(plan.system)
        about = f"images {plan.part}".strip()
        planned.append(PlannedWork(plan.system, about, *figures))
    if not (engines := _map_engines(config, judges)):
        return tuple(planned)
    stand_ins = {judge.name: judge.answered_by.in_place_of for judge in judges}
    to_rate = _add_pending(run, summary, limit)
    pending = {
        digest: ImageRef(digest)
        for plan in summary.plans
        for digest in {_pending_digest(plan.system, task.draw) for task in plan.todo}
    }

    def prepare_images(place: RunFolder) -> SentImages:
        return SentImages(place.images, {size: dict(pending) for size in get_args(ImageSize)})

    sent = prepare_images(folder)
    parts = [
        PartToRate(part, _add_pending(part, summary, limit), prepare_images(part.folder))
        for part in run.parts
    ]
    applicability, _ = run.read_applicability()
    is_adaptive = asks_until_decided(config, budget_usd)
    choosers = _select_fit(judges, "compare") if config.board == "pairwise" else []
    comparing = compare_all(choosers) if is_adaptive else choosers
    questions = chain(
        applicability_questions(config, to_rate.tasks, sent),
        pairwise_questions(config, comparing, to_rate, sent),
        rating_questions(
            config, _select_fit(judges, "rate"), None, to_rate, applicability, sent, parts
        ),
    )
    has_pending = any(plan.todo for plan in summary.plans)
    with open_session(folder, engines, budget_usd, watch, again=again) as session:
        for question in questions:
            ask_plan = session.plan(question)
            calls, stand_in = ask_plan.plan, stand_ins.get(ask_plan.judge)
            # Outputs that turn out to be equal, or without an image, need fewer calls.
            may_stop = is_adaptive and ask_plan.rubric == PAIRWISE
            at_most = (has_pending and ask_plan.judge != APPLICABILITY) or may_stop
            at_most = at_most and bool(calls.calls)
            counts = calls.calls, calls.stored, ask_plan.expected, stand_in, at_most
            planned.append(PlannedWork(ask_plan.judge, ask_plan.about, *counts))
    return tuple(planned)


def _pending_digest(system: str, draw: int) -> str:
    """Return what stands for the digests of a system's outputs until they are drawn."""
    return f"pending:{system}:{draw}"


def _add_pending(
    run: EvaluationRun, summary: GenerationSummary, limit: int | None
) -> OutputsToRate:
    """Add the outputs that are still to be drawn in a run or a part, with pending digests."""
    plans = [plan for plan in summary.plans if plan.part == run.part]
    todo = {(task.sample_id, plan.system, task.draw) for plan in plans for task in plan.todo}
    table = read_table(run.place.root, OUTPUTS)
    existing = (OUTPUTS.make_empty() if table is None else table).to_pylist()
    kept = [row for row in existing if tuple(row[name] for name in OUTPUTS.key) not in todo]
    to_rate = select_outputs(pa.Table.from_pylist(kept, OUTPUTS.schema), run.read_tasks(), limit)
    outputs = {name: list(rows) for name, rows in to_rate.outputs.items()}
    for sample_id, system, draw in sorted(todo):
        output = {"system": system, DRAW: draw, "image": _pending_digest(system, draw)}
        outputs.setdefault(sample_id, []).append(output)
    return replace(to_rate, outputs=outputs)


def _run_judges(
    session: JudgingSession, run: EvaluationRun, judges: Sequence[JudgeConfig], limit: int | None
) -> Iterator[JudgingResult | JudgeError]:
    """Ask which metrics fit, then have judges rate: only then is known which samples have text.

    Before they rate they choose, where that is the board: a budget goes to it first.
    """
    config, sent = run.asked_config, SentImages(session.folder.images)
    to_rate = read_outputs_to_rate(run, limit)
    samples = {task.sample_id for task in to_rate.tasks}

    def build_ratings() -> Iterator[JudgeTask]:
        applicability, _ = run.read_applicability()
        parts = read_parts_to_rate(run, limit)
        raters = _select_fit(judges, "rate")
        return rating_questions(config, raters, None, to_rate, applicability, sent, parts)

    def ask_fits() -> JudgingResult:
        questions = [*applicability_questions(config, to_rate.tasks, sent)]
        return ask_judges(session, questions, {}, write_applicability, samples)

    def ask_ratings() -> JudgingResult:
        return ask_judges(session, [*build_ratings()], {}, write_ratings, samples)

    choosers = _select_fit(judges, "compare")
    choosing = [partial(ask_pairs, session, run, choosers, to_rate, sent)]
    for ask in (ask_fits, *(choosing if config.board == "pairwise" else ()), ask_ratings):
        try:
            yield ask()
        except JudgeError as error:  # the other judges were asked, and their answers are written
            yield error


def _build_board(scores: Scores) -> Dataset:
    """Build a row for each split and system, the best first."""
    board_rows: list[dict[str, Any]] = []
    stand_ins = {name: model.in_place_of for name, model in scores.models.systems.items()}
    for split in scores.splits:
        win_rates = split.win_rates
        rows: dict[str, dict[str, Any]] = {}
        for row in make_board(win_rates.rates, win_rates.tiers) if win_rates else ():
            low, high = row.interval or (None, None)
            figures = {"win_rate": row.value, "low": low, "high": high, "coverage": row.coverage}
            rows[row.system] = {**figures, "tier": row.tier}
        if (chosen := split.choices) and chosen.is_board:
            for system, strength in chosen.strengths.strength.items():
                tier = chosen.tier_by_system.get(system)
                rows.setdefault(system, {}).update({CHOICES: strength, CHOICE_TIER: tier})
        for measured in split.metrics:
            value = measured.result.value if measured.result else None
            rows.setdefault(measured.system, {})[measured.metric] = value
        board_rows += [
            {"split": split.split, "system": name, "in_place_of": stand_ins.get(name), **row}
            for name, row in rows.items()
        ]
    names = {measured.metric for split in scores.splits for measured in split.metrics}
    return _make_board(board_rows, names)


def _make_board(rows: Sequence[Mapping[str, Any]], metrics: Collection[str]) -> Dataset:
    """Make a board with a column for each metric that is measured by default, and for others."""
    by_default = (metric.name for metric in list_measured(metrics))
    names = (*FIGURES, *dict.fromkeys([*by_default, *sorted(metrics)]))
    choices = {CHOICES: pa.float64(), CHOICE_TIER: pa.int64()}
    if not any(CHOICES in row for row in rows):
        choices = {}
    numbers = {"tier": pa.int64(), **choices, **dict.fromkeys(names, pa.float64())}
    schema = pa.schema({**TEXTS, **numbers})
    return Dataset(pa.Table.from_pylist(rows, schema))
