"""What asking a model took: calls, answers found, tokens, price."""

from __future__ import annotations

from dataclasses import dataclass, field

from echo_hf.engines.base import Completion, Usage


@dataclass
class FillStats:
    """What filling took.

    Attributes:
        requests: Requests that the rows hold: hits, repeats, and those that a call was made for.
        store_hits: Those that were answered before this run.
        repeated: Those that are equal to an earlier one of the same rows.
        calls: Calls that came back in this run, second tries included.
        failures: Requests of this run without a usable answer in the end, by reason.
        usage: Tokens of the calls of this run.
        cost_usd: Price of the calls of this run, null when the engine names none.
        stage_usage: Tokens of all calls for these requests, those of earlier runs included.
        stage_cost_usd: Price of all calls for these requests, null when none has a price.
        seconds: Wall-clock time of this run.
    """

    requests: int = 0
    store_hits: int = 0
    repeated: int = 0
    calls: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    stage_usage: Usage = field(default_factory=Usage)
    stage_cost_usd: float | None = None
    seconds: float = 0.0

    def called(self, completion: Completion) -> None:
        """Adds a call of this run."""
        self.calls += 1
        self.usage = self.usage + completion.usage
        self.cost_usd = _sum(self.cost_usd, completion.cost_usd)
        self.paid(completion.usage, completion.cost_usd)

    def paid(self, usage: Usage, cost_usd: float | None) -> None:
        """Adds what a call of this run or an earlier one took."""
        self.stage_usage = self.stage_usage + usage
        self.stage_cost_usd = _sum(self.stage_cost_usd, cost_usd)


def _sum(one: float | None, other: float | None) -> float | None:
    return one if other is None else (one or 0.0) + other
