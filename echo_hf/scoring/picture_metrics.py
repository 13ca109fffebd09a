"""The picture metrics of a split: what a system drew, against what it was given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from echo_hf import metrics
from echo_hf.errors import MissingExtraError, PictureError, WeightsError
from echo_hf.evaluated import Evaluated
from echo_hf.metrics.result import MetricResult
from echo_hf.pictures import PictureStore
from echo_hf.reasons import Outcome
from echo_hf.scoring.applicable import Applicable, applicable
from echo_hf.scoring.measured import Measured
from echo_hf.systems.base import Task

FITS_NONE = "it fits no sample of this split"


class Accumulator(Protocol):
    """A metric whose pictures come in batches, such as `echo_hf.metrics.ColorShift`."""

    def add(self, inputs: Any, outputs: Any) -> None:
        """Takes some more samples."""
        ...

    def compute(self, *, n_boot: int, seed: int) -> MetricResult:
        """The metric of all samples."""
        ...


def measured(
    config: Evaluated,
    systems: Sequence[str],
    tasks: Sequence[Task],
    outputs: pa.Table | None,
    applicability: pa.Table | None,
    pictures: PictureStore,
    *,
    n_boot: int,
) -> Iterator[Measured]:
    """Measures all systems by all picture metrics; inputs are looked at once for all systems.

    Args:
        config: Options and protocol.
        systems: All systems, with outputs or without.
        tasks: The tasks of the split.
        outputs: What systems made of them, null when nothing.
        applicability: Which metric fits which sample, null when nobody was asked.
        pictures: Where the pictures are.
        n_boot: Draws of the bootstrap.

    Yields:
        A result for each metric and system, in order; one that needs packages or weights that are
        not here says which.

    Raises:
        ScoreError: An option of a metric is none that it takes.
    """
    rows = [] if outputs is None else outputs.to_pylist()
    made = {(row["system"], row["sample_id"]): row for row in rows}
    edits = [task for task in tasks if task.inputs]
    for metric, accumulator in accumulators(config).items():
        about = applicable(metric, edits, applicability)
        for system in systems:
            result, missing = None, None if about.fitting else FITS_NONE
            if missing is None:
                drawn = (made.get((system, task.sample_id)) for task in about.fitting)
                result, said = _computed(accumulator, about, drawn, pictures, n_boot)
                missing = None if said is None else _without_places(said, config)
            yield Measured(metric, system, about, result, missing)


def accumulators(config: Evaluated) -> Mapping[str, Callable[[], Accumulator]]:
    """The picture metrics, each as what makes a new accumulator with the config's options.

    Args:
        config: Options and protocol.

    Returns:
        By name, in the order of the paper; those of one metric share what they know of inputs.
    """
    protocol, options = config.protocol, config.metrics
    similarities, faces = metrics.SimilarityCache(), metrics.FaceCache()
    return {
        "color_shift": partial(metrics.ColorShift, protocol=protocol),
        "face_identity": partial(
            metrics.FaceIdentity,
            protocol=protocol,
            cache=faces,
            **options.face_identity.model_dump(),
        ),
        "structure_distance": partial(
            metrics.StructureDistance,
            protocol=protocol,
            cache=similarities,
            **options.structure_distance.model_dump(),
        ),
    }


def _computed(
    accumulator: Callable[[], Accumulator],
    about: Applicable,
    drawn: Iterator[Mapping[str, Any] | None],
    pictures: PictureStore,
    n_boot: int,
) -> tuple[MetricResult | None, str | None]:
    # One at a time: the pictures of a benchmark do not fit into memory.
    inputs = (_inputs(task, pictures) for task in about.fitting)
    outputs = (_output(row, pictures) for row in drawn)
    try:
        metric = accumulator()
        metric.add(inputs, outputs)
        return metric.compute(n_boot=n_boot, seed=0), None
    except (MissingExtraError, WeightsError) as error:
        return None, str(error)


def _without_places(said: str, config: Evaluated) -> str:
    """A message without the folders of this machine: results are published."""
    for place in config.metrics.places:
        said = said.replace(str(place), place.name)
    return said


def _inputs(task: Task, pictures: PictureStore) -> list[bytes | None]:
    return [_bytes(picture.sha256, pictures) for picture in task.inputs]


def _output(row: Mapping[str, Any] | None, pictures: PictureStore) -> bytes | None:
    if row is None or row["outcome"] != Outcome.OK or row["image"] is None:
        return None
    return _bytes(row["image"], pictures)


def _bytes(digest: str, pictures: PictureStore) -> bytes | None:
    """The very bytes that a digest names; null where they are not there any more."""
    try:
        return pictures.open(digest)
    except PictureError:
        return None
