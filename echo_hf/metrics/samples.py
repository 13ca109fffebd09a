"""Take inputs and outputs as users have them, pair them by sample, load and screen the images."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from PIL import Image, features
from xxhash import xxh3_128

from echo_hf.errors import ScoreError, unknown
from echo_hf.images.decode import ImageSource, open_image
from echo_hf.images.loader import LoadedImage, load_image
from echo_hf.metrics.result import versions_of

IMAGES = "an image of Pillow's, a path, bytes, or a dict with 'bytes' or 'path'"
ONE_IMAGE = (str, bytes, bytearray, memoryview, os.PathLike, Mapping, Image.Image)


@dataclass(frozen=True, slots=True)
class MetricSample:
    inputs: tuple[ImageSource | None, ...]
    output: ImageSource | None


def samples_of(inputs: Iterable[Any], outputs: Iterable[Any]) -> Iterator[MetricSample]:
    """Pairs inputs with outputs, one sample at a time."""
    sides = {"inputs": inputs, "outputs": outputs}
    for name, side in sides.items():
        if isinstance(side, ONE_IMAGE) or not isinstance(side, Iterable):
            raise ScoreError(
                f"{name}: {type(side).__name__!r} is not one entry for each sample: expected a "
                "list, or a column of a dataset"
            )
    _check_lengths(inputs, outputs)
    return _paired(inputs, outputs)


def _check_lengths(inputs: Iterable[Any], outputs: Iterable[Any]) -> None:
    if isinstance(inputs, Sequence) and isinstance(outputs, Sequence):
        counts = len(inputs), len(outputs)
        if counts[0] != counts[1]:
            raise ScoreError(
                f"{counts[0]} inputs and {counts[1]} outputs: expected one of each for a sample, "
                "and null for an output that is missing"
            )


def _paired(inputs: Iterable[Any], outputs: Iterable[Any]) -> Iterator[MetricSample]:
    ended = object()
    pairs = zip_longest(_stored(inputs), _stored(outputs), fillvalue=ended)
    for number, (given, made) in enumerate(pairs):
        if given is ended or made is ended:
            fewer = "inputs" if given is ended else "outputs"
            raise ScoreError(f"{fewer} end after {number} samples: expected one for each sample")
        found = tuple(_source(one, f"inputs[{number}]") for one in _listed(given))
        yield MetricSample(found, _source(made, f"outputs[{number}]"))


def _listed(given: Any) -> Sequence[Any]:
    several = isinstance(given, Sequence) and not isinstance(given, ONE_IMAGE)
    return given if several else [given]


def _source(given: Any, place: str) -> ImageSource | None:
    """An image as the loader takes it, null where there is none."""
    if isinstance(given, Mapping):
        _check_keys(given, place)
        data, path = given.get("bytes"), given.get("path")
        return _source(path if data is None else data, place)
    if given is None or isinstance(given, Image.Image | bytes):
        return given
    if isinstance(given, bytearray | memoryview):
        return bytes(given)
    if isinstance(given, str | os.PathLike):
        return Path(os.fsdecode(given))
    raise ScoreError(f"{place}: {type(given).__name__!r} is not an image: expected {IMAGES}")


def _check_keys(given: Mapping[Any, Any], place: str) -> None:
    """A whole row is no missing image."""
    if "bytes" not in given and "path" not in given:
        keys = reprlib.repr(list(given))
        raise ScoreError(
            f"{place}: a dict with the keys {keys} is not an image: expected {IMAGES}; of a row, "
            "give the column that holds the image"
        )


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
    return (row for table in rows.iter(1) for row in table[name].to_pylist())


def prompted(
    prompts: Iterable[str], outputs: Iterable[Any]
) -> tuple[list[str], Iterator[tuple[str, ImageSource | None]]]:
    texts = _texts(prompts)
    _check_prompt_lengths(texts, outputs)
    samples = samples_of([None] * len(texts), outputs)
    return texts, ((_digest(text), one.output) for text, one in zip(texts, samples, strict=True))


def _texts(prompts: Iterable[str]) -> list[str]:
    if isinstance(prompts, ONE_IMAGE) or not isinstance(prompts, Iterable):
        raise ScoreError(
            f"prompts: {type(prompts).__name__!r} is not one entry for each sample: expected a "
            "list, or a column of a dataset"
        )
    texts = list(prompts)
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise ScoreError(f"prompts[{number}]: {type(text).__name__!r} is not text")
    return texts


def _check_prompt_lengths(texts: Sequence[str], outputs: Iterable[Any]) -> None:
    if isinstance(outputs, ONE_IMAGE) or not isinstance(outputs, Sequence):
        return
    if len(outputs) != len(texts):
        raise ScoreError(
            f"{len(texts)} prompts and {len(outputs)} outputs: expected one of each for a sample, "
            "and null for an output that is missing"
        )


def _digest(text: str) -> str:
    return xxh3_128(text.encode(errors="surrogatepass")).hexdigest()


Protocol = Literal["published", "corrected"]
Load = Callable[[ImageSource], LoadedImage]

CODECS = ("libjpeg_turbo", "webp", "avif", "libtiff", "littlecms2")
# Few locks for many images: two of them may share one, which costs time and nothing else.
_LOCKS = tuple(Lock() for _ in range(64))


def plain_rgb(source: ImageSource) -> LoadedImage:
    """An image's numbers as red, green and blue, as Pillow converts them and nothing more."""
    with open_image(source) as image:
        return LoadedImage(image.convert("RGB"), frozenset())


