"""The class behind the `evaluate` module, with a config for each measure."""

from __future__ import annotations

import inspect
import io
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import evaluate
import numpy as np
import pyarrow as pa
from datasets import Features, Image, List, Value
from PIL import Image as PILImage
from pydantic import ValidationError

from echo_hf.config.checks import first_error
from echo_hf.errors import ScoreError, TableError, unknown
from echo_hf.hub.card import PAPER_BIBTEX
from echo_hf.images.loader import MAX_16_BIT, ORIENTATION_TAG, ImageSource
from echo_hf.metrics import Metric, MetricResult, registered
from echo_hf.metrics.image_features import list_outputs, pair_images, pair_prompts
from echo_hf.scores.rating_table import OPTIONAL, REQUIRED, read_columns
from echo_hf.scores.ruler import ORIGIN, RELEASE, RULER_ROWS
from echo_hf.tables import RATINGS

if TYPE_CHECKING:
    from echo_hf.scores.votes import ProtocolName

HOMEPAGE = "https://echo-bench.github.io"
# Colors that no file holds, and what every loader makes of them.
# Pillow before 13 does not read the TIFF that it writes of YCbCr.
WRITABLE_MODES = {"HSV": "RGB", "La": "LA", "RGBa": "RGBA", "YCbCr": "RGB"}
PNG_MODES = ("1", "I;16", "L", "LA", "P", "RGB", "RGBA")
METRIC_OPTIONS = frozenset(inspect.signature(evaluate.Metric.__init__).parameters)
RATING_ROWS, RELEASE_ROWS = (
    Features({"predictions": {name: RULER_ROWS.features[name] for name in columns}})
    for columns in ((*REQUIRED, *OPTIONAL), (*REQUIRED, RELEASE, *OPTIONAL, ORIGIN))
)
# Undecoded: decoding would be for evaluate to keep all of them in memory, and to trip over the
# first broken one.
IMAGES = Features({"predictions": Image(decode=False), "references": List(Image(decode=False))})
OUTPUTS = Features({"predictions": Image(decode=False)})
PROMPTED_IMAGES = Features({**OUTPUTS, "references": Value("string")})
FEATURES: Mapping[frozenset[str], Features] = {
    frozenset({"inputs", "outputs"}): IMAGES,
    frozenset({"outputs"}): OUTPUTS,
    frozenset({"prompts", "outputs"}): PROMPTED_IMAGES,
    frozenset({"ratings"}): RATING_ROWS,
}
RATING_MEANING = {
    "predictions": f"one dict a rating with {', '.join(REQUIRED)} and, where there are any, "
    f"{', '.join(OPTIONAL)}; a Dataset, a data frame or a dict of columns, too"
}
RELEASE_MEANING = {
    "predictions": f"{RATING_MEANING['predictions']}; with {RELEASE}, the oldest first, and "
    f"{ORIGIN} where samples are carried along"
}
IMAGE_MEANING = {
    "predictions": "the system's output for each sample: an image, or None for none",
    "references": "the inputs of each sample: one image, or a list of images",
}
METRIC_FIELDS = (
    "value, interval, per_sample, n, coverage, reasons, counts (of reasons), notices, definition"
)


def store_image(source: ImageSource | None, name: str) -> dict[str, Any] | None:
    """Convert an image to `datasets`' storage: the bytes of a file, or its path."""
    if source is None:
        return None
    if isinstance(source, Path):
        return {"bytes": None, "path": str(source.absolute())}
    if not isinstance(source, PILImage.Image):
        return {"bytes": source, "path": None}
    try:
        return {"bytes": _encode_image(source), "path": None}
    except Exception as error:  # a decoder raises whatever it trips over
        message = " ".join(str(error).split())[:200] or type(error).__name__
        raise ScoreError(
            f"{name}: an image of Pillow's that cannot be decoded ({message}): expected an image, "
            "or the bytes or the path of its file, which is looked at when the metric is computed"
        ) from error


