"""The win rates of a split, with all that is needed to read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, get_args

import pyarrow as pa

from echo_hf.auditing.flagged import flagged
from echo_hf.hub.results import Result
from echo_hf.scores import bounds, sensitivity, tiers, win_rate
from echo_hf.scores.rule import Protocol
from echo_hf.scores.win_rate import WinRate

METRIC = "win_rate"


@dataclass(frozen=True)
class SplitWinRates:
    """The win rates of one split.

    Attributes:
        results: A figure for each system under each protocol.
        rates: The win rates under the config's protocol.
        tiers: Groups of systems that do not differ, the best first.
        details: What the report shows beside them; JSON can hold it.
    """

    results: tuple[Result, ...]
    rates: WinRate
    tiers: tuple[tuple[str, ...], ...]
    details: Mapping[str, Any]


def win_rates(
    split: str,
    ratings: pa.Table,
    outputs: pa.Table | None,
    protocol: Protocol,
    n_boot: int,
    failed: Mapping[str, Sequence[str]],
) -> SplitWinRates:
    """Computes the win rates of a split.

    Args:
        split: Name of the split.
        ratings: Its ratings.
        outputs: Its outputs, null when only ratings are at hand.
        protocol: The config's.
        n_boot: Draws of the bootstrap.
        failed: What judges have failed on in their audits; every figure names those of its judges.

    Returns:
        The win rates.

    Raises:
        ScoreError: The ratings contradict each other.
    """
    rates = {
        each: _flagged(win_rate(ratings, outputs, protocol=each, n_boot=n_boot), failed)
        for each in get_args(Protocol)
    }
    groups = tiers(ratings, outputs, protocol=protocol)
    details = {
        **{each: rate.as_json() for each, rate in rates.items()},
        "tiers": asdict(groups),
        "sensitivity": asdict(sensitivity(ratings, outputs)),
        "bounds": asdict(bounds(ratings, outputs, protocol=protocol)),
    }
    results = (row for each, rate in rates.items() for row in _results(split, rate))
    return SplitWinRates(tuple(results), rates[protocol], groups.tiers, details)


def _flagged(rate: WinRate, failed: Mapping[str, Sequence[str]]) -> WinRate:
    """The same rates, with the judges that failed their audits in the definition."""
    return replace(rate, definition=flagged(rate.definition, rate.per_judge, failed))


def _results(split: str, rate: WinRate) -> Iterator[Result]:
    for system, value in rate.win_rate.items():
        low, high = rate.interval[system] or (None, None)
        yield Result(
            metric=METRIC,
            protocol=rate.protocol,
            split=split,
            system=system,
            value=value,
            low=low,
            high=high,
            n=sum(rate.pairs[system].values()),
            coverage=rate.coverage[system],
            definition=dict(rate.definition),
        )
