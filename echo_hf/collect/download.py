"""Fetch the images that posts name by address, and link copies among them (section 3.1)."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from echo_hf.collect.collect import ImageEntry, join_images
from echo_hf.collect.fetch import (
    FETCH_LEDGER_FILE,
    FetchResult,
    Unfetched,
    dedupe_urls,
    fetch_images,
    ledger_digest,
    read_ledger,
)
from echo_hf.collect.sources.base import PostNotice
from echo_hf.config.collection import FetchPolicy
from echo_hf.images.loader import BadImageError, PixelSize, is_large, load_rgb, open_image
from echo_hf.images.similarity import (
    BLOCKS,
    CHANNELS,
    BlockSignature,
    SignatureIndex,
    compute_signature,
    has_same_details,
    is_same_shape,
    match_colors,
)
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.stage import (
    RowIssue,
    Stage,
    issue_rows,
    keep_rows,
    order_rows,
    parent_lists,
    register,
)
from echo_hf.tables import THREADS, Table, arrow_rows

if TYPE_CHECKING:
    from datasets import Dataset

    from echo_hf.pipeline.progress import ProgressListener
    from echo_hf.pipeline.result import StageStats


THREAD_POSTS_TYPE = THREADS.schema.field("posts").type
IMAGES_OF_POST = THREAD_POSTS_TYPE.value_type.field("pictures").type
CompareProgress = Callable[[int, int], None]
IMAGES_PER_COMPARISON = 4096
ALL_THREADS = -1  # stands for all threads among their numbers


@register
@dataclass(frozen=True)
class Download(Stage):
    """Gives the images of kept threads their digests, and says which are copies of which.

    `prepared` fetches; calling the stage fetches nothing, and reads the result for each address
    from the ledger. An unavailable image stays without a digest, with a notice that says why. An
    image is linked to the earliest image, by the time of its post, of which it is a compressed or
    scaled copy: in its own thread, else in all; never in the same post, whose similar images are
    what people compare. So the links within a thread depend on that thread alone. Nothing is
    dropped: links are for counting images.

    Attributes:
        images: Where the bytes go; the ledger lies beside it.
        fetch: Whether images are fetched.
        limits: Limits of sizes, times and places.
        compared: Called with the number of compared images, and of all.
    """

    name: ClassVar[str] = "download"
    version: ClassVar[int] = 2
    after: ClassVar[str | None] = "threads"
    inputs: ClassVar[Table] = THREADS
    outputs: ClassVar[Table] = THREADS
    whole: ClassVar[bool] = True

    images: ImageStore = field(metadata={"digest": False})
    fetch: bool = field(default=True, metadata={"digest": False})
    limits: FetchPolicy = field(default_factory=FetchPolicy)
    compared: CompareProgress | None = field(default=None, metadata={"digest": False})

    @classmethod
    def headline(cls, stats: Mapping[str, StageStats]) -> str | None:
        """Say how many images there are, how many are unavailable, how many are copies."""
        tally = stats["download"].tally
        return (
            f"{tally.get('pictures', 0):,} images in the kept threads, "
            f"{tally.get('not_there', 0):,} of them unavailable, "
            f"{tally.get('copies', 0):,} copies of others"
        )

    def prepared(self, dataset: Dataset, *, offline: bool, watch: ProgressListener) -> Self:
        """Fetch the images that are named by address only and were not fetched before."""
        if self.fetch and not offline:
            for _ in fetch_images(
                _list_addresses(dataset),
                self.images,
                policy=self.limits,
                progress=lambda stats: watch.report_progress(
                    "pictures", stats.done, stats, stats.total
                ),
            ):
                pass

        def report_compared(done: int, total: int) -> None:
            watch.report_progress("compared", done, "images looked at for copies", total)

        return dataclasses.replace(self, compared=report_compared)

    def list_ledger_names(self, dataset: Dataset) -> list[str]:
        """Return the addresses of these threads' images as the ledger spells them."""
        return list(dict.fromkeys(dedupe_urls(_list_addresses(dataset), self.limits)[0].values()))

    def describe(self) -> dict[str, Any]:
        """Return everything that decides the result, with what the ledger has of each address."""
        return {**super().describe(), "fetched": ledger_digest(self._ledger)}

    def __call__(self, table: pa.Table) -> pa.Table:
        """Return the threads with their images' digests, and a notice for each missing image."""
        trees, roots = table["posts"].combine_chunks(), table["root_url"].combine_chunks()
        posts, threads = trees.flatten(), pc.list_parent_indices(trees).to_pylist()
        images_of_posts, noted = _read_images(posts), list[tuple[int, RowIssue]]()
        results = self._read_results(_select_unfetched(images_of_posts))
        lists: list[list[dict[str, Any]]] = []
        for thread, images in zip(threads, images_of_posts, strict=True):
            filled = []
            for post_image in images:
                fetched = None if post_image["sha256"] else results.get(post_image["url"])
                filled.append({**post_image, "sha256": fetched.sha256} if fetched else post_image)
                if fetched and fetched.reason:
                    detail = f"{post_image['url']} {fetched.detail}".strip()
                    noted.append((thread, RowIssue([], fetched.reason, detail)))
            lists.append(join_images(filled))
        owners = _group_by_digest(posts, lists, threads)
        copies = self._find_copies(owners, noted)
        for thread, known_images in zip(threads, lists, strict=True):
            own_digests = {None, *(known_image["sha256"] for known_image in known_images)}
            for image in known_images:
                own, other = (copies[scope].get(image["sha256"]) for scope in (thread, ALL_THREADS))
                # If the two originals differ, the thread's own counts.
                links = [own] if other in owners[thread] else [own, other]
                first = next((digest for digest in links if digest not in own_digests), None)
                image["same_picture_of"] = first
        noted.sort(key=itemgetter(0))
        remarks = [dataclasses.replace(issue, parents=[roots[row].as_py()]) for row, issue in noted]
        columns = pa.table([roots, _replace_images(trees, posts, lists)], schema=THREADS.schema)
        kept = keep_rows(columns, parent_lists(roots))
        issues = [row for row, _ in noted], issue_rows(THREADS, remarks)
        return order_rows([(range(len(roots)), kept), issues])

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        """Count the images, those that are unavailable, and the copies."""
        posts = pc.list_flatten(kept["posts"])
        images = pc.list_flatten(pc.struct_field(posts, "pictures"))
        digests = pc.struct_field(images, "sha256")
        copies = pc.struct_field(images, "same_picture_of")
        return {
            "pictures": len(images),
            "not_there": digests.null_count,
            "copies": len(copies) - copies.null_count,
        }

    @property
    def _ledger(self) -> Path:
        return self.images.root.with_name(FETCH_LEDGER_FILE)

    def _read_results(self, urls: Iterable[str]) -> dict[str, FetchResult]:
        """Read the result for each address from the ledger, under the spelling that was given."""
        normalized, results = dedupe_urls(urls, self.limits)
        known_results = read_ledger(self._ledger, list(dict.fromkeys(normalized.values())))
        for url, name in normalized.items():
            result = known_results.get(name)
            if result is None or (result.sha256 and not self.images.path(result.sha256).exists()):
                result = FetchResult(url, None, Unfetched.NOT_REQUESTED)
            results[url] = result
        return results

    def _find_copies(
        self, owners: Mapping[int, Mapping[str, int]], noted: list[tuple[int, RowIssue]]
    ) -> Mapping[int, Mapping[str, str]]:
        """Return, for each thread and for all of them, the original of each copy."""

        def note_unreadable(digest: str, error: BadImageError) -> None:
            issue = RowIssue([], PostNotice.BROKEN_IMAGE, f"{digest}: {error}")
            noted.append((owners[ALL_THREADS][digest], issue))

        files = {digest: self.images.path(digest) for digest in owners[ALL_THREADS]}
        signatures = ImageSignatures(files, note_unreadable, self.compared)
        copies = {scope: signatures.find_copies(digests) for scope, digests in owners.items()}
        return defaultdict(dict, copies)


