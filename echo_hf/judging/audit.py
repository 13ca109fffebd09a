"""`echo-hf audit`: show judges images whose rating is known before they are believed."""

from __future__ import annotations

import io
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import chain, islice, zip_longest
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from PIL import Image
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from echo_hf._infra.atomic import write_json
from echo_hf._infra.text import one_line
from echo_hf.config.evaluation import Evaluated, JudgeConfig
from echo_hf.errors import ConfigError, RunError
from echo_hf.images.store import ImageStore
from echo_hf.judging import judge as judging
from echo_hf.judging.board import FAILED_AUDIT
from echo_hf.judging.rate import (
    OVERALL,
    TO_RATE,
    ToRate,
    fitting,
    place_of,
    rows_of,
    sees_inputs,
    task_row,
)
from echo_hf.judging.run_tables import read_applicability, read_table
from echo_hf.judging.session import Answered, JudgeTask, JudgingResult
from echo_hf.metrics.result import estimate_mean
from echo_hf.reasons import NotAudited
from echo_hf.scores.votes import count_votes, to_verdicts
from echo_hf.systems.base import Task
from echo_hf.systems.benchmark import benchmark_of, evaluation_folder, load_evaluation
from echo_hf.tables import RATINGS

AUDIT_FILE = "audit.json"
DRAWS = 1000
AGAIN = 1000  # what a later round adds to the numbers of repetitions, so that it is asked anew
SAMPLES = 20
FEWEST = 5
SAME = 1e-6
BLANK_SIZE = 1024, 1024
GREY = 128, 128, 128
SEED = 0
SAID = ("sample_id", "system", "output_sha256", "rating")  # what is kept of each round
Row = Mapping[str, Any]
Failures = Mapping[str, tuple[str, ...]]


class Honeypot(StrEnum):
    """What stands in the place of an output: the values of `system` in an audit."""

    REAL = "real"  # the output itself, which the others are held against
    BLANK = "blank"  # one plain grey
    UNCHANGED = "unchanged"  # the first input of an edit, as it went in
    SHUFFLED = "shuffled"  # an output for another sample of the split
    RENAMED = "renamed"  # the output once more, under another system's name


# By how much of the scale a honeypot is to be rated lower, and how often.
RULES: Mapping[Honeypot, Mapping[str, float]] = {
    Honeypot.BLANK: {"margin": 0.2, "share": 0.9},
    Honeypot.UNCHANGED: {"margin": 0.1, "share": 0.6},
    Honeypot.SHUFFLED: {"margin": 0.2, "share": 0.8},
    Honeypot.RENAMED: {"margin": 0.12, "share": 0.8},  # one point of nine
}


@dataclass(frozen=True)
class Audited:
    """What became of asking, and by judge what `audit.json` says."""

    asked: JudgingResult
    judges: Mapping[str, Mapping[str, Any]]


def audit(
    config: Evaluated | Path | str,
    *,
    runs: Path | str | None = None,
    judges: Sequence[str] | None = None,
    samples: int = SAMPLES,
    again: bool = False,
    **limits: Unpack[judging.Limits],
) -> Audited:
    """Shows each judge honeypots in the place of outputs, with its own instructions.

    What was answered is read from the store, unless they are shown again, to see how it drifts.
    """
    if samples < 1:
        raise ConfigError(f"samples is {samples!r}: expected 1 or more, such as {SAMPLES}")
    config = load_evaluation(config)
    chosen, folder = judging.chosen_judges(config, judges), evaluation_folder(config, runs)
    # A file that cannot be read is said before anybody is asked.
    numbers = {
        name: again + max((one["number"] for one in audit["rounds"]), default=0)
        for name, audit in read_audits(folder.root).items()
    }
    outputs = judging.rated_outputs(config, folder)
    applicability, _ = read_applicability(benchmark_of(config, folder), folder)

    def questions(shown: judging.SentImages) -> Iterator[JudgeTask]:
        for judge in chosen:
            judging.check_scale(judge, config.protocol)
            # The rubric that win rates are made of, if the judge has it.
            rubric = OVERALL if OVERALL in judge.rubrics else judge.rubrics[0]
            fits = fitting(judge, rubric, applicability)
            drawn = _drawn(outputs, [task for task in outputs.tasks if fits(task)], samples)
            if not drawn:
                raise RunError(
                    f"judge {judge.name!r} has no outputs to be audited on in "
                    f"{str(folder.root)!r}: run `echo-hf generate` first"
                )
            first = AGAIN * numbers.get(judge.name, 0)
            shown_now = _honeypots(drawn, folder.images, first, inputs=sees_inputs(rubric))
            rows = rows_of(TO_RATE, shown_now)
            yield judging.rating_question(judge, rubric, config.protocol, rows, shown)

    by_name = {one.name: one for one in chosen}

    def write(root: Path, answered: Answered, _: Collection[str]) -> Path:
        if answered.rows.num_rows:  # where it answered nothing, an earlier audit stays
            ratings, found, who = read_table(root, RATINGS), read_audits(root), answered.who
            before = found.get(who, {}).get("rounds", ())
            rounds = rounds_with(before, numbers.get(who, 0), answered)
            found[who] = {**audit_of(by_name[who], answered, ratings), "rounds": rounds}
            write_json(root / AUDIT_FILE, {"judges": found})
        return root / AUDIT_FILE

    engines = judging.engines_of(chosen)
    done = judging.run_judges(folder, engines, questions, write, outputs, config.runner, **limits)
    audits = {} if limits.get("dry_run") else read_audits(folder.root)
    told = {name: {**one, "drift": drift_of(one["rounds"])} for name, one in audits.items()}
    return Audited(done, {name: told[name] for name in by_name if name in told})