def _encode_image(image: PILImage.Image) -> bytes:
    """Encode an image's pixels, in a format that preserves its mode."""
    writable = image
    if image.mode == "I":
        values = np.asarray(image)
        is_16_bit = values.min() >= 0 and values.max() <= MAX_16_BIT
        writable = image.convert("I;16") if is_16_bit else image
    elif image.mode in WRITABLE_MODES:
        writable = image.convert(WRITABLE_MODES[image.mode])
    png = {"format": "PNG", "compress_level": 1}
    options: dict[str, Any] = png if writable.mode in PNG_MODES else {"format": "TIFF"}
    orientation = image.getexif().get(ORIENTATION_TAG)
    if orientation is not None:
        options["exif"] = PILImage.Exif()
        options["exif"][ORIENTATION_TAG] = orientation
    sink = io.BytesIO()
    writable.save(sink, **options)
    return sink.getvalue()


def column_names(predictions: Any) -> Iterable[str]:
    """Return the columns of rows, of a dict of columns, or of any library's table."""
    names = getattr(predictions, "column_names", getattr(predictions, "columns", None))
    if names is not None:
        return list(names)
    if hasattr(predictions, "__arrow_c_stream__"):
        return list(pa.table(predictions).column_names)
    rows = [predictions] if isinstance(predictions, Mapping) else predictions
    return dict.fromkeys(name for row in rows for name in row)


