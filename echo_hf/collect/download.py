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

from echo_hf.collect.collect import distinct_images
from echo_hf.collect.fetch import (
    LEDGER,
    FetchResult,
    fetch_images,
    ledger_digest,
    named_once,
    read_ledger,
)
from echo_hf.config.collection import FetchPolicy
from echo_hf.images.loader import BadImageError, is_large, load_rgb, open_image
from echo_hf.images.similarity import (
    BLOCKS,
    CHANNELS,
    BlockSignature,
    SignatureIndex,
    Size,
    block_signature,
    same_colors,
    same_details,
    same_shape,
)
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.stage import RowIssue, Stage, kept_rows, ordered, parents_of, row_issues
from echo_hf.reasons import Notice, Status, Unfetched
from echo_hf.tables import THREADS, Table, arrow_rows

if TYPE_CHECKING:
    from datasets import Dataset

    from echo_hf.config.loading import Config
    from echo_hf.pipeline.progress import ProgressListener
    from echo_hf.pipeline.result import StageStats


POSTS_OF_TREE = THREADS.schema.field("posts").type
IMAGES_OF_POST = POSTS_OF_TREE.value_type.field("pictures").type
ImageEntry = Mapping[str, Any]
Compared = Callable[[int, int], None]
COMPARED_AT_ONCE = 4096
ALL = -1  # among the numbers of threads


