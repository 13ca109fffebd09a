"""The result of a metric: a number, its interval, and the reasons of samples without one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from echo_hf._infra.bootstrap import LEVEL, METHOD, Interval, compute_interval, draw_weights
from echo_hf._infra.plots import BAR_LABEL, LIGHT_COLOR, draw_interval, get_axes, set_label
from echo_hf._infra.summary import SummaryMixin
from echo_hf.images.loader import BadImage, ImageNotice
from echo_hf.reasons import Reason

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame


class MetricReason(Reason):
    """Why a metric has no number for a sample."""

    MISSING_OUTPUT = "missing_output", "there is no output: none was made, or it was not kept"
    NO_INPUT = "no_input", "there is no input to compare the output with"
    BAD_OUTPUT = "bad_output", "the output cannot be shown as an image"
    BAD_INPUT = "bad_input", "an input cannot be shown as an image"
    BLANK_OUTPUT = "blank_output", "the output is of one color"
    BLANK_INPUT = "blank_input", "an input is of one color"
    PLACEHOLDER = "placeholder", "a sample with other inputs has the very same output"
    NO_LEVELS = "no_levels", "a channel has no level from 5 to 250: it counts pooled, not alone"
    ZERO_DISTANCE = "zero_distance", "a distance of 0, which the released code takes for no output"
    UNRATED = "unrated", "no judge gave it a rating"
    SPARED = "spared", "a judge was spared it: samples that all were asked about count"
    OFF_SCALE = "off_scale", "the rating is not on the scale that it is divided by"
    NO_FACE_IN_INPUT = "no_face_in_input", "no face was found in any of its inputs"
    NO_FACE_IN_OUTPUT = "no_face_in_output", "there is a face in an input, and none in the output"
    ZERO_NORM = "zero_norm", "every face of one side has an embedding without a direction"
    MODEL_FAILED = "model_failed", "the model that looks at its images fails on one of them"
    SEVERAL_INPUTS = "several_inputs", "it has more inputs than the released code takes"
    SIZE_NOT_TAKEN = "size_not_taken", "an image is smaller or larger than the released code takes"
    NOT_ABOVE_ZERO = "not_above_zero", "its number is not above 0: the released code drops those"
    NOTHING_QUOTED = "nothing_quoted", "it quotes no text: the share of words is measured instead"
    TOO_FEW_WORDS = "too_few_words", "too few words were read for a share of them to mean anything"
    UNKNOWN_LETTERS = "unknown_letters", "each quoted string has letters that the text reader lacks"
    OTHER_SCRIPT = "other_script", "most of what was read is in a script without a vocabulary here"


HISTOGRAM_BINS = 20
MAX_ERROR_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """The reason why a sample has no number.

    Attributes:
        reason: The kind of reason.
        cause: Why an image cannot be shown; null for the other reasons.
        detail: Which image it is, and what a person needs to see the cause.
    """

    reason: MetricReason
    cause: BadImage | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Estimate(SummaryMixin):
    """The mean over samples of a number.

    Attributes:
        value: The mean; null when no sample has the number.
        interval: Lower and upper end at 95 %, from a bootstrap over samples; null without draws,
            for fewer than 10 samples, and where all have the same number.
        per_sample: The number of each sample in order, null for one that has none.
    """

    value: float | None
    interval: Interval | None
    per_sample: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class MetricResult(SummaryMixin):
    """One system's result by one metric.

    Attributes:
        value: The metric; null when no sample has a number.
        per_sample: The number of each sample in order, null for one that has none.
        interval: Lower and upper end of the value at 95 %; null as for `Estimate`.
        n: How many samples the value is made of.
        coverage: Share of the samples that the value is made of; null when there are no samples.
        reasons: For each sample why it has no number; null for one that has.
        notices: How many images had something that had to be decided on loading, by what it was.
        definition: Everything that decides the numbers: protocol, parameters, versions.

    Examples:
        >>> missing = Unmeasured(MetricReason.MISSING_OUTPUT)
        >>> result = MetricResult(
        ...     value=0.5, per_sample=(0.5, None), interval=None, n=1, coverage=0.5,
        ...     reasons=(None, missing), definition={},
        ... )
        >>> {str(reason): count for reason, count in result.counts.items()}
        {'missing_output': 1}
        >>> print(result.to_pandas()[["value", "reason"]])
           value          reason
        0    0.5            None
        1    NaN  missing_output
    """

    value: float | None
    per_sample: tuple[float | None, ...]
    interval: Interval | None
    n: int
    coverage: float | None
    reasons: tuple[Unmeasured | None, ...]
    definition: Mapping[str, Any]
    notices: Mapping[ImageNotice, int] = field(default_factory=dict)

    @property
    def counts(self) -> dict[MetricReason, int]:
        """The number of samples without a value, by reason."""
        return dict(sorted(Counter(missing.reason for missing in self.reasons if missing).items()))

    def as_json(self) -> dict[str, Any]:
        """Return the result as a dict that JSON can hold."""
        return asdict(self)

    def to_pandas(self) -> DataFrame:
        """Return a row for each sample: `value` or NaN, and `reason`, `cause` and `detail`."""
        from pandas import DataFrame, Series

        frame = DataFrame({"value": Series(self.per_sample, dtype=float)})
        for name in ("reason", "cause", "detail"):
            details = [getattr(missing, name, None) for missing in self.reasons]
            frame[name] = Series([detail and str(detail) for detail in details], dtype=object)
        return frame

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw a histogram of the samples' numbers, and above it the value with its interval.

        Args:
            ax: Where to draw; null for a new figure.

        Returns:
            The axes. `ax.figure.savefig("color_shift.png")` saves them.

        Raises:
            MissingExtraError: Matplotlib is not installed.
        """
        from pandas import DataFrame

        ax = get_axes(ax)
        counts, *_ = ax.hist(
            self.to_pandas()["value"].dropna(), bins=HISTOGRAM_BINS, color=LIGHT_COLOR
        )
        top, (low, high) = max(*counts, 1), self.interval or (None, None)
        row = {"value": self.value, "low": low, "high": high}
        barred = draw_interval(ax, DataFrame(row, index=[1.1 * top], dtype=float), "value")
        ax.set_ylim(0, 1.2 * top)
        ax.set_ylabel("samples")
        ax.locator_params("y", integer=True)
        name = f"{self.definition.get('metric', 'number')} of a sample"
        way = self.definition.get("direction")
        whole = f"point: value of {self.n} samples; {BAR_LABEL if barred else 'no interval'}"
        none = [f"{reason.replace('_', ' ')}: {count}" for reason, count in self.counts.items()]
        text = "no value" if self.value is None else whole
        set_label(ax, [f"{name}, {way}" if way else name, text, *none])
        return ax