@dataclass(frozen=True)
class EvaluateConfig:
    """A measure: its package, its inputs and its results."""

    part: str
    features: Features
    name: str
    description: str
    gives: str
    metric: type[Metric] | None = None

    @classmethod
    def from_metric(cls, metric: type[Metric]) -> Self:
        """Describe a metric: its outputs, or else its ratings, are what is predicted."""
        shared = {field.name for field in fields(MetricResult)}
        own = (field.name for field in fields(metric.result) if field.name not in shared)
        about = metric.about or f"{metric.title}; {metric.better} is better"
        result = ", ".join((METRIC_FIELDS, *own))
        return cls(
            "metrics", FEATURES[frozenset(metric.needs)], metric.name, f"{about}.", result, metric
        )

    @property
    def is_of_ratings(self) -> bool:
        return self.features is RATING_ROWS or self.features is RELEASE_ROWS

    @property
    def meaning(self) -> Mapping[str, str]:
        if self.features is RELEASE_ROWS:
            return RELEASE_MEANING
        meanings = RATING_MEANING if self.features is RATING_ROWS else IMAGE_MEANING
        if self.features is PROMPTED_IMAGES:
            meanings = {**meanings, "references": "the prompt of each sample"}
        return {name: meanings[name] for name in self.features}

    def check_options(self, options: Mapping[str, Any], *, is_whole: bool = False) -> None:
        """Refuse parameters that the measure lacks; if `is_whole`, also missing ones."""
        signature = inspect.signature(self.load_function())
        bind = signature.bind if is_whole else signature.bind_partial
        try:
            bind(*self.features, **options)
        except TypeError as error:
            raise ScoreError(
                f"{self.name}: {error}: expected parameters of echo_hf.{self.part}.{self.name}"
            ) from None

    def load_function(self) -> Callable[..., Any]:
        """Import the function that computes it."""
        metric = self.metric
        if metric is None:
            function: Callable[..., Any] = getattr(import_module(f"echo_hf.{self.part}"), self.name)
            return function
        return metric.function or partial(measure_metric, metric)

    def store(self, columns: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Convert ratings or images to `evaluate`'s storage."""
        if self.is_of_ratings:
            is_of_releases = self.features is RELEASE_ROWS
            known = RULER_ROWS if is_of_releases else RATINGS
            required = (*REQUIRED, RELEASE) if is_of_releases else REQUIRED
            optional = (*OPTIONAL, ORIGIN) if is_of_releases else OPTIONAL
            table = read_columns(columns["predictions"], known, required, optional)
            for name in column_names(columns["predictions"]):
                if name not in known.columns:
                    raise TableError(unknown("column", name, known.columns, known.name))
            absent = dict.fromkeys(optional)
            return {"predictions": [{**absent, **row} for row in table.to_pylist()]}
        predictions = columns["predictions"]
        images: dict[str, list[Any]] = {name: [] for name in self.features}
        if self.features is not IMAGES:
            for number, sample in enumerate(list_outputs(predictions)):
                images["predictions"].append(store_image(sample.output, f"predictions[{number}]"))
            if "references" in images:
                images["references"], _ = pair_prompts(columns["references"], predictions)
            return images
        try:
            for number, sample in enumerate(pair_images(columns["references"], predictions)):
                inputs = [store_image(source, f"references[{number}]") for source in sample.inputs]
                images["predictions"].append(store_image(sample.output, f"predictions[{number}]"))
                images["references"].append(inputs)
        except ScoreError as error:
            raise ScoreError(f"references are inputs, predictions are outputs: {error}") from None
        return images

    def read(self, columns: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return stored values for the function, with images one in memory at a time."""
        if not self.is_of_ratings:
            names = [name for name in ("references", "predictions") if name in columns]
            return tuple((value.as_py() for value in columns[name]) for name in names)
        table = pa.Table.from_struct_array(columns["predictions"])
        optional = [name for name in table.column_names if name in (*OPTIONAL, ORIGIN)]
        # An absent column would be one of nulls, and say that no sample is carried along.
        empty = [name for name in optional if table[name].null_count == table.num_rows]
        return (table.drop_columns(empty),)


SCORES = (
    EvaluateConfig(
        "scores",
        RATING_ROWS,
        "win_rate",
        "how often a system's outputs are rated above those of the other systems.",
        "win_rate, interval, standard_error, matrix, pairs, ties, coverage, per_judge, "
        "by_missing, reasons, ignored, ignored_rows, protocol, definition",
    ),
    EvaluateConfig(
        "scores",
        RATING_ROWS,
        "human_corrected",
        "win rates as people would see them on all samples; `human=` has what they ranked.",
        "win_rate, interval, standard_error, judges_alone, people_alone, beta, rho2, effective_n, "
        "ranked, samples, reasons, definition",
    ),
    EvaluateConfig(
        "scores",
        RATING_ROWS,
        "reliability",
        "how often outputs succeed, how many tries it takes, and what a success costs; `outputs=` "
        "has what they cost.",
        "success, pass_at, all_of, never, tries, dollars, seconds, best_of, worst_of, variance, "
        "outcomes, prompts, unrated, ignored, refused, definition",
    ),
    EvaluateConfig(
        "scores",
        RELEASE_ROWS,
        "ruler",
        "the systems of several releases on one scale, by samples that they have in common.",
        "strength, interval, differences, how, samples, first, releases, at, difficulty, "
        "judge_shift, bend, refused, definition",
    ),
)


def list_configs() -> dict[str, EvaluateConfig]:
    """Return what can be computed: win rates, and each metric whose needs `evaluate` can give."""
    metrics = (metric for metric in registered().values() if frozenset(metric.needs) in FEATURES)
    configs = (*SCORES, *map(EvaluateConfig.from_metric, metrics))
    return {config.name: config for config in configs}


def measure_metric(
    metric: type[Metric],
    *columns: Any,
    size: int = 0,
    protocol: ProtocolName = "corrected",
    n_boot: int = 1000,
    seed: int = 0,
    **options: Any,
) -> MetricResult:
    """Compute a metric that has no function of its own."""
    try:
        chosen = metric.Options.model_validate(options)
    except ValidationError as error:
        raise ScoreError(first_error(error, metric.name, metric.Options)) from None
    names = list(map(str, range(size)))
    if "ratings" in metric.needs:
        (ratings,) = columns
        names = list(dict.fromkeys(ratings["sample_id"].to_pylist()))
        if len(systems := ratings["system"].unique()) > 1:
            raise ScoreError(f"ratings of {len(systems)} systems: expected those of one")
    # What an output is measured with comes first, as in `read`.
    by_need = dict(zip(sorted(metric.needs, key="outputs".__eq__), columns, strict=True))
    given = (by_need[need] for need in metric.needs)
    measured = metric(n_boot=n_boot, seed=seed)
    return measured.measure(*given, protocol=protocol, options=chosen, names=names)


def to_plain_values(result: Any) -> dict[str, Any]:
    """Return a result as JSON values; for a metric with the number of samples by reason."""
    counts = {"counts": result.counts} if isinstance(result, MetricResult) else {}
    values: dict[str, Any] = json.loads(json.dumps({**result.as_json(), **counts}, allow_nan=False))
    return values


class EchoMetric(evaluate.Metric):  # type: ignore[misc]  # evaluate has no types
    """A measure of `echo_hf` as `evaluate` knows metrics.

    Args:
        config_name: Which measure: a name that `echo_hf.hub.evaluate_metric.list_configs` returns.
        **options: What `evaluate.load` passes on, and parameters of the measure, which `compute`
            then takes where it is given no others. `seed` is evaluate's own here.

    Raises:
        ScoreError: There is no such measure, or it has no such parameter.
    """

    def __init__(self, config_name: str | None = None, **options: Any) -> None:
        configs = list_configs()
        if config_name is None or config_name not in configs:
            raise ScoreError(unknown("config", config_name, configs))
        self._config = configs[config_name]
        self._options = {
            name: value for name, value in options.items() if name not in METRIC_OPTIONS
        }
        self._config.check_options(self._options)
        super().__init__(
            config_name, **{name: options[name] for name in options if name in METRIC_OPTIONS}
        )
        # By this name `evaluate.combine` tells the results of several measures apart.
        self.info.module_name = self._config.name

    def add(self, *, prediction: Any = None, reference: Any = None, **others: Any) -> None:
        """Add one sample, or one rating."""
        fields = {"predictions": prediction, "references": reference, **others}
        features = self._config.features
        self.add_batch(
            **{
                name: [cell]
                for name, cell in fields.items()
                if name in features or cell is not None
            }
        )

    def add_batch(self, *, predictions: Any = None, references: Any = None, **others: Any) -> None:
        """Add samples or ratings: all, or none where one is wrong."""
        fields = {"predictions": predictions, "references": references, **others}
        config = self._config
        for name, column in fields.items():
            if name not in config.features and column is not None:
                raise ScoreError(unknown("argument", name, config.features, config.name))
        for name, meaning in config.meaning.items():
            if fields[name] is None:
                raise ScoreError(f"{config.name}: no {name}: expected {meaning}")
        super().add_batch(**config.store(fields))

    def compute(
        self, *, predictions: Any = None, references: Any = None, **options: Any
    ) -> dict[str, Any] | None:
        """Compute the measure from all that was added."""
        config, chosen = self._config, {**self._options, **options}
        if config.metric is not None:
            config.metric.check_installed()
        config.check_options(chosen, is_whole=True)
        if predictions is not None or references is not None:
            self.add_batch(predictions=predictions, references=references)
        if self.writer is None:
            raise ScoreError(
                f"{config.name}: nothing was added: expected predictions=, or add_batch() before "
                "compute()"
            )
        figures: dict[str, Any] | None = super().compute(**chosen)
        return figures

    def _info(self) -> evaluate.MetricInfo:
        config = self._config
        takes = "".join(f"    {name}: {meaning}.\n" for name, meaning in config.meaning.items())
        info = evaluate.MetricInfo(
            description=f"ECHO's {config.name}: {config.description}",
            citation=PAPER_BIBTEX,
            inputs_description=f"\n{config.name}: {config.description}\n\nArgs:\n{takes}"
            f"    **options: parameters of `echo_hf.{config.part}.{config.name}`.\n\n"
            f"Returns:\n    A dict that JSON can hold: {config.gives}.\n",
            features=config.features,
            homepage=HOMEPAGE,
            license="apache-2.0",
        )
        # So that rows stay in their file until they are read; evaluate refuses formats for all
        # but plain values at first, since it has numpy in mind.
        info.format = "arrow"
        return info

    def _compute(self, **options: Any) -> dict[str, Any]:
        data = {name: options.pop(name) for name in self._config.features}
        function = self._config.load_function()
        if isinstance(function, partial):  # of a metric without a function of its own
            options["size"] = len(data["predictions"])
        return to_plain_values(function(*self._config.read(data), **options))

    def _enforce_nested_string_type(self, schema: Any, obj: Any) -> None:
        """Accept anything: types were checked before, and null is a value."""
