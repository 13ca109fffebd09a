"""Read the dataset of ECHO's authors, which names images and holds none, as a release."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from datasets import Dataset, Features, List, Value
from datasets.utils import tqdm
from huggingface_hub import cached_assets_path

from echo_hf._infra.atomic import store_rows
from echo_hf._infra.parquet import open_parquet, read_footer, read_schema
from echo_hf.collect.fetch import FetchResult, Resolver, fetch_images, resolve
from echo_hf.collect.sources.base import PostNotice
from echo_hf.config.collection import FetchPolicy
from echo_hf.errors import ReleaseError
from echo_hf.hub.manifest import READ_ERRORS, SPLIT
from echo_hf.images.embedded import check_embedded
from echo_hf.images.store import ImageStore
from echo_hf.reasons import Reason
from echo_hf.samples.boxes import BoxNotice, cut_box, get_inner_box, rotate_upright
from echo_hf.samples.sample import sample_digest
from echo_hf.tables import SAMPLES, STRING, STRINGS, release_features

MutableRow = dict[str, Any]
BoxList = list[list[float]]
# Its own loader leaves out so many pixels along each side of a box.
INSET_PIXELS = 10
BATCH_ROWS = 100
# The first gives the size that was measured with, the second is for what the first does not have.
MEDIA = ("https://pbs.twimg.com/media/{token}?format=jpg", "https://pbs.twimg.com/media/{token}")
# By column, where the names of the images are kept, and where their boxes are.
MEDIA_COLUMN_NAMES = {
    "input_images": ("input_media", "input_bboxs"),
    "output_images": ("output_media", "output_bboxs"),
}
MISSING_FIELDS = {"column": STRING, "position": Value("int32"), "media": STRING}
MEDIA_COLUMNS = {
    "input_media": STRINGS,
    "output_media": STRINGS,
    "missing_images": List({**MISSING_FIELDS, "reason": STRING, "detail": STRING}),
}


class MissingImagesWarning(UserWarning):
    """Some images of a dataset could not be fetched."""


def open_cache() -> ImageStore:
    """Open the image store in huggingface_hub's cache for other libraries."""
    return ImageStore(cached_assets_path("echo-hf", subfolder="fetched") / "pictures")


@dataclass(frozen=True)
class OfficialImages:
    """How the images of a dataset in the authors' layout are fetched, and where they are kept."""

    store: ImageStore = field(default_factory=open_cache)
    policy: FetchPolicy = field(default_factory=FetchPolicy)
    media: tuple[str, ...] = MEDIA
    resolve: Resolver = resolve

    def fetch(self, names: Iterable[str]) -> Mapping[str, FetchResult]:
        """Fetch images by their addresses, or by tokens from the media servers."""
        results: dict[str, FetchResult] = {}
        remaining = list(dict.fromkeys(names))
        for template in self.media:
            addresses = {
                name: name if "://" in name else template.format(token=quote(name, safe=""))
                for name in remaining
            }
            urls = list(dict.fromkeys(addresses.values()))
            fetched = fetch_images(urls, self.store, policy=self.policy, resolve=self.resolve)
            progress = tqdm(fetched, total=len(urls), desc="Fetching images", unit=" images")
            by_address = {result.url: result for result in progress}
            results.update({name: by_address[address] for name, address in addresses.items()})
            remaining = [
                name for name in remaining if not results[name].sha256 and "://" not in name
            ]
            if not remaining:
                break
        return results


def read_official(
    folder: Path, config: str, repo_id: str, images: OfficialImages | None = None
) -> Dataset:
    """Read a config of the authors' dataset, with its images fetched and cut."""
    files = sorted((folder / config).glob("*.parquet"))
    if not files:
        raise ReleaseError(f"dataset {repo_id!r} has no config {config!r}: see its page for others")
    images = images or OfficialImages()
    provenance = json.dumps({"dataset": repo_id, "revision": folder.name})
    missing = Counter[str]()

    def iterate_tables(results: Mapping[str, FetchResult]) -> Iterator[pa.Table]:
        for batch in _iterate_batches(files, folder):
            for row in batch.to_pylist():
                converted = {**convert_row(row, images.store, results), "provenance": provenance}
                missing.update(lost_image["reason"] for lost_image in converted["missing_images"])
                yield pa.Table.from_pylist([converted], schema=schema)

    try:
        # Without the features that it names itself: some open a path when a row is looked at.
        own_features = Features.from_arrow_schema(read_schema(read_footer(files[0], folder)))
        features = {**own_features, **release_features(), **MEDIA_COLUMNS}
        order = [*release_features(), *MEDIA_COLUMNS, *own_features]
        schema = Features({name: features[name] for name in order}).arrow_schema
        results = images.fetch(_iterate_media(files, folder))
        images.store.root.mkdir(parents=True, exist_ok=True)
        table = store_rows(iterate_tables(results), schema, images.store.root / f"{config}.arrow")
    except (*READ_ERRORS, AttributeError, KeyError, TypeError) as error:
        message = " ".join(str(error).split())
        raise ReleaseError(
            f"dataset {repo_id!r} has another layout than that of ECHO's authors ({message}): load "
            "it with datasets.load_dataset"
        ) from error
    if missing:
        reasons = ", ".join(f"{reason} {count}" for reason, count in missing.most_common())
        warnings.warn(
            f"{missing.total()} images of {repo_id!r} could not be fetched ({reasons}): they are "
            "null, and missing_images says which and why",
            MissingImagesWarning,
            stacklevel=3,
        )
    return Dataset(table, split=SPLIT)


