"""Read records into posts (section 3.1); what is wrong with one is said, and costs no other."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa

from echo_hf.collect.merge import READ_POSTS
from echo_hf.collect.records import RECORDS
from echo_hf.collect.same_pictures import distinct_pictures
from echo_hf.collect.sources.base import Finding, Picture, Post, Source, make_source
from echo_hf.collect.tombstones import TOMBSTONES, Tombstones, read_tombstones
from echo_hf.collect.urls import is_x_name, platform_of, post_id_of
from echo_hf.errors import PictureError
from echo_hf.pictures import MOST_BYTES, PictureStore
from echo_hf.reasons import Notice, Reject, Status
from echo_hf.stage import Remark, Stage, kept, ordered, remarks
from echo_hf.tables import Table

if TYPE_CHECKING:
    from echo_hf.config import Config
    from echo_hf.stage_result import StageStats

NAMES = tuple(READ_POSTS.columns)
Values = dict[str, str | None]


@dataclass(frozen=True)
class Collect(Stage):
    """Reads each record as its source's format says, and takes in the pictures beside it.

    Attributes:
        pictures: Where the bytes of local pictures go.
        forgotten: Posts that were to be removed, and stay so.
    """

    name: ClassVar[str] = "collect"
    version: ClassVar[int] = 3
    inputs: ClassVar[Table] = RECORDS
    outputs: ClassVar[Table] = READ_POSTS

    pictures: PictureStore = field(metadata={"digest": False})
    forgotten: Tombstones = field(default_factory=Tombstones, metadata={"digest": False})

    def __call__(self, table: pa.Table) -> pa.Table:
        """The posts of the records, and a remark for all that is wrong with them."""
        posts: list[tuple[int, list[str], dict[str, Any]]] = []
        said: list[tuple[int, Remark]] = []
        for row, record in enumerate(self.input_rows(table)):
            place = [record["place"]]
            for parsed in self._parsed(record):
                if isinstance(parsed, Finding):
                    said.append((row, _remark(place, parsed)))
                else:
                    posts.append((row, place, parsed))
        columns = pa.Table.from_pylist([values for *_, values in posts], schema=READ_POSTS.schema)
        parents = pa.array([place for _, place, _ in posts], pa.list_(pa.string()))
        remarked = remarks(READ_POSTS, [remark for _, remark in said])
        rows = ([row for row, *_ in posts], [row for row, _ in said])
        return ordered([(rows[0], kept(columns, parents)), (rows[1], remarked)])

    @classmethod
    def from_config(cls, config: Config, pictures: PictureStore) -> Self:
        """The stage, putting pictures there, without what was forgotten beside them."""
        del config
        return cls(pictures, read_tombstones(pictures.root.with_name(TOMBSTONES)))

    @classmethod
    def headline(cls, stats: Mapping[str, StageStats]) -> str | None:
        """How many posts there are, and of how many records."""
        one = stats["collect"]
        merged = f", {one.tally['merged']:,} seen more than once" if one.tally.get("merged") else ""
        return f"{one.kept:,} posts collected from {one.rows_in:,} records{merged}"

    def describe(self) -> dict[str, Any]:
        """Everything that decides the result, with what is forgotten."""
        return {**super().describe(), "forgotten": sorted(self.forgotten.hashes)}

    def _parsed(self, record: dict[str, Any]) -> Iterator[dict[str, Any] | Finding]:
        try:
            data = json.loads(record["record"])
        except (ValueError, RecursionError) as error:
            yield Finding(Reject.NOT_JSON, f"{str(error)[:120]}: {record['record'][:80]!r}")
            return
        empty, named = True, self.forgotten.are_named_in(data)
        for parsed in _source(record["source"]).posts(data, record["keywords"] or ()):
            empty = False
            if isinstance(parsed, Post) and is_x_name(parsed.platform) and not _is_of_x(parsed):
                # What may be done with a post is told by its address for good.
                found = Finding(Reject.OTHER_PLATFORM, f"{parsed.platform!r}: {parsed.url}")
                yield _without_content(found) if named else found
            elif isinstance(parsed, Post):
                findings = list(self._removed(parsed))
                yield self._row(self.forgotten.cleared(parsed), record, findings)
                yield from findings
            else:
                yield _without_content(parsed) if named else parsed
        if empty:
            found = Finding(Reject.NOT_A_POST, "the record holds no post")
            yield _without_content(found) if named else found

    def _removed(self, post: Post) -> Iterator[Finding]:
        if post.url in self.forgotten:
            yield Finding(Notice.FORGOTTEN, "")
        elif self.forgotten.cleared(post) != post:
            yield Finding(Notice.FORGOTTEN_LINK, "")

    def _row(
        self, post: Post, record: Mapping[str, Any], findings: list[Finding]
    ) -> dict[str, Any]:
        pictures = [self._picture(one, record["folder"], findings) for one in post.pictures]
        values = {name: getattr(post, name, None) for name in NAMES}
        return {
            **values,
            "place": record["place"],
            "post_id": post.post_id or post_id_of(post.url),
            "platform": post.platform or platform_of(post.url),
            # Null: nobody says what found it, so that it is read as if a search had.
            "keywords": list(post.keywords) or (None if record["keywords"] is None else []),
            "pictures": distinct_pictures(pictures),
        }

    def _picture(self, picture: Picture, folder: str, findings: list[Finding]) -> Values:
        digest = self._taken_in(picture.path, folder, findings) if picture.path else None
        return {"sha256": digest, "url": picture.url, "alt_text": picture.alt_text}

    def _taken_in(self, path: str, folder: str, findings: list[Finding]) -> str | None:
        try:
            read = _read_picture(path, folder)
            if isinstance(read, bytes):
                return self.pictures.put(read)
            findings.append(read)
        except PictureError as error:
            findings.append(Finding(Notice.BROKEN_PICTURE, f"{path!r}: {error}"))
        return None


def _read_picture(path: str, folder: str) -> bytes | Finding:
    root = Path(folder)
    try:
        # A link inside the folder may lead out of it: what counts is where it ends.
        file = (root / path).resolve()
        if Path(path).is_absolute() or not file.is_relative_to(root.resolve()):
            return Finding(Notice.PICTURE_OUTSIDE, f"{path!r}, expected within the posts' folder")
        found = file.stat()
        # To read a pipe is to wait for ever.
        if not stat.S_ISREG(found.st_mode):
            return Finding(Notice.PICTURE_NOT_FOUND, f"{path!r} is no regular file")
        if found.st_size > MOST_BYTES:
            raise PictureError(f"{found.st_size} bytes, expected at most {MOST_BYTES}")
        return file.read_bytes()
    except OSError as error:
        return Finding(Notice.PICTURE_NOT_FOUND, f"{path!r}: {error.strerror}")
    except (ValueError, RuntimeError) as error:  # a NUL in the path; a link that leads to itself
        return Finding(Notice.PICTURE_NOT_FOUND, f"{path!r}: {type(error).__name__}")


def _is_of_x(post: Post) -> bool:
    return platform_of(post.url) == "x"


def _without_content(finding: Finding) -> Finding:
    # A rejected record is kept whole, and would keep the forgotten post with it.
    is_reject = isinstance(finding.reason, Reject)
    return Finding(Notice.FORGOTTEN if is_reject else finding.reason, "")


def _remark(place: Sequence[str], finding: Finding) -> Remark:
    status = Status.REJECTED if isinstance(finding.reason, Reject) else Status.NOTED
    # What is quoted from a record may hold half characters, which no table can.
    detail = finding.detail.encode("utf-8", "backslashreplace").decode()
    return Remark(status, place, finding.reason, detail)


@lru_cache(maxsize=32)
def _source(name: str) -> Source:
    return make_source(name)
