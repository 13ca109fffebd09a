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

from echo_hf._infra.atomic import held, replaced_file
from echo_hf.config.checks import EngineChoice
from echo_hf.config.sections import RunnerOptions
from echo_hf.engines.base import Engine, Engines, abstains, check_installed, check_sees_images
from echo_hf.engines.planner import Expected, Range, RequestPlan, expected_calls, prices_of
from echo_hf.engines.pooled import PooledEngine
from echo_hf.engines.prices import MILLION
from echo_hf.errors import (
    EngineError,
    JudgeError,
    MissingExtraError,
    RunError,
    UnusableAnswersError,
)
from echo_hf.judging.rate import STAGE
from echo_hf.judging.run_tables import read_table
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.answers import answers_of
from echo_hf.pipeline.batch_inference import FillStats, fill, plan
from echo_hf.pipeline.progress import TOLD, NullProgress, ProgressListener
from echo_hf.pipeline.result import StageResult
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.pipeline.runner import LOCAL, Runner, runner_of
from echo_hf.pipeline.stage import ModelStage
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.pipeline.trial import Trial, first_requests, send_trial
from echo_hf.reasons import Failed, Reason
from echo_hf.scores.sequential import Decisions
from echo_hf.tables import APPLICABILITY, COMPARISONS, RATINGS, Table, arrow_rows

logger = logging.getLogger(__name__)
LOCK = ".judge.lock"
HERE = RunnerOptions()


@dataclass(frozen=True)
class JudgeTask:
    who: str
    rubric: str
    stage: ModelStage
    rows: Dataset
    part: str = ""  # which of the rows, where they are asked about in parts
    whole: Dataset | None = None  # all rows then

    @property
    def label(self) -> str:
        return " ".join(filter(None, (self.who, self.rubric, self.part)))


@dataclass(frozen=True)
class Planned:
    """What asking would take, before anybody is asked."""

    who: str
    rubric: str
    plan: RequestPlan
    expected: Expected


@dataclass(frozen=True)
class JudgingPlan:
    """One way of having a run judged; `half_width` is half a win rate's interval, by split."""

    name: str
    calls: Range
    half_width: Mapping[str, float | None]
    expected: Expected


@dataclass(frozen=True)
class Answered:
    who: str
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
    plans: tuple[Planned, ...] = ()
    ways: tuple[JudgingPlan, ...] = ()  # of a dry run: other ways of having it judged
    answered: tuple[Answered, ...] = ()
    left_out: Mapping[Reason, int] = field(default_factory=dict)
    cost_usd: float | None = None  # as far as it is known
    trials: tuple[Trial, ...] = ()  # of requests that were only tried
    spent: bool = False  # whether a budget ended it before all was asked
    saved: tuple[Planned, ...] = ()  # what nobody had to be asked
    decisions: Mapping[str, Decisions] = field(default_factory=dict)  # by split


@dataclass
class NotInstalled:
    """An engine that cannot say which answers are its own yet: none that is stored is."""

    engine: Engine
    stored: bool = True

    def signature(self) -> Mapping[str, Any]:
        return {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)


