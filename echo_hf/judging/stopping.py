"""`echo-hf judge --until decided`: ask judges in batches, about fewer and fewer systems."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from echo_hf._infra.text import clean
from echo_hf.config.evaluation import JudgeConfig
from echo_hf.config.rubrics import OVERALL
from echo_hf.engines.base import Failed
from echo_hf.errors import JudgeError
from echo_hf.judging import judge as judging
from echo_hf.judging.rate import OutputsToRate, compute_random_key
from echo_hf.judging.session import (
    AskPlan,
    JudgeRows,
    JudgeTask,
    JudgingResult,
    JudgingSession,
    ask_judges,
    build_result,
    write_ratings,
)
from echo_hf.pipeline.batch_inference import FillStats
from echo_hf.pipeline.progress import ALREADY_REPORTED
from echo_hf.scores.rating_table import Unrated
from echo_hf.scores.sequential import (
    ALPHA,
    Decisions,
    Family,
    compute_p_values,
    decisions,
    find_needed_systems,
    get_pair_level,
)
from echo_hf.scores.votes import ProtocolName, count_votes, list_pairs
from echo_hf.systems.evaluation_run import EvaluationRun, RunOrConfig
from echo_hf.tables import Outcome, arrow_rows

logger = logging.getLogger(__name__)
ORDER_SEED = 0
BATCH_SAMPLES = 50
Keys = set[tuple[str, ...]]


class RoundProgress(ABC):
    """The state of a split that is asked about in rounds, in an order of samples that is drawn."""

    key: ClassVar[tuple[str, ...]]  # columns that tell what is asked about apart

    advice: ClassVar[str]  # for a run of which no two systems can be told apart

    def __init__(self, split: str, to_rate: OutputsToRate, alpha: float, family: Family) -> None:
        samples = [task.sample_id for task in to_rate.tasks if task.split == split]
        samples.sort(key=lambda name: compute_random_key(ORDER_SEED, name))
        keys = list[tuple[str, str]]()
        for name in samples:
            keys += dict.fromkeys((name, row["system"]) for row in to_rate.outputs.get(name, ()))
        known, systems = set(keys), sorted({system for _, system in keys})
        has_output = np.zeros((len(systems), len(samples)), bool)
        for number, system in enumerate(systems):
            has_output[number] = [(name, system) in known for name in samples]
        # Only pairs of systems with an output for the same sample are to be decided.
        self.pairs = [
            (systems[first], systems[second])
            for first, second in zip(*list_pairs(len(systems)), strict=True)
            if (has_output[first] & has_output[second]).any()
        ]
        self.split, self.samples, self.has_output, self.keys = split, samples, has_output, keys
        self.systems = systems
        self.options: Any = {"alpha": alpha, "family": family}
        self.level = get_pair_level(alpha, family, len(self.pairs))
        self.done = 0  # samples that all judges were asked about
        self.undecided = np.ones(len(self.pairs), dtype=bool)
        self.stop_at = dict[Any, int]()  # of each subject, an index into samples

    @abstractmethod
    def update(self, rows: pa.Table, batch: int) -> None:
        """Decide from all rows so far what need not be asked about any more."""

    @abstractmethod
    def decide(self, rows: pa.Table) -> Decisions: ...

    @abstractmethod
    def name_keys(self, sample: str, subject: Any) -> tuple[str, ...]: ...

    @property
    def subjects(self) -> list[Any]:
        """Return the systems, or pairs, that judges are asked about in the next batch."""
        return [name for name, end in self.stop_at.items() if end > self.done]

    def select_batch(self, batch: int) -> Keys:
        samples = self.samples[self.done : self.done + batch]
        return {self.name_keys(sample, name) for sample in samples for name in self.subjects}

    @property
    def skipped(self) -> Keys:
        """Return what need not be asked about."""
        ends = self.stop_at.items()
        return {self.name_keys(sample, name) for name, end in ends for sample in self.samples[end:]}

    def select_rows(self, rows: pa.Table) -> pa.Table:
        return rows.filter(pc.is_in(rows["sample_id"], pa.array(self.samples, pa.string())))

    def __str__(self) -> str:
        decided = f"{(~self.undecided).sum()} of {len(self.undecided)} pairs decided"
        outlook = f"going on with {self.describe_subjects()}" if self.subjects else "done"
        return f"{self.split}: {self.done:,} samples, {decided}; {outlook}"

    def describe_subjects(self) -> str:
        return ", ".join(map(clean, self.subjects))


class SplitProgress(RoundProgress):
    """The state of a split of which outputs are rated: where each system's ratings may end."""

    key = ("sample_id", "system")
    advice = "leave out --until to rate what is there"

    def __init__(
        self,
        split: str,
        to_rate: OutputsToRate,
        alpha: float,
        family: Family,
        protocol: ProtocolName,
    ) -> None:
        super().__init__(split, to_rate, alpha, family)
        names = ("sample_id", "system", "outcome")
        rows = [dict(zip(names, (*key, Outcome.OK.value), strict=True)) for key in self.keys]
        self.outputs = pa.Table.from_pylist(rows)
        self.options["protocol"] = protocol
        self.undecided = np.ones(len(list_pairs(len(self.systems))[0]), dtype=bool)
        self.stop_at = dict.fromkeys(self.systems, len(self.samples))
        self._update_stops()

    def name_keys(self, sample: str, subject: str) -> tuple[str, ...]:
        return sample, subject

    def update(self, rows: pa.Table, batch: int) -> None:
        self.done = min(self.done + batch, len(self.samples))
        protocol = self.options["protocol"]
        verdicts = count_votes(self.select_rows(rows), self.outputs, protocol=protocol).verdicts
        self.undecided = compute_p_values(verdicts / 2) > self.level
        self._update_stops()

    def decide(self, rows: pa.Table) -> Decisions:
        return decisions(self.select_rows(rows), self.outputs, **self.options)

    def _update_stops(self) -> None:
        still_needed = find_needed_systems(self.undecided, self.has_output[:, self.done :])
        for name, is_needed in zip(self.stop_at, still_needed, strict=True):
            if not is_needed:
                self.stop_at[name] = min(self.stop_at[name], self.done)


