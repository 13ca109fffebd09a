"""The contract of a metric, and the registry by which every room knows metrics."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, get_args

from PIL import Image
from pydantic import BaseModel

from echo_hf._infra.registry import Requirements
from echo_hf.config.evaluation import METRICS, MetricOptions
from echo_hf.config.rubrics import RESERVED
from echo_hf.errors import ConfigError, MissingExtraError, unknown
from echo_hf.metrics.image_features import (
    InputCache,
    SampleFeatures,
    check_protocol,
    common_fields,
    extract,
    list_outputs,
    reasons_of,
)
from echo_hf.metrics.result import MetricResult, Unmeasured, make_mean_fields

if TYPE_CHECKING:  # the package of scores imports datasets
    from echo_hf.scores.votes import ProtocolName

Better = Literal["higher", "lower"]
Need = Literal["inputs", "outputs", "prompts", "ratings"]
MetricT = TypeVar("MetricT", bound="type[Metric]")
ARROWS = {"higher": "↑", "lower": "↓"}  # is better
NAME = re.compile(r"[a-z][a-z0-9_]{0,79}")
# Figures that are no metrics stand beside them under these names, and so do these columns.
LOWER_IS_BETTER = "lower is better"


class Metric:
    """A number for each output of a system; its mean compares systems.

    A subclass states what it is in the attributes below, of which only `name` has no default, and
    computes in `measure`, or names a function that does. A run makes an object of it and measures
    one system after the other, so that `measure` may keep what it computes of inputs.

    Attributes:
        name: What configs, results and commands call it: lower-case letters, digits and `_`.
        title: What pages call it; made of the name where it is empty.
        about: What it measures, in part of a sentence.
        better: Whether `higher` or `lower` numbers are better.
        bounds: The least and the greatest number there can be; null where there is no such pair.
        splits: The splits it is measured on. One that needs ratings is also measured elsewhere,
            where there are ratings by its rubric.
        question: What it measures and when it fits, as a model is told that decides on each sample
            whether it fits; null for one that fits all samples of its splits.
        Options: Its options in a config, `metrics: {NAME: ...}`: a subclass of `Metric.Options`.
        extra: What to install for it: an extra of echo-hf, or anything that pip takes.
        packages: Modules that it imports in `measure`, which come with `extra`.
        card: Markdown: what it measures, and what it misses.
        needs: What `measure` takes, in this order: of `inputs`, `outputs`, `prompts`, `ratings`.
        rubric: The rubric of the ratings that it needs.
        enabled: Whether it is measured where a config does not name it under `metrics`.
        compares_samples: Whether its numbers of single samples can be compared: the report then
            shows the sample on which systems differ most.
        function: A function that `measure` calls with what it takes of `protocol`, `n_boot`,
            `seed`, `cache` and the options; null for a subclass with a `measure` of its own.
        result: The type of its results.
        paper_name: What the authors of the paper call it. What they asked about is one question,
            in the order of these names; all other metrics are asked about in a second.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        seed: Of the draws.

    Args:
        n_boot: Draws of the bootstrap over samples; 0 for none.
        seed: Of the draws.
    """

    name: ClassVar[str]
    title: ClassVar[str] = ""
    about: ClassVar[str] = ""
    better: ClassVar[Better] = "higher"
    bounds: ClassVar[tuple[float, float] | None] = None
    splits: ClassVar[tuple[str, ...]] = ("image_to_image", "text_to_image")
    question: ClassVar[str | None] = None
    extra: ClassVar[str | None] = None
    packages: ClassVar[tuple[str, ...]] = ()
    card: ClassVar[str] = ""
    needs: ClassVar[tuple[Need, ...]] = ("inputs", "outputs")
    rubric: ClassVar[str] = "overall"
    enabled: ClassVar[bool] = True
    compares_samples: ClassVar[bool] = True
    function: ClassVar[Callable[..., MetricResult] | None] = None
    result: ClassVar[type[MetricResult]] = MetricResult
    paper_name: ClassVar[str | None] = None

    class Options(MetricOptions):
        """No options."""

    def __init__(self, *, n_boot: int = 1000, seed: int = 0) -> None:
        self.n_boot, self.seed = n_boot, seed
        self._cache = InputCache()  # what systems share

    def measure(self, *columns: Any, **context: Any) -> MetricResult:
        """Measure one system: `measure(outputs, *, protocol, options, names)` if it needs outputs.

        Args:
            *columns: What `needs` names, in that order, with an entry for each sample. Of inputs a
                list of images' bytes, null for one that was not kept; of outputs the bytes of one,
                or null; of prompts text. Images come one at a time, and can be read once. Ratings
                are a pyarrow Table of the system's rows by the rubric, with a row without rating
                for a sample that nobody rated.
            **context: The `protocol`, `corrected` or `published`; the metric's `options`; and
                `names`, the `sample_id` of each sample.

        Returns:
            The result, with a number or a reason for each sample in the order of `names`, or in
            that of its own `sample_ids`.
        """
        function = type(self).function
        if function is None:
            raise TypeError(f"metric {self.name!r} has neither a measure nor a function")
        shared = {"n_boot": self.n_boot, "seed": self.seed, "cache": self._cache}
        options = {**dict(context["options"]), "protocol": context["protocol"], **shared}
        accepted = inspect.signature(function).parameters.keys() & options
        return function(*columns, **{name: options[name] for name in accepted})

    @classmethod
    def check_installed(cls) -> None:
        """Raise an error that says what to install where a package is missing; import none."""
        missing = Requirements(packages=cls.packages).missing
        if missing:
            raise MissingExtraError(cls.name, cls.extra or " ".join(missing))


def register(metric: MetricT) -> MetricT:
    """Register a metric, for all that measures, asks, shows and exports.

    Other packages name its module among the entry points `echo_hf.metrics`, or a config names it
    under `plugins`.

    Args:
        metric: A subclass of `Metric`.

    Returns:
        The same class, so that this is a decorator.

    Raises:
        ConfigError: It is no such class, or one of its attributes is not what it should be.
    """
    first = METRICS.entries.get(getattr(metric, "name", ""), (metric, None))[0]
    _check_metric(metric)
    if (first.__module__, first.__qualname__) != (metric.__module__, metric.__qualname__):
        raise ConfigError(
            f"metric {metric.name!r} is defined by {first.__module__!r} and {metric.__module__!r}: "
            "expected one of each name; rename one, or leave its package out"
        )
    metric.title = metric.title or metric.name.replace("_", " ").capitalize()
    return METRICS.register(metric.name)(metric)


def _check_metric(metric: Any) -> None:
    place = f"metric {getattr(metric, 'name', metric)!r}"
    if not (isinstance(metric, type) and issubclass(metric, Metric)):
        raise ConfigError(f"{place} is no class of a metric: expected a subclass of Metric")
    name = getattr(metric, "name", None)
    if not isinstance(name, str) or not NAME.fullmatch(name) or name in RESERVED:
        raise ConfigError(
            f"{place} of {metric.__module__!r}: expected a name of lower-case letters, digits and "
            f"'_' that is none of {', '.join(sorted(RESERVED))}"
        )
    choices: dict[str, tuple[str, ...]] = {
        "better": tuple(ARROWS),
        "needs": get_args(Need),
        "splits": Metric.splits,
    }
    for attribute, known in choices.items():
        value = getattr(metric, attribute)
        for choice in (value,) if attribute == "better" else tuple(value):
            if choice not in known:
                raise ConfigError(unknown(attribute, choice, known, place))
    if not (isinstance(metric.Options, type) and issubclass(metric.Options, BaseModel)):
        raise ConfigError(f"{place}: Options is no model of pydantic: subclass Metric.Options")
    if metric.measure is Metric.measure and metric.function is None:
        raise ConfigError(f"{place} measures nothing: expected a method measure, or a function")


def registered() -> dict[str, type[Metric]]:
    """Return all metrics by name: those of the paper in its order, then the others.

    Returns:
        The classes of built-in metrics, of installed packages and of the plug-ins of a config.

    Raises:
        ConfigError: An installed package's metric cannot be loaded, or is none.

    Examples:
        >>> from echo_hf.metrics import registered
        >>> registered()["color_shift"].better
        'lower'
    """
    metrics = {name: METRICS.find(name) for name in METRICS.list_names()}
    for name, metric in metrics.items():
        _check_metric(metric)
        if metric.name != name:
            raise ConfigError(
                f"the entry point {name!r} of echo_hf.metrics is a metric called {metric.name!r}: "
                "expected the same name for both"
            )
        metric.title = metric.title or name.replace("_", " ").capitalize()
    order = [
        (metric.paper_name is None, metric.paper_name or name, name)
        for name, metric in metrics.items()
    ]
    return {name: metrics[name] for *_, name in sorted(order)}


def list_measured(named: Collection[str] = ()) -> list[type[Metric]]:
    """Return the metrics that are measured: those that are by default, or that a config names."""
    return [metric for name, metric in registered().items() if metric.enabled or name in named]


def find_metric(name: str) -> type[Metric] | None:
    """Return a metric by its name; null for results of one that is not installed here."""
    return METRICS.find(name) if name in METRICS.list_names() else None


def get_better(name: str, definitions: Iterable[Any] = ()) -> Better:
    """Return what is better by a figure; as its definitions say where no metric has the name."""
    metric = find_metric(name)
    stated = (each.get("direction") for each in definitions if isinstance(each, Mapping))
    return metric.better if metric else "lower" if LOWER_IS_BETTER in stated else "higher"


def measure_each(
    metric: Metric,
    outputs: Iterable[Any],
    function: Callable[[Image.Image], float | Unmeasured],
    *,
    protocol: ProtocolName = "corrected",
) -> MetricResult:
    """Make a result from a function of one image.

    Args:
        metric: The metric; its bootstrap is used.
        outputs: The images of one system, as `measure` takes them.
        function: What to compute of an image, in RGB; called for one image after the other, and
            for none that is missing, broken or of one color.
        protocol: Whose loader of images is used.

    Returns:
        The mean over samples, with the reason of each sample without a number.

    Raises:
        ScoreError: There is no such protocol, or `outputs` is no list of images.

    Examples:
        >>> from PIL import Image
        >>> from echo_hf.metrics import Metric, measure_each
        >>> class Width(Metric):
        ...     name, needs = "width", ("outputs",)
        ...     def measure(self, outputs, *, protocol, options, names):
        ...         return measure_each(self, outputs, lambda image: image.width)
        >>> outputs = [Image.linear_gradient("L"), None]
        >>> Width().measure(outputs, protocol="corrected", options=None, names="ab").per_sample
        (256.0, None)
    """
    check_protocol(protocol)
    # Copies, since Pillow's own loader closes a file; one at a time, in the caller's thread.
    features = extract(list_outputs(outputs), Image.Image.copy, protocol=protocol, threads=1)
    samples: list[SampleFeatures[Any]] = [
        sample.with_values(None if sample.output is None else function(sample.output))
        for sample in features
    ]
    reasons, values = reasons_of(samples), list[float | None]()
    for index, sample in enumerate(samples):
        if isinstance(sample.output, Unmeasured):
            reasons[index] = reasons[index] or sample.output
        number = sample.output if reasons[index] is None else None
        values.append(None if number is None else float(number))
    definition = {
        "metric": metric.name,
        "protocol": protocol,
        "direction": f"{metric.better} is better",
        "value": f"mean over samples: {metric.about or metric.title}",
    }
    fields = make_mean_fields(values, reasons, {}, n_boot=metric.n_boot, seed=metric.seed)
    return MetricResult(
        **fields | common_fields(samples, definition, {}, metric.n_boot, metric.seed)
    )


def read_card(name: str) -> str:
    """Read the card of a built-in metric."""
    return files("echo_hf.metrics").joinpath("cards", f"{name}.md").read_text("utf-8")