@dataclass(frozen=True)
class Download(Stage):
    """Gives the images of kept threads their digests, and says which are copies of which.

    `prepared` fetches; calling the stage asks nobody, and reads from the ledger what became of
    each address. An image that could not be had stays without a digest, with a notice that says
    why. An image is linked to the earliest one, by the time of its post, that it is a copy of,
    packed or scaled anew: in its own thread, else in all; never to one of the same post, whose
    near copies are what people compare. So what links a thread's images with each other depends
    on that thread alone. Nothing is dropped: links are for who counts images.

    Attributes:
        images: Where the bytes go; the ledger lies beside it.
        fetch: Whether anybody is asked.
        limits: Of sizes, times and places.
        compared: Told how many of all images were looked at for copies.
    """

    name: ClassVar[str] = "download"
    version: ClassVar[int] = 2
    inputs: ClassVar[Table] = THREADS
    outputs: ClassVar[Table] = THREADS
    whole: ClassVar[bool] = True

    images: ImageStore = field(metadata={"digest": False})
    fetch: bool = field(default=True, metadata={"digest": False})
    limits: FetchPolicy = field(default_factory=FetchPolicy)
    compared: Compared | None = field(default=None, metadata={"digest": False})

    @classmethod
    def from_config(cls, config: Config, images: ImageStore) -> Self:
        """The stage with the config's limits, putting images there."""
        options = config.stages.download
        return cls(images, options.fetch, options.limits)

    @classmethod
    def headline(cls, stats: Mapping[str, StageStats]) -> str | None:
        """How many images there are, how many could not be had, how many are copies."""
        tally = stats["download"].tally
        return (
            f"{tally.get('pictures', 0):,} images in the kept threads, "
            f"{tally.get('not_there', 0):,} of them unavailable, "
            f"{tally.get('copies', 0):,} copies of others"
        )

    def prepared(self, dataset: Dataset, *, offline: bool, watch: ProgressListener) -> Self:
        """Fetches what is named by address only, and was not fetched before."""
        if self.fetch and not offline:
            for _ in fetch_images(
                _addresses_in(dataset),
                self.images,
                policy=self.limits,
                progress=lambda stats: watch.advanced("pictures", stats.done, stats, stats.total),
            ):
                pass

        def compared(done: int, total: int) -> None:
            watch.advanced("compared", done, "images looked at for copies", total)

        return dataclasses.replace(self, compared=compared)

    def ledger_names(self, dataset: Dataset) -> list[str]:
        """What the ledger calls the addresses that threads name, those of them that it may know."""
        return list(dict.fromkeys(named_once(_addresses_in(dataset), self.limits)[0].values()))

    def describe(self) -> dict[str, Any]:
        """Everything that decides the result, with what became of each address."""
        return {**super().describe(), "fetched": ledger_digest(self._ledger)}

    def __call__(self, table: pa.Table) -> pa.Table:
        """The threads with the digests of their images, and a remark for each that is missing."""
        trees, roots = table["posts"].combine_chunks(), table["root_url"].combine_chunks()
        posts, threads = trees.flatten(), pc.list_parent_indices(trees).to_pylist()
        given, said = _images(posts), list[tuple[int, RowIssue]]()
        became = self._became(_addresses(given))
        found: list[list[dict[str, Any]]] = []
        for thread, images in zip(threads, given, strict=True):
            filled = []
            for one in images:
                entry = None if one["sha256"] else became.get(one["url"])
                filled.append({**one, "sha256": entry.sha256} if entry else one)
                if entry and entry.reason:
                    detail = f"{one['url']} {entry.detail}".strip()
                    said.append((thread, RowIssue(Status.NOTED, [], entry.reason, detail)))
            found.append(distinct_images(filled))
        seen = _by_digest(posts, found, threads)
        copies = self._copies(seen, said)
        for thread, known_images in zip(threads, found, strict=True):
            beside = {None, *(one["sha256"] for one in known_images)}
            for image in known_images:
                own, other = (copies[where].get(image["sha256"]) for where in (thread, ALL))
                # Where the two disagree on what is first, a thread keeps to its own.
                known = [own] if other in seen[thread] else [own, other]
                first = next((one for one in known if one not in beside), None)
                image["same_picture_of"] = first
        said.sort(key=itemgetter(0))
        told = [dataclasses.replace(one, parents=[roots[row].as_py()]) for row, one in said]
        columns = pa.table([roots, _with_images(trees, posts, found)], schema=THREADS.schema)
        kept = kept_rows(columns, parents_of(roots))
        issues = [row for row, _ in said], row_issues(THREADS, told)
        return ordered([(range(len(roots)), kept), issues])

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        """How many images there are, are not to be had, or are copies."""
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
        return self.images.root.with_name(LEDGER)

    def _became(self, urls: Iterable[str]) -> dict[str, FetchResult]:
        """What is known of each address, however it is spelt."""
        named, became = named_once(urls, self.limits)
        known = read_ledger(self._ledger, list(dict.fromkeys(named.values())))
        for url, name in named.items():
            one = known.get(name)
            if one is None or (one.sha256 and not self.images.path(one.sha256).exists()):
                one = FetchResult(url, None, Unfetched.NOT_REQUESTED)
            became[url] = one
        return became

    def _copies(
        self, seen: Mapping[int, Mapping[str, int]], said: list[tuple[int, RowIssue]]
    ) -> Mapping[int, Mapping[str, str]]:
        """For each thread, and for all, what each image is a copy of."""

        def unreadable(digest: str, error: BadImageError) -> None:
            issue = RowIssue(Status.NOTED, [], Notice.BROKEN_IMAGE, f"{digest}: {error}")
            said.append((seen[ALL][digest], issue))

        files = {digest: self.images.path(digest) for digest in seen[ALL]}
        signed = SignedImages(files, unreadable, self.compared)
        return defaultdict(dict, {where: signed.copies(some) for where, some in seen.items()})


def _images(posts: pa.StructArray) -> list[list[ImageEntry]]:
    return [some or [] for some in pc.struct_field(posts, "pictures").to_pylist()]


def _addresses_in(dataset: Dataset) -> dict[str, None]:
    trees = arrow_rows(dataset, ["posts"])["posts"]
    return _addresses(_images(trees.combine_chunks().flatten()))


def _addresses(given: Iterable[Sequence[ImageEntry]]) -> dict[str, None]:
    """The addresses of images that are not there, each once, in order."""
    every = (one for some in given for one in some)
    return dict.fromkeys(one["url"] for one in every if one["url"] and not one["sha256"])