def judge_until_decided(
    config: RunOrConfig,
    *,
    runs: Path | str | None = None,
    judges: Sequence[str] | None = None,
    limit: int | None = None,
    alpha: float = ALPHA,
    family: Family = "bonferroni",
    batch: int = BATCH_SAMPLES,
    **limits: Unpack[judging.AskOptions],
) -> JudgingResult:
    """Let judges rate outputs until each two systems are told apart, or no sample is left.

    Samples come in a drawn order, a batch at a time. After each batch that all judges have rated,
    a system is asked about no more when each of its pairs is decided (`echo_hf.scores.decisions`).
    A stopped run goes on to the same decisions, since all answers are stored.
    """
    run = EvaluationRun.from_config(config, runs)
    config = run.config
    get_pair_level(alpha, family, 1)
    if batch < 1:
        raise JudgeError(f"batch is {batch!r}: expected at least 1 sample, such as {BATCH_SAMPLES}")
    chosen = [judge for judge in judging.choose_judges(config, judges) if OVERALL in judge.rubrics]
    if sharing := [judge.name for judge in chosen if judge.share < 1]:
        raise JudgeError(
            f"judge {sharing[0]!r} rates a part of the samples, and --until decided asks all "
            "judges about each: leave out its share, or --until"
        )
    if limits.get("dry_run"):
        return judging.judge(run, judges=judges, rubrics=[OVERALL], limit=limit, **limits)
    if not chosen:
        raise JudgeError(f"none of the judges rates by {OVERALL!r}, by which systems are compared")
    run.prepare()
    to_rate = judging.read_outputs_to_rate(run, limit)
    progress_list = [
        SplitProgress(split, to_rate, alpha, family, config.protocol)
        for split in dict.fromkeys(task.split for task in to_rate.tasks)
    ]

    def build_questions(sent: judging.SentImages) -> Iterator[JudgeTask]:
        return judging.rating_questions(config, chosen, [OVERALL], to_rate, None, sent)

    def ask_parts(session: JudgingSession) -> Sequence[JudgeRows]:
        """Ask about all where systems of several releases compare."""
        beside = judging.read_parts_to_rate(run, limit)
        each = (judging.part_questions(config, judge, [OVERALL], beside) for judge in chosen)
        about = list(chain.from_iterable(each))
        answered = ask_judges(session, about, {}, write_ratings, ()).answered
        run.write_carried()
        return answered

    rounds = Rounds(run, chosen, to_rate, SplitProgress, progress_list, batch)
    return rounds.ask(build_questions, write_ratings, ask_parts, **limits)


