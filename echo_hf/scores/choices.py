"""Strengths and decided pairs from choices between two outputs, with ties and a place effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from echo_hf._infra.bootstrap import LEVEL, MIN_SAMPLES, Interval, Unscored
from echo_hf._infra.plots import SystemValuesPlot, split_bounds
from echo_hf.errors import ScoreError, unknown
from echo_hf.scores.estimate import compute_t_quantile
from echo_hf.scores.pairwise_agreement import ORDERS, PAIR, read_choices
from echo_hf.scores.rating_table import Floats
from echo_hf.scores.sequential import (
    ALPHA,
    MIXTURE,
    UNTIL_DECIDED,
    Decisions,
    Family,
    decide_pairs,
    get_pair_level,
)
from echo_hf.scores.tiers import group_tiers
from echo_hf.scores.votes import best_first, by_rate, label, list_pairs

MAX_ROUNDS, MAX_STEP, PRECISION = 200, 2.0, 1e-9
BOUNDED = 1e-4  # what a direction may add to all choices together by rounding
MODEL = "Davidson, with ties and a place effect"
ALTERNATIVES = np.array([1.0, 0.0, -1.0])  # what a choice says of the output shown first
Integers = NDArray[np.intp]


@dataclass(frozen=True, repr=False)
class ChoiceStrengths(SystemValuesPlot):
    """The strengths of systems by choices between two outputs.

    Attributes:
        strength: Of each system, as log odds with mean 0; higher is better. Where places play no
            part, the logarithm of a system's wins over another's is the difference of the two.
        interval: Lower and upper end at 95 %, by Student's t over samples, or null.
        difference: Interval of the strength of the first less that of the second, or null.
        position: Log odds that the output shown first gains, or null.
        position_interval: Its lower and upper end at 95 %, or null.
        tie: Logarithm of how often two equal systems tie, over how often either wins, or null.
        choices: How many choices there are.
        samples: How many samples they are on.
        reasons: Why a strength or an interval is null.
        definition: Every parameter.
    """

    strength: Mapping[str, float | None]
    interval: Mapping[str, Interval | None]
    difference: Mapping[str, Mapping[str, Interval | None]]
    position: float | None
    position_interval: Interval | None
    tie: float | None
    choices: int
    samples: int
    reasons: Mapping[str, Unscored]
    definition: Mapping[str, Any]

    _label = "strength by choices: log odds, 0 is the mean, higher is better"
    _even = 0.0

    def _table_columns(self) -> Mapping[str, Mapping[str, Any]]:
        ends = split_bounds(self.interval)
        return {"strength": self.strength, **ends, "reason": self.reasons}


class ChoiceArrays(NamedTuple):
    """Choices as arrays with a row each, and the names that their numbers stand for."""

    systems: tuple[str, ...]
    samples: tuple[str, ...]
    sample: Integers
    first: Integers  # the system shown first; of ranks, which have no place, the first by name
    second: Integers
    outcome: Integers  # 0: the first wins, 1: a tie, 2: the second wins
    weight: Floats
    has_place: bool


class DavidsonFit(NamedTuple):
    """Parameters of a fit, and what each sample adds to them [sample, strengths and place]."""

    strengths: Floats
    position: float | None
    tie: float | None
    influence: Floats

    def label(self, systems: Sequence[str]) -> dict[str, float | None]:
        return label(systems, self.strengths)

    def compute_intervals(
        self, systems: Sequence[str], samples: int
    ) -> dict[tuple[str, ...], Interval]:
        """Compute intervals of strengths, of their differences by pair, and of the place by ()."""
        own, place = self.influence[:, : len(systems)], self.influence[:, len(systems) :]
        own = own - own.mean(axis=1, keepdims=True)
        half_width = compute_t_quantile(samples - 1, LEVEL) * np.sqrt(samples / (samples - 1))

        def bound(value: float, parts: Floats) -> Interval:
            half = float(half_width * np.sqrt(np.square(parts).sum()))
            return float(value) - half, float(value) + half

        ends = dict[tuple[str, ...], Interval]()
        if self.position is not None and place.size:
            ends[()] = bound(self.position, place)
        for at, name in enumerate(systems):
            ends[(name,)] = bound(self.strengths[at], own[:, at])
            for behind, other in enumerate(systems):
                if other != name:
                    gap = self.strengths[at] - self.strengths[behind]
                    ends[name, other] = bound(gap, own[:, at] - own[:, behind])
        return ends


def choice_strengths(comparisons: Any, *, judges: Sequence[str] | None = None) -> ChoiceStrengths:
    """Fit strengths to judges' choices between two outputs, by maximum likelihood.

    The model is Davidson's (1970) with a place effect: with `d` the strength of the system shown
    first, less that of the other, plus what the first place gains, it wins, ties and loses in the
    ratio exp(d / 2) : exp(tie) : exp(-d / 2). Of each two systems, sample and order every judge has
    the same weight, however often it was asked. Errors are those of whole samples (a sandwich
    clustered by sample), so that more judges or repeats are not taken for more prompts.

    Args:
        comparisons: As for `pairwise_agreement`. Rows with the outcome `not_needed` are those
            that nobody asked for, as `judge --pairwise --until decided` writes them: there is then
            no interval, since asking by what was seen makes intervals too narrow.
        judges: Whose choices count; all when null.

    Returns:
        The strengths. There are none where a part of the systems never loses to the others or
        ties with them, or never meets them.

    Raises:
        TableError: A table lacks a column, or has it with another type.
        ScoreError: Rows contradict each other, or a judge has made no choice.

    Examples:
        >>> row = {"system_a": "a", "system_b": "b", "judge": "j"}
        >>> winners = ["a"] * 30 + ["tie"] * 20 + ["b"] * 10
        >>> rows = [
        ...     {**row, "sample_id": f"{at}", "order": order, "winner": winner}
        ...     for at, winner in enumerate(winners)
        ...     for order in ("ab", "ba")
        ... ]
        >>> found = choice_strengths(rows)
        >>> round(found.strength["a"], 4), abs(round(found.position, 4))  # half of log(30 / 10)
        (0.5493, 0.0)
    """
    frame = select_judges(comparisons, judges)
    names, choices = list_systems(frame), index_choices(frame)
    fit, systems = fit_davidson(choices), choices.systems
    samples = len(np.unique(choices.sample))
    reason = fit if isinstance(fit, Unscored) else None
    if reason is None and samples < MIN_SAMPLES:
        reason = Unscored.FEW_SAMPLES
    if not isinstance(fit, Unscored) and frame["skipped"].any():
        reason = Unscored.ASKED_UNEVENLY
    strength = dict.fromkeys(names) | ({} if isinstance(fit, Unscored) else fit.label(systems))
    ends = {} if reason or isinstance(fit, Unscored) else fit.compute_intervals(systems, samples)
    missing = {name: reason if name in systems else Unscored.NO_VERDICTS for name in names}
    return ChoiceStrengths(
        strength=(strength := by_rate(strength)),
        interval={name: ends.get((name,)) for name in strength},
        difference={
            name: {other: ends.get((name, other)) for other in strength if other != name}
            for name in strength
        },
        position=None if isinstance(fit, Unscored) else fit.position,
        position_interval=ends.get(()),
        tie=None if isinstance(fit, Unscored) else fit.tie,
        choices=int(frame[ORDERS].notna().to_numpy().sum()),
        samples=samples,
        reasons={name: why for name in strength if (why := missing[name])},
        definition=define_measure("choice_strengths", frame, confidence=LEVEL, model=MODEL),
    )


def choice_decisions(
    comparisons: Any,
    *,
    alpha: float = ALPHA,
    family: Family = "bonferroni",
    judges: Sequence[str] | None = None,
) -> Decisions:
    """Decide for each pair of systems which one judges choose, at any time, as `decisions` does.

    The outcome of a pair on a sample is the mean over judges of their choices in both orders, from
    -.5 to .5, so that a judge who follows the place adds nothing.

    Args:
        comparisons: As for `choice_strengths`.
        alpha: How often, at most, any decision may ever be wrong; see `family`.
        family: `bonferroni`: alpha holds over all pairs together. `pair`: of each alone.
        judges: Whose choices count; all when null.

    Returns:
        Which pairs are decided; its `ratings` and `not_needed` count choices.

    Raises:
        TableError: As for `choice_strengths`.
        ScoreError: As for `choice_strengths`; alpha is not between 0 and 1, or family is none.

    Examples:
        >>> row = {"system_a": "a", "system_b": "b", "judge": "j", "winner": "a"}
        >>> orders = [{**row, "order": order} for order in ("ab", "ba")]
        >>> rows = [{**order, "sample_id": f"{at}"} for at in range(30) for order in orders]
        >>> found = choice_decisions(rows)
        >>> found.decided, found.ratings
        ((('a', 'b'),), 60)
    """
    frame = select_judges(comparisons, judges)
    systems = list_systems(frame)
    pair_number = np.zeros((len(systems), len(systems)), dtype=int)
    pair_number[list_pairs(len(systems))] = np.arange(len(systems) * (len(systems) - 1) // 2)
    asked = frame[PAIR[1:]].drop_duplicates()
    level = get_pair_level(alpha, family, len(asked))
    means = average_outcomes(frame)
    first, second = (_find_positions(systems, means[side]) for side in PAIR[1:])
    samples, position = np.unique(means["sample_id"], return_inverse=True)
    outcomes = np.full((len(systems) * (len(systems) - 1) // 2, len(samples)), np.nan)
    outcomes[pair_number[first, second], position] = means["outcome"]
    not_needed = int(frame["skipped"].sum())
    parameters = {"alpha": alpha, "family": family, "level": level, "mixture": MIXTURE}
    return decide_pairs(
        systems,
        outcomes,
        level,
        not_needed=not_needed,
        ratings=int(frame[ORDERS].notna().to_numpy().sum()) + not_needed,
        definition=define_measure("choice_decisions", frame, unit="choices", **parameters),
    )


def average_outcomes(frame: pd.DataFrame) -> pd.DataFrame:
    """Average what judges chose in both orders, from -.5 to .5, by sample and pair."""
    both = frame.assign(outcome=frame[ORDERS].sum(axis=1, skipna=False) / 4)
    by_judge = both.dropna(subset="outcome").groupby([*PAIR, "judge"])["outcome"].mean()
    return by_judge.groupby(level=PAIR).mean().reset_index()


def choice_tiers(strengths: ChoiceStrengths, decisions: Decisions) -> tuple[tuple[str, ...], ...]:
    """Group systems by what is decided; without strengths by their share of the points."""
    order = list(strengths.strength)
    if None in strengths.strength.values():
        shares = {
            name: [share for share in row.values() if share is not None]
            for name, row in decisions.matrix.items()
        }
        order = best_first({name: np.mean(row) for name, row in shares.items() if row})
    return group_tiers(order, lambda top, system: (top, system) in decisions.decided)


def fit_davidson(choices: ChoiceArrays) -> DavidsonFit | Unscored:
    """Fit the model by Newton's method, or say why there is no finite maximum."""
    systems = len(choices.systems)
    if systems < 2:
        return Unscored.ONE_SYSTEM if systems else Unscored.NO_VERDICTS
    number = (choices.first * systems + choices.second) * 3 + choices.outcome
    kinds, kind = np.unique(number, return_inverse=True)
    first, second, outcome = kinds // 3 // systems, kinds // 3 % systems, kinds % 3
    has_ties, rows = bool((outcome == 1).any()), np.arange(len(kinds))
    # Utilities of the three alternatives: strengths, then place, then tie.
    design = np.zeros((len(kinds), 3, systems + 2))
    design[rows, :, first], design[rows, :, second] = ALTERNATIVES / 2, -ALTERNATIVES / 2
    design[:, :, systems] = ALTERNATIVES / 2 * choices.has_place
    design[:, 1, systems + 1] = 1.0
    used = np.r_[np.ones(systems, bool), choices.has_place, has_ties]
    design, possible = design[:, :, used], np.array([True, has_ties, True])
    chosen = design[rows, outcome]
    gains = (chosen[:, None] - design)[:, possible].reshape(-1, design.shape[-1])
    if reason := _find_unbounded(gains, systems):
        return reason
    weight = np.bincount(kind, choices.weight)
    origin = np.zeros(design.shape[-1])
    origin[:systems] = 1 / np.sqrt(systems)
    values, pinned = np.zeros(len(origin)), np.outer(origin, origin)

    def weigh(at: Floats) -> tuple[float, Floats]:
        utilities = np.where(possible, design @ at, -np.inf)
        top = utilities.max(axis=1, keepdims=True)
        shares = np.exp(utilities - top)
        total = shares.sum(axis=1, keepdims=True)
        likelihood = (utilities[rows, outcome] - top[:, 0] - np.log(total[:, 0])) @ weight
        return float(likelihood), shares / total

    likelihood, shares = weigh(values)
    for _ in range(MAX_ROUNDS):
        mean = np.einsum("ka,kap->kp", shares, design)
        scores = chosen - mean
        spread = np.einsum("k,ka,kap,kaq->pq", weight, shares, design, design, optimize=True)
        curvature = spread - mean.T @ (mean * weight[:, None]) + pinned
        step = np.linalg.solve(curvature, weight @ scores)
        if np.abs(step).max() < PRECISION:
            break
        step *= min(1.0, MAX_STEP / np.abs(step).max())
        while (ahead := weigh(values + step))[0] < likelihood and np.abs(step).max() > PRECISION:
            step = step / 2
        values, (likelihood, shares) = values + step, ahead
    else:
        raise ScoreError(
            f"strengths do not settle in {MAX_ROUNDS} rounds: some systems hardly ever win from "
            "the others; leave them out"
        )
    by_sample = np.zeros((len(choices.samples), len(values)))
    for column, score in enumerate(scores.T):
        weighted = score[kind] * choices.weight
        by_sample[:, column] = np.bincount(choices.sample, weighted, len(choices.samples))
    place = systems if choices.has_place else None
    influence = by_sample @ np.linalg.inv(curvature)
    return DavidsonFit(
        values[:systems] - values[:systems].mean(),
        None if place is None else float(values[place]),
        float(values[-1]) if has_ties else None,
        influence[:, : systems + choices.has_place],
    )


