"""How often systems succeed, from several outputs of a sample, as results and sentences."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from echo_hf._infra.text import format_rounded, percent, pluralize
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
from echo_hf.scores.votes import ProtocolName
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
    found: Reliability, split: str, protocol: ProtocolName, samples: int
) -> Iterator[ResultRow]:
    """Make the rows of results: share of successes, pass@k, and what a success costs."""
    numbers = range(2, (found.definition["k"] or 0) + 1)
    columns = {SUCCESS: ("success", found.success)} | {
        PASS_AT.format(k): (
            "pass_at",
            {system: own.get(k) for system, own in found.pass_at.items()},
        )
        for k in numbers
    }
    columns |= {name: (figure, vars(found)[figure]) for figure, name in PER_SUCCESS.items()}
    for metric, (figure, by_system) in columns.items():
        better = "lower" if figure in PER_SUCCESS else "higher"
        for system, estimate in by_system.items():
            value, interval, prompts = estimate or Estimate(None, None, 0)
            low, high = interval or (None, None)
            reason = found.refused[system].get(figure)
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
                    **found.definition,
                    "metric": metric,
                    "direction": f"{better} is better",
                    **missing,
                },
            )


def describe_success(found: Reliability) -> str:
    """Return what counts as a success, in words."""
    rule = found.definition["success"]
    if rule == "rating":
        return f"a rating of {found.definition['threshold']:g} or more"
    if rule == "checks":
        return "all kept checks passed"
    return ", ".join(f"{metric} {bound:g} or better" for metric, bound in rule.items())


def describe_reliability(found: Reliability) -> Iterator[str]:
    """Yield what the tries of each system became, and what its success varies with."""
    for system, outcomes in found.outcomes.items():
        tries = sum(each.tries for each in outcomes.values())
        successes = sum(each.successes for each in outcomes.values())
        parts = [f"{successes:,} of {pluralize(tries, 'output')} succeed"]
        if never := format_estimate(found.never[system], percent):
            parts.append(
                f"{never} of the samples are never solved in {[*found.pass_at[system]][-1]}"
            )
        for outcome, counts in outcomes.items():
            if outcome != Outcome.OK and counts.tries:
                parts.append(f"{counts.tries:,} {outcome} as tries")
            if (
                others := counts.outputs
                - counts.tries
                - (outcome == Outcome.OK) * found.unrated[system]
            ):
                parts.append(f"{others:,} {outcome} as none")
        if count := found.unrated[system]:
            parts.append(f"{count:,} left out, since nobody judged them")
        if split := found.variance[system]:
            total = sum(part or 0.0 for part in split) or 1.0
            named = zip(("samples", "outputs of one", "looks of judges"), split, strict=True)
            shares = [f"{percent(part / total)} between {name}" for name, part in named if part]
            parts.append(f"success varies {', '.join(shares) or 'nowhere'}")
        yield f"{system}: {'; '.join(parts)}"


def format_estimate(estimate: Estimate, form: Any = format_rounded) -> str:
    """Return a figure with its interval; empty where there is none."""
    if estimate.value is None:
        return ""
    ends = (
        f" ({form(estimate.interval[0])} to {form(estimate.interval[1])})"
        if estimate.interval
        else ""
    )
    return f"{form(estimate.value)}{ends}"
