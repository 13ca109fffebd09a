"""The model of `results.json`: what `score` writes, and boards, reports and exports read."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    ConfigDict,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from echo_hf._infra.atomic import write_json
from echo_hf._infra.bootstrap import Interval, Unscored
from echo_hf.errors import RunError
from echo_hf.hub.run_tables import Anchor, ReleasedResults, ResultRow, Uncertified
from echo_hf.judging.certificates import JudgeCertificate
from echo_hf.judging.figures import FigureModel, read_figures
from echo_hf.scores.bradley_terry import BradleyTerry, Gap
from echo_hf.scores.choices import ChoiceStrengths
from echo_hf.scores.contamination import Contamination
from echo_hf.scores.corrected_choices import CorrectedStrengths
from echo_hf.scores.demand import DemandRates
from echo_hf.scores.human_corrected import HumanCorrected
from echo_hf.scores.pairwise_agreement import PairwiseAgreement, Way
from echo_hf.scores.reliability import Reliability
from echo_hf.scores.robustness import Bounds, LeaveOneJudgeOut, SelfPreference, Sensitivity
from echo_hf.scores.sequential import Decisions
from echo_hf.scores.slices import SliceRates
from echo_hf.scores.tiers import SamplesNeeded, Tiers
from echo_hf.scores.votes import ProtocolName
from echo_hf.scores.win_rate import BoardRow, WinRate, make_board
from echo_hf.systems.checks import CheckCertificate
from echo_hf.systems.run_tables import ApplicabilitySource

ReasonCounts = Mapping[str, int]
FailedAudits = Mapping[str, tuple[str, ...]]
METRIC_NAME = r"^\w{1,80}(@\d{1,6})?$"  # a metric's name is the name of a file


@dataclass(frozen=True)
class UnevenCoverage:
    """A system whose win rate rests on clearly fewer comparisons than that of a neighbor."""

    system: str
    coverage: float
    neighbor: str
    of_neighbor: float


WrittenDecisions = Annotated[
    Decisions, PlainSerializer(lambda decisions: {"said": decisions.summary, **asdict(decisions)})
]


class SavedWinRates(FigureModel):
    published: WinRate
    corrected: WinRate
    tiers: Tiers
    sensitivity: Sensitivity
    bounds: Bounds
    # Missing in older files.
    self_preference: SelfPreference | None = None
    leave_one_judge_out: LeaveOneJudgeOut | None = None
    samples_needed: SamplesNeeded | None = None
    bradley_terry: BradleyTerry | None = None
    gap: Gap | None = None
    uneven_coverage: tuple[UnevenCoverage, ...] = ()
    decisions: WrittenDecisions | None = None  # where judges were asked until pairs were decided
    anchors: Mapping[str, Anchor] = {}

    @model_serializer(mode="wrap")
    def _leave_out_missing(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = serialize(self)
        absent = {name for name in ("decisions", "anchors") if not written[name]}
        return {name: value for name, value in written.items() if name not in absent}


class SavedTrustLine(FigureModel):
    """One measure's finding about a split or the whole run; `reason` where it has no figure."""

    measure: str
    split: str | None = None
    said: str
    meaning: str
    reason: Unscored | None = None


class SavedResult(FigureModel):
    """A metric's result for one system, with whatever else its kind of result has."""

    model_config = ConfigDict(extra="allow")

    value: float | None
    per_sample: tuple[float | None, ...]
    interval: Interval | None = None
    n: int = 0
    coverage: float | None = None
    definition: Mapping[str, Any] = {}


class SavedMetric(FigureModel):
    metric: Annotated[str, Field(pattern=METRIC_NAME)]
    system: str
    samples: tuple[str, ...] = ()
    counts: ReasonCounts = Field({})
    missing: str | None = None
    result: SavedResult | None = None

    @property
    def values(self) -> list[float]:
        per_sample = self.result.per_sample if self.result else ()
        return [value for value in per_sample if value is not None]

    @property
    def measured(self) -> tuple[int, int]:
        """The number of samples with a value, and of all that might have one."""
        total = len(self.samples) + self.counts.get("not_asked", 0)
        return self.result.n if self.result else 0, total


def collect_judges(rows: Iterable[SavedMetric]) -> list[str]:
    return sorted({judge for row in rows for judge in getattr(row.result, "per_judge", ())})


class SavedHumanCorrected(FigureModel):
    missing: str | None = None
    said: str
    result: Annotated[HumanCorrected, PlainSerializer(HumanCorrected.as_json)] | None = None


