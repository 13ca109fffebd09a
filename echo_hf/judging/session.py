"""Sessions of judges: they run one after another within a budget; each answer is stored at once."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
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
from echo_hf._infra.retry import hide_errors
from echo_hf.config.checks import EngineChoice
from echo_hf.config.sections import RunnerOptions
from echo_hf.engines.base import Engine, Failed, RunEngines, abstains, check_installed, check_vision
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
from echo_hf.hub.sealed import SEALED_FOLDER
from echo_hf.judging.rate import PROVENANCE_STAGE
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.answers import as_source
from echo_hf.pipeline.batch_inference import FillStats, fill, plan_requests
from echo_hf.pipeline.progress import ALREADY_REPORTED, NullProgress, ProgressListener
from echo_hf.pipeline.result import StageResult
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.pipeline.runner import LOCAL, Runner, make_runner
from echo_hf.pipeline.stage import ModelStage
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.pipeline.trial import Trial, send_trial, take_requests
from echo_hf.reasons import Reason
from echo_hf.scores.sequential import Decisions
from echo_hf.systems.evaluation_run import EvaluationRun
from echo_hf.systems.run_tables import read_table
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
    part: str = ""  # which part of the rows, where they are asked about in rounds
    whole: Dataset | None = None  # all rows, where `rows` is a part
    run_part: EvaluationRun | None = None  # whose samples they are, if not the run's own
    samples: frozenset[str] = frozenset()  # of that part, asked about

    @property
    def about(self) -> str:
        return f"{self.rubric} {self.run_part.part}" if self.run_part else self.rubric

    @property
    def label(self) -> str:
        return " ".join(filter(None, (self.judge, self.about, self.part)))

    @property
    def is_sealed(self) -> bool:
        """Whether it is about sealed samples, of which no answer may be quoted."""
        return self.run_part is not None and self.run_part.part == SEALED_FOLDER


@dataclass(frozen=True)
class AskPlan:
    """A plan of the calls that a question to a judge takes, with their cost."""

    judge: str
    rubric: str
    plan: RequestPlan
    expected: ExpectedCost
    about: str = ""  # the rubric, with the part of the run where there is one


@dataclass(frozen=True)
class JudgingPlan:
    """One way of judging a run; `half_width` is half the interval of a win rate, by split."""

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
    unpriced: bool = False  # calls were made, and their price is not known
    about: str = ""  # the rubric, with the part of the run where there is one


@dataclass(frozen=True)
class JudgingResult:
    """The result of asking judges; after a dry run, the plans of their questions."""

    path: Path | None  # the table that was filled
    plans: tuple[AskPlan, ...] = ()
    ways: tuple[JudgingPlan, ...] = ()  # after a dry run: alternatives
    answered: tuple[JudgeRows, ...] = ()
    left_out: Mapping[Reason, int] = field(default_factory=dict)
    cost_usd: float | None = None  # as far as it is known
    trials: tuple[Trial, ...] = ()  # requests that were only tried
    spent: bool = False  # whether the budget ended it early
    saved: tuple[AskPlan, ...] = ()  # questions that could be spared
    decisions: Mapping[str, Decisions] = field(default_factory=dict)  # by split


@dataclass
class MissingEngine:
    """An engine without its packages: it has no signature, so that no stored answer is its own."""

    engine: Engine
    stored: bool = True

    def signature(self) -> Mapping[str, Any]:
        return {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)


@dataclass
class JudgingSession:
    """Asks judges one at a time, so that one model at a time is in memory."""

    folder: RunFolder
    engines: RunEngines
    store: Store
    watch: ProgressListener
    budget_usd: float | None = None
    spent_usd: float = 0.0
    runner: Runner = LOCAL
    again: bool = False  # ask also where a stored answer cannot be used
    keep_going: bool = False  # even where no answer can be used
    # What plans have counted, and the stores of parts that share none.
    _planned: dict[Path, set[bytes]] = field(default_factory=dict)
    _stores: dict[Path, Store] = field(default_factory=dict)

    def close(self) -> None:
        for store in (self.store, *self._stores.values()):
            store.close()

    def find_store(self, question: JudgeTask) -> Store:
        """Return the store of a question's answers: the run's, or that of its part."""
        part = question.run_part
        if part is None or part.folder.answers == self.folder.answers:
            return self.store
        if part.folder.answers not in self._stores:
            self._stores[part.folder.answers] = part.folder.open_store()
        return self._stores[part.folder.answers]

    def engine(self, judge: str) -> Engine:
        """Return the engine of a judge; the model of the previous one is freed first."""
        engine = self.engines.use(judge)
        if not engine.stored or abstains(engine.signature()):
            raise JudgeError(
                f"judge {judge!r}: engine {self.engines.choices[judge].kind!r} is not a model, or "
                "keeps no answers: name one with a model that sees images"
            )
        check_vision(engine, f"judge {judge!r}")
        if self.budget_usd is not None and None in find_prices(engine):
            raise JudgeError(
                f"judge {judge!r} has no known price, so that no budget can be kept: give its "
                "engine usd_per_million_prompt_tokens and usd_per_million_completion_tokens"
            )
        return engine

    def plan(self, question: JudgeTask) -> AskPlan:
        """Plan what a judge would be asked and what it would cost; nothing is sent."""
        engine: Engine
        try:
            engine = self.engine(question.judge)
        except MissingExtraError as error:  # it costs the same, and may be installed later
            self.watch.report_notice(f"judge {question.judge!r}: {error}")
            engine = MissingEngine(self.engines.use(question.judge))
        stage, rows, store = question.stage, question.rows, self.find_store(question)
        planned = self._planned.setdefault(store.path, set())
        # Of equal requests in the run and a part one is asked.
        handled = planned if question.run_part else set[bytes]()
        request_plan = plan_requests(stage, rows, engine, store, again=self.again, handled=handled)
        planned |= handled
        expected = estimate_calls(engine, request_plan)
        return AskPlan(question.judge, question.rubric, request_plan, expected, question.about)

    def prepare_judges(self, judges: Iterable[str]) -> None:
        """Check that all judges can be asked, before anything is spent."""
        for judge in judges:
            if not isinstance(self.engines.use(judge), PooledEngine):
                check_installed(self.engines.choices[judge].kind, f"judge {judge!r}")
        self.folder.log_entry()

    @property
    def is_spent(self) -> bool:
        return self.budget_usd is not None and self.spent_usd >= self.budget_usd

    def read_stored(self, question: JudgeTask) -> StageResult:
        """Read the stored answers to a question; nothing is sent."""
        stage, engine = question.stage, self.engine(question.judge)
        store = self.find_store(question)
        return run_stage(stage, question.rows, engine=engine, store=store, offline=True)

    def ask(self, question: JudgeTask) -> JudgeRows:
        """Ask a judge what is not stored, and read all answers."""
        result, stopped = self.fill(question)
        filled = result.stats.fill
        return self.build_judged_table(question, arrow_rows(result.dataset), filled, stopped)

    def fill(self, question: JudgeTask) -> tuple[StageResult, str | None]:
        """Ask what is not stored; return all answers, and why asking stopped if it did."""
        engine, label = self.engine(question.judge), question.label
        stage, rows, filled, stopped = question.stage, question.rows, FillStats(), None
        sent = 0
        store = self.find_store(question)
        request_plan = plan_requests(stage, rows, engine, store, again=self.again)
        logger.info("judge %s: %d calls to make", label, request_plan.calls, extra=ALREADY_REPORTED)
        self.watch.report_start(label, request_plan.calls, "" if question.part else request_plan)
        expected = estimate_calls(engine, request_plan)
        call_usd = 0.0
        if expected.is_batched and expected.usd and request_plan.calls:
            call_usd = expected.usd.likely / request_plan.calls

        def progress(stats: FillStats) -> None:
            nonlocal filled
            filled = stats
            self.watch.report_progress(label, stats.calls, self.runner.describe_stats(stats))

        def enough(stats: FillStats) -> bool:
            if self.budget_usd is None or find_prices(engine) == (0.0, 0.0):
                return False
            nonlocal sent
            # All calls of a batch go before the first comes back.
            under_way = max(0, sent - stats.calls) * call_usd
            sent += 1
            return self.spent_usd + _compute_cost(stats, engine) + under_way >= self.budget_usd

        options: Any = {"again": self.again, "keep_going": self.keep_going, "whole": question.whole}
        options |= {"progress": progress, "enough": enough, "is_sealed": question.is_sealed}
        try:
            with hide_errors() if question.is_sealed else nullcontext():
                filled = fill(stage, rows, engine, store, **options)
        except UnusableAnswersError as error:  # another judge would not help
            raise UnusableAnswersError(f"{label}: {error}") from None
        except EngineError as error:
            stopped = f"{label}: {error}"
            if question.is_sealed:
                stopped = (
                    f"{label}: its engine gave up after {filled.calls:,} calls "
                    f"({type(error).__name__}), and what it says is not shown, as it may quote a "
                    "sealed sample: the same command goes on from here"
                )
        self.spent_usd += _compute_cost(filled, engine)
        result = self.read_stored(question)
        result.stats.stage, result.stats.fill = label, filled
        result.stats.seconds += filled.seconds
        logger.info("judge %s", result.stats, extra=ALREADY_REPORTED)
        self.watch.report_result(_leave_out_examples(result) if question.is_sealed else result)
        return result, stopped

    def build_judged_table(
        self, question: JudgeTask, rows: pa.Table, filled: FillStats, stopped: str | None
    ) -> JudgeRows:
        engine = self.engine(question.judge)
        answers = as_source(engine, self.find_store(question))
        outcomes = rows.select(["sample_id", "outcome"])
        if "metric" in rows.column_names:  # several rows are of one answer
            outcomes = outcomes.group_by(outcomes.column_names).aggregate([])
        return JudgeRows(
            question.judge,
            question.rubric,
            rows.filter(pc.not_equal(rows["outcome"], Failed.NOT_ANSWERED.value)),
            question.stage.answered_by(answers).digest(),
            Counter(outcomes["outcome"].to_pylist()),
            filled,
            stopped,
            unpriced=bool(filled.calls) and filled.cost_usd is None and None in find_prices(engine),
            about=question.about,
        )


def _leave_out_examples(result: StageResult) -> StageResult:
    """Return a result whose rows are left out, and whose counts stay."""
    names = ("dataset", "rejects", "quarantine", "notices")
    return replace(result, **{name: getattr(result, name).select([]) for name in names})


def _compute_cost(stats: FillStats, engine: Engine) -> float:
    """Compute what calls cost: as stated by the answers, else at list price without a cache."""
    if stats.cost_usd is not None:
        return stats.cost_usd
    prompt, completion = (price or 0.0 for price in find_prices(engine))
    return (stats.usage.prompt * prompt + stats.usage.completion * completion) / MILLION


def lock_judging(root: Path) -> AbstractContextManager[None]:
    """Keep other processes from writing judgements of this run."""
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
    """Open a session in a run's folder, with its store open and other processes locked out."""
    lock = lock_judging(folder.root)
    watch = watch or NullProgress()
    stage_runner = make_runner(runner, folder.root, watch)
    with (
        lock,
        stage_runner,
        RunEngines(engines, stage_runner.place_engine) as run_engines,
        ExitStack() as stack,
    ):
        options: Any = {"runner": stage_runner, "again": again, "keep_going": keep_going}
        answers = folder.open_store() if store is None else store
        session = JudgingSession(folder, run_engines, answers, watch, budget_usd, **options)
        stack.callback(session.close)
        for judge in engines:  # errors of any judge are found before the first is asked
            with suppress(MissingExtraError):  # a plan does without; asking checks it again
                session.engine(judge)
        yield session


