"""Decide whether a new system passes: against a base, on the same prompts, by the same judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from echo_hf.config.evaluation import EvaluationBase
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import ConfigError, RunError, ScoreError, unknown
from echo_hf.hub.run_tables import CHOICES
from echo_hf.judging.audit import read_failures
from echo_hf.judging.choice_board import drop_people
from echo_hf.judging.results import FailedAudits
from echo_hf.judging.score import NO_FITTING_SAMPLE, ScoredRun
from echo_hf.metrics import Metric, registered
from echo_hf.metrics.result import MetricReason
from echo_hf.metrics.rubric import list_figures
from echo_hf.reasons import Reason
from echo_hf.scores import NonInferiority, non_inferiority
from echo_hf.scores.choices import average_outcomes
from echo_hf.scores.non_inferiority import Verdict, paired_non_inferiority
from echo_hf.scores.pairwise_agreement import PAIR, read_choices
from echo_hf.scores.rating_table import RUBRIC
from echo_hf.scores.win_rate import METRIC as WIN_RATE
from echo_hf.systems.evaluation_run import EvaluationRun, RunOrConfig
from echo_hf.systems.run_tables import RunTables, read_models
from echo_hf.tables import COMPARISONS, Outcome

MARGIN = 0.05  # in win rates
EXIT_CODES: Mapping[Verdict, int] = {"non_inferior": 0, "worse": 1, "undecided": 3}
# How `judge` writes it into a provenance: the digest of all that decides a rating.
JUDGE_DIGEST_PATTERN = r'^\{"judge": \{.*?"digest": "(?P<digest>[0-9a-f]{64})"'
REASONS_OF_INPUTS = frozenset(  # no output could have had a number for such a sample
    {
        MetricReason.NO_INPUT,
        MetricReason.BAD_INPUT,
        MetricReason.BLANK_INPUT,
        MetricReason.NO_FACE_IN_INPUT,
        MetricReason.SEVERAL_INPUTS,
        MetricReason.SPARED,
    }
)
COMPARED = {"prompt_digest": "other instructions", "made_by": "another model or other settings"}


@dataclass(frozen=True)
class GateSide:
    """One system of one run, and its name in this comparison."""

    run: EvaluationRun
    systems: frozenset[str]
    system: str = ""
    label: str = ""

    @classmethod
    def open_run(cls, config: RunOrConfig, runs: Path | str | None) -> Self:
        """Open a run by its config or its folder; `select` then chooses a system."""
        # `runs` is for runs that are named by their config, and not for a run's own folder.
        is_folder = isinstance(config, Path | str) and Path(config).is_dir()
        run = EvaluationRun.from_config(config, None if is_folder else runs)
        return cls(run, frozenset(read_models(run.config, run.read_tables()).systems))

    @property
    def tables(self) -> RunTables:
        return self.run.read_tables()

    @property
    def root(self) -> Path:
        return self.run.folder.root

    def select(self, system: str, label: str) -> GateSide:
        if system not in self.systems:
            raise ConfigError(unknown("system", system, self.systems, str(self.root)))
        return replace(self, system=system, label=label)

    def select_rows(self, table: pa.Table | None, splits: Sequence[str]) -> pa.Table | None:
        """Select the rows of this system in some splits, under its label."""
        if table is None:
            return None
        own = table.filter(pc.equal(table["system"], self.system))
        own = pa.concat_tables([self.tables.select_split(own, split) for split in splits])
        label = pa.repeat(pa.scalar(self.label, pa.string()), own.num_rows)
        return own.set_column(own.column_names.index("system"), "system", label)


@dataclass(frozen=True)
class GateResult:
    """The verdict on a new system, with what it rests on."""

    metric: str
    base: str
    new: str
    prompts: int  # in the release
    test: NonInferiority
    judges: tuple[str, ...]
    failed: FailedAudits
    left_out: Mapping[str, Mapping[Reason, int]]


def open_sides(
    config: RunOrConfig,
    base: RunOrConfig,
    new: str | None = None,
    *,
    system: str | None = None,
    runs: Path | str | None = None,
) -> tuple[GateSide, GateSide]:
    """Open two systems of one run; without `new`, the system that two runs share."""
    first = GateSide.open_run(config, runs)
    if new is not None:
        if system or base == new:
            raise ConfigError(f"BASE is {base!r}, NEW {new!r}: expected two, without --system")
        return first.select(str(base), str(base)), first.select(new, new)
    second = GateSide.open_run(base, runs)
    if first.root.resolve() == second.root.resolve():
        raise ConfigError(f"{str(config)!r} and {str(base)!r} are one run: expected two, or a NEW")
    shared = [system] if system else sorted(first.systems & second.systems)
    if len(shared) != 1:
        raise ConfigError(
            f"the two runs share {len(shared)} systems, of {sorted(first.systems)} and "
            f"{sorted(second.systems)}: expected one, or its name with --system"
        )
    (name,) = shared
    return first.select(name, f"{name} in {config}"), second.select(name, f"{name} in {base}")


def compare_systems(
    base: GateSide,
    new: GateSide,
    *,
    metric: str | None = None,
    margin: float | None = None,
    confidence: float = 0.95,
    split: str | None = None,
) -> GateResult:
    """Compare two systems on the prompts of one release.

    Without a metric that is by choices where they are the board of one run, else by win rate.
    """
    has_pairs = base.run.config.board == "pairwise" and base.root == new.root
    metric = metric or (CHOICES if has_pairs else WIN_RATE)
    figures = list_figures(base.run.asked_config)  # and the metrics that are measured where named
    metrics = {**registered(), **{figure.name: figure for figure in figures}}
    if metric not in (known := (WIN_RATE, CHOICES, *metrics)):
        raise ConfigError(unknown("metric", metric, known))
    measured = metrics.get(metric)
    if margin is None and metric not in (WIN_RATE, CHOICES):
        raise ConfigError(
            f"--metric {metric} has no usual margin: say how much worse NEW may be, in the "
            "metric's own unit, such as --margin 0.02"
        )
    if split and split not in BENCHMARKS:
        raise ConfigError(unknown("split", split, BENCHMARKS))
    protocol, other = base.run.config.protocol, new.run.config.protocol
    if protocol != other:
        raise ConfigError(
            f"protocol of {base.label} is {protocol!r}, of {new.label} {other!r}: expected the "
            "same in both configs"
        )
    _check_release(base, new)
    sides, splits, ratings = (base, new), (split,) if split else BENCHMARKS, None
    margin = MARGIN if margin is None else margin
    limits: dict[str, Any] = {"margin": margin, "confidence": confidence}
    judges = tuple[str, ...]()
    if metric == CHOICES:
        shares, judges = _read_choices(base, new, splits)
        test = paired_non_inferiority(*shares, higher_is_better=True, **limits)
    elif measured is None or "ratings" in measured.needs:
        rubric = measured.rubric if measured else RUBRIC
        ratings = _read_shared_ratings(sides, splits, rubric)
        judges = tuple(sorted({*ratings["judge"].to_pylist()}))
    if metric == WIN_RATE:
        parts = [side.select_rows(side.tables.outputs, splits) for side in sides]
        limits["outputs"] = None if None in parts else pa.concat_tables(parts)
        test = non_inferiority(ratings, base.label, new.label, protocol=protocol, **limits)
    elif measured is not None:
        first, second = (
            _measure_samples(side, measured, base.run.asked_config, splits) for side in sides
        )
        ids = sorted({*first, *second})
        values = ([by_sample.get(name) for name in ids] for by_sample in (first, second))
        higher = measured.better == "higher"
        test = paired_non_inferiority(*values, higher_is_better=higher, **limits)
    return GateResult(
        metric=metric,
        base=base.label,
        new=new.label,
        prompts=sum(len(base.tables.tasks[split]) for split in splits),
        test=test,
        judges=judges,
        failed={**read_failures(base.root), **read_failures(new.root)},
        left_out={
            f"{table} in {side.root}": counts
            for side in sides
            for table, counts in side.tables.left_out.items()
        },
    )


def _read_choices(
    base: GateSide, new: GateSide, splits: Sequence[str]
) -> tuple[list[list[float | None]], tuple[str, ...]]:
    """Read each side's share of the points of every prompt on which judges compared the two."""
    if base.root != new.root:
        raise ConfigError(
            f"--metric {CHOICES} compares two systems of one run, that judges saw side by side: "
            f"expected CONFIG BASE NEW, or --metric {WIN_RATE}"
        )
    tables, names = base.tables, sorted((base.system, new.system))
    parts = [tables.select_split(tables.comparisons, split) for split in splits]
    rows = pa.concat_tables([COMPARISONS.make_empty(), *(part for part in parts if part)])
    of_pair = [pc.equal(rows[side], name) for side, name in zip(PAIR[1:], names, strict=True)]
    frame = read_choices(drop_people(rows.filter(pc.and_(*of_pair)), base.run.config))
    if frame["skipped"].any():
        raise ScoreError(
            f"judges chose between {base.label} and {new.label} until pairs were decided, after "
            "which no interval holds: expected choices on all samples; `echo-hf score -v` has "
            f"what is decided, --metric {WIN_RATE} compares ratings"
        )
    means = average_outcomes(frame)
    outcomes = dict(zip(means["sample_id"], means["outcome"], strict=True))
    if not outcomes:
        raise RunError(
            f"no judge chose between {base.label} and {new.label} in both orders: run `echo-hf "
            f"judge --pairwise`, or compare by --metric {WIN_RATE}"
        )
    # A sample of which one alone has an image counts as missing.
    drawn = [
        {row["sample_id"] for row in own.to_pylist() if row["outcome"] == Outcome.OK}
        for side in (base, new)
        if (own := side.select_rows(tables.outputs, splits)) is not None
    ]
    uneven = drawn[0] ^ drawn[1] if len(drawn) == len((base, new)) else set()
    shares = [outcomes.get(name) for name in sorted({*frame["sample_id"], *uneven})]
    half = 0.5 if base.system == names[0] else -0.5
    values = [
        [None if share is None else 0.5 + weight * share for share in shares]
        for weight in (half, -half)
    ]
    return values, tuple(sorted({*frame["judge"]}))


