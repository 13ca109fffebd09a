"""The picture metrics of a split: what a system drew, against what it was given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from echo_hf import metrics
from echo_hf.errors import EchoError
from echo_hf.evaluated import Evaluated
from echo_hf.hub.results import Result
from echo_hf.metrics.result import MetricResult
from echo_hf.pictures import PictureStore
from echo_hf.reasons import Outcome
from echo_hf.systems.base import Task


class Accumulator(Protocol):
    """A metric whose pictures come in batches, such as `echo_hf.metrics.ColorShift`."""

    def add(self, inputs: Any, outputs: Any) -> None:
        """Takes some more samples."""
        ...

    def compute(self, *, n_boot: int, seed: int) -> MetricResult:
        """The metric of all samples."""
        ...


@dataclass(frozen=True)
class Measured:
    """One metric of one system.

    Attributes:
        metric: Name of the metric.
        system: The system.
        samples: Ids of the samples that it fits, in order.
        result: The metric, with numbers and reasons in the order of the samples; null when it
            cannot be measured here.
        missing: Why it cannot be measured here, such as packages to install; null when it can.
        asked: Whether a model said which samples it fits; false measures all that have inputs.
    """

    metric: str
    system: str
    samples: tuple[str, ...]
    result: MetricResult | None
    missing: str | None
    asked: bool

    def row(self, split: str, protocol: Any) -> Result:
        """Its figure."""
        if self.result is None:
            return Result(
                metric=self.metric,
                protocol=protocol,
                split=split,
                system=self.system,
                n=0,
                coverage=0,
                definition={"metric": self.metric, "missing": self.missing},
            )
        low, high = self.result.interval or (None, None)
        fits = "as a model said" if self.asked else "every sample of the split"
        return Result(
            metric=self.metric,
            protocol=protocol,
            split=split,
            system=self.system,
            value=self.result.value,
            low=low,
            high=high,
            n=self.result.n,
            coverage=self.result.coverage,
            definition={**self.result.definition, "applicability": fits},
        )


def measured(
    config: Evaluated,
    tasks: Sequence[Task],
    outputs: pa.Table,
    applicability: pa.Table | None,
    pictures: PictureStore,
    *,
    n_boot: int,
) -> Iterator[Measured]:
    """Measures all systems by all picture metrics; inputs are looked at once for all systems.

    Args:
        config: Options and protocol.
        tasks: The tasks of the split.
        outputs: What systems made of them.
        applicability: Which metric fits which sample, null when nobody was asked.
        pictures: Where the pictures are.
        n_boot: Draws of the bootstrap.

    Yields:
        A result for each metric and system, in order; one that needs packages which are not here
        says which.
    """
    systems = sorted(set(outputs["system"].to_pylist()))
    made = {(row["system"], row["sample_id"]): row for row in outputs.to_pylist()}
    for metric, accumulator in accumulators(config).items():
        fits = _fits(applicability, metric)
        chosen = [task for task in tasks if task.inputs and (fits is None or fits(task))]
        names = tuple(task.sample_id for task in chosen)
        for system in systems:
            drawn = [_picture(made.get((system, name)), pictures) for name in names]
            result, missing = _computed(accumulator, chosen, drawn, n_boot)
            yield Measured(metric, system, names, result, missing, fits is not None)


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
    tasks: Sequence[Task],
    drawn: Sequence[Path | None],
    n_boot: int,
) -> tuple[MetricResult | None, str | None]:
    inputs = [[picture.file for picture in task.inputs] for task in tasks]
    try:
        metric = accumulator()
        metric.add(inputs, list(drawn))
        return metric.compute(n_boot=n_boot, seed=0), None
    except EchoError as error:  # such as packages or weights that are not here
        return None, str(error)


def _fits(applicability: pa.Table | None, metric: str) -> Callable[[Task], bool] | None:
    if applicability is None or applicability[metric].null_count == len(applicability):
        return None
    columns = (applicability[name].to_pylist() for name in ("sample_id", metric))
    said = dict(zip(*columns, strict=True))
    return lambda task: bool(said.get(task.sample_id))


def _picture(row: Mapping[str, Any] | None, pictures: PictureStore) -> Path | None:
    if row is None or row["outcome"] != Outcome.OK or row["image"] is None:
        return None
    return pictures.path(row["image"])
