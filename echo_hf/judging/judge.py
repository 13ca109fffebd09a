"""`echo-hf judge`: rate the outputs of a run, or say which metrics fit its samples."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa

from echo_hf.benchmark import Tasks
from echo_hf.errors import ConfigError, RunError
from echo_hf.evaluated import Evaluated
from echo_hf.evaluation import benchmark_of, evaluation_folder, load_evaluation
from echo_hf.judging.choosing import check_rubrics, chosen_judges, chosen_rubrics
from echo_hf.judging.questions import Shown, fitting_question, rating_questions
from echo_hf.judging.session import Judged, asked, asking_in
from echo_hf.judging.to_rate import ToRate, outputs_to_rate
from echo_hf.judging.written import write_applicability, write_ratings
from echo_hf.reasons import Reason
from echo_hf.run import RUNS
from echo_hf.run_folder import RunFolder
from echo_hf.scoring.table_file import read_table
from echo_hf.tables import APPLICABILITY, OUTPUTS
from echo_hf.watch import Watcher


def judge(
    config: Evaluated | Path | str,
    *,
    runs: Path | str = RUNS,
    judges: Sequence[str] | None = None,
    rubrics: Sequence[str] | None = None,
    limit: int | None = None,
    dry_run: bool = False,
    budget_usd: float | None = None,
    watch: Watcher | None = None,
) -> Judged:
    """Has judges rate the outputs of a run; what one has answered is not asked again.

    Killed at any moment, the same call goes on: each answer is durable when it comes. A rating is
    read from a stored answer, so that reading it in another way asks nobody. Only pictures that
    systems made of samples as they are now are rated.

    Args:
        config: The config, or the path of its file.
        runs: Folder of runs; this one is the sub-folder of the config's name.
        judges: Names of those to ask; all of the config's when null.
        rubrics: Names of those to ask about, among those of the judges; all when null.
        limit: Most samples of each split.
        dry_run: Only plan: nobody is asked, and no table is written.
        budget_usd: Most US dollars to spend; calls under way when it is spent are waited for.
        watch: Told of each plan, call and result.

    Returns:
        Where the ratings are, and what became of the outputs.

    Raises:
        ConfigError: The config names no judge, or not one or a rubric that was asked for.
        JudgeError: A judge cannot be asked, before anything is; or had to be stopped, after the
            others have finished.
        EchoError: The benchmark or a table of the run cannot be read.
    """
    config = config if isinstance(config, Evaluated) else load_evaluation(config)
    chosen, wanted = chosen_judges(config, judges), chosen_rubrics(rubrics)
    check_rubrics(chosen, wanted)
    folder = evaluation_folder(config, runs)
    to_rate = rated_outputs(config, folder, limit)
    engines = {one.name: one.engine for one in chosen}
    with asking_in(folder, engines, budget_usd, watch) as asking:
        fits, shown = read_table(folder.root, APPLICABILITY), Shown(folder.pictures)
        questions = list(rating_questions(config, chosen, wanted, to_rate, fits, shown))
        if dry_run:
            return Judged(None, tuple(map(asking.plan, questions)), left_out=to_rate.left_out)
        write = partial(write_ratings, folder.root)
        samples = {task.sample_id for task in to_rate.tasks}
        return asked(asking, questions, to_rate.left_out, write, samples)


def applicability(
    config: Evaluated | Path | str,
    *,
    runs: Path | str = RUNS,
    limit: int | None = None,
    dry_run: bool = False,
    budget_usd: float | None = None,
    watch: Watcher | None = None,
) -> Judged:
    """Has a model say which specialised metrics fit the samples of a benchmark.

    Args:
        config: The config, or the path of its file.
        runs: Folder of runs.
        limit: Most samples of each split.
        dry_run: Only plan: nobody is asked, and no table is written.
        budget_usd: Most US dollars to spend.
        watch: Told of the plan, each call and the result.

    Returns:
        Where the table is, and what became of the samples.

    Raises:
        ConfigError: The config does not say who is asked.
        JudgeError: As for `judge`.
        EchoError: The benchmark cannot be read.
    """
    config = config if isinstance(config, Evaluated) else load_evaluation(config)
    if config.applicability is None:
        raise ConfigError(
            f"config {config.name!r} does not say who is asked which metrics fit: add, for "
            "example, `applicability: {engine: {kind: vllm, model: Qwen/Qwen2.5-VL-32B-Instruct}}`"
        )
    folder = evaluation_folder(config, runs)
    tasks = _tasks(config, folder, limit)
    question = fitting_question(config.applicability, tasks.tasks, Shown(folder.pictures))
    left_out: dict[Reason, int] = dict(tasks.left_out.items())
    engines = {question.who: config.applicability.engine}
    with asking_in(folder, engines, budget_usd, watch) as asking:
        if dry_run:
            return Judged(None, (asking.plan(question),), left_out=left_out)
        samples = {task.sample_id for task in tasks.tasks}
        write = partial(write_applicability, folder.root)
        return asked(asking, [question], left_out, write, samples)


def rated_outputs(config: Evaluated, folder: RunFolder, limit: int | None = None) -> ToRate:
    """The outputs of a run that there are to look at.

    Args:
        config: The config: its benchmark.
        folder: The run's folder.
        limit: Most samples of each split.

    Returns:
        Outputs with a picture, of samples as they are now.

    Raises:
        RunError: There are no outputs.
        EchoError: The benchmark cannot be read.
    """
    return outputs_to_rate(_outputs(folder), _tasks(config, folder), limit)


def _tasks(config: Evaluated, folder: RunFolder, limit: int | None = None) -> Tasks:
    return benchmark_of(config, folder).tasks(folder.pictures, limit)


def _outputs(folder: RunFolder) -> pa.Table:
    outputs = read_table(folder.root, OUTPUTS)
    if outputs is None:
        raise RunError(
            f"there are no outputs to rate in {str(folder.root)!r}: run `echo-hf generate` first, "
            "or put outputs.parquet there"
        )
    return outputs
