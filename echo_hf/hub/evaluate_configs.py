"""The configs of the `evaluate` module, one for each measure: its predictions and references."""

from __future__ import annotations

import inspect
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Features, Image, List
from PIL import Image as PILImage

from echo_hf.errors import ScoreError, TableError, unknown
from echo_hf.images.decode import ImageSource
from echo_hf.images.loader import LARGEST_16_BIT, ORIENTATION
from echo_hf.images.store import MOST_BYTES
from echo_hf.metrics.result import MetricResult, check_extra
from echo_hf.metrics.samples import MetricSample, samples_of
from echo_hf.scores.rating_table import OPTIONAL, REQUIRED, read_columns
from echo_hf.tables import RATINGS

Stored = Mapping[str, list[Any]]


@dataclass(frozen=True)
class EvaluateColumns:
    features: Features
    meaning: Mapping[str, str]
    store: Callable[..., Iterator[Stored]]
    read: Callable[..., tuple[Any, ...]]
    at_once: int


COLUMNS = (*REQUIRED, *OPTIONAL)


AT_ONCE = 10_000


def store_ratings(predictions: Any) -> Iterator[Stored]:
    """Ratings as `evaluate` stores them: with null where an optional column is not given."""
    table = read_columns(predictions, RATINGS, REQUIRED, OPTIONAL)
    for name in _names(predictions):
        if name not in RATINGS.columns:
            raise TableError(unknown("column", name, RATINGS.columns, RATINGS.name))
    absent = dict.fromkeys(OPTIONAL)
    for part in table.to_batches(AT_ONCE):
        yield {"predictions": [{**absent, **row} for row in part.to_pylist()]}


def read_ratings(*, predictions: Any) -> tuple[pa.Table]:
    table = pa.Table.from_struct_array(predictions)
    empty = [name for name in OPTIONAL if table[name].null_count == table.num_rows]
    return (table.drop_columns(empty),)


def _names(source: Any) -> list[Any]:
    if isinstance(source, Mapping):
        return list(source)
    if hasattr(source, "column_names"):
        return list(source.column_names)
    if hasattr(source, "columns"):
        return list(source.columns)
    rows = source if isinstance(source, Sequence) else ()
    return list(dict.fromkeys(name for row in rows for name in row))


RATING_ROWS = EvaluateColumns(
    Features({"predictions": {name: RATINGS.features[name] for name in COLUMNS}}),
    {
        "predictions": f"one dict a rating with {', '.join(REQUIRED)} and, where there are any, "
        f"{', '.join(OPTIONAL)}; a Dataset, a data frame or a dict of columns, too"
    },
    store_ratings,
    read_ratings,
    at_once=AT_ONCE,
)


# Colors that no file holds, and what every loader makes of them.
UNWRITABLE = {"HSV": "RGB", "La": "LA", "RGBa": "RGBA"}
PNG_MODES = ("1", "I;16", "L", "LA", "P", "RGB", "RGBA")


def stored_image(source: ImageSource | None, name: str) -> dict[str, Any] | None:
    """An image as `datasets` stores it: the bytes of a file, or its path."""
    if source is None:
        return None
    if isinstance(source, Path):
        return {"bytes": None, "path": str(source.absolute())}
    data = _encoded(source, name) if isinstance(source, PILImage.Image) else source
    return {"bytes": data, "path": None}


def _encoded(image: PILImage.Image, name: str) -> bytes:
    try:
        return _its_file(image) or _written(image)
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
    shown = _writable(image)
    png = {"format": "PNG", "compress_level": 1}
    options: dict[str, Any] = png if shown.mode in PNG_MODES else {"format": "TIFF"}
    turned = image.getexif().get(ORIENTATION)
    if turned is not None:
        options["exif"] = PILImage.Exif()
        options["exif"][ORIENTATION] = turned
    sink = io.BytesIO()
    shown.save(sink, **options)
    return sink.getvalue()


def _writable(image: PILImage.Image) -> PILImage.Image:
    if image.mode == "I":
        values = np.asarray(image)
        fits = values.min() >= 0 and values.max() <= LARGEST_16_BIT
        return image.convert("I;16") if fits else image
    return image.convert(UNWRITABLE[image.mode]) if image.mode in UNWRITABLE else image


File = dict[str, Any] | None
Row = tuple[File, list[File]]


# A part of samples ends with the one that reaches either.
MOST_SAMPLES, MOST_BATCH_BYTES = 8, 2**26


def store_images(predictions: Any, references: Any) -> Iterator[Stored]:
    try:
        rows = map(_row, count(), samples_of(references, predictions))
        while part := _part(rows):
            made, given = zip(*part, strict=True)
            yield {"predictions": list(made), "references": list(given)}
    except ScoreError as error:
        raise ScoreError(f"references are inputs, predictions are outputs: {error}") from None


