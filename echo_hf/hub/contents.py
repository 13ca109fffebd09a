"""What a release becomes in its repository, and what a commit has to change for it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasets.utils.metadata import MetadataConfigs
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, DatasetCard
from huggingface_hub.hf_api import RepoFile
from pydantic import TypeAdapter, ValidationError

from echo_hf._infra.text import escaped, table
from echo_hf.errors import HubError, ReleaseError
from echo_hf.hub.diff import ReleaseDiff
from echo_hf.hub.diff_rows import Drift
from echo_hf.hub.manifest import (
    BENCHMARK,
    CARD,
    MANIFEST,
    STATS,
    FileEntry,
    Manifest,
    ReleasePath,
    file_entry,
    read_manifest,
)
from echo_hf.hub.release import Release

MOST_MOVERS = 5
HEADING = "## Changes since the last revision\n"


def changes_text(difference: ReleaseDiff) -> str:
    said = [
        f"Samples, compared with {escaped(difference.a)}: {len(difference.added):,} added, "
        f"{len(difference.removed):,} removed, {len(difference.changed):,} changed, "
        f"{difference.equal:,} equal.",
        *_causes(difference),
        *_stages(difference),
        _drifts(difference),
        *(
            f"Scores on `{name}`: {difference.scores.verdict(name)}."
            for name in difference.scores.configs
        ),
    ]
    return "\n\n".join(said)


def with_section(card: str, text: str) -> str:
    """A card with another text in its last section."""
    before, heading, _ = card.rpartition(HEADING)
    if not heading:
        raise ReleaseError(f"the card has no section {HEADING.strip()!r}: build the release again")
    return f"{before}{heading}\n{text}\n"


def section_of(card: str) -> str | None:
    _, heading, after = card.rpartition(HEADING)
    return after.removeprefix("\n").removesuffix("\n") if heading else None


def _causes(found: ReleaseDiff) -> Iterator[str]:
    if found.causes:
        rows = [[str(cause), f"{n:,}", cause.meaning] for cause, n in found.causes.items()]
        yield "Why samples changed; one may have several causes."
        yield table(["Cause", "Samples", "Meaning"], rows)


def _stages(found: ReleaseDiff) -> Iterator[str]:
    if found.stages:
        named = ", ".join(
            f"{escaped(change.stage)} ({', '.join(change.causes) or 'new or gone'})"
            for change in found.stages
        )
        yield f"Stages that differ: {named}."


def _drifts(found: ReleaseDiff) -> str:
    rows = [[name, *_drift(one)] for name, one in found.drift.items()]
    headings = ["Drift of", "Total variation distance", "What moved most, in points"]
    return table(headings, rows)


def _drift(one: Drift) -> list[str]:
    if one.distance is None:
        return ["not counted", ""]
    movers = [f"{escaped(mover.name)} {100 * mover.change:+.1f}" for mover in one.movers]
    return [f"{one.distance:.3f}", ", ".join(movers[:MOST_MOVERS])]


SNIPPET = re.compile(r"(?<=^```python\n).*?(?=^```)", re.DOTALL | re.MULTILINE)
STRING = r'"(?:[^"\\\n]|\\.)*"'
NAMED = re.compile(rf"\b(load_dataset|load_benchmark)\({STRING}")
REVISION = re.compile(rf"\brevision={STRING}")


@dataclass(frozen=True)
class Content:
    source: Path | bytes
    size: int
    sha256: str

    @property
    def git_oid(self) -> str:
        """The name that Git gives to these bytes as a blob."""
        data = self.source if isinstance(self.source, bytes) else self.source.read_bytes()
        return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def release_contents(
    release: Release, repo_id: str, tag: str, since: str | None = None
) -> Mapping[str, Content]:
    """The files of a release as they are published."""
    manifest = release.manifest
    written = (release.path / CARD).read_text("utf-8")
    text = written if since is None else with_section(written, since)
    text = named_card(text, repo_id, tag)
    check_card(text, manifest)
    card = text.encode()
    entry = FileEntry(path=CARD, bytes=len(card), sha256=hashlib.sha256(card).hexdigest())
    sealed = manifest.model_copy(update={"card": entry}).text().encode()
    files = {
        each.path: Content(release.path / each.path, each.bytes, each.sha256)
        for each in manifest.files
    }
    return {**files, CARD: _content(card), MANIFEST: _content(sealed)}


def named_card(card: str, repo_id: str, tag: str) -> str:
    """A card whose code loads this revision of this repository."""
    repository, revision = (json.dumps(name, ensure_ascii=False) for name in (repo_id, tag))

    def name(snippet: re.Match[str]) -> str:
        code = NAMED.sub(lambda call: f"{call[1]}({repository}", snippet.group())
        return REVISION.sub(lambda _: f"revision={revision}", code)

    return SNIPPET.sub(name, card)


def check_card(card: str, manifest: Manifest) -> None:
    """Reads a card with the Hub's own tools and those of datasets."""
    try:
        data = DatasetCard(card).data
        named = set(MetadataConfigs.from_dataset_card_data(data))
    except Exception as error:  # a parser of YAML raises whatever it trips over
        said = " ".join(str(error).split())[:200]
        raise ReleaseError(f"the card cannot be read ({said}): write the release again") from error
    if named != set(manifest.configs):
        raise ReleaseError(
            f"the card names the configs {sorted(named)!r}, the manifest "
            f"{sorted(manifest.configs)!r}: write the release again"
        )


