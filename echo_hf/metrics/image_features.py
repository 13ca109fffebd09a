"""The images of samples: how users give them, how metrics look at them, and what is kept of it."""

from __future__ import annotations

import os
import reprlib
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from threading import Lock
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from PIL import Image, features
from xxhash import xxh3_128

from echo_hf.errors import ScoreError, unknown
from echo_hf.images.embedded import embedded_bytes
from echo_hf.images.loader import (
    BadImageError,
    ImageSource,
    LoadedImage,
    load_image,
    open_image,
    read_image_file,
)
from echo_hf.metrics.result import Unmeasured, definition_of, versions_of
from echo_hf.reasons import ImageNotice, MetricReason

Protocol = Literal["published", "corrected"]
IMAGES = "an image of Pillow's, a path, bytes, or a dict with 'bytes' or 'path'"
ONE_IMAGE = (str, bytes, bytearray, memoryview, os.PathLike, Mapping, Image.Image)
AHEAD = 2
CODECS = ("libjpeg_turbo", "webp", "avif", "libtiff", "littlecms2")
# The levels of a channel that a sheet of one color may differ by, and people cannot see.
FLAT_LEVELS = 2
# Some of its pixels tell of most images that they are no such sheet.
LATTICE = (8, 8)
# Few locks for many images: two of them may share one, which costs time and nothing else.
LOCKS = tuple(Lock() for _ in range(64))

Item = TypeVar("Item")
Found = TypeVar("Found")
Value = TypeVar("Value")
Other = TypeVar("Other")
Load = Callable[[ImageSource], LoadedImage]


@dataclass(frozen=True, slots=True)
class MetricSample:
    inputs: tuple[ImageSource | None, ...]
    output: ImageSource | None
    task: str = ""  # the digest of its prompt, where it is measured without its inputs


def samples_of(inputs: Iterable[Any], outputs: Iterable[Any]) -> Iterator[MetricSample]:
    _check_columns(inputs=inputs, outputs=outputs)
    return _paired(inputs, outputs)


def prompted(
    prompts: Iterable[str], outputs: Iterable[Any]
) -> tuple[list[str], Iterator[MetricSample]]:
    _check_columns(prompts=prompts)
    texts = list(prompts)
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise ScoreError(f"prompts[{number}]: {type(text).__name__!r} is not text")
    _check_columns(prompts=texts, outputs=outputs)
    digests = (xxh3_128(text.encode(errors="surrogatepass")).hexdigest() for text in texts)
    pairs = zip(digests, _paired([None] * len(texts), outputs), strict=True)
    return texts, (MetricSample((), sample.output, digest) for digest, sample in pairs)


def _check_columns(**columns: Iterable[Any]) -> None:
    """Refuses what is not one entry for each sample."""
    for name, column in columns.items():
        if isinstance(column, ONE_IMAGE) or not isinstance(column, Iterable):
            said = f"{name}: {type(column).__name__!r} is not one entry for each sample"
            raise ScoreError(f"{said}: expected a list, or a column of a dataset")
    counts = [len(one) for one in columns.values() if isinstance(one, Sequence)]
    if len(set(counts)) > 1:
        said = " and ".join(f"{count} {name}" for count, name in zip(counts, columns, strict=True))
        raise ScoreError(f"{said}: expected one of each for a sample, null for a missing output")


def _paired(inputs: Iterable[Any], outputs: Iterable[Any]) -> Iterator[MetricSample]:
    ended: Any = object()
    pairs = zip_longest(_stored(inputs), _stored(outputs), fillvalue=ended)
    for number, (given, made) in enumerate(pairs):
        if given is ended or made is ended:
            fewer = "inputs" if given is ended else "outputs"
            raise ScoreError(f"{fewer} end after {number} samples: expected one for each sample")
        several = isinstance(given, Sequence) and not isinstance(given, ONE_IMAGE)
        found = (_source(one, f"inputs[{number}]") for one in (given if several else [given]))
        yield MetricSample(tuple(found), _source(made, f"outputs[{number}]"))


def _source(given: Any, place: str) -> ImageSource | None:
    """An image as the loader takes it, null where there is none."""
    if isinstance(given, Mapping):
        if "bytes" not in given and "path" not in given:  # a whole row is no missing image
            keys = reprlib.repr(list(given))
            raise ScoreError(
                f"{place}: a dict with the keys {keys} is not an image: expected {IMAGES}; of a "
                "row, give the column that holds the image"
            )
        data = given.get("bytes")
        given = given.get("path") if data is None else data
    if given is None or isinstance(given, Image.Image | bytes):
        return given
    if isinstance(given, bytearray | memoryview):
        return bytes(given)
    if isinstance(given, str | os.PathLike):
        return Path(os.fsdecode(given))
    raise ScoreError(f"{place}: {type(given).__name__!r} is not an image: expected {IMAGES}")


