"""`echo-hf audit --certify`: ask judges about outputs that people ranked, and measure them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from echo_hf._infra.atomic import write_json
from echo_hf._infra.bootstrap import MIN_SAMPLES
from echo_hf.collect.takedown import TOMBSTONES_FILE, read_tombstones
from echo_hf.config.evaluation import EvaluationConfig, JudgeConfig
from echo_hf.config.rubrics import OVERALL
from echo_hf.config.runs import is_run
from echo_hf.engines.base import Failed
from echo_hf.errors import ConfigError, RunError
from echo_hf.judging import judge as judging
from echo_hf.judging.certificates import (
    CERTIFICATES_FILE,
    CertificateFile,
    CertifiedSet,
    JudgeCertificate,
    Repeats,
    read_certificates,
    read_identities,
    select_overall,
)
from echo_hf.judging.compare import PAIRWISE
from echo_hf.judging.imports import PEOPLE_JUDGE, import_judgements
from echo_hf.judging.rate import compute_random_key
from echo_hf.judging.session import JudgeRows, JudgingResult, lock_judging
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import Reason
from echo_hf.scores.agreement import read_human
from echo_hf.scores.judge_accuracy import judge_accuracy
from echo_hf.scores.pairwise_agreement import Way, pairwise_agreement
from echo_hf.scores.rating_table import IgnoredRating
from echo_hf.scores.robustness import self_preference
from echo_hf.systems.benchmark import ON_HUB, Benchmark
from echo_hf.systems.carried import choose_first_outputs, store_rows
from echo_hf.systems.evaluation_run import EvaluationRun, RunOrConfig
from echo_hf.systems.run_tables import read_human_file, read_models, read_table
from echo_hf.tables import COMPARISONS, DRAW, HUMAN, OUTPUTS, Outcome, Row, fill_draws

REPEATED_OUTPUTS = 20  # rated twice, to see how far a judge agrees with itself
SET_SEED = 0
FILE_SUFFIXES = (".csv", ".jsonl", ".json", ".parquet", ".tsv", ".yaml", ".yml")
BOOTSTRAP_DRAWS = 1000


@dataclass(frozen=True)
class Certification:
    """The result of asking judges about a set, and their certificates."""

    judging: JudgingResult
    certificates: Mapping[str, JudgeCertificate]
    path: Path
    refused: tuple[str, ...] = ()  # judges of whom too little is known


def certify_judges(
    config: RunOrConfig,
    place: Path | str,
    *,
    runs: Path | str | None = None,
    judges: Sequence[str] | None = None,
    format: str | None = None,
    samples: int | None = None,
    again: bool = False,
    **limits: Unpack[judging.JudgingOptions],
) -> Certification:
    """Ask judges about outputs that people ranked, and certify how far they agree with them.

    Each rates the outputs, rates a few twice, and compares a share of the pairs in both orders.
    Answers are kept in the store of the run, so that a stopped certification goes on.

    Args:
        config: Whose judges are certified.
        place: A release with `human` and `outputs`, as a folder or `ORGANISATION/NAME@TAG`; a run
            in which people ranked; or a file about samples of the run's benchmark, as
            `judge --import` reads it.
        runs: Folder of runs.
        judges: Names of those to certify; null for all.
        format: Of a file, as for `judge --import`.
        samples: Most samples, a random draw of those ranked; null for all.
        again: Ask all anew, to see whether a judge changed; these answers are not kept.
        limits: As for `judge`.

    Raises:
        ConfigError: A judge has no rubric by which systems are compared.
        RunError: People ranked fewer than 10 samples in it that have outputs.
    """
    if samples is not None and samples < 1:
        raise ConfigError(f"samples is {samples!r}: expected 1 or more, or none for all")
    run = EvaluationRun.from_config(config, runs)
    chosen = judging.choose_judges(run.config, judges, "any")
    for judge in chosen:
        if judge.can_do("rate") and OVERALL not in judge.rubrics:
            raise ConfigError(
                f"judge {judge.name!r} does not rate by {OVERALL!r}, by which people are compared "
                f"with: add it to its rubrics, or leave it out with --judges"
            )
    root = run.prepare().root
    earlier = read_certificates(root)
    with TemporaryDirectory(prefix="echo-hf-certify-") as aside, lock_judging(root):
        answers = Path(aside) / "answers.sqlite" if again else run.folder.answers
        run_aside = _Aside(run, chosen, answers, samples)
        opened = run_aside.open(place, format, Path(aside) / "set")
        results = [*_ask(opened, Path(aside) / "again", limits)]
        result = replace(_merge_results(results), left_out=opened.left_out)
        certificates, refused = dict[str, JudgeCertificate](), list[str]()
        is_done = not limits.get("dry_run") and not result.spent
        if is_done and not any(rows.outcomes.get(Failed.NOT_ANSWERED) for rows in result.answered):
            for certificate in _build_certificates(opened, chosen, results, earlier):
                if certificate.accuracy:
                    certificates[certificate.judge] = certificate
                else:
                    refused.append(certificate.judge)
    path = root / CERTIFICATES_FILE
    if not limits.get("dry_run"):
        result = replace(result, path=path)
    if certificates:
        merged = CertificateFile(judges=dict(sorted({**earlier, **certificates}.items())))
        write_json(path, merged.model_dump(mode="json"))
    return Certification(result, certificates, path, tuple(refused))


class OpenSet(NamedTuple):
    """A run aside over what people ranked; its answers lie in the store of the judges' run."""

    run: EvaluationRun
    human: pa.Table
    name: str
    left_out: Mapping[Reason, int]


