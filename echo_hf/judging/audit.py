"""`echo-hf audit`: show judges images whose rating is known before they are believed."""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow as pa
from PIL import Image

from echo_hf.builder.build import RUNS
from echo_hf.config.evaluation import Evaluated
from echo_hf.config.judges import JudgeConfig
from echo_hf.errors import ConfigError, RunError
from echo_hf.images.store import ImageStore
from echo_hf.judging.audit_file import AUDIT_FILE, read_audits, write_audit
from echo_hf.judging.judge import chosen_judges, rated_outputs
from echo_hf.judging.outputs import TEXT, ToRate, has_text, row_to_rate, rows_to_rate
from echo_hf.judging.questions import SentImages, check_scale, rating_question
from echo_hf.judging.rate import Scale
from echo_hf.judging.run_tables import read_table
from echo_hf.judging.session import Answered, JudgeTask, JudgingResult, ask_judges, asking_in
from echo_hf.judging.stage import OVERALL
from echo_hf.pipeline.progress import ProgressListener
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import NotAudited
from echo_hf.scores.judges import scale_use
from echo_hf.systems.base import Task
from echo_hf.systems.benchmark import evaluation_folder, load_evaluation
from echo_hf.tables import APPLICABILITY, RATINGS

BLANK_SIZE = 1024, 1024
GREY = 128, 128, 128
SEED = 0
SEPARATOR = "\x1f"
Row = Mapping[str, Any]


class Honeypot(StrEnum):
    """What stands in the place of an output: the values of `system` in an audit."""

    REAL = "real"  # the output itself, which the others are held against
    BLANK = "blank"  # one plain grey
    UNCHANGED = "unchanged"  # the first input of an edit, as it went in
    SHUFFLED = "shuffled"  # an output for another sample of the split
    RENAMED = "renamed"  # the output once more, under another system's name


@dataclass(frozen=True)
class AuditSample:
    task: Task
    image: str


def drawn_samples(outputs: ToRate, fits: Callable[[Task], bool], samples: int) -> list[AuditSample]:
    by_split: dict[str, list[Task]] = {}
    for task in sorted(outputs.tasks, key=lambda task: _place(task.sample_id)):
        if fits(task) and outputs.outputs.get(task.sample_id):
            by_split.setdefault(task.split, []).append(task)
    in_turn = chain.from_iterable(zip_longest(*(by_split[name] for name in sorted(by_split))))
    chosen = [task for task in in_turn if task is not None][:samples]
    return [AuditSample(task, _one_of(task, outputs.outputs[task.sample_id])) for task in chosen]


def honeypots(drawn: Sequence[AuditSample], images: ImageStore, *, inputs: bool) -> Iterator[Row]:
    """What a judge is shown."""
    blank, others = images.put(blank_image()), _of_others(drawn)
    for one in drawn:
        of_real = {Honeypot.REAL: one.image, Honeypot.RENAMED: one.image, Honeypot.BLANK: blank}
        of_others = {Honeypot.SHUFFLED: others[one.task.sample_id]}
        if inputs and one.task.inputs:
            of_others[Honeypot.UNCHANGED] = one.task.inputs[0].sha256
        # What is the real output itself is no honeypot.
        differing = {system: image for system, image in of_others.items() if image != one.image}
        for system, image in (of_real | differing).items():
            repeat = int(system is Honeypot.RENAMED)
            yield row_to_rate(one.task, {"system": system.value, "image": image}, repeat)


def blank_image() -> bytes:
    """A plain grey square of 1024 pixels, as PNG."""
    sink = io.BytesIO()
    Image.new("RGB", BLANK_SIZE, GREY).save(sink, "PNG")
    return sink.getvalue()