@dataclass(frozen=True)
class Rounds:
    """Rounds in which all judges are asked about the same samples, until all is decided."""

    run: EvaluationRun
    judges: Sequence[JudgeConfig]
    to_rate: OutputsToRate
    kind: type[RoundProgress]
    progress_list: Sequence[RoundProgress]
    batch: int

    def ask(
        self,
        build_questions: Callable[[judging.SentImages], Iterable[JudgeTask]],
        write: Callable[[Path, JudgeRows, Collection[str]], Path],
        ask_more: Callable[[JudgingSession], Sequence[JudgeRows]] | None = None,
        **limits: Unpack[judging.AskOptions],
    ) -> JudgingResult:
        """Ask, and write down all stored answers, with what needs none as `not_needed`."""
        if not any(progress.subjects for progress in self.progress_list):
            raise JudgeError(
                f"no two systems have outputs for the same sample in {str(self.run.place.root)!r}: "
                f"expected two or more to tell apart; {self.kind.advice}"
            )
        limits.pop("tries", None)
        engines = judging.engines_of(self.judges)
        with judging.open_run_session(self.run, engines, **limits) as session:
            return self.ask_in(session, build_questions, write, ask_more)

    def ask_in(
        self,
        session: JudgingSession,
        build_questions: Callable[[judging.SentImages], Iterable[JudgeTask]],
        write: Callable[[Path, JudgeRows, Collection[str]], Path],
        ask_more: Callable[[JudgingSession], Sequence[JudgeRows]] | None = None,
    ) -> JudgingResult:
        """Ask in a session that is open already."""
        progress_list = self.progress_list
        questions = [*build_questions(judging.SentImages(session.folder.images))]
        session.prepare_judges(judging.engines_of(self.judges))
        parts = _ask_in_rounds(session, questions, progress_list, self.batch)
        key, skipped = progress_list[0].key, Keys()
        skipped = skipped.union(*(progress.skipped for progress in progress_list))
        samples = {task.sample_id for task in self.to_rate.tasks}
        judged, saved_plans, path = list[JudgeRows](), list[AskPlan](), None
        for question in questions:
            judge_parts = parts.get(question.judge, ())
            judged.append(_build_final_table(session, question, key, skipped, judge_parts))
            saved_plans.append(session.plan(_restrict(question, key, skipped)))
            path = write(session.folder.root, judged[-1], samples)
        rows = pa.concat_tables([table.rows for table in judged])
        if ask_more is not None and not any(table.stopped for table in judged):
            judged += ask_more(session)
        decided = {
            progress.split: progress.decide(rows)
            for progress in progress_list
            if len(progress.undecided)
        }
        fields = {"saved": tuple(saved_plans), "decisions": decided}
        return build_result(session, path, judged, self.to_rate.left_out, **fields)


def _ask_in_rounds(
    session: JudgingSession,
    questions: Iterable[JudgeTask],
    progress_list: Sequence[RoundProgress],
    batch: int,
) -> dict[str, list[JudgeRows]]:
    """Ask all judges about a batch and decide, until all is decided, or judges or budget end."""
    order, parts = [*questions], dict[str, list[JudgeRows]]()
    key = progress_list[0].key
    while open_splits := [progress for progress in progress_list if progress.subjects]:
        keys = Keys().union(*(progress.select_batch(batch) for progress in open_splits))
        for question in order:
            part = f"from sample {open_splits[0].done + 1:,}"
            judged = session.ask(_restrict(question, key, keys, part))
            parts.setdefault(question.judge, []).append(judged)
            if judged.stopped or (session.is_spent and judged.outcomes.get(Failed.NOT_ANSWERED)):
                return parts  # a batch decides nothing until all judges have rated it
        rows = pa.concat_tables([table.rows for tables in parts.values() for table in tables])
        for progress in open_splits:
            progress.update(rows, batch)
            logger.info("judge %s", progress, extra=ALREADY_REPORTED)
            session.watch.report_result(str(progress))
        order.reverse()  # begin with the judge whose model is in memory
    return parts


def _restrict(question: JudgeTask, key: Sequence[str], keys: Keys, part: str = "") -> JudgeTask:
    columns = arrow_rows(question.rows, list(key)).to_pydict()
    rows = zip(*(columns[name] for name in key), strict=True)
    indices = [number for number, row in enumerate(rows) if row in keys]
    return replace(question, rows=question.rows.select(indices), part=part, whole=question.rows)


def _build_final_table(
    session: JudgingSession,
    question: JudgeTask,
    key: Sequence[str],
    skipped: Keys,
    parts: Sequence[JudgeRows],
) -> JudgeRows:
    """Return all stored answers of a judge, and mark what needs none."""
    rows = arrow_rows(session.read_stored(question).dataset)
    keys = zip(*(rows[name].to_pylist() for name in key), strict=True)
    absent = pc.equal(rows["outcome"], Failed.NOT_ANSWERED.value)
    needless = pc.and_(absent, pa.array([row in skipped for row in keys], pa.bool_()))
    outcomes = pc.if_else(needless, Unrated.NOT_NEEDED.value, rows["outcome"])
    index = rows.column_names.index("outcome")
    rows = rows.set_column(index, rows.schema.field(index), outcomes)
    stopped = next((part.stopped for part in parts if part.stopped), None)
    filled = sum((part.fill for part in parts), FillStats())
    return session.build_judged_table(question, rows, filled, stopped)
