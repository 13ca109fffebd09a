"""Read records into posts (section 3.1), and merge posts that were collected more than once."""

from __future__ import annotations

import functools
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Value

from echo_hf._infra.regular_file import read_regular
from echo_hf.collect.records import RECORDS
from echo_hf.collect.sources.base import Finding, Post, PostNotice, PostReject, Source, make_source
from echo_hf.collect.takedown import TOMBSTONES_FILE, Tombstones, read_tombstones
from echo_hf.collect.urls import is_restricted, name_platform, platform_of, post_id_of
from echo_hf.errors import ImageError
from echo_hf.images.store import MAX_IMAGE_BYTES, ImageStore
from echo_hf.pipeline.stage import (
    COPIED,
    RowIssue,
    Stage,
    issue_rows,
    keep_rows,
    order_rows,
    parent_lists,
    register,
    row_keys,
)
from echo_hf.tables import POSTS, PRIMARY_POST_COLUMNS, Column, PostRow, Table, take_rows

if TYPE_CHECKING:
    from echo_hf.config.loading import Config
    from echo_hf.pipeline.result import StageStats

ImageEntry = Mapping[str, Any]
Put = Callable[[str, str], "str | Finding | None"]
COUNTS = tuple(POSTS.schema.field("engagement").type.names)
ORDER = [("timestamp", "ascending"), ("url", "ascending")]
SCALARS = ("post_id", "platform", "author", "timestamp", "lang", "parent_url", "quoted_url")

# The end of a text that its source has shortened.
SHORTENED_END = re.compile(r"…(?:\s*https?://\S+)?\s*$")

# Links that X appends for a post's own images, and that not all tools keep.
TRAILING_SHORT_LINKS = re.compile(r"(?:\s*https?://t\.co/\w+)+\s*$")

READ_POSTS = Table(
    "posts",
    "one post as one record has it",
    ("place", "url"),
    {
        **POSTS.columns,
        "place": Column(Value("string"), "where its record stands"),
        "edited": Column(Value("timestamp[us, tz=UTC]"), "when its text was last changed"),
    },
)
NOTICE_BY_ERROR = {"outside": PostNotice.IMAGE_OUTSIDE, "too_large": PostNotice.BROKEN_IMAGE}


@dataclass(frozen=True)
class PostMerge(Stage):
    """The last step of collection: merges the posts that have the same address."""

    name: ClassVar[str] = "merge"
    version: ClassVar[int] = 2
    inputs: ClassVar[Table] = READ_POSTS
    outputs: ClassVar[Table] = POSTS
    whole: ClassVar[bool] = True

    def __call__(self, table: pa.Table) -> pa.Table:
        """Return one row per address, and a notice for each post that a newer version replaces."""
        table = table.select(list(READ_POSTS.columns))
        posts, replaced = merge_posts(table)
        keys, urls = row_keys(table, READ_POSTS), table["url"].combine_chunks()
        issues = []
        for row in sorted(replaced):
            newer = f"{urls[row]}: {table['place'][replaced[row]]} has its newer text"
            issues.append(RowIssue([keys[row].as_py()], PostReject.SUPERSEDED, newer))
        post_of_row = pc.index_in(urls, value_set=posts["url"].combine_chunks()).to_numpy()
        rows = np.argsort(post_of_row, kind="stable")
        rows = rows[~np.isin(rows, list(replaced))]
        starts = np.searchsorted(post_of_row[rows], np.arange(len(posts) + 1))
        parents = pa.ListArray.from_arrays(pa.array(starts, pa.int32()), keys.take(pa.array(rows)))
        return pa.concat_tables([keep_rows(posts, parents), issue_rows(POSTS, issues)])