def _drawn(outputs: ToRate, tasks: Iterable[Task], samples: int) -> list[tuple[Task, str]]:
    """Some samples of each split in turn, each with one output, whatever else there is."""
    by_split: dict[str, list[Task]] = {}
    for task in sorted(tasks, key=lambda task: place_of(SEED, task.sample_id)):
        if outputs.outputs.get(task.sample_id):
            by_split.setdefault(task.split, []).append(task)
    in_turn = chain.from_iterable(zip_longest(*(by_split[name] for name in sorted(by_split))))
    found = []
    for task in islice(filter(None, in_turn), samples):
        there = outputs.outputs[task.sample_id]
        row = min(there, key=lambda row: place_of(SEED, task.sample_id, row["system"]))
        found.append((task, str(row["image"])))
    return found


def _honeypots(
    drawn: Sequence[tuple[Task, str]], images: ImageStore, first: int, *, inputs: bool
) -> Iterator[Row]:
    sink = io.BytesIO()
    Image.new("RGB", BLANK_SIZE, GREY).save(sink, "PNG")
    blank = images.put(sink.getvalue())
    by_split: dict[str, list[str]] = {}
    for task, image in drawn:
        by_split.setdefault(task.split, []).append(image)
    # By sample the output of the next one of its split, the first after the last.
    others = {name: iter([*every[1:], every[0]]) for name, every in by_split.items()}
    for task, image in drawn:
        shown = {Honeypot.REAL: image, Honeypot.RENAMED: image, Honeypot.BLANK: blank}
        differing = {Honeypot.SHUFFLED: next(others[task.split])}
        if inputs and task.inputs:
            differing[Honeypot.UNCHANGED] = task.inputs[0].sha256
        # What is the real output itself is no honeypot.
        shown |= {system: other for system, other in differing.items() if other != image}
        for system, output in shown.items():
            repeat = first + (system is Honeypot.RENAMED)
            yield {**task_row(task), "system": system.value, "output": output, "repeat": repeat}


def audit_of(judge: JudgeConfig, answered: Answered, ratings: pa.Table | None) -> dict[str, Any]:
    """What a judge's ratings of honeypots come to, beside how it uses its scale in the run."""
    rows, given = answered.rows.to_pylist(), dict[str, dict[str, float]]()
    for row in rows:
        if row["rating"] is not None:
            given.setdefault(row["system"], {})[row["sample_id"]] = row["rating"]
    real, again = given.get(Honeypot.REAL, {}), given.get(Honeypot.RENAMED, {})
    found = [abs(rating - real[name]) for name, rating in again.items() if name in real]
    checks, (lowest, highest) = {}, judge.scale
    for honeypot, rule in RULES.items():
        said, reason = list(given.get(honeypot, {}).items()), None
        width = rule["margin"] * (highest - lowest)
        if honeypot is Honeypot.RENAMED:
            said = [(name, rating) for name, rating in said if name in real]
            as_ruled = [one <= width + SAME for one in found]
        else:
            limit = fmean(real.values()) - width if real else math.nan
            as_ruled = [rating <= limit + SAME for _, rating in said]
            reason = NotAudited.NO_ROOM if limit < lowest - SAME else None
        if min(len(real), len(said)) < FEWEST:
            reason = NotAudited.FEW_RATINGS
        share = fmean(as_ruled) if as_ruled and real else None
        checks[honeypot.value] = {
            "rule": rule,
            "shown": sum(row["system"] == honeypot for row in rows),
            "rated": len(said),
            "mean": fmean(rating for _, rating in said) if said else None,
            "share": share,
            "passed": share >= rule["share"] if share is not None and reason is None else None,
            "reason": reason,
        }
    return {
        "rubric": answered.rubric,
        "scale": list(judge.scale),
        "digest": answered.digest,
        "outcomes": dict(answered.outcomes),
        "mean_of_real_outputs": fmean(real.values()) if real else None,
        "checks": checks,
        "noise": {  # of the two ratings of the same image
            "samples": len(found),
            "equal": sum(one <= SAME for one in found) / len(found) if found else None,
            "deviation": math.sqrt(fmean(one * one / 2 for one in found)) if found else None,
            "largest": max(found, default=None),
        },
        "scale_use": scale_use(judge, answered.rubric, ratings),
        "failed": [name for name, check in checks.items() if check["passed"] is False],
    }


