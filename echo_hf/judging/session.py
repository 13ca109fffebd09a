"""A run of judges: one after the other, within a budget; whatever was answered is kept at once."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from datasets import Dataset

from echo_hf._infra.atomic import lock_file, replace_file
from echo_hf.config.checks import EngineChoice
from echo_hf.config.sections import RunnerOptions
from echo_hf.engines.base import (
    Engine,
    RunEngines,
    check_engine_installed,
    check_sees_images,
    is_abstaining,
)
from echo_hf.engines.planner import ExpectedCost, Range, RequestPlan, estimate_calls, find_prices
from echo_hf.engines.pooled import PooledEngine
from echo_hf.engines.prices import MILLION
from echo_hf.errors import (
    EngineError,
    JudgeError,
    MissingExtraError,
    RunError,
    UnusableAnswersError,
)
from echo_hf.judging.rate import PROVENANCE_STAGE
from echo_hf.judging.run_tables import read_table
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.answers import make_answer_source
from echo_hf.pipeline.batch_inference import FillStats, fill, plan_requests
from echo_hf.pipeline.progress import ALREADY_REPORTED, NullProgress, ProgressListener
from echo_hf.pipeline.result import StageResult
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.pipeline.runner import LOCAL, Runner, make_runner
from echo_hf.pipeline.stage import ModelStage
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.pipeline.trial import Trial, send_trial, take_requests
from echo_hf.reasons import Failed, Reason
from echo_hf.scores.sequential import Decisions
from echo_hf.tables import APPLICABILITY, COMPARISONS, RATINGS, Table, arrow_rows

logger = logging.getLogger(__name__)
LOCK_FILE = ".judge.lock"
IN_PROCESS = RunnerOptions()


@dataclass(frozen=True)
class JudgeTask:
    judge: str
    rubric: str
    stage: ModelStage
    rows: Dataset
    part: str = ""  # which of the rows, where they are asked about in parts
    whole: Dataset | None = None  # all rows then

    @property
    def label(self) -> str:
        return " ".join(filter(None, (self.judge, self.rubric, self.part)))


@dataclass(frozen=True)
class AskPlan:
    """What asking would take, before anybody is asked."""

    judge: str
    rubric: str
    plan: RequestPlan
    expected: ExpectedCost


@dataclass(frozen=True)
class JudgingPlan:
    """One way of having a run judged; `half_width` is half a win rate's interval, by split."""

    name: str
    calls: Range
    half_width: Mapping[str, float | None]
    expected: ExpectedCost


@dataclass(frozen=True)
class JudgeRows:
    judge: str
    rubric: str
    rows: pa.Table
    digest: str
    outcomes: Mapping[str, int]
    fill: FillStats
    stopped: str | None
    unpriced: bool = False  # it was called, and nobody knows what for


@dataclass(frozen=True)
class JudgingResult:
    """What became of a run of judges, or of a dry run what each would be asked."""

    path: Path | None  # the table that was filled
    plans: tuple[AskPlan, ...] = ()
    ways: tuple[JudgingPlan, ...] = ()  # of a dry run: other ways of having it judged
    answered: tuple[JudgeRows, ...] = ()
    left_out: Mapping[Reason, int] = field(default_factory=dict)
    cost_usd: float | None = None  # as far as it is known
    trials: tuple[Trial, ...] = ()  # of requests that were only tried
    spent: bool = False  # whether a budget ended it before all was asked
    saved: tuple[AskPlan, ...] = ()  # what nobody had to be asked
    decisions: Mapping[str, Decisions] = field(default_factory=dict)  # by split


@dataclass
class MissingEngine:
    """An engine that cannot say which answers are its own yet: none that is stored is."""

    engine: Engine
    stored: bool = True

    def signature(self) -> Mapping[str, Any]:
        return {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)


