"""`results.json` and `agreement.json` as the report reads them, checked before they are shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from echo_hf.errors import RunError
from echo_hf.hub.run_tables import Result
from echo_hf.report.markup import Interval

BySystem = Mapping[str, float | None]
Counts = Mapping[str, int]
Failed = Mapping[str, tuple[str, ...]]
Read = TypeVar("Read", bound=BaseModel)
NAME = r"^\w{1,80}$"  # of a metric: it becomes the name of a file


class ResultsModel(BaseModel):
    """A part of a file of figures: immutable, finite, and open to keys that are not shown."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False, defer_build=True)


class Rates(ResultsModel):
    win_rate: BySystem
    interval: Mapping[str, Interval | None]
    matrix: Mapping[str, BySystem]
    pairs: Mapping[str, Counts]
    coverage: BySystem
    per_judge: Mapping[str, BySystem]
    reasons: Mapping[str, str] = {}
    ignored: Counts = {}
    definition: Mapping[str, Any]

    @property
    def order(self) -> tuple[str, ...]:
        """All systems, the best first, those without a rate last, equal ones by name."""
        # The file has its keys in alphabetical order.
        rates = self.win_rate.items()
        ranked = sorted(rates, key=lambda pair: (pair[1] is None, -(pair[1] or 0.0), pair[0]))
        return tuple(name for name, _ in ranked)


class Tiers(ResultsModel):
    tiers: tuple[tuple[str, ...], ...]
    definition: Mapping[str, Any]


class Board(ResultsModel):
    vote: str
    ties: str
    average: str
    protocol: str | None = None
    ranks: Mapping[str, int | None]


class Sensitivity(ResultsModel):
    """How much the order of systems hangs on the rule."""

    boards: tuple[Board, ...]
    rank_range: Mapping[str, tuple[int, int] | None]
    flips: tuple[tuple[str, str], ...]


class Bounds(ResultsModel):
    """What the win rates could be if what is missing were known."""

    bounds: Mapping[str, Interval | None]
    certain: tuple[tuple[str, str], ...]


class WinRates(ResultsModel):
    published: Rates
    corrected: Rates
    tiers: Tiers
    sensitivity: Sensitivity
    bounds: Bounds


class Estimate(ResultsModel):
    value: float | None = None
    interval: Interval | None = None


class Measurement(ResultsModel):
    value: float | None = None
    interval: Interval | None = None
    per_sample: tuple[float | None, ...] = ()
    n: int = 0
    coverage: float | None = None
    per_judge: BySystem = {}
    definition: Mapping[str, Any] = {}
    tint: Mapping[str, Estimate] = {}


class Metric(ResultsModel):
    metric: Annotated[str, Field(pattern=NAME)]
    system: str
    samples: tuple[str, ...] = ()
    counts: Counts = {}
    missing: str | None = None
    result: Measurement | None = None


def judges_of(rows: Iterable[Metric]) -> list[str]:
    return sorted({judge for one in rows if one.result for judge in one.result.per_judge})


class Share(ResultsModel):
    value: float | None = None
    interval: Interval | None = None
    reason: str | None = None


class JudgePairs(ResultsModel):
    pairs: int
    first: Share
    follows_position: Share
    consistent: Share
    agreement: Share


class Pairwise(ResultsModel):
    judges: Mapping[str, JudgePairs]


class Split(ResultsModel):
    samples: int
    win_rate: WinRates | None = None
    metrics: tuple[Metric, ...] = ()
    pairwise: Pairwise | None = None


class Identity(ResultsModel):
    name: str | None = None
    on_hub: str | None = None
    digests: Mapping[str, str] | None = None


class Results(ResultsModel):
    """The figures of a run.

    Attributes:
        benchmark: Which benchmark they are of.
        protocol: Whose arithmetic the run follows.
        left_out: For each table, rows about other samples or older ones, by reason.
        failed_audit: For each judge that had failed its audit, the honeypots that it failed on.
        results: One figure for each metric, protocol, split and system.
        details: What lies beside them, by split.
    """

    benchmark: Identity
    protocol: Literal["published", "corrected"]
    left_out: Mapping[str, Counts] = {}
    failed_audit: Failed = {}
    results: Sequence[Result] = Field(default=())
    details: Mapping[str, Split]

    def rates(self, split: str) -> Rates | None:
        """The win rates of a split under the run's protocol; null where nothing was rated."""
        found = self.details[split].win_rate
        if found is None:
            return None
        return found.published if self.protocol == "published" else found.corrected

    @property
    def judges(self) -> tuple[str, ...]:
        """Every judge whose ratings count, in alphabetical order."""
        known = (self.rates(split) for split in self.details)
        return tuple(sorted({judge for rates in known if rates for judge in rates.per_judge}))


def read_figures(path: Path, model: type[Read], verb: str) -> Read | None:
    try:
        return model.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        said: object = error.strerror
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        said = f"{place} is {str(first['input'])[:80]!r}, {first['msg'].lower()}"
    raise RunError(f"cannot read {str(path)!r} ({said}): run `echo-hf {verb}` again")


class Tau(ResultsModel):
    """Kendall's tau-b of two rankings, mean over samples."""

    tau: float | None = None
    interval: Interval | None = None
    p_value: float | None = None
    samples: int = 0


class CeilingShare(ResultsModel):
    """A judge's agreement with people as a share of people's own."""

    share: float | None = None


class PearsonR(ResultsModel):
    r: float | None = None
    outputs: int = 0


Taus = Mapping[str, Mapping[str, Tau]]
MeanRanks = Mapping[str, Estimate]


class JudgeComparison(ResultsModel):
    with_consensus: Mapping[str, Tau]
    with_raters: Taus
    among_raters: Taus
    among_judges: Taus
    people_with_others: Estimate
    share_of_ceiling: Mapping[str, CeilingShare]
    pearson: Mapping[str, Mapping[str, PearsonR]]


class Consensus(ResultsModel):
    ranking: tuple[str, ...]


class Friedman(ResultsModel):
    statistic: float | None = None
    degrees: int | None = None
    p_value: float | None = None
    blocks: int = 0


class PairTest(ResultsModel):
    better: str
    worse: str
    z: float
    p_value: float
    holm: float
    bonferroni: float


class HumanResults(ResultsModel):
    consensus: Consensus
    mean_rank: MeanRanks
    mean_rank_by_rater: Mapping[str, MeanRanks]
    friedman: Friedman
    kendalls_w: Estimate
    tests: Mapping[str, tuple[PairTest, ...]]


class Counted(ResultsModel):
    samples: int
    rankings: int
    partial: int = 0
    refused: int = 0


class Compared(ResultsModel):
    people: HumanResults
    judges: JudgeComparison
    counts: Counted
    protocol: Literal["published", "corrected"]
    definition: Mapping[str, Any] = {}


class AgreementFile(ResultsModel):
    merged: Compared
    failed_audit: Mapping[str, tuple[str, ...]] = {}
