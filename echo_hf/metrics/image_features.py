"""The images of samples: accepted forms, loading, features, and a cache of inputs."""

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
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from PIL import Image, features
from xxhash import xxh3_128

from echo_hf.errors import ScoreError, unknown
from echo_hf.images.embedded import read_embedded
from echo_hf.images.loader import (
    BadImageError,
    ImageNotice,
    ImageSource,
    LoadedImage,
    load_image,
    open_image,
    read_image_file,
)
from echo_hf.metrics.result import MetricReason, Unmeasured, describe_bootstrap, get_versions

if TYPE_CHECKING:  # the package of scores imports datasets
    from echo_hf.scores.votes import ProtocolName

IMAGE_FORMS = "an image of Pillow's, a path, bytes, or a dict with 'bytes' or 'path'"
IMAGE_TYPES = (str, bytes, bytearray, memoryview, os.PathLike, Mapping, Image.Image)
ITEMS_AHEAD_PER_THREAD = 2
CODECS = ("libjpeg_turbo", "webp", "avif", "libtiff", "littlecms2")
# The levels of a channel that a sheet of one color may differ by, and people cannot see.
FLAT_LEVELS = 2
# Some of its pixels tell of most images that they are no such sheet.
LATTICE_PIXELS = (8, 8)
# Few locks for many images: two of them may share one, which costs time and nothing else.
IMAGE_LOCKS = tuple(Lock() for _ in range(64))

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
ValueT = TypeVar("ValueT")
OtherT = TypeVar("OtherT")
ImageLoader = Callable[[ImageSource], LoadedImage]
# What an image of a side may be: missing, bad, blank.
REASONS_BY_SIDE = {
    "input": (MetricReason.NO_INPUT, MetricReason.BAD_INPUT, MetricReason.BLANK_INPUT),
    "output": (MetricReason.MISSING_OUTPUT, MetricReason.BAD_OUTPUT, MetricReason.BLANK_OUTPUT),
}
# Beside its arrays an entry takes a key, a digest, its place in a dict that has grown just now,
# and what numpy and Python need for each object.
ENTRY_BYTES = 640


@dataclass(frozen=True, slots=True)
class MetricSample:
    inputs: tuple[ImageSource | None, ...]
    output: ImageSource | None
    task: str = ""  # what tells its task from others, where it is measured without its inputs


def pair_images(inputs: Iterable[Any], outputs: Iterable[Any]) -> Iterator[MetricSample]:
    _check_columns(inputs=inputs, outputs=outputs)
    return _pair_columns(inputs, outputs)


def pair_prompts(
    prompts: Iterable[str], outputs: Iterable[Any]
) -> tuple[list[str], Iterator[MetricSample]]:
    _check_columns(prompts=prompts)
    texts = list(prompts)
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise ScoreError(f"prompts[{number}]: {type(text).__name__!r} is not text")
    _check_columns(prompts=texts, outputs=outputs)
    digests = (xxh3_128(text.encode(errors="surrogatepass")).hexdigest() for text in texts)
    pairs = zip(digests, _pair_columns([None] * len(texts), outputs), strict=True)
    return texts, (MetricSample((), sample.output, digest) for digest, sample in pairs)


def list_outputs(outputs: Iterable[Any]) -> Iterator[MetricSample]:
    """Return samples that are measured by their outputs alone."""
    _check_columns(outputs=outputs)
    values = enumerate(_read_stored(outputs))
    return (
        MetricSample((), _as_source(value, f"outputs[{number}]"), task=str(number))
        for number, value in values
    )


def _check_columns(**columns: Iterable[Any]) -> None:
    """Refuse columns that do not have one entry for each sample."""
    for name, column in columns.items():
        if isinstance(column, IMAGE_TYPES) or not isinstance(column, Iterable):
            fault = f"{name}: {type(column).__name__!r} is not one entry for each sample"
            raise ScoreError(f"{fault}: expected a list, or a column of a dataset")
    counts = [len(column) for column in columns.values() if isinstance(column, Sequence)]
    if len(set(counts)) > 1:
        fault = " and ".join(f"{count} {name}" for count, name in zip(counts, columns, strict=True))
        raise ScoreError(f"{fault}: expected one of each for a sample, null for a missing output")


def _pair_columns(inputs: Iterable[Any], outputs: Iterable[Any]) -> Iterator[MetricSample]:
    end_marker: Any = object()
    pairs = zip_longest(_read_stored(inputs), _read_stored(outputs), fillvalue=end_marker)
    for number, (images, output) in enumerate(pairs):
        if images is end_marker or output is end_marker:
            fewer = "inputs" if images is end_marker else "outputs"
            raise ScoreError(f"{fewer} end after {number} samples: expected one for each sample")
        several = isinstance(images, Sequence) and not isinstance(images, IMAGE_TYPES)
        sources = (
            _as_source(value, f"inputs[{number}]") for value in (images if several else [images])
        )
        yield MetricSample(tuple(sources), _as_source(output, f"outputs[{number}]"))