@dataclass
class Asking:
    """Asks judges, of which one at a time has its model in memory."""

    folder: RunFolder
    engines: Engines
    store: Store
    watch: ProgressListener
    budget_usd: float | None = None
    spent_usd: float = 0.0
    runner: Runner = LOCAL
    again: bool = False  # asks also where a stored answer cannot be used
    keep_going: bool = False  # where none can

    def engine(self, who: str) -> Engine:
        """Who answers for a judge; another one's model is freed first."""
        engine = self.engines.use(who)
        if not engine.stored or abstains(engine.signature()):
            raise JudgeError(
                f"judge {who!r}: engine {self.engines.choices[who].kind!r} is not a model, or "
                "keeps no answers: name one with a model that sees images"
            )
        check_sees_images(engine, f"judge {who!r}")
        if self.budget_usd is not None and None in prices_of(engine):
            raise JudgeError(
                f"judge {who!r} has no known price, so that no budget can be kept: give its engine "
                "usd_per_million_prompt_tokens and usd_per_million_completion_tokens"
            )
        return engine

    def plan(self, question: JudgeTask) -> Planned:
        """What a judge would be asked, and about what it would cost; nobody is asked."""
        engine: Engine
        try:
            engine = self.engine(question.who)
        except MissingExtraError as error:  # it costs the same before anything is installed for it
            self.watch.noticed(f"judge {question.who!r}: {error}")
            engine = NotInstalled(self.engines.use(question.who))
        planned = plan(question.stage, question.rows, engine, self.store, again=self.again)
        expected = expected_calls(engine, planned)
        return Planned(question.who, question.rubric, planned, expected)

    def begin(self, judges: Iterable[str]) -> None:
        """Makes sure that all can be asked, before anything is spent."""
        for who in judges:
            if not isinstance(self.engines.use(who), PooledEngine):
                check_installed(self.engines.choices[who].kind, f"judge {who!r}")
        self.folder.enter()

    @property
    def is_spent(self) -> bool:
        return self.budget_usd is not None and self.spent_usd >= self.budget_usd

    def stored(self, question: JudgeTask) -> StageResult:
        """What is stored of what a judge is asked; nobody is asked."""
        stage, engine = question.stage, self.engine(question.who)
        return run_stage(stage, question.rows, engine=engine, store=self.store, offline=True)

    def ask(self, question: JudgeTask) -> Answered:
        """Asks a judge what is not stored, and reads all that is."""
        engine, label = self.engine(question.who), question.label
        stage, rows, so_far, stopped = question.stage, question.rows, FillStats(), None
        asked = plan(stage, rows, engine, self.store, again=self.again)
        logger.info("judge %s: %d calls to make", label, asked.calls, extra=TOLD)
        self.watch.started(label, asked.calls, "" if question.part else asked)

        def progress(stats: FillStats) -> None:
            nonlocal so_far
            so_far = stats
            self.watch.advanced(label, stats.calls, self.runner.told(stats))

        def enough(stats: FillStats) -> bool:
            if self.budget_usd is None or prices_of(engine) == (0.0, 0.0):
                return False
            return self.spent_usd + _spent_usd(stats, engine) >= self.budget_usd

        how: Any = {"again": self.again, "keep_going": self.keep_going, "whole": question.whole}
        try:
            so_far = fill(stage, rows, engine, self.store, progress=progress, enough=enough, **how)
        except UnusableAnswersError as error:  # nor would another judge make up for it
            raise UnusableAnswersError(f"{label}: {error}") from None
        except EngineError as error:
            stopped = f"{label}: {error}"
        self.spent_usd += _spent_usd(so_far, engine)
        result = self.stored(question)
        result.stats.stage, result.stats.fill = label, so_far
        result.stats.seconds += so_far.seconds
        logger.info("judge %s", result.stats, extra=TOLD)
        self.watch.finished(result)
        return self.answered(question, arrow_rows(result.dataset), so_far, stopped)

    def answered(
        self, question: JudgeTask, found: pa.Table, so_far: FillStats, stopped: str | None
    ) -> Answered:
        engine = self.engine(question.who)
        answers = answers_of(engine, self.store)
        return Answered(
            question.who,
            question.rubric,
            found.filter(pc.not_equal(found["outcome"], Failed.NOT_ANSWERED.value)),
            question.stage.answered_by(answers).digest(),
            Counter(found["outcome"].to_pylist()),
            so_far,
            stopped,
            unpriced=bool(so_far.calls) and so_far.cost_usd is None and None in prices_of(engine),
        )


def _spent_usd(stats: FillStats, engine: Engine) -> float:
    """What calls cost; what no answer states is counted at the list price, without a cache."""
    if stats.cost_usd is not None:
        return stats.cost_usd
    prompt, completion = (price or 0.0 for price in prices_of(engine))
    return (stats.usage.prompt * prompt + stats.usage.completion * completion) / MILLION


def alone_in(root: Path) -> AbstractContextManager[None]:
    """Keeps other processes from writing what judges say."""
    busy = RunError(
        f"another process is judging in {str(root)!r}: wait for it, or choose another folder with "
        "--runs"
    )
    return held(root / LOCK, busy)


