"""How often systems succeed, from several outputs of a sample, as results and sentences."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from echo_hf._infra.text import percent, pluralize
from echo_hf.config.evaluation import SuccessOptions
from echo_hf.errors import ScoreError
from echo_hf.hub.run_tables import ResultRow
from echo_hf.judging.results import SavedReliability
from echo_hf.metrics.result import coverage_of
from echo_hf.scores.reliability import (
    PASS_AT,
    PER_SUCCESS,
    SUCCESS,
    Estimate,
    Reliability,
    reliability,
)
from echo_hf.scores.votes import ProtocolName, best_first
from echo_hf.tables import DRAW, RATINGS, Outcome

MetricValues = Sequence[Mapping[str, Any]]


def has_several_draws(*tables: pa.Table | None) -> bool:
    return any(table is not None and (pc.max(table[DRAW]).as_py() or 0) > 0 for table in tables)


def score_reliability(
    outputs: pa.Table | None,
    ratings: pa.Table | None,
    options: SuccessOptions,
    misfits: Mapping[str, Collection[str]],
    values: MetricValues,
) -> SavedReliability:
    """Score all outputs of a split; where that cannot be, say why.

    `misfits` has the kept checks, with the samples that somebody said one does not fit.
    """
    rows = RATINGS.make_empty() if ratings is None else ratings
    if options.rule == "checks":
        keys = zip(rows["rubric"].to_pylist(), rows["sample_id"].to_pylist(), strict=True)
        is_asked = [
            check in misfits and sample not in misfits[check] if "@" in check else True
            for check, sample in keys
        ]
        rows = rows.filter(pa.array(is_asked, pa.bool_()))
    try:
        return SavedReliability(
            result=reliability(
                rows, outputs, threshold=options.threshold, success=options.rule, values=values
            )
        )
    except ScoreError as error:
        return SavedReliability(missing=str(error))


def make_reliability_rows(
    figures: Reliability, split: str, protocol: ProtocolName, samples: int
) -> Iterator[ResultRow]:
    """Make the rows of results: share of successes, pass@k, and what a success costs."""
    numbers = range(2, (figures.definition["k"] or 0) + 1)
    columns = {SUCCESS: ("success", figures.success)} | {
        PASS_AT.format(k): (
            "pass_at",
            {system: own.get(k) for system, own in figures.pass_at.items()},
        )
        for k in numbers
    }
    columns |= {name: (figure, vars(figures)[figure]) for figure, name in PER_SUCCESS.items()}
    for metric, (figure, by_system) in columns.items():
        better = "lower" if figure in PER_SUCCESS else "higher"
        for system, estimate in by_system.items():
            value, interval, prompts = estimate or Estimate(None, None, 0)
            low, high = interval or (None, None)
            reason = figures.refused[system].get(figure)
            missing = {"missing": reason.meaning} if value is None and reason else {}
            yield ResultRow(
                metric=metric,
                protocol=protocol,
                split=split,
                system=system,
                value=value,
                low=low,
                high=high,
                n=prompts,
                coverage=coverage_of(prompts, samples),
                definition={
                    **figures.definition,
                    "metric": metric,
                    "direction": f"{better} is better",
                    **missing,
                },
            )


def describe_reliability(figures: Reliability) -> Iterator[str]:
    """Yield what the outputs of each system became, and what its success varies with."""
    for system in best_first({name: share.value for name, share in figures.success.items()}):
        outcomes, unrated = figures.outcomes[system], figures.unrated[system]
        tries = sum(each.tries for each in outcomes.values())
        successes = sum(each.successes for each in outcomes.values())
        parts = [f"{successes:,} of {pluralize(tries, 'output')} succeed"]
        share, ends, _ = figures.never[system]
        if share is not None:
            interval = f" ({' to '.join(map(percent, ends))})" if ends else ""
            last = f"{max(figures.pass_at[system], default=1)} of a sample"
            parts.append(f"{last} leave {percent(share)}{interval} of the samples unsolved")
        others = {name: each for name, each in outcomes.items() if name != Outcome.OK}
        tried = [f"{each.tries:,} {name}" for name, each in others.items() if each.tries]
        spared = {name: each.outputs - each.tries for name, each in others.items()}
        spared = {"not judged": unrated, **spared}
        untried = [f"{count:,} {name}" for name, count in spared.items() if count]
        parts += [f"{' and '.join(tried)} among them"] if tried else []
        parts += [f"{' and '.join(untried)} beside them, which are no tries"] if untried else []
        if split := figures.variance[system]:
            total = sum(part or 0.0 for part in split) or 1.0
            named = zip(("samples", "outputs of one", "looks of judges"), split, strict=True)
            shares = [f"{percent(part / total)} between {name}" for name, part in named if part]
            parts += [f"success varies {' and '.join(shares)}"] if shares else []
        yield f"{system}: {'; '.join(parts)}"
    refused = dict[tuple[str, str], list[str]]()
    for system, reasons in figures.refused.items():
        for figure, reason in reasons.items():
            refused.setdefault((figure.replace("_", " "), reason.meaning), []).append(system)
    merged = dict[tuple[str, str], list[str]]()
    for (figure, meaning), systems in refused.items():
        merged.setdefault((", ".join(sorted(systems)), meaning), []).append(figure)
    for (systems_text, meaning), names in merged.items():
        yield f"{', '.join(names)} of {systems_text} missing, or without an interval: {meaning}"
