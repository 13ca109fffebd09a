"""Read the dataset of ECHO's authors, which names images and holds none, as one of ours."""

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

from echo_hf._infra.atomic import stored_rows
from echo_hf._infra.parquet import opened_parquet, read_footer, schema_of
from echo_hf.collect.fetch import FetchResult, Resolver, fetch_images, resolve
from echo_hf.config.collection import FetchPolicy
from echo_hf.errors import ReleaseError
from echo_hf.hub.manifest import SPLIT, UNREADABLE
from echo_hf.images.embedded import check_embedded
from echo_hf.images.store import ImageStore
from echo_hf.reasons import Notice, Reason
from echo_hf.samples.boxes import cut_box, get_inner_box, rotate_upright
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
MISSING = {"column": STRING, "position": Value("int32"), "media": STRING}
ADDED = {
    "input_media": STRINGS,
    "output_media": STRINGS,
    "missing_images": List({**MISSING, "reason": STRING, "detail": STRING}),
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
    resolve: Resolver = resolve

    def fetch(self, names: Iterable[str]) -> Mapping[str, FetchResult]:
        """Fetches images by their addresses, or by tokens from the places where media are."""
        found: dict[str, FetchResult] = {}
        left = list(dict.fromkeys(names))
        for place in self.media:
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
        raise ReleaseError(f"dataset {repo_id!r} has no config {config!r}: see its page for others")
    images = images or OfficialImages()
    provenance = json.dumps({"dataset": repo_id, "revision": folder.name})
    missing = Counter[str]()

    def rows(found: Mapping[str, FetchResult]) -> Iterator[pa.Table]:
        for batch in _batches(files, folder):
            for row in batch.to_pylist():
                ours = {**our_row(row, images.store, found), "provenance": provenance}
                missing.update(one["reason"] for one in ours["missing_images"])
                yield pa.Table.from_pylist([ours], schema=schema)

    try:
        # Without the features that it names itself: some open a path when a row is looked at.
        theirs = Features.from_arrow_schema(schema_of(read_footer(files[0], folder)))
        features = {**theirs, **release_features(), **ADDED}
        order = [*release_features(), *ADDED, *theirs]
        schema = Features({name: features[name] for name in order}).arrow_schema
        found = images.fetch(_media(files, folder))
        images.store.root.mkdir(parents=True, exist_ok=True)
        table = stored_rows(rows(found), schema, images.store.root / f"{config}.arrow")
    except (*UNREADABLE, AttributeError, KeyError, TypeError) as error:
        said = " ".join(str(error).split())
        raise ReleaseError(
            f"dataset {repo_id!r} has another layout than that of ECHO's authors ({said}): load it "
            "with datasets.load_dataset"
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


def _batches(files: Iterable[Path], folder: Path) -> Iterator[pa.RecordBatch]:
    for file in files:
        with opened_parquet(file, folder) as opened:
            for batch in opened.batches(rows=BATCH_ROWS):
                check_embedded(batch)
                yield batch


def _media(files: Iterable[Path], folder: Path) -> Iterator[str]:
    for batch in _batches(files, folder):
        for column in filter(batch.schema.names.__contains__, COLUMNS):
            for names in batch[column].to_pylist():
                if isinstance(names, list):
                    yield from (name for name in names if isinstance(name, str))


def our_row(official: Row, store: ImageStore, found: Mapping[str, FetchResult]) -> Row:
    row: Row = {**official, "screenshot": None, "sample_digest": None, "post_urls": None}
    lost: list[Row] = []
    unread: list[Row] = []
    digests: dict[str, list[str | None]] = {}
    for column, (media_column, box_column) in COLUMNS.items():
        media, boxes = official.get(column), boxes_of(official.get(box_column))
        row |= {media_column: media, box_column: boxes, column: None}
        if isinstance(boxes, str):
            row[box_column] = None
            unread.append({"column": box_column, "reason": str(Notice.BAD_FIELD), "detail": boxes})
        if media is not None:
            cuts = boxes if official.get("is_screenshot") else None
            digests[column] = []
            for position, name in enumerate(media):
                for digest, reason, detail in shown_images(name, cuts, store, found):
                    if reason is not None:
                        at = {"column": column, "position": position, "media": name}
                        lost.append({**at, "reason": str(reason), "detail": detail})
                    if reason is not Notice.DEGENERATE_BOX:
                        digests[column].append(digest)
            row[column] = [_image(digest, store) for digest in digests[column]]
    row["missing_images"] = lost + unread
    if official.get("is_screenshot") and official.get("input_images"):
        row["screenshot"] = _image(found[official["input_images"][0]].sha256, store)
    if address := _address(official.get("post_id")):
        row["post_urls"] = [address]
    feedback = official.get("community_feedback")
    said = json.loads(feedback or "null") if isinstance(feedback, str) else feedback
    row["community_feedback"] = said and [
        {
            **{name: one.get(name) for name in SAMPLES.features["community_feedback"].feature},
            "post_url": one.get("post_url") or _address(one.get("post_id")),
        }
        for one in said
    ]
    prompt, inputs = official.get("prompt"), digests.get("input_images", [None])
    # Null where a system could not be given what the sample consists of.
    if prompt is not None and None not in inputs:
        row["sample_digest"] = sample_digest(prompt, [str(digest) for digest in inputs])
    return row


def _image(digest: str | None, store: ImageStore) -> Row | None:
    return None if digest is None else {"bytes": store.open(digest), "path": None}


def _address(post_id: Any) -> str | None:
    """All its posts are from X, where a number is all that names one."""
    digits = str(post_id)
    return f"https://x.com/i/status/{digits}" if digits.isdecimal() else None


def shown_images(
    name: str, boxes: Boxes | str | None, store: ImageStore, found: Mapping[str, FetchResult]
) -> Iterator[tuple[str | None, Reason | None, str]]:
    """The image of a name, of a screenshot the parts that its boxes show, or why there is none."""
    result = found.get(name) if isinstance(name, str) else None
    if result is None:
        raise ValueError(f"expected a list of names of images, found {repr(name)[:80]}")
    if isinstance(boxes, str):
        yield None, Notice.BAD_FIELD, f"boxes {boxes}"
    elif result.sha256 is None or not boxes:
        yield from [(result.sha256, result.reason, result.detail)] * max(1, len(boxes or ()))
    else:
        image = rotate_upright(store.open(result.sha256))
        for box in boxes:
            if inside := inset_box(box, image.size):
                yield store.put(cut_box(image, inside)), None, ""
            else:
                said = f"box {box!r} in {image.width} x {image.height} pixels"
                yield None, Notice.DEGENERATE_BOX, said


def boxes_of(value: Any) -> Boxes | str | None:
    """Boxes as the dataset has them, a list or the text of one; or what is wrong with them."""
    try:
        boxes = json.loads(_as_json(value) or "null") if isinstance(value, str) else value
        found = None if boxes is None else [[float(number) for number in box] for box in boxes]
    except (TypeError, ValueError, OverflowError, RecursionError):
        return f"{str(value)[:80]!r}: expected a list of boxes"
    if any(len(box) != 4 or not all(map(math.isfinite, box)) for box in found or ()):
        return f"{str(value)[:80]!r}: expected four finite numbers a box"
    return found


def _as_json(boxes: str) -> str:
    """The text of boxes as JSON, also where Python wrote it, with tuples."""
    return re.sub(r",\s*\]", "]", boxes.replace("(", "[").replace(")", "]"))


def inset_box(box: Sequence[float], size: tuple[int, int]) -> tuple[int, int, int, int] | None:
    """The part of a box that is shown: without its edge, and inside the image."""
    # Rounded before its edge is left out, as their loader does.
    left, top, right, bottom = (round(number) for number in box)
    left, top, right, bottom = get_inner_box((left, top, right, bottom), INSET)
    left, top = max(left, 0), max(top, 0)
    right, bottom = min(right, size[0]), min(bottom, size[1])
    return (left, top, right, bottom) if left < right and top < bottom else None
