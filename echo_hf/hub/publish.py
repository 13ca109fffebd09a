"""Publish a release as one revision of a dataset repository: all of it, or nothing."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
from huggingface_hub.errors import HFValidationError
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]
from pydantic import TypeAdapter, ValidationError

from echo_hf._infra.atomic import find_complete
from echo_hf._infra.console import Notify
from echo_hf._infra.text import escape_markdown, format_table
from echo_hf.curate.decisions import DECISIONS_FILE, read_decisions
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import HubError, ReleaseError
from echo_hf.hub.check_changes import CheckChange
from echo_hf.hub.diff import ReleaseDiff, compare_releases
from echo_hf.hub.facts import CONFIGS, POSTED_CONFIGS, SAMPLE_CONFIGS
from echo_hf.hub.load import download_files, load_manifest, open_release
from echo_hf.hub.manifest import CARD, MANIFEST, FileEntry, ReleasePath, file_entry, read_manifest
from echo_hf.hub.redistribution import (
    RestrictedSamples,
    dehydrate,
    has_content,
    has_no_restrictions,
    select_public_rows,
)
from echo_hf.hub.release import (
    Release,
    config_files,
    read_config_rows,
    read_release,
    read_rows,
    verify_release,
)
from echo_hf.hub.remote import Remote, RepositoryState
from echo_hf.hub.sealed import SealedSamples
from echo_hf.pipeline.run_folder import RunFolder

RepositoryFiles = Mapping[str, RepoFile]
TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
COMMIT = re.compile(r"[0-9a-f]{40}")
BRANCHES = frozenset({"main", "refs"})
DECISION_COLUMNS = ["id", "sample_digest", "safety", "provenance", "doubts"]


@dataclass(frozen=True)
class PublishResult:
    """Where a release was published."""

    url: str
    commit: str
    tag: str | None
    unchanged: bool


def publish(
    release: Release | Path | str,
    repo_id: str,
    tag: str,
    *,
    previous: Release | Path | str | None = None,
    create_pr: bool = False,
    private: bool = False,
    message: str | None = None,
    note: str | None = None,
    allow_rules: bool = False,
    allow_unscreened: bool = False,
    sealed_to: str | None = None,
    reveal: str | None = None,
    progress: Notify | None = None,
    api: HfApi | None = None,
) -> PublishResult:
    """Publish a release, unless the repository has it already.

    Words and images from platforms whose terms forbid passing them on are left out, unless the
    release states a right to them (`rights:` in its config). What is there already stays as it is,
    whatever its card compares it with.

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
        note: What its description says before what changed since `previous`.
        allow_rules: Publishes what plain rules or recorded answers have built.
        allow_unscreened: Publishes samples that no safety model has looked at.
        sealed_to: A private repository, `NAMESPACE/NAME`, to which the run's sealed samples go
            first, under the same tag; made when there is none.
        reveal: An earlier tag of the repository: the samples that were sealed in it are moved
            into the release, each with its proof.
        progress: Told what is being done, a line for each step.
        api: The Hub's client; null for one with huggingface_hub's own address and token.

    Returns:
        Where it is now.

    Raises:
        ReleaseError: The folder is not what was written, or may not be published.
        HubError: The token is missing or may not write, the tag is taken, somebody published
            meanwhile, or the Hub is out of reach; the repository of sealed samples is public.
        RunError: What was sealed in a tag is not in the run.
    """
    release = release if isinstance(release, Release) else read_release(Path(release))
    check_names(repo_id, tag)
    allowed = {"allow_rules": allow_rules, "allow_unscreened": allow_unscreened}
    check_publishable(release, **allowed)
    remote = Remote(api or HfApi(), repo_id)
    remote.check_token()
    if sealed_to == repo_id:
        raise HubError(
            f"--sealed-to is {sealed_to!r}, where the release goes: name a private repository"
        )
    if reveal is not None:
        if previous is not None and not isinstance(previous, Release):
            previous = open_release(previous, remote.api)
        root = _check_reveal(release, remote, tag, reveal, allowed)
        if reveal not in release.manifest.revealed:  # what can fail fails before anything is opened
            _check_repository(remote, tag, create_pr=create_pr, private=private)
            if sealed_to is not None:
                _check_left(release, root)
                _check_repository(_open_private(sealed_to, tag, remote.api), tag, private=True)
        run = _find_sealed(release)
        with run.run.lock():
            release = run.reveal(reveal, root)
    if sealed_to is not None:
        _publish_sealed(_find_sealed(release), sealed_to, tag, allowed, progress, remote.api)
    return _publish(
        release,
        remote,
        tag,
        previous=previous,
        create_pr=create_pr,
        private=private,
        message=message,
        note=note,
        progress=progress,
    )


def _publish_sealed(
    run: SealedSamples,
    repo_id: str,
    tag: str,
    allowed: Mapping[str, bool],
    progress: Notify | None,
    api: HfApi,
) -> PublishResult:
    """Publish the sealed samples of a run, in full, to a repository that is private."""
    if not run.has_release:
        raise ReleaseError(
            f"nothing is sealed in {str(run.root)!r} any more: leave out --sealed-to"
        )
    release = read_release(run.folder.release)
    check_publishable(release, sealed=True, **allowed)
    remote = _open_private(repo_id, tag, api)
    return _publish(release, remote, tag, private=True, progress=progress, sealed=True)


def _open_private(repo_id: str, tag: str, api: HfApi) -> Remote:
    """Open the repository of sealed samples; one that is public is refused."""
    check_names(repo_id, tag)
    remote = Remote(api, repo_id)
    state = remote.read_state()
    if state is not None and not state.private:
        raise HubError(
            f"{repo_id!r} is public, and sealed samples go to a private repository alone: name "
            f"another by --sealed-to, or change it at {remote.page}/settings first"
        )
    return remote


def _check_repository(
    remote: Remote, tag: str, *, create_pr: bool = False, private: bool = False
) -> None:
    """Check that a repository takes what no tag of it can be on yet."""
    if (state := _check_place(remote, create_pr=create_pr, private=private)) and tag in state.tags:
        raise _make_taken_error(remote, tag, state.tags[tag])


def _check_place(remote: Remote, *, create_pr: bool, private: bool) -> RepositoryState | None:
    """Check that releases can be published in a repository; null for a new one."""
    if (state := remote.read_state()) is None:
        return None
    if not create_pr:
        remote.check_writable()
    if private and not state.private:
        raise HubError(
            f"{remote.repo_id!r} is public, and --private is for new repositories: change it at "
            f"{remote.page}/settings first"
        )
    check_ownership(remote.list_files(state.head), repr(remote.repo_id))
    return state


def _make_taken_error(remote: Remote, tag: str, commit: str) -> HubError:
    return HubError(
        f"tag {tag!r} of {remote.repo_id!r} is on another release (commit {commit[:10]}), and tags "
        f"stay: choose another --tag, such as {tag + '.1'!r}"
    )


def _check_left(release: Release, root: str) -> None:
    """Check that samples stay sealed beside those that are about to be opened."""
    run = _find_sealed(release)
    opened = {each.row["id"] for each in run.read_commitment(root) if each.row}
    private = read_release(run.folder.release) if run.has_release else None
    names = [name for name in BENCHMARKS if private and name in private.manifest.configs]
    left = {row["id"] for name in names if private for row in read_config_rows(private, name)}
    if not left - opened:
        raise ReleaseError(
            f"nothing in {str(run.root)!r} stays sealed after --reveal: leave out --sealed-to"
        )


def _find_sealed(release: Release) -> SealedSamples:
    """Find what a run keeps sealed, in whose folder its release lies."""
    run = SealedSamples(RunFolder(release.path.parent))
    is_own = find_complete(run.run.release).resolve() == release.path.resolve()
    if not is_own or run.read_record() is None:
        raise ReleaseError(
            f"no sealed samples beside {str(release.path)!r}: expected a run that was built with "
            "`splits: {sealed: 0.2}`, or its release in its folder"
        )
    return run


def _check_reveal(
    release: Release, remote: Remote, tag: str, revealed_tag: str, allowed: Mapping[str, bool]
) -> str:
    """Check that what was sealed in a tag can be moved into the release; return its root."""
    state = remote.require_state()
    if revealed_tag not in state.tags:
        known = ", ".join(map(repr, sorted(state.tags))) or "none"
        raise HubError(
            f"--reveal {revealed_tag!r}: {remote.repo_id!r} has no such tag, expected one of its "
            f"tags ({known})"
        )
    commits = (state.tags[revealed_tag], state.head)
    then, head = (
        load_manifest(remote.repo_id, revision=commit, api=remote.api) for commit in commits
    )
    sealed = then.sealed
    is_unfinished = tag in state.tags or state.head not in state.tags.values()
    if revealed_tag in head.revealed and not (
        revealed_tag in release.manifest.revealed and is_unfinished
    ):
        raise HubError(f"--reveal {revealed_tag!r}: {remote.repo_id!r} has revealed it already")
    if sealed is None or sealed.private:
        raise HubError(f"--reveal {revealed_tag!r}: nothing was sealed in it, expected another tag")
    run = _find_sealed(release)
    if run.has_release:
        check_publishable(read_release(run.folder.release), sealed=True, **allowed)
    run.read_commitment(sealed.root)
    return sealed.root


def _publish(
    release: Release,
    remote: Remote,
    tag: str,
    *,
    previous: Release | Path | str | None = None,
    create_pr: bool = False,
    private: bool = False,
    message: str | None = None,
    note: str | None = None,
    progress: Notify | None = None,
    sealed: bool = False,
) -> PublishResult:
    state = _check_place(remote, create_pr=create_pr, private=private)
    notify = progress or (lambda _: None)
    preparing = _prepare(release, remote, tag, previous, notify, sealed=sealed)
    with preparing as (copy, contents, since):
        state = state or remote.create(private)
        present = remote.list_files(state.head)
        commit, page = state.tags.get(tag, state.head), f"{remote.page}/tree/{tag}"
        unchanged = is_published(remote, commit, copy, contents)
        if tag in state.tags:
            if not unchanged:
                raise _make_taken_error(remote, tag, commit)
            return PublishResult(page, commit, tag, unchanged)
        proposal = f"{remote.page}/commit/{commit}"
        if not unchanged:
            for request in remote.list_own_requests() if create_pr else ():
                if not request.is_open:
                    continue
                head = remote.find_commit(request.branch)
                if is_published(remote, head, copy, contents):
                    return PublishResult(request.url, head, None, unchanged=True)
            upload, delete = compare_files(contents, present)
            size = sum(content.size for content in upload.values())
            notify(f"uploading {len(upload)} files, {size / 1e6:,.1f} MB")
            added = [CommitOperationAdd(path, content.source) for path, content in upload.items()]
            deleted = [CommitOperationDelete(path, is_folder=False) for path in delete]
            title = message or f"Publish {tag}"
            text = "\n\n".join(filter(None, (note, since)))
            commit_info = remote.commit(
                [*added, *deleted], title, state.head, description=text, create_pr=create_pr
            )
            commit, proposal = commit_info.oid, commit_info.pr_url or commit_info.commit_url
        if create_pr:
            return PublishResult(proposal, commit, None, unchanged)
        notify(f"tagging {commit[:10]} as {tag}")
        remote.tag(tag, commit)
        return PublishResult(page, commit, tag, unchanged)


@contextmanager
def _prepare(
    release: Release,
    remote: Remote,
    tag: str,
    previous: Release | Path | str | None,
    notify: Notify,
    *,
    sealed: bool = False,
) -> Iterator[tuple[Release, Mapping[str, FileContent], str | None]]:
    """Prepare the public copy of a release, its files, and the changes since the previous."""
    if previous is not None and not isinstance(previous, Release):
        previous = open_release(previous, remote.api)
    # The revision before as it was passed on, too.
    previous_copy = prepare_public_release(previous) if previous else nullcontext()
    # What is sealed stays its owner's, and is complete.
    public_copy = nullcontext(release) if sealed else prepare_public_release(release, notify)
    with previous_copy as old, public_copy as copy:
        since = describe_changes(compare_releases(old, copy)) if old else None
        notify(f"checking {copy.path}")
        verify_release(copy.path)
        yield copy, build_contents(copy, remote.repo_id, tag, since), since


@dataclass(frozen=True)
class PublishPlan:
    """The changes that publishing a release would make.

    Attributes:
        repo_id: The repository.
        tag: The name of the revision.
        files: Bytes of each file of the release, by its path.
        new: Whether there is no such repository yet.
        upload: The files that it lacks, or has with other content.
        delete: The files that it has, and the release has not.
        tagged: The commit that the tag names already; null for none.
    """

    repo_id: str
    tag: str
    files: Mapping[str, int]
    new: bool
    upload: tuple[str, ...]
    delete: tuple[str, ...]
    tagged: str | None


def plan_publication(
    release: Release | Path | str,
    repo_id: str,
    tag: str,
    *,
    previous: Release | Path | str | None = None,
    allow_rules: bool = False,
    allow_unscreened: bool = False,
    progress: Notify | None = None,
    api: HfApi | None = None,
) -> PublishPlan:
    """Plan what `publish` would do; nothing is sent, and no token is needed.

    Returns:
        The files with their sizes, and what would change on the Hub.

    Raises:
        ReleaseError: The folder is not what was written, or may not be published.
        HubError: The repository is another's kind, or the Hub is out of reach.
    """
    release = release if isinstance(release, Release) else read_release(Path(release))
    check_names(repo_id, tag)
    check_publishable(release, allow_rules=allow_rules, allow_unscreened=allow_unscreened)
    remote = Remote(api or HfApi(), repo_id)
    state = remote.read_state()
    tagged = state.tags.get(tag) if state else None
    commit = state and (tagged or state.head)
    present = remote.list_files(commit) if commit else {}
    check_ownership(present, repr(repo_id))
    notify = progress or (lambda _: None)
    with _prepare(release, remote, tag, previous, notify) as (copy, contents, _):
        upload, delete = compare_files(contents, present)
        if commit and is_published(remote, commit, copy, contents):
            upload, delete = {}, []
        sizes = {path: content.size for path, content in sorted(contents.items())}
    return PublishPlan(repo_id, tag, sizes, state is None, (*sorted(upload),), (*delete,), tagged)


def summarize(result: PublishResult) -> str:
    """Summarize in a line what was done."""
    if result.tag is None:
        outcome = "nothing changed" if result.unchanged else "proposed"
        next_step = "the same command without --create-pr makes the tag once it is merged"
        return f"{outcome}: {result.url}, without a tag: {next_step}"
    if result.unchanged:
        return f"nothing changed: {result.url} is this release"
    return f"published: {result.url}"


def check_publishable(
    release: Release,
    *,
    allow_rules: bool = False,
    allow_unscreened: bool = False,
    sealed: bool = False,
) -> None:
    """Refuse a release that must not be published, or not without a flag."""
    manifest, place = release.manifest, f"release {str(release.path)!r}"
    refusals = {
        "holds the sealed samples themselves: name the run, whose release is public, and a private "
        "repository for these by --sealed-to": bool(
            not sealed and manifest.sealed and manifest.sealed.private
        ),
        f"has {manifest.open_reviews} samples that a person has to look at before it is published: "
        f"`echo-hf review {release.path}` shows them": manifest.open_reviews,
        "was built with plain rules or recorded answers, which are for trials: build it with a "
        "model, or add --allow-rules (in a schedule allow_rules: true)": (
            manifest.rules_built and not allow_rules
        ),
        f"has {manifest.unscreened} samples that no safety model has looked at: build it with a "
        "guard engine, or add --allow-unscreened (in a schedule allow_unscreened: true)": (
            manifest.unscreened and not allow_unscreened
        ),
    }
    for reason, is_refused in refusals.items():
        if is_refused:
            raise ReleaseError(f"{place} {reason}")
    # What reviewers of the run, in whose folder the release lies, decided otherwise.
    path = release.path.parent / DECISIONS_FILE
    decisions = read_decisions(path)
    files = [file for name in SAMPLE_CONFIGS for file in config_files(release, name)]
    rows = (row for file in files for row in read_rows(file, lambda _: DECISION_COLUMNS))
    status_by_id = {row["id"]: decisions.find_stale(row) for row in rows} if decisions.by_id else {}
    for status in ("removed", "changed", "opened", "kept"):
        stale = sorted(name for name, current in status_by_id.items() if current == status)
        if stale:
            others = f" and {len(stale) - 1} more" if stale[1:] else ""
            raise ReleaseError(
                f"sample {stale[0]!r}{others} of {place} was {status} in review since ({path}): "
                "build again"
            )


def check_names(repo_id: str, tag: str) -> None:
    """Refuse a name that the Hub would reject or misread."""
    check_repository(repo_id)
    # Git's own rules, as far as the characters do not rule it out already.
    is_ref = ".." not in tag and not tag.endswith((".", ".lock"))
    if not TAG.fullmatch(tag) or COMMIT.fullmatch(tag) or tag in BRANCHES or not is_ref:
        raise HubError(
            f"{tag!r} is not a name of a tag: expected letters, digits, '.', '_' and '-', as in "
            "'gpt-4o-2025-03'; neither a branch nor a commit"
        )


def check_repository(repo_id: str) -> None:
    """Refuse an invalid repository name."""
    with suppress(HFValidationError):
        validate_repo_id(repo_id)
        if "/" in repo_id:
            return
    raise HubError(
        f"{repo_id!r} is not a name of a repository: expected one like 'my-organization/echo'"
    )


@contextmanager
def prepare_public_release(release: Release, notify: Notify | None = None) -> Iterator[Release]:
    """Open the public version of a release, dehydrated where needed."""
    count = count_restricted_rows(release)
    if not count:
        yield release
        return
    if notify is not None:
        notify(f"leaving out posted words and images of {count} rows: no right to them is stated")
    # Beside it, where there is room for a release: a system's own folder may be small.
    parent = release.path.parent
    with tempfile.TemporaryDirectory(prefix=f".{release.path.name}.", dir=parent) as folder:
        yield dehydrate(release.path, Path(folder) / "release")


def count_restricted_rows(release: Release) -> int:
    """Count the rows with content that must not be redistributed."""
    rights = release.manifest.statements.rights
    if has_no_restrictions(rights):
        return 0
    configs = release.manifest.configs
    names = [name for name in POSTED_CONFIGS if name in configs]
    samples = RestrictedSamples(rights)
    restricted = sum(
        samples.record_restriction(name, row)
        and has_content(row, release.manifest.columns if name in SAMPLE_CONFIGS else {})
        for name in names
        for row in read_config_rows(release, name)
    )
    # Of another table the rows that are passed on with less in them, or not at all.
    return restricted + sum(
        select_public_rows(CONFIGS[name].table.name, [row], samples)[0] != [row]
        for name in configs.keys() - set(names)
        for row in read_config_rows(release, name)
    )


def is_published(
    remote: Remote, commit: str, release: Release, contents: Mapping[str, FileContent]
) -> bool:
    """Return whether a commit is this release, apart from its card's comparison and name."""
    present = remote.list_files(commit)
    upload, delete = compare_files(contents, present)
    if delete or not set(upload) <= {CARD, MANIFEST} <= set(present):
        return False
    folder = download_files(remote.repo_id, commit, [CARD, MANIFEST], api=remote.api)
    try:
        published = read_manifest(folder)
    except ReleaseError:  # somebody changed it
        return False
    expected = release.manifest.model_copy(update={"card": published.card})
    return published == expected and published.card == file_entry(folder, CARD)