def _stored(values: Iterable[Any]) -> Iterable[Any]:
    """A column of a Dataset with its images as files; whatever else is given, as it is."""
    if type(values).__module__ != "datasets.arrow_dataset":  # which takes long to import
        return values
    from datasets import Dataset

    source, name = getattr(values, "source", None), getattr(values, "column_name", "")
    # A transform of the user's own says what the rows are.
    if not isinstance(source, Dataset) or source.format["type"] == "custom":
        return values
    rows = source.select_columns([name]).with_format("arrow")
    return _embedded(row for table in rows.iter(1) for row in table[name].to_pylist())


def _embedded(rows: Iterable[Any]) -> Iterator[Any]:
    """The images of a column, each its bytes: a table may be a stranger's, and name any file."""
    for number, value in enumerate(rows):
        some = value if isinstance(value, list) else [value]
        found = [one and embedded_bytes(one, number) for one in some]
        yield found if isinstance(value, list) else found[0]


def in_order(
    work: Callable[[Item], Found], items: Iterable[Item], *, threads: int | None = None
) -> Iterator[Found]:
    """Does a piece of work on each item, a few items ahead of what is asked for."""
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise ScoreError(f"threads is {threads!r}: expected a whole number from 1, or null")
    threads = threads or os.cpu_count() or 1
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


def plain_rgb(source: ImageSource) -> LoadedImage:
    """An image's numbers as red, green and blue, as Pillow converts them and nothing more."""
    with open_image(source) as image:
        return LoadedImage(image.convert("RGB"), frozenset())


LOADERS: Mapping[Protocol, Load] = {"published": plain_rgb, "corrected": load_image}


def check_protocol(protocol: Protocol) -> None:
    if protocol not in LOADERS:
        raise ScoreError(unknown("protocol", protocol, LOADERS))


@dataclass(frozen=True, slots=True)
class SampleFeatures(Generic[Value]):
    inputs: tuple[Value, ...] = ()
    output: Value | None = None
    unmeasured: Unmeasured | None = None
    digests: tuple[str, str] = ("", "")  # of its task, and of its output
    notices: tuple[ImageNotice, ...] = ()

    def measured(
        self, output: Other | None, inputs: tuple[Other, ...] = ()
    ) -> SampleFeatures[Other]:
        return SampleFeatures(inputs, output, self.unmeasured, self.digests, self.notices)


class _Side(NamedTuple, Generic[Value]):
    values: tuple[Value, ...] = ()
    digest: str = ""
    notices: tuple[ImageNotice, ...] = ()
    unmeasured: Unmeasured | None = None


# What an image of a side may be: missing, bad, blank.
FAULTS = {
    "input": (MetricReason.NO_INPUT, MetricReason.BAD_INPUT, MetricReason.BLANK_INPUT),
    "output": (MetricReason.MISSING_OUTPUT, MetricReason.BAD_OUTPUT, MetricReason.BLANK_OUTPUT),
}


def seen(
    samples: Iterable[MetricSample],
    look: Callable[[Image.Image], Value],
    *,
    protocol: Protocol = "corrected",
    threads: int | None = None,
    lone_inputs: bool = False,
) -> Iterator[SampleFeatures[Value]]:
    """Looks at the images of samples, a few samples ahead of what is asked for."""

    def side(name: str, sources: Sequence[ImageSource | None]) -> _Side[Value]:
        values, digests, notices = list[Value](), list[str](), list[ImageNotice]()
        missing, bad, blank = FAULTS[name]
        if not sources:
            return _Side(unmeasured=Unmeasured(missing))
        for number, source in enumerate(sources, 1):
            place = f"{name} {number}" if len(sources) > 1 else name
            if source is None:
                return _Side(unmeasured=Unmeasured(missing, detail=place))
            try:
                with _turn(source):
                    loaded = LOADERS[protocol](source)
                digests.append(_digest(source, loaded.image))
            except BadImageError as error:
                detail = f"{place}: {error.reason.meaning} ({error.detail})"
                return _Side(unmeasured=Unmeasured(bad, error.reason, detail))
            if is_flat(loaded.image):
                return _Side(unmeasured=Unmeasured(blank, detail=place))
            values.append(look(loaded.image))
            notices += sorted(loaded.notices)
        return _Side(tuple(values), " ".join(digests), tuple(notices))

    def work(sample: MetricSample) -> SampleFeatures[Value]:
        output = side("output", (sample.output,))
        if output.unmeasured and not lone_inputs:
            return SampleFeatures(unmeasured=output.unmeasured)
        lone = _Side[Value](digest=sample.task)
        inputs = lone if sample.task else side("input", sample.inputs)
        return SampleFeatures(
            inputs.values,
            next(iter(output.values), None),
            output.unmeasured or inputs.unmeasured,
            (inputs.digest, output.digest),
            inputs.notices + output.notices,
        )

    return in_order(work, samples, threads=threads)