@dataclass
class JudgingSession:
    """Asks judges, of which one at a time has its model in memory."""

    folder: RunFolder
    engines: RunEngines
    store: Store
    watch: ProgressListener
    budget_usd: float | None = None
    spent_usd: float = 0.0
    runner: Runner = LOCAL
    again: bool = False  # asks also where a stored answer cannot be used
    keep_going: bool = False  # where none can

    def engine(self, judge: str) -> Engine:
        """Who answers for a judge; another one's model is freed first."""
        engine = self.engines.use(judge)
        if not engine.stored or is_abstaining(engine.signature()):
            raise JudgeError(
                f"judge {judge!r}: engine {self.engines.choices[judge].kind!r} is not a model, or "
                "keeps no answers: name one with a model that sees images"
            )
        check_sees_images(engine, f"judge {judge!r}")
        if self.budget_usd is not None and None in find_prices(engine):
            raise JudgeError(
                f"judge {judge!r} has no known price, so that no budget can be kept: give its engine "
                "usd_per_million_prompt_tokens and usd_per_million_completion_tokens"
            )
        return engine

    def plan(self, question: JudgeTask) -> AskPlan:
        """What a judge would be asked, and about what it would cost; nobody is asked."""
        engine: Engine
        try:
            engine = self.engine(question.judge)
        except MissingExtraError as error:  # it costs the same before anything is installed for it
            self.watch.report_notice(f"judge {question.judge!r}: {error}")
            engine = MissingEngine(self.engines.use(question.judge))
        request_plan = plan_requests(
            question.stage, question.rows, engine, self.store, again=self.again
        )
        expected = estimate_calls(engine, request_plan)
        return AskPlan(question.judge, question.rubric, request_plan, expected)

    def prepare_judges(self, judges: Iterable[str]) -> None:
        """Makes sure that all can be asked, before anything is spent."""
        for judge in judges:
            if not isinstance(self.engines.use(judge), PooledEngine):
                check_engine_installed(self.engines.choices[judge].kind, f"judge {judge!r}")
        self.folder.log_entry()

    @property
    def is_spent(self) -> bool:
        return self.budget_usd is not None and self.spent_usd >= self.budget_usd

    def read_stored(self, question: JudgeTask) -> StageResult:
        """What is stored of what a judge is asked; nobody is asked."""
        stage, engine = question.stage, self.engine(question.judge)
        return run_stage(stage, question.rows, engine=engine, store=self.store, offline=True)

    def ask(self, question: JudgeTask) -> JudgeRows:
        """Asks a judge what is not stored, and reads all that is."""
        engine, label = self.engine(question.judge), question.label
        stage, rows, filled, stopped = question.stage, question.rows, FillStats(), None
        request_plan = plan_requests(stage, rows, engine, self.store, again=self.again)
        logger.info("judge %s: %d calls to make", label, request_plan.calls, extra=ALREADY_REPORTED)
        self.watch.report_start(label, request_plan.calls, "" if question.part else request_plan)

        def progress(stats: FillStats) -> None:
            nonlocal filled
            filled = stats
            self.watch.report_progress(label, stats.calls, self.runner.describe_stats(stats))

        def enough(stats: FillStats) -> bool:
            if self.budget_usd is None or find_prices(engine) == (0.0, 0.0):
                return False
            return self.spent_usd + _compute_cost(stats, engine) >= self.budget_usd

        options: Any = {"again": self.again, "keep_going": self.keep_going, "whole": question.whole}
        try:
            filled = fill(
                stage, rows, engine, self.store, progress=progress, should_stop=enough, **options
            )
        except UnusableAnswersError as error:  # nor would another judge make up for it
            raise UnusableAnswersError(f"{label}: {error}") from None
        except EngineError as error:
            stopped = f"{label}: {error}"
        self.spent_usd += _compute_cost(filled, engine)
        result = self.read_stored(question)
        result.stats.stage, result.stats.fill = label, filled
        result.stats.seconds += filled.seconds
        logger.info("judge %s", result.stats, extra=ALREADY_REPORTED)
        self.watch.report_result(result)
        return self.build_judged_table(question, arrow_rows(result.dataset), filled, stopped)

    def build_judged_table(
        self, question: JudgeTask, rows: pa.Table, filled: FillStats, stopped: str | None
    ) -> JudgeRows:
        engine = self.engine(question.judge)
        answers = make_answer_source(engine, self.store)
        return JudgeRows(
            question.judge,
            question.rubric,
            rows.filter(pc.not_equal(rows["outcome"], Failed.NOT_ANSWERED.value)),
            question.stage.answered_by(answers).digest(),
            Counter(rows["outcome"].to_pylist()),
            filled,
            stopped,
            unpriced=bool(filled.calls) and filled.cost_usd is None and None in find_prices(engine),
        )


def _compute_cost(stats: FillStats, engine: Engine) -> float:
    """What calls cost; what no answer states is counted at the list price, without a cache."""
    if stats.cost_usd is not None:
        return stats.cost_usd
    prompt, completion = (price or 0.0 for price in find_prices(engine))
    return (stats.usage.prompt * prompt + stats.usage.completion * completion) / MILLION


def lock_judging(root: Path) -> AbstractContextManager[None]:
    """Keeps other processes from writing what judges say."""
    busy = RunError(
        f"another process is judging in {str(root)!r}: wait for it, or choose another folder with "
        "--runs"
    )
    return lock_file(root / LOCK_FILE, busy)


