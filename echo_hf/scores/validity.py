"""Whether a number separates outputs that people complained about from those they praised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from echo_hf._infra.bootstrap import (
    LEVEL,
    METHOD,
    Interval,
    Unscored,
    compute_interval,
    draw_weights,
)
from echo_hf._infra.summary import SummaryMixin
from echo_hf.errors import ScoreError, unknown
from echo_hf.scores.certificate import (
    KEPT_J,
    MIN_THREADS,
    Certificate,
    LabelledOutputs,
    difference_interval,
    read_labels,
)
from echo_hf.scores.rating_table import Floats, divide

Direction = Literal["higher", "lower"]
ValidityVerdict = Literal["yes", "no", "too few"]
MIN_AUC = (1 + KEPT_J) / 2  # of a measure that means what people mean: what a kept check has


@dataclass(frozen=True, repr=False)
class Validity(SummaryMixin):
    """How well a measure separates outputs that people complained about from praised ones.

    Attributes:
        auc: Chance that an output complained about is worse, by the measure, than a praised one,
            of which a tie is a half: 0.5 for a measure that tells nothing; null where one of the
            two is missing.
        interval: Lower and upper end at 95 %, drawing whole threads; null where `reason` says why.
        threshold: The value of best J: what is as bad as this, or worse, is taken for a failure.
            Chosen on the same outputs, it flatters the measure; null as the AUC is.
        j: Youden's J of that threshold.
        verdict: Does it measure what people mean? `yes`: the whole interval lies above 0.5, and
            the AUC is 0.65 or more, as of a check that is kept. `too few`: fewer than 15 threads
            complain, or fewer than 15 praise. Else `no`.
        outputs: Outputs complained about, and praised ones.
        threads: Threads with an output that was complained about, and with a praised one.
        reason: Why there is no AUC, no interval or no verdict.
        definition: Every parameter.
    """

    auc: float | None
    interval: Interval | None
    threshold: float | None
    j: float | None
    verdict: ValidityVerdict
    outputs: tuple[int, int]
    threads: tuple[int, int]
    reason: Unscored | None
    definition: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return the result as a dict that JSON can hold."""
        return dict(vars(self))


def validity(
    values: ArrayLike,
    complained: ArrayLike,
    threads: Sequence[str],
    *,
    better: Direction,
    n_boot: int = 1000,
    seed: int = 0,
) -> Validity:
    """Hold a measure's values against what people said of the same outputs.

    Args:
        values: The measure's finite number for each output.
        complained: 1 or true where people complained about the output; they praised it otherwise.
        threads: The thread of each output.
        better: `higher` or `lower`: which values the measure calls better.
        n_boot: Draws of the bootstrap over threads; 0 for none.
        seed: Of the draws.

    Returns:
        The area under the curve (AUC), the best threshold and a verdict. Where the two are
        perfectly apart, or all values the same, no draw differs: the interval is then that of J of
        the threshold, from counts of threads, as in a certificate.

    Raises:
        ScoreError: The three differ in length, a value is not finite, a label is neither 0 nor 1,
            or a choice is none of those there are.

    Examples:
        >>> threads = [f"{at}" for at in range(40)]
        >>> tint = [at / 20 for at in range(20)] + [at / 40 for at in range(20)]
        >>> result = validity(tint, [1] * 20 + [0] * 20, threads, better="lower")
        >>> result.auc, round(result.j, 2), result.threshold, result.verdict
        (0.7375, 0.5, 0.5, 'yes')
    """
    if better not in get_args(Direction):
        raise ScoreError(unknown("direction", better, get_args(Direction)))
    outputs = read_labels(complained, threads)
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ScoreError(f"values is {values!r:.60}: expected a number an output") from None
    if numbers.shape != outputs.complained.shape or not np.isfinite(numbers).all():
        raise ScoreError(
            f"values has {np.isfinite(numbers).sum()} finite numbers: expected "
            f"{len(outputs.complained)}, one an output"
        )
    badness = numbers if better == "lower" else -numbers
    auc = interval = threshold = j = None
    reason = outputs.reason
    if all(outputs.outputs):
        auc, wins = _compare_threads(badness, outputs)
        threshold, j = _find_threshold(badness, outputs)
        interval, spread_reason = _draw_interval(wins, outputs, n_boot, seed)
        shares = {1.0: (1.0, 0.0), 0.0: (0.0, 1.0), 0.5: (1.0, 1.0)}.get(auc)
        if spread_reason is Unscored.NO_SPREAD and shares:
            ends = difference_interval(*shares, outputs.threads)
            interval, spread_reason = scale_interval(ends), None
        reason = reason or spread_reason
        threshold = threshold if better == "lower" else -threshold
    definition = {
        "measure": "validity",
        "better": better,
        "interval": METHOD.replace("samples", "threads"),
        "confidence": LEVEL,
        "n_boot": n_boot,
        "seed": seed,
        "auc_of_a_yes": MIN_AUC,
        "threads_of_each_kind": MIN_THREADS,
    }
    return Validity(
        auc,
        interval,
        threshold,
        j,
        decide(auc, interval, outputs.threads),
        outputs.outputs,
        outputs.threads,
        reason,
        definition,
    )