def _turn(source: ImageSource) -> Lock | nullcontext[None]:
    """Threads take turns with an image of Pillow's, which is decoded at its first use."""
    if isinstance(source, Image.Image):
        return LOCKS[id(source) // 16 % len(LOCKS)]
    return nullcontext()


def _digest(source: ImageSource, shown: Image.Image) -> str:
    # Equal ones are to be found, not forgeries: a sha256 takes a tenth of the time of decoding.
    if isinstance(source, Image.Image):
        return xxh3_128(f"{shown.size}".encode() + shown.tobytes()).hexdigest()
    return xxh3_128(read_image_file(source) if isinstance(source, Path) else source).hexdigest()


def is_flat(image: Image.Image) -> bool:
    """Whether an image is a sheet of one color, up to what people cannot see."""
    some = image.resize(LATTICE, Image.Resampling.NEAREST)
    bands = (band.getextrema() for shown in (some, image) for band in shown.split())
    return all(int(high) - int(low) <= FLAT_LEVELS for low, high in bands)  # type: ignore[arg-type]


def reasons_of(samples: Sequence[SampleFeatures[Any]]) -> list[Unmeasured | None]:
    """Why samples have no number; so for outputs of several tasks, such as a card of refusal."""
    tasks: Mapping[str, set[str]] = defaultdict(set)
    for sample in samples:
        task, output = sample.digests
        tasks[output].add(task)
    repeated = {output for output, several in tasks.items() if output and len(several) > 1}
    card = Unmeasured(MetricReason.PLACEHOLDER)
    return [one.unmeasured or (card if one.digests[1] in repeated else None) for one in samples]


def common_fields(
    samples: Sequence[SampleFeatures[Any]],
    definition: Mapping[str, Any],
    networks: Mapping[str, Any],
    n_boot: int,
    seed: int,
) -> dict[str, Any]:
    """What every result of images holds: what was noticed, and all that decides the numbers."""
    notices = Counter(chain.from_iterable(one.notices for one in samples))
    versions = {
        **versions_of("echo-hf", "numpy"),
        **networks.get("versions", {}),
        **versions_of("pillow"),
        **{name: features.version(name) for name in CODECS},
    }
    own = {"blank_within": FLAT_LEVELS, "versions": versions}
    drawn = {"interval": definition_of(n_boot, seed)}
    return {"notices": dict(sorted(notices.items())), "definition": {**definition, **own, **drawn}}


# Beside its arrays an entry takes a key, a digest, its place in a dict that has grown just now,
# and what numpy and Python need for each object.
ENTRY_BYTES = 640


class InputCache:
    """The networks of `face_identity` and `structure_distance`, and what they saw in inputs.

    Given to one of them for one system after the other, so that its networks are loaded once, and
    look at each input once. Of an input no pixel is kept, but 2 KB for each face, or a
    self-similarity, 155 KB for DINO ViT-S/16.

    Args:
        most_bytes: How much is kept of inputs at most.

    Raises:
        ScoreError: `most_bytes` is no number of bytes.
    """

    def __init__(self, *, most_bytes: int = 2**28) -> None:
        if not isinstance(most_bytes, int) or most_bytes < 0:
            raise ScoreError(f"most_bytes is {most_bytes!r}: expected a whole number from 0")
        self._most_bytes = most_bytes
        self._lock = Lock()
        self._networks: dict[Hashable, Any] = {}
        self._values: dict[tuple[str, bytes], Any] = {}
        self.kept_bytes = 0

    def __len__(self) -> int:
        return len(self._values)

    def network(self, options: Hashable, load: Callable[[], Value]) -> Value:
        """Loads a network when it is first asked for; it, or the error, is given from then on."""
        with self._lock:
            if options not in self._networks:
                try:
                    self._networks[options] = load()
                except ScoreError as error:  # without its frames, which hold half a network
                    self._networks[options] = type(error)(str(error))
            found: Value | ScoreError = self._networks[options]
        if isinstance(found, ScoreError):
            raise type(found)(str(found))
        return found

    def find(self, key: tuple[str, bytes]) -> Any:
        """What was kept of an input; null where nothing was."""
        return self._values.get(key)

    def keep(self, key: tuple[str, bytes], value: Any) -> None:
        """Keeps a copy, if there is room."""
        size = ENTRY_BYTES + value.nbytes
        with self._lock:
            if key not in self._values and self.kept_bytes + size <= self._most_bytes:
                self._values[key] = deepcopy(value)
                self.kept_bytes += size
