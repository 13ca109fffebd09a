"""The class behind the `evaluate` module, with a config for each measure.

What a user can get wrong is one line.
"""

from __future__ import annotations

import inspect
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import evaluate
import numpy as np
import pyarrow as pa
from datasets import Features, Image, List
from PIL import Image as PILImage

from echo_hf.errors import ScoreError, TableError, unknown
from echo_hf.hub.card import PAPER
from echo_hf.images.decode import ImageSource
from echo_hf.images.loader import LARGEST_16_BIT, ORIENTATION
from echo_hf.images.store import MOST_BYTES
from echo_hf.metrics.image_features import samples_of
from echo_hf.metrics.result import MetricResult, check_extra
from echo_hf.scores.rating_table import OPTIONAL, REQUIRED, read_columns
from echo_hf.tables import RATINGS

HOMEPAGE = "https://echo-bench.github.io"
AT_ONCE = 10_000
# A part of samples ends with the one that reaches either.
MOST_SAMPLES, MOST_BATCH_BYTES = 8, 2**26
# Colors that no file holds, and what every loader makes of them.
UNWRITABLE = {"HSV": "RGB", "La": "LA", "RGBa": "RGBA"}
PNG_MODES = ("1", "I;16", "L", "LA", "P", "RGB", "RGBA")
OWN = frozenset(inspect.signature(evaluate.Metric.__init__).parameters)
Stored = Mapping[str, list[Any]]


def store_ratings(predictions: Any) -> Iterator[Stored]:
    """Ratings as `evaluate` stores them: with null where an optional column is not given."""
    names = getattr(predictions, "column_names", getattr(predictions, "columns", None))
    if names is None and hasattr(predictions, "__arrow_c_stream__"):
        predictions = pa.table(predictions)
        names = predictions.column_names
    table = read_columns(predictions, RATINGS, REQUIRED, OPTIONAL)
    if names is None:  # rows, or a dict of columns
        rows = predictions if isinstance(predictions, Sequence) else [predictions]
        names = dict.fromkeys(name for row in rows for name in row)
    for name in names:
        if name not in RATINGS.columns:
            raise TableError(unknown("column", name, RATINGS.columns, RATINGS.name))
    absent = dict.fromkeys(OPTIONAL)
    for part in table.to_batches(AT_ONCE):
        yield {"predictions": [{**absent, **row} for row in part.to_pylist()]}


def read_ratings(predictions: Any) -> tuple[pa.Table]:
    """The stored ratings, without the optional columns that nobody gave."""
    table = pa.Table.from_struct_array(predictions)
    empty = [name for name in OPTIONAL if table[name].null_count == table.num_rows]
    return (table.drop_columns(empty),)


def store_images(predictions: Any, references: Any) -> Iterator[Stored]:
    """Samples as `evaluate` stores them, a few at once."""
    made: list[Any] = []
    given: list[Any] = []
    held = 0
    try:
        for number, sample in enumerate(samples_of(references, predictions)):
            made.append(stored_image(sample.output, f"predictions[{number}]"))
            given.append([stored_image(one, f"references[{number}]") for one in sample.inputs])
            held += sum(len(one["bytes"] or b"") for one in (made[-1], *given[-1]) if one)
            if len(made) == MOST_SAMPLES or held >= MOST_BATCH_BYTES:
                yield {"predictions": made, "references": given}
                made, given, held = [], [], 0
        if made:
            yield {"predictions": made, "references": given}
    except ScoreError as error:
        raise ScoreError(f"references are inputs, predictions are outputs: {error}") from None


def read_images(predictions: Any, references: Any) -> tuple[Iterator[Any], Iterator[Any]]:
    """Inputs and outputs, one in memory at a time."""
    return (one.as_py() for one in references), (one.as_py() for one in predictions)


def stored_image(source: ImageSource | None, name: str) -> dict[str, Any] | None:
    """An image as `datasets` stores it: the bytes of a file, or its path."""
    if source is None:
        return None
    if isinstance(source, Path):
        return {"bytes": None, "path": str(source.absolute())}
    if not isinstance(source, PILImage.Image):
        return {"bytes": source, "path": None}
    try:
        return {"bytes": _its_file(source) or _written(source), "path": None}
    except Exception as error:  # a decoder raises whatever it trips over
        said = " ".join(str(error).split())[:200] or type(error).__name__
        raise ScoreError(
            f"{name}: an image of Pillow's that cannot be decoded ({said}): expected an image, "
            "or the bytes or the path of its file, which is looked at when the metric is computed"
        ) from error


def _its_file(image: PILImage.Image) -> bytes | None:
    """The file of an image that was opened and not decoded, at its first frame."""
    file: Any = getattr(image, "fp", None)
    # An animation keeps its file open when it is decoded, so that only `_im` tells.
    if file is None or image._im is not None or image.tell():
        return None
    before = file.tell()
    file.seek(0)
    data: bytes = file.read(MOST_BYTES + 1)
    file.seek(before)
    return data