def certificate_validity(certificate: Certificate) -> Validity:
    """Return the validity of a check, from its certificate: the AUC is (1 + J) / 2."""
    auc = None if certificate.j is None else (1 + certificate.j) / 2
    interval = certificate.interval and scale_interval(certificate.interval)
    threads = certificate.complaint_threads, certificate.praise_threads
    return Validity(
        auc,
        interval,
        None if auc is None else 1.0,
        certificate.j,
        decide(auc, interval, threads),
        (certificate.complaints, certificate.praise),
        threads,
        certificate.reason,
        {**certificate.definition, "measure": "validity", "auc": "(1 + J) / 2"},
    )


def scale_interval(interval: Interval) -> Interval:
    """Return the interval of an AUC from that of J."""
    return (1 + interval[0]) / 2, (1 + interval[1]) / 2


def decide(
    auc: float | None, interval: Interval | None, threads: tuple[int, int]
) -> ValidityVerdict:
    if min(threads) < MIN_THREADS:
        return "too few"
    is_apart = auc is not None and auc >= MIN_AUC and interval is not None and interval[0] > 0.5
    return "yes" if is_apart else "no"


def _compare_threads(badness: Floats, outputs: LabelledOutputs) -> tuple[float, Floats]:
    """Return the AUC, and [complaining, praising thread] the pairs that complaints win."""
    flags = (outputs.complained, ~outputs.complained)
    (bad, bad_thread), (good, good_thread) = (
        (badness[kind], outputs.thread[kind]) for kind in flags
    )
    wins = np.zeros((len(outputs.sizes), len(outputs.sizes)))
    for thread in np.unique(good_thread):
        praised = np.sort(good[good_thread == thread])
        below, reached = (np.searchsorted(praised, bad, side) for side in ("left", "right"))
        wins[:, thread] = np.bincount(bad_thread, (below + reached) / 2, len(wins))
    return float(wins.sum() / len(bad) / len(good)), wins


def _draw_interval(
    wins: Floats, outputs: LabelledOutputs, n_boot: int, seed: int
) -> tuple[Interval | None, Unscored | None]:
    draws = [np.empty(0)]
    for weights in draw_weights(len(wins), n_boot, seed):
        pairs = (weights @ outputs.kinds.T).prod(axis=1)
        draws.append(divide((weights @ wins * weights).sum(axis=1), pairs))
    return compute_interval(np.concatenate(draws), len(wins))


def _find_threshold(badness: Floats, outputs: LabelledOutputs) -> tuple[float, float]:
    """Return the lowest badness of best J, and that J."""
    levels, level = np.unique(badness, return_inverse=True)
    flags = (outputs.complained, ~outputs.complained)
    caught, flagged = (
        np.bincount(level, kind, len(levels))[::-1].cumsum()[::-1] / kind.sum() for kind in flags
    )
    best = int(np.argmax(np.round(caught - flagged, 12)))
    return float(levels[best]), float(caught[best] - flagged[best])