@dataclass(frozen=True)
class _Aside:
    """Opens what people ranked as a run aside, whose answers are stored in a place of choice."""

    run: EvaluationRun
    judges: Sequence[JudgeConfig]
    answers: Path
    samples: int | None

    def open(self, place: Path | str, format: str | None, root: Path) -> OpenSet:
        path, folder = Path(place), RunFolder(root)
        folder.answers = self.answers
        is_special = path.exists() and not (path.is_file() or path.is_dir())
        is_named = ON_HUB.fullmatch(str(place)) and path.suffix not in FILE_SUFFIXES
        if is_special or not (path.exists() or is_named):
            problem = "is no regular file" if is_special else "does not exist"
            raise RunError(
                f"{str(place)!r} {problem}: expected a release with people's ranks, as a folder or "
                "ORGANISATION/NAME@TAG, a run in which people ranked, or a file of ranks"
            )
        is_ranks = path.is_file() and path.suffix in (".csv", ".jsonl")
        is_config = path.is_file() and path.suffix in (".yaml", ".yml")
        if format is not None or (path.is_file() and not (is_ranks or is_config)):
            return self._open_import(path, format or "jsonl", folder)
        if is_ranks:
            return self._set_up_run(self.run, folder, read_human_file(path), path.name)
        if is_config or (path.exists() and is_run(path)):
            origin = EvaluationRun.from_config(path)
            return self._set_up_run(origin, folder, origin.read_tables().human, origin.config.name)
        benchmark = Benchmark(str(place), cache=self.run.place.cache)
        outputs, human = list[Row](), benchmark.table(HUMAN.name)
        if human is not None and benchmark.table(OUTPUTS.name) is not None:
            dataset, ids = benchmark.load(OUTPUTS.name), {*human["sample_id"].to_pylist()}
            numbers = choose_first_outputs(dataset, ids, str(place))
            outputs = store_rows(dataset.select(numbers), OUTPUTS, folder.images)
        name = benchmark.label if path.exists() else str(place)
        return self._set_up(folder, str(place), outputs, human, name)

    def _open_import(self, path: Path, format: str, folder: RunFolder) -> OpenSet:
        """Open a file of others about the samples of the run, with the run's outputs if need be."""
        reference, root = self.run.benchmark.reference, folder.root
        aside = self._open_run(folder, (), reference)
        left_out = import_judgements(aside, path, format=format).left_out
        human, outputs = read_table(root, HUMAN), read_table(root, OUTPUTS)
        if human is None and (votes := read_table(root, COMPARISONS)) is not None:
            human = _count_votes_as_ranks(votes)
        for table in (HUMAN, COMPARISONS):
            (root / f"{table.name}.parquet").unlink(missing_ok=True)
        if outputs is None or not outputs.num_rows:
            return self._set_up_run(self.run, folder, human, path.name, left_out)
        return self._set_up(folder, reference, outputs.to_pylist(), human, path.name, left_out)

    def _set_up_run(
        self,
        origin: EvaluationRun,
        folder: RunFolder,
        human: pa.Table | None,
        name: str,
        not_read: Mapping[Reason, int] | None = None,
    ) -> OpenSet:
        """Set up the outputs of a run, of which those that people ranked are copied."""
        outputs = origin.read_tables().outputs
        rows = [] if outputs is None else outputs.to_pylist()
        reference = origin.benchmark.reference
        opened = self._set_up(folder, reference, rows, human, name, not_read)
        for digest in opened.run.read_outputs()["image"].to_pylist():
            folder.images.take(origin.folder.images, digest)
        return opened

    def _set_up(
        self,
        folder: RunFolder,
        reference: str,
        outputs: Iterable[Row],
        human: pa.Table | None,
        name: str,
        not_read: Mapping[Reason, int] | None = None,
    ) -> OpenSet:
        """Keep the outputs that people ranked, and refuse a set of too few."""
        left_out = Counter(not_read or {})
        if human is None or not human.num_rows:
            lost = "; ".join(f"{count:,} {reason}" for reason, count in left_out.items())
            raise RunError(
                f"people ranked nothing in {name!r}{f' ({lost})' if lost else ''}: expected a "
                "release with the tables human and outputs, a run in which `echo-hf rank` was "
                "used, or a file of ranks"
            )
        folder.root.mkdir(parents=True, exist_ok=True)
        run = self._open_run(folder, self.judges, reference)
        tombstones = read_tombstones(self.run.folder.root / TOMBSTONES_FILE)
        usable = {
            task.sample_id
            for task in run.read_tasks().tasks
            if not any(url in tombstones for url in task.sources)
        }
        valid = pc.or_(human["rank"].is_valid(), human["score"].is_valid())
        keys = (human.filter(valid)[key].to_pylist() for key in OUTPUTS.key[:2])
        ranked = {*zip(*keys, strict=True)}
        shown = [
            row
            for row in outputs
            if (row["sample_id"], row["system"]) in ranked
            and row["sample_id"] in usable
            and row["outcome"] == Outcome.OK
            and not row.get(DRAW)
        ]
        ids = sorted(
            {row["sample_id"] for row in shown}, key=lambda name: compute_random_key(SET_SEED, name)
        )
        kept = {*ids[: self.samples]}
        shown = [row for row in shown if row["sample_id"] in kept]
        if len(kept) < MIN_SAMPLES:
            raise RunError(
                f"people ranked outputs of {len(kept):,} samples in {name!r} that have images "
                f"here: expected {MIN_SAMPLES} or more, and outputs of the same samples and "
                "systems as the ranks"
            )
        images = {(row["sample_id"], row["system"]) for row in shown}
        keys = (human[key].to_pylist() for key in OUTPUTS.key[:2])
        is_shown = [key in images for key in zip(*keys, strict=True)]
        if self.samples is None and (lost_ranks := is_shown.count(False)):
            left_out[IgnoredRating.NO_OUTPUT] += lost_ranks
        human = human.filter(pa.array(is_shown, pa.bool_()))
        _write_outputs(folder, shown)
        return OpenSet(run, human, name, left_out)

    def _open_run(
        self, folder: RunFolder, judges: Sequence[JudgeConfig], reference: str
    ) -> EvaluationRun:
        settings = self.run.config
        config = EvaluationConfig(
            name=settings.name,
            benchmark=reference,
            judges=tuple(judge.model_copy(update={"share": 1.0}) for judge in judges),
            rubrics=settings.rubrics,
            protocol=settings.protocol,
            runner=settings.runner,
            plugins=settings.plugins,
        )
        return EvaluationRun(config, folder)