@contextmanager
def asking_in(
    folder: RunFolder,
    engines: Mapping[str, EngineChoice],
    budget_usd: float | None,
    watch: ProgressListener | None,
    runner: RunnerOptions = HERE,
    *,
    again: bool = False,
    keep_going: bool = False,
    store: Store | None = None,
) -> Iterator[Asking]:
    """What asks judges in a run's folder, with its store open and other processes kept out."""
    lock = alone_in(folder.root)
    watch = watch or NullProgress()
    place = runner_of(runner, folder.root, watch)
    with (
        lock,
        place,
        Engines(engines, place.engine) as loaded,
        closing(folder.store() if store is None else store) as kept,
    ):
        how: Any = {"runner": place, "again": again, "keep_going": keep_going}
        asking = Asking(folder, loaded, kept, watch, budget_usd, **how)
        for who in engines:  # what is wrong with one is said before any is asked
            with suppress(MissingExtraError):  # a plan does without, and asking looks for itself
                asking.engine(who)
        yield asking


def ask_judges(
    asking: Asking,
    questions: Sequence[JudgeTask],
    left_out: Mapping[Reason, int],
    write: Callable[[Answered, Collection[str]], Path],
    samples: Collection[str],
) -> JudgingResult:
    """Asks all questions, and writes down what was answered to each as soon as it is done."""
    asking.begin(question.who for question in questions)
    path, answered = None, list[Answered]()
    for question in questions:
        answered.append(asking.ask(question))
        path = write(answered[-1], samples)
    return result_of(asking, path, answered, left_out)


def try_judges(asking: Asking, questions: Sequence[JudgeTask], count: int) -> JudgingResult:
    """Sends some requests, of each question in turn, and keeps nothing of them."""
    by_question = [
        first_requests(one.stage, one.rows, asking.engine(one.who), count) for one in questions
    ]
    in_turn = (
        (number, requests[at])
        for at in range(count)
        for number, requests in enumerate(by_question)
        if at < len(requests)
    )
    chosen = sorted(islice(in_turn, count), key=itemgetter(0))
    if not chosen:
        raise JudgeError(
            f"there is nothing to ask in {str(asking.folder.root)!r}: expected outputs of samples "
            "of the benchmark, which `echo-hf generate` makes"
        )
    trials = []
    for number, request in chosen:
        one = questions[number]
        trials.append(send_trial(one.stage, request, asking.engine(one.who), one.label))
    return JudgingResult(None, trials=tuple(trials))


def result_of(
    asking: Asking,
    path: Path | None,
    answered: Sequence[Answered],
    left_out: Mapping[Reason, int],
    **more: Any,
) -> JudgingResult:
    """What became of a run, unless a judge broke down in it."""
    stopped = [one.stopped for one in answered if one.stopped]
    if stopped:
        raise JudgeError("; ".join(stopped))
    costs = [one.fill.cost_usd for one in answered if one.fill.cost_usd is not None]
    unasked = any(one.outcomes.get(Failed.NOT_ANSWERED) for one in answered)
    return JudgingResult(
        path,
        answered=tuple(answered),
        left_out=left_out,
        cost_usd=sum(costs) if costs else None,
        spent=asking.is_spent and unasked,
        **more,
    )


def write_answers(table: Table, root: Path, answered: Answered, samples: Collection[str]) -> Path:
    """Writes answers into a run's table, in place of those of the same judge to the same question.

    Rows of other judges, of other rubrics, and about samples that were not asked about stay; of
    the judge's own those that another prompt or model gave do not.
    """
    asked = {"judge": answered.who, "rubric": answered.rubric}
    own = {name: value for name, value in asked.items() if name in table.columns}

    def stays(row: Mapping[str, Any]) -> bool:
        if any(row[name] != value for name, value in own.items()):
            return True
        return row["sample_id"] not in samples and (not own or _digest(row) == answered.digest)

    before = read_table(root, table) or table.empty()
    kept = before.filter(pa.array([stays(row) for row in before.to_pylist()], pa.bool_()))
    new = answered.rows.select(list(table.columns)).cast(table.schema)
    return write_table(table, root, kept, new)


def write_table(table: Table, root: Path, *parts: pa.Table) -> Path:
    merged = pa.concat_tables(parts).sort_by([(name, "ascending") for name in table.key])
    path = root / f"{table.name}.parquet"
    with replaced_file(path) as partial_file:
        pq.write_table(merged, partial_file)
    return path


def _digest(row: Mapping[str, Any]) -> Any:
    try:
        return json.loads(row["provenance"])[STAGE]["digest"]
    except (ValueError, TypeError, KeyError):
        return None  # made elsewhere


write_ratings = partial(write_answers, RATINGS)
write_comparisons = partial(write_answers, COMPARISONS)
write_applicability = partial(write_answers, APPLICABILITY)
