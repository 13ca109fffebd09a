"""`echo-hf judge`: rate or compare the outputs of a run, or ask which metrics fit its samples."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from pathlib import Path
from typing import NamedTuple, TypedDict, Unpack

import pyarrow as pa
from datasets import Dataset

from echo_hf._infra.bootstrap import LEVEL, MIN_SAMPLES
from echo_hf._infra.text import percent
from echo_hf.config.checks import EngineChoice
from echo_hf.config.evaluation import (
    EvaluationBase,
    ImageSize,
    JudgeConfig,
    JudgeWork,
    shipped_judges,
)
from echo_hf.config.rubrics import OVERALL, PUBLISHED_SCALE, Rubric
from echo_hf.engines.base import ImageRef, engine_gives_scalars
from echo_hf.engines.memory import check_gpu_memory
from echo_hf.engines.planner import NO_WORK, Range, add_expected
from echo_hf.errors import ConfigError, unknown
from echo_hf.images.store import ImageStore
from echo_hf.judging import rate
from echo_hf.judging.applicability import Applicability, build_applicability_rows, list_asked
from echo_hf.judging.compare import PAIRWISE, Compare, build_pairs
from echo_hf.judging.rate import OutputsToRate, Rate
from echo_hf.judging.session import (
    IN_PROCESS,
    AskPlan,
    JudgeRows,
    JudgeTask,
    JudgingPlan,
    JudgingResult,
    JudgingSession,
    ask_judges,
    open_session,
    try_judges,
    write_applicability,
    write_comparisons,
    write_ratings,
)
from echo_hf.metrics.rubric import list_figures
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.progress import ProgressListener
from echo_hf.scores.estimate import compute_t_quantile
from echo_hf.scores.votes import ProtocolName
from echo_hf.systems.base import Task
from echo_hf.systems.evaluation_run import EvaluationRun, RunOrConfig

logger = logging.getLogger(__name__)
APPLICABILITY = "applicability"
SUGGESTED_SHARE = 0.2  # the share in a plan where no judge has one in the config
# Measured on 179 samples and eight systems, which three judges rated: the standard deviation of a
# pair's outcome, the correlation of outcomes against two opponents, and the share of the vote that
# one judge explains, so that its ratings are worth 1.75 times as many samples.
PAIR_DEVIATION, PAIR_CORRELATION, EXPLAINED_SHARE = 0.375, 0.4, 1 - 1 / 1.75
# Shares of all ratings; the second as measured in trials.
ALL_RATINGS, UNTIL_DECIDED = Range.exactly(1), Range(0.51, 0.56, 0.61)
UNFIT: Mapping[JudgeWork, str] = {
    "rate": "which rates no single output: run `echo-hf judge --pairwise`, or name another judge",
    "compare": "which compares no two outputs: run `echo-hf judge`, or name another judge",
    "answer": "which answers by no other rubric: name another judge",
}
PLAN_NOTES = (
    "±: half the interval to be expected of a win rate, from how eight systems differed elsewhere",
    "--until decided stops when systems are told apart: 51 to 61 % of the ratings in trials",
)


@dataclass
class SentImages:
    """Images in the form in which judges are sent them, each prepared once."""

    images: ImageStore
    _by_size: dict[ImageSize, dict[str, ImageRef]] = field(default_factory=dict)

    def load(self, digests: Iterable[str], image_size: ImageSize) -> dict[str, ImageRef]:
        """Return references to the images by digest, with those of earlier calls."""
        references = self._by_size.setdefault(image_size, {})
        new = [digest for digest in dict.fromkeys(digests) if digest not in references]
        references.update(rate.load_judge_images(self.images, new, image_size))
        return references


class JudgingOptions(TypedDict, total=False):
    """How judges are asked: whether at all, within what budget, and who hears of progress."""

    dry_run: bool
    budget_usd: float | None
    keep_going: bool
    watch: ProgressListener | None


class AskOptions(JudgingOptions, total=False):
    """The same, and whether to ask again where a stored answer cannot be used.

    With `tries` that many requests are sent, and nothing is kept.
    """

    again: bool
    tries: int


def choose_judges(
    config: EvaluationBase, names: Sequence[str] | None, work: JudgeWork = "rate"
) -> list[JudgeConfig]:
    """Choose judges by name, or all whose form is fit for the work.

    Raises:
        ConfigError: There is none, or a named one is of a form that is not.
    """
    by_name = {judge.name: judge for judge in config.judges}
    if not by_name:
        raise ConfigError(
            f"config {config.name!r} names no judges: add some that echo-hf brings, for example "
            f"`judges: [judges/{shipped_judges()[0].name}]`"
        )
    for name in names or ():
        if name not in by_name:
            raise ConfigError(unknown("judge", name, by_name, "--judges"))
    chosen = [by_name[name] for name in dict.fromkeys(names or by_name)]
    fit = [judge for judge in chosen if judge.can_do(work)]
    if len(fit) < (len(chosen) if names else 1):
        unfit = next(judge for judge in chosen if judge not in fit)
        raise ConfigError(
            f"judge {unfit.name!r} is of form {unfit.answer_form!r}"
            f"{' with a judge_file' if unfit.judge_file else ''}, {UNFIT[work]}"
        )
    for judge in fit:
        check_form(judge)
        if judge.judge_file is not None and judge.judge_file.shows_raw_words:
            logger.warning(
                "judge %r: {prompt} of its judge_file shows people's words as they are, so that "
                "they may speak to it: {task} quotes them",
                judge.name,
            )
    return fit


def check_form(judge: JudgeConfig) -> None:
    """Refuse a scalar of an engine that writes, and words of one that gives numbers alone."""
    gives_scalars = engine_gives_scalars(judge.engine.kind)
    if gives_scalars is not None and gives_scalars != (judge.answer_form == "scalar"):
        expected = "form: scalar" if gives_scalars else "an engine such as pooling or scalar_head"
        raise ConfigError(
            f"judge {judge.name!r} is of form {judge.answer_form!r}, and engine "
            f"{judge.engine.kind!r} {'gives' if gives_scalars else 'does not give'} a number "
            f"without words: expected {expected}"
        )


def read_outputs_to_rate(run: EvaluationRun, limit: int | None = None) -> OutputsToRate:
    return rate.select_outputs(run.read_outputs(), run.read_tasks(), limit)


class PartToRate(NamedTuple):
    """A part of a run, and the outputs in it that judges are asked about."""

    run: EvaluationRun
    outputs: OutputsToRate
    sent: SentImages


def read_parts_to_rate(run: EvaluationRun, limit: int | None = None) -> list[PartToRate]:
    return [
        PartToRate(part, read_outputs_to_rate(part, limit), SentImages(part.folder.images))
        for part in run.parts
    ]


def rating_questions(
    config: EvaluationBase,
    judges: Sequence[JudgeConfig],
    rubrics: Sequence[str] | None,
    to_rate: OutputsToRate,
    applicability: pa.Table | None,
    sent: SentImages,
    parts: Sequence[PartToRate] = (),
) -> Iterator[JudgeTask]:
    """Build a question for each judge and each of its rubrics, in the order of the config.

    Of each judge first those about the run, then those about its parts.
    """
    for judge in judges:
        for name in judge.rubrics:
            if rubrics is not None and name not in rubrics:
                continue
            rubric = find_rubric(config, judge, name)
            rows = to_rate.build_rows(judge, rate.make_task_filter(judge, rubric, applicability))
            yield rating_question(judge, rubric, config.protocol, rows, sent)
        yield from part_questions(config, judge, rubrics, parts)


def part_questions(
    config: EvaluationBase,
    judge: JudgeConfig,
    rubrics: Sequence[str] | None,
    parts: Sequence[PartToRate],
) -> Iterator[JudgeTask]:
    """Build a judge's questions about the parts of a run, by the rubrics that each asks for."""
    for run, outputs, sent in parts:
        asked = judge.rubrics if rubrics is None else rubrics
        asked = [name for name in asked if run.rubrics is None or name in run.rubrics]
        fits, _ = run.read_applicability()
        samples = frozenset(task.sample_id for task in outputs.tasks)
        for question in rating_questions(config, [judge], asked, outputs, fits, sent):
            yield replace(question, run_part=run, samples=samples)