LOADERS: Mapping[Protocol, Load] = {"published": plain_rgb, "corrected": load_image}


def check_protocol(protocol: Protocol) -> None:
    if protocol not in LOADERS:
        raise ScoreError(unknown("protocol", protocol, LOADERS))


def load_once(source: ImageSource, load: Load) -> tuple[LoadedImage, str]:
    """Loads an image that other threads may be loading, too."""
    with _its_lock(source):
        loaded = load(source)
    return loaded, _image_digest(source, loaded.image)


def decoders() -> dict[str, str | None]:
    """Versions of the libraries that decide what levels a decoded image has."""
    return {**versions_of("pillow"), **{name: features.version(name) for name in CODECS}}


def _its_lock(source: ImageSource) -> AbstractContextManager[object]:
    if isinstance(source, Image.Image):
        return _LOCKS[id(source) // 16 % len(_LOCKS)]
    return nullcontext()


def _image_digest(source: ImageSource, shown: Image.Image) -> str:
    # Equal ones are to be found, not forgeries: a sha256 takes a tenth of the time of decoding.
    if isinstance(source, Image.Image):
        return xxh3_128(f"{shown.size}".encode() + shown.tobytes()).hexdigest()
    return xxh3_128(source.read_bytes() if isinstance(source, Path) else source).hexdigest()


# The levels of a channel that a sheet of one color may differ by, and people cannot see.
FLAT_LEVELS = 2
_LATTICE = (8, 8)


def is_flat(image: Image.Image) -> bool:
    """Whether an image is a sheet of one color, up to what people cannot see."""
    # Some of its pixels tell of most images that they are not.
    some = image.resize(_LATTICE, Image.Resampling.NEAREST)
    return _range(some) <= FLAT_LEVELS and _range(image) <= FLAT_LEVELS


def placeholders(digests: Sequence[tuple[str, str]]) -> frozenset[int]:
    """Outputs that stand for several tasks, such as a card that says that nothing was made."""
    tasks: dict[str, set[str]] = {}
    for inputs, output in digests:
        tasks.setdefault(output, set()).add(inputs)
    repeated = {output for output, several in tasks.items() if output and len(several) > 1}
    return frozenset(at for at, (_, output) in enumerate(digests) if output in repeated)


def _range(image: Image.Image) -> int:
    ends = [band.getextrema() for band in image.split()]
    return max(int(high) - int(low) for low, high in ends)  # type: ignore[arg-type]