def _count_votes_as_ranks(votes: pa.Table) -> pa.Table | None:
    """Turn votes of people without names on pairs into ranks, each vote of a person of its own."""
    ranks, numbers = list[Row](), Counter[str]()
    empty = dict.fromkeys(HUMAN.columns)
    for row in votes.to_pylist():
        if row["judge"] != PEOPLE_JUDGE or row["winner"] is None:
            continue
        numbers[row["sample_id"]] += 1
        about = {"sample_id": row["sample_id"], "rater": f"vote {numbers[row['sample_id']]}"}
        for name in ("a", "b"):
            rank = 1 if row["winner"] in (name, "tie") else 2
            ranks.append({**empty, **about, "system": row[f"system_{name}"], "rank": rank})
    return pa.Table.from_pylist(ranks, HUMAN.schema) if ranks else None


def _write_outputs(folder: RunFolder, rows: Sequence[Row]) -> None:
    table = fill_draws(pa.Table.from_pylist(list(rows), OUTPUTS.schema), OUTPUTS)
    pq.write_table(table, folder.root / f"{OUTPUTS.name}.parquet")


def _ask(opened: OpenSet, aside: Path, limits: judging.JudgingOptions) -> Iterator[JudgingResult]:
    """Ask for ratings of all outputs, for a few of them once more, and for choices."""
    run, budget = opened.run, limits.get("budget_usd")
    few = EvaluationRun(
        run.config.model_copy(
            update={
                "judges": tuple(
                    judge.model_copy(update={"repeats": max(2, judge.repeats)})
                    for judge in run.config.judges
                )
            }
        ),
        RunFolder(aside, run.folder),
    )
    rows = run.read_outputs().to_pylist()
    rows.sort(key=lambda row: compute_random_key(SET_SEED, row["sample_id"], row["system"]))
    first = dict[str, Row]()
    for row in rows:
        first.setdefault(row["sample_id"], row)
    aside.mkdir()
    _write_outputs(few.folder, [*first.values()][:REPEATED_OUTPUTS])
    judges = run.config.judges
    raters = [judge.name for judge in judges if judge.can_do("rate")]
    choosers = [judge.name for judge in judges if judge.can_do("compare")]
    asks = (
        (raters, OVERALL, partial(judging.judge, run, rubrics=[OVERALL])),
        (raters, f"{OVERALL}, again", partial(judging.judge, few, rubrics=[OVERALL])),
        (choosers, PAIRWISE, partial(judging.judge_pairs, run)),
    )
    for names, about, ask in asks:
        options: Any = {**limits, "budget_usd": budget, "judges": names}
        result = ask(**options) if names else JudgingResult(None)
        yield replace(
            result,
            plans=tuple(replace(plan, about=about) for plan in result.plans),
            answered=tuple(replace(answers, about=about) for answers in result.answered),
            ways=(),
        )
        if budget is not None:
            budget = max(0.0, budget - (result.cost_usd or 0.0))
        if result.spent:
            return


