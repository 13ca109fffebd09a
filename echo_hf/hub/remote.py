"""A dataset repository on the Hub, and its revisions that hold a post."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple

import pyarrow as pa
from huggingface_hub import (
    CommitInfo,
    CommitOperationAdd,
    CommitOperationDelete,
    DiscussionComment,
    HfApi,
    HfFileSystem,
)
from huggingface_hub.errors import (
    HfHubHTTPError,
    LocalEntryNotFoundError,
    LocalTokenNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.hf_api import RepoFile

from echo_hf._infra.http_errors import is_transient
from echo_hf._infra.parquet import open_parquet, read_parquet
from echo_hf._infra.regular_file import RefusedFileError
from echo_hf.errors import HubError
from echo_hf.hub.facts import POSTED_CONFIGS
from echo_hf.hub.redistribution import iterate_post_urls
from echo_hf.tables import Row

TOKENS_PAGE = "https://huggingface.co/settings/tokens"
SIGN_IN = "run `hf auth login`, or set HF_TOKEN"
NO_TOKEN = f"there is no token: {SIGN_IN} to a token that may write ({TOKENS_PAGE})"
RESUME_ADVICE = "the same command resumes from here"
MAX_ERROR_CHARACTERS = 240
HUB_ERRORS = (
    HfHubHTTPError,
    LocalTokenNotFoundError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
)
EXPLANATIONS = {
    LocalTokenNotFoundError: NO_TOKEN,
    OfflineModeIsEnabled: "HF_HUB_OFFLINE is set: unset it to ask the Hub",
    RepositoryNotFoundError: "there is no such dataset, or this token may not see it: check its "
    "name",
    RevisionNotFoundError: "the dataset has no such revision: check the tag",
    LocalEntryNotFoundError: "the Hub is out of reach ({cause}), and the cache does not hold it: "
    "go online once",
    pa.ArrowInvalid: "it is no Parquet file ({cause})",
    RefusedFileError: "it is not read: {cause}",
}


@contextmanager
def hub_errors(action: str, meanings: Mapping[int, str] | None = None) -> Iterator[None]:
    """Turn errors of the Hub's client into `HubError`; statuses may have messages here."""
    try:
        yield
    except Exception as error:  # the client passes on what its own libraries raise
        message = (meanings or {}).get(get_status(error) or 0) or _explain(error)
        raise HubError(f"cannot {action}: {message}") from error


def get_status(error: BaseException) -> int | None:
    origin = _find_origin(error)
    return origin.response.status_code if isinstance(origin, HfHubHTTPError) else None


def _find_origin(error: BaseException) -> BaseException:
    """Return the first response of the Hub among the causes, else the first cause."""
    while not isinstance(error, HUB_ERRORS) and error.__cause__ is not None:
        error = error.__cause__
    return error


def _explain(error: Exception) -> str:
    origin, status = _find_origin(error), get_status(error)
    for error_type, explanation in EXPLANATIONS.items():
        if isinstance(origin, error_type):
            return explanation.format(cause=_clean_message(origin.__cause__ or origin))
    message = " ".join(dict.fromkeys(map(_clean_message, (error, origin))))
    if status in (401, 403):
        return f"the Hub refuses this token ({message}): {SIGN_IN} to one that may ({TOKENS_PAGE})"
    if status is None or (is_transient(status) and status not in CONFLICT):
        return f"the Hub does not answer ({message}): {RESUME_ADVICE}"
    return f"the Hub refuses it ({message})"


def _clean_message(error: BaseException) -> str:
    words = " ".join(str(error).split()) or type(error).__name__
    # What follows a question mark may be a signature that lets its holder upload.
    return re.sub(r"(https?://[^\s?]+)\?\S*", r"\1", words)[:MAX_ERROR_CHARACTERS]


KIND = "dataset"
MAIN_BRANCH = "main"
SYSTEM_ACCOUNT = "[OIDC]"  # names the author where a token stands for no user; no user's name
CONFLICT = frozenset({409, 412})


class PullRequest(NamedTuple):
    """A pull request; its status is open, draft, merged or closed."""

    number: int
    title: str
    status: str
    url: str
    author: str
    created: datetime.datetime

    @property
    def branch(self) -> str:
        return f"refs/pr/{self.number}"

    @property
    def is_open(self) -> bool:
        return self.status in ("open", "draft")