def coverage_of(counted: int, samples: int) -> float | None:
    """Return the share of the samples that have a number."""
    return counted / samples if samples else None


def get_versions(*packages: str) -> dict[str, str]:
    """Return the versions of installed packages, for the definition of a result."""
    return {package: version(package) for package in packages}


def module_versions(*names: str) -> dict[str, str]:
    """Return versions by module, where several packages install the same one."""
    return {name: str(import_module(name).__version__) for name in names}


def estimate_mean(values: Sequence[float | None], *, n_boot: int, seed: int) -> Estimate:
    """Return the mean of the samples' numbers, with its bootstrap interval."""
    numbers = np.sort(np.array([value for value in values if value is not None], np.float64))
    draws = [
        weights @ numbers / len(numbers) for weights in draw_weights(len(numbers), n_boot, seed)
    ]
    mean = float(numbers.mean()) if len(numbers) else None
    interval, _ = compute_interval(np.concatenate([np.empty(0), *draws]), len(numbers))
    return Estimate(mean, interval, tuple(values))


def make_mean_fields(
    values: Sequence[float | None],
    reasons: Iterable[Unmeasured | None],
    definition: Mapping[str, Any],
    *,
    n_boot: int,
    seed: int,
) -> dict[str, Any]:
    """Return the fields of a `MetricResult` whose value is the mean of the samples' numbers."""
    n = len(values) - values.count(None)
    return {
        **asdict(estimate_mean(values, n_boot=n_boot, seed=seed)),
        "n": n,
        "coverage": coverage_of(n, len(values)),
        "reasons": tuple(reasons),
        "definition": {**definition, "interval": describe_bootstrap(n_boot, seed)},
    }


def describe_bootstrap(n_boot: int, seed: int) -> dict[str, Any]:
    """Describe how intervals are made, for the definition of a result."""
    return {"kind": METHOD, "level": LEVEL, "draws": n_boot, "seed": seed}


def describe_error(error: Exception) -> str:
    """Describe an error of another library in one line."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words}"[:MAX_ERROR_CHARACTERS].rstrip(": ")
