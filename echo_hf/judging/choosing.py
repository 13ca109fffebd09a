"""`echo-hf judge --pairwise`: have judges choose between two outputs, evenly or until decided."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Unpack

import numpy as np
import pyarrow as pa

from echo_hf.config.evaluation import EvaluationBase, JudgeConfig
from echo_hf.errors import JudgeError
from echo_hf.judging import judge as judging
from echo_hf.judging.rate import OutputsToRate
from echo_hf.judging.session import JudgingResult, JudgingSession, ask_judges, write_comparisons
from echo_hf.judging.stopping import RoundProgress, Rounds
from echo_hf.scores.choices import choice_decisions
from echo_hf.scores.pairwise_agreement import PAIR
from echo_hf.scores.sequential import ALPHA, Decisions, Family, get_pair_level
from echo_hf.systems.evaluation_run import EvaluationRun, RunOrConfig

BATCH_SAMPLES = 10  # of 5 to 50, 10 took the fewest choices; a pair is decided by 25 at the least


class PairProgress(RoundProgress):
    """The state of a split of which outputs are compared: where each pair's choices may end."""

    key = tuple(PAIR)
    advice = "run `echo-hf generate` for another system"

    def __init__(self, split: str, to_rate: OutputsToRate, alpha: float, family: Family) -> None:
        super().__init__(split, to_rate, alpha, family)
        self.stop_at = dict.fromkeys(self.pairs, len(self.samples))

    def name_keys(self, sample: str, subject: tuple[str, str]) -> tuple[str, ...]:
        return sample, *subject

    def update(self, rows: pa.Table, batch: int) -> None:
        self.done = min(self.done + batch, len(self.samples))
        decisions = choice_decisions(self.select_rows(rows), alpha=self.level, family="pair")
        decided = {tuple(sorted(pair)) for pair in decisions.decided}
        self.undecided = np.array([pair not in decided for pair in self.stop_at])
        for pair, end in self.stop_at.items():
            if pair in decided:
                self.stop_at[pair] = min(end, self.done)

    def decide(self, rows: pa.Table) -> Decisions:
        return choice_decisions(self.select_rows(rows), **self.options)

    def describe_subjects(self) -> str:
        return f"{len(self.subjects)} pairs"


def asks_until_decided(config: EvaluationBase, budget_usd: float | None) -> bool:
    """Return whether a budget goes to pairs that are not decided: only where they are the board."""
    return config.board == "pairwise" and budget_usd is not None


def compare_all(judges: Sequence[JudgeConfig]) -> list[JudgeConfig]:
    """Return the judges, each comparing every pair."""
    whole = [judge.pairwise.model_copy(update={"share": 1.0}) for judge in judges]
    return [
        judge.model_copy(update={"pairwise": pairs})
        for judge, pairs in zip(judges, whole, strict=True)
    ]


def judge_pairs_for_board(
    config: RunOrConfig,
    *,
    runs: Path | str | None = None,
    judges: Sequence[str] | None = None,
    limit: int | None = None,
    until_decided: bool = False,
    alpha: float = ALPHA,
    family: Family = "bonferroni",
    batch: int = BATCH_SAMPLES,
    **limits: Unpack[judging.AskOptions],
) -> JudgingResult:
    """Let judges choose between two outputs, evenly or until pairs are decided.

    Each judge chooses on its share of the pairs. Until pairs are decided, and where the board is of
    pairs and there is a budget, all choose on samples in a drawn order, a batch at a time: calls go
    evenly to the pairs that are not decided yet (`echo_hf.scores.choice_decisions`), both orders
    together. Stored answers are not asked for again: a stopped run goes on to the same decisions.
    """
    run = EvaluationRun.from_config(config, runs)
    is_adaptive = until_decided or asks_until_decided(run.config, limits.get("budget_usd"))
    if not is_adaptive or limits.get("tries"):
        return judging.judge_pairs(run, judges=judges, limit=limit, **limits)
    get_pair_level(alpha, family, 1)
    if batch < 1:
        raise JudgeError(f"batch is {batch!r}: expected at least 1 sample, such as {BATCH_SAMPLES}")
    chosen = compare_all(judging.choose_judges(run.config, judges, "compare"))
    run.prepare()
    to_rate = judging.read_outputs_to_rate(run, limit)
    build = partial(judging.pairwise_questions, run.config, chosen, to_rate)
    if limits.get("dry_run"):
        engines = judging.engines_of(chosen)
        return judging.run_judges(run, engines, build, write_comparisons, to_rate, **limits)
    rounds = plan_rounds(run, chosen, to_rate, alpha, family, batch)
    return rounds.ask(build, write_comparisons, **limits)


def plan_rounds(
    run: EvaluationRun,
    judges: Sequence[JudgeConfig],
    to_rate: OutputsToRate,
    alpha: float = ALPHA,
    family: Family = "bonferroni",
    batch: int = BATCH_SAMPLES,
) -> Rounds:
    splits = dict.fromkeys(task.split for task in to_rate.tasks)
    progress_list = [PairProgress(split, to_rate, alpha, family) for split in splits]
    return Rounds(run, judges, to_rate, PairProgress, progress_list, batch)


def ask_pairs(
    session: JudgingSession,
    run: EvaluationRun,
    judges: Sequence[JudgeConfig],
    to_rate: OutputsToRate,
    sent: judging.SentImages,
) -> JudgingResult:
    """Have judges choose in a session that is open already, evenly or within its budget."""
    chosen = compare_all(judges)
    rounds = plan_rounds(run, chosen, to_rate)
    is_adaptive = asks_until_decided(run.config, session.budget_usd)
    if is_adaptive and any(progress.subjects for progress in rounds.progress_list):
        build = partial(judging.pairwise_questions, run.config, chosen, to_rate)
        return rounds.ask_in(session, build, write_comparisons)
    questions = [*judging.pairwise_questions(run.config, judges, to_rate, sent)]
    samples = {task.sample_id for task in to_rate.tasks}
    return ask_judges(session, questions, {}, write_comparisons, samples)