def _part(rows: Iterator[Row]) -> list[Row]:
    """The next rows, up to a number of samples and of bytes."""
    part: list[Row] = []
    held = 0
    for row in rows:
        part.append(row)
        held += sum(len(one["bytes"] or b"") for one in (row[0], *row[1]) if one)
        if len(part) == MOST_SAMPLES or held >= MOST_BATCH_BYTES:
            break
    return part


def _row(number: int, sample: MetricSample) -> Row:
    return (
        stored_image(sample.output, f"predictions[{number}]"),
        [stored_image(one, f"references[{number}]") for one in sample.inputs],
    )


def read_images(*, predictions: Any, references: Any) -> tuple[Iterator[Any], Iterator[Any]]:
    return _one_by_one(references), _one_by_one(predictions)


def _one_by_one(column: Iterable[Any]) -> Iterator[Any]:
    return (value.as_py() for value in column)


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
    at_once=MOST_SAMPLES,
)


OF_METRICS = (
    "value, interval, per_sample, n, coverage, reasons, counts (of reasons), notices, definition"
)


@dataclass(frozen=True)
class EvaluateConfig:
    name: str
    part: str
    columns: EvaluateColumns
    description: str
    gives: str
    extra: str | None = None
    packages: tuple[str, ...] = ()

    @property
    def inputs_description(self) -> str:
        """What `add`, `add_batch` and `compute` take and give, as their documentation says it."""
        takes = (f"    {name}: {meaning}.\n" for name, meaning in self.columns.meaning.items())
        return (
            f"\n{self.name}: {self.description}\n\nArgs:\n{''.join(takes)}"
            f"    **options: parameters of `echo_hf.{self.part}.{self.name}`.\n\n"
            f"Returns:\n    A dict that JSON can hold: {self.gives}.\n"
        )

    def store(self, values: Mapping[str, Any]) -> Iterator[Stored]:
        """Checks what was given, and brings it part by part to the form in which it is stored."""
        features = self.columns.features
        for name, value in values.items():
            if name not in features and value is not None:
                raise ScoreError(unknown("argument", name, features, self.name))
        missing = [name for name in features if values.get(name) is None]
        if missing:
            meaning = self.columns.meaning[missing[0]]
            raise ScoreError(f"{self.name}: no {missing[0]}: expected {meaning}")
        return self.columns.store(**{name: values[name] for name in features})

    def check_options(self, options: Iterable[str]) -> None:
        if not options:
            return
        parameters = list(inspect.signature(self._function()).parameters)
        known = parameters[len(self.columns.features) :]
        for name in options:
            if name not in known:
                raise ScoreError(unknown("parameter", name, known, self.name))

    def check_installed(self) -> None:
        if self.extra:
            check_extra(self.name, self.extra, self.packages)

    def compute(self, columns: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
        return plain(self._function()(*self.columns.read(**columns), **options))

    def _function(self) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(import_module(f"echo_hf.{self.part}"), self.name)
        return found


def plain(result: Any) -> dict[str, Any]:
    """A result as reading its JSON gives it."""
    found = result.as_json()
    if isinstance(result, MetricResult):
        found["counts"] = result.counts
    made: dict[str, Any] = json.loads(json.dumps(found, allow_nan=False))
    return made


def config_named(name: str | None) -> EvaluateConfig:
    if name is None:
        raise ScoreError(
            f"no config is named: expected evaluate.load(path, name) with one of "
            f"{', '.join(CONFIGS)}"
        )
    if name not in CONFIGS:
        raise ScoreError(unknown("config", name, CONFIGS))
    return CONFIGS[name]


CONFIGS: Mapping[str, EvaluateConfig] = {
    config.name: config
    for config in (
        EvaluateConfig(
            "win_rate",
            "scores",
            RATING_ROWS,
            "how often a system's outputs are rated above those of the other systems.",
            "win_rate, interval, standard_error, matrix, pairs, ties, coverage, per_judge, "
            "by_missing, reasons, ignored, ignored_rows, protocol, definition",
        ),
        EvaluateConfig(
            "color_shift",
            "metrics",
            IMAGES,
            "how far the mean color of the outputs is from that of the inputs, in levels.",
            f"{OF_METRICS}, wasserstein, tint",
        ),
        EvaluateConfig(
            "face_identity",
            "metrics",
            IMAGES,
            "how alike the faces in outputs and inputs are.",
            f"{OF_METRICS}, matches",
            "face",
            ("insightface", "onnxruntime"),
        ),
        EvaluateConfig(
            "structure_distance",
            "metrics",
            IMAGES,
            "how far the layout of an output is from that of its input.",
            f"{OF_METRICS}, per_input",
            "metrics",
            ("torch", "transformers"),
        ),
        EvaluateConfig(
            "text_rendering",
            "metrics",
            RATING_ROWS,
            "how well the text in one system's outputs is written, as judges rate it, from 0 to 1.",
            f"{OF_METRICS}, sample_ids, per_judge, off_scale",
        ),
    )
}
