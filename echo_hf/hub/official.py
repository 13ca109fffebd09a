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
from echo_hf.errors import ReleaseError, unknown
from echo_hf.hub.manifest import CARD, SPLIT
from echo_hf.images.store import ImageStore
from echo_hf.reasons import Notice, Reason
from echo_hf.samples.boxes import cut, inner, upright
from echo_hf.samples.sample import sample_digest
from echo_hf.tables import SAMPLES, STRING, STRINGS, release_features

Row = dict[str, Any]
Boxes = list[list[float]]
# Its own loader leaves out so many pixels along each side of a box.
INSET = 10
BATCH_ROWS = 100
# The first gives the size that was measured with, the second is for what the first does not have.
MEDIA = ("https://pbs.twimg.com/media/{token}?format=jpg", "https://pbs.twimg.com/media/{token}")
# By column, where the names of the images are kept, and where their boxes are.
COLUMNS = {
    "input_images": ("input_media", "input_bboxs"),
    "output_images": ("output_media", "output_bboxs"),
}
ADDED = {
    "input_media": STRINGS,
    "output_media": STRINGS,
    "missing_images": List(
        {
            "column": STRING,
            "position": Value("int32"),
            "media": STRING,
            "reason": STRING,
            "detail": STRING,
        }
    ),
}


class MissingImagesWarning(UserWarning):
    """Some images of a dataset could not be had."""


def kept_images() -> ImageStore:
    """The store in the part of huggingface_hub's cache that is for what other libraries make."""
    return ImageStore(cached_assets_path("echo-hf", subfolder="fetched") / "pictures")


@dataclass(frozen=True)
class OfficialImages:
    """How the images of a dataset in the authors' layout are fetched, and where they are kept."""

    store: ImageStore = field(default_factory=kept_images)
    policy: FetchPolicy = field(default_factory=FetchPolicy)
    media: tuple[str, ...] = MEDIA
    resolve: Resolve = resolve

    def fetch(self, names: Iterable[str]) -> Mapping[str, FetchResult]:
        """Fetches images by their addresses, or by tokens from the places where media are."""
        found: dict[str, FetchResult] = {}
        left = list(dict.fromkeys(names))
        for place in self.media if left else ():
            at = {
                name: name if "://" in name else place.format(token=quote(name, safe=""))
                for name in left
            }
            asked = list(dict.fromkeys(at.values()))
            results = fetch_images(asked, self.store, policy=self.policy, resolve=self.resolve)
            shown = tqdm(results, total=len(asked), desc="Fetching images", unit=" images")
            by_address = {result.url: result for result in shown}
            found.update({name: by_address[address] for name, address in at.items()})
            left = [name for name in left if not found[name].sha256 and "://" not in name]
            if not left:
                break
        return found


def read_official(
    folder: Path, config: str, repo_id: str, images: OfficialImages | None = None
) -> Dataset:
    """A config of a downloaded dataset with our columns, its images fetched and cut."""
    files = sorted((folder / config).glob("*.parquet"))
    if not files:
        try:
            configs = DatasetCard.load(folder / CARD).data.to_dict().get("configs") or []
            named = [str(each["config_name"]) for each in configs]
        except Exception:  # it is anybody's card, and only for a hint
            named = []
        raise ReleaseError(unknown("config", config, named, f"dataset {repo_id!r}"))
    kinds = [one.type for one in pq.read_schema(files[0]) if one.name in COLUMNS]
    if any(_is_list(kind) and pa.types.is_struct(kind.value_type) for kind in kinds):
        raise ReleaseError(
            f"images of {repo_id!r} are embedded: expected their names; load it with "
            "datasets.load_dataset"
        )
    images = images or OfficialImages()
    found = images.fetch(_media(files))
    provenance = json.dumps({"dataset": repo_id, "revision": folder.name})
    batches = (batch for file in files for batch in pq.ParquetFile(file).iter_batches(BATCH_ROWS))
    try:
        theirs = Features.from_arrow_schema(pq.read_schema(files[0]))
        ours: dict[str, Any] = {**release_features(), **ADDED}
        others = {name: kind for name, kind in theirs.items() if name not in ours}
        schema = Features({**ours, **others}).arrow_schema
        rows = [
            our_row(row, images.store, found, provenance)
            for batch in batches
            for row in batch.to_pylist()
        ]
        table = pa.Table.from_pylist(rows, schema=schema)
    except (pa.ArrowException, AttributeError, KeyError, TypeError, ValueError) as error:
        said = " ".join(str(error).split())
        raise ReleaseError(
            f"dataset {repo_id!r} has another layout than that of ECHO's authors ({said}): load it "
            "with datasets.load_dataset"
        ) from error
    if missing := Counter(each["reason"] for row in rows for each in row["missing_images"]):
        reasons = ", ".join(f"{reason} {count}" for reason, count in missing.most_common())
        warnings.warn(
            f"{missing.total()} images of {repo_id!r} could not be fetched ({reasons}): they are "
            "null, and missing_images says which and why",
            MissingImagesWarning,
            stacklevel=3,
        )
    return Dataset(table, split=SPLIT)