def merge_posts(posts: pa.Table) -> tuple[pa.Table, dict[int, int]]:
    """Merge posts with the same address; return them, and each replaced row with its newer one."""
    urls, keywords = (posts[name].combine_chunks() for name in ("url", "keywords"))
    counts = pc.value_counts(urls)
    repeated_urls = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
    # Also merge single posts whose lists are not in their final form.
    has_several_images = pc.fill_null(pc.greater(pc.list_value_length(posts["pictures"]), 1), True)
    flat, owner = pc.list_flatten(keywords), pc.list_parent_indices(keywords)
    out_of_order = pc.and_(pc.equal(owner[1:], owner[:-1]), pc.less_equal(flat[1:], flat[:-1]))
    to_merge = pc.or_(pc.is_in(urls, repeated_urls), has_several_images).to_numpy().copy()
    to_merge[owner[1:].filter(out_of_order).to_numpy()] = True
    replaced: dict[int, int] = {}
    groups: dict[str, dict[int, PostRow]] = {}
    rows = np.flatnonzero(to_merge)
    for row, post in zip(rows.tolist(), take_rows(posts, rows).to_pylist(), strict=True):
        groups.setdefault(post["url"], {})[row] = post
    merged_rows = [_merge_group(group, replaced) for group in groups.values()]
    merged = posts.select(list(POSTS.columns))
    table = pa.concat_tables([merged, pa.Table.from_pylist(merged_rows, schema=POSTS.schema)])
    places = np.r_[np.flatnonzero(~to_merge), len(posts) : len(table)]
    moments = pa.table({name: take_rows(table.select([name]), places)[name] for name, _ in ORDER})
    return take_rows(table, places[pc.sort_indices(moments, ORDER).to_numpy()]), replaced


def _merge_group(rows: Mapping[int, PostRow], replaced: dict[int, int]) -> dict[str, Any]:
    replaced |= _find_replaced(rows)
    group = [post for row, post in rows.items() if row not in replaced]

    def values(name: str, posts: Iterable[PostRow] = group) -> list[Any]:
        return [row[name] for row in posts if row[name] is not None]

    lists, counts = [row["keywords"] for row in rows.values()], values("engagement")
    most_counts = {name: max(values(name, counts), default=None) for name in COUNTS}
    words = sorted({word for keywords in lists for word in keywords or ()})
    return {
        "url": group[0]["url"],
        **{name: min(values(name), default=None) for name in SCALARS},
        "text": max(values("text"), key=_by_length, default=None),
        "missing": min(values("missing")) if len(values("missing")) == len(group) else None,
        "keywords": None if not words and None in lists else words,
        "pictures": merge_images([row["pictures"] or [] for row in group]),
        "engagement": most_counts if counts else None,
        "relevance": max(values("relevance"), key=_relevance_key, default=None),
    }


def _find_replaced(rows: Mapping[int, PostRow]) -> dict[int, int]:
    """Return the rows of one post with an older text, each with a row of the newest."""
    # Compare texts without what tools for one platform write differently.
    texts = {
        row: " ".join(TRAILING_SHORT_LINKS.sub("", html.unescape(post["text"] or "")).split())
        for row, post in rows.items()
    }
    versions: dict[str, list[int]] = {}
    for row, text in texts.items():
        begin = SHORTENED_END.sub("", text)
        if begin not in ("", text):  # its source has shortened it: find the text that it begins
            longer = (other for other in texts.values() if other.startswith(begin))
            text = max(longer, key=_by_length)
        if text:
            versions.setdefault(text, []).append(row)
    if len(versions) < 2:
        return {}
    dates = {row: rows[row].get("edited") or rows[row]["timestamp"] for row in texts}
    # If a version has no date, dates cannot say which version is newer.
    all_dated = all(any(dates[row] for row in group) for group in versions.values())

    def compute_recency(group: Sequence[int]) -> tuple[Any, ...]:
        times = [dates[row] for row in group if dates[row]] if all_dated else ()
        return any(rows[row]["missing"] is None for row in group), *sorted(times)[-1:], group[-1]

    newest = max(versions.values(), key=compute_recency)
    return {row: newest[-1] for group in versions.values() if group is not newest for row in group}


def _relevance_key(relevance: Mapping[str, Any]) -> tuple[int, bool, str]:
    note = relevance["note"]
    return relevance["score"] or 0, note is not None, note or ""


def _by_length(text: str) -> tuple[bool, int, str]:
    return not SHORTENED_END.search(text), len(text), text