def _find_unbounded(gains: Floats, systems: int) -> Unscored | None:
    """Say why no finite parameters are the best, from what each choice gains over the others.

    Parameters are unbounded where some direction takes no choice's chance away and adds to one.
    """
    from scipy.optimize import linprog

    if np.linalg.matrix_rank(gains[:, :systems]) < systems - 1:
        return Unscored.SEPARATE_GROUPS
    if np.linalg.matrix_rank(gains) < gains.shape[1] - 1:
        return Unscored.NO_VERDICTS  # in one order alone, places and systems are the same
    zeros = np.zeros(len(gains))
    best = linprog(-gains.sum(axis=0), A_ub=-gains, b_ub=zeros, bounds=(-1, 1))
    return Unscored.UNBOUNDED if best.status or best.fun < -BOUNDED else None


def select_judges(comparisons: Any, judges: Sequence[str] | None) -> pd.DataFrame:
    frame = read_choices(comparisons)
    known = sorted(map(str, frame["judge"].unique()))
    for name in judges or ():
        if name not in known:
            raise ScoreError(unknown("judge", name, known))
    return frame if judges is None else frame[frame["judge"].isin(judges)]


def list_systems(frame: pd.DataFrame) -> tuple[str, ...]:
    return tuple(sorted(map(str, np.unique(frame[PAIR[1:]].to_numpy(dtype=object)))))


