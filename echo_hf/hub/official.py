"""Read the dataset of ECHO's authors, which names images and holds none, as one of ours."""

from __future__ import annotations

import json
import math
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from datasets import Dataset, Features, List, Value
from datasets.utils import tqdm
from huggingface_hub import DatasetCard, cached_assets_path

from echo_hf.collect.fetch import FetchResult, fetch_images
from echo_hf.collect.network import Resolve, resolve
from echo_hf.config.collection import FetchPolicy
from echo_hf.errors import ImageError, ReleaseError, unknown
from echo_hf.hub.manifest import CARD, SPLIT
from echo_hf.images.store import ImageStore
from echo_hf.reasons import Notice, Reason, Unfetched
from echo_hf.samples.boxes import cut, inner, upright
from echo_hf.samples.sample import sample_digest
from echo_hf.tables import SAMPLES, STRING, STRINGS, release_features

# Its own loader leaves out so many pixels along each side of a box.
INSET = 10

Boxes = list[list[float]]


@dataclass(frozen=True)
class OfficialImage:
    position: int
    digest: str | None
    reason: Reason | None = None
    detail: str = ""
    has_place: bool = True


@dataclass(frozen=True)
class FetchedImages:
    store: ImageStore
    found: Mapping[str, FetchResult]

    def shown(self, media: Sequence[Any], boxes: Boxes | str | None) -> Iterator[OfficialImage]:
        for position, one in enumerate(media):
            whole = self.whole(position, one)
            if isinstance(boxes, str):
                yield OfficialImage(position, None, Notice.BAD_FIELD, f"boxes {boxes}")
            elif boxes and whole.digest is not None:
                yield from self._parts(position, whole.digest, boxes)
            else:
                yield from [whole] * max(1, len(boxes or ()))

    def whole(self, position: int, media: Any) -> OfficialImage:
        if isinstance(media, Mapping):
            try:
                return OfficialImage(position, self.store.put(media.get("bytes") or b""))
            except ImageError as error:
                return OfficialImage(position, None, Unfetched.UNDECODABLE, str(error))
        result = self.found[media]
        return OfficialImage(position, result.sha256, result.reason, result.detail)

    def _parts(self, position: int, digest: str, boxes: Boxes) -> Iterator[OfficialImage]:
        image = upright(self.store.open(digest))
        for box in boxes:
            inside = inset_box(box, image.size)
            if inside is None:
                detail = f"box {box!r} in {image.width} x {image.height} pixels"
                yield OfficialImage(position, None, Notice.DEGENERATE_BOX, detail, has_place=False)
            else:
                yield OfficialImage(position, self.store.put(cut(image, inside)))


def boxes_of(value: Any) -> Boxes | str | None:
    """Boxes as the dataset has them: a list, or the same in JSON."""
    try:
        boxes = json.loads(value or "null") if isinstance(value, str) else value
        found = None if boxes is None else [[float(number) for number in box] for box in boxes]
    except (TypeError, ValueError):
        return f"{str(value)[:80]!r}: expected a list of boxes"
    if any(len(box) != 4 for box in found or ()):
        return f"{str(value)[:80]!r}: expected four numbers a box"
    if not all(math.isfinite(number) for box in found or () for number in box):
        return f"{str(value)[:80]!r}: expected finite numbers"
    return found


def inset_box(box: Sequence[float], size: tuple[int, int]) -> tuple[int, int, int, int] | None:
    """The part of a box that is shown: without its edge, and inside the image."""
    left, top, right, bottom = (int(number) for number in box)
    left, top, right, bottom = inner((left, top, right, bottom), INSET)
    left, top = max(left, 0), max(top, 0)
    right, bottom = min(right, size[0]), min(bottom, size[1])
    return (left, top, right, bottom) if left < right and top < bottom else None


# The first gives the size that was measured with, the second is for what the first does not have.
MEDIA = ("https://pbs.twimg.com/media/{token}?format=jpg", "https://pbs.twimg.com/media/{token}")


def kept_images() -> ImageStore:
    """The store in the part of huggingface_hub's cache that is for what other libraries make."""
    return ImageStore(cached_assets_path("echo-hf", subfolder="fetched") / "pictures")