def _as_source(value: Any, place: str) -> ImageSource | None:
    """Return an image as the loader takes it, or null for none."""
    if isinstance(value, Mapping):
        if "bytes" not in value and "path" not in value:  # a whole row is no missing image
            keys = reprlib.repr(list(value))
            raise ScoreError(
                f"{place}: a dict with the keys {keys} is not an image: expected {IMAGE_FORMS}; of "
                "a row, give the column that holds the image"
            )
        data = value.get("bytes")
        value = value.get("path") if data is None else data
    if value is None or isinstance(value, Image.Image | bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str | os.PathLike):
        return Path(os.fsdecode(value))
    raise ScoreError(f"{place}: {type(value).__name__!r} is not an image: expected {IMAGE_FORMS}")


def _read_stored(values: Iterable[Any]) -> Iterable[Any]:
    """Return a dataset's column with its images as files, and any other column as it is."""
    if type(values).__module__ != "datasets.arrow_dataset":  # which takes long to import
        return values
    from datasets import Dataset

    source, name = getattr(values, "source", None), getattr(values, "column_name", "")
    # A transform of the user's own says what the rows are.
    if not isinstance(source, Dataset) or source.format["type"] == "custom":
        return values
    rows = source.select_columns([name]).with_format("arrow")
    return _read_embedded(row for table in rows.iter(1) for row in table[name].to_pylist())


def _read_embedded(rows: Iterable[Any]) -> Iterator[Any]:
    """Yield the bytes of a column's images; a path in a stranger's table could name any file."""
    for number, value in enumerate(rows):
        images = value if isinstance(value, list) else [value]
        image_bytes = [image and read_embedded(image, number) for image in images]
        yield image_bytes if isinstance(value, list) else image_bytes[0]


def map_in_order(
    work: Callable[[ItemT], ResultT], items: Iterable[ItemT], *, threads: int | None = None
) -> Iterator[ResultT]:
    """Apply a function to items in threads, a few items ahead, in order."""
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise ScoreError(f"threads is {threads!r}: expected a whole number from 1, or null")
    threads = threads or os.cpu_count() or 1
    waiting: deque[Future[ResultT]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) >= ITEMS_AHEAD_PER_THREAD * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def load_plain_rgb(source: ImageSource) -> LoadedImage:
    """Convert an image to RGB with Pillow, without color management."""
    with open_image(source) as image:
        return LoadedImage(image.convert("RGB"), frozenset())


LOADERS: Mapping[ProtocolName, ImageLoader] = {"published": load_plain_rgb, "corrected": load_image}


def check_protocol(protocol: ProtocolName) -> None:
    if protocol not in LOADERS:
        raise ScoreError(unknown("protocol", protocol, LOADERS))


@dataclass(frozen=True, slots=True)
class SampleFeatures(Generic[ValueT]):
    inputs: tuple[ValueT, ...] = ()
    output: ValueT | None = None
    unmeasured: Unmeasured | None = None
    digests: tuple[str, str] = ("", "")  # of its task, and of its output
    notices: tuple[ImageNotice, ...] = ()

    def with_values(
        self, output: OtherT | None, inputs: tuple[OtherT, ...] = ()
    ) -> SampleFeatures[OtherT]:
        return SampleFeatures(inputs, output, self.unmeasured, self.digests, self.notices)


class _ImageColumn(NamedTuple, Generic[ValueT]):
    values: tuple[ValueT, ...] = ()
    digest: str = ""
    notices: tuple[ImageNotice, ...] = ()
    unmeasured: Unmeasured | None = None


