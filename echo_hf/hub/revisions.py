"""Which published revisions still hold a post, and how to delete them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import pyarrow.parquet as pq
from huggingface_hub import HfApi, HfFileSystem

from echo_hf.errors import HubError
from echo_hf.hub.facts import SAMPLE_CONFIGS
from echo_hf.hub.redistribution import addresses_of
from echo_hf.hub.remote import KIND, MAIN, Remote, hub_errors

# Where rows name posts; releases of older versions lack some of these columns.
OF_SAMPLES = ("id", "post_urls", "community_feedback", "prompt_spans", "picture_sources")
NAMING: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(SAMPLE_CONFIGS, OF_SAMPLES),
    "responses": ("sources",),
}
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Holding:
    revision: str
    commit: str
    samples: tuple[str, ...]
    answers: int = 0


def revisions_holding(
    repo_id: str, urls: Collection[str], *, api: HfApi | None = None
) -> list[Holding]:
    """Finds the tags of a repository that still hold posts, and whether its main branch does."""
    remote = Remote(api or HfApi(), repo_id)
    state = remote.state()
    if state is None:
        raise HubError(f"there is no dataset {repo_id!r} on the Hub: expected NAMESPACE/NAME")
    found = {
        commit: _held(remote, commit, frozenset(urls))
        for commit in {state.head, *state.tags.values()}
    }
    named = {**dict(sorted(state.tags.items())), MAIN: state.head}
    every = [Holding(name, commit, *found[commit]) for name, commit in named.items()]
    return [one for one in every if one.samples or one.answers]


def delete_tags(repo_id: str, tags: Iterable[str], *, api: HfApi | None = None) -> None:
    """Deletes tags; their commits are still there for who knows their hashes."""
    client = api or HfApi()
    for tag in tags:
        with hub_errors(f"delete tag {tag!r} of {repo_id!r}"):
            client.delete_tag(repo_id, tag=tag, repo_type=KIND)


def _held(remote: Remote, commit: str, urls: frozenset[str]) -> tuple[tuple[str, ...], int]:
    """The samples of a commit that name posts, and how many stored answers do."""
    samples, answers = set[str](), 0
    for path in filter(_names_posts, remote.files(commit)):
        for row in _rows(remote, commit, path):
            if "sources" in row:
                answers += not urls.isdisjoint(row["sources"] or ())
            elif not urls.isdisjoint(addresses_of(row)):
                samples.add(row["id"])
    return tuple(sorted(samples)), answers


def _names_posts(path: str) -> bool:
    return path.endswith(".parquet") and PurePosixPath(path).parts[0] in NAMING


def _rows(remote: Remote, commit: str, path: str) -> Iterator[Row]:
    with hub_errors(f"read {path!r} of {remote.repo_id!r}"):
        files = HfFileSystem(endpoint=remote.api.endpoint, token=remote.api.token)
        with files.open(f"datasets/{remote.repo_id}@{commit}/{path}") as file:
            data = pq.ParquetFile(file)
            wanted = NAMING[PurePosixPath(path).parts[0]]
            columns = [name for name in wanted if name in data.schema_arrow.names]
            rows: list[Row] = data.read(columns=columns).to_pylist()
    yield from rows