def _of_others(drawn: Iterable[AuditSample]) -> dict[str, str]:
    """By sample the output of the next one of its split, the first after the last."""
    by_split: dict[str, list[AuditSample]] = {}
    for one in drawn:
        by_split.setdefault(one.task.split, []).append(one)
    return {
        one.task.sample_id: following.image
        for every in by_split.values()
        for one, following in zip(every, [*every[1:], every[0]], strict=True)
    }


def _one_of(task: Task, outputs: Iterable[Row]) -> str:
    chosen = min(outputs, key=lambda row: _place(task.sample_id, row["system"]))
    return str(chosen["image"])


def _place(*names: str) -> bytes:
    named = SEPARATOR.join((str(SEED), *names))
    return hashlib.sha256(named.encode("utf-8", "surrogatepass")).digest()


FEWEST = 5
SAME = 1e-6
ByHoneypot = Mapping[str, Mapping[str, float]]  # ratings by honeypot and sample


@dataclass(frozen=True)
class Rule:
    margin: float
    share: float


RULES: Mapping[Honeypot, Rule] = {
    Honeypot.BLANK: Rule(margin=0.2, share=0.9),
    Honeypot.UNCHANGED: Rule(margin=0.1, share=0.6),
    Honeypot.SHUFFLED: Rule(margin=0.2, share=0.8),
    Honeypot.RENAMED: Rule(margin=0.12, share=0.8),  # one point of nine
}


@dataclass(frozen=True)
class Check:
    rule: Rule
    shown: int
    rated: int
    mean: float | None
    share: float | None
    passed: bool | None
    reason: NotAudited | None = None


@dataclass(frozen=True)
class Noise:
    samples: int
    equal: float | None
    deviation: float | None
    largest: float | None


