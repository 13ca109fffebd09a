"""`echo-hf audit`: show judges images whose rating is known, to see whether they look at them."""

from __future__ import annotations

import io
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from itertools import chain, islice, zip_longest
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from PIL import Image
from pydantic import BaseModel, ConfigDict, ValidationError

from echo_hf._infra.atomic import write_json
from echo_hf._infra.text import one_line
from echo_hf.config.evaluation import EvaluationBase, JudgeConfig
from echo_hf.config.rubrics import OVERALL, Rubric, Scale
from echo_hf.errors import ConfigError, ImageError, RunError, unknown
from echo_hf.images.store import ImageStore
from echo_hf.judging import judge as judging
from echo_hf.judging.board import FAILED_AUDIT
from echo_hf.judging.hostile import (
    OTHER_FACE,
    PICTURE_CHOICES,
    RAISED_BY_PICTURES,
    HostileSet,
    PictureMaker,
    summarize_pictures,
)
from echo_hf.judging.rate import (
    TO_RATE,
    OutputsToRate,
    build_task_row,
    compute_random_key,
    get_scale,
    make_task_filter,
    to_dataset,
)
from echo_hf.judging.results import FailedAudits, JudgePictures
from echo_hf.judging.session import JudgeRows, JudgeTask, JudgingResult
from echo_hf.judging.speaks_to_judge import SpeechReading, drop_speech, read_outputs
from echo_hf.metrics.result import estimate_mean
from echo_hf.reasons import Reason
from echo_hf.scores.votes import count_votes, to_verdicts
from echo_hf.systems.base import Task
from echo_hf.systems.evaluation_run import EvaluationRun, RunOrConfig
from echo_hf.systems.run_tables import read_table
from echo_hf.tables import DRAW, RATINGS, Row


class NotAudited(Reason):
    """Why a judge neither passed nor failed a part of its audit."""

    FEW_RATINGS = "few_ratings", "fewer than 5 of these images, or of real outputs, were rated"
    ONE_NUMBER = (
        "one_number",
        "the judge gives numbers without a scale, and the same to all outputs",
    )
    NO_RUBRIC = "no_rubric", "none of the judge's rubrics asks for a rating, the higher the better"
    CHOICES_ALONE = "choices_alone", "the judge compares two outputs, and rates none"
    NO_ROOM = "no_room", "the judge rates real outputs too low to rate anything that far below them"


AUDIT_FILE = "audit.json"
BOOTSTRAP_DRAWS = 1000
ROUND_STEP = 1000  # added to the repeat numbers of each later round, so that its requests are new
DEFAULT_SAMPLES = 20
MIN_RATINGS = 5
TOLERANCE = 1e-6
BLANK_SIZE = 1024, 1024
GREY = 128, 128, 128
AUDIT_SEED = 0
ROUND_COLUMNS = ("sample_id", "system", "output_sha256", "rating")  # what is kept of each round


class Honeypot(StrEnum):
    """The kinds of images that a judge is shown instead of outputs; the `system` of an audit."""

    REAL = "real"  # the output itself, with which the others are compared
    BLANK = "blank"  # a plain gray image
    UNCHANGED = "unchanged"  # the first input of an edit, as it is
    SHUFFLED = "shuffled"  # an output for another sample of the split
    RENAMED = "renamed"  # the output again, under the name of another system


# By what share of the scale a honeypot has to be rated lower, and in what share of samples.
RULES: Mapping[Honeypot, Mapping[str, float]] = {
    Honeypot.BLANK: {"margin": 0.2, "share": 0.9},
    Honeypot.UNCHANGED: {"margin": 0.1, "share": 0.6},
    Honeypot.SHUFFLED: {"margin": 0.2, "share": 0.8},
    Honeypot.RENAMED: {"margin": 0.12, "share": 0.8},  # one point of nine
}


@dataclass(frozen=True)
class AuditResult:
    """The result of asking the judges, and what `audit.json` says of each judge."""

    judging: JudgingResult
    judges: Mapping[str, Mapping[str, Any]]
    words: SpeechReading | None = None  # of all outputs, unless tricks were left out
    not_audited: Mapping[str, NotAudited] = field(default_factory=dict)


