"""`echo-hf judge --until decided`: ask judges in batches, about fewer and fewer systems."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from echo_hf._infra.text import clean
from echo_hf.config.rubrics import OVERALL
from echo_hf.engines.base import Failed
from echo_hf.engines.memory import check_gpu_memory
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
    open_session,
    write_ratings,
)
from echo_hf.pipeline.batch_inference import FillStats
from echo_hf.pipeline.progress import ALREADY_REPORTED
from echo_hf.scores.rating_table import Unrated
from echo_hf.scores.sequential import (
    ALPHA,
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
OutputKeys = set[tuple[str, str]]  # sample and system


class SplitProgress:
    """The state of a split: its samples in drawn order, and where each system's ratings may end."""

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
        first, second = list_pairs(len(systems))
        pairs = int((has_output[first] & has_output[second]).any(axis=1).sum()) if systems else 0
        names = ("sample_id", "system", "outcome")
        rows = [dict(zip(names, (*key, Outcome.OK.value), strict=True)) for key in keys]
        self.split, self.samples, self.has_output = split, samples, has_output
        self.done = 0  # samples that all judges have rated
        self.outputs, self.level = pa.Table.from_pylist(rows), get_pair_level(alpha, family, pairs)
        self.undecided = np.ones(len(first), dtype=bool)
        self.stop_at = dict.fromkeys(systems, len(samples))  # an index into samples
        self._update_stops()

    @property
    def systems(self) -> list[str]:
        """Return the systems that judges are asked about in the next batch."""
        return [name for name, end in self.stop_at.items() if end > self.done]

    def select_batch(self, batch: int) -> OutputKeys:
        samples = self.samples[self.done : self.done + batch]
        return {(sample, system) for sample in samples for system in self.systems}

    @property
    def skipped_outputs(self) -> OutputKeys:
        """Return the outputs that need no rating."""
        ends = self.stop_at.items()
        return {(sample, system) for system, end in ends for sample in self.samples[end:]}

    def update(self, ratings: pa.Table, batch: int, protocol: ProtocolName) -> None:
        """Decide from all ratings so far which systems need no more of them."""
        self.done = min(self.done + batch, len(self.samples))
        verdicts = count_votes(self.select_rows(ratings), self.outputs, protocol=protocol).verdicts
        self.undecided = compute_p_values(verdicts / 2) > self.level
        self._update_stops()

    def select_rows(self, ratings: pa.Table) -> pa.Table:
        return ratings.filter(pc.is_in(ratings["sample_id"], pa.array(self.samples, pa.string())))

    def _update_stops(self) -> None:
        still_needed = find_needed_systems(self.undecided, self.has_output[:, self.done :])
        for name, is_needed in zip(self.stop_at, still_needed, strict=True):
            if not is_needed:
                self.stop_at[name] = min(self.stop_at[name], self.done)

    def __str__(self) -> str:
        decided = f"{(~self.undecided).sum()} of {len(self.undecided)} pairs decided"
        systems = ", ".join(map(clean, self.systems))
        outlook = f"going on with {systems}" if systems else "done"
        return f"{self.split}: {self.done:,} samples, {decided}; {outlook}"


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
    folder, engines = run.prepare(), judging.engines_of(chosen)
    to_rate, protocol = judging.read_outputs_to_rate(run, limit), config.protocol
    splits = dict.fromkeys(task.split for task in to_rate.tasks)
    progress_list = [SplitProgress(split, to_rate, alpha, family) for split in splits]
    if not any(progress.systems for progress in progress_list):
        raise JudgeError(
            f"no two systems have outputs for the same sample in {str(folder.root)!r}: expected "
            "two or more to tell apart; leave out --until to rate what is there"
        )
    if config.runner.kind == "local":
        check_gpu_memory(engines, estimates=False)
    budget, watch = limits.get("budget_usd"), limits.get("watch")
    options: Any = {name: limits.get(name, False) for name in ("again", "keep_going")}
    with open_session(folder, engines, budget, watch, config.runner, **options) as session:
        sent = judging.SentImages(folder.images)
        questions = [*judging.rating_questions(config, chosen, [OVERALL], to_rate, None, sent)]
        session.prepare_judges(engines)
        parts = _ask_in_rounds(session, questions, progress_list, batch, protocol)
        skipped = OutputKeys().union(*(progress.skipped_outputs for progress in progress_list))
        samples = {task.sample_id for task in to_rate.tasks}
        judged, saved_plans, path = list[JudgeRows](), list[AskPlan](), None
        for question in questions:
            judge_parts = parts.get(question.judge, ())
            judged.append(_build_final_table(session, question, skipped, judge_parts))
            saved_plans.append(session.plan(_restrict(question, skipped)))
            path = write_ratings(folder.root, judged[-1], samples)
        ratings = pa.concat_tables([table.rows for table in judged])
        stopped = any(table.stopped for table in judged)
        if not stopped:  # where systems of several releases compare all is rated
            beside = judging.read_parts_to_rate(run, limit)
            each = (judging.part_questions(config, judge, [OVERALL], beside) for judge in chosen)
            about = list(chain.from_iterable(each))
            judged += ask_judges(session, about, {}, write_ratings, ()).answered
            run.write_carried()
        options = {"alpha": alpha, "family": family, "protocol": protocol}
        decided = {}
        for progress in progress_list:
            if len(progress.undecided):
                own = progress.select_rows(ratings)
                decided[progress.split] = decisions(own, progress.outputs, **options)
        fields = {"saved": tuple(saved_plans), "decisions": decided}
        return build_result(session, path, judged, to_rate.left_out, **fields)


