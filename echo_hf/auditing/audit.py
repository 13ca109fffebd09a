"""`echo-hf audit`: show judges pictures whose rating is known before they are believed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from echo_hf.auditing.audit_file import AUDIT_FILE, read_audits, write_audit
from echo_hf.auditing.honeypots import drawn_samples, honeypots
from echo_hf.auditing.result import audit_of
from echo_hf.errors import ConfigError, RunError
from echo_hf.evaluated import Evaluated
from echo_hf.evaluation import evaluation_folder, load_evaluation
from echo_hf.judging.asking import Answered, Question
from echo_hf.judging.choosing import chosen_judges
from echo_hf.judging.config import JudgeConfig
from echo_hf.judging.instructions import OVERALL
from echo_hf.judging.judge import rated_outputs
from echo_hf.judging.questions import Shown, check_scale, rating_question
from echo_hf.judging.session import Judged, asked, asking_in
from echo_hf.judging.to_rate import TEXT, ToRate, has_text, rows_to_rate
from echo_hf.run import RUNS
from echo_hf.run_folder import RunFolder
from echo_hf.scoring.table_file import read_table
from echo_hf.tables import APPLICABILITY, RATINGS
from echo_hf.watch import Watcher

SAMPLES = 20


@dataclass(frozen=True)
class Audited:
    """What became of an audit.

    Attributes:
        asked: Where it was written, and what asking took.
        judges: Audit by judge, of those that were asked; JSON can hold it. Of a dry run none.
    """

    asked: Judged
    judges: Mapping[str, Mapping[str, Any]]


def audit(
    config: Evaluated | Path | str,
    *,
    runs: Path | str = RUNS,
    judges: Sequence[str] | None = None,
    samples: int = SAMPLES,
    dry_run: bool = False,
    budget_usd: float | None = None,
    watch: Watcher | None = None,
) -> Audited:
    """Shows each judge honeypots in the place of outputs, with its own instructions.

    Args:
        config: The config, or the path of its file.
        runs: Folder of runs; this one is the sub-folder of the config's name.
        judges: Names of those to audit; all of the config's when null.
        samples: How many samples each is shown honeypots of; the same for all.
        dry_run: Only plan: nobody is asked, and nothing is written.
        budget_usd: Most US dollars to spend; calls under way when it is spent are waited for.
        watch: Told of each plan, call and result.

    Returns:
        How each judge did, and why.

    Raises:
        ConfigError: The config names no judge, or not one that was asked for, or `samples` is no
            number of samples.
        RunError: There are no outputs to make honeypots for.
        JudgeError: As for `judge`.
        EchoError: The benchmark or a table of the run cannot be read.
    """
    if samples < 1:
        raise ConfigError(f"samples is {samples!r}: expected 1 or more, such as {SAMPLES}")
    config = config if isinstance(config, Evaluated) else load_evaluation(config)
    chosen, folder = chosen_judges(config, judges), evaluation_folder(config, runs)
    read_audits(folder.root)  # a file that cannot be read is said before anybody is asked
    outputs = rated_outputs(config, folder)
    engines = {one.name: one.engine for one in chosen}
    with asking_in(folder, engines, budget_usd, watch) as asking:
        shown = Shown(folder.pictures)
        questions = [_question(config, one, outputs, samples, folder, shown) for one in chosen]
        if dry_run:
            plans = tuple(map(asking.plan, questions))
            return Audited(Judged(None, plans, left_out=outputs.left_out), {})
        write = partial(_write, folder, {one.name: one for one in chosen})
        names = {name for one in questions for name in one.rows["sample_id"]}
        done = asked(asking, questions, outputs.left_out, write, names)
    audits = read_audits(folder.root)
    return Audited(done, {one.name: audits[one.name] for one in chosen if one.name in audits})


def _question(
    config: Evaluated,
    judge: JudgeConfig,
    outputs: ToRate,
    samples: int,
    folder: RunFolder,
    shown: Shown,
) -> Question:
    check_scale(judge, config.protocol)
    rubric = _rubric(judge)
    fits = has_text(judge, read_table(folder.root, APPLICABILITY))
    drawn = drawn_samples(outputs, fits if rubric == TEXT else lambda _: True, samples)
    if not drawn:
        raise RunError(
            f"judge {judge.name!r} has no outputs to be audited on in {str(folder.root)!r}: run "
            "`echo-hf generate` first"
        )
    rows = rows_to_rate(honeypots(drawn, folder.pictures, inputs=rubric != TEXT))
    return rating_question(judge, rubric, config.protocol, rows, shown)


def _rubric(judge: JudgeConfig) -> str:
    """The rubric that a judge is audited by: the one that win rates are made of, if it has it."""
    return OVERALL if OVERALL in judge.rubrics else judge.rubrics[0]


def _write(
    folder: RunFolder,
    judges: Mapping[str, JudgeConfig],
    answered: Answered,
    samples: Collection[str],
) -> Path:
    """Writes the audit of a judge; where it answered nothing, an earlier one stays."""
    del samples
    if answered.rows.num_rows:
        ratings = read_table(folder.root, RATINGS)
        written = audit_of(judges[answered.who], answered, ratings)
        write_audit(folder.root, answered.who, written)
    return folder.root / AUDIT_FILE
