"""`echo-hf judge`: rate or compare the outputs of a run, or say which metrics fit its samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from pathlib import Path
from typing import TypedDict, Unpack, get_args

import pyarrow as pa
from datasets import Dataset

from echo_hf._infra.bootstrap import FEWEST_SAMPLES, LEVEL
from echo_hf._infra.text import percent
from echo_hf.config.checks import EngineChoice
from echo_hf.config.evaluation import (
    ApplicabilityConfig,
    Evaluated,
    ImageSize,
    JudgeConfig,
    Rubric,
    shipped_judges,
)
from echo_hf.config.sections import RunnerOptions
from echo_hf.engines.base import ImageRef
from echo_hf.engines.memory import check_fit
from echo_hf.engines.planner import NO_WORK, Range, both
from echo_hf.errors import ConfigError, RunError, unknown
from echo_hf.images.store import ImageStore
from echo_hf.judging import rate, session
from echo_hf.judging.applicability import Fitting, to_classify
from echo_hf.judging.compare import PAIRWISE, Compare, to_compare
from echo_hf.judging.rate import Rate, ToRate
from echo_hf.judging.run_tables import read_applicability, read_table
from echo_hf.judging.session import HERE, Answered, JudgeTask, JudgingPlan, JudgingResult, Planned
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.progress import ProgressListener
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.scores.estimate import compute_t_quantile
from echo_hf.scores.votes import ProtocolName
from echo_hf.systems.base import Task
from echo_hf.systems.benchmark import benchmark_of, evaluation_folder, load_evaluation
from echo_hf.tables import OUTPUTS

RUBRICS: tuple[str, ...] = get_args(Rubric)
APPLICABILITY = "applicability"
SUGGESTED = 0.2  # the share of a plan where no judge has one of its own
# Measured on 179 samples that three judges rated of eight systems: the standard deviation of a
# pair's outcome, how outcomes against two opponents correlate, and how much of the vote one judge
# explains, which makes it worth 1.75 times its samples.
OF_A_PAIR, BETWEEN_PAIRS, EXPLAINED = 0.375, 0.4, 1 - 1 / 1.75
ALL, UNTIL_DECIDED = Range.exactly(1), Range(0.51, 0.56, 0.61)  # of all ratings, in trials
BASIS = (
    "±: half the interval to be expected of a win rate, from how eight systems differed elsewhere",
    "--until decided stops when systems are told apart: 51 to 61 % of the ratings in trials",
)


@dataclass
class SentImages:
    """Images as judges are sent them, each made once."""

    images: ImageStore
    _known: dict[ImageSize, dict[str, ImageRef]] = field(default_factory=dict)

    def of(self, digests: Iterable[str], how: ImageSize) -> dict[str, ImageRef]:
        """By digest what is sent; these images and those of earlier calls."""
        known = self._known.setdefault(how, {})
        new = [digest for digest in dict.fromkeys(digests) if digest not in known]
        known.update(rate.shown_images(self.images, new, how))
        return known


class Limits(TypedDict, total=False):
    """How far judges are asked: not at all, and within what budget; and who is told of it."""

    dry_run: bool
    budget_usd: float | None
    keep_going: bool
    watch: ProgressListener | None


class Asked(Limits, total=False):
    """The same, and whether to ask also where a stored answer cannot be used.

    With `tries` that many requests are sent, and nothing is kept.
    """

    again: bool
    tries: int


def chosen_judges(config: Evaluated, names: Sequence[str] | None) -> list[JudgeConfig]:
    by_name = {one.name: one for one in config.judges}
    if not by_name:
        raise ConfigError(
            f"config {config.name!r} names no judges: add some that echo-hf brings, for example "
            f"`judges: [judges/{shipped_judges()[0].name}]`"
        )
    for name in names or ():
        if name not in by_name:
            raise ConfigError(unknown("judge", name, by_name, "--judges"))
    return [by_name[name] for name in dict.fromkeys(names or by_name)]


def rated_outputs(config: Evaluated, folder: RunFolder, limit: int | None = None) -> ToRate:
    outputs = read_table(folder.root, OUTPUTS)
    if outputs is None:
        raise RunError(
            f"there are no outputs to rate in {str(folder.root)!r}: run `echo-hf generate` first, "
            "or put outputs.parquet there"
        )
    return rate.outputs_to_rate(outputs, benchmark_of(config, folder).tasks(folder.images), limit)


def rating_questions(
    config: Evaluated,
    judges: Sequence[JudgeConfig],
    rubrics: Sequence[str],
    to_rate: ToRate,
    applicability: pa.Table | None,
    shown: SentImages,
) -> Iterator[JudgeTask]:
    """A question for each judge and each of its rubrics, in the order of the config."""
    for judge in judges:
        check_scale(judge, config.protocol)
        for rubric in (one for one in judge.rubrics if one in rubrics):
            rows = to_rate.rows(judge, rate.fitting(judge, rubric, applicability))
            yield rating_question(judge, rubric, config.protocol, rows, shown)


def rating_question(
    judge: JudgeConfig, rubric: str, protocol: ProtocolName, rows: Dataset, shown: SentImages
) -> JudgeTask:
    how = _size(judge, protocol)
    asked = rows.select([at for at, spared in enumerate(rows["spared"]) if not spared])
    inputs = [one for row in asked["inputs"] for one in row] if rate.sees_inputs(rubric) else []
    images = shown.of([*inputs, *asked["output"]], how)
    prompt = rate.rubric_prompt(judge, rubric)
    return JudgeTask(judge.name, rubric, Rate(judge, how, images, rubric, prompt, protocol), rows)


def fitting_question(
    options: ApplicabilityConfig, tasks: Sequence[Task], shown: SentImages
) -> JudgeTask:
    digests = (image.sha256 for task in tasks for image in task.inputs)
    stage = Fitting(options, shown.of(digests, "model_budget"))
    return JudgeTask(APPLICABILITY, APPLICABILITY, stage, to_classify(tasks))


def check_scale(judge: JudgeConfig, protocol: ProtocolName) -> None:
    """Refuses a judge whose ratings the published protocol would misread."""
    plain = judge.scale == rate.PUBLISHED_SCALE and not judge.decimals
    if protocol == "published" and judge.mode == "text" and not plain:
        lowest, highest = judge.scale
        raise ConfigError(
            f"judge {judge.name!r} rates from {lowest:g} to {highest:g}"
            f"{' with decimals' if judge.decimals else ''}, and protocol 'published' reads whole "
            "numbers from 1 to 10: give it that scale, or write protocol: corrected"
        )


def _size(judge: JudgeConfig, protocol: ProtocolName) -> ImageSize:
    return judge.pictures or ("published" if protocol == "published" else "model_budget")


def judge(
    config: Evaluated | Path | str,
    *,
    runs: Path | str | None = None,
    judges: Sequence[str] | None = None,
    rubrics: Sequence[str] | None = None,
    limit: int | None = None,
    **limits: Unpack[Asked],
) -> JudgingResult:
    """Has judges rate the outputs of a run; what one has answered is not asked again."""
    config = load_evaluation(config)
    chosen, wanted = chosen_judges(config, judges), rubrics or RUBRICS
    for name in wanted:
        if name not in RUBRICS:
            raise ConfigError(unknown("rubric", name, RUBRICS, "--rubric"))
    if {rubric for one in chosen for rubric in one.rubrics}.isdisjoint(wanted):
        raise ConfigError(
            f"none of the judges rates by {', '.join(map(repr, wanted))}: add it to `rubrics` of "
            f"one, such as rubrics: [overall, {wanted[0]}]"
        )
    folder = evaluation_folder(config, runs)
    outputs = rated_outputs(config, folder, limit)

    sent, engines, write = SentImages(folder.images), engines_of(chosen), session.write_ratings

    def questions(_: SentImages) -> Iterator[JudgeTask]:
        fits, _from = read_applicability(benchmark_of(config, folder), folder)
        return rating_questions(config, chosen, wanted, outputs, fits, sent)

    done = run_judges(folder, engines, questions, write, outputs, config.runner, **limits)
    rating = [one for one in chosen if rate.OVERALL in one.rubrics and rate.OVERALL in wanted]
    is_plan = limits.get("dry_run") and config.protocol == "corrected"
    if not is_plan or all(one.share < 1 for one in rating):
        return done

    def planned(shares: Mapping[str, float]) -> Sequence[Planned]:
        others = [one.model_copy(update={"share": shares[one.name]}) for one in rating]

        def asked(_: SentImages) -> Iterator[JudgeTask]:
            return rating_questions(config, others, [rate.OVERALL], outputs, None, sent)

        return run_judges(folder, engines, asked, write, outputs, dry_run=True).plans

    return replace(done, ways=judging_plans(rating, outputs, planned))


def pairwise(
    config: Evaluated | Path | str,
    *,
    runs: Path | str | None = None,
    judges: Sequence[str] | None = None,
    limit: int | None = None,
    **limits: Unpack[Asked],
) -> JudgingResult:
    """Has judges choose between two outputs of a sample; what one has said is not asked again."""
    config = load_evaluation(config)
    chosen, folder = chosen_judges(config, judges), evaluation_folder(config, runs)
    outputs = rated_outputs(config, folder, limit)

    def questions(shown: SentImages) -> Iterator[JudgeTask]:
        for one in chosen:
            rows, how = to_compare(one, outputs), _size(one, config.protocol)
            inputs = [digest for row in rows["inputs"] for digest in row]
            images = shown.of([*inputs, *rows["output_a"], *rows["output_b"]], how)
            yield JudgeTask(one.name, PAIRWISE, Compare(one, how, images), rows)

    engines, write = engines_of(chosen), session.write_comparisons
    return run_judges(folder, engines, questions, write, outputs, config.runner, **limits)


def applicability(
    config: Evaluated | Path | str,
    *,
    runs: Path | str | None = None,
    limit: int | None = None,
    **limits: Unpack[Asked],
) -> JudgingResult:
    """Has a model say which specialised metrics fit the samples of a benchmark."""
    config = load_evaluation(config)
    options = config.applicability
    if options is None:
        raise ConfigError(
            f"config {config.name!r} does not say who is asked which metrics fit: add, for "
            "example, `applicability: {engine: {kind: vllm, model: Qwen/Qwen2.5-VL-32B-Instruct}}`"
        )
    folder = evaluation_folder(config, runs)
    tasks = benchmark_of(config, folder).tasks(folder.images, limit)
    about = ToRate({}, tasks.tasks, dict(tasks.left_out.items()))

    def questions(shown: SentImages) -> list[JudgeTask]:
        return [fitting_question(options, about.tasks, shown)]

    engines = {APPLICABILITY: options.engine}
    write = session.write_applicability
    return run_judges(folder, engines, questions, write, about, config.runner, **limits)


def engines_of(judges: Iterable[JudgeConfig]) -> dict[str, EngineChoice]:
    return {one.name: one.engine for one in judges}


def run_judges(
    folder: RunFolder,
    engines: Mapping[str, EngineChoice],
    questions: Callable[[SentImages], Iterable[JudgeTask]],
    write: Callable[[Path, Answered, Collection[str]], Path],
    about: ToRate,
    runner: RunnerOptions = HERE,
    *,
    dry_run: bool = False,
    budget_usd: float | None = None,
    tries: int = 0,
    watch: ProgressListener | None = None,
    **how: bool,
) -> JudgingResult:
    """Asks judges in a run's folder, or says what they would be asked."""
    runner = HERE if dry_run else runner
    if runner.kind == "local":
        check_fit(engines, estimates=dry_run)
    store = Store(":memory:") if tries else None
    opened = session.asking_in(folder, engines, budget_usd, watch, runner, **how, store=store)
    with opened as asking:
        asked = list(questions(SentImages(folder.images)))
        if tries:
            return session.try_judges(asking, asked, tries)
        if dry_run:
            return JudgingResult(None, tuple(map(asking.plan, asked)), left_out=about.left_out)
        samples = {task.sample_id for task in about.tasks}
        return session.ask_judges(
            asking, asked, about.left_out, partial(write, folder.root), samples
        )