def _find_positions(names: Sequence[str], column: pd.Series[str]) -> Integers:
    positions = {name: position for position, name in enumerate(names)}
    return np.asarray(column.map(positions), dtype=np.intp)


def index_choices(frame: pd.DataFrame, systems: Sequence[str] = ()) -> ChoiceArrays:
    """Return a row for each choice; all choices of a judge on a pair in one order weigh alike."""
    rows = frame.melt([*PAIR, "judge", "repeat"], ORDERS, "order", "winner").dropna()
    cell = [*PAIR, "order"]
    repeats = rows.groupby([*cell, "judge"])["winner"].transform("size")
    asked_judges = rows.groupby(cell)["judge"].transform("nunique")
    samples, sample = np.unique(rows["sample_id"].to_numpy(dtype=object), return_inverse=True)
    names = tuple(systems) or list_systems(rows)
    a, b = (_find_positions(names, rows[side]) for side in PAIR[1:])
    is_ab = (rows["order"] == "ab").to_numpy()
    winner = rows["winner"].to_numpy(dtype=float)
    return ChoiceArrays(
        names,
        tuple(map(str, samples)),
        sample,
        np.where(is_ab, a, b),
        np.where(is_ab, b, a),
        (1 - np.where(is_ab, winner, -winner)).astype(np.intp),
        1 / (repeats * asked_judges).to_numpy(dtype=float),
        has_place=True,
    )


def define_measure(measure: str, frame: pd.DataFrame, **parameters: Any) -> dict[str, Any]:
    return {
        "measure": measure,
        "asked": UNTIL_DECIDED if frame["skipped"].any() else "evenly",
        "judges": sorted(map(str, frame["judge"].unique())),
        "weights": "judges alike in each pair, sample and order",
        "errors": "of whole samples",
        **parameters,
    }