def _written(image: PILImage.Image) -> bytes:
    """An image that has no file, in one that every mode survives."""
    shown = image
    if image.mode == "I":
        values = np.asarray(image)
        fits = values.min() >= 0 and values.max() <= LARGEST_16_BIT
        shown = image.convert("I;16") if fits else image
    elif image.mode in UNWRITABLE:
        shown = image.convert(UNWRITABLE[image.mode])
    png = {"format": "PNG", "compress_level": 1}
    options: dict[str, Any] = png if shown.mode in PNG_MODES else {"format": "TIFF"}
    turned = image.getexif().get(ORIENTATION)
    if turned is not None:
        options["exif"] = PILImage.Exif()
        options["exif"][ORIENTATION] = turned
    sink = io.BytesIO()
    shown.save(sink, **options)
    return sink.getvalue()


class EvaluateColumns(NamedTuple):
    """How predictions and references are stored, and read again."""

    features: Features
    meaning: Mapping[str, str]
    store: Callable[..., Iterator[Stored]]
    read: Callable[..., tuple[Any, ...]]
    at_once: int


RATING_ROWS = EvaluateColumns(
    Features({"predictions": {name: RATINGS.features[name] for name in (*REQUIRED, *OPTIONAL)}}),
    {
        "predictions": f"one dict a rating with {', '.join(REQUIRED)} and, where there are any, "
        f"{', '.join(OPTIONAL)}; a Dataset, a data frame or a dict of columns, too"
    },
    store_ratings,
    read_ratings,
    AT_ONCE,
)
IMAGES = EvaluateColumns(
    # Undecoded: decoding would be for evaluate to keep all of them in memory, and to trip over
    # the first broken one.
    Features({"predictions": Image(decode=False), "references": List(Image(decode=False))}),
    {
        "predictions": "the system's output for each sample: an image, or None for none",
        "references": "the inputs of each sample: one image, or a list of images",
    },
    store_images,
    read_images,
    MOST_SAMPLES,
)
OF_METRICS = (
    "value, interval, per_sample, n, coverage, reasons, counts (of reasons), notices, definition"
)


@dataclass(frozen=True)
class EvaluateConfig:
    """A measure: the package that has it, what it takes and what it gives."""

    part: str
    columns: EvaluateColumns
    name: str
    description: str
    gives: str
    extra: str | None = None
    packages: tuple[str, ...] = ()

    def check_options(self, options: Iterable[str]) -> None:
        """Refuses options that the measure does not have, before it loads anything else."""
        if options:
            known = self.parameters()
            for name in options:
                if name not in known:
                    raise ScoreError(unknown("parameter", name, known, self.name))

    def check_complete(self, options: Mapping[str, Any]) -> None:
        """Refuses to go on without a parameter that has no default."""
        for name, one in self.parameters().items():
            if one.default is one.empty and options.get(name) is None:
                raise ScoreError(
                    f"{self.name}: no {name}: expected compute(..., {name}=), as "
                    f"echo_hf.{self.part}.{self.name} takes it"
                )

    def parameters(self) -> dict[str, inspect.Parameter]:
        """What the measure takes beside predictions and references."""
        known = inspect.signature(self.function()).parameters.items()
        return dict([*known][len(self.columns.features) :])

    def function(self) -> Callable[..., Any]:
        """The function that computes it."""
        found: Callable[..., Any] = getattr(import_module(f"echo_hf.{self.part}"), self.name)
        return found


_CONFIGS = (
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
        "metrics",
        IMAGES,
        "color_shift",
        "how far the mean color of the outputs is from that of the inputs, in levels.",
        f"{OF_METRICS}, wasserstein, tint",
    ),
    EvaluateConfig(
        "metrics",
        IMAGES,
        "face_identity",
        "how alike the faces in outputs and inputs are.",
        f"{OF_METRICS}, matches",
        "face",
        ("insightface", "onnxruntime"),
    ),
    EvaluateConfig(
        "metrics",
        IMAGES,
        "structure_distance",
        "how far the layout of an output is from that of its input.",
        f"{OF_METRICS}, per_input",
        "metrics",
        ("torch", "transformers"),
    ),
    EvaluateConfig(
        "metrics",
        RATING_ROWS,
        "text_rendering",
        "how well the text in one system's outputs is written, as judges rate it, from 0 to 1.",
        f"{OF_METRICS}, sample_ids, per_judge, off_scale",
    ),
)
CONFIGS: Mapping[str, EvaluateConfig] = {config.name: config for config in _CONFIGS}


def plain(result: Any) -> dict[str, Any]:
    """A result as its JSON gives it; of a metric, also how many samples have each reason."""
    counts = {"counts": result.counts} if isinstance(result, MetricResult) else {}
    made: dict[str, Any] = json.loads(json.dumps({**result.as_json(), **counts}, allow_nan=False))
    return made


@contextmanager
def whole(parts: Iterable[Stored], features: Features) -> Iterator[Iterator[Stored]]:
    """Takes all parts before it gives any, with one of them in memory at a time."""
    # `evaluate` cannot take back what it has written, and nothing of a wrong batch may stay.
    schema = features.arrow_schema
    with TemporaryFile() as file:
        with pa.ipc.new_stream(file, schema) as writer:
            for part in parts:
                writer.write_table(pa.Table.from_pydict(dict(part), schema))
        file.seek(0)
        stored = (batch.to_pydict() for batch in pa.ipc.open_stream(file))
        first: Stored = next(stored, {name: [] for name in schema.names})
        yield chain([first], stored)