def _media(files: Sequence[Path]) -> Iterator[str]:
    """The names of all images that are named."""
    for file in files:
        lists = [one for one in pq.read_schema(file) if one.name in COLUMNS and _is_list(one.type)]
        texts = (pa.string(), pa.large_string())
        named = [one.name for one in lists if one.type.value_type in texts]
        for column in pq.read_table(file, columns=named).columns:
            yield from pc.list_flatten(column).drop_null().unique().to_pylist()


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def our_row(
    official: Mapping[str, Any],
    store: ImageStore,
    found: Mapping[str, FetchResult],
    provenance: str,
) -> Row:
    """A row of the dataset with all our columns."""
    row: Row = {**official, "provenance": provenance, "screenshot": None, "missing_images": []}
    unread = []
    digests: dict[str, list[str | None] | None] = {}
    for column, (media_column, box_column) in COLUMNS.items():
        media, boxes = official.get(column), boxes_of(official.get(box_column))
        row[media_column] = media
        row[box_column] = None if isinstance(boxes, str) else boxes
        cuts = boxes if official.get("is_screenshot") else None
        digests[column] = row[column] = None
        if media is not None:
            shown = list(shown_images(media, cuts, store, found))
            row["missing_images"] += [
                {
                    "column": column,
                    "position": one.position,
                    "media": media[one.position],
                    "reason": str(one.reason),
                    "detail": one.detail,
                }
                for one in shown
                if one.reason is not None
            ]
            kept = [one.digest for one in shown if one.has_place]
            digests[column] = kept
            row[column] = [_image(digest, store) for digest in kept]
        if isinstance(boxes, str):
            lost = {"column": box_column, "position": None, "media": None, "detail": boxes}
            unread.append({**lost, "reason": str(Notice.BAD_FIELD)})
    row["missing_images"] += unread
    if official.get("is_screenshot") and official.get("input_images"):
        row["screenshot"] = _image(found[official["input_images"][0]].sha256, store)
    address = _address(official.get("post_id"))
    row["post_urls"] = None if address is None else [address]
    feedback = official.get("community_feedback")
    said = json.loads(feedback or "null") if isinstance(feedback, str) else feedback
    row["community_feedback"] = said and [
        {
            **{name: one.get(name) for name in SAMPLES.features["community_feedback"].feature},
            "post_url": one.get("post_url") or _address(one.get("post_id")),
        }
        for one in said
    ]
    prompt, inputs = official.get("prompt"), digests["input_images"]
    row["sample_digest"] = None
    # Null where a system could not be given what the sample consists of.
    if prompt is not None and inputs is not None and None not in inputs:
        row["sample_digest"] = sample_digest(prompt, list(filter(None, inputs)))
    return row


def _image(digest: str | None, store: ImageStore) -> Row | None:
    return None if digest is None else {"bytes": None, "path": str(store.path(digest))}


def _address(post_id: Any) -> str | None:
    """All its posts are from X, where a number is all that names one."""
    digits = str(post_id)
    return f"https://x.com/i/status/{digits}" if digits.isdecimal() else None


@dataclass(frozen=True)
class OfficialImage:
    """An image of a row, or why it is not there."""

    position: int
    digest: str | None
    reason: Reason | None = None
    detail: str = ""
    has_place: bool = True


def shown_images(
    media: Sequence[str],
    boxes: Boxes | str | None,
    store: ImageStore,
    found: Mapping[str, FetchResult],
) -> Iterator[OfficialImage]:
    """The images of a column; of a screenshot the parts that its boxes show."""
    for position, name in enumerate(media):
        result = found.get(name) if isinstance(name, str) else None
        if result is None:
            raise ValueError(f"expected a list of names of images, found {name!r}")
        if isinstance(boxes, str):
            yield OfficialImage(position, None, Notice.BAD_FIELD, f"boxes {boxes}")
        elif result.sha256 is None or not boxes:
            whole = OfficialImage(position, result.sha256, result.reason, result.detail)
            yield from [whole] * max(1, len(boxes or ()))
        else:
            image = upright(store.open(result.sha256))
            for box in boxes:
                inside = inset_box(box, image.size)
                if inside is None:
                    said = f"box {box!r} in {image.width} x {image.height} pixels"
                    reason = Notice.DEGENERATE_BOX
                    yield OfficialImage(position, None, reason, said, has_place=False)
                else:
                    yield OfficialImage(position, store.put(cut(image, inside)))


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