def _iterate_batches(files: Iterable[Path], folder: Path) -> Iterator[pa.RecordBatch]:
    for file in files:
        with open_parquet(file, folder) as parquet:
            for batch in parquet.iterate_batches(rows=BATCH_ROWS):
                check_embedded(batch)
                yield batch


def _iterate_media(files: Iterable[Path], folder: Path) -> Iterator[str]:
    for batch in _iterate_batches(files, folder):
        for column in filter(batch.schema.names.__contains__, MEDIA_COLUMN_NAMES):
            for names in batch[column].to_pylist():
                if isinstance(names, list):
                    yield from (name for name in names if isinstance(name, str))


def convert_row(
    official: MutableRow, store: ImageStore, results: Mapping[str, FetchResult]
) -> MutableRow:
    row: MutableRow = {**official, "screenshot": None, "sample_digest": None, "post_urls": None}
    lost: list[MutableRow] = []
    unread: list[MutableRow] = []
    digests: dict[str, list[str | None]] = {}
    for column, (media_column, box_column) in MEDIA_COLUMN_NAMES.items():
        media, boxes = official.get(column), parse_boxes(official.get(box_column))
        row |= {media_column: media, box_column: boxes, column: None}
        if isinstance(boxes, str):
            row[box_column] = None
            unread.append(
                {"column": box_column, "reason": str(PostNotice.BAD_FIELD), "detail": boxes}
            )
        if media is not None:
            cuts = boxes if official.get("is_screenshot") else None
            digests[column] = []
            for position, name in enumerate(media):
                for digest, reason, detail in cut_official_images(name, cuts, store, results):
                    if reason is not None:
                        position_fields = {"column": column, "position": position, "media": name}
                        lost.append({**position_fields, "reason": str(reason), "detail": detail})
                    if reason is not BoxNotice.DEGENERATE_BOX:
                        digests[column].append(digest)
            row[column] = [_embed_image(digest, store) for digest in digests[column]]
    row["missing_images"] = lost + unread
    if official.get("is_screenshot") and official.get("input_images"):
        row["screenshot"] = _embed_image(results[official["input_images"][0]].sha256, store)
    if address := _make_address(official.get("post_id")):
        row["post_urls"] = [address]
    feedback = official.get("community_feedback")
    comments = json.loads(feedback or "null") if isinstance(feedback, str) else feedback
    row["community_feedback"] = comments and [
        {
            **{name: comment.get(name) for name in SAMPLES.features["community_feedback"].feature},
            "post_url": comment.get("post_url") or _make_address(comment.get("post_id")),
        }
        for comment in comments
    ]
    prompt, inputs = official.get("prompt"), digests.get("input_images", [None])
    # Null where a system could not be given what the sample consists of.
    if prompt is not None and None not in inputs:
        row["sample_digest"] = sample_digest(prompt, [str(digest) for digest in inputs])
    return row


def _embed_image(digest: str | None, store: ImageStore) -> MutableRow | None:
    return None if digest is None else {"bytes": store.open(digest), "path": None}


def _make_address(post_id: Any) -> str | None:
    """Return a post's address; all are on X, where the id alone names one."""
    digits = str(post_id)
    return f"https://x.com/i/status/{digits}" if digits.isdecimal() else None


def cut_official_images(
    name: str, boxes: BoxList | str | None, store: ImageStore, results: Mapping[str, FetchResult]
) -> Iterator[tuple[str | None, Reason | None, str]]:
    """Yield the image of a name, cut to its boxes, or the reason why there is none."""
    result = results.get(name) if isinstance(name, str) else None
    if result is None:
        raise ValueError(f"expected a list of names of images, found {repr(name)[:80]}")
    if isinstance(boxes, str):
        yield None, PostNotice.BAD_FIELD, f"boxes {boxes}"
    elif result.sha256 is None or not boxes:
        yield from [(result.sha256, result.reason, result.detail)] * max(1, len(boxes or ()))
    else:
        image = rotate_upright(store.open(result.sha256))
        for box in boxes:
            if shrunk := shrink_box(box, image.size):
                yield store.put(cut_box(image, shrunk)), None, ""
            else:
                detail = f"box {box!r} in {image.width} x {image.height} pixels"
                yield None, BoxNotice.DEGENERATE_BOX, detail


def parse_boxes(value: Any) -> BoxList | str | None:
    """Parse boxes from a list or its text, or return what is wrong with them."""
    try:
        boxes = json.loads(_to_json(value) or "null") if isinstance(value, str) else value
        parsed = None if boxes is None else [[float(number) for number in box] for box in boxes]
    except (TypeError, ValueError, OverflowError, RecursionError):
        return f"{str(value)[:80]!r}: expected a list of boxes"
    if any(len(box) != 4 or not all(map(math.isfinite, box)) for box in parsed or ()):
        return f"{str(value)[:80]!r}: expected four finite numbers a box"
    return parsed


def _to_json(boxes: str) -> str:
    """Convert the text of boxes to JSON, also where Python wrote it, with tuples."""
    return re.sub(r",\s*\]", "]", boxes.replace("(", "[").replace(")", "]"))


def shrink_box(box: Sequence[float], size: tuple[int, int]) -> tuple[int, int, int, int] | None:
    """Return the shown part of a box: without its edge, and inside the image."""
    # Rounded before its edge is left out, as their loader does.
    left, top, right, bottom = (round(number) for number in box)
    left, top, right, bottom = get_inner_box((left, top, right, bottom), INSET_PIXELS)
    left, top = max(left, 0), max(top, 0)
    right, bottom = min(right, size[0]), min(bottom, size[1])
    return (left, top, right, bottom) if left < right and top < bottom else None
