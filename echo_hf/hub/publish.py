"""Publish a release as one revision of a dataset repository: all of it, or nothing."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from huggingface_hub import HfApi
from huggingface_hub.errors import HFValidationError
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

from echo_hf.curate.decisions import FILE, read_decisions
from echo_hf.errors import HubError, ReleaseError
from echo_hf.hub.contents import (
    BESIDE,
    Changes,
    changes,
    changes_text,
    check_ours,
    is_same_release,
    named_card,
    release_contents,
    section_of,
)
from echo_hf.hub.dehydrate import dehydrate, holds_content
from echo_hf.hub.diff import compare
from echo_hf.hub.facts import CONFIGS, SAMPLE_CONFIGS
from echo_hf.hub.load import downloaded, release_at
from echo_hf.hub.manifest import CARD, MANIFEST
from echo_hf.hub.redistribution import (
    Samples,
    may_pass_on_all,
    passed_on_rows,
    restricted_platforms,
    samples_of,
)
from echo_hf.hub.release import Release, read_release, rows_of, verify_release
from echo_hf.hub.remote import Remote, State

Files = Mapping[str, RepoFile]


@dataclass(frozen=True)
class Candidate:
    """A release on its way to a repository."""

    release: Release
    remote: Remote
    tag: str
    since: str | None = None

    def differences(self, there: Files) -> Changes:
        """What differs from a revision."""
        return self._differences(there, self.tag, self.since)

    def is_at(self, commit: str, there: Files, tags: Iterable[str] = ()) -> bool:
        """Whether a commit is the release; what its card compares it with is no part of that."""
        found = self.differences(there)
        if not found:
            return True
        if found.delete or not set(found.upload) <= {CARD, MANIFEST} <= set(there):
            return False
        since = section_of(_card(self._beside(commit)))
        return any(not self._differences(there, name, since) for name in (self.tag, *tags))

    def is_repacked_at(self, commit: str, there: Files, tags: Iterable[str]) -> bool:
        """Whether a commit is the release as another version of the toolkit wrote it."""
        folder = self._beside(commit)
        if not is_same_release(self.release.manifest, folder, there):
            return False
        card = _card(folder)
        return any(named_card(card, self.remote.repo_id, name) == card for name in tags)

    def _differences(self, there: Files, tag: str, since: str | None) -> Changes:
        return changes(release_contents(self.release, self.remote.repo_id, tag, since), there)

    def _beside(self, commit: str) -> Path:
        """A folder with what a commit holds beside its data."""
        return downloaded(self.remote.repo_id, commit, list(BESIDE), api=self.remote.api)


def _card(folder: Path) -> str:
    """A card as it is there; of what is no text, something that is no card of ours."""
    return (folder / CARD).read_bytes().decode(errors="replace")


TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
COMMIT = re.compile(r"[0-9a-f]{40}")
BRANCHES = frozenset({"main", "refs"})


def check_publishable(
    release: Release, *, allow_rules: bool = False, allow_unscreened: bool = False
) -> None:
    """Refuses a release that must not, or not without being told so, be published."""
    manifest, place = release.manifest, f"release {str(release.path)!r}"
    if manifest.open_reviews:
        raise ReleaseError(
            f"{place} has {manifest.open_reviews} samples that a person has to look at before it "
            f"is published: `echo-hf review {release.path}` shows them"
        )
    if manifest.rules_built and not allow_rules:
        raise ReleaseError(
            f"{place} was built with plain rules or recorded answers, which are for trials: build "
            "it with a model, or add --allow-rules to publish it nevertheless"
        )
    if manifest.unscreened and not allow_unscreened:
        raise ReleaseError(
            f"{place} has {manifest.unscreened} samples that no safety model has looked at: build "
            "it with a guard engine, or add --allow-unscreened to publish it nevertheless"
        )
    _check_reviewed(release)


def check_names(repo_id: str, tag: str) -> None:
    """Refuses a name that the Hub would not take, or would take for something else."""
    check_repository(repo_id)
    if not TAG.fullmatch(tag) or COMMIT.fullmatch(tag) or tag in BRANCHES or _is_no_ref(tag):
        raise HubError(
            f"{tag!r} is not a name of a tag: expected letters, digits, '.', '_' and '-', as in "
            "'gpt-4o-2025-03'; neither a branch nor a commit"
        )


def check_repository(repo_id: str) -> None:
    """Refuses a name that the Hub would not take for a repository's."""
    try:
        validate_repo_id(repo_id)
    except HFValidationError:
        is_name = False
    else:
        is_name = "/" in repo_id
    if not is_name:
        raise HubError(
            f"{repo_id!r} is not a name of a repository: expected one like 'my-organization/echo'"
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


@contextmanager
def passed_on(release: Release, say: Callable[[str], None] | None = None) -> Iterator[Release]:
    """The release as it may be passed on."""
    count = to_leave_out(release)
    if not count:
        yield release
        return
    if say is not None:
        say(f"leaving out posted words and images of {count} rows: no right to them is stated")
    # Beside it, where there is room for a release: a system's own folder may be small.
    place = release.path.parent
    with tempfile.TemporaryDirectory(prefix=f".{release.path.name}.", dir=place) as folder:
        yield dehydrate(release.path, Path(folder) / "release")


def to_leave_out(release: Release) -> int:
    """How many rows hold content that must not be passed on."""
    rights = release.manifest.statements.rights
    if may_pass_on_all(rights):
        return 0
    names = [name for name in SAMPLE_CONFIGS if name in release.manifest.configs]
    samples = samples_of({name: rows_of(release, name) for name in names}, rights)
    held = sum(
        bool(restricted_platforms(row, rights)) and holds_content(row)
        for name in names
        for row in rows_of(release, name)
    )
    others = release.manifest.configs.keys() - set(names)
    return held + sum(_changed(release, name, samples) for name in others)


def _changed(release: Release, config: str, samples: Samples) -> int:
    """How many rows of another table are passed on with less in them, or not at all."""
    table = CONFIGS[config].table.name if config in CONFIGS else config
    rows = rows_of(release, config)
    return sum(passed_on_rows(table, [row], samples)[0] != [row] for row in rows)


Say = Callable[[str], None]


@dataclass(frozen=True)
class Published:
    """Where a release is now."""

    url: str
    commit: str
    tag: str | None
    unchanged: bool


@dataclass(frozen=True)
class _Job:
    candidate: Candidate
    message: str
    create_pr: bool
    say: Say

    @property
    def remote(self) -> Remote:
        return self.candidate.remote

    @property
    def tag(self) -> str:
        return self.candidate.tag


def publish(
    release: Release | Path | str,
    repo_id: str,
    tag: str,
    *,
    previous: Release | Path | str | None = None,
    create_pr: bool = False,
    private: bool = False,
    message: str | None = None,
    allow_rules: bool = False,
    allow_unscreened: bool = False,
    progress: Say | None = None,
    api: HfApi | None = None,
) -> Published:
    """Publishes a release, if the repository does not have it yet.

    Words and images from platforms whose terms forbid passing them on are left out, unless the
    release states a right to them (`rights:` in its config). What is there already stays as it is,
    whatever its card compares it with; under its tag, in the files and with the card of another
    version of the toolkit as well.

    Args:
        release: A release, or its folder, which stays as it is.
        repo_id: The repository, `NAMESPACE/NAME`; made when there is none.
        tag: Names the revision: one target at one time.
        previous: The revision before, on disk or as NAMESPACE/NAME@TAG: the card says what changed
            since.
        create_pr: Proposes the release as a pull request; a tag comes when it is merged and this
            is called again without.
        private: Makes a new repository one that only its owners see.
        message: What the commit is called.
        allow_rules: Publishes what plain rules or recorded answers have built.
        allow_unscreened: Publishes samples that no safety model has looked at.
        progress: Told what is being done, a line for each step.
        api: The Hub's client; null for one with huggingface_hub's own address and token.

    Returns:
        Where it is now.

    Raises:
        ReleaseError: The folder is not what was written, or may not be published.
        HubError: The token is missing or may not write, the tag is taken, somebody published
            meanwhile, or the Hub is out of reach.
    """
    release = release if isinstance(release, Release) else read_release(Path(release))
    check_names(repo_id, tag)
    check_publishable(release, allow_rules=allow_rules, allow_unscreened=allow_unscreened)
    remote = Remote(api or HfApi(), repo_id)
    remote.check_token()
    state = _allowed(remote, create_pr=create_pr, private=private)
    say = progress or (lambda _: None)
    with _before(previous, remote.api) as old, passed_on(release, say) as copy:
        since = changes_text(compare(old, copy)) if old else None
        candidate = Candidate(copy, remote, tag, since)
        say(f"checking {copy.path}")
        verify_release(copy.path)
        job = _Job(candidate, message or f"Publish {tag}", create_pr, say)
        return _publish(job, state or remote.create(private))


def summary(published: Published) -> str:
    """What was done, in a line."""
    if published.tag is None:
        done = "nothing changed" if published.unchanged else "proposed"
        rest = "the same command without --create-pr makes the tag once it is merged"
        return f"{done}: {published.url}, without a tag: {rest}"
    if published.unchanged:
        return f"nothing changed: {published.url} is this release"
    return f"published: {published.url}"


def _allowed(remote: Remote, *, create_pr: bool, private: bool) -> State | None:
    """The repository, null where it is yet to be made; refused for whatever it alone tells."""
    state = remote.state()
    if state is None:
        return None
    if not create_pr:
        remote.check_writable()
    if private and not state.private:
        raise HubError(
            f"{remote.repo_id!r} is public, and --private is for new repositories: change it "
            f"at {remote.page}/settings first"
        )
    _files(remote, state.head)
    return state


def _files(remote: Remote, commit: str) -> Files:
    there = remote.files(commit)
    check_ours(there, remote.repo_id)
    return there


def _publish(job: _Job, state: State) -> Published:
    there = _files(job.remote, state.head)
    if job.tag in state.tags:
        return _tagged(job, state)
    if job.candidate.is_at(state.head, there, state.tags_of(state.head)):
        return _done(job, state.head, unchanged=True)
    found = job.candidate.differences(there)
    if job.create_pr:
        return _proposed(job, state, found)
    return _done(job, _committed(job, state, found)[0], unchanged=False)


def _tagged(job: _Job, state: State) -> Published:
    """Nothing is left to do where the tag holds this release, whatever came after it."""
    commit, remote = state.tags[job.tag], job.remote
    there, tags = remote.files(commit), state.tags_of(commit)
    is_here = job.candidate.is_at(commit, there, tags)
    if not is_here and not job.candidate.is_repacked_at(commit, there, tags):
        raise HubError(
            f"tag {job.tag!r} of {remote.repo_id!r} is on another release (commit "
            f"{commit[:10]}), and tags stay: choose another --tag, such as {job.tag + '.1'!r}"
        )
    return Published(f"{remote.page}/tree/{job.tag}", commit, job.tag, unchanged=True)


def _done(job: _Job, commit: str, *, unchanged: bool) -> Published:
    if job.create_pr:
        return Published(f"{job.remote.page}/commit/{commit}", commit, None, unchanged)
    job.say(f"tagging {commit[:10]} as {job.tag}")
    job.remote.tag(job.tag, commit)
    return Published(f"{job.remote.page}/tree/{job.tag}", commit, job.tag, unchanged)


def _proposed(job: _Job, state: State, found: Changes) -> Published:
    for branch, page in job.remote.open_pulls().items():
        head = job.remote.commit_of(branch)
        if job.candidate.is_at(head, job.remote.files(head)):
            return Published(page, head, None, unchanged=True)
    commit, page = _committed(job, state, found)
    return Published(page, commit, None, unchanged=False)


def _committed(job: _Job, state: State, found: Changes) -> tuple[str, str]:
    """Makes the commit, and gives it with its page."""
    job.say(f"uploading {len(found.upload)} files, {found.bytes / 1e6:,.1f} MB")
    made = job.remote.commit(found.operations(), job.message, state.head, create_pr=job.create_pr)
    return made.oid, made.pr_url or made.commit_url


@contextmanager
def _before(previous: Release | Path | str | None, api: HfApi) -> Iterator[Release | None]:
    """The revision before, as it was passed on."""
    if previous is None:
        yield None
        return
    found = previous if isinstance(previous, Release) else release_at(previous, api)
    with passed_on(found) as copy:
        yield copy