def ratings_of(rows: Iterable[Row]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["rating"] is not None:
            found.setdefault(row["system"], {})[row["sample_id"]] = row["rating"]
    return found


def checks_of(rows: Sequence[Row], scale: Scale) -> dict[str, Check]:
    ratings = ratings_of(rows)
    return {
        honeypot.value: _check(honeypot, rule, ratings, _shown(rows, honeypot), scale)
        for honeypot, rule in RULES.items()
    }


def noise_of(ratings: ByHoneypot) -> Noise:
    """How far the two ratings of the same image differ."""
    found = _differences(ratings)
    if not found:
        return Noise(0, None, None, None)
    equal = sum(one <= SAME for one in found) / len(found)
    deviation = math.sqrt(fmean(one * one / 2 for one in found))
    return Noise(len(found), equal, deviation, max(found))


def _check(honeypot: Honeypot, rule: Rule, ratings: ByHoneypot, shown: int, scale: Scale) -> Check:
    given, real = ratings.get(honeypot, {}), ratings.get(Honeypot.REAL, {})
    width, reason = rule.margin * (scale.highest - scale.lowest), None
    if honeypot is Honeypot.RENAMED:
        given = {name: rating for name, rating in given.items() if name in real}
        as_ruled = [one <= width + SAME for one in _differences(ratings)]
    else:
        limit = fmean(real.values()) - width if real else math.nan
        as_ruled = [one <= limit + SAME for one in given.values()]
        reason = NotAudited.NO_ROOM if limit < scale.lowest - SAME else None
    if min(len(real), len(given)) < FEWEST:
        reason = NotAudited.FEW_RATINGS
    share = fmean(as_ruled) if as_ruled and real else None
    passed = share >= rule.share if share is not None and reason is None else None
    mean = fmean(given.values()) if given else None
    return Check(rule, shown, len(given), mean, share, passed, reason)


def _differences(ratings: ByHoneypot) -> list[float]:
    first, again = (ratings.get(name, {}) for name in (Honeypot.REAL, Honeypot.RENAMED))
    return [abs(rating - first[name]) for name, rating in again.items() if name in first]


def _shown(rows: Iterable[Row], honeypot: Honeypot) -> int:
    return sum(row["system"] == honeypot for row in rows)


def audit_of(judge: JudgeConfig, answered: Answered, ratings: pa.Table | None) -> dict[str, Any]:
    rows = answered.rows.to_pylist()
    found = ratings_of(rows)
    checks = checks_of(rows, Scale(*judge.scale, decimals=judge.decimals))
    real = found.get(Honeypot.REAL, {})
    return {
        "rubric": answered.rubric,
        "scale": list(judge.scale),
        "digest": answered.digest,
        "outcomes": dict(answered.outcomes),
        "mean_of_real_outputs": fmean(real.values()) if real else None,
        "checks": {name: asdict(check) for name, check in checks.items()},
        "noise": asdict(noise_of(found)),
        "scale_use": _scale_use(judge, answered.rubric, ratings),
        "failed": [name for name, check in checks.items() if check.passed is False],
    }


def _scale_use(judge: JudgeConfig, rubric: str, ratings: pa.Table | None) -> dict[str, Any] | None:
    """How it uses its scale in the run's ratings; null where it has given none."""
    if ratings is None:
        return None
    of_judge = [
        row for row in ratings.to_pylist() if (row["judge"], row["rubric"]) == (judge.name, rubric)
    ]
    if not of_judge:
        return None
    use = scale_use(of_judge, {judge.name: judge.scale[1]}, rubric=rubric)
    return asdict(use[judge.name])


SAMPLES = 20


@dataclass(frozen=True)
class Audited:
    asked: JudgingResult
    judges: Mapping[str, Mapping[str, Any]]


def audit(
    config: Evaluated | Path | str,
    *,
    runs: Path | str = RUNS,
    judges: Sequence[str] | None = None,
    samples: int = SAMPLES,
    dry_run: bool = False,
    budget_usd: float | None = None,
    watch: ProgressListener | None = None,
) -> Audited:
    """Shows each judge honeypots in the place of outputs, with its own instructions."""
    if samples < 1:
        raise ConfigError(f"samples is {samples!r}: expected 1 or more, such as {SAMPLES}")
    config = config if isinstance(config, Evaluated) else load_evaluation(config)
    chosen, folder = chosen_judges(config, judges), evaluation_folder(config, runs)
    read_audits(folder.root)  # a file that cannot be read is said before anybody is asked
    outputs = rated_outputs(config, folder)
    engines = {one.name: one.engine for one in chosen}
    with asking_in(folder, engines, budget_usd, watch) as asking:
        shown = SentImages(folder.images)
        questions = [_question(config, one, outputs, samples, folder, shown) for one in chosen]
        if dry_run:
            plans = tuple(map(asking.plan, questions))
            return Audited(JudgingResult(None, plans, left_out=outputs.left_out), {})
        write = partial(_write, folder, {one.name: one for one in chosen})
        names = {name for one in questions for name in one.rows["sample_id"]}
        done = ask_judges(asking, questions, outputs.left_out, write, names)
    audits = read_audits(folder.root)
    return Audited(done, {one.name: audits[one.name] for one in chosen if one.name in audits})


def _question(
    config: Evaluated,
    judge: JudgeConfig,
    outputs: ToRate,
    samples: int,
    folder: RunFolder,
    shown: SentImages,
) -> JudgeTask:
    check_scale(judge, config.protocol)
    # The rubric that win rates are made of, if the judge has it.
    rubric = OVERALL if OVERALL in judge.rubrics else judge.rubrics[0]
    fits = has_text(judge, read_table(folder.root, APPLICABILITY))
    drawn = drawn_samples(outputs, fits if rubric == TEXT else lambda _: True, samples)
    if not drawn:
        raise RunError(
            f"judge {judge.name!r} has no outputs to be audited on in {str(folder.root)!r}: run "
            "`echo-hf generate` first"
        )
    rows = rows_to_rate(honeypots(drawn, folder.images, inputs=rubric != TEXT))
    return rating_question(judge, rubric, config.protocol, rows, shown)


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
