"""`echo-hf judge --until decided`: judges are asked in batches, about fewer and fewer systems."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from echo_hf.builder.build import RUNS
from echo_hf.config.evaluation import Evaluated
from echo_hf.config.judges import JudgeConfig
from echo_hf.engines.memory import check_fit
from echo_hf.errors import JudgeError
from echo_hf.judging import session
from echo_hf.judging.judge import (
    Limits,
    SentImages,
    check_scale,
    chosen_judges,
    engines_of,
    judge,
    rated_outputs,
    rating_question,
)
from echo_hf.judging.rate import OVERALL, TO_RATE, Row, ToRate, place_of, rows_of
from echo_hf.judging.session import Answered, Asking, JudgeTask, JudgingResult, Planned
from echo_hf.pipeline.batch_inference import FillStats
from echo_hf.reasons import Failed, Outcome, Unrated
from echo_hf.scores.rating_table import Bools
from echo_hf.scores.sequential import ALPHA, Family, decisions, level_of, needed, p_values
from echo_hf.scores.votes import Protocol, compare, pairs_of
from echo_hf.systems.base import Task
from echo_hf.systems.benchmark import evaluation_folder, load_evaluation
from echo_hf.tables import arrow_rows

SEED = 0
BATCH = 50


@dataclass
class Race:
    """A split: its samples in a drawn order, and which systems judges are still asked about."""

    split: str
    tasks: Sequence[Task]
    outputs: pa.Table
    there: Bools  # [system, sample]: whether there is an output
    level: float
    undecided: Bools
    until: dict[str, int]  # by system: nobody is asked about this sample, nor a later one
    done: int = 0

    @classmethod
    def of(cls, split: str, about: ToRate, alpha: float, family: Family) -> Self:
        tasks = [task for task in about.tasks if task.split == split]
        tasks.sort(key=lambda task: place_of(SEED, task.sample_id))
        made = [
            (task.sample_id, one) for task in tasks for one in about.outputs.get(task.sample_id, ())
        ]
        systems = sorted({one["system"] for _, one in made})
        place = {task.sample_id: at for at, task in enumerate(tasks)}
        there = np.zeros((len(systems), len(tasks)), dtype=bool)
        for sample, one in made:
            there[systems.index(one["system"]), place[sample]] = True
        first, second = pairs_of(len(systems))
        pairs = int((there[first] & there[second]).any(axis=1).sum())
        columns = {
            "sample_id": [sample for sample, _ in made],
            "system": [one["system"] for _, one in made],
            "outcome": [Outcome.OK.value] * len(made),
        }
        until, undecided = dict.fromkeys(systems, len(tasks)), np.ones(len(first), dtype=bool)
        level = level_of(alpha, family, pairs)
        race = cls(split, tasks, pa.table(columns), there, level, undecided, until)
        race._leave()
        return race

    @property
    def systems(self) -> set[str]:
        """Those that judges are asked about in the next batch."""
        return {name for name, end in self.until.items() if end > self.done}

    def look(self, rated: pa.Table, batch: int, protocol: Protocol) -> None:
        """Decides from all ratings so far who is asked no more; none for a split without any."""
        self.done = min(self.done + batch, len(self.tasks))
        voted = compare(_about(rated, self.tasks), self.outputs, protocol=protocol).verdicts
        self.undecided = p_values(voted / 2) > self.level
        self._leave()

    def _leave(self) -> None:
        stay = needed(self.undecided, self.there[:, self.done :])
        for name, is_needed in zip(self.until, stay, strict=True):
            if not is_needed:
                self.until[name] = min(self.until[name], self.done)

    def __str__(self) -> str:
        decided = f"{(~self.undecided).sum()} of {len(self.undecided)} pairs decided"
        left = f"going on with {', '.join(sorted(self.systems))}" if self.systems else "done"
        return f"{self.split}: {self.done:,} samples, {decided}; {left}"


def judge_until_decided(
    config: Evaluated | Path | str,
    *,
    runs: Path | str = RUNS,
    judges: Sequence[str] | None = None,
    limit: int | None = None,
    alpha: float = ALPHA,
    family: Family = "bonferroni",
    batch: int = BATCH,
    **limits: Unpack[Limits],
) -> JudgingResult:
    """Has judges rate outputs until each two systems are told apart, or no sample is left.

    Samples come in a drawn order, a batch at a time. After each batch that all judges have rated,
    a system is asked about no more when each of its pairs is decided (`echo_hf.scores.decisions`).
    A stopped run goes on to the same decisions, since all answers are stored.
    """
    config = config if isinstance(config, Evaluated) else load_evaluation(config)
    level_of(alpha, family, 1)
    if limits.get("dry_run"):
        return judge(config, runs=runs, judges=judges, rubrics=[OVERALL], limit=limit, **limits)
    chosen = [one for one in chosen_judges(config, judges) if OVERALL in one.rubrics]
    if not chosen:
        raise JudgeError(f"none of the judges rates by {OVERALL!r}, by which systems are compared")
    for one in chosen:
        check_scale(one, config.protocol)
    folder, engines = evaluation_folder(config, runs), engines_of(chosen)
    about = rated_outputs(config, folder, limit)
    splits = dict.fromkeys(task.split for task in about.tasks)
    races = [Race.of(split, about, alpha, family) for split in splits]
    if not any(race.systems for race in races):
        raise JudgeError(
            f"no two systems have outputs for the same sample in {str(folder.root)!r}: expected "
            "two or more to tell apart; leave out --until to rate what is there"
        )
    if config.runner.kind == "local":
        check_fit(engines, estimates=False)
    budget, watch = limits.get("budget_usd"), limits.get("watch")
    with session.asking_in(folder, engines, budget, watch, config.runner) as asking:
        asking.begin(engines)

        def question(one: JudgeConfig, part: ToRate) -> JudgeTask:
            return rating_question(one, OVERALL, config.protocol, part.rows(one, _all), shown)

        shown = SentImages(folder.images)
        parts = _rounds(asking, chosen, races, about, batch, config.protocol, question)
        skipped = {
            (task.sample_id, name)
            for race in races
            for name, end in race.until.items()
            for task in race.tasks[end:]
        }
        answered, saved, path = list[Answered](), list[Planned](), None
        for one in chosen:
            whole = question(one, about)
            answered.append(_answered(asking, whole, skipped, parts[one.name]))
            rows = (row for row in whole.rows if (row["sample_id"], row["system"]) in skipped)
            saved.append(asking.plan(replace(whole, rows=rows_of(TO_RATE, rows))))
            samples = {task.sample_id for task in about.tasks}
            path = session.write_ratings(folder.root, answered[-1], samples)
        rated = pa.concat_tables([one.rows for one in answered])
        given: Any = {"alpha": alpha, "family": family, "protocol": config.protocol}
        found = {
            race.split: decisions(_about(rated, race.tasks), race.outputs, **given)
            for race in races
            if len(race.undecided)
        }
        more = {"saved": tuple(saved), "decisions": found}
        return session.result_of(asking, path, answered, about.left_out, **more)


def _rounds(
    asking: Asking,
    judges: Sequence[JudgeConfig],
    races: Sequence[Race],
    about: ToRate,
    batch: int,
    protocol: Protocol,
    question: Callable[[JudgeConfig, ToRate], JudgeTask],
) -> dict[str, list[Answered]]:
    """Asks all judges about a batch, and decides, until all is decided, spent or broken."""
    parts: dict[str, list[Answered]] = {one.name: [] for one in judges}
    order = list(judges)
    while on := [race for race in races if race.systems]:
        outputs, tasks = dict[str, list[Row]](), list[Task]()
        for race in on:
            systems, some = race.systems, race.tasks[race.done :][:batch]
            tasks += some
            for name in (task.sample_id for task in some):
                there = about.outputs.get(name, ())
                outputs[name] = [one for one in there if one["system"] in systems]
        label = f"from sample {on[0].done + 1:,}"
        for one in order:
            answered = asking.ask(
                replace(question(one, ToRate(outputs, tuple(tasks), {})), part=label)
            )
            parts[one.name].append(answered)
            unanswered = answered.outcomes.get(Failed.NOT_ANSWERED)
            if answered.stopped or (asking.is_spent and unanswered):
                return parts  # nothing is decided from a batch that not all have rated
        rated = pa.concat_tables([one.rows for every in parts.values() for one in every])
        for race in on:
            race.look(rated, batch, protocol)
            asking.watch.finished(str(race))
        order.reverse()  # the judge whose model is in memory begins
    return parts


def _answered(
    asking: Asking, question: JudgeTask, skipped: Collection[Any], parts: Sequence[Answered]
) -> Answered:
    """All that a judge has ever answered, and what nobody needs to ask it."""
    found = arrow_rows(asking.stored(question).dataset)
    columns = (found[name].to_pylist() for name in ("sample_id", "system", "outcome"))
    outcomes = [
        Unrated.NOT_NEEDED.value
        if outcome == Failed.NOT_ANSWERED and (sample, system) in skipped
        else outcome
        for sample, system, outcome in zip(*columns, strict=True)
    ]
    at = found.column_names.index("outcome")
    found = found.set_column(at, found.schema.field(at), pa.array(outcomes, pa.string()))
    stopped = next((one.stopped for one in parts if one.stopped), None)
    return asking.answered(question, found, sum((one.fill for one in parts), FillStats()), stopped)


def _all(_: Task) -> bool:
    return True


def _about(rated: pa.Table, tasks: Iterable[Task]) -> pa.Table:
    names = pa.array([task.sample_id for task in tasks], pa.string())
    return rated.filter(pc.is_in(rated["sample_id"], names))