MAX_MOVERS = 5
CHANGES_HEADING = "## Changes since the last revision\n"
# The call in the card's example, up to the name of the config, and the revision after it.
EXAMPLE_CALL = re.compile(r'(?m)^(samples = load_dataset\()".*?(?<!\\)"(, .*, revision=)".*"\)$')


def describe_changes(difference: ReleaseDiff) -> str:
    """Describe the changes since another release, for the card."""
    paragraphs = [
        f"Samples, compared with {escape_markdown(difference.a)}: {len(difference.added):,} added, "
        f"{len(difference.removed):,} removed, {len(difference.changed):,} changed, "
        f"{difference.equal:,} equal."
    ]
    if difference.causes:
        causes = [
            [str(cause), f"{count:,}", cause.meaning] for cause, count in difference.causes.items()
        ]
        paragraphs += [
            "Why samples changed; one may have several causes.",
            format_table(["Cause", "Samples", "Meaning"], causes),
        ]
    if difference.stages:
        stages = (
            f"{escape_markdown(change.stage)} ({', '.join(change.causes) or 'new or gone'})"
            for change in difference.stages
        )
        paragraphs.append(f"Stages that differ: {', '.join(stages)}.")
    if difference.checks:
        paragraphs += ["Checks that complaints became:", list_sentences(difference.checks)]
    drifts = []
    for name, drift in difference.drift.items():
        movers = (
            f"{escape_markdown(mover.name)} {100 * mover.change:+.1f}"
            for mover in drift.movers[:MAX_MOVERS]
        )
        distance = "not counted" if drift.distance is None else f"{drift.distance:.3f}"
        drifts.append([name, distance, ", ".join(movers)])
    headings = ["Drift of", "Total variation distance", "What moved most, in points"]
    verdicts = (
        f"Scores on `{name}`: {difference.scores.verdict(name)}."
        for name in difference.scores.configs
    )
    return "\n\n".join([*paragraphs, format_table(headings, drifts), *verdicts])