def find_rubric(config: EvaluationBase, judge: JudgeConfig, name: str) -> Rubric:
    """Return a rubric as a judge has it; refuse a scale that the published protocol misreads."""
    rubric = rate.adapt_rubric(judge, config.find_rubric(name, f"judge {judge.name!r}"))
    scale = rate.get_scale(judge, rubric)
    plain = scale == PUBLISHED_SCALE and not judge.decimals
    is_misread = config.protocol == "published" and judge.mode == "text" and not plain
    if is_misread and rubric.answer == "rating":
        lowest, highest = scale
        raise ConfigError(
            f"judge {judge.name!r} rates from {lowest:g} to {highest:g}"
            f"{' with decimals' if judge.decimals else ''}, and protocol 'published' reads whole "
            "numbers from 1 to 10: give it that scale, or write protocol: corrected"
        )
    return rubric


def rating_question(
    judge: JudgeConfig, rubric: Rubric, protocol: ProtocolName, rows: Dataset, sent: SentImages
) -> JudgeTask:
    size = _choose_size(judge, protocol)
    chosen = rows.select([index for index, spared in enumerate(rows["spared"]) if not spared])
    digests = list(chosen["output"])
    if rubric.sees_inputs:
        digests += [digest for row in chosen["inputs"] for digest in row]
    images = sent.load(digests, size)
    stage = Rate(judge, size, images, rubric.name, rubric, protocol)
    return JudgeTask(judge.name, rubric.name, stage, rows)


