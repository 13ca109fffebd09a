"""Whether a system does better on samples that it may have been trained on (sealed samples)."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from echo_hf._infra.bootstrap import CELLS_PER_BATCH, LEVEL, Bools, Floats, Interval, generator
from echo_hf._infra.summary import SummaryMixin
from echo_hf._infra.text import percent
from echo_hf.errors import ScoreError
from echo_hf.reasons import Reason
from echo_hf.scores import votes
from echo_hf.scores.certificate import adjust_p_values
from echo_hf.scores.estimate import compute_t_quantile
from echo_hf.scores.tiers import compute_smallest_p

MIN_SYSTEMS = 2
MIN_COVERAGE = 0.9  # of the samples of either side, of a system that is tested or is a peer
MIN_SEALED = 50  # fewer find 10 points of one system in less than .79 of the cases
GAINS = (0.03, 0.05, 0.10)  # of win rate, for which the power is computed
POWER_DRAWS = 200
ALPHA = 0.05


class Untested(Reason):
    """Why nothing is known of whether a system was trained on the samples."""

    FEW_SEALED = "few_sealed", "fewer than 50 sealed samples would show no gain below 10 points"
    FEW_PUBLIC = "few_public", "fewer than 50 public samples are compared with the sealed ones"
    FEW_DATED = "few_dated", "fewer than 50 samples are dated before, or after"
    NO_PEERS = "no_peers", "no other system was rated on the same samples"
    UNEVEN = "uneven", "it was rated on fewer than 90 % of the samples of one side: no fair peer"


@dataclass(frozen=True, repr=False)
class Contamination(SummaryMixin):
    """How far systems lead on samples that they may have seen, less their lead on the others.

    The lead on a sample is the share of points that a system wins there from the others, so that
    samples that are harder for all systems change nothing.

    Attributes:
        lead: Difference of the two mean shares by system, above 0 where it does better on samples
            that it may have seen; null where `reasons` says why.
        interval: Its ends at `confidence`.
        p: One-sided p-value by system, of exchanging which samples are sealed; or of a step at the
            date beside a straight trend.
        adjusted: The same over all systems together: the largest studentized lead of each exchange
            (Westfall and Young); by Holm for dates.
        alarm: The systems whose adjusted p-value is at most .05.
        power: By gain in win rate: how often the test would see it in one system that is tested
            alone, and in one of as many as there are here; of dates by the normal formula.
        reasons: Why a system is not tested.
        counts: How many samples each system was compared on, maybe seen and not seen.
        definition: Every parameter.
    """

    lead: Mapping[str, float | None]
    interval: Mapping[str, Interval | None]
    p: Mapping[str, float | None]
    adjusted: Mapping[str, float | None]
    alarm: tuple[str, ...]
    power: Mapping[str, tuple[float, float]]
    reasons: Mapping[str, Untested]
    counts: Mapping[str, tuple[int, int]]
    definition: Mapping[str, Any]

    @property
    def summary(self) -> str:
        """A sentence of the alarm, or that there is none, and how much it would have seen."""
        powers = ", ".join(
            f"{float(gain) * 100:.0f} points in {percent(alone)} ({percent(together)})"
            for gain, (alone, together) in self.power.items()
        )
        could_see = "nothing says what it would see"
        if powers:
            could_see = (
                f"of one system alone (of one of {len(self.lead)}) it would see a gain of {powers} "
                "of cases"
            )
        if self.alarm:
            leads = ", ".join(
                f"{name} by {100 * (self.lead[name] or 0):.0f} points" for name in self.alarm
            )
            is_dated = self.definition["measure"] == "dated_contamination"
            also = ", or a drift that is not straight" if is_dated else ""
            return f"leads more on samples that it may have seen{also}: {leads}; {could_see}"
        if all(p is None for p in self.p.values()):
            why = "; ".join(dict.fromkeys(reason.meaning for reason in self.reasons.values()))
            return f"not tested: {why}; {could_see}"
        return f"no sign of training on these samples; {could_see}"


def contamination(
    ratings: Any,
    *,
    sealed: Collection[str],
    n_resamples: int = 999,
    seed: int = 0,
    **selection: Any,
) -> Contamination:
    """Test whether a system leads more on public samples than on sealed ones, drawn at random.

    Args:
        ratings: As for `win_rate`, of public and sealed samples together.
        sealed: The ids of the samples that nobody outside could see. They have to be a random part
            of all: then exchanging labels is an exact test.
        n_resamples: How many exchanges are drawn, from 19.
        seed: Seed of the exchanges.
        selection: `protocol`, `missing`, `rubric` and `judges`, as for `win_rate`.

    Returns:
        Leads in shares of points from -1 to 1, and what the test could have seen. With fewer than
        50 sealed samples there is the power alone.

    Raises:
        ScoreError: As for `win_rate`; or no exchange could be significant.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> rows = [
        ...     {"sample_id": f"{n}", "system": system, "judge": "j",
        ...      "rating": float(rng.integers(1, 9)) + 4 * (system == "a" and n < 200)}
        ...     for n in range(260) for system in "abc"
        ... ]
        >>> tested = contamination(rows, sealed={f"{n}" for n in range(200, 260)})
        >>> tested.alarm, round(tested.lead["a"], 2)
        (('a',), 0.42)
    """
    smallest = compute_smallest_p(n_resamples)
    if smallest > ALPHA:
        raise ScoreError(f"n_resamples is {n_resamples!r}: expected 19 or more, such as 999")
    compared = _count_votes(ratings, selection)
    table = compared.table
    names = {*sealed}
    public = np.array([sample not in names for sample in table.samples], bool)
    shares, is_peer = _compare(compared, public)
    counts = _count(shares, public, table.systems)
    reasons = dict[str, Untested]()
    for system, fits in zip(table.systems, is_peer, strict=True):
        seen, unseen = counts[system]
        if (~public).sum() < MIN_SEALED:
            reasons[system] = Untested.FEW_SEALED
        elif public.sum() < MIN_SEALED:
            reasons[system] = Untested.FEW_PUBLIC
        elif not fits and len(table.systems) >= MIN_SYSTEMS:
            reasons[system] = Untested.UNEVEN
        elif is_peer.sum() < MIN_SYSTEMS:
            reasons[system] = Untested.NO_PEERS
        elif unseen < MIN_SEALED:
            reasons[system] = Untested.FEW_SEALED
        elif seen < MIN_SEALED:
            reasons[system] = Untested.FEW_PUBLIC
    rng = generator(seed)
    usable = np.array([name not in reasons for name in table.systems], bool)
    known = ~np.isnan(shares).all(axis=1)
    power = dict[str, tuple[float, float]]()
    if min(public[known].sum(), (~public)[known].sum()) > 1:
        power = _compute_power(shares[known][:, is_peer], public[known], rng)
    lead, interval = _lead(shares, public)
    p, adjusted = np.full((2, len(table.systems)), np.nan)
    if usable.any():
        tested = shares[known][:, usable], public[known]
        p[usable], adjusted[usable] = _exchange(*tested, rng, n_resamples)
    definition = compared.definition(
        "contamination",
        outcome="share of the points of a sample that a system wins from the others",
        test="exchange of labels, one-sided, largest studentized lead over systems",
        n_resamples=n_resamples,
        seed=seed,
        least_sealed=MIN_SEALED,
        public=int(public.sum()),
        sealed=int((~public).sum()),
    )
    return _build(table.systems, lead, interval, p, adjusted, power, reasons, counts, definition)


def dated_contamination(
    ratings: Any,
    dates: Mapping[str, datetime.date],
    trained: Mapping[str, datetime.date],
    **selection: Any,
) -> Contamination:
    """Test whether a system's lead steps down at the last date of what it was trained on.

    A straight trend over time is fitted beside the step: people's wishes drift, and without it
    every drift would be taken for training.

    Args:
        ratings: As for `win_rate`.
        dates: The day of each sample; samples without one are left out.
        trained: The last day of what each system may have been trained on; the others are peers.
        selection: `protocol`, `missing`, `rubric` and `judges`, as for `win_rate`.

    Returns:
        Steps in shares of points; with fewer than 50 samples on either side none.

    Raises:
        ScoreError: As for `win_rate`.
    """
    from scipy.special import (
        ndtr,
        ndtri,
        stdtr,
    )  # scipy.stats takes longer to import than all of this

    compared = _count_votes(ratings, selection)
    table = compared.table
    ordinals = [dates[name].toordinal() if name in dates else np.nan for name in table.samples]
    days = np.array(ordinals, float)
    systems = [name for name in table.systems if name in trained]
    lead, interval, p, errors = [], [], [], list[float]()
    counts, reasons = dict[str, tuple[int, int]](), dict[str, Untested]()
    for system in systems:
        is_before = days <= trained[system].toordinal()
        shares, is_peer = _compare(compared, is_before)
        values = shares[:, table.systems.index(system)]
        known = ~np.isnan(values) & ~np.isnan(days)
        since = days[known] - trained[system].toordinal()
        before = since <= 0
        counts[system] = int(before.sum()), int((~before).sum())
        if min(counts[system]) < MIN_SEALED:
            is_fair = is_peer[table.systems.index(system)]
            reasons[system] = Untested.FEW_DATED if is_fair else Untested.UNEVEN
            step, error = np.nan, np.nan
        else:
            design = np.column_stack([np.ones(len(since)), before, since / np.ptp(since)])
            step, error = _fit_step(design, values[known])
        freedom = max(sum(counts[system]) - 3, 1)
        lead.append(step)
        half = float(compute_t_quantile(freedom, LEVEL)) * error
        errors += [error] if error > 0 else []
        interval.append(None if np.isnan(error) else (float(step - half), float(step + half)))
        p.append(1 - stdtr(freedom, step / error) if error > 0 else np.nan)
    known_p = [None if np.isnan(value) else value for value in p]
    adjusted = np.array(adjust_p_values(known_p), float)
    definition = compared.definition(
        "dated_contamination",
        outcome="share of the points of a sample that a system wins from the others",
        test="step at the date beside a straight trend, HC3 errors, one-sided, Holm over systems",
        trained={name: trained[name].isoformat() for name in systems},
    )
    steps, p_values = np.array(lead), np.array(p)
    power = {
        f"{gain:g}": (
            float(ndtr(gain / np.mean(errors) + ndtri(ALPHA))),
            float(ndtr(gain / np.mean(errors) + ndtri(ALPHA / len(systems)))),
        )
        for gain in (GAINS if errors else ())
    }
    figures = steps, interval, p_values, adjusted, power
    return _build(systems, *figures, reasons, counts, definition)


def _count_votes(ratings: Any, selection: Mapping[str, Any]) -> votes.JudgeVotes:
    """Let the judges vote; where some rated a part of the samples, those that rated all."""
    compared = votes.count_votes(ratings, **selection)
    if compared.full.not_asked is not None and compared.full.complete.judges:
        return replace(compared, full=compared.full.complete)
    return compared


def _compare(compared: votes.JudgeVotes, seen: Bools) -> tuple[Floats, Bools]:
    """Return shares of points [sample, system] among fair peers, and who these are.

    The same systems are compared on every sample: a weak one that is missing on one side would
    make all others look better on the other.
    """
    systems = len(compared.table.systems)
    first, second = votes.list_pairs(systems)
    verdicts = compared.verdicts
    met = votes.sample_points(verdicts, systems).compared > 0
    sides = [met[:, side] for side in (seen, ~seen) if side.any()]
    covered = np.array([side.mean(axis=1) for side in sides]) >= MIN_COVERAGE
    is_peer = np.array(covered.all(axis=0))
    counts = is_peer[first] & is_peer[second]
    complete = ~np.isnan(verdicts[counts]).any(axis=0) & bool(counts.any())
    fair = np.where(counts[:, None] & complete, verdicts, np.nan)
    return compared.compute_shares(fair).T, is_peer


def _count(shares: Floats, public: Bools, systems: Collection[str]) -> dict[str, tuple[int, int]]:
    known = ~np.isnan(shares)
    return {
        name: (int(known[public, at].sum()), int(known[~public, at].sum()))
        for at, name in enumerate(systems)
    }


def _studentize(shares: Floats, labels: Floats) -> tuple[Floats, Floats, Floats]:
    """Return lead, its variance and degrees of freedom for each labelling [draw, system]."""
    known, values = (~np.isnan(shares)).astype(float), np.nan_to_num(shares)
    parts = []
    with np.errstate(divide="ignore", invalid="ignore"):
        for weights in (labels, 1 - labels):
            count = weights @ known
            mean = weights @ values / count
            squares = np.maximum(weights @ values**2 - count * mean**2, 0)
            parts.append((mean, squares / (count - 1) / count, count))
        (seen, seen_variance, n), (unseen, unseen_variance, m) = parts
        variance = seen_variance + unseen_variance
        freedom = variance**2 / (seen_variance**2 / (n - 1) + unseen_variance**2 / (m - 1))
    return seen - unseen, variance, freedom


def _lead(shares: Floats, public: Bools) -> tuple[Floats, list[Interval | None]]:
    """Return each system's lead and its interval by Welch."""
    lead, variance, freedom = (part[0] for part in _studentize(shares, public[None].astype(float)))
    intervals = list[Interval | None]()
    for value, spread, df in zip(lead, variance, freedom, strict=True):
        if not np.isfinite(spread) or not spread:
            intervals.append(None)
            continue
        half = float(compute_t_quantile(df, LEVEL)) * spread**0.5
        intervals.append((float(value - half), float(value + half)))
    return lead, intervals


