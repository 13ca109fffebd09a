"""`results.json` and `agreement.json` as the report reads them, checked before they are shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from echo_hf.config.checks import AnsweredBy
from echo_hf.hub.run_tables import Result
from echo_hf.metrics.result import MetricResult
from echo_hf.metrics.text_rendering import TextRenderingResult
from echo_hf.scores.agreement import Agreement
from echo_hf.scores.board import BoardRow, board_of
from echo_hf.scores.bradley_terry import BradleyTerry
from echo_hf.scores.pairwise_agreement import PairwiseAgreement
from echo_hf.scores.robustness import Bounds, LeaveOneJudgeOut, Sensitivity
from echo_hf.scores.tiers import SamplesNeeded, Tiers
from echo_hf.scores.win_rate import WinRate

Counts = Mapping[str, int]
Failed = Mapping[str, tuple[str, ...]]
NAME = r"^\w{1,80}$"  # of a metric: it becomes the name of a file


class FiguresFile(BaseModel):
    """A part of a file of figures: immutable, finite, and open to keys that are not shown.

    Its figures are the very objects that `echo_hf.scores` and `echo_hf.metrics` return.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False, defer_build=True)


class WinRates(FiguresFile):
    published: WinRate
    corrected: WinRate
    tiers: Tiers
    sensitivity: Sensitivity
    bounds: Bounds
    # Files of before lack these.
    bradley_terry: BradleyTerry | None = None
    leave_one_judge_out: LeaveOneJudgeOut | None = None
    samples_needed: SamplesNeeded | None = None


class TrustLine(FiguresFile):
    measure: str
    split: str | None = None
    said: str
    meaning: str
    reason: str | None = None


class Metric(FiguresFile):
    metric: Annotated[str, Field(pattern=NAME)]
    system: str
    samples: tuple[str, ...] = ()
    counts: Counts = {}
    missing: str | None = None
    result: MetricResult | TextRenderingResult | None = None

    @property
    def values(self) -> list[float]:
        """The numbers of the samples that have one."""
        every = self.result.per_sample if self.result else ()
        return [value for value in every if value is not None]


def judges_of(rows: Iterable[Metric]) -> list[str]:
    """The judges whose ratings a metric stands on."""
    return sorted({judge for one in rows for judge in getattr(one.result, "per_judge", ())})


class Split(FiguresFile):
    samples: int
    win_rate: WinRates | None = None
    metrics: tuple[Metric, ...] = ()
    pairwise: PairwiseAgreement | None = None


class Identity(FiguresFile):
    name: str | None = None
    on_hub: str | None = None
    digests: Mapping[str, str] | None = None


class Results(FiguresFile):
    """The figures of a run.

    Attributes:
        benchmark: Which benchmark they are of.
        protocol: Whose arithmetic the run follows.
        left_out: For each table, rows about other samples or older ones, by reason.
        failed_audit: For each judge that had failed its audit, the honeypots that it failed on.
        system_models: Which model answered to the name of each system.
        judge_models: The same of each judge.
        trust: What says how far the figures hold, a line each.
        results: One figure for each metric, protocol, split and system.
        details: What lies beside them, by split.
    """

    benchmark: Identity
    protocol: Literal["published", "corrected"]
    left_out: Mapping[str, Counts] = {}
    failed_audit: Failed = {}
    system_models: Mapping[str, AnsweredBy] = Field({}, alias="systems")
    judge_models: Mapping[str, AnsweredBy] = Field({}, alias="judges")
    trust: tuple[TrustLine, ...] = ()
    results: Sequence[Result] = Field(default=())
    details: Mapping[str, Split]

    def rates(self, split: str) -> WinRate | None:
        """The win rates of a split under the run's protocol; null where nothing was rated."""
        found = self.details[split].win_rate
        if found is None:
            return None
        return found.published if self.protocol == "published" else found.corrected

    def board(self, split: str) -> tuple[BoardRow, ...]:
        """The same as a board, with tiers."""
        found, rates = self.details[split].win_rate, self.rates(split)
        return board_of(rates, found.tiers.tiers, self.system_models) if found and rates else ()

    @property
    def judges(self) -> list[str]:
        """Every judge whose ratings count, in alphabetical order."""
        known = (self.rates(split) for split in self.details)
        return sorted({judge for rates in known if rates for judge in rates.per_judge})


class AgreementFile(FiguresFile):
    merged: Agreement
    failed_audit: Failed = {}