def _merge_results(results: Sequence[JudgingResult]) -> JudgingResult:
    costs = [result.cost_usd for result in results if result.cost_usd is not None]
    return JudgingResult(
        None,
        plans=tuple(plan for result in results for plan in result.plans),
        answered=tuple(rows for result in results for rows in result.answered),
        left_out=next((result.left_out for result in results if result.left_out), {}),
        cost_usd=sum(costs) if costs else None,
        spent=any(result.spent for result in results),
    )


def _build_certificates(
    opened: OpenSet,
    judges: Sequence[JudgeConfig],
    results: Sequence[JudgingResult],
    earlier: Mapping[str, JudgeCertificate],
) -> Iterator[JudgeCertificate]:
    run, human = opened.run, opened.human
    tables = run.read_tables(human)
    ratings, comparisons = select_overall(tables.ratings), tables.comparisons
    if comparisons is not None and not comparisons.num_rows:
        comparisons = None
    figures = judge_accuracy(human, ratings, comparisons, n_boot=BOOTSTRAP_DRAWS)
    positions = pairwise_agreement(comparisons).judges if comparisons is not None else {}
    models = read_models(run.config, tables)
    makers = (
        {name: model.maker for name, model in each.items()}
        for each in (models.judges, models.systems)
    )
    preferences = self_preference(ratings, *makers).judges if ratings is not None else {}
    people = read_human(human)
    facts = sorted(json.dumps(row, sort_keys=True, default=str) for row in human.to_pylist())
    about = CertifiedSet(
        name=opened.name,
        digest=sha256("\n".join(facts).encode()).hexdigest(),
        samples=len(people.samples),
        raters=len(people.raters),
        systems=people.systems,
    )
    pointwise, again, pairwise = (result.answered for result in results)
    for judge in judges:
        ways: dict[Way, Any] = {"pointwise": pointwise, "pairwise": pairwise}
        rows = {way: _find_rows(answered, judge.name) for way, answered in ways.items()}
        accuracy = {
            way: own
            for way, own in figures.judges.get(judge.name, {}).items()
            if own.without_ties.samples >= MIN_SAMPLES and own.without_ties.value is not None
        }
        identities = {
            way: identity
            for way, own in rows.items()
            if way in accuracy
            and own is not None
            and (identity := next(iter(read_identities(own.rows)), None))
        }
        previous = earlier.get(judge.name)
        repeated = _find_rows(again, judge.name)
        calls = sum(own.fill.calls for own in (*rows.values(), repeated) if own is not None)
        measured = (about.digest, identities)
        if previous and not calls and (previous.set.digest, previous.identities) == measured:
            yield previous  # of the day on which it was asked
            continue
        yield JudgeCertificate(
            judge=judge.name,
            day=datetime.now(UTC).date().isoformat(),
            set=about,
            answered_by=judge.answered_by,
            identities=identities,
            accuracy=accuracy,
            answered={
                way: own.outcomes.get(Outcome.OK, 0) / max(1, sum(own.outcomes.values()))
                for way, own in rows.items()
                if own is not None
            },
            people=figures.people,
            follows_position=getattr(positions.get(judge.name), "follows_position", None),
            self_preference=preferences.get(judge.name),
            repeats=_measure_repeats(repeated.rows) if repeated is not None else None,
            usd_per_1000={way: _compute_price(own) for way, own in rows.items()},
            seconds_per_1000={way: _compute_seconds(own) for way, own in rows.items()},
        )