def list_sentences(changes: Iterable[CheckChange]) -> str:
    """List what became of checks, in Markdown."""
    return "\n".join(f"- {escape_markdown(change.sentence)}" for change in changes)


class FileContent(NamedTuple):
    """A file as it is published."""

    source: Path | bytes
    size: int
    sha256: str

    def matches(self, file: RepoFile) -> bool:
        """Return whether a repository file has this content, by sha256 or Git blob."""
        if self.size != file.size:
            return False
        if file.lfs is not None:
            return self.sha256 == file.lfs.sha256
        data = self.source if isinstance(self.source, bytes) else self.source.read_bytes()
        blob = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False)
        return blob.hexdigest() == file.blob_id


def build_contents(
    release: Release, repo_id: str, tag: str, since: str | None = None
) -> Mapping[str, FileContent]:
    """Build the files of a release as they are published."""
    manifest = release.manifest
    text = (release.path / CARD).read_text("utf-8")
    if since is not None:
        text = f"{text.partition(CHANGES_HEADING)[0]}{CHANGES_HEADING}\n{since}\n"
    repository, revision = (json.dumps(name, ensure_ascii=False) for name in (repo_id, tag))
    text = EXAMPLE_CALL.sub(lambda call: f"{call[1]}{repository}{call[2]}{revision})", text)
    card = text.encode()
    entry = FileEntry(path=CARD, bytes=len(card), sha256=hashlib.sha256(card).hexdigest())
    sealed = manifest.model_copy(update={"card": entry}).to_text().encode()
    files = {
        file.path: FileContent(release.path / file.path, file.bytes, file.sha256)
        for file in manifest.files
    }
    files[CARD] = FileContent(card, entry.bytes, entry.sha256)
    files[MANIFEST] = FileContent(sealed, len(sealed), hashlib.sha256(sealed).hexdigest())
    return files