def audit(
    config: RunOrConfig,
    *,
    runs: Path | str | None = None,
    judges: Sequence[str] | None = None,
    samples: int = DEFAULT_SAMPLES,
    again: bool = False,
    pictures: str = "all",
    **limits: Unpack[judging.JudgingOptions],
) -> AuditResult:
    """Show each judge honeypots and hostile pictures, with its own instructions.

    What was answered is read from the store, unless they are shown again, to see how it drifts.
    """
    if pictures not in PICTURE_CHOICES:
        raise ConfigError(unknown("choice", pictures, PICTURE_CHOICES, "--pictures"))
    if samples < 1:
        raise ConfigError(f"samples is {samples!r}: expected 1 or more, such as {DEFAULT_SAMPLES}")
    run = EvaluationRun.from_config(config, runs)
    config = run.config
    rubrics, not_audited = _choose_rubrics(config, judges)
    folder = run.prepare()
    # Read first: a damaged file is reported before any judge is asked.
    numbers = {
        name: again + max((audit_round["number"] for audit_round in audit["rounds"]), default=0)
        for name, audit in read_audits(folder.root).items()
    }
    outputs, (applicability, _) = judging.read_outputs_to_rate(run), run.read_applicability()

    def build_questions(_: judging.SentImages) -> Iterator[JudgeTask]:
        sent = judging.SentImages(images)
        for judge, rubric in rubrics:
            fits = make_task_filter(judge, rubric, applicability)
            pairs = _draw(outputs, [task for task in outputs.tasks if fits(task)], samples)
            if not pairs:
                raise RunError(
                    f"judge {judge.name!r} has no outputs to be audited on in "
                    f"{str(folder.root)!r}: run `echo-hf generate` first"
                )
            first = ROUND_STEP * numbers.get(judge.name, 0)
            inputs = rubric.sees_inputs
            for task, output in pairs:
                for digest in (output, *(image.sha256 for image in task.inputs)):
                    with suppress(ImageError):  # what is not there is counted as not rated
                        images.take(folder.images, digest)
            honeypots = [*_make_honeypots(pairs, images, first, inputs=inputs)]
            is_scalar = judge.answer_form == "scalar"
            scales[judge.name] = None if is_scalar else get_scale(judge, rubric)
            real = [row for row in honeypots if row["system"] == Honeypot.REAL]
            hostile_sets[judge.name] = maker.draw(pairs)
            rows = to_dataset(TO_RATE, [*honeypots, *maker.build_rows(pairs, real)])
            yield judging.rating_question(judge, rubric, config.protocol, rows, sent)

    by_name, scales = {judge.name: judge for judge, _ in rubrics}, dict[str, Scale | None]()
    engines = judging.engines_of([*by_name.values()])
    # Drawn anew each time, as the same bytes; in the run's folder, which workers see.
    drawn = TemporaryDirectory(prefix=".audit-", dir=None if limits.get("dry_run") else folder.root)
    images = ImageStore(Path(drawn.name))
    maker = PictureMaker(images, PICTURE_CHOICES[pictures], config.metrics)
    hostile_sets = dict[str, list[HostileSet]]()

    def write(root: Path, judged: JudgeRows, _: Collection[str]) -> Path:
        if judged.rows.num_rows:  # an earlier audit stays where no answer came
            ratings, saved, name = read_table(root, RATINGS), read_audit_file(root), judged.judge
            audits = {
                judge: audit for judge, audit in saved.list_audits() if judge not in not_audited
            }
            # A resumed round takes the place of its earlier state.
            earlier_rounds = audits.get(name, {}).get("rounds", ())
            rounds = add_round(earlier_rounds, numbers.get(name, 0), judged)
            audit = build_audit(by_name[name], scales[name], judged, ratings)
            hostile = summarize_pictures(
                judged.rows.to_pylist(),
                scales[name] or _find_spread(judged),
                audit["noise"]["deviation"],
                hostile_sets[name],
                maker.kinds,
            )
            add_pictures(audit, hostile, audits.get(name, {}))
            audits[name] = {**audit, "rounds": rounds}
            others = {
                judge: why for judge, why in saved.not_audited.items() if judge not in by_name
            }
            write_json(root / AUDIT_FILE, {"judges": audits, "not_audited": others | not_audited})
        return root / AUDIT_FILE

    with drawn:
        result = judging.run_judges(run, engines, build_questions, write, outputs, **limits)
    audits = {} if limits.get("dry_run") else read_audits(folder.root)
    summaries = {}
    for name in by_name:
        if name in audits:
            summaries[name] = {**audits[name], "drift": find_drift(audits[name]["rounds"])}
    words = None
    if "tricks" in maker.kinds and not limits.get("dry_run"):
        words = read_outputs(folder.root, folder.images, outputs, limits.get("watch"))
    return AuditResult(result, summaries, words, not_audited)