def _exchange(
    shares: Floats, public: Bools, rng: np.random.Generator, draws: int
) -> tuple[Floats, Floats]:
    """Return one-sided p-values alone and over all systems, by exchanging labels of samples."""
    observed, reached, topped = np.zeros(shares.shape[1]), 0, 0
    batch = max(1, CELLS_PER_BATCH // max(len(public), 1))
    for start in range(0, draws + 1, batch):
        size = min(batch, draws + 1 - start)
        labels = rng.permuted(np.tile(public, (size, 1)), axis=1).astype(float)
        if not start:
            labels[0] = public
        lead, variance, _ = _studentize(shares, labels)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.nan_to_num(lead / np.sqrt(variance), nan=0.0)
        if not start:
            observed = t[0] - 1e-9  # what is equal but for its last digit counts as equal
        reached = reached + (t >= observed).sum(axis=0)
        topped = topped + (t.max(axis=1)[:, None] >= observed).sum(axis=0)
    return np.asarray(reached / (draws + 1)), np.asarray(topped / (draws + 1))


def _compute_power(
    shares: Floats, public: Bools, rng: np.random.Generator
) -> dict[str, tuple[float, float]]:
    """Compute how often gains would be seen, by planting them in this board's own samples.

    Samples are drawn again, labelled at random, so that what is there already does not count; some
    public samples of one system become wins over all. Critical values are those of exchanges.
    """
    samples, systems = shares.shape
    labels = rng.permuted(np.tile(public, (POWER_DRAWS, 1)), axis=1).astype(float)
    null, variance, _ = _studentize(shares, labels)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.nan_to_num(null / np.sqrt(variance))
    alone, together = np.quantile(t, 1 - ALPHA), np.quantile(t.max(axis=1), 1 - ALPHA)
    power = dict[str, tuple[float, float]]()
    for gain in GAINS:
        hits = np.zeros((POWER_DRAWS, 2))
        for draw in range(POWER_DRAWS):
            at = draw % systems
            values = shares[rng.integers(0, samples, samples), at]
            room = 1 - np.nanmean(values)
            is_won = public & (rng.random(samples) < gain / max(room, gain))
            values = np.where(is_won & ~np.isnan(values), 1.0, values)
            lead, spread, _ = _studentize(values[:, None], public[None].astype(float))
            value = lead[0, 0] / np.sqrt(spread[0, 0]) if spread[0, 0] > 0 else 0.0
            hits[draw] = value > alone, value > together
        power[f"{gain:g}"] = float(hits[:, 0].mean()), float(hits[:, 1].mean())
    return power


def _fit_step(design: Floats, values: Floats) -> tuple[float, float]:
    """Return the step and its HC3 error; NaN where samples cannot tell it from the trend."""
    if np.linalg.matrix_rank(design) < design.shape[1]:
        return np.nan, np.nan
    inverse = np.linalg.inv(design.T @ design)
    fitted = inverse @ design.T @ values
    residuals = values - design @ fitted
    leverage = np.einsum("ij,jk,ik->i", design, inverse, design)
    weights = (residuals / np.maximum(1 - leverage, 1e-9)) ** 2
    covariance = inverse @ (design.T * weights) @ design @ inverse
    return float(fitted[1]), float(np.sqrt(max(covariance[1, 1], 0.0)))


def _build(
    systems: Collection[str],
    lead: Floats,
    interval: list[Interval | None],
    p: Floats,
    adjusted: Floats,
    power: Mapping[str, tuple[float, float]],
    reasons: Mapping[str, Untested],
    counts: Mapping[str, tuple[int, int]],
    definition: Mapping[str, Any],
) -> Contamination:
    """Build the result; of a system that is not tested no figure is shown."""
    is_tested = [name not in reasons for name in systems]
    shown = np.where(is_tested, np.vstack([lead, p, adjusted]), np.nan)
    leads, p_values, adjusted_p = (votes.label(list(systems), row) for row in shown)
    return Contamination(
        leads,
        {
            name: ends if tested else None
            for name, ends, tested in zip(systems, interval, is_tested, strict=True)
        },
        p_values,
        adjusted_p,
        tuple(name for name, value in adjusted_p.items() if value is not None and value <= ALPHA),
        power,
        reasons,
        counts,
        definition,
    )