def _read_images(posts: pa.StructArray) -> list[list[ImageEntry]]:
    return [images or [] for images in pc.struct_field(posts, "pictures").to_pylist()]


def _list_addresses(dataset: Dataset) -> dict[str, None]:
    trees = arrow_rows(dataset, ["posts"])["posts"]
    return _select_unfetched(_read_images(trees.combine_chunks().flatten()))


def _select_unfetched(image_lists: Iterable[Sequence[ImageEntry]]) -> dict[str, None]:
    """Return the addresses of images without a digest, each once, in order."""
    images = (image for images in image_lists for image in images)
    return dict.fromkeys(image["url"] for image in images if image["url"] and not image["sha256"])


def _group_by_digest(
    posts: pa.StructArray, linked: Sequence[Sequence[ImageEntry]], threads: Sequence[int]
) -> Mapping[int, Mapping[str, int]]:
    """Group images by thread and over all, earliest first, with the first thread of each."""
    times = pc.struct_field(posts, "timestamp").cast(pa.int64()).to_pylist()
    urls = pc.struct_field(posts, "url").to_pylist()
    moments = [(time is None, time or 0, url) for time, url in zip(times, urls, strict=True)]
    owners: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for post in sorted(range(len(moments)), key=moments.__getitem__):
        for digest in filter(None, (image["sha256"] for image in linked[post])):
            for scope in (ALL_THREADS, threads[post]):
                owners[scope].setdefault(digest, threads[post])
    return owners