def _content(data: bytes) -> Content:
    return Content(data, len(data), hashlib.sha256(data).hexdigest())


# What the Hub, or a person on its page, puts into a repository that is yet to be filled.
FIRST_FILES = frozenset({".gitattributes", ".gitignore", "README.md", "LICENSE", "LICENSE.md"})
RELEASE_PATH = TypeAdapter(ReleasePath)


@dataclass(frozen=True)
class Changes:
    """What differs between a release and a revision.

    Attributes:
        upload: Contents that are new or different, by path.
        delete: Paths of files that would be taken for the release's and are not.
    """

    upload: Mapping[str, Content]
    delete: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.upload or self.delete)

    @property
    def bytes(self) -> int:
        return sum(content.size for content in self.upload.values())

    def operations(self) -> list[CommitOperationAdd | CommitOperationDelete]:
        """The changes as the Hub's client takes them, anew each time: it writes into them."""
        added = [CommitOperationAdd(path, each.source) for path, each in self.upload.items()]
        return [*added, *(CommitOperationDelete(path, is_folder=False) for path in self.delete)]


def changes(contents: Mapping[str, Content], there: Mapping[str, RepoFile]) -> Changes:
    upload = {
        path: content
        for path, content in contents.items()
        if path not in there or not _is_same(content, there[path])
    }
    return Changes(upload, strays(contents, there))


def strays(listed: Collection[str], there: Iterable[str]) -> tuple[str, ...]:
    """Files of a revision that would be taken for those of a release, and are not."""
    folders = {path.partition("/")[0] for path in listed if "/" in path}
    return tuple(sorted(path for path in there if path not in listed and _belongs(path, folders)))


def check_ours(there: Collection[str], repo_id: str) -> None:
    """Refuses to fill a repository that holds something else than releases."""
    strange = sorted(set(there) - FIRST_FILES)
    if strange and MANIFEST not in there:
        raise HubError(
            f"{repo_id!r} holds {strange[0]!r} and no {MANIFEST}: it is not a repository of "
            "releases; "
            "choose another name with --repo-id, or empty it first"
        )


def _is_same(content: Content, there: RepoFile) -> bool:
    if content.size != there.size:
        return False
    if there.lfs is not None:
        return content.sha256 == there.lfs.sha256
    return content.git_oid == there.blob_id


def _belongs(path: str, folders: Collection[str]) -> bool:
    """Whether a file would be read as one of a release: by its name, or as data of a config."""
    if path.partition("/")[0] in folders:
        return True
    try:
        RELEASE_PATH.validate_python(path)
    except ValidationError:
        return False
    return True


# What is compared byte by byte; data are told by the digests that the Hub has of them.
BESIDE = (CARD, MANIFEST, STATS, BENCHMARK)
# What depends on who wrote the release, or follows from its rows and from what it states.
OF_WRITER = frozenset({"format", "echo_hf", "configs", "card", "stats", "benchmark"})


def is_same_release(ours: Manifest, folder: Path, there: Mapping[str, RepoFile]) -> bool:
    try:
        theirs = read_manifest(folder)
    except ReleaseError:  # none, or one that this version does not understand
        return False
    if theirs.card is None or _said(ours) != _said(theirs):
        return False
    if strays({file.path for file in theirs.files}, there):
        return False
    return all(_is_there(file, folder, there) for file in theirs.files)


def _said(manifest: Manifest) -> dict[str, Any]:
    """What a manifest says, but for the writing."""
    rows = {
        name: (entry.rows, entry.digest, entry.dehydrated)
        for name, entry in manifest.configs.items()
    }
    return {**manifest.model_dump(mode="json", exclude=set(OF_WRITER)), "rows": rows}


def _is_there(listed: FileEntry, folder: Path, there: Mapping[str, RepoFile]) -> bool:
    found = there.get(listed.path)
    if found is None:
        return False
    if found.lfs is not None:
        return (found.size, found.lfs.sha256) == (listed.bytes, listed.sha256)
    return (folder / listed.path).exists() and file_entry(folder, listed.path) == listed
