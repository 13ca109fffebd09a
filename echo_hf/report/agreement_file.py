"""`agreement.json` as the report reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from echo_hf.report.numbers import Interval
from echo_hf.report.results_file import Estimate, Part


class Tau(Part):
    """Kendall's tau-b of two rankings, mean over samples."""

    tau: float | None = None
    interval: Interval | None = None
    p_value: float | None = None
    samples: int = 0


class CeilingShare(Part):
    """A judge's agreement with people as a share of people's own."""

    share: float | None = None


class PearsonR(Part):
    """Pearson's correlation of two judges' ratings."""

    r: float | None = None
    outputs: int = 0


Taus = Mapping[str, Mapping[str, Tau]]
MeanRanks = Mapping[str, Estimate]


class Judged(Part):
    """How far judges agree with people, and people with each other."""

    with_consensus: Mapping[str, Tau]
    with_raters: Taus
    among_raters: Taus
    among_judges: Taus
    people_with_others: Estimate
    share_of_ceiling: Mapping[str, CeilingShare]
    pearson: Mapping[str, Mapping[str, PearsonR]]


class Consensus(Part):
    """The order nearest to all rankings."""

    ranking: tuple[str, ...]


class Friedman(Part):
    """Whether the systems differ at all."""

    statistic: float | None = None
    degrees: int | None = None
    p_value: float | None = None
    blocks: int = 0


class PairTest(Part):
    """Whether two systems differ."""

    better: str
    worse: str
    z: float
    p_value: float
    holm: float
    bonferroni: float


class People(Part):
    """What people say of the systems."""

    consensus: Consensus
    mean_rank: MeanRanks
    mean_rank_by_rater: Mapping[str, MeanRanks]
    friedman: Friedman
    kendalls_w: Estimate
    tests: Mapping[str, tuple[PairTest, ...]]


class Counted(Part):
    """What there was to compare."""

    samples: int
    rankings: int
    partial: int = 0
    refused: int = 0


class Compared(Part):
    """Judges and people compared, over the samples of all splits or of one."""

    people: People
    judges: Judged
    counts: Counted
    protocol: Literal["published", "corrected"]
    definition: Mapping[str, Any] = {}


class AgreementFile(Part):
    """How far a run's judges agree with people, and which of them had failed their audits."""

    merged: Compared
    failed_audit: Mapping[str, tuple[str, ...]] = {}