def _replace_images(
    trees: pa.ListArray, posts: pa.StructArray, images: Sequence[Sequence[ImageEntry]]
) -> pa.ListArray:
    fields = list(THREAD_POSTS_TYPE.value_type)
    arrays = [
        pa.array(images, IMAGES_OF_POST)
        if column.name == "pictures"
        else pc.struct_field(posts, column.name)
        for column in fields
    ]
    lengths = pc.list_value_length(trees).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.cumsum([0, *lengths]), pa.int32())
    values = pa.StructArray.from_arrays(arrays, fields=fields)
    return pa.ListArray.from_arrays(offsets, values).cast(THREAD_POSTS_TYPE)


class ImageSignatures:
    """Signatures of images, by which copies are found; unreadable images are only reported."""

    def __init__(
        self,
        images: Mapping[str, Path],
        on_unreadable: Callable[[str, BadImageError], None],
        progress: CompareProgress | None = None,
    ) -> None:
        means = np.empty((len(images), BLOCKS, BLOCKS, CHANNELS), np.float16)
        contrasts = np.empty(means.shape, np.uint8)
        self._images, self._rows = images, dict[str, int]()
        self._sizes: list[PixelSize] = []
        with ThreadPoolExecutor() as pool:
            signatures = zip(images, pool.map(_compute_signature, images.values()), strict=True)
            for done, (name, signature) in enumerate(signatures, 1):
                result = signature or _compute_signature(images[name], alone=True)
                if isinstance(result, BlockSignature):
                    row = self._rows.setdefault(name, len(self._rows))
                    means[row], contrasts[row] = result.means, result.contrasts
                    self._sizes.append(result.size)
                elif result is not None:
                    on_unreadable(name, result)
                if progress is not None:
                    progress(done, len(images))
        self._means, self._contrasts = means[: len(self._rows)], contrasts[: len(self._rows)]

    def find_copies(self, digests: Iterable[str]) -> dict[str, str]:
        """Map each copy to its original, which is the first of the images that are alike."""
        names = [name for name in digests if name in self._rows]
        if len(names) < 2:
            return {}
        rows = [self._rows[name] for name in names]
        sizes, images = [self._sizes[row] for row in rows], self._images
        # A slice copies no array when all rows are selected.
        at = slice(None) if rows == list(range(len(self._rows))) else rows
        means, contrasts = self._means[at], self._contrasts[at]
        index = SignatureIndex(means, contrasts)
        first_of: dict[int, int] = {}
        for first in range(len(names)):
            if first in first_of:
                continue
            free = (
                other for other in index.find_near(first) if other > first and other not in first_of
            )
            likely = [other for other in free if is_same_shape(sizes[first], sizes[other])]
            similar: list[int] = []
            for start in range(0, len(likely), IMAGES_PER_COMPARISON):
                part = np.array(likely[start : start + IMAGES_PER_COMPARISON])
                fine = match_colors(means[first], contrasts[first], means[part], contrasts[part])
                similar += map(int, part[fine])
            if similar:
                original = load_rgb(images[names[first]])
                for candidate in similar:
                    if has_same_details(original, load_rgb(images[names[candidate]])):
                        first_of[candidate] = first
        return {names[copy]: names[first] for copy, first in first_of.items()}


def _compute_signature(path: Path, *, alone: bool = False) -> BlockSignature | BadImageError | None:
    """Compute an image's signature; null for a large image, which has to be decoded alone."""
    try:
        with open_image(path) as image:
            is_deferred = is_large(image.size) and not alone
        return None if is_deferred else compute_signature(path)
    except BadImageError as error:
        return error