def _choose_rubrics(
    config: EvaluationBase, names: Sequence[str] | None
) -> tuple[list[tuple[JudgeConfig, Rubric]], dict[str, NotAudited]]:
    """Choose the rubric of each judge's audit, that of the win rates first; say who has none."""
    chosen = judging.choose_judges(config, names)
    others = () if names else config.judges
    not_audited = {judge.name: NotAudited.CHOICES_ALONE for judge in others if judge not in chosen}
    rubrics = list[tuple[JudgeConfig, Rubric]]()
    for judge in chosen:
        for name in sorted(judge.rubrics, key=lambda name: name != OVERALL):
            rubric = judging.find_rubric(config, judge, name)
            if rubric.answer == "rating" and rubric.better == "higher":
                rubrics.append((judge, rubric))
                break
        else:
            not_audited[judge.name] = NotAudited.NO_RUBRIC
    if not rubrics:
        raise ConfigError(
            f"judge {chosen[0].name!r} rates by {', '.join(chosen[0].rubrics)}: expected a rubric "
            f"with answer rating and better higher to be audited by, such as {OVERALL}"
        )
    return rubrics, not_audited


def _find_spread(judged: JudgeRows) -> Scale:
    """Return the lowest and highest rating of real outputs, for a judge without a scale."""
    rows = judged.rows.filter(pc.equal(judged.rows["system"], Honeypot.REAL.value))
    ratings = rows["rating"].drop_null().to_pylist()
    return min(ratings, default=0.0), max(ratings, default=0.0)


def _draw(outputs: OutputsToRate, tasks: Iterable[Task], samples: int) -> list[tuple[Task, str]]:
    """Draw samples of each split in turn, each with one output; the draw depends on names alone."""
    by_split: dict[str, list[Task]] = {}
    for task in sorted(tasks, key=lambda task: compute_random_key(AUDIT_SEED, task.sample_id)):
        if outputs.outputs.get(task.sample_id):
            by_split.setdefault(task.split, []).append(task)
    in_turn = chain.from_iterable(zip_longest(*(by_split[name] for name in sorted(by_split))))
    pairs = []
    for task in islice(filter(None, in_turn), samples):
        rows = outputs.outputs[task.sample_id]
        row = min(
            rows, key=lambda row: compute_random_key(AUDIT_SEED, task.sample_id, row["system"])
        )
        pairs.append((task, str(row["image"])))
    return pairs


def _make_honeypots(
    pairs: Sequence[tuple[Task, str]], images: ImageStore, first: int, *, inputs: bool
) -> Iterator[Row]:
    sink = io.BytesIO()
    Image.new("RGB", BLANK_SIZE, GREY).save(sink, "PNG")
    blank = images.put(sink.getvalue())
    by_split: dict[str, list[str]] = {}
    for task, image in pairs:
        by_split.setdefault(task.split, []).append(image)
    # By split an iterator over the output of each sample's successor, the first after the last.
    others = {name: iter([*digests[1:], digests[0]]) for name, digests in by_split.items()}
    for task, image in pairs:
        honeypots = {Honeypot.REAL: image, Honeypot.RENAMED: image, Honeypot.BLANK: blank}
        differing = {Honeypot.SHUFFLED: next(others[task.split])}
        if inputs and task.inputs:
            differing[Honeypot.UNCHANGED] = task.inputs[0].sha256
        # Where it is the real output, it would be no honeypot.
        honeypots |= {system: other for system, other in differing.items() if other != image}
        for system, output in honeypots.items():
            repeat = first + (system is Honeypot.RENAMED)
            yield {
                **build_task_row(task),
                "system": system.value,
                DRAW: 0,
                "output": output,
                "repeat": repeat,
            }