@contextmanager
def open_session(
    folder: RunFolder,
    engines: Mapping[str, EngineChoice],
    budget_usd: float | None,
    watch: ProgressListener | None,
    runner: RunnerOptions = IN_PROCESS,
    *,
    again: bool = False,
    keep_going: bool = False,
    store: Store | None = None,
) -> Iterator[JudgingSession]:
    """What asks judges in a run's folder, with its store open and other processes kept out."""
    lock = lock_judging(folder.root)
    watch = watch or NullProgress()
    stage_runner = make_runner(runner, folder.root, watch)
    with (
        lock,
        stage_runner,
        RunEngines(engines, stage_runner.place_engine) as run_engines,
        closing(folder.open_store() if store is None else store) as answer_store,
    ):
        options: Any = {"runner": stage_runner, "again": again, "keep_going": keep_going}
        session = JudgingSession(folder, run_engines, answer_store, watch, budget_usd, **options)
        for judge in engines:  # what is wrong with one is said before any is asked
            with suppress(MissingExtraError):  # a plan does without, and asking looks for itself
                session.engine(judge)
        yield session


def ask_judges(
    session: JudgingSession,
    questions: Sequence[JudgeTask],
    left_out: Mapping[Reason, int],
    write: Callable[[JudgeRows, Collection[str]], Path],
    samples: Collection[str],
) -> JudgingResult:
    """Asks all questions, and writes down what was answered to each as soon as it is done."""
    session.prepare_judges(question.judge for question in questions)
    path, judged = None, list[JudgeRows]()
    for question in questions:
        judged.append(session.ask(question))
        path = write(judged[-1], samples)
    return build_result(session, path, judged, left_out)


def try_judges(
    session: JudgingSession, questions: Sequence[JudgeTask], count: int
) -> JudgingResult:
    """Sends some requests, of each question in turn, and keeps nothing of them."""
    by_question = [
        take_requests(question.stage, question.rows, session.engine(question.judge), count)
        for question in questions
    ]
    numbered_requests = (
        (number, requests[index])
        for index in range(count)
        for number, requests in enumerate(by_question)
        if index < len(requests)
    )
    chosen = sorted(islice(numbered_requests, count), key=itemgetter(0))
    if not chosen:
        raise JudgeError(
            f"there is nothing to ask in {str(session.folder.root)!r}: expected outputs of samples "
            "of the benchmark, which `echo-hf generate` makes"
        )
    trials = []
    for number, request in chosen:
        question = questions[number]
        trials.append(
            send_trial(question.stage, request, session.engine(question.judge), question.label)
        )
    return JudgingResult(None, trials=tuple(trials))


def build_result(
    session: JudgingSession,
    path: Path | None,
    judged: Sequence[JudgeRows],
    left_out: Mapping[Reason, int],
    **fields: Any,
) -> JudgingResult:
    """What became of a run, unless a judge broke down in it."""
    stopped = [table.stopped for table in judged if table.stopped]
    if stopped:
        raise JudgeError("; ".join(stopped))
    costs = [table.fill.cost_usd for table in judged if table.fill.cost_usd is not None]
    unasked = any(table.outcomes.get(Failed.NOT_ANSWERED) for table in judged)
    return JudgingResult(
        path,
        answered=tuple(judged),
        left_out=left_out,
        cost_usd=sum(costs) if costs else None,
        spent=session.is_spent and unasked,
        **fields,
    )


def write_answers(table: Table, root: Path, judged: JudgeRows, samples: Collection[str]) -> Path:
    """Writes answers into a run's table, in place of those of the same judge to the same question.

    Rows of other judges, of other rubrics, and about samples that were not asked about stay; of
    the judge's own those that another prompt or model gave do not.
    """
    question_columns = {"judge": judged.judge, "rubric": judged.rubric}
    own = {name: value for name, value in question_columns.items() if name in table.columns}

    def should_keep(row: Mapping[str, Any]) -> bool:
        if any(row[name] != value for name, value in own.items()):
            return True
        return row["sample_id"] not in samples and (
            not own or _read_stage_digest(row) == judged.digest
        )

    previous = read_table(root, table) or table.make_empty()
    kept = previous.filter(pa.array([should_keep(row) for row in previous.to_pylist()], pa.bool_()))
    new = judged.rows.select(list(table.columns)).cast(table.schema)
    return write_table(table, root, kept, new)


def write_table(table: Table, root: Path, *parts: pa.Table) -> Path:
    merged = pa.concat_tables(parts).sort_by([(name, "ascending") for name in table.key])
    path = root / f"{table.name}.parquet"
    with replace_file(path) as partial_file:
        pq.write_table(merged, partial_file)
    return path


def _read_stage_digest(row: Mapping[str, Any]) -> Any:
    try:
        return json.loads(row["provenance"])[PROVENANCE_STAGE]["digest"]
    except (ValueError, TypeError, KeyError):
        return None  # made elsewhere


write_ratings = partial(write_answers, RATINGS)
write_comparisons = partial(write_answers, COMPARISONS)
write_applicability = partial(write_answers, APPLICABILITY)
