"""Repositories as the Hub keeps them, in memory: commits, branches, tags, pull requests."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

MAIN = "main"
PULL = "refs/pr/"
ATTRIBUTES = b"*.parquet filter=lfs diff=lfs merge=lfs -text\n"


@dataclass(frozen=True)
class StoredFile:
    """A file of a commit; of large ones Git keeps a pointer alone."""

    data: bytes
    lfs: bool = False

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def git_oid(self) -> str:
        blob = self.data
        if self.lfs:
            blob = (
                "version https://git-lfs.github.com/spec/v1\n"
                f"oid sha256:{self.sha256}\nsize {len(self.data)}\n"
            ).encode()
        return hashlib.sha1(b"blob %d\0" % len(blob) + blob, usedforsecurity=False).hexdigest()

    @property
    def etag(self) -> str:
        return self.sha256 if self.lfs else self.git_oid


Files = Mapping[str, StoredFile]


@dataclass(frozen=True)
class Commit:
    oid: str
    title: str
    parent: str | None
    files: Files


@dataclass
class Pull:
    """A pull request; what was said in it, the description first."""

    title: str
    said: list[str]
    status: str = "open"
    merged: str | None = None
    author: str = "mira"
    created: str = "2026-03-02T17:12:40.000Z"


@dataclass
class Repository:
    """A dataset repository; a pull request with changes is the branch `refs/pr/<number>`."""

    private: bool = False
    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    pulls: dict[int, Pull] = field(default_factory=dict)
    listed: list[str] = field(default_factory=list)  # tags, such as that of a benchmark
    filed: list[dict[str, Any]] | None = None  # the rows of its board; null where it has none

    def __post_init__(self) -> None:
        first = {".gitattributes": StoredFile(ATTRIBUTES)}
        self.branches[MAIN] = self.add("initial commit", None, first)

    @property
    def head(self) -> str:
        return self.branches[MAIN]

    @property
    def history(self) -> list[Commit]:
        return list(self.before(self.head))

    def before(self, oid: str | None) -> Iterable[Commit]:
        while oid is not None:
            yield self.commits[oid]
            oid = self.commits[oid].parent

    def find(self, revision: str) -> Commit | None:
        oid = self.branches.get(revision) or self.tags.get(revision) or revision
        return self.commits.get(oid)

    def add(self, title: str, parent: str | None, files: Files) -> str:
        tree = sorted((path, file.git_oid) for path, file in files.items())
        said = f"{len(self.commits)} {title} {parent} {tree}"
        oid = hashlib.sha1(said.encode(), usedforsecurity=False)
        self.commits[oid.hexdigest()] = Commit(oid.hexdigest(), title, parent, dict(files))
        return oid.hexdigest()

    def change(self, title: str, **changed: bytes) -> str:
        new = {f"{name}.txt": StoredFile(data) for name, data in changed.items()}
        files = {**self.commits[self.head].files, **new}
        self.branches[MAIN] = self.add(title, self.head, files)
        return self.head

    @property
    def open_pulls(self) -> dict[int, str]:
        return {number: one.title for number, one in self.pulls.items() if one.status == "open"}

    def propose(self, title: str, description: str, oid: str | None, author: str = "mira") -> int:
        """Opens a pull request; without a commit it is a draft."""
        number = len(self.pulls) + 1
        status = "open" if oid else "draft"
        self.pulls[number] = Pull(title, [description], status, author=author)
        self.branches[f"{PULL}{number}"] = oid or self.head
        return number

    def merge(self, number: int) -> str:
        pull, files = self.pulls[number], self.commits[self.branches[f"{PULL}{number}"]].files
        self.branches[MAIN] = pull.merged = self.add(pull.title, self.head, files)
        pull.status = "merged"
        return self.head