def rounds_with(rounds: Iterable[Row], number: int, answered: Answered) -> list[Row]:
    """The rounds of a judge's audits with the newest, in place of itself where it resumes."""
    known = {(one["number"], one["digest"]): one for one in rounds}
    again = known.pop((number, answered.digest), {"day": datetime.now(UTC).date().isoformat()})
    said = [[row[name] for name in SAID] for row in answered.rows.to_pylist()]
    newest = {"number": number, "day": again["day"], "digest": answered.digest, "ratings": said}
    return [*known.values(), newest]


def drift_of(rounds: Sequence[Row]) -> dict[str, Any] | None:
    """How a judge rates the same honeypots now and when they were first shown; null without both.

    Only rounds of the same instructions and model are compared, and of them what both rated.
    """
    alike = [one for one in rounds if one["digest"] == rounds[-1]["digest"]]
    if len(alike) < 2:
        return None
    first, *_, newest = sorted(alike, key=itemgetter("number"))
    before, now = (
        {tuple(key): value for *key, value in one["ratings"] if value is not None}
        for one in (first, newest)
    )
    moved = {key: now[key] - before[key] for key in sorted(before.keys() & now.keys())}
    by_sample: dict[str, list[float]] = {name: [] for name, *_ in moved}
    for (name, *_), difference in moved.items():
        by_sample[name].append(difference)
    mean = estimate_mean(list(map(fmean, by_sample.values())), n_boot=DRAWS, seed=SEED)
    return {
        "first": first["day"],
        "newest": newest["day"],
        "images": len(moved),
        "changed": sum(abs(difference) > SAME for difference in moved.values()),
        "difference": mean.value,
        "interval": mean.interval,
    }


def scale_use(judge: JudgeConfig, rubric: str, ratings: pa.Table | None) -> dict[str, Any] | None:
    """How a judge uses its scale in the run's ratings; null where it has given none."""
    if ratings is None:
        return None
    own = pc.and_(pc.equal(ratings["judge"], judge.name), pc.equal(ratings["rubric"], rubric))
    rows = ratings.filter(own)
    if not rows.num_rows:
        return None
    given = rows["rating"].drop_null().to_numpy()
    given = given[~np.isnan(given)]
    _, counts = np.unique(given, return_counts=True)
    shares, there = counts / max(len(given), 1), len(given) > 0
    verdicts = to_verdicts(count_votes(rows, rubric=rubric).margins)
    said = verdicts[~np.isnan(verdicts)]
    return {
        "ratings": len(given),
        "at_ceiling": float(np.mean(given >= judge.scale[1])) if there else None,
        "levels": len(counts),
        "entropy": abs(float(np.sum(shares * np.log2(shares)))) if there else None,
        "pairs": len(said),
        "ties": float(np.mean(said == 0)) if len(said) else None,
    }


class Audit(BaseModel):
    """The part of a judge's audit that scores read."""

    model_config = ConfigDict(extra="allow")

    failed: list[str]
    rounds: list[dict[str, Any]] = []


AUDITS = TypeAdapter(dict[Literal["judges"], dict[str, Audit]])


def read_audits(root: Path) -> dict[str, dict[str, Any]]:
    """The audits of a run by judge; none where there is no file."""
    path = root / AUDIT_FILE
    if not path.exists():
        return {}
    try:
        found = AUDITS.validate_json(path.read_bytes())["judges"]
    except (OSError, ValidationError, KeyError) as error:
        said = one_line(error)[:200]
        raise RunError(
            f"{str(path)!r} is not an audit of judges ({said}): run `echo-hf audit` again, or "
            "move it away"
        ) from None
    return {name: one.model_dump(mode="json") for name, one in found.items()}


def drop_audited(root: Path, samples: Collection[str]) -> None:
    """Removes ratings of samples, and of others that an output of one was shown for."""
    audits, found = read_audits(root), False
    for one in chain.from_iterable(audit["rounds"] for audit in audits.values()):
        real = (row for row in one["ratings"] if row[1] == Honeypot.REAL)
        gone = {image for name, _, image, _ in real if name in samples}
        kept = [row for row in one["ratings"] if row[0] not in samples and row[2] not in gone]
        found, one["ratings"] = found or len(kept) < len(one["ratings"]), kept
    if found:
        write_json(root / AUDIT_FILE, {"judges": audits})


def read_failures(root: Path) -> Failures:
    audits = sorted(read_audits(root).items())
    return {name: tuple(audit["failed"]) for name, audit in audits if audit["failed"]}


def flagged(
    definition: Mapping[str, Any], judges: Iterable[str], failed: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """A figure's definition, with the judges of the figure that failed their audits."""
    theirs = {judge: list(failed[judge]) for judge in judges if judge in failed}
    return {**definition, **({FAILED_AUDIT: theirs} if theirs else {})}