def merge_images(rows: Sequence[Sequence[ImageEntry]]) -> list[dict[str, Any]]:
    """Merge the images of one post from several rows: each once, under its most complete name."""
    fullest = min(
        rows, key=lambda images: (-len(images), [_image_key(image) for image in images]), default=[]
    )
    all_images = [*fullest, *sorted((image for row in rows for image in row), key=_image_key)]
    complete_images = [image for image in all_images if image["url"] and image["sha256"]]
    digests = {image["url"]: image["sha256"] for image in reversed(complete_images)}
    by_name: dict[str, dict[str, Any]] = {}
    bare: list[str | None] = []  # descriptions of images without digest and address
    for entry in all_images:
        address = entry["url"]
        if name := entry["sha256"] or digests.get(address) or address:
            image = by_name.setdefault(name, dict(entry))
            for column in ("sha256", "url"):
                image[column] = image[column] or entry[column]
            image["alt_text"] = max(image["alt_text"], entry["alt_text"], key=_alt_text_key)
        else:
            bare.append(entry["alt_text"])
    texts = dict.fromkeys(text for text in bare if text is not None)
    # An unnamed image of this row may be a named one of another row.
    lost = len(fullest) - len(by_name) - len(texts) if None in bare else 0
    unnamed = [*texts, *[None] * lost]
    described = [{"sha256": None, "url": None, "alt_text": text} for text in unnamed]
    return [*by_name.values(), *described]


def join_images(images: Sequence[ImageEntry]) -> list[dict[str, Any]]:
    """Join images of one row that have equal bytes or the same address."""
    distinct: dict[object, dict[str, Any]] = {}
    for number, image in enumerate(images):
        key = image["sha256"] or (image["url"] and ("url", image["url"])) or number
        first = distinct.setdefault(key, dict(image))
        texts = [each["alt_text"] for each in (first, image) if each["alt_text"]]
        if first != image:
            for name in ("sha256", "url"):
                first[name] = first[name] or image[name]
            first["alt_text"] = "\n".join(dict.fromkeys(texts)) or None
    return list(distinct.values())


def _alt_text_key(text: str | None) -> tuple[bool, int, str]:
    return text is not None, len(text or ""), text or ""


def _image_key(entry: ImageEntry) -> tuple[tuple[bool, str], ...]:
    values = (entry[name] for name in ("sha256", "url", "alt_text"))
    return tuple((value is not None, value or "") for value in values)