class SavedCheck(FigureModel):
    """A check as it was when a run was scored."""

    check: Annotated[str, Field(pattern=METRIC_NAME)]
    title: str
    question: str
    fits: str | None = None
    status: str
    reason: str | None = None
    day: str | None = None
    certificates: tuple[CheckCertificate, ...] = ()


class SavedFailureRate(FigureModel):
    """How often a system's outputs fail by a check; `measurer` is a judge, or the vote of all.

    `raw` is the share of yes, `value` what is left when the check's mistakes are taken out:
    `corrected` by its certificate, or `prediction_powered` or `exact` by people's labels.
    """

    check: Annotated[str, Field(pattern=METRIC_NAME)]
    system: str
    measurer: str | None = None
    raw: float | None = None
    value: float | None = None
    interval: Interval | None = None
    method: str | None = None
    outputs: int = 0
    labels: int = 0
    reason: str | None = None


class SavedBoard(FigureModel):
    win_rate: Mapping[str, float | None]
    interval: Mapping[str, Interval | None]
    reasons: Mapping[str, Unscored] = {}


class SavedDemand(FigureModel):
    """Win rates by what people ask for in a window; `left_out` counts what is not asked there."""

    window: str
    left_out: ReasonCounts = Field({})
    result: Annotated[DemandRates, PlainSerializer(DemandRates.as_json)]

    @property
    def asked(self) -> int:
        return round(sum(stratum.asked for stratum in self.result.strata.values()))


class SavedSlices(FigureModel):
    """Boards of a split beside that of all its samples: since a day, by slice, and by demand.

    `board` is that of the `samples` since the day; `left_out` counts the others.
    """

    since: datetime.date | None = None
    samples: int
    left_out: ReasonCounts = Field({})
    board: SavedBoard | None = None
    by: Mapping[str, Annotated[SliceRates, PlainSerializer(SliceRates.as_json)]] = {}
    demand: SavedDemand | None = None


class SavedSealed(FigureModel):
    """How systems do on a split's sealed samples, alone and with the public ones."""

    samples: int
    sealed: SavedBoard
    both: SavedBoard
    contamination: Contamination


class SavedChoices(FigureModel):
    """The figures of choices between two outputs; `is_board` where they come before ratings."""

    is_board: bool
    said: str
    strengths: ChoiceStrengths
    decisions: WrittenDecisions
    tiers: tuple[tuple[str, ...], ...] = ()
    by_people: CorrectedStrengths | None = None
    missing: str | None = None  # why there are no strengths by people, where they ranked

    @property
    def tier_by_system(self) -> dict[str, int]:
        return {name: tier for tier, names in enumerate(self.tiers, 1) for name in names}

    @property
    def order(self) -> list[str]:
        """Return the systems, the best first; those in no tier come last."""
        return list(dict.fromkeys([*self.tier_by_system, *self.strengths.strength]))


class SavedReliability(FigureModel):
    missing: str | None = None
    result: Annotated[Reliability, PlainSerializer(Reliability.as_json)] | None = None

    @model_validator(mode="after")
    def _check_systems(self) -> Self:
        figures = dict(vars(self.result)) if self.result else {}
        is_whole = "k" in figures.pop("definition", {"k": None})
        figures.pop("ignored", None)
        if not is_whole or len({frozenset(by_system) for by_system in figures.values()}) > 1:
            raise ValueError("expected the same systems in each figure, and the largest k")
        return self


class SavedSpeech(FigureModel):
    """A system's outputs whose words speak to the judge, by sample.

    Of its `outputs` OCR read some, and judges were asked about some; `checked` were either.
    """

    system: str
    outputs: int
    read: int = 0
    asked: int = 0
    checked: int = 0
    samples: tuple[str, ...] = ()


