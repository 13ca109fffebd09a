"""Look at the pictures of samples, and say of each sample that cannot be measured why not.

Every picture metric takes the same four steps: `seen` loads pictures in several threads and keeps
what the metric needs of each; `reasons_of` leaves out what cannot be measured; the metric makes a
number of what is left of each sample; `echo_hf.metrics.estimate.mean_of` takes the mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from PIL import Image

from echo_hf.metrics.in_order import in_order
from echo_hf.metrics.loading import Load, load_once
from echo_hf.metrics.result import Unmeasured
from echo_hf.metrics.samples import Sample
from echo_hf.metrics.screening import is_flat, placeholders
from echo_hf.open_picture import BadPictureError, PictureSource
from echo_hf.reasons import MetricReason, PictureNotice

Value = TypeVar("Value")
Other = TypeVar("Other")
Look = Callable[[Image.Image], Value]


@dataclass(frozen=True, slots=True)
class Seen(Generic[Value]):
    """What a metric keeps of one sample.

    Attributes:
        inputs: What it keeps of each input; empty where not all of them can be used.
        output: What it keeps of the output; null where it cannot be used.
        unmeasured: Why the sample gets no number; null where nothing speaks against it.
        digests: Of all inputs together, and of the output; empty where they cannot be used.
        notices: What was noticed about its pictures.
    """

    inputs: tuple[Value, ...] = ()
    output: Value | None = None
    unmeasured: Unmeasured | None = None
    digests: tuple[str, str] = ("", "")
    notices: tuple[PictureNotice, ...] = ()

    def measured(self, output: Other | None) -> Seen[Other]:
        """The sample with what was made of its pictures in their place.

        Args:
            output: Kept as its output; nothing is of its inputs.

        Returns:
            The sample, with its digests, notices and reason.
        """
        return Seen((), output, self.unmeasured, self.digests, self.notices)


class _Faults(NamedTuple):
    side: str
    missing: MetricReason
    bad: MetricReason
    blank: MetricReason


_OF_INPUT = _Faults(
    "input", MetricReason.NO_INPUT, MetricReason.BAD_INPUT, MetricReason.BLANK_INPUT
)
_OF_OUTPUT = _Faults(
    "output", MetricReason.MISSING_OUTPUT, MetricReason.BAD_OUTPUT, MetricReason.BLANK_OUTPUT
)


@dataclass(frozen=True, slots=True)
class _Side(Generic[Value]):
    """What is kept of one picture, or of all inputs of a sample."""

    values: tuple[Value, ...] = ()
    digest: str = ""
    notices: tuple[PictureNotice, ...] = ()
    unmeasured: Unmeasured | None = None


def seen(
    samples: Iterable[Sample],
    look: Look[Value],
    *,
    load: Load,
    threads: int | None = None,
    lone_inputs: bool = False,
) -> Iterator[Seen[Value]]:
    """Looks at the pictures of samples, a few samples ahead of what is asked for.

    A sample is measured when its output and every one of its inputs can be: a number from some
    of its inputs alone would be the number of another task.

    Args:
        samples: The samples, taken as they are needed.
        look: What is kept of a picture in mode RGB; called in several threads.
        load: How pictures are loaded: one of `echo_hf.metrics.loading.LOADERS`.
        threads: How many threads work; as many as there are processors when null.
        lone_inputs: Whether to look at inputs whose output cannot be used.

    Returns:
        What is kept of each sample, in order.

    Raises:
        ScoreError: `threads` is no number of threads.
    """
    work = partial(_seen, look=look, load=load, lone_inputs=lone_inputs)
    return in_order(work, samples, threads=threads)


def seen_outputs(
    outputs: Iterable[tuple[str, PictureSource | None]],
    look: Look[Value],
    *,
    load: Load,
    threads: int | None = None,
) -> Iterator[Seen[Value]]:
    """Looks at the outputs of samples that are measured without their inputs.

    Args:
        outputs: For each sample a digest of what the output was made from, and the output.
        look: As for `seen`.
        load: As for `seen`.
        threads: As for `seen`.

    Returns:
        What is kept of each sample, in order.

    Raises:
        ScoreError: `threads` is no number of threads.
    """
    return in_order(partial(_seen_output, look=look, load=load), outputs, threads=threads)


def reasons_of(samples: Sequence[Seen[Value]]) -> list[Unmeasured | None]:
    """Why samples have no number, with the outputs that several tasks share.

    Args:
        samples: All samples of one system: whether an output is a placeholder, the others tell.

    Returns:
        For each sample why it has none; null for one that can be measured.
    """
    repeated = placeholders([sample.digests for sample in samples])
    placeholder = Unmeasured(MetricReason.PLACEHOLDER)
    return [
        sample.unmeasured or (placeholder if at in repeated else None)
        for at, sample in enumerate(samples)
    ]


def notices_of(samples: Iterable[Seen[Value]]) -> dict[PictureNotice, int]:
    """How many pictures had something that had to be decided on loading.

    Args:
        samples: The samples.

    Returns:
        How many, by what it was.
    """
    found = Counter(notice for sample in samples for notice in sample.notices)
    return dict(sorted(found.items()))


def _seen(sample: Sample, look: Look[Value], load: Load, lone_inputs: bool) -> Seen[Value]:
    output = _side((sample.output,), look, load, _OF_OUTPUT)
    if output.unmeasured and not lone_inputs:
        return Seen(unmeasured=output.unmeasured)
    inputs = _side(sample.inputs, look, load, _OF_INPUT)
    return Seen(
        inputs.values,
        output.values[0] if output.values else None,
        output.unmeasured or inputs.unmeasured,
        (inputs.digest, output.digest),
        inputs.notices + output.notices,
    )


def _seen_output(
    sample: tuple[str, PictureSource | None], look: Look[Value], load: Load
) -> Seen[Value]:
    origin, source = sample
    output = _side((source,), look, load, _OF_OUTPUT)
    value = output.values[0] if output.values else None
    return Seen((), value, output.unmeasured, (origin, output.digest), output.notices)


def _side(
    sources: tuple[PictureSource | None, ...], look: Look[Value], load: Load, faults: _Faults
) -> _Side[Value]:
    if not sources:
        return _Side(unmeasured=Unmeasured(faults.missing))
    sides = []
    for number, source in enumerate(sources, 1):
        name = f"{faults.side} {number}" if len(sources) > 1 else faults.side
        sides.append(_one(source, look, load, faults, name))
        if sides[-1].unmeasured:
            return sides[-1]
    return _Side(
        tuple(value for side in sides for value in side.values),
        " ".join(side.digest for side in sides),
        tuple(notice for side in sides for notice in side.notices),
    )


def _one(
    source: PictureSource | None, look: Look[Value], load: Load, faults: _Faults, name: str
) -> _Side[Value]:
    if source is None:
        return _Side(unmeasured=Unmeasured(faults.missing, detail=name))
    try:
        loaded, digest = load_once(source, load)
    except BadPictureError as error:
        detail = f"{name}: {error.reason.meaning} ({error.detail})"
        return _Side(unmeasured=Unmeasured(faults.bad, error.reason, detail))
    if is_flat(loaded.image):
        return _Side(unmeasured=Unmeasured(faults.blank, detail=name))
    return _Side((look(loaded.image),), digest, tuple(sorted(loaded.notices)))