def ask_judges(
    session: JudgingSession,
    questions: Sequence[JudgeTask],
    left_out: Mapping[Reason, int],
    write: Callable[[Path, JudgeRows, Collection[str]], Path],
    samples: Collection[str],
) -> JudgingResult:
    """Ask all questions, and write down the answers to each as soon as it is done."""
    session.prepare_judges(question.judge for question in questions)
    path, judged = None, list[JudgeRows]()
    for question in questions:
        judged.append(session.ask(question))
        if part := question.run_part:
            write(part.folder.root, judged[-1], question.samples)
        else:
            path = write(session.folder.root, judged[-1], samples)
    return build_result(session, path, judged, left_out)


def try_judges(
    session: JudgingSession, questions: Sequence[JudgeTask], count: int
) -> JudgingResult:
    """Send some requests, of each question in turn; nothing is stored."""
    by_question = []
    for question in questions:
        engine = session.engine(question.judge)
        by_question.append(take_requests(question.stage, question.rows, engine, count))
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
        engine = session.engine(question.judge)
        trials.append(send_trial(question.stage, request, engine, question.label))
    return JudgingResult(None, trials=tuple(trials))


def build_result(
    session: JudgingSession,
    path: Path | None,
    judged: Sequence[JudgeRows],
    left_out: Mapping[Reason, int],
    **fields: Any,
) -> JudgingResult:
    """Return the result of a session; raise an error if a judge broke down in it."""
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
    """Write answers into a run's table, in place of earlier ones by the same judge to the question.

    Rows of other judges, of other rubrics, and about samples that were not asked about stay; of
    the judge's own those that another prompt or model gave do not.
    """
    question_columns = {"judge": judged.judge, "rubric": judged.rubric}
    own = {name: value for name, value in question_columns.items() if name in table.columns}

    def should_keep(row: Mapping[str, Any]) -> bool:
        if any(row[name] != value for name, value in own.items()):
            return True
        is_current = not own or _read_stage_digest(row) == judged.digest
        return row["sample_id"] not in samples and is_current

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