def applicability_questions(
    config: EvaluationBase, tasks: Sequence[Task], sent: SentImages
) -> list[JudgeTask]:
    """Build the question which metrics fit, if the config says who is asked."""
    if config.applicability is None:
        return []
    images = sent.load((image.sha256 for task in tasks for image in task.inputs), "model_budget")
    stage = Applicability(config.applicability, images, list_asked(list_figures(config)))
    return [JudgeTask(APPLICABILITY, APPLICABILITY, stage, build_applicability_rows(tasks))]


def _choose_size(judge: JudgeConfig, protocol: ProtocolName) -> ImageSize:
    return judge.pictures or ("published" if protocol == "published" else "model_budget")


def judge(
    config: RunOrConfig,
    *,
    runs: Path | str | None = None,
    judges: Sequence[str] | None = None,
    rubrics: Sequence[str] | None = None,
    limit: int | None = None,
    **limits: Unpack[AskOptions],
) -> JudgingResult:
    """Let judges rate the outputs of a run; stored answers are not asked for again."""
    run = EvaluationRun.from_config(config, runs)
    config = run.asked_config
    chosen = choose_judges(config, judges)
    for name in rubrics or ():
        config.find_rubric(name, "--rubric")
    asked_rubrics = dict.fromkeys(rubric for judge in chosen for rubric in judge.rubrics)
    selected = list(rubrics or asked_rubrics)
    if asked_rubrics.keys().isdisjoint(selected):
        raise ConfigError(
            f"none of the judges rates by {', '.join(map(repr, selected))}: add it to `rubrics` of "
            f"one, such as rubrics: [overall, {selected[0]}]"
        )
    sent, outputs = SentImages(run.prepare().images), read_outputs_to_rate(run, limit)
    engines, write = engines_of(chosen), write_ratings

    def build_questions(_: SentImages) -> Iterator[JudgeTask]:
        fits, _from = run.read_applicability()
        parts = [] if limits.get("tries") else read_parts_to_rate(run, limit)
        return rating_questions(config, chosen, selected, outputs, fits, sent, parts)

    try:
        result = run_judges(run, engines, build_questions, write, outputs, **limits)
    finally:
        if not limits.get("tries"):
            run.write_carried()
    rating_judges = [judge for judge in chosen if OVERALL in judge.rubrics]
    if OVERALL not in selected:
        rating_judges = []
    is_plan = limits.get("dry_run") and config.protocol == "corrected"
    if not is_plan or all(judge.share < 1 for judge in rating_judges):
        return result

    def make_plans(shares: Mapping[str, float]) -> Sequence[AskPlan]:
        others = [judge.model_copy(update={"share": shares[judge.name]}) for judge in rating_judges]

        def share_questions(_: SentImages) -> Iterator[JudgeTask]:
            return rating_questions(config, others, [OVERALL], outputs, None, sent)

        return run_judges(run, engines, share_questions, write, outputs, dry_run=True).plans

    return replace(result, ways=build_judging_plans(rating_judges, outputs, make_plans))


