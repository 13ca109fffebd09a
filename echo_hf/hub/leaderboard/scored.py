"""The scored releases of a dataset repository, one for each tag.

Figures are those that each release was published with, checked against its manifest. Of its samples
only names and digests are read, not their pictures.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from huggingface_hub import HfApi, HfFileSystem

from echo_hf.errors import EchoError, HubError
from echo_hf.hub.configs import BENCHMARK_CONFIGS
from echo_hf.hub.hub_errors import hub_errors
from echo_hf.hub.load import load_benchmark, load_manifest
from echo_hf.hub.manifest import Manifest
from echo_hf.hub.remote import Remote

NO_RESULTS = "this release holds no results: score a run, build it again and publish it"
SEEN = ["id", "sample_digest"]
Figure = Mapping[str, Any]
Seen = frozenset[tuple[str, str | None]]


@dataclass(frozen=True)
class ScoredRelease:
    """What a leaderboard needs of one release.

    Attributes:
        tag: Names it.
        commit: The commit that the tag is on.
        target: The model that its posts talk about; null where nothing could be read.
        figures: Rows of `RESULTS`, the definition of each read.
        ratings: Rows of `RATINGS`; null where it holds none.
        samples: For each split, id and `sample_digest` of what systems were given.
        problem: Why there are no figures; null where there are.
    """

    tag: str
    commit: str
    target: str | None = None
    figures: tuple[Figure, ...] = ()
    ratings: pa.Table | None = field(default=None, compare=False)
    samples: Mapping[str, Seen] = field(default_factory=dict)
    problem: str | None = None

    def figures_of(self, split: str, protocol: str) -> list[Figure]:
        """The figures of one split by one protocol, in the order of the release."""
        wanted = (split, protocol)
        return [each for each in self.figures if (each["split"], each["protocol"]) == wanted]


def read_scored(
    repo_id: str, *, known: Sequence[ScoredRelease] = (), api: HfApi | None = None
) -> tuple[ScoredRelease, ...]:
    """Reads every tagged release of a repository.

    Args:
        repo_id: A dataset repository, `NAMESPACE/NAME`.
        known: What was read before: a tag that is still on the same commit is not read again.
        api: The Hub's client; null for one with huggingface_hub's own address and token.

    Returns:
        The releases, by tag, the last name first. One that cannot be read says why.

    Raises:
        HubError: There is no such repository, or the Hub is out of reach.
    """
    remote = Remote(api or HfApi(), repo_id)
    state = remote.state()
    if state is None:
        raise HubError(
            f"there is no dataset {repo_id!r}, or this token may not see it: check its name"
        )
    held = {(each.tag, each.commit): each for each in known}
    tags = sorted(state.tags.items(), reverse=True)
    return tuple(held.get(tagged) or _read(remote, *tagged) for tagged in tags)


def _read(remote: Remote, tag: str, commit: str) -> ScoredRelease:
    try:
        manifest = load_manifest(remote.repo_id, revision=commit, api=remote.api)
        target = manifest.target.name
        if "results" not in manifest.configs:
            return ScoredRelease(tag, commit, target, problem=NO_RESULTS)
        figures = _table(remote, "results", commit).to_pylist()
        held = "ratings" in manifest.configs
        return ScoredRelease(
            tag,
            commit,
            target,
            tuple({**row, "definition": _definition(row["definition"])} for row in figures),
            _table(remote, "ratings", commit) if held else None,
            _samples(remote, manifest, commit),
        )
    except EchoError as error:
        return ScoredRelease(tag, commit, problem=str(error))


def _table(remote: Remote, config: str, commit: str) -> pa.Table:
    found = load_benchmark(remote.repo_id, config, revision=commit, api=remote.api)
    table: pa.Table = found.with_format("arrow")[:]
    return table


def _definition(text: str | None) -> Mapping[str, Any]:
    try:
        found = json.loads(text or "")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _samples(remote: Remote, manifest: Manifest, commit: str) -> dict[str, Seen]:
    """Two columns of each split's files, of which no other bytes are fetched."""
    files = HfFileSystem(endpoint=remote.api.endpoint, token=remote.api.token)
    found: dict[str, Seen] = {}
    for split in BENCHMARK_CONFIGS:
        rows = list[Mapping[str, Any]]()
        for entry in manifest.configs[split].files if split in manifest.configs else ():
            with (
                hub_errors(f"read {entry.path!r} of {remote.repo_id!r}"),
                files.open(f"datasets/{remote.repo_id}@{commit}/{entry.path}") as file,
            ):
                rows += pq.read_table(file, columns=SEEN).to_pylist()
        found[split] = frozenset((row["id"], row["sample_digest"]) for row in rows)
    return found
