"""What may be published, and under which name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

from echo_hf.curate.decision_file import FILE, read_decisions
from echo_hf.errors import HubError, ReleaseError
from echo_hf.hub.configs import SAMPLE_CONFIGS
from echo_hf.hub.release import Release

TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
COMMIT = re.compile(r"[0-9a-f]{40}")
BRANCHES = frozenset({"main", "refs"})


def check_publishable(
    release: Release, *, allow_rules: bool = False, allow_unscreened: bool = False
) -> None:
    """Refuses a release that must not, or not without being told so, be published.

    Args:
        release: The release.
        allow_rules: Whether answers may come from plain rules.
        allow_unscreened: Whether samples may be in it that no safety model has looked at.

    Raises:
        ReleaseError: Somebody has to look at it first, a reviewer has removed, changed or opened a
            sample of it since it was built, or it was not allowed.
        ReviewError: The decisions beside it are not understood.
    """
    manifest, place = release.manifest, f"release {str(release.path)!r}"
    if manifest.open_reviews:
        raise ReleaseError(
            f"{place} has {manifest.open_reviews} samples that a person has to look at before it "
            f"is published: `echo-hf review {release.path}` shows them"
        )
    if manifest.rules_built and not allow_rules:
        raise ReleaseError(
            f"{place} was built with plain rules, which are for trials: build it with a model, or "
            "add --allow-rules to publish it nevertheless"
        )
    if manifest.unscreened and not allow_unscreened:
        raise ReleaseError(
            f"{place} has {manifest.unscreened} samples that no safety model has looked at: build "
            "it with a guard engine, or add --allow-unscreened to publish it nevertheless"
        )
    _check_reviewed(release)


def check_names(repo_id: str, tag: str) -> None:
    """Refuses a name that the Hub would not take, or would take for something else.

    Args:
        repo_id: Of a repository.
        tag: Of a revision.

    Raises:
        HubError: One of them is no such name.
    """
    check_repository(repo_id)
    if not TAG.fullmatch(tag) or COMMIT.fullmatch(tag) or tag in BRANCHES or _is_no_ref(tag):
        raise HubError(
            f"{tag!r} is no name of a tag: expected letters, digits, '.', '_' and '-', as in "
            "'gpt-4o-2025-03'; neither a branch nor a commit"
        )


def check_repository(repo_id: str) -> None:
    """Refuses a name that the Hub would not take for a repository's.

    Args:
        repo_id: The name.

    Raises:
        HubError: It is no such name.
    """
    try:
        validate_repo_id(repo_id)
    except HFValidationError:
        is_name = False
    else:
        is_name = "/" in repo_id
    if not is_name:
        raise HubError(
            f"{repo_id!r} is no name of a repository: expected one like 'my-organization/echo'"
        )


def _check_reviewed(release: Release) -> None:
    """Refuses what reviewers of the run, in whose folder the release lies, decided otherwise."""
    path = release.path.parent / FILE
    decisions = read_decisions(path)
    if not decisions.by_id:
        return
    found = {row["id"]: decisions.stale(row) for row in _samples(release)}
    for what in ("removed", "changed", "opened"):
        stale = sorted(name for name, told in found.items() if told == what)
        if stale:
            more = f" and {len(stale) - 1} more" if stale[1:] else ""
            raise ReleaseError(
                f"sample {stale[0]!r}{more} of release {str(release.path)!r} was {what} in review "
                f"since ({path}): build again"
            )


def _samples(release: Release) -> Iterator[Mapping[str, Any]]:
    for name in SAMPLE_CONFIGS:
        entry = release.manifest.configs.get(name)
        for file in entry.files if entry else ():
            path = release.path / file.path
            try:
                table = pq.read_table(path, columns=["id", "sample_digest", "safety", "provenance"])
            except (OSError, pa.ArrowException) as error:
                said = " ".join(str(error).split())[:200]
                raise ReleaseError(f"cannot read {str(path)!r} ({said}): build again") from error
            yield from table.to_pylist()


def _is_no_ref(tag: str) -> bool:
    """Git's own rules, as far as the characters do not rule it out already."""
    return ".." in tag or tag.endswith((".", ".lock"))
