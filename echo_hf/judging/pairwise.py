"""`echo-hf judge --pairwise`: have judges choose between two outputs, in both orders."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from echo_hf.evaluated import Evaluated
from echo_hf.evaluation import evaluation_folder, load_evaluation
from echo_hf.judging.choosing import chosen_judges
from echo_hf.judging.judge import rated_outputs
from echo_hf.judging.questions import Shown, pairwise_questions
from echo_hf.judging.session import Judged, asked, asking_in
from echo_hf.judging.written import write_comparisons
from echo_hf.run import RUNS
from echo_hf.watch import Watcher


def pairwise(
    config: Evaluated | Path | str,
    *,
    runs: Path | str = RUNS,
    judges: Sequence[str] | None = None,
    limit: int | None = None,
    dry_run: bool = False,
    budget_usd: float | None = None,
    watch: Watcher | None = None,
) -> Judged:
    """Has judges choose between two outputs of a sample; what one has said is not asked again.

    Each judge sees its share of the pairs, every pair in both orders, so that a taste for what
    comes first shows.

    Args:
        config: The config, or the path of its file.
        runs: Folder of runs; this one is the sub-folder of the config's name.
        judges: Names of those to ask; all of the config's when null.
        limit: Most samples of each split.
        dry_run: Only plan: nobody is asked, and no table is written.
        budget_usd: Most US dollars to spend; calls under way when it is spent are waited for.
        watch: Told of each plan, call and result.

    Returns:
        Where the choices are, and what became of the pairs.

    Raises:
        ConfigError: The config names no judge, or not one that was asked for.
        JudgeError: As for `judge`.
        EchoError: The benchmark or a table of the run cannot be read.
    """
    config = config if isinstance(config, Evaluated) else load_evaluation(config)
    chosen, folder = chosen_judges(config, judges), evaluation_folder(config, runs)
    outputs = rated_outputs(config, folder, limit)
    engines = {one.name: one.engine for one in chosen}
    with asking_in(folder, engines, budget_usd, watch) as asking:
        questions = list(pairwise_questions(config, chosen, outputs, Shown(folder.pictures)))
        if dry_run:
            return Judged(None, tuple(map(asking.plan, questions)), left_out=outputs.left_out)
        write = partial(write_comparisons, folder.root)
        samples = {task.sample_id for task in outputs.tasks}
        return asked(asking, questions, outputs.left_out, write, samples)
