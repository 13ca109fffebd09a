"""Which tasks people give, which of them reference sets lack, and who wins at each (figure 3)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset

from echo_hf._infra.bootstrap import FEWEST_SAMPLES
from echo_hf.config.checks import EngineChoice
from echo_hf.config.sections import Target
from echo_hf.curate.feedback import Feedback
from echo_hf.engines.base import make_engine
from echo_hf.engines.rules import task_of
from echo_hf.judging.run_tables import read_run
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.report.analysis.prompts import UNKNOWN, PromptSet
from echo_hf.report.analysis.result import AnalysisPart, Estimate, TaskCount, TaskRate, Tasks
from echo_hf.samples.sample import SAMPLES_IN_CONTEXT
from echo_hf.scores.rating_table import RUBRIC
from echo_hf.scores.votes import Protocol
from echo_hf.scores.win_rate import win_rate
from echo_hf.systems.benchmark import Benchmark
from echo_hf.tables import RATINGS

Sample = Mapping[str, Any]
UNRATED = "no output is rated: `echo-hf judge` has judges rate them"
NO_IMAGE = "0" * 64  # the stage asks how many images there are, not what they show


def tasks(
    samples: Sequence[Sample],
    references: Mapping[str, Counter[str]],
    rates: Sequence[TaskRate] = (),
    *,
    no_rates: str | None = None,
    no_references: str | None = None,
    engine: Mapping[str, Any] | None = None,
) -> AnalysisPart[Tasks]:
    """Counts samples by task, and says which tasks reference sets lack."""
    kinds = Counter(sample["kind"] or UNKNOWN for sample in samples)
    every = Counter(sample["task"] or UNKNOWN for sample in samples)
    counts = []
    for task, number in sorted(every.items(), key=lambda pair: (-pair[1], pair[0])):
        known = {} if task == UNKNOWN else references
        # A task is absent from a set of which all prompts are known, and none is of it.
        absent = [
            name for name, found in known.items() if found and not (found[task] or found[UNKNOWN])
        ]
        count = TaskCount(
            task=task,
            samples=number,
            share=number / len(samples),
            in_references={name: found[task] for name, found in known.items()},
            absent_from=tuple(absent),
        )
        counts.append(count)
    found = Tasks(
        counts=tuple(counts),
        kinds=dict(sorted(kinds.items())),
        rates=tuple(rates),
        no_rates=no_rates,
        no_references=no_references,
    )
    definition = {
        "task": "of samples: as the stage `feedback` named it, by the engine in the manifest; null "
        "is unknown",
        "references": "of their prompts: by the question of the stage `feedback` to the engine, "
        "else by the plain rules, to which many are unknown; given the pictures that each comes "
        "with (`inputs`)",
        "engine": dict(engine) if engine else None,
        "rates": "win rate under the run's protocol among the rated samples of the task",
    }
    return AnalysisPart(found=found, definition=definition)


def rates_of_run(
    benchmark: Benchmark,
    folder: RunFolder,
    samples: Sequence[Sample],
    *,
    protocol: Protocol,
    draws: int,
    seed: int,
) -> tuple[tuple[TaskRate, ...], str | None]:
    """Win rates by task of every split, and why there are none."""
    if not (folder.root / f"{RATINGS.name}.parquet").exists():
        return (), UNRATED
    tables = read_run(benchmark, folder)
    task_of = {sample["id"]: sample["task"] or UNKNOWN for sample in samples}
    how: dict[str, Any] = {"protocol": protocol, "draws": draws, "seed": seed}
    found: list[TaskRate] = []
    for split in tables.tasks:
        ratings, outputs = (tables.of_split(one, split) for one in (tables.ratings, tables.outputs))
        if ratings is not None:
            found += task_rates(split, ratings, outputs, task_of, **how)
    return tuple(found), None if found else UNRATED


def task_rates(
    split: str,
    ratings: pa.Table,
    outputs: pa.Table | None,
    task_of: Mapping[str, str],
    *,
    protocol: Protocol = "corrected",
    draws: int = 1000,
    seed: int = 0,
) -> Iterator[TaskRate]:
    """Win rates on the samples of each task of one split."""
    overall = ratings.filter(
        pc.and_(pc.equal(ratings["rubric"], RUBRIC), pc.is_valid(ratings["rating"]))
    )
    by_task: dict[str, list[str]] = defaultdict(list)
    for sample in sorted(overall["sample_id"].unique().to_pylist()):
        by_task[task_of.get(sample, UNKNOWN)].append(sample)
    for task, samples in sorted(by_task.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        names = pa.array(samples, pa.string())
        rated, made = (
            table if table is None else table.filter(pc.is_in(table["sample_id"], names))
            for table in (overall, outputs)
        )
        found = win_rate(rated, made, protocol=protocol, n_boot=draws, seed=seed)
        rates = {}
        for system, value in found.win_rate.items():
            low, high = found.interval[system] or (None, None)
            reason = found.reasons.get(system)
            rates[system] = Estimate(value=value, low=low, high=high, reason=reason)
        yield TaskRate(
            split=split,
            task=task,
            samples=len(samples),
            few=len(samples) < FEWEST_SAMPLES,
            rates=rates,
            coverage=dict(found.coverage),
        )


# The tasks of a reference set, counted, and the phrases of its prompts.
ReferenceTasks = tuple[Counter[str], Sequence[str | None]]


def reference_tasks(references: Sequence[PromptSet], inputs: Sequence[int]) -> list[ReferenceTasks]:
    """The tasks of reference sets, as the `rules` engine tells them in `feedback`: no phrases."""
    return [
        (Counter(task_of(prompt, images) or UNKNOWN for prompt in one.prompts), ())
        for one, images in zip(references, inputs, strict=True)
    ]


def asked_tasks(
    references: Sequence[PromptSet],
    inputs: Sequence[int],
    choice: EngineChoice,
    target: Target,
    folder: RunFolder,
) -> list[ReferenceTasks]:
    """The tasks of reference sets by a model's answers, which the run's store keeps."""
    stage, told = Feedback(target), list[ReferenceTasks]()
    with make_engine(choice.kind, **choice.options) as engine, closing(folder.store()) as store:
        for one, images in zip(references, inputs, strict=True):
            rows = [
                {
                    **dict.fromkeys(SAMPLES_IN_CONTEXT.columns),
                    "id": name,
                    "prompt": prompt,
                    "quality": "Benchmark",
                    "post_urls": [f"reference:{one.name}"],
                    "input_images": [NO_IMAGE] * images,
                    "output_images": [],
                    "community_feedback": [],
                    "context": [],
                    "provenance": "{}",
                }
                for name, prompt in zip(one.ids, one.prompts, strict=True)
            ]
            samples = Dataset(pa.Table.from_pylist(rows, SAMPLES_IN_CONTEXT.schema))
            found = run_stage(stage, samples, engine=engine, store=store).dataset
            tasks = Counter(task or UNKNOWN for task in found["task"])
            told.append((tasks, found["task_phrase"]))
    return told