@dataclass(frozen=True)
class OfficialImages:
    store: ImageStore = field(default_factory=kept_images)
    policy: FetchPolicy = field(default_factory=FetchPolicy)
    media: tuple[str, ...] = MEDIA
    resolve: Resolve = resolve

    def fetch(self, names: Iterable[str]) -> Mapping[str, FetchResult]:
        found: dict[str, FetchResult] = {}
        left = list(dict.fromkeys(names))
        for place in self.media:
            addresses = {name: _address(name, place) for name in left}
            results = self._asked(list(dict.fromkeys(addresses.values())))
            found.update({name: results[address] for name, address in addresses.items()})
            left = [name for name in left if not found[name].sha256 and not _is_address(name)]
        return found

    def _asked(self, addresses: list[str]) -> dict[str, FetchResult]:
        if not addresses:
            return {}
        results = fetch_images(addresses, self.store, policy=self.policy, resolve=self.resolve)
        shown = tqdm(results, total=len(addresses), desc="Fetching images", unit=" images")
        return {result.url: result for result in shown}


def _is_address(name: str) -> bool:
    return "://" in name


def _address(name: str, place: str) -> str:
    return name if _is_address(name) else place.format(token=quote(name, safe=""))


MEDIA_COLUMNS = {"input_images": "input_media", "output_images": "output_media"}
BOX_COLUMNS = {"input_images": "input_bboxs", "output_images": "output_bboxs"}
COMMENT = tuple(SAMPLES.features["community_feedback"].feature)

Row = dict[str, Any]


def our_row(official: Mapping[str, Any], images: FetchedImages, provenance: str) -> Row:
    media = {column: official.get(column) for column in MEDIA_COLUMNS}
    boxes = {column: boxes_of(official.get(name)) for column, name in BOX_COLUMNS.items()}
    cuts = boxes if official.get("is_screenshot") else {}
    shown = {
        column: None if names is None else list(images.shown(names, cuts.get(column)))
        for column, names in media.items()
    }
    return {
        **official,
        "post_urls": _addresses(official.get("post_id")),
        "community_feedback": comments(official.get("community_feedback")),
        "screenshot": _screenshot(official, images),
        "sample_digest": _digest(official.get("prompt"), _digests(shown["input_images"])),
        "provenance": provenance,
        **{column: _images(each, images.store) for column, each in shown.items()},
        **{MEDIA_COLUMNS[column]: _names(names) for column, names in media.items()},
        **{BOX_COLUMNS[column]: None if isinstance(b, str) else b for column, b in boxes.items()},
        "missing_images": [
            *(row for name, each in shown.items() for row in _missing(name, each, media[name])),
            *(_unread(name, boxes[name]) for name in shown if isinstance(boxes[name], str)),
        ],
    }


def comments(value: Any) -> list[Row] | None:
    """Feedback as the dataset has it, with all our fields."""
    given = json.loads(value or "null") if isinstance(value, str) else value
    if given is None:
        return None
    return [
        {
            **{name: each.get(name) for name in COMMENT},
            "post_url": each.get("post_url") or _row_address(each.get("post_id")),
        }
        for each in given
    ]


def _digests(shown: Iterable[OfficialImage] | None) -> list[str | None] | None:
    return None if shown is None else [each.digest for each in shown if each.has_place]


def _images(shown: Iterable[OfficialImage] | None, store: ImageStore) -> list[Row | None] | None:
    digests = _digests(shown)
    return None if digests is None else [_image(digest, store) for digest in digests]


def _image(digest: str | None, store: ImageStore) -> Row | None:
    return None if digest is None else {"bytes": None, "path": str(store.path(digest))}


def _screenshot(given: Mapping[str, Any], images: FetchedImages) -> Row | None:
    if not (given.get("is_screenshot") and given.get("input_images")):
        return None
    return _image(images.whole(0, given["input_images"][0]).digest, images.store)


def _names(media: Sequence[Any] | None) -> list[Any] | None:
    if media is None:
        return None
    return [each.get("path") if isinstance(each, Mapping) else each for each in media]


def _missing(column: str, shown: Iterable[OfficialImage] | None, media: Any) -> list[Row]:
    names = _names(media) or []
    return [
        {
            "column": column,
            "position": each.position,
            "media": names[each.position],
            "reason": str(each.reason),
            "detail": each.detail,
        }
        for each in shown or ()
        if each.reason is not None
    ]


