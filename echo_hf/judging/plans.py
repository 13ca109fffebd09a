"""Ways of having a run judged, side by side: how sure win rates would be, for how much."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from echo_hf._infra.bootstrap import FEWEST_SAMPLES, LEVEL
from echo_hf._infra.text import percent
from echo_hf.config.judges import JudgeConfig
from echo_hf.engines.estimate import NO_WORK, Range, both
from echo_hf.judging.rate import OVERALL, ToRate, drawn_part
from echo_hf.judging.session import JudgingPlan, Planned
from echo_hf.scores.estimate import estimated, t_quantile, variance_known
from echo_hf.scores.rating_table import read_ratings
from echo_hf.scores.votes import Compared

SUGGESTED = 0.2  # the share of a plan where no judge has one of its own
FEWEST_RATED = 30  # samples that all judges rated, before their spread is believed
# Priors, measured on 179 samples that three judges rated of eight systems: the standard deviation
# of a pair's outcome, how outcomes against two opponents correlate, and how much of the vote one
# judge explains, which makes it worth 1.75 times its samples.
OF_A_PAIR, BETWEEN_PAIRS, EXPLAINED = 0.375, 0.4, 1 - 1 / 1.75
ALL, UNTIL_DECIDED = Range.exactly(1), Range(0.51, 0.56, 0.61)  # of all ratings, in trials
STOPS = (
    "judge --until decided: stops when systems are told apart, which took 51 to 61 % of the "
    "ratings in trials; here it is an estimate"
)
Widths = Mapping[str, float | None]


class Spread(NamedTuple):
    """How shares differ between samples, and how much of the vote judges of all explain."""

    deviation: float
    explained: float
    basis: str

    def half_width(self, samples: int, voted: int) -> float | None:
        if voted < FEWEST_SAMPLES:
            return None
        missed = (1 - self.explained) * (1 / voted - 1 / samples)
        error = self.deviation * math.sqrt(1 / samples + missed)
        return float(t_quantile(voted - 1, LEVEL) * error)


def shares_of(judges: Sequence[JudgeConfig], whole: Sequence[Planned]) -> dict[str, float]:
    """By judge the share that it has, or would have beside the cheapest, who rates all."""
    if any(one.share < 1 for one in judges):
        return {one.name: one.share for one in judges}

    def cost(one: Planned) -> tuple[float, ...]:
        ranges = (one.expected.usd, one.expected.seconds)
        return tuple(math.inf if each is None else each.likely for each in ranges)

    cheapest = min(whole, key=cost).who
    return {one.name: 1.0 if one.name == cheapest else SUGGESTED for one in judges}


def spread_of(ratings: pa.Table | None, shares: Mapping[str, float], systems: int) -> Spread:
    """From samples that all these judges rated; from priors where there are too few."""
    table, samples = None, 0
    if ratings is not None and shares.keys() <= {*ratings["judge"].to_pylist()}:
        table = read_ratings(ratings)
        table = table.by([name in shares for name in table.judges])
        table = table.of(((~np.isnan(table.ratings)).sum(axis=1) > 1).all(axis=0))
        samples = len(table.samples)
    if table is None or samples < FEWEST_RATED:
        others = max(systems - 1, 1)
        deviation = OF_A_PAIR * math.sqrt((1 + BETWEEN_PAIRS * (others - 1)) / others)
        said = f"from other runs, as all judges rated {samples} samples here, not {FEWEST_RATED}"
        return Spread(deviation, EXPLAINED, said)
    of_all = table.by([shares[name] == 1 for name in table.judges])
    voted, chosen = (Compared(one, "corrected", "exclude", OVERALL) for one in (table, of_all))
    known, by_judge = voted.shares(voted.verdicts), chosen.shares(chosen.said)
    rho2 = estimated(by_judge, known.T).rho2
    deviation = math.sqrt(np.nanmean(variance_known(known.T)))
    return Spread(deviation, max(rho2 or 0.0, 0.0), f"from {samples} samples that all judges rated")


def judging_plans(
    judges: Sequence[JudgeConfig],
    to_rate: ToRate,
    ratings: pa.Table | None,
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
    if ratings is not None:
        ratings = ratings.filter(pc.equal(ratings["rubric"], OVERALL))
    asked, widths, basis = drawn_part(tasks, least), [dict[str, float | None]() for _ in "ab"], []
    for split, names in by_split.items():
        there = pa.array(names, pa.string())
        rows = None if ratings is None else ratings.filter(pc.is_in(ratings["sample_id"], there))
        systems = {str(row["system"]) for name in names for row in to_rate.outputs[name]}
        spread = spread_of(rows, shares, len(systems))
        for width, voted in zip(widths, (names, names & asked), strict=True):
            known = len(voted) if len(systems) > 1 else 0  # one alone has no win rate
            width[split] = spread.half_width(len(names), known)
        basis.append(f"{split}: {spread.basis}")

    def plan(name: str, every: Sequence[Planned], width: Widths, part: Range = ALL) -> JudgingPlan:
        calls = _of(Range.exactly(sum(one.plan.calls for one in every)), part)
        expected = reduce(both, (one.expected for one in every), NO_WORK)
        usd, seconds = (one and _of(one, part) for one in (expected.usd, expected.seconds))
        expected = replace(expected, usd=usd, seconds=seconds)
        return JudgingPlan(name, calls, width, expected, "; ".join(basis) if part == ALL else STOPS)

    ways = [plan("all judges on all samples", whole, widths[0])]
    if least < 1:
        most = max(share for share in shares.values() if share < 1)
        of_all = ", ".join(name for name, share in shares.items() if share == 1)
        some = " to ".join(dict.fromkeys(map(percent, (least, most))))
        ways.append(plan(f"{of_all} on all, the others on {some}", planned(shares), widths[1]))
    until = plan("all judges, --until decided", whole, dict.fromkeys(by_split), UNTIL_DECIDED)
    return (*ways, until)


def _of(whole: Range, part: Range) -> Range:
    return Range(*(one * share for one, share in zip(whole, part, strict=True)))