def _check_release(base: GateSide, new: GateSide) -> None:
    first, second = (
        {task.sample_id: task.sample_digest for part in side.tables.tasks.values() for task in part}
        for side in (base, new)
    )
    if first != second:
        removed, added = len(first.keys() - second.keys()), len(second.keys() - first.keys())
        changed = sum(first[name] != second[name] for name in first.keys() & second.keys())
        raise RunError(
            f"the prompts of {base.label} and {new.label} differ: {removed} are in the first run "
            f"alone, {added} in the second, {changed} have another digest: expected one release; "
            "run both on the same"
        )


def _read_shared_ratings(sides: Sequence[GateSide], splits: Sequence[str], rubric: str) -> pa.Table:
    """Read the ratings of both sides, which need the same judges, instructions and settings."""
    side_rows = [side.select_rows(side.tables.ratings, splits) for side in sides]
    side_rows = [rows and rows.filter(pc.equal(rows["rubric"], rubric)) for rows in side_rows]
    first, second = (sorted({*rows["judge"].to_pylist()}) if rows else [] for rows in side_rows)
    if not first or first != second:
        raise RunError(
            f"by the rubric {rubric!r} {sides[0].label} was rated by {first}, {sides[1].label} by "
            f"{second}: expected the same judges; run `echo-hf judge` on both"
        )
    rows = pa.concat_tables(side_rows)
    if rows["rating"].null_count == rows.num_rows:
        raise ScoreError(
            f"nothing was rated: of {rows.num_rows:,} outputs of {sides[0].label} and "
            f"{sides[1].label} none has a rating by {', '.join(first)}: mend the judge, then run "
            "`echo-hf judge` with --again"
        )
    made_by = pc.struct_field(pc.extract_regex(rows["provenance"], JUDGE_DIGEST_PATTERN), "digest")
    rows = rows.append_column("made_by", made_by)
    for column, difference in COMPARED.items():
        distinct = (column, "count_distinct", pc.CountOptions(mode="all"))
        grouped = rows.group_by(["sample_id", "judge"]).aggregate([distinct])
        several = grouped.filter(pc.greater(grouped[f"{column}_count_distinct"], 1))
        if judges := sorted({*several["judge"].to_pylist()}):
            raise RunError(
                f"judges {judges} rated {sides[0].label} and {sides[1].label} by {difference}, on "
                f"{several.num_rows:,} prompts: expected the same; have both rated again"
            )
    return rows


def _measure_samples(
    side: GateSide, metric: type[Metric], config: EvaluationBase, splits: Sequence[str]
) -> dict[str, float | None]:
    """Measure each prompt that the metric fits; null where the output has no number."""
    run, values = ScoredRun(config, side.run.folder, side.tables), dict[str, float | None]()
    for split in splits:
        for figure in run.measure(split, [metric], [side.system]):
            if figure.missing == NO_FITTING_SAMPLE:
                continue
            if figure.result is None:
                raise ScoreError(f"{metric.name} of {side.label}: {figure.missing}")
            rows = zip(figure.fitting, figure.result.per_sample, figure.result.reasons, strict=True)
            values |= {
                task.sample_id: value
                for task, value, reason in rows
                if reason is None or reason.reason not in REASONS_OF_INPUTS
            }
    if all(value is None for value in values.values()):
        raise ScoreError(
            f"no output of {side.label} has a {metric.name}, of {len(values)} prompts that it fits:"
            " run `echo-hf generate`, or choose another metric"
        )
    return values