def _find_rows(answered: Iterable[JudgeRows], judge: str) -> JudgeRows | None:
    return next((rows for rows in answered if rows.judge == judge), None)


def _measure_repeats(rows: pa.Table) -> Repeats | None:
    by_output: dict[tuple[str, str], list[float]] = {}
    for row in rows.select(["sample_id", "system", "rating"]).to_pylist():
        if row["rating"] is not None:
            by_output.setdefault((row["sample_id"], row["system"]), []).append(row["rating"])
    groups = [ratings for ratings in by_output.values() if len(ratings) > 1]
    if not groups:
        return None
    variances = [np.var(ratings, ddof=1) for ratings in groups]
    equal = np.mean([len({*ratings}) == 1 for ratings in groups])
    return Repeats(
        outputs=len(groups), equal=float(equal), deviation=float(np.sqrt(np.mean(variances)))
    )


def _compute_price(answered: JudgeRows | None) -> float | None:
    if answered is None or not (costs := answered.rows["cost_usd"].drop_null().to_pylist()):
        return None
    return float(1000 * np.mean(costs))


def _compute_seconds(answered: JudgeRows | None) -> float | None:
    """Return the seconds for 1,000 calls, if any was made."""
    if answered is None or not answered.fill.calls:
        return None
    return float(1000 * answered.fill.seconds / answered.fill.calls)