def extract(
    samples: Iterable[MetricSample],
    extract: Callable[[Image.Image], ValueT],
    *,
    protocol: ProtocolName = "corrected",
    threads: int | None = None,
    lone_inputs: bool = False,
) -> Iterator[SampleFeatures[ValueT]]:
    """Extract a feature from each image of samples, a few samples ahead."""

    def read_side(name: str, sources: Sequence[ImageSource | None]) -> _ImageColumn[ValueT]:
        values, digests, notices = list[ValueT](), list[str](), list[ImageNotice]()
        missing, bad, blank = REASONS_BY_SIDE[name]
        if not sources:
            return _ImageColumn(unmeasured=Unmeasured(missing))
        for number, source in enumerate(sources, 1):
            place = f"{name} {number}" if len(sources) > 1 else name
            if source is None:
                return _ImageColumn(unmeasured=Unmeasured(missing, detail=place))
            try:
                # One at a time, since an image of Pillow's is decoded at its first use.
                lock = IMAGE_LOCKS[id(source) // 16 % len(IMAGE_LOCKS)]
                with lock if isinstance(source, Image.Image) else nullcontext():
                    loaded = LOADERS[protocol](source)
                digests.append(_compute_digest(source, loaded.image))
            except BadImageError as error:
                detail = f"{place}: {error.reason.meaning} ({error.detail})"
                return _ImageColumn(unmeasured=Unmeasured(bad, error.reason, detail))
            if is_flat(loaded.image):
                return _ImageColumn(unmeasured=Unmeasured(blank, detail=place))
            values.append(extract(loaded.image))
            notices += sorted(loaded.notices)
        return _ImageColumn(tuple(values), " ".join(digests), tuple(notices))

    def read_sample(sample: MetricSample) -> SampleFeatures[ValueT]:
        output = read_side("output", (sample.output,))
        if output.unmeasured and not lone_inputs:
            return SampleFeatures(unmeasured=output.unmeasured)
        task_alone = _ImageColumn[ValueT](digest=sample.task)
        inputs = task_alone if sample.task else read_side("input", sample.inputs)
        return SampleFeatures(
            inputs.values,
            next(iter(output.values), None),
            output.unmeasured or inputs.unmeasured,
            (inputs.digest, output.digest),
            inputs.notices + output.notices,
        )

    return map_in_order(read_sample, samples, threads=threads)


def _compute_digest(source: ImageSource, image: Image.Image) -> str:
    # Equal ones are to be found, not forgeries: a sha256 takes a tenth of the time of decoding.
    if isinstance(source, Image.Image):
        return xxh3_128(f"{image.size}".encode() + image.tobytes()).hexdigest()
    return xxh3_128(read_image_file(source) if isinstance(source, Path) else source).hexdigest()


def is_flat(image: Image.Image) -> bool:
    """Return whether an image is of one color, up to differences that people cannot see."""
    coarse = image.resize(LATTICE_PIXELS, Image.Resampling.NEAREST)
    bands = (band.getextrema() for version in (coarse, image) for band in version.split())
    return all(int(high) - int(low) <= FLAT_LEVELS for low, high in bands)  # type: ignore[arg-type]


def reasons_of(samples: Sequence[SampleFeatures[Any]]) -> list[Unmeasured | None]:
    """Return why samples have no number; an output of several tasks is a placeholder."""
    tasks: Mapping[str, set[str]] = defaultdict(set)
    for sample in samples:
        task, output = sample.digests
        tasks[output].add(task)
    repeated = {output for output, several in tasks.items() if output and len(several) > 1}
    card = Unmeasured(MetricReason.PLACEHOLDER)
    return [
        sample.unmeasured or (card if sample.digests[1] in repeated else None) for sample in samples
    ]


def common_fields(
    samples: Sequence[SampleFeatures[Any]],
    definition: Mapping[str, Any],
    networks: Mapping[str, Any],
    n_boot: int,
    seed: int,
) -> dict[str, Any]:
    """Return the fields of every image metric: notices, and all that decides the numbers."""
    notices = Counter(chain.from_iterable(sample.notices for sample in samples))
    versions = {
        **get_versions("echo-hf", "numpy"),
        **networks.get("versions", {}),
        **get_versions("pillow"),
        **{name: features.version(name) for name in CODECS},
    }
    own = {"blank_within": FLAT_LEVELS, "versions": versions}
    draws = {"interval": describe_bootstrap(n_boot, seed)}
    return {"notices": dict(sorted(notices.items())), "definition": {**definition, **own, **draws}}


class InputCache:
    """The networks of `face_identity` and `structure_distance`, and their features of inputs.

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

    def network(self, options: Hashable, load: Callable[[], ValueT]) -> ValueT:
        """Load a network at its first use, and return it, or raise its error, from then on."""
        with self._lock:
            if options not in self._networks:
                try:
                    self._networks[options] = load()
                except ScoreError as error:  # without its frames, which hold half a network
                    self._networks[options] = type(error)(str(error))
            network: ValueT | ScoreError = self._networks[options]
        if isinstance(network, ScoreError):
            raise type(network)(str(network))
        return network

    def find(self, key: tuple[str, bytes]) -> Any:
        """Return the cached value of an input, or null."""
        return self._values.get(key)

    def keep(self, key: tuple[str, bytes], value: Any) -> None:
        """Cache a copy of a value, if there is room."""
        size = ENTRY_BYTES + value.nbytes
        with self._lock:
            if key not in self._values and self.kept_bytes + size <= self._most_bytes:
                self._values[key] = deepcopy(value)
                self.kept_bytes += size
