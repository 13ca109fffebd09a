"""Strengths by people, estimated on all samples that judges compared, from those people ranked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from echo_hf._infra.bootstrap import LEVEL, Interval, Unscored
from echo_hf._infra.plots import SystemValuesPlot, split_bounds
from echo_hf.errors import ScoreError
from echo_hf.scores.agreement import read_human
from echo_hf.scores.choices import (
    MODEL,
    define_measure,
    fit_davidson,
    index_choices,
    list_systems,
    select_judges,
)
from echo_hf.scores.pairwise_agreement import PAIR
from echo_hf.scores.votes import by_rate, list_pairs

# Fewer were not tried: with 20 of 179 prompts ranked, intervals at 95 % cover .94.
MIN_RANKED = 20
ROW_FIELDS = ("sample", "first", "second", "outcome", "weight")


@dataclass(frozen=True, repr=False)
class CorrectedStrengths(SystemValuesPlot):
    """The strengths that people's ranks would give on all samples that judges compared.

    Attributes:
        strength: Of each system, as log odds with mean 0; higher is better. Null where none is.
        interval: Lower and upper end at 95 %, by Student's t over ranked samples, or null.
        judges_alone: By judges' choices on all samples.
        people_alone: By people's ranks on the samples that they ranked.
        weight: Of judges in the estimate, 0 (people alone) to 1; null where there is none.
        ranked: Samples that people ranked and judges compared.
        samples: Samples that judges compared.
        reasons: Why a strength is null.
        definition: Every parameter.
    """

    strength: Mapping[str, float | None]
    interval: Mapping[str, Interval | None]
    judges_alone: Mapping[str, float | None]
    people_alone: Mapping[str, float | None]
    weight: float | None
    ranked: int
    samples: int
    reasons: Mapping[str, Unscored]
    definition: Mapping[str, Any]

    _label = "strength by people, estimated on all samples: log odds, higher is better"
    _even = 0.0

    def _table_columns(self) -> Mapping[str, Mapping[str, Any]]:
        others = {"judges_alone": self.judges_alone, "people_alone": self.people_alone}
        ends = split_bounds(self.interval)
        return {"strength": self.strength, **ends, **others, "reason": self.reasons}


def human_corrected_strengths(
    comparisons: Any, human: Any, *, judges: Sequence[str] | None = None
) -> CorrectedStrengths:
    """Estimate the strengths that people would give on all samples, from those they ranked.

    Judges choose on all samples, people rank some, drawn without looking at them. The estimate is
    people's strength on ranked samples, plus `weight` times what judges' strength on all samples
    is above theirs on the ranked ones. The weight, one for all systems and from 0 to 1, is the one
    that makes errors smallest, as in PPI++ (Angelopoulos, Duchi and Zrnic 2023).

    Args:
        comparisons: As for `choice_strengths`.
        human: As for `agreement`.
        judges: Whose choices count; all when null.

    Returns:
        The strengths with intervals, beside those by people and by judges alone. There are none
        where choices were asked until pairs were decided, or one of the three fits has none.

    Raises:
        TableError: A table lacks a column, or has it with another type.
        ScoreError: Fewer than 20 compared samples are ranked, fewer than two systems are both
            compared and ranked, or rows contradict each other.
    """
    frame = select_judges(comparisons, judges)
    people, names = read_human(human), list_systems(frame)
    common = [name for name in names if name in people.systems]
    if len(common) < 2:
        raise ScoreError(
            f"people ranked {list(people.systems)!r}, judges compared {list(names)!r}: expected "
            "two systems or more in both"
        )
    compared = index_choices(frame[frame[PAIR[1:]].isin(common).all(axis=1)], common)
    ranks = people.select(common, compared.samples)
    first, second = list_pairs(len(common))
    verdicts = np.sign(ranks[:, second] - ranks[:, first])
    is_ranked = np.asarray(~np.isnan(verdicts)).any(axis=(0, 1))
    if (ranked := int(is_ranked.sum())) < MIN_RANKED:
        raise ScoreError(
            f"people ranked {ranked} of {len(np.unique(compared.sample))} compared samples: "
            f"expected {MIN_RANKED} or more, so rank {MIN_RANKED - ranked} more"
        )
    _, pair, sample = cells = np.nonzero(~np.isnan(verdicts))
    raters = (~np.isnan(verdicts)).sum(axis=0)[pair, sample]
    by_people = compared._replace(
        sample=sample,
        first=first[pair],
        second=second[pair],
        outcome=(1 - verdicts[cells]).astype(np.intp),
        weight=1 / raters,
        has_place=False,
    )
    kept = np.flatnonzero(is_ranked)
    rows = np.isin(compared.sample, kept)
    parts = {name: getattr(compared, name)[rows] for name in ROW_FIELDS}
    fits = [fit_davidson(each) for each in (by_people, compared._replace(**parts), compared)]
    failed = [fit for fit in fits if isinstance(fit, Unscored)]
    if frame["skipped"].any():
        failed = [Unscored.ASKED_UNEVENLY]
    people_fit, ranked_fit, whole_fit = (None if isinstance(fit, Unscored) else fit for fit in fits)
    strength, ends, weight = dict[str, float | None](dict.fromkeys(common)), {}, None
    if people_fit and ranked_fit and whole_fit and not failed:
        human_part, judge_part, whole = (
            fit.influence[:, : len(common)] for fit in (people_fit, ranked_fit, whole_fit)
        )
        scale = np.square(judge_part).sum()
        weight = float(np.clip((human_part * judge_part).sum() / scale, 0, 1)) if scale else 0.0
        moved = whole_fit.strengths - ranked_fit.strengths
        estimate = people_fit._replace(
            strengths=people_fit.strengths + weight * moved,
            influence=human_part + weight * (whole - judge_part),
        )
        strength |= estimate.label(common)
        ends = estimate.compute_intervals(common, ranked)
    reasons = dict.fromkeys(common, failed[0]) if failed else {}
    for name in sorted({*names, *people.systems} - {*common}):
        strength[name] = None
        reasons[name] = Unscored.NOT_RANKED if name in names else Unscored.NO_VERDICTS
    alone = [
        dict.fromkeys(strength) | (fit.label(common) if fit else {})
        for fit in (whole_fit, people_fit)
    ]
    strength = by_rate(strength)
    return CorrectedStrengths(
        strength=strength,
        interval={name: ends.get((name,)) for name in strength},
        judges_alone=alone[0],
        people_alone=alone[1],
        weight=weight,
        ranked=ranked,
        samples=len(np.unique(compared.sample)),
        reasons=reasons,
        definition=define_measure(
            "human_corrected_strengths",
            frame,
            confidence=LEVEL,
            model=MODEL,
            raters=list(people.raters),
        ),
    )