# What the Hub, or a person on its page, puts into a repository that is yet to be filled.
FIRST_FILES = frozenset({".gitattributes", ".gitignore", "README.md", "LICENSE", "LICENSE.md"})
RELEASE_PATH = TypeAdapter(ReleasePath)


def compare_files(
    contents: Mapping[str, FileContent], present: RepositoryFiles
) -> tuple[dict[str, FileContent], list[str]]:
    """Return the files to upload, and the repository's release files to delete."""
    folders = {path.partition("/")[0] for path in contents if "/" in path}

    def is_of_release(path: str) -> bool:
        with suppress(ValidationError):
            return path.partition("/")[0] in folders or bool(RELEASE_PATH.validate_python(path))
        return False

    upload = {
        path: content
        for path, content in contents.items()
        if path not in present or not content.matches(present[path])
    }
    return upload, sorted(path for path in present if path not in contents and is_of_release(path))


def check_ownership(present: Collection[str], place: str, mark: str = MANIFEST) -> None:
    """Refuse to overwrite a folder that is not ours, as it lacks the mark file."""
    foreign = sorted(set(present) - FIRST_FILES)
    if foreign and mark not in present:
        raise HubError(
            f"{place} holds {foreign[0]!r} and no {mark}: choose another name, or empty it first"
        )