def _unread(column: str, said: Any) -> Row:
    lost = {"column": BOX_COLUMNS[column], "position": None, "media": None}
    return {**lost, "reason": str(Notice.BAD_FIELD), "detail": said}


def _addresses(post_id: Any) -> list[str] | None:
    address = _row_address(post_id)
    return None if address is None else [address]


def _row_address(post_id: Any) -> str | None:
    """All its posts are from X, where a number is all that names one."""
    digits = str(post_id)
    return f"https://x.com/i/status/{digits}" if digits.isdecimal() else None


def _digest(prompt: Any, inputs: Sequence[str | None] | None) -> str | None:
    """Null where a system could not be given what the sample consists of."""
    if prompt is None or inputs is None or None in inputs:
        return None
    return sample_digest(prompt, [each for each in inputs if each is not None])


BATCH_ROWS = 100
MISSING = {
    "column": STRING,
    "position": Value("int32"),
    "media": STRING,
    "reason": STRING,
    "detail": STRING,
}
ADDED = {**dict.fromkeys(MEDIA_COLUMNS.values(), STRINGS), "missing_images": List(MISSING)}


class MissingImagesWarning(UserWarning):
    """Some images of a dataset could not be had."""


def read_official(
    folder: Path, config: str, repo_id: str, images: OfficialImages | None = None
) -> Dataset:
    files = sorted((folder / config).glob("*.parquet"))
    if not files:
        raise ReleaseError(
            unknown("config", config, _named_configs(folder), f"dataset {repo_id!r}")
        )
    images = images or OfficialImages()
    named = FetchedImages(images.store, images.fetch(_media(files)))
    provenance = json.dumps({"dataset": repo_id, "revision": folder.name})
    try:
        rows = [our_row(row, named, provenance) for row in _rows(files)]
        table = pa.Table.from_pylist(rows, schema=_features(files[0]).arrow_schema)
    except (pa.ArrowException, AttributeError, KeyError, TypeError, ValueError) as error:
        said = " ".join(str(error).split())
        raise ReleaseError(
            f"dataset {repo_id!r} has another layout than that of ECHO's authors ({said}): load it "
            "with datasets.load_dataset"
        ) from error
    _warn(rows, repo_id)
    return Dataset(table, split=SPLIT)


def _features(file: Path) -> Features:
    ours: dict[str, Any] = {**release_features(), **ADDED}
    theirs = Features.from_arrow_schema(pq.read_schema(file))
    return Features({**ours, **{name: theirs[name] for name in theirs if name not in ours}})


def _rows(files: Iterable[Path]) -> Iterator[dict[str, Any]]:
    for file in files:
        for batch in pq.ParquetFile(file).iter_batches(BATCH_ROWS):
            yield from batch.to_pylist()


def _media(files: Sequence[Path]) -> Iterator[str]:
    """The names of all images that are named."""
    for file in files:
        types = pq.read_schema(file)
        named = [name for name in MEDIA_COLUMNS if name in types.names]
        lists = [name for name in named if _is_list_of_names(types.field(name).type)]
        for column in pq.read_table(file, columns=lists).columns:
            yield from pc.list_flatten(column).drop_null().unique().to_pylist()


def _is_list_of_names(kind: pa.DataType) -> bool:
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return is_list and kind.value_type in (pa.string(), pa.large_string())


def _warn(rows: Sequence[Mapping[str, Any]], repo_id: str) -> None:
    missing = Counter(each["reason"] for row in rows for each in row["missing_images"])
    if missing:
        reasons = ", ".join(f"{reason} {count}" for reason, count in missing.most_common())
        warnings.warn(
            f"{missing.total()} images of {repo_id!r} could not be fetched ({reasons}): they are "
            "null, and missing_images says which and why",
            MissingImagesWarning,
            stacklevel=4,
        )


def _named_configs(folder: Path) -> list[str]:
    try:
        named = DatasetCard.load(folder / CARD).data.to_dict().get("configs") or []
        return [str(each["config_name"]) for each in named]
    except Exception:  # it is anybody's card, and only for a hint
        return []