class SavedSplit(FigureModel):
    samples: int
    win_rate: SavedWinRates | None = None
    metrics: tuple[SavedMetric, ...] = ()
    pairwise: PairwiseAgreement | None = None
    choices: SavedChoices | None = None  # where judges chose between two outputs
    by_people: SavedHumanCorrected | None = None
    checks: tuple[SavedFailureRate, ...] = ()
    sealed: SavedSealed | None = None
    dated: Contamination | None = None
    reliability: SavedReliability | None = None  # where systems drew several outputs of a sample
    speaks_to_judge: tuple[SavedSpeech, ...] = ()  # where words in outputs were looked for
    slices: SavedSlices | None = None  # where they were asked for

    @model_serializer(mode="wrap")
    def _leave_out_missing(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = serialize(self)
        beside = ("choices", "sealed", "dated", "reliability", "speaks_to_judge", "slices")
        absent = {name for name in beside if not written[name]}
        return {name: value for name, value in written.items() if name not in absent}


class SavedPicture(FigureModel):
    """How a judge's ratings of pictures of one kind differ from those of the real outputs.

    `raises` is of a trick; `not_seen` and `share` are of a fault, where the judge's noise is known.
    """

    shown: int = 0
    rated: int = 0
    change: float | None = None
    interval: Interval | None = None
    reason: Unscored | None = None
    raises: bool = False
    not_seen: int | None = None
    share: float | None = None


class SavedPictures(FigureModel):
    """Changes of a judge's ratings by the tricks, or the faults, of an audit.

    Intervals hold at `level` over samples; `limit` is what a trick may raise, `margin` what a
    rating falls by noise.
    """

    level: float
    unit: str
    adjusted: str | None = None
    limit: float | None = None
    margin: float | None = None
    pictures: Mapping[str, SavedPicture] = {}
    raised_by: tuple[str, ...] = ()
    rated: int = 0
    not_seen: int = 0
    share: float | None = None
    left_out: Mapping[str, ReasonCounts] = {}
    languages: Mapping[Literal["drawn", "left_out"], tuple[str, ...]] = {}


JudgePictures = Mapping[Literal["tricks", "faults"], SavedPictures]


class SavedIdentity(FigureModel):
    name: str | None = None
    on_hub: str | None = None
    digests: Mapping[str, str] | None = None


class SavedResults(FigureModel, ReleasedResults):
    """The figures of a run, as the objects that `echo_hf.scores` and `echo_hf.metrics` return.

    `left_out` counts rows about other samples or older ones, by table and reason; `failed_audit`
    has the honeypots that each judge failed on. What has a default is missing in older files.
    """

    benchmark: SavedIdentity
    protocol: ProtocolName
    left_out: Mapping[str, ReasonCounts] = {}
    failed_audit: FailedAudits = Field({})
    applicability: ApplicabilitySource | None = None
    trust: tuple[SavedTrustLine, ...] = ()
    judge_drift: Mapping[str, Mapping[str, Any]] = {}
    judge_pictures: Mapping[str, JudgePictures] = {}
    certificates: Mapping[str, JudgeCertificate] = {}  # of the judges whose ratings count
    uncertified: Mapping[Way, Mapping[str, Uncertified]] = {}  # by ratings and by choices
    checks: tuple[SavedCheck, ...] = ()
    results: tuple[ResultRow, ...] = ()
    details: Mapping[str, SavedSplit]

    @classmethod
    def read(cls, path: Path) -> Self:
        if (results := read_figures(path, cls, "score")) is None:
            raise RunError(
                f"there are no figures in {str(path.parent)!r}: run `echo-hf score` with this "
                "config first"
            )
        return results

    @model_serializer(mode="wrap")
    def _leave_out_missing(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = serialize(self)
        absent = {name for name in ("judge_pictures",) if not written[name]}
        return {name: value for name, value in written.items() if name not in absent}

    def write(self, path: Path) -> None:
        write_json(path, self.model_dump(mode="json", by_alias=True))

    def rates(self, split: str) -> WinRate | None:
        """Return the win rates of a split by the run's protocol; null where nothing was rated."""
        rates = self.details[split].win_rate
        if rates is None:
            return None
        return rates.published if self.protocol == "published" else rates.corrected

    def board(self, split: str) -> tuple[BoardRow, ...]:
        """Return the win rates of a split as a board with tiers."""
        details, rates = self.details[split].win_rate, self.rates(split)
        return (
            make_board(rates, details.tiers.tiers, self.system_models) if details and rates else ()
        )

    def choice_board(self, split: str) -> tuple[BoardRow, ...]:
        """Return the strengths by choices of a split as a board with tiers."""
        if (choices := self.details[split].choices) is None:
            return ()
        strengths, models, tiers = choices.strengths, self.system_models, choices.tier_by_system
        return tuple(
            BoardRow(
                system,
                strengths.strength.get(system),
                strengths.interval.get(system),
                missing=strengths.reasons[system].meaning if system in strengths.reasons else None,
                tier=tiers.get(system),
                in_place_of=models[system].in_place_of if system in models else None,
            )
            for system in choices.order
        )

    @property
    def judges(self) -> set[str]:
        """Return all judges whose ratings count, or whose choices are the board."""
        boards = (self.rates(split) for split in self.details)
        chosen = (split.choices for split in self.details.values())
        choosing = {
            str(judge)
            for choices in chosen
            if choices and choices.is_board
            for judge in choices.strengths.definition.get("judges", ())
        }
        return {judge for rates in boards if rates for judge in rates.per_judge} | choosing