@register
@dataclass(frozen=True)
class Collect(Stage):
    """Reads each record as its source's format says, and takes in the images beside it.

    Attributes:
        images: Where the bytes of local images go; null to look at none.
        forgotten: Posts that were to be removed, and stay so.
    """

    name: ClassVar[str] = "collect"
    version: ClassVar[int] = 3
    makes_rows: ClassVar[bool] = True
    decides: ClassVar[Mapping[str, Sequence[str]]] = {COPIED: ("post_id", *PRIMARY_POST_COLUMNS)}
    inputs: ClassVar[Table] = RECORDS
    outputs: ClassVar[Table] = READ_POSTS
    stays: ClassVar[bool] = True

    images: ImageStore | None = field(metadata={"digest": False})
    forgotten: Tombstones = field(default_factory=Tombstones, metadata={"digest": False})

    def __call__(self, table: pa.Table) -> pa.Table:
        """Return the posts of the records, and a notice for everything that is wrong with them."""
        posts: list[tuple[int, dict[str, Any]]] = []
        issues: list[tuple[int, RowIssue]] = []
        # Posts may share an image.
        put = functools.cache(functools.partial(_put_image, self.images))
        for row, record in enumerate(self.input_rows(table)):
            for parsed in self._read_posts(record, put):
                if not isinstance(parsed, Finding):
                    posts.append((row, parsed))
                    continue
                # A quotation may hold unpaired surrogates, which no table can store.
                detail = parsed.detail.encode("utf-8", "backslashreplace").decode()
                issues.append((row, RowIssue([record["place"]], parsed.reason, detail)))
        columns = pa.Table.from_pylist([values for _, values in posts], schema=READ_POSTS.schema)
        kept = keep_rows(columns, parent_lists(columns["place"]))
        remarks = issue_rows(READ_POSTS, [remark for _, remark in issues])
        return order_rows(
            [([row for row, _ in posts], kept), ([row for row, _ in issues], remarks)]
        )

    @classmethod
    def from_config(cls, config: Config, images: ImageStore) -> Self:
        """Return the stage, storing images there and leaving out the posts taken down beside it."""
        del config
        return cls(images, read_tombstones(images.root.with_name(TOMBSTONES_FILE)))

    @classmethod
    def headline(cls, stats: Mapping[str, StageStats]) -> str | None:
        """Say how many posts there are, and of how many records."""
        counts = stats["collect"]
        merged = counts.tally.get("merged", 0)
        repeats = f", {merged:,} seen more than once" if merged else ""
        return f"{counts.kept:,} posts collected from {counts.rows_in:,} records{repeats}"

    def describe(self) -> dict[str, Any]:
        """Return everything that decides the result, with the hashes of taken down posts."""
        return {**super().describe(), "forgotten": sorted(self.forgotten.hashes)}

    def _read_posts(self, record: dict[str, Any], put: Put) -> Iterator[dict[str, Any] | Finding]:
        try:
            data = json.loads(record["record"])
        except (ValueError, RecursionError) as error:
            yield Finding(PostReject.NOT_JSON, f"{str(error)[:120]}: {record['record'][:80]!r}")
            return
        forgotten = self.forgotten.occur_in(data)
        parsed_posts = list(_make_source(record["source"]).posts(data, record["keywords"] or ()))
        for parsed in parsed_posts or [Finding(PostReject.NOT_A_POST, "the record holds no post")]:
            if isinstance(parsed, Post):
                stated = name_platform(parsed.platform)
                if not is_restricted(stated) or platform_of(parsed.url) == stated:
                    yield from self._take_post(parsed, record, put)
                    continue
                # Rights to a post follow from its address, so it must fit the platform.
                parsed = Finding(PostReject.OTHER_PLATFORM, f"{parsed.platform!r}: {parsed.url}")
            # Rejects keep the whole record, and with it would keep the forgotten post.
            if forgotten:
                is_reject = isinstance(parsed.reason, PostReject)
                parsed = Finding(PostNotice.FORGOTTEN if is_reject else parsed.reason, "")
            yield parsed

    def _take_post(
        self, original: Post, record: dict[str, Any], put: Put
    ) -> Iterator[dict[str, Any] | Finding]:
        post, images = self.forgotten.clear(original), list[dict[str, Any]]()
        if post != original:
            is_own = original.url in self.forgotten
            yield Finding(PostNotice.FORGOTTEN if is_own else PostNotice.FORGOTTEN_LINK, "")
        for image in post.pictures:
            digest = put(image.path, record["folder"]) if image.path else None
            if isinstance(digest, Finding):
                yield digest
                digest = None
            images.append({"sha256": digest, "url": image.url, "alt_text": image.alt_text})
        yield {
            **{name: getattr(post, name, None) for name in READ_POSTS.columns},
            "place": record["place"],
            "post_id": post.post_id or post_id_of(post.url),
            "platform": post.platform or platform_of(post.url),
            # Null if the file names no search terms: it is treated as if a search had found it.
            "keywords": list(post.keywords) or (None if record["keywords"] is None else []),
            "pictures": join_images(images),
        }


def _put_image(images: ImageStore | None, path: str, folder: str) -> str | Finding | None:
    """Store an image that lies beside the posts; return its digest, or why it was not stored."""
    if images is None:
        return None
    root = Path(folder)
    try:
        if Path(path).is_absolute():
            return Finding(PostNotice.IMAGE_OUTSIDE, f"{path!r}, expected within the posts' folder")
        data = read_regular(root / path, root, max_bytes=MAX_IMAGE_BYTES)
    except OSError as error:
        notice = NOTICE_BY_ERROR.get(getattr(error, "code", ""), PostNotice.IMAGE_NOT_FOUND)
        return Finding(notice, f"{path!r}: {error.strerror}")
    try:
        return images.put(data)
    except ImageError as error:
        return Finding(PostNotice.BROKEN_IMAGE, f"{path!r}: {error}")


@functools.lru_cache(maxsize=32)
def _make_source(name: str) -> Source:
    return make_source(name)
