"""Ways of having a run judged, side by side: how sure win rates would be, for how much."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from echo_hf._infra.bootstrap import FEWEST_SAMPLES, LEVEL
from echo_hf._infra.text import percent
from echo_hf.config.judges import JudgeConfig
from echo_hf.engines.estimate import NO_WORK, Range, both
from echo_hf.judging.rate import ToRate, drawn_part
from echo_hf.judging.session import JudgingPlan, Planned
from echo_hf.scores.estimate import t_quantile

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


def half_width(systems: int, samples: int, voted: int) -> float | None:
    """Half of the interval of a win rate, where all judges vote on some of the samples."""
    if systems < 2 or voted < FEWEST_SAMPLES:
        return None
    variance = OF_A_PAIR**2 * (1 + BETWEEN_PAIRS * (systems - 2)) / (systems - 1)
    missed = (1 - EXPLAINED) * (1 / voted - 1 / samples)
    return float(t_quantile(voted - 1, LEVEL) * math.sqrt(variance * (1 / samples + missed)))


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
        ways.append(plan(named, planned(shares), drawn_part(tasks, least), ALL))
    return (*ways, plan("all judges, --until decided", whole, set(), UNTIL_DECIDED))


def _of(whole: Range, part: Range) -> Range:
    return Range(*(one * share for one, share in zip(whole, part, strict=True)))
