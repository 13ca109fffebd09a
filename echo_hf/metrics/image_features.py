"""Look at the images of samples, cache what networks see, and say what cannot be measured."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

from PIL import Image

from echo_hf.errors import ScoreError
from echo_hf.images.decode import BadImageError, ImageSource
from echo_hf.metrics.result import Unmeasured
from echo_hf.metrics.samples import Load, MetricSample, is_flat, load_once, placeholders
from echo_hf.reasons import ImageNotice, MetricReason

AHEAD = 2

Item = TypeVar("Item")
Found = TypeVar("Found")


def in_order(
    work: Callable[[Item], Found], items: Iterable[Item], *, threads: int | None = None
) -> Iterator[Found]:
    """Does a piece of work on each item, a few items ahead of what is asked for."""
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise ScoreError(f"threads is {threads!r}: expected a whole number from 1, or null")
    return _done(work, items, threads or os.cpu_count() or 1)


def _done(work: Callable[[Item], Found], items: Iterable[Item], threads: int) -> Iterator[Found]:
    waiting: deque[Future[Found]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) >= AHEAD * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for one in waiting:
                one.cancel()


Value = TypeVar("Value")
Other = TypeVar("Other")
FeatureReader = Callable[[Image.Image], Value]


@dataclass(frozen=True, slots=True)
class SampleFeatures(Generic[Value]):
    inputs: tuple[Value, ...] = ()
    output: Value | None = None
    unmeasured: Unmeasured | None = None
    digests: tuple[str, str] = ("", "")
    notices: tuple[ImageNotice, ...] = ()

    def measured(self, output: Other | None) -> SampleFeatures[Other]:
        """The sample with what was made of its images in their place."""
        return SampleFeatures((), output, self.unmeasured, self.digests, self.notices)


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
    values: tuple[Value, ...] = ()
    digest: str = ""
    notices: tuple[ImageNotice, ...] = ()
    unmeasured: Unmeasured | None = None


def seen(
    samples: Iterable[MetricSample],
    look: FeatureReader[Value],
    *,
    load: Load,
    threads: int | None = None,
    lone_inputs: bool = False,
) -> Iterator[SampleFeatures[Value]]:
    """Looks at the images of samples, a few samples ahead of what is asked for."""
    work = partial(_seen, look=look, load=load, lone_inputs=lone_inputs)
    return in_order(work, samples, threads=threads)


def seen_outputs(
    outputs: Iterable[tuple[str, ImageSource | None]],
    look: FeatureReader[Value],
    *,
    load: Load,
    threads: int | None = None,
) -> Iterator[SampleFeatures[Value]]:
    """Looks at the outputs of samples that are measured without their inputs."""
    return in_order(partial(_seen_output, look=look, load=load), outputs, threads=threads)


def reasons_of(samples: Sequence[SampleFeatures[Value]]) -> list[Unmeasured | None]:
    """Why samples have no number, with the outputs that several tasks share."""
    repeated = placeholders([sample.digests for sample in samples])
    placeholder = Unmeasured(MetricReason.PLACEHOLDER)
    return [
        sample.unmeasured or (placeholder if at in repeated else None)
        for at, sample in enumerate(samples)
    ]


def notices_of(samples: Iterable[SampleFeatures[Value]]) -> dict[ImageNotice, int]:
    """How many images had something that had to be decided on loading."""
    found = Counter(notice for sample in samples for notice in sample.notices)
    return dict(sorted(found.items()))


def _seen(
    sample: MetricSample, look: FeatureReader[Value], load: Load, lone_inputs: bool
) -> SampleFeatures[Value]:
    output = _side((sample.output,), look, load, _OF_OUTPUT)
    if output.unmeasured and not lone_inputs:
        return SampleFeatures(unmeasured=output.unmeasured)
    inputs = _side(sample.inputs, look, load, _OF_INPUT)
    return SampleFeatures(
        inputs.values,
        output.values[0] if output.values else None,
        output.unmeasured or inputs.unmeasured,
        (inputs.digest, output.digest),
        inputs.notices + output.notices,
    )


def _seen_output(
    sample: tuple[str, ImageSource | None], look: FeatureReader[Value], load: Load
) -> SampleFeatures[Value]:
    origin, source = sample
    output = _side((source,), look, load, _OF_OUTPUT)
    value = output.values[0] if output.values else None
    return SampleFeatures((), value, output.unmeasured, (origin, output.digest), output.notices)


def _side(
    sources: tuple[ImageSource | None, ...], look: FeatureReader[Value], load: Load, faults: _Faults
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
    source: ImageSource | None, look: FeatureReader[Value], load: Load, faults: _Faults, name: str
) -> _Side[Value]:
    if source is None:
        return _Side(unmeasured=Unmeasured(faults.missing, detail=name))
    try:
        loaded, digest = load_once(source, load)
    except BadImageError as error:
        detail = f"{name}: {error.reason.meaning} ({error.detail})"
        return _Side(unmeasured=Unmeasured(faults.bad, error.reason, detail))
    if is_flat(loaded.image):
        return _Side(unmeasured=Unmeasured(faults.blank, detail=name))
    return _Side((look(loaded.image),), digest, tuple(sorted(loaded.notices)))


Network = TypeVar("Network")
# A network may take a large part of a GPU: those of two settings side by side, and no more.
MOST = 2


class LoadedOnce(Generic[Network]):
    """Loads a network when it is first asked for, and gives the same from then on."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: dict[Hashable, Network | ScoreError] = {}

    def __len__(self) -> int:
        return len(self._found)

    def get(self, key: Hashable, load: Callable[[], Network]) -> Network:
        """The network, loaded the first time."""
        with self._lock:
            found = self._found.pop(key, None)
            found = _outcome(load) if found is None else found
            self._found[key] = found
            while len(self._found) > MOST:
                del self._found[next(iter(self._found))]
        if isinstance(found, ScoreError):
            # A copy: an error that is raised holds on to all that the raising function had.
            raise type(found)(str(found)) from found.__cause__
        return found


