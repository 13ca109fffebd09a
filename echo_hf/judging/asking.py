"""Ask one judge after the other, within a budget; whatever was answered is kept at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset

from echo_hf.answers import answers_of
from echo_hf.apply import run_stage
from echo_hf.engines.base import Engine, check_installed
from echo_hf.engines.loaded import Engines
from echo_hf.engines.planner import Plan
from echo_hf.errors import EngineError, JudgeError
from echo_hf.fill_stats import FillStats
from echo_hf.filling import fill, plan
from echo_hf.reasons import Failed
from echo_hf.stage import ModelStage
from echo_hf.store import Store
from echo_hf.watch import Watcher

# An answer with its reasons, roughly: what a plan counts for one that is yet to come.
TOKENS_PER_ANSWER = 400
MILLION = 1_000_000


@dataclass(frozen=True)
class Question:
    """What one judge is asked.

    Attributes:
        who: Name of the judge, as its engine is known.
        rubric: What it is asked about.
        stage: How it is asked.
        rows: What about.
    """

    who: str
    rubric: str
    stage: ModelStage
    rows: Dataset

    @property
    def label(self) -> str:
        """What to call it in a line."""
        return f"{self.who} {self.rubric}"


@dataclass(frozen=True)
class Planned:
    """What one judge is about to be asked.

    Attributes:
        who: Name of the judge.
        rubric: What it is asked about.
        plan: Calls, tokens, pictures.
        cost_usd: What it may cost in US dollars, answers included; null where no price is known.
    """

    who: str
    rubric: str
    plan: Plan
    cost_usd: float | None


@dataclass(frozen=True)
class Answered:
    """What one judge has answered.

    Attributes:
        who: Name of the judge.
        rubric: What it was asked about.
        rows: Rows of the stage's table; those that nobody was asked about are not here.
        digest: Of all that decides such a row.
        outcomes: How many rows ended how; `not_answered` are those that are left out.
        fill: Calls, tokens, cost of this run.
        stopped: Why the engine had to be left, null when it did not.
    """

    who: str
    rubric: str
    rows: pa.Table
    digest: str
    outcomes: Mapping[str, int]
    fill: FillStats
    stopped: str | None


@dataclass
class Asking:
    """Asks judges, of which one at a time has its model in memory.

    Attributes:
        engines: Who answers, by name of the judge.
        store: Where the answers are kept.
        watch: Told of plans, calls and results.
        budget_usd: Most US dollars to spend, null for no limit.
        spent_usd: What the calls so far have cost, as far as that is known.
    """

    engines: Engines
    store: Store
    watch: Watcher
    budget_usd: float | None = None
    spent_usd: float = 0.0

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left of the budget."""
        return self.budget_usd is not None and self.spent_usd >= self.budget_usd

    def engine(self, who: str) -> Engine:
        """Who answers for a judge; another one's model is freed first.

        Args:
            who: Name of the judge.

        Returns:
            The engine; its model is loaded by the first call.

        Raises:
            JudgeError: It keeps no answers, or there is a budget and no price.
            EngineError: There is no such engine, or it does not take one of its options.
        """
        engine = self.engines.use(who)
        if not engine.stored:
            raise JudgeError(
                f"judge {who!r}: engine {type(engine).__name__!r} keeps no answers: name one with "
                "a model"
            )
        if self.budget_usd is not None and not _has_price(engine):
            raise JudgeError(
                f"judge {who!r} has no known price, so that no budget can be kept: give its engine "
                "usd_per_million_prompt_tokens and usd_per_million_completion_tokens"
            )
        return engine

    def check_installed(self, who: str) -> None:
        """Says what to install for a judge, which a plan can do without.

        Args:
            who: Name of the judge.

        Raises:
            MissingExtraError: A package of its engine is not there.
        """
        check_installed(self.engines.choices[who].kind, f"judge {who!r}")

    def plan(self, question: Question) -> Planned:
        """What a judge would be asked; nobody is asked."""
        engine = self.engine(question.who)
        planned = plan(question.stage, question.rows, engine, self.store)
        return Planned(question.who, question.rubric, planned, _cost_usd(planned, engine))

    def ask(self, question: Question) -> Answered:
        """Asks a judge what is not stored, and reads all that is.

        What stops the engine at work is told in the result.
        """
        engine = self.engine(question.who)
        self.watch.planned(question.label, plan(question.stage, question.rows, engine, self.store))
        filled, stopped = self._filled(question, engine)
        return self._read(question, engine, filled, stopped)

    def _filled(self, question: Question, engine: Engine) -> tuple[FillStats, str | None]:
        so_far = FillStats()

        def progress(stats: FillStats) -> None:
            nonlocal so_far
            so_far = stats
            self.watch.called(stats)

        stopped = None
        try:
            so_far = fill(
                question.stage,
                question.rows,
                engine,
                self.store,
                progress=progress,
                enough=lambda stats: self._is_enough(stats, engine),
            )
        except EngineError as error:
            stopped = f"{question.label}: {error}"
        self.spent_usd += _spent_usd(so_far, engine)
        return so_far, stopped

    def _is_enough(self, stats: FillStats, engine: Engine) -> bool:
        spent = self.spent_usd + _spent_usd(stats, engine)
        return self.budget_usd is not None and spent >= self.budget_usd

    def _read(
        self, question: Question, engine: Engine, filled: FillStats, stopped: str | None
    ) -> Answered:
        stage = question.stage
        result = run_stage(stage, question.rows, engine=engine, store=self.store, offline=True)
        result.stats.stage, result.stats.fill = question.label, filled
        result.stats.seconds += filled.seconds
        self.watch.finished(result)
        rows = result.dataset.with_format("arrow")[:]
        asked = pc.not_equal(rows["outcome"], Failed.NOT_ANSWERED.value)
        return Answered(
            question.who,
            question.rubric,
            rows.filter(asked),
            stage.answered_by(answers_of(engine, self.store)).digest(),
            Counter(rows["outcome"].to_pylist()),
            filled,
            stopped,
        )


def _has_price(engine: Engine) -> bool:
    """Whether calls cost what is known; an engine on this machine costs nothing."""
    return None not in _prices(engine)


def _prices(engine: Engine) -> tuple[float | None, float | None]:
    """US dollars for a million tokens of prompt and answer, null where nobody knows."""
    return (
        getattr(engine, "usd_per_million_prompt_tokens", 0.0),
        getattr(engine, "usd_per_million_completion_tokens", 0.0),
    )


def _spent_usd(stats: FillStats, engine: Engine) -> float:
    """What calls cost; what no answer states is counted at the list price, without a cache."""
    if stats.cost_usd is not None:
        return stats.cost_usd
    prompt, completion = (price or 0.0 for price in _prices(engine))
    return (stats.usage.prompt * prompt + stats.usage.completion * completion) / MILLION


def _cost_usd(planned: Plan, engine: Engine) -> float | None:
    _, completion = _prices(engine)
    if planned.cost_usd is None or completion is None:
        return None
    return planned.cost_usd + planned.calls * TOKENS_PER_ANSWER * completion / MILLION