def half_width(systems: int, samples: int, voted: int) -> float | None:
    """Half of the interval of a win rate, where all judges vote on some of the samples."""
    if systems < 2 or voted < FEWEST_SAMPLES:
        return None
    variance = OF_A_PAIR**2 * (1 + BETWEEN_PAIRS * (systems - 2)) / (systems - 1)
    missed = (1 - EXPLAINED) * (1 / voted - 1 / samples)
    return float(
        compute_t_quantile(voted - 1, LEVEL) * math.sqrt(variance * (1 / samples + missed))
    )


def shares_of(judges: Sequence[JudgeConfig], whole: Sequence[Planned]) -> dict[str, float]:
    """By judge the share that it has, or would have beside the cheapest, who rates all."""
    if any(one.share < 1 for one in judges):
        return {one.name: one.share for one in judges}

    def cost(one: Planned) -> tuple[float, ...]:
        ranges = (one.expected.usd, one.expected.seconds)
        return tuple(math.inf if each is None else each.likely for each in ranges)

    cheapest = min(whole, key=cost).who
    return {one.name: 1.0 if one.name == cheapest else SUGGESTED for one in judges}


def judging_plans(
    judges: Sequence[JudgeConfig],
    to_rate: ToRate,
    planned: Callable[[Mapping[str, float]], Sequence[Planned]],
) -> tuple[JudgingPlan, ...]:
    """All judges on all samples, some on a part, and all until systems are told apart."""
    whole = planned({one.name: 1.0 for one in judges})
    if not any(one.plan.calls for one in whole):
        return ()
    shares, by_split = shares_of(judges, whole), dict[str, set[str]]()
    least = min(shares.values())
    tasks = [task for task in to_rate.tasks if to_rate.outputs.get(task.sample_id)]
    for task in tasks:
        by_split.setdefault(task.split, set()).add(task.sample_id)

    def plan(name: str, every: Sequence[Planned], voted: set[str], part: Range) -> JudgingPlan:
        widths = dict[str, float | None]()
        for split, names in by_split.items():
            systems = {row["system"] for name in names for row in to_rate.outputs[name]}
            widths[split] = half_width(len(systems), len(names), len(names & voted))
        calls = _of(Range.exactly(sum(one.plan.calls for one in every)), part)
        expected = reduce(both, (one.expected for one in every), NO_WORK)
        usd, seconds = (one and _of(one, part) for one in (expected.usd, expected.seconds))
        return JudgingPlan(name, calls, widths, replace(expected, usd=usd, seconds=seconds))

    all_samples = {task.sample_id for task in tasks}
    ways = [plan("all judges on all samples", whole, all_samples, ALL)]
    if least < 1:
        most = max(share for share in shares.values() if share < 1)
        of_all = ", ".join(name for name, share in shares.items() if share == 1)
        some = " to ".join(dict.fromkeys(map(percent, (least, most))))
        named = f"{of_all} on all, the others on {some}"
        ways.append(plan(named, planned(shares), rate.drawn_part(tasks, least), ALL))
    return (*ways, plan("all judges, --until decided", whole, set(), UNTIL_DECIDED))


def _of(whole: Range, part: Range) -> Range:
    return Range(*(one * share for one, share in zip(whole, part, strict=True)))