def _outcome(load: Callable[[], Network]) -> Network | ScoreError:
    try:
        return load()
    except ScoreError as error:
        return _without_frames(error)


def _without_frames(error: ScoreError) -> ScoreError:
    """The error's words and cause, without what its functions held, such as half a network."""
    kept = type(error)(str(error))
    cause = error.__cause__
    kept.__cause__ = cause.with_traceback(None) if cause is not None else None
    return kept


# Beside its arrays an entry takes a key, a digest, its place in a dict that has grown just now,
# and what numpy and Python need for each object.
ENTRY_BYTES = 640


class InputCache(ABC, Generic[Network, Value]):
    """Values of inputs up to a number of bytes, and the networks that made them."""

    def __init__(self, *, most_bytes: int) -> None:
        if not isinstance(most_bytes, int) or most_bytes < 0:
            raise ScoreError(f"most_bytes is {most_bytes!r}: expected a whole number from 0")
        self.networks: LoadedOnce[Network] = LoadedOnce()
        self._most_bytes = most_bytes
        self._lock = Lock()
        self._kept: dict[tuple[str, bytes], Value] = {}
        self._kept_bytes = 0

    def __getstate__(self) -> dict[str, int]:
        """An empty one with the same bound: another process looks at other inputs."""
        return {"most_bytes": self._most_bytes}

    def __setstate__(self, state: dict[str, int]) -> None:
        InputCache.__init__(self, **state)

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def kept_bytes(self) -> int:
        """How many bytes they take, with all that belongs to them."""
        return self._kept_bytes

    def find(self, key: tuple[str, bytes]) -> Value | None:
        return self._kept.get(key)

    def keep(self, key: tuple[str, bytes], value: Value) -> None:
        """Keeps what was seen in an input, if there is room."""
        size = ENTRY_BYTES + self._size(value)
        with self._lock:
            if key in self._kept or self._kept_bytes + size > self._most_bytes:
                return
            self._kept[key] = self._copied(value)
            self._kept_bytes += size

    @abstractmethod
    def _size(self, value: Value) -> int:
        """Bytes of its arrays and texts."""

    @abstractmethod
    def _copied(self, value: Value) -> Value:
        """The same, holding on to nothing else."""
