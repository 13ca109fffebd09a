"""`echo-hf judge`: rate or compare the outputs of a run, or say which metrics fit its samples."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import get_args

import pyarrow as pa

from echo_hf.builder.build import RUNS
from echo_hf.config.evaluation import Evaluated
from echo_hf.config.judges import JudgeConfig, Rubric, shipped_judges
from echo_hf.errors import ConfigError, RunError, unknown
from echo_hf.judging.outputs import ToRate, outputs_to_rate
from echo_hf.judging.questions import (
    SentImages,
    fitting_question,
    pairwise_questions,
    rating_questions,
)
from echo_hf.judging.run_tables import read_table
from echo_hf.judging.session import (
    JudgingResult,
    ask_judges,
    asking_in,
    write_applicability,
    write_comparisons,
    write_ratings,
)
from echo_hf.pipeline.progress import ProgressListener
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import Reason
from echo_hf.systems.benchmark import Tasks, benchmark_of, evaluation_folder, load_evaluation
from echo_hf.tables import APPLICABILITY, OUTPUTS

RUBRICS: tuple[str, ...] = get_args(Rubric)


def chosen_judges(config: Evaluated, names: Sequence[str] | None) -> list[JudgeConfig]:
    by_name = {one.name: one for one in config.judges}
    if not by_name:
        shipped = ", ".join(f"judges/{file.name}" for file in shipped_judges())
        raise ConfigError(
            f"config {config.name!r} names no judges: add some, for example "
            f"`judges: [judges/qwen2_5_vl_32b.yaml]`; echo-hf brings {shipped}"
        )
    for name in names or ():
        if name not in by_name:
            raise ConfigError(unknown("judge", name, by_name, "--judges"))
    return [by_name[name] for name in dict.fromkeys(names or by_name)]


def chosen_rubrics(names: Sequence[str] | None) -> Sequence[str]:
    for name in names or ():
        if name not in RUBRICS:
            raise ConfigError(unknown("rubric", name, RUBRICS, "--rubric"))
    return names or RUBRICS


def check_rubrics(judges: Sequence[JudgeConfig], wanted: Sequence[str]) -> None:
    """Refuses rubrics that no judge rates by."""
    theirs = {rubric for one in judges for rubric in one.rubrics}
    if theirs.isdisjoint(wanted):
        raise ConfigError(
            f"none of the judges rates by {', '.join(map(repr, wanted))}: add it to `rubrics` of "
            f"one, such as rubrics: [overall, {wanted[0]}]"
        )


def judge(
    config: Evaluated | Path | str,
    *,
    runs: Path | str = RUNS,
    judges: Sequence[str] | None = None,
    rubrics: Sequence[str] | None = None,
    limit: int | None = None,
    dry_run: bool = False,
    budget_usd: float | None = None,
    watch: ProgressListener | None = None,
) -> JudgingResult:
    """Has judges rate the outputs of a run; what one has answered is not asked again."""
    config = config if isinstance(config, Evaluated) else load_evaluation(config)
    chosen, wanted = chosen_judges(config, judges), chosen_rubrics(rubrics)
    check_rubrics(chosen, wanted)
    folder = evaluation_folder(config, runs)
    to_rate = rated_outputs(config, folder, limit)
    engines = {one.name: one.engine for one in chosen}
    with asking_in(folder, engines, budget_usd, watch) as asking:
        fits, shown = read_table(folder.root, APPLICABILITY), SentImages(folder.images)
        questions = list(rating_questions(config, chosen, wanted, to_rate, fits, shown))
        if dry_run:
            return JudgingResult(
                None, tuple(map(asking.plan, questions)), left_out=to_rate.left_out
            )
        write = partial(write_ratings, folder.root)
        samples = {task.sample_id for task in to_rate.tasks}
        return ask_judges(asking, questions, to_rate.left_out, write, samples)


def applicability(
    config: Evaluated | Path | str,
    *,
    runs: Path | str = RUNS,
    limit: int | None = None,
    dry_run: bool = False,
    budget_usd: float | None = None,
    watch: ProgressListener | None = None,
) -> JudgingResult:
    """Has a model say which specialised metrics fit the samples of a benchmark."""
    config = config if isinstance(config, Evaluated) else load_evaluation(config)
    if config.applicability is None:
        raise ConfigError(
            f"config {config.name!r} does not say who is asked which metrics fit: add, for "
            "example, `applicability: {engine: {kind: vllm, model: Qwen/Qwen2.5-VL-32B-Instruct}}`"
        )
    folder = evaluation_folder(config, runs)
    tasks = _tasks(config, folder, limit)
    question = fitting_question(config.applicability, tasks.tasks, SentImages(folder.images))
    left_out: dict[Reason, int] = dict(tasks.left_out.items())
    engines = {question.who: config.applicability.engine}
    with asking_in(folder, engines, budget_usd, watch) as asking:
        if dry_run:
            return JudgingResult(None, (asking.plan(question),), left_out=left_out)
        samples = {task.sample_id for task in tasks.tasks}
        write = partial(write_applicability, folder.root)
        return ask_judges(asking, [question], left_out, write, samples)


def rated_outputs(config: Evaluated, folder: RunFolder, limit: int | None = None) -> ToRate:
    return outputs_to_rate(_outputs(folder), _tasks(config, folder), limit)


def _tasks(config: Evaluated, folder: RunFolder, limit: int | None = None) -> Tasks:
    return benchmark_of(config, folder).tasks(folder.images, limit)


def _outputs(folder: RunFolder) -> pa.Table:
    outputs = read_table(folder.root, OUTPUTS)
    if outputs is None:
        raise RunError(
            f"there are no outputs to rate in {str(folder.root)!r}: run `echo-hf generate` first, "
            "or put outputs.parquet there"
        )
    return outputs


def pairwise(
    config: Evaluated | Path | str,
    *,
    runs: Path | str = RUNS,
    judges: Sequence[str] | None = None,
    limit: int | None = None,
    dry_run: bool = False,
    budget_usd: float | None = None,
    watch: ProgressListener | None = None,
) -> JudgingResult:
    """Has judges choose between two outputs of a sample; what one has said is not asked again."""
    config = config if isinstance(config, Evaluated) else load_evaluation(config)
    chosen, folder = chosen_judges(config, judges), evaluation_folder(config, runs)
    outputs = rated_outputs(config, folder, limit)
    engines = {one.name: one.engine for one in chosen}
    with asking_in(folder, engines, budget_usd, watch) as asking:
        questions = list(pairwise_questions(config, chosen, outputs, SentImages(folder.images)))
        if dry_run:
            return JudgingResult(
                None, tuple(map(asking.plan, questions)), left_out=outputs.left_out
            )
        write = partial(write_comparisons, folder.root)
        samples = {task.sample_id for task in outputs.tasks}
        return ask_judges(asking, questions, outputs.left_out, write, samples)