def _ask_in_rounds(
    session: JudgingSession,
    questions: Iterable[JudgeTask],
    progress_list: Sequence[SplitProgress],
    batch: int,
    protocol: ProtocolName,
) -> dict[str, list[JudgeRows]]:
    """Ask all judges about a batch and decide, until all is decided, or judges or budget end."""
    order, parts = [*questions], dict[str, list[JudgeRows]]()
    while open_splits := [progress for progress in progress_list if progress.systems]:
        keys = OutputKeys().union(*(progress.select_batch(batch) for progress in open_splits))
        for question in order:
            part = f"from sample {open_splits[0].done + 1:,}"
            judged = session.ask(_restrict(question, keys, part))
            parts.setdefault(question.judge, []).append(judged)
            if judged.stopped or (session.is_spent and judged.outcomes.get(Failed.NOT_ANSWERED)):
                return parts  # a batch decides nothing until all judges have rated it
        ratings = pa.concat_tables([table.rows for tables in parts.values() for table in tables])
        for progress in open_splits:
            progress.update(ratings, batch, protocol)
            logger.info("judge %s", progress, extra=ALREADY_REPORTED)
            session.watch.report_result(str(progress))
        order.reverse()  # begin with the judge whose model is in memory
    return parts


def _restrict(question: JudgeTask, keys: OutputKeys, part: str = "") -> JudgeTask:
    columns = arrow_rows(question.rows, ["sample_id", "system"]).to_pydict().values()
    indices = [number for number, key in enumerate(zip(*columns, strict=True)) if key in keys]
    return replace(question, rows=question.rows.select(indices), part=part, whole=question.rows)


def _build_final_table(
    session: JudgingSession, question: JudgeTask, skipped: OutputKeys, parts: Sequence[JudgeRows]
) -> JudgeRows:
    """Return all stored answers of a judge, and mark the outputs that need none."""
    rows = arrow_rows(session.read_stored(question).dataset)
    keys = zip(rows["sample_id"].to_pylist(), rows["system"].to_pylist(), strict=True)
    absent = pc.equal(rows["outcome"], Failed.NOT_ANSWERED.value)
    needless = pc.and_(absent, pa.array([key in skipped for key in keys], pa.bool_()))
    outcomes = pc.if_else(needless, Unrated.NOT_NEEDED.value, rows["outcome"])
    index = rows.column_names.index("outcome")
    rows = rows.set_column(index, rows.schema.field(index), outcomes)
    stopped = next((part.stopped for part in parts if part.stopped), None)
    filled = sum((part.fill for part in parts), FillStats())
    return session.build_judged_table(question, rows, filled, stopped)