def build_audit(
    judge: JudgeConfig, scale: Scale | None, judged: JudgeRows, ratings: pa.Table | None
) -> dict[str, Any]:
    """Summarize a judge's ratings of honeypots, and how it uses its scale in the run.

    Numbers without a scale are held to the spread of those of real outputs.
    """
    rows, by_honeypot = judged.rows.to_pylist(), dict[str, dict[str, float]]()
    for row in rows:
        if row["rating"] is not None:
            by_honeypot.setdefault(row["system"], {})[row["sample_id"]] = row["rating"]
    real, renamed = by_honeypot.get(Honeypot.REAL, {}), by_honeypot.get(Honeypot.RENAMED, {})
    gaps = [abs(rating - real[name]) for name, rating in renamed.items() if name in real]
    checks, spread = {}, (min(real.values(), default=0.0), max(real.values(), default=0.0))
    lowest, highest = scale or spread
    is_flat = scale is None and highest - lowest <= 0
    tolerance = TOLERANCE if scale else TOLERANCE * (highest - lowest)
    for honeypot, rule in RULES.items():
        rated, reason = list(by_honeypot.get(honeypot, {}).items()), None
        width = rule["margin"] * (highest - lowest)
        if honeypot is Honeypot.RENAMED:
            rated = [(name, rating) for name, rating in rated if name in real]
            as_ruled = [gap <= width + tolerance for gap in gaps]
        else:
            limit = fmean(real.values()) - width if real else math.nan
            as_ruled = [rating <= limit + tolerance for _, rating in rated]
            has_room = scale is None or limit >= lowest - tolerance
            reason = None if has_room else NotAudited.NO_ROOM
        reason = NotAudited.ONE_NUMBER if is_flat else reason
        if min(len(real), len(rated)) < MIN_RATINGS:
            reason = NotAudited.FEW_RATINGS
        share = fmean(as_ruled) if as_ruled and real else None
        checks[honeypot.value] = {
            "rule": rule,
            "shown": sum(row["system"] == honeypot for row in rows),
            "rated": len(rated),
            "mean": fmean(rating for _, rating in rated) if rated else None,
            "share": share,
            "passed": share >= rule["share"] if share is not None and reason is None else None,
            "reason": reason,
        }
    return {
        "rubric": judged.rubric,
        "scale": scale and list(scale),
        "digest": judged.digest,
        "outcomes": dict(judged.outcomes),
        "mean_of_real_outputs": fmean(real.values()) if real else None,
        "checks": checks,
        "noise": {  # from the two ratings of the same image
            "samples": len(gaps),
            "equal": sum(gap <= tolerance for gap in gaps) / len(gaps) if gaps else None,
            "deviation": math.sqrt(fmean(gap * gap / 2 for gap in gaps)) if gaps else None,
            "largest": max(gaps, default=None),
        },
        "scale_use": scale_use(judge, scale, judged.rubric, ratings),
        "failed": [name for name, check in checks.items() if check["passed"] is False],
    }


def add_pictures(audit: dict[str, Any], hostile: Row, earlier: Mapping[str, Any]) -> None:
    """Add what hostile pictures did; of a kind that was left out this time, what they did last."""
    is_alike = earlier.get("digest") == audit["digest"]
    audit["pictures"] = {**(earlier.get("pictures", {}) if is_alike else {}), **hostile}
    if audit["pictures"].get("tricks", {}).get("raised_by"):
        audit["failed"].append(RAISED_BY_PICTURES)


def add_round(rounds: Iterable[Row], number: int, judged: JudgeRows) -> list[Row]:
    """Add the newest round to a judge's rounds, in place of its earlier state if it was resumed."""
    earlier = {(row["number"], row["digest"]): row for row in rounds}
    previous = earlier.pop((number, judged.digest), {"day": datetime.now(UTC).date().isoformat()})
    ratings = [[row[name] for name in ROUND_COLUMNS] for row in judged.rows.to_pylist()]
    newest = {"number": number, "day": previous["day"], "digest": judged.digest, "ratings": ratings}
    return [*earlier.values(), newest]


def find_drift(rounds: Sequence[Row]) -> dict[str, Any] | None:
    """Measure how ratings of the same honeypots changed since the first round; null without two.

    Only rounds of the same instructions and model are compared, and of them what both rated.
    """
    alike = [row for row in rounds if row["digest"] == rounds[-1]["digest"]]
    if len(alike) < 2:
        return None
    first, *_, newest = sorted(alike, key=itemgetter("number"))
    old, new = (
        {tuple(key): value for *key, value in row["ratings"] if value is not None}
        for row in (first, newest)
    )
    moved = {key: new[key] - old[key] for key in sorted(old.keys() & new.keys())}
    by_sample: dict[str, list[float]] = {name: [] for name, *_ in moved}
    for (name, *_), difference in moved.items():
        by_sample[name].append(difference)
    means = list(map(fmean, by_sample.values()))
    mean = estimate_mean(means, n_boot=BOOTSTRAP_DRAWS, seed=AUDIT_SEED)
    return {
        "first": first["day"],
        "newest": newest["day"],
        "images": len(moved),
        "changed": sum(abs(difference) > TOLERANCE for difference in moved.values()),
        "difference": mean.value,
        "interval": mean.interval,
    }


