"""`echo-hf judge --until decided`: judges are asked in batches, about fewer and fewer systems."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from echo_hf._infra.text import plain
from echo_hf.config.evaluation import Evaluated
from echo_hf.engines.memory import check_fit
from echo_hf.errors import JudgeError
from echo_hf.judging import judge as judging
from echo_hf.judging import session
from echo_hf.judging.rate import OVERALL, ToRate, place_of
from echo_hf.judging.session import Answered, Asking, JudgeTask, JudgingResult, Planned
from echo_hf.pipeline.batch_inference import FillStats
from echo_hf.pipeline.progress import TOLD
from echo_hf.reasons import Failed, Outcome, Unrated
from echo_hf.scores.sequential import (
    ALPHA,
    Family,
    compute_p_values,
    decisions,
    find_needed_systems,
    get_pair_level,
)
from echo_hf.scores.votes import ProtocolName, count_votes, list_pairs
from echo_hf.systems.benchmark import evaluation_folder, load_evaluation
from echo_hf.tables import arrow_rows

logger = logging.getLogger(__name__)
SEED = 0
BATCH = 50
Keys = set[tuple[str, str]]  # of outputs: sample and system


class Race:
    """A split: its samples in a drawn order, and which systems judges are still asked about."""

    def __init__(self, split: str, about: ToRate, alpha: float, family: Family) -> None:
        samples = [task.sample_id for task in about.tasks if task.split == split]
        samples.sort(key=lambda name: place_of(SEED, name))
        made = [(name, one["system"]) for name in samples for one in about.outputs.get(name, ())]
        known, systems = set(made), sorted({system for _, system in made})
        there = np.array([[(name, one) in known for name in samples] for one in systems], bool)
        first, second = list_pairs(len(systems))
        pairs = int((there[first] & there[second]).any(axis=1).sum()) if systems else 0
        names = ("sample_id", "system", "outcome")
        rows = [dict(zip(names, (*key, Outcome.OK.value), strict=True)) for key in made]
        self.split, self.samples, self.there, self.done = split, samples, there, 0
        self.outputs, self.level = pa.Table.from_pylist(rows), get_pair_level(alpha, family, pairs)
        self.undecided = np.ones(len(first), dtype=bool)
        self.until = dict.fromkeys(systems, len(samples))  # nobody is asked about later ones
        self._leave()

    @property
    def systems(self) -> list[str]:
        """Those that judges are asked about in the next batch."""
        return [name for name, end in self.until.items() if end > self.done]

    def next(self, batch: int) -> Keys:
        some = self.samples[self.done : self.done + batch]
        return {(sample, system) for sample in some for system in self.systems}

    @property
    def skipped(self) -> Keys:
        """What nobody has to be asked about."""
        ends = self.until.items()
        return {(sample, system) for system, end in ends for sample in self.samples[end:]}

    def look(self, rated: pa.Table, batch: int, protocol: ProtocolName) -> None:
        """Decides from all ratings so far who is asked no more."""
        self.done = min(self.done + batch, len(self.samples))
        voted = count_votes(self.own(rated), self.outputs, protocol=protocol).verdicts
        self.undecided = compute_p_values(voted / 2) > self.level
        self._leave()

    def own(self, rated: pa.Table) -> pa.Table:
        return rated.filter(pc.is_in(rated["sample_id"], pa.array(self.samples, pa.string())))

    def _leave(self) -> None:
        stay = find_needed_systems(self.undecided, self.there[:, self.done :])
        for name, is_needed in zip(self.until, stay, strict=True):
            if not is_needed:
                self.until[name] = min(self.until[name], self.done)

    def __str__(self) -> str:
        decided = f"{(~self.undecided).sum()} of {len(self.undecided)} pairs decided"
        left = f"going on with {', '.join(map(plain, self.systems))}" if self.systems else "done"
        return f"{self.split}: {self.done:,} samples, {decided}; {left}"


def judge_until_decided(
    config: Evaluated | Path | str,
    *,
    runs: Path | str | None = None,
    judges: Sequence[str] | None = None,
    limit: int | None = None,
    alpha: float = ALPHA,
    family: Family = "bonferroni",
    batch: int = BATCH,
    **limits: Unpack[judging.Asked],
) -> JudgingResult:
    """Has judges rate outputs until each two systems are told apart, or no sample is left.

    Samples come in a drawn order, a batch at a time. After each batch that all judges have rated,
    a system is asked about no more when each of its pairs is decided (`echo_hf.scores.decisions`).
    A stopped run goes on to the same decisions, since all answers are stored.
    """
    config = load_evaluation(config)
    get_pair_level(alpha, family, 1)
    if batch < 1:
        raise JudgeError(f"batch is {batch!r}: expected at least 1 sample, such as {BATCH}")
    chosen = [one for one in judging.chosen_judges(config, judges) if OVERALL in one.rubrics]
    if sharing := [one.name for one in chosen if one.share < 1]:
        raise JudgeError(
            f"judge {sharing[0]!r} rates a part of the samples, and --until decided asks all "
            "judges about each: leave out its share, or --until"
        )
    if limits.get("dry_run"):
        return judging.judge(
            config, runs=runs, judges=judges, rubrics=[OVERALL], limit=limit, **limits
        )
    if not chosen:
        raise JudgeError(f"none of the judges rates by {OVERALL!r}, by which systems are compared")
    folder, engines = evaluation_folder(config, runs), judging.engines_of(chosen)
    about, protocol = judging.rated_outputs(config, folder, limit), config.protocol
    splits = dict.fromkeys(task.split for task in about.tasks)
    races = [Race(split, about, alpha, family) for split in splits]
    if not any(race.systems for race in races):
        raise JudgeError(
            f"no two systems have outputs for the same sample in {str(folder.root)!r}: expected "
            "two or more to tell apart; leave out --until to rate what is there"
        )
    if config.runner.kind == "local":
        check_fit(engines, estimates=False)
    budget, watch = limits.get("budget_usd"), limits.get("watch")
    how: Any = {name: limits.get(name, False) for name in ("again", "keep_going")}
    with session.asking_in(folder, engines, budget, watch, config.runner, **how) as asking:
        shown = judging.SentImages(folder.images)
        questions = [*judging.rating_questions(config, chosen, [OVERALL], about, None, shown)]
        asking.begin(engines)
        parts = _rounds(asking, questions, races, batch, protocol)
        skipped = Keys().union(*(race.skipped for race in races))
        answered, saved, path = list[Answered](), list[Planned](), None
        for one in questions:
            answered.append(_answered(asking, one, skipped, parts.get(one.who, ())))
            saved.append(asking.plan(_only(one, skipped)))
            samples = {task.sample_id for task in about.tasks}
            path = session.write_ratings(folder.root, answered[-1], samples)
        rated = pa.concat_tables([one.rows for one in answered])
        how = {"alpha": alpha, "family": family, "protocol": protocol}
        told = [race for race in races if len(race.undecided)]
        found = {race.split: decisions(race.own(rated), race.outputs, **how) for race in told}
        more = {"saved": tuple(saved), "decisions": found}
        return session.result_of(asking, path, answered, about.left_out, **more)


def _rounds(
    asking: Asking,
    questions: Iterable[JudgeTask],
    races: Sequence[Race],
    batch: int,
    protocol: ProtocolName,
) -> dict[str, list[Answered]]:
    """Asks all judges about a batch, and decides, until all is decided, spent or broken."""
    order, parts = [*questions], dict[str, list[Answered]]()
    while on := [race for race in races if race.systems]:
        keys = Keys().union(*(race.next(batch) for race in on))
        for one in order:
            said = asking.ask(_only(one, keys, f"from sample {on[0].done + 1:,}"))
            parts.setdefault(one.who, []).append(said)
            if said.stopped or (asking.is_spent and said.outcomes.get(Failed.NOT_ANSWERED)):
                return parts  # nothing is decided from a batch that not all have rated
        rated = pa.concat_tables([one.rows for every in parts.values() for one in every])
        for race in on:
            race.look(rated, batch, protocol)
            logger.info("judge %s", race, extra=TOLD)
            asking.watch.finished(str(race))
        order.reverse()  # the judge whose model is in memory begins
    return parts


def _only(question: JudgeTask, keys: Keys, part: str = "") -> JudgeTask:
    columns = arrow_rows(question.rows, ["sample_id", "system"]).to_pydict().values()
    at = [number for number, key in enumerate(zip(*columns, strict=True)) if key in keys]
    return replace(question, rows=question.rows.select(at), part=part, whole=question.rows)


def _answered(
    asking: Asking, question: JudgeTask, skipped: Keys, parts: Sequence[Answered]
) -> Answered:
    """All that a judge has ever answered, and what nobody needs to ask it."""
    found = arrow_rows(asking.stored(question).dataset)
    keys = zip(found["sample_id"].to_pylist(), found["system"].to_pylist(), strict=True)
    absent = pc.equal(found["outcome"], Failed.NOT_ANSWERED.value)
    needless = pc.and_(absent, pa.array([key in skipped for key in keys], pa.bool_()))
    outcomes = pc.if_else(needless, Unrated.NOT_NEEDED.value, found["outcome"])
    at = found.column_names.index("outcome")
    found = found.set_column(at, found.schema.field(at), outcomes)
    stopped = next((one.stopped for one in parts if one.stopped), None)
    return asking.answered(question, found, sum((one.fill for one in parts), FillStats()), stopped)