class EchoMetric(evaluate.Metric):  # type: ignore[misc]  # evaluate has no types
    """A measure of `echo_hf` as `evaluate` knows metrics.

    Args:
        config_name: Which measure: a name of `echo_hf.hub.evaluate_metric.CONFIGS`.
        **given: What `evaluate.load` passes on, and parameters of the measure, which `compute`
            then takes where it is given no others. `seed` is evaluate's own here.

    Raises:
        ScoreError: There is no such measure, or it has no such parameter.
    """

    data: Any  # the rows, while they are out of their file to be computed

    def __init__(self, config_name: str | None = None, **given: Any) -> None:
        if config_name is None:
            raise ScoreError(
                f"no config is named: expected evaluate.load(path, name) with one of "
                f"{', '.join(CONFIGS)}"
            )
        if config_name not in CONFIGS:
            raise ScoreError(unknown("config", config_name, CONFIGS))
        self._config = CONFIGS[config_name]
        self._options = {name: value for name, value in given.items() if name not in OWN}
        self._config.check_options(self._options)
        super().__init__(config_name, **{name: given[name] for name in given if name in OWN})
        # By this name `evaluate.combine` tells the results of several measures apart.
        self.info.module_name = self._config.name

    def add(self, *, prediction: Any = None, reference: Any = None, **others: Any) -> None:
        """Adds one sample, or one rating."""
        given = {"predictions": prediction, "references": reference, **others}
        mine = self._config.columns.features
        self.add_batch(
            **{name: [one] for name, one in given.items() if name in mine or one is not None}
        )

    def add_batch(self, *, predictions: Any = None, references: Any = None, **others: Any) -> None:
        """Adds samples, or ratings: all of them, or none where one is wrong."""
        given = {"predictions": predictions, "references": references, **others}
        columns, measure = self._config.columns, self._config.name
        for name, value in given.items():
            if name not in columns.features and value is not None:
                raise ScoreError(unknown("argument", name, columns.features, measure))
        for name, meaning in columns.meaning.items():
            if given[name] is None:
                raise ScoreError(f"{measure}: no {name}: expected {meaning}")
        stored = columns.store(*(given[name] for name in columns.features))
        with whole(stored, columns.features) as parts:
            for part in parts:
                super().add_batch(**part)

    def compute(
        self, *, predictions: Any = None, references: Any = None, **options: Any
    ) -> dict[str, Any] | None:
        """Computes the measure from all that was added; what was added stays if that fails."""
        if self._config.extra:
            check_extra(self._config.name, self._config.extra, self._config.packages)
        self._config.check_options(options)
        self._config.check_complete({**self._options, **options})
        before = len(self)
        if predictions is not None or references is not None:
            self.add_batch(predictions=predictions, references=references)
        if self.writer is None:
            raise ScoreError(
                f"{self._config.name}: nothing was added: expected predictions=, or add_batch() "
                "before compute()"
            )
        try:
            found: dict[str, Any] | None = super().compute(**{**self._options, **options})
        except BaseException:
            self._put_back(before)
            raise
        return found

    def _info(self) -> evaluate.MetricInfo:
        config = self._config
        columns = config.columns.meaning.items()
        takes = "".join(f"    {name}: {meaning}.\n" for name, meaning in columns)
        info = evaluate.MetricInfo(
            description=f"ECHO's {config.name}: {config.description}",
            citation=PAPER,
            inputs_description=f"\n{config.name}: {config.description}\n\nArgs:\n{takes}"
            f"    **options: parameters of `echo_hf.{config.part}.{config.name}`.\n\n"
            f"Returns:\n    A dict that JSON can hold: {config.gives}.\n",
            features=config.columns.features,
            homepage=HOMEPAGE,
            license="apache-2.0",
        )
        # So that rows stay in their file until they are read; evaluate refuses formats for all
        # but plain values at first, since it has numpy in mind.
        info.format = "arrow"
        return info

    def _compute(self, **given: Any) -> dict[str, Any]:
        columns = self._config.columns
        read = columns.read(*(given.pop(name) for name in columns.features))
        return plain(self._config.function()(*read, **given))

    def _enforce_nested_string_type(self, schema: Any, obj: Any) -> None:
        """Types were checked before, and there null is a value."""

    def _put_back(self, count: int) -> None:
        """Writes the first rows again, which a `compute` that failed has taken out."""
        # What several processes have added is one process's now, which cannot give it back.
        if self.data is None or self.num_process > 1:
            return
        taken, self.data = self.data, None
        if count:
            self.selected_feature_format = self.features
            self._init_writer()
        step = self._config.columns.at_once
        for start in range(0, count, step):
            self.writer.write_table(taken[start : min(start + step, count)])
        del taken
        for lock, path in zip(self.filelocks or (), self.file_paths or (), strict=True):
            Path(path).unlink()
            lock.release()