def scale_use(
    judge: JudgeConfig, scale: Scale | None, rubric: str, ratings: pa.Table | None
) -> dict[str, Any] | None:
    """Describe how a judge uses its scale in the run's ratings; null where it has given none."""
    if ratings is None:
        return None
    own = pc.and_(pc.equal(ratings["judge"], judge.name), pc.equal(ratings["rubric"], rubric))
    rows = ratings.filter(own)
    if not rows.num_rows:
        return None
    values = rows["rating"].drop_null().to_numpy()
    values = values[~np.isnan(values)]
    _, counts = np.unique(values, return_counts=True)
    shares, has_ratings = counts / max(len(values), 1), len(values) > 0
    verdicts = to_verdicts(count_votes(rows, rubric=rubric).margins)
    known_verdicts = verdicts[~np.isnan(verdicts)]
    return {
        "ratings": len(values),
        "at_ceiling": float(np.mean(values >= scale[1])) if has_ratings and scale else None,
        "levels": len(counts),
        "entropy": abs(float(np.sum(shares * np.log2(shares)))) if has_ratings else None,
        "pairs": len(known_verdicts),
        "ties": float(np.mean(known_verdicts == 0)) if len(known_verdicts) else None,
    }


class Audit(BaseModel):
    """The fields of a judge's audit that scores read."""

    model_config = ConfigDict(extra="allow")

    failed: list[str]
    rounds: list[dict[str, Any]] = []
    pictures: JudgePictures = {}


class AuditFile(BaseModel):
    """The audits of a run's judges, and why others have none."""

    judges: dict[str, Audit]
    not_audited: dict[str, NotAudited] = {}

    def list_audits(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for name, audit in self.judges.items():
            yield name, audit.model_dump(mode="json")


def read_audits(root: Path) -> dict[str, dict[str, Any]]:
    """Read the audits of a run by judge; empty where there is no file."""
    return dict(read_audit_file(root).list_audits())


def read_audit_file(root: Path) -> AuditFile:
    """Read what audits of a run found; empty where there is no file."""
    path = root / AUDIT_FILE
    if not path.exists():
        return AuditFile(judges={})
    try:
        return AuditFile.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        reason = one_line(error)[:200]
        raise RunError(
            f"{str(path)!r} is not an audit of judges ({reason}): run `echo-hf audit` again, or "
            "move it away"
        ) from None


def drop_audit_ratings(root: Path, samples: Collection[str]) -> None:
    """Remove the ratings of samples, and of others that were shown one of their outputs.

    What was read in their outputs goes with them.
    """
    drop_speech(root, samples)
    saved, changed = read_audit_file(root), False
    audits = dict(saved.list_audits())
    for turn in chain.from_iterable(audit["rounds"] for audit in audits.values()):
        real = (row for row in turn["ratings"] if row[1] == Honeypot.REAL)
        gone = {image for name, _, image, _ in real if name in samples}
        kept = [row for row in turn["ratings"] if row[0] not in samples and row[2] not in gone]
        # Whose face was shown in the place of another's is not noted.
        kept = [row for row in kept if not gone or row[1] != OTHER_FACE]
        changed, turn["ratings"] = changed or len(kept) < len(turn["ratings"]), kept
    if changed:
        write_json(root / AUDIT_FILE, {"judges": audits, "not_audited": saved.not_audited})


def read_failures(root: Path) -> FailedAudits:
    audits = sorted(read_audits(root).items())
    return {name: tuple(audit["failed"]) for name, audit in audits if audit["failed"]}


def add_failed(
    definition: Mapping[str, Any], judges: Iterable[str], failed: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Add to a figure's definition which of its judges failed their audits."""
    failed_honeypots = {judge: list(failed[judge]) for judge in judges if judge in failed}
    return {**definition, **({FAILED_AUDIT: failed_honeypots} if failed_honeypots else {})}