def judge_pairs(
    config: RunOrConfig,
    *,
    runs: Path | str | None = None,
    judges: Sequence[str] | None = None,
    limit: int | None = None,
    **limits: Unpack[AskOptions],
) -> JudgingResult:
    """Let judges choose between two outputs of a sample; stored answers are not asked for again."""
    run = EvaluationRun.from_config(config, runs)
    config = run.config
    chosen = choose_judges(config, judges, "compare")
    run.prepare()
    outputs = read_outputs_to_rate(run, limit)

    build = partial(pairwise_questions, config, chosen, outputs)
    return run_judges(run, engines_of(chosen), build, write_comparisons, outputs, **limits)


def pairwise_questions(
    config: EvaluationBase, judges: Sequence[JudgeConfig], outputs: OutputsToRate, sent: SentImages
) -> Iterator[JudgeTask]:
    """Build a question for each judge: which of two outputs it prefers."""
    for judge in judges:
        rows, size = build_pairs(judge, outputs), _choose_size(judge, config.protocol)
        inputs = [digest for row in rows["inputs"] for digest in row]
        images = sent.load([*inputs, *rows["output_a"], *rows["output_b"]], size)
        yield JudgeTask(judge.name, PAIRWISE, Compare(judge, size, images), rows)


def judge_applicability(
    config: RunOrConfig,
    *,
    runs: Path | str | None = None,
    limit: int | None = None,
    **limits: Unpack[AskOptions],
) -> JudgingResult:
    """Ask a model which specialized metrics fit the samples of a benchmark."""
    run = EvaluationRun.from_config(config, runs)
    config, options = run.asked_config, run.config.applicability
    if options is None:
        raise ConfigError(
            f"config {config.name!r} does not say who is asked which metrics fit: add, for "
            "example, `applicability: {engine: {kind: vllm, model: Qwen/Qwen2.5-VL-32B-Instruct}}`"
        )
    run.prepare()
    tasks = run.read_tasks(limit)
    samples = OutputsToRate({}, tasks.tasks, dict(tasks.left_out.items()))

    def build_questions(sent: SentImages) -> list[JudgeTask]:
        return applicability_questions(config, samples.tasks, sent)

    engines = {APPLICABILITY: options.engine}
    return run_judges(run, engines, build_questions, write_applicability, samples, **limits)


def engines_of(judges: Iterable[JudgeConfig]) -> dict[str, EngineChoice]:
    return {judge.name: judge.engine for judge in judges}


def open_run_session(
    run: EvaluationRun,
    engines: Mapping[str, EngineChoice],
    *,
    dry_run: bool = False,
    budget_usd: float | None = None,
    tries: int = 0,
    watch: ProgressListener | None = None,
    **options: bool,
) -> AbstractContextManager[JudgingSession]:
    """Open a session in a run's folder, by its runner unless it only plans."""
    store = Store(":memory:") if tries else None
    folder, runner = run.prepare(), IN_PROCESS if dry_run else run.config.runner
    if runner.kind == "local":
        check_gpu_memory(engines, estimates=dry_run)
    return open_session(folder, engines, budget_usd, watch, runner, **options, store=store)


def run_judges(
    run: EvaluationRun,
    engines: Mapping[str, EngineChoice],
    build_questions: Callable[[SentImages], Iterable[JudgeTask]],
    write: Callable[[Path, JudgeRows, Collection[str]], Path],
    outputs: OutputsToRate,
    **limits: Unpack[AskOptions],
) -> JudgingResult:
    """Ask judges in a run's folder, or plan what they would be asked."""
    with open_run_session(run, engines, **limits) as session:
        questions = list(build_questions(SentImages(session.folder.images)))
        if tries := limits.get("tries"):
            return try_judges(session, questions, tries)
        if limits.get("dry_run"):
            plans = tuple(map(session.plan, questions))
            return JudgingResult(None, plans, left_out=outputs.left_out)
        samples = {task.sample_id for task in outputs.tasks}
        return ask_judges(session, questions, outputs.left_out, write, samples)


