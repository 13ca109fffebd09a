"""One metric of one system on one split, whether or not it could be measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from echo_hf.hub.results import Result
from echo_hf.metrics.loading import Protocol
from echo_hf.metrics.result import MetricResult, coverage_of
from echo_hf.scoring.applicable import Applicable

NOT_ASKED = "not_asked"


@dataclass(frozen=True)
class Measured:
    """One metric of one system.

    Attributes:
        metric: Name of the metric.
        system: The system.
        about: The samples that it fits.
        result: The metric, with numbers and reasons in the order of those samples; null when it
            cannot be measured.
        missing: Why it cannot be measured, such as packages to install; null when it can.
    """

    metric: str
    system: str
    about: Applicable
    result: MetricResult | None
    missing: str | None = None

    @property
    def n(self) -> int:
        """How many samples its value is made of."""
        return self.result.n if self.result else 0

    @property
    def coverage(self) -> float | None:
        """Share of the samples with a number, of those for which one is wanted."""
        return coverage_of(self.n, self.about.samples)

    @property
    def counts(self) -> dict[str, int]:
        """How many samples have no number, by reason."""
        counts = self.result.counts if self.result else {}
        unknown = {NOT_ASKED: self.about.unknown} if self.about.unknown else {}
        return {**{str(reason): count for reason, count in counts.items()}, **unknown}

    def row(self, split: str, protocol: Protocol) -> Result:
        """Its figure, as `results.json` has it."""
        result = self.result
        low, high = (result.interval if result else None) or (None, None)
        return Result(
            metric=self.metric,
            protocol=protocol,
            split=split,
            system=self.system,
            value=result.value if result else None,
            low=low,
            high=high,
            n=self.n,
            coverage=self.coverage,
            definition=self._definition(),
        )

    def details(self) -> dict[str, Any]:
        """All that a report shows of it; JSON can hold it."""
        return {
            "metric": self.metric,
            "system": self.system,
            "samples": [task.sample_id for task in self.about.fitting],
            "counts": self.counts,
            "missing": self.missing,
            "result": None if self.result is None else self.result.as_json(),
        }

    def _definition(self) -> dict[str, Any]:
        fits = "samples that it was said to fit" if self.about.asked else "every sample"
        known = dict(self.result.definition) if self.result else {"missing": self.missing}
        return {"metric": self.metric, **known, "samples": fits, "without_number": self.counts}
