"""Progress of a run, as it is told to whoever listens."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

from echo_hf.engines.planner import Plan
from echo_hf.pipeline.batch_inference import FillStats
from echo_hf.pipeline.result import StageResult
from echo_hf.reasons import Unfetched


@dataclass
class FetchStats:
    """How far a run is; addresses that differ only in spelling count once."""

    total: int
    known: int = 0
    fetched: int = 0
    reasons: Counter[Unfetched] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def done(self) -> int:
        """Addresses whose outcome is known."""
        return self.known + self.fetched + self.reasons.total()

    def count(self, known: bool, reason: Unfetched | None) -> None:
        """Adds one outcome."""
        if known:
            self.known += 1
        elif reason is None:
            self.fetched += 1
        else:
            self.reasons[reason] += 1


class Watcher(Protocol):
    """Told of a run's steps; `echo_hf.cli.progress.Watch` prints them."""

    def planned(self, stage: str, plan: Plan) -> None:
        """A stage is about to ask a model this much."""
        ...

    def called(self, stats: FillStats) -> None:
        """A model call has ended; the stats are those of the stage so far."""
        ...

    def fetched(self, stats: FetchStats) -> None:
        """What became of a picture's address is known; the stats are those of the run so far."""
        ...

    def compared(self, done: int, total: int) -> None:
        """So many pictures were looked at, to find copies among them."""
        ...

    def noticed(self, remark: str) -> None:
        """Something is not as one might take it to be; one line."""
        ...

    def finished(self, result: StageResult) -> None:
        """A stage has its result."""
        ...


class Unwatched:
    """A watcher that tells nobody."""

    def planned(self, stage: str, plan: Plan) -> None:
        """Says nothing."""

    def called(self, stats: FillStats) -> None:
        """Says nothing."""

    def fetched(self, stats: FetchStats) -> None:
        """Says nothing."""

    def compared(self, done: int, total: int) -> None:
        """Says nothing."""

    def noticed(self, remark: str) -> None:
        """Says nothing."""

    def finished(self, result: StageResult) -> None:
        """Says nothing."""