def win_rate_half_width(systems: int, samples: int, voted: int) -> float | None:
    """Estimate half the interval of a win rate where all judges vote on some of the samples."""
    if systems < 2 or voted < MIN_SAMPLES:
        return None
    # Of the mean over `systems - 1` correlated opponents, on one sample.
    variance = PAIR_DEVIATION**2 * (1 + PAIR_CORRELATION * (systems - 2)) / (systems - 1)
    # Where not all judges vote, the part of the vote that the others do not explain is estimated.
    missed = (1 - EXPLAINED_SHARE) * (1 / voted - 1 / samples)
    quantile = compute_t_quantile(voted - 1, LEVEL)
    return float(quantile * math.sqrt(variance * (1 / samples + missed)))


def choose_shares(judges: Sequence[JudgeConfig], full: Sequence[AskPlan]) -> dict[str, float]:
    """Return each judge's share; where all have 1, all but the cheapest get the suggested one."""
    if any(judge.share < 1 for judge in judges):
        return {judge.name: judge.share for judge in judges}

    def estimate_cost(planned: AskPlan) -> tuple[float, ...]:
        ranges = (planned.expected.usd, planned.expected.seconds)
        return tuple(math.inf if amount is None else amount.likely for amount in ranges)

    cheapest = min(full, key=estimate_cost).judge
    return {judge.name: 1.0 if judge.name == cheapest else SUGGESTED_SHARE for judge in judges}


def build_judging_plans(
    judges: Sequence[JudgeConfig],
    to_rate: OutputsToRate,
    make_plans: Callable[[Mapping[str, float]], Sequence[AskPlan]],
) -> tuple[JudgingPlan, ...]:
    """Plan three ways: all judges on all samples, some on a part, all until pairs are decided."""
    full = make_plans({judge.name: 1.0 for judge in judges})
    if not any(planned.plan.calls for planned in full):
        return ()
    shares, by_split = choose_shares(judges, full), dict[str, set[str]]()
    smallest = min(shares.values())
    tasks = [task for task in to_rate.tasks if to_rate.outputs.get(task.sample_id)]
    for task in tasks:
        by_split.setdefault(task.split, set()).add(task.sample_id)

    def plan(name: str, plans: Sequence[AskPlan], voted: set[str], part: Range) -> JudgingPlan:
        widths = dict[str, float | None]()
        for split, names in by_split.items():
            systems = {row["system"] for name in names for row in to_rate.outputs[name]}
            widths[split] = win_rate_half_width(len(systems), len(names), len(names & voted))
        calls = _scale(Range.exactly(sum(plan.plan.calls for plan in plans)), part)
        expected = reduce(add_expected, (plan.expected for plan in plans), NO_WORK)
        usd = expected.usd and _scale(expected.usd, part)
        seconds = expected.seconds and _scale(expected.seconds, part)
        return JudgingPlan(name, calls, widths, replace(expected, usd=usd, seconds=seconds))

    all_samples = {task.sample_id for task in tasks}
    ways = [plan("all judges on all samples", full, all_samples, ALL_RATINGS)]
    if smallest < 1:
        largest = max(share for share in shares.values() if share < 1)
        full_judges = ", ".join(name for name, share in shares.items() if share == 1)
        shares_text = " to ".join(dict.fromkeys(map(percent, (smallest, largest))))
        title = f"{full_judges} on all, the others on {shares_text}"
        ways.append(plan(title, make_plans(shares), rate.draw_share(tasks, smallest), ALL_RATINGS))
    return (*ways, plan("all judges, --until decided", full, set(), UNTIL_DECIDED))


def _scale(whole: Range, part: Range) -> Range:
    return Range(*(amount * share for amount, share in zip(whole, part, strict=True)))