class RequestChanges(NamedTuple):
    """The changes of a pull request since it left the main branch, up to its last commit."""

    commit: str
    base: str | None  # where it left; null where the main branch lost it: compared with its head
    sizes: Mapping[str, int]  # of files that are new or other than they were
    removed: Collection[str]
    is_cut: bool  # there are more files than were listed


class RepositoryState(NamedTuple):
    head: str
    tags: Mapping[str, str]
    private: bool


@dataclass(frozen=True)
class Remote:
    """A dataset repository, which may not exist yet."""

    api: HfApi
    repo_id: str

    @property
    def page(self) -> str:
        return f"{self.api.endpoint}/datasets/{self.repo_id}"

    def check_token(self) -> None:
        if os.environ.get("HF_OIDC_RESOURCE"):
            return  # a token of one repository, which a CI job is lent, stands for no user
        if self.api.token is False:
            raise HubError(f"cannot publish to {self.repo_id!r}: {NO_TOKEN}")
        with hub_errors(f"publish to {self.repo_id!r}"):
            identity = self.api.whoami()
        access = identity.get("auth", {}).get("accessToken", {})
        can_write = access.get("role") != "read"
        if scopes := access.get("role") == "fineGrained" and access.get("fineGrained"):
            scoped = [
                right
                for scope in scopes.get("scoped", ())
                for right in scope.get("permissions", ())
            ]
            can_write = "repo.write" in [*scopes.get("global", ()), *scoped]
        if not can_write:
            raise HubError(
                f"cannot publish to {self.repo_id!r}: the token of {identity.get('name')!r} may "
                f"only read: make one that may write ({TOKENS_PAGE}), then run `hf auth login`"
            )

    def check_writable(self) -> None:
        message = "this token may not write there: ask its owner, or propose it with --create-pr"
        with hub_errors(f"publish to {self.repo_id!r}", {403: message}):
            self.api.auth_check(self.repo_id, repo_type=KIND, write=True)

    def read_state(self) -> RepositoryState | None:
        try:
            with hub_errors(f"read {self.repo_id!r}"):
                refs = self.api.list_repo_refs(self.repo_id, repo_type=KIND)
                info = self.api.dataset_info(self.repo_id)
        except HubError as error:
            if isinstance(error.__cause__, RepositoryNotFoundError):
                return None
            raise
        heads = {branch.name: branch.target_commit for branch in refs.branches}
        tags = {tag.name: tag.target_commit for tag in refs.tags}
        return RepositoryState(heads[MAIN_BRANCH], tags, bool(info.private))

    def require_state(self) -> RepositoryState:
        if (state := self.read_state()) is None:
            raise HubError(
                f"there is no dataset {self.repo_id!r}, or this token may not see it: check its "
                "name, NAMESPACE/NAME"
            )
        return state

    def create(self, private: bool) -> RepositoryState:
        with hub_errors(f"create {self.repo_id!r}"):
            self.api.create_repo(self.repo_id, repo_type=KIND, private=private, exist_ok=True)
        return self.require_state()

    def list_files(self, revision: str, limit: int | None = None) -> dict[str, RepoFile]:
        """List the files of a revision, so many of them if there is a limit."""
        with hub_errors(f"list the files of {self.repo_id!r}"):
            entries = self.api.list_repo_tree(
                self.repo_id, revision=revision, repo_type=KIND, recursive=True
            )
            files = (entry for entry in entries if isinstance(entry, RepoFile))
            return {file.path: file for file in islice(files, limit)}

    def list_commits(self, revision: str = MAIN_BRANCH) -> list[str]:
        """List the history of a revision, its last commit first."""
        with hub_errors(f"list the commits of {revision!r} of {self.repo_id!r}"):
            commits = self.api.list_repo_commits(self.repo_id, repo_type=KIND, revision=revision)
            return [commit.commit_id for commit in commits]

    def read_changes(
        self, request: PullRequest, history: Collection[str], limit: int
    ) -> RequestChanges:
        """List what a request changes since it left a history, without reading content."""
        commit = self.find_commit(request.branch)
        base = next((each for each in self.list_commits(commit) if each in history), None)
        before = self.list_files(base or MAIN_BRANCH)
        most = len(before) + limit + 1
        after = self.list_files(commit, most)
        sizes = {
            path: file.size
            for path, file in after.items()
            if path not in before or before[path].blob_id != file.blob_id
        }
        is_cut = len(after) == most
        removed = set() if is_cut else before.keys() - after.keys()
        return RequestChanges(commit, base, sizes, removed, is_cut)

    def read_columns(self, commit: str, path: str, names: Collection[str]) -> pa.Table:
        """Read columns of a Parquet file without fetching others; some may be missing."""
        with self._open_file(commit, path) as file:
            return read_parquet(file, columns=list(names))

    def read_file(self, commit: str, path: str) -> bytes:
        """Read a small file, without keeping it."""
        with self._open_file(commit, path) as file:
            return file.read()

    def read_leaves(self, commit: str, path: str, leaves: Sequence[str]) -> Iterator[Row]:
        """Yield rows of a Parquet file with these leaf columns alone, such as `image.path`."""
        with self._open_file(commit, path) as file, open_parquet(file) as parquet:
            for batch in parquet.iterate_batches(leaves):
                yield from batch.to_pylist()

    @contextmanager
    def _open_file(self, commit: str, path: str) -> Iterator[BinaryIO]:
        """Open a file of which only what is read is fetched."""
        with hub_errors(f"read {path!r} of {self.repo_id!r}"):
            files = HfFileSystem(endpoint=self.api.endpoint, token=self.api.token)
            with files.open(f"datasets/{self.repo_id}@{commit}/{path}") as file:
                yield file

    def find_commit(self, revision: str) -> str:
        with hub_errors(f"find {revision!r} of {self.repo_id!r}"):
            return str(self.api.dataset_info(self.repo_id, revision=revision).sha)

    def list_requests(self) -> list[PullRequest]:
        with hub_errors(f"list the pull requests of {self.repo_id!r}"):
            discussions = self.api.get_repo_discussions(
                self.repo_id, repo_type=KIND, discussion_type="pull_request"
            )
            return [
                PullRequest(
                    discussion.num,
                    discussion.title,
                    discussion.status,
                    discussion.url,
                    discussion.author,
                    discussion.created_at,
                )
                for discussion in discussions
            ]

    def list_own_requests(self) -> list[PullRequest]:
        """List the pull requests that this token's account has opened; titles prove nothing."""
        if not (requests := self.list_requests()):
            return []
        if os.environ.get("HF_OIDC_RESOURCE"):
            return [each for each in requests if each.author.startswith(SYSTEM_ACCOUNT)]
        with hub_errors("find the account of this token"):
            account = self.api.whoami()["name"]
        return [each for each in requests if each.author == account]

    def find_merge_commit(self, request: PullRequest) -> str | None:
        with hub_errors(f"read {request.url}"):
            details = self.api.get_discussion_details(self.repo_id, request.number, repo_type=KIND)
        return details.merge_commit_oid

    def open_request(self, title: str, text: str) -> str:
        """Open a pull request without a change, and return its address."""
        with hub_errors(f"open a pull request of {self.repo_id!r}"):
            request = self.api.create_pull_request(
                self.repo_id, title, description=text, repo_type=KIND
            )
        return request.url

    def comment(self, request: PullRequest, text: str) -> None:
        """Comment on a pull request, unless the last comment says the same."""
        with hub_errors(f"comment {request.url}"):
            details = self.api.get_discussion_details(self.repo_id, request.number, repo_type=KIND)
            comments = [
                event.content for event in details.events if isinstance(event, DiscussionComment)
            ]
            if comments[-1:] != [text]:
                self.api.comment_discussion(self.repo_id, request.number, text, repo_type=KIND)

    def close(self, request: PullRequest, comment: str) -> None:
        with hub_errors(f"close {request.url}"):
            self.api.change_discussion_status(
                self.repo_id, request.number, "closed", comment=comment, repo_type=KIND
            )

    def commit(
        self,
        operations: Iterable[CommitOperationAdd | CommitOperationDelete],
        message: str,
        parent: str,
        *,
        description: str | None = None,
        create_pr: bool,
    ) -> CommitInfo:
        """Commit on a known parent, so that a concurrent change is refused."""
        conflict = (
            f"somebody else published meanwhile: it is no longer at {parent[:10]}, nothing of this "
            f"release was committed; look at {self.page}/commits/{MAIN_BRANCH}, then run the same "
            "command again"
        )
        with hub_errors(f"publish to {self.repo_id!r}", dict.fromkeys(CONFLICT, conflict)):
            return self.api.create_commit(
                self.repo_id,
                operations,
                commit_message=message,
                commit_description=description,
                repo_type=KIND,
                parent_commit=parent,
                create_pr=create_pr,
            )

    def add_to_request(
        self, request: PullRequest, path: str, content: str, parent: str, message: str
    ) -> str:
        """Add a file to the branch of a request, unless it is no longer at the parent commit."""
        conflict = f"it has changed since {parent[:10]}: look at it again, and repeat the command"
        with hub_errors(f"write to {request.url}", dict.fromkeys(CONFLICT, conflict)):
            done = self.api.create_commit(
                self.repo_id,
                [CommitOperationAdd(path, content.encode())],
                commit_message=message,
                repo_type=KIND,
                revision=request.branch,
                parent_commit=parent,
            )
        return done.oid

    def download(self, commit: str, folder: str, to: Path) -> Path:
        """Download the files below a folder of a commit, unchecked."""
        with hub_errors(f"download {folder!r} of {self.repo_id!r}"):
            self.api.snapshot_download(
                self.repo_id,
                repo_type=KIND,
                revision=commit,
                allow_patterns=[f"{folder}/*"],
                local_dir=to,
            )
        return to / folder

    def tag(self, name: str, commit: str) -> None:
        try:
            with hub_errors(f"tag {commit[:10]} of {self.repo_id!r} as {name!r}"):
                self.api.create_tag(self.repo_id, tag=name, revision=commit, repo_type=KIND)
        except HubError as error:
            state = self.read_state() if get_status(error) == 409 else None
            if state is None or state.tags.get(name) != commit:
                raise