def _by_digest(
    posts: pa.StructArray, found: Sequence[Sequence[ImageEntry]], threads: Sequence[int]
) -> Mapping[int, Mapping[str, int]]:
    """The images of each thread and of all, earliest first, with the thread that has each first."""
    times = pc.struct_field(posts, "timestamp").cast(pa.int64()).to_pylist()
    urls = pc.struct_field(posts, "url").to_pylist()
    moments = [(time is None, time or 0, url) for time, url in zip(times, urls, strict=True)]
    seen: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for post in sorted(range(len(moments)), key=moments.__getitem__):
        for digest in filter(None, (one["sha256"] for one in found[post])):
            for where in (ALL, threads[post]):
                seen[where].setdefault(digest, threads[post])
    return seen


def _with_images(
    trees: pa.ListArray, posts: pa.StructArray, images: Sequence[Sequence[ImageEntry]]
) -> pa.ListArray:
    fields = list(POSTS_OF_TREE.value_type)
    arrays = [
        pa.array(images, IMAGES_OF_POST)
        if one.name == "pictures"
        else pc.struct_field(posts, one.name)
        for one in fields
    ]
    lengths = pc.list_value_length(trees).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.cumsum([0, *lengths]), pa.int32())
    values = pa.StructArray.from_arrays(arrays, fields=fields)
    return pa.ListArray.from_arrays(offsets, values).cast(POSTS_OF_TREE)


class SignedImages:
    """Images with their signatures; who is told of those that cannot be read goes on without."""

    def __init__(
        self,
        images: Mapping[str, Path],
        unreadable: Callable[[str, BadImageError], None],
        progress: Compared | None = None,
    ) -> None:
        means = np.empty((len(images), BLOCKS, BLOCKS, CHANNELS), np.float16)
        contrasts = np.empty(means.shape, np.uint8)
        self._images, self._rows = images, dict[str, int]()
        self._sizes: list[Size] = []
        with ThreadPoolExecutor() as pool:
            every = zip(images, pool.map(_signature, images.values()), strict=True)
            for done, (name, signature) in enumerate(every, 1):
                found = signature or _signature(images[name], alone=True)
                if isinstance(found, BlockSignature):
                    row = self._rows.setdefault(name, len(self._rows))
                    means[row], contrasts[row] = found.means, found.contrasts
                    self._sizes.append(found.size)
                elif found is not None:
                    unreadable(name, found)
                if progress is not None:
                    progress(done, len(images))
        self._means, self._contrasts = means[: len(self._rows)], contrasts[: len(self._rows)]

    def copies(self, some: Iterable[str]) -> dict[str, str]:
        """For each copy of another image that one; the first of equal ones is the original."""
        names = [name for name in some if name in self._rows]
        if len(names) < 2:
            return {}
        rows = [self._rows[name] for name in names]
        sizes, images = [self._sizes[row] for row in rows], self._images
        at = slice(None) if rows == list(range(len(self._rows))) else rows  # of all, no copy
        means, contrasts = self._means[at], self._contrasts[at]
        index = SignatureIndex(means, contrasts)
        first_of: dict[int, int] = {}
        for first in range(len(names)):
            if first in first_of:
                continue
            free = (one for one in index.near(first) if one > first and one not in first_of)
            likely = [one for one in free if same_shape(sizes[first], sizes[one])]
            alike: list[int] = []
            for start in range(0, len(likely), COMPARED_AT_ONCE):
                part = np.array(likely[start : start + COMPARED_AT_ONCE])
                fine = same_colors(means[first], contrasts[first], means[part], contrasts[part])
                alike += map(int, part[fine])
            if alike:
                original = load_rgb(images[names[first]])
                for one in alike:
                    if same_details(original, load_rgb(images[names[one]])):
                        first_of[one] = first
        return {names[copy]: names[first] for copy, first in first_of.items()}


def _signature(path: Path, *, alone: bool = False) -> BlockSignature | BadImageError | None:
    """Null for a large image, of which each thread would hold one, and the memory of it later."""
    try:
        with open_image(path) as image:
            waits = is_large(image.size) and not alone
        return None if waits else block_signature(path)
    except BadImageError as error:
        return error
