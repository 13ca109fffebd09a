"""The configs of the `evaluate` module, one for each measure that it offers."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from echo_hf.errors import ScoreError, unknown
from echo_hf.hub.evaluate_columns import EvaluateColumns, Stored
from echo_hf.hub.evaluate_pictures import PICTURES
from echo_hf.hub.evaluate_ratings import RATING_ROWS
from echo_hf.metrics.extras import check_extra
from echo_hf.metrics.result import MetricResult

OF_METRICS = (
    "value, interval, per_sample, n, coverage, reasons, counts (of reasons), notices, definition"
)


@dataclass(frozen=True)
class EvaluateConfig:
    """One measure, as `evaluate` offers it.

    Attributes:
        name: Of the config, and of the function that computes it.
        part: The part of the package in which that function is.
        columns: What it is computed from.
        description: What it measures, in a sentence.
        gives: Names of what it gives.
        extra: What installs the packages that it needs, null where none are needed.
        packages: Those packages, as they are imported.
    """

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

    def store(self, given: Mapping[str, Any]) -> Iterator[Stored]:
        """Checks what was given, and brings it part by part to the form in which it is stored.

        Args:
            given: The arguments of `add_batch` by name, null for what was not given.

        Returns:
            Parts, each with rows for each of the columns.

        Raises:
            ScoreError: An argument is missing or unknown, or an element is no picture, which may
                be found after some parts.
            TableError: Ratings lack a column, or have one with another type or an unknown name.
        """
        features = self.columns.features
        for name, value in given.items():
            if name not in features and value is not None:
                raise ScoreError(unknown("argument", name, features, self.name))
        missing = [name for name in features if given.get(name) is None]
        if missing:
            meaning = self.columns.meaning[missing[0]]
            raise ScoreError(f"{self.name}: no {missing[0]}: expected {meaning}")
        return self.columns.store(**{name: given[name] for name in features})

    def check_options(self, options: Iterable[str]) -> None:
        """Refuses parameters that the measure does not have.

        Args:
            options: Their names.

        Raises:
            ScoreError: There is no such parameter.
        """
        if not options:
            return
        parameters = list(inspect.signature(self._function()).parameters)
        known = parameters[len(self.columns.features) :]
        for name in options:
            if name not in known:
                raise ScoreError(unknown("parameter", name, known, self.name))

    def check_installed(self) -> None:
        """Refuses to go on without the packages that the measure needs.

        Raises:
            MissingExtraError: One of them is not installed.
        """
        if self.extra:
            check_extra(self.name, self.extra, self.packages)

    def compute(self, columns: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
        """Computes the measure.

        Args:
            columns: What was stored, as Arrow holds it.
            options: Parameters of the measure.

        Returns:
            The result as a dict of nothing but what JSON knows.

        Raises:
            EchoError: Whatever the measure says of its data or its parameters.
        """
        return plain(self._function()(*self.columns.read(**columns), **options))

    def _function(self) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(import_module(f"echo_hf.{self.part}"), self.name)
        return found


def plain(result: Any) -> dict[str, Any]:
    """A result as reading its JSON gives it.

    Args:
        result: Of a metric or a score.

    Returns:
        Its `as_json()`, with lists for tuples and text for reasons; a metric's with `counts`.

    Example:
        >>> from echo_hf.metrics import text_rendering
        >>> row = {"sample_id": "s", "system": "a", "judge": "j", "rating": None}
        >>> found = plain(text_rendering([row]))
        >>> found["value"], found["per_sample"], found["counts"]
        (None, [None], {'unrated': 1})
    """
    found = result.as_json()
    if isinstance(result, MetricResult):
        found["counts"] = result.counts
    made: dict[str, Any] = json.loads(json.dumps(found, allow_nan=False))
    return made


def config_named(name: str | None) -> EvaluateConfig:
    """The config of a name.

    Args:
        name: What the user asks for; null where nothing was asked for.

    Returns:
        The config.

    Raises:
        ScoreError: There is none of that name.

    Example:
        >>> config_named("color_shift").part
        'metrics'
    """
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
            PICTURES,
            "how far the mean colour of the outputs is from that of the inputs, in levels.",
            f"{OF_METRICS}, wasserstein, tint",
        ),
        EvaluateConfig(
            "face_identity",
            "metrics",
            PICTURES,
            "how alike the faces in outputs and inputs are.",
            f"{OF_METRICS}, matches",
            "face",
            ("insightface", "onnxruntime"),
        ),
        EvaluateConfig(
            "structure_distance",
            "metrics",
            PICTURES,
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