# Where rows name posts; releases of older versions lack some of these columns.
POST_COLUMNS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        POSTED_CONFIGS, ("id", "post_urls", "community_feedback", "prompt_spans", "picture_sources")
    ),
    "responses": ("sources",),
}


class RevisionWithPosts(NamedTuple):
    """A revision that holds posts: ids of its samples, and the number of answers."""

    kind: str
    revision: str
    commit: str
    samples: tuple[str, ...]
    answers: int = 0


TAG_KIND = "tag"


def find_revisions_with_posts(
    repo_id: str, urls: Collection[str], *, api: HfApi | None = None
) -> list[RevisionWithPosts]:
    """Find the tags, branches and pull requests of a repository that hold posts."""
    remote = Remote(api or HfApi(), repo_id)
    remote.require_state()
    with hub_errors(f"read {repo_id!r}"):
        refs = remote.api.list_repo_refs(repo_id, repo_type=KIND, include_pull_requests=True)
    searched = frozenset(urls)
    tags = sorted(refs.tags, key=lambda tag: tag.name)
    revisions = [(TAG_KIND, tag.name, tag.target_commit) for tag in tags]
    revisions += [("branch", branch.name, branch.target_commit) for branch in refs.branches]
    requests = refs.pull_requests or ()
    revisions += [("pull request", request.ref, request.target_commit) for request in requests]
    holders: dict[str, tuple[tuple[str, ...], int]] = {}
    for commit in {commit for *_, commit in revisions}:
        samples, answers = set[str](), 0
        for path in remote.list_files(commit):
            config = PurePosixPath(path).parts[0]
            columns = POST_COLUMNS.get(config, ()) if path.endswith(".parquet") else ()
            for row in remote.read_columns(commit, path, columns).to_pylist() if columns else ():
                if "sources" in row:
                    answers += not searched.isdisjoint(row["sources"] or ())
                elif not searched.isdisjoint(iterate_post_urls(row)):
                    samples.add(row["id"])
        holders[commit] = tuple(sorted(samples)), answers
    return [
        RevisionWithPosts(kind, name, commit, *holders[commit])
        for kind, name, commit in revisions
        if any(holders[commit])
    ]


def delete_tags(repo_id: str, tags: Iterable[str], *, api: HfApi | None = None) -> None:
    client = api or HfApi()
    for tag in tags:
        with hub_errors(f"delete tag {tag!r} of {repo_id!r}"):
            client.delete_tag(repo_id, tag=tag, repo_type=KIND)
