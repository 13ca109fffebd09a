"""One dataset repository on the Hub, and which of its revisions hold a post; errors in one line."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

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

from echo_hf._infra.http_errors import may_pass
from echo_hf._infra.parquet import read_parquet
from echo_hf._infra.regular_file import RefusedFileError
from echo_hf.errors import HubError
from echo_hf.hub.facts import SAMPLE_CONFIGS
from echo_hf.hub.redistribution import addresses_of

TOKENS_PAGE = "https://huggingface.co/settings/tokens"
SIGN_IN = "run `hf auth login`, or set HF_TOKEN"
NO_TOKEN = f"there is no token: {SIGN_IN} to a token that may write ({TOKENS_PAGE})"
AGAIN = "the same command resumes from here"
LONGEST = 240
KNOWN = (HfHubHTTPError, LocalTokenNotFoundError, LocalEntryNotFoundError, OfflineModeIsEnabled)
EXPLAINED = {
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
def hub_errors(doing: str, meanings: Mapping[int, str] | None = None) -> Iterator[None]:
    """Turns what the Hub's client raises into a `HubError`; a status may have a meaning here."""
    try:
        yield
    except Exception as error:  # the client passes on what its own libraries raise
        said = (meanings or {}).get(status_of(error) or 0) or _explained(error)
        raise HubError(f"cannot {doing}: {said}") from error


def status_of(error: BaseException) -> int | None:
    origin = _origin(error)
    return origin.response.status_code if isinstance(origin, HfHubHTTPError) else None


def _origin(error: BaseException) -> BaseException:
    """The first answer of the Hub among the causes, else the first cause of all."""
    while not isinstance(error, KNOWN) and error.__cause__ is not None:
        error = error.__cause__
    return error


def _explained(error: Exception) -> str:
    origin, status = _origin(error), status_of(error)
    for kind, explained in EXPLAINED.items():
        if isinstance(origin, kind):
            return explained.format(cause=_said(origin.__cause__ or origin))
    said = " ".join(dict.fromkeys(map(_said, (error, origin))))
    if status in (401, 403):
        return f"the Hub refuses this token ({said}): {SIGN_IN} to one that may ({TOKENS_PAGE})"
    if status is None or (may_pass(status) and status not in CONFLICT):
        return f"the Hub does not answer ({said}): {AGAIN}"
    return f"the Hub refuses it ({said})"


def _said(error: BaseException) -> str:
    words = " ".join(str(error).split()) or type(error).__name__
    # What follows a question mark may be a signature that lets its holder upload.
    return re.sub(r"(https?://[^\s?]+)\?\S*", r"\1", words)[:LONGEST]


KIND = "dataset"
MAIN = "main"
CONFLICT = frozenset({409, 412})


class Request(NamedTuple):
    """A pull request; its status is open, draft, merged or closed."""

    number: int
    title: str
    status: str
    url: str

    @property
    def branch(self) -> str:
        return f"refs/pr/{self.number}"

    @property
    def is_open(self) -> bool:
        return self.status in ("open", "draft")


class State(NamedTuple):
    head: str
    tags: Mapping[str, str]
    private: bool


@dataclass(frozen=True)
class Remote:
    """A dataset repository, which may be yet to be made."""

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
        may_write = access.get("role") != "read"
        if fine := access.get("role") == "fineGrained" and access.get("fineGrained"):
            scoped = [one for each in fine.get("scoped", ()) for one in each.get("permissions", ())]
            may_write = "repo.write" in [*fine.get("global", ()), *scoped]
        if not may_write:
            raise HubError(
                f"cannot publish to {self.repo_id!r}: the token of {identity.get('name')!r} may "
                f"only read: make one that may write ({TOKENS_PAGE}), then run `hf auth login`"
            )

    def check_writable(self) -> None:
        said = "this token may not write there: ask its owner, or propose it with --create-pr"
        with hub_errors(f"publish to {self.repo_id!r}", {403: said}):
            self.api.auth_check(self.repo_id, repo_type=KIND, write=True)

    def state(self) -> State | None:
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
        return State(heads[MAIN], tags, bool(info.private))

    def existing(self) -> State:
        if (state := self.state()) is None:
            raise HubError(
                f"there is no dataset {self.repo_id!r}, or this token may not see it: check its "
                "name, NAMESPACE/NAME"
            )
        return state

    def create(self, private: bool) -> State:
        with hub_errors(f"create {self.repo_id!r}"):
            self.api.create_repo(self.repo_id, repo_type=KIND, private=private, exist_ok=True)
        return self.existing()

    def files(self, revision: str) -> dict[str, RepoFile]:
        with hub_errors(f"list the files of {self.repo_id!r}"):
            found = self.api.list_repo_tree(
                self.repo_id, revision=revision, repo_type=KIND, recursive=True
            )
            return {each.path: each for each in found if isinstance(each, RepoFile)}

    def columns(self, commit: str, path: str, wanted: Collection[str]) -> pa.Table:
        """Columns of a Parquet file, of which no other bytes are fetched; some may lack there."""
        with hub_errors(f"read {path!r} of {self.repo_id!r}"):
            files = HfFileSystem(endpoint=self.api.endpoint, token=self.api.token)
            with files.open(f"datasets/{self.repo_id}@{commit}/{path}") as file:
                return read_parquet(file, columns=list(wanted))

    def commit_of(self, revision: str) -> str:
        with hub_errors(f"find {revision!r} of {self.repo_id!r}"):
            return str(self.api.dataset_info(self.repo_id, revision=revision).sha)

    def requests(self) -> list[Request]:
        with hub_errors(f"list the pull requests of {self.repo_id!r}"):
            found = self.api.get_repo_discussions(
                self.repo_id, repo_type=KIND, discussion_type="pull_request"
            )
            return [Request(each.num, each.title, each.status, each.url) for each in found]

    def merged_as(self, request: Request) -> str | None:
        with hub_errors(f"read {request.url}"):
            found = self.api.get_discussion_details(self.repo_id, request.number, repo_type=KIND)
        return found.merge_commit_oid

    def ask(self, title: str, text: str) -> str:
        """Opens a pull request without a change, and gives its address."""
        with hub_errors(f"open a pull request of {self.repo_id!r}"):
            made = self.api.create_pull_request(
                self.repo_id, title, description=text, repo_type=KIND
            )
        return made.url

    def comment(self, request: Request, text: str) -> None:
        """Says something in a request, unless it is what was said there last."""
        with hub_errors(f"comment {request.url}"):
            found = self.api.get_discussion_details(self.repo_id, request.number, repo_type=KIND)
            said = [one.content for one in found.events if isinstance(one, DiscussionComment)]
            if said[-1:] != [text]:
                self.api.comment_discussion(self.repo_id, request.number, text, repo_type=KIND)

    def close(self, request: Request, comment: str) -> None:
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
        """Makes one commit on a state that was seen; the files of it come first."""
        moved = (
            f"somebody else published meanwhile: it is no longer at {parent[:10]}, nothing of this "
            f"release was committed; look at {self.page}/commits/{MAIN}, then run the same command "
            "again"
        )
        with hub_errors(f"publish to {self.repo_id!r}", dict.fromkeys(CONFLICT, moved)):
            return self.api.create_commit(
                self.repo_id,
                operations,
                commit_message=message,
                commit_description=description,
                repo_type=KIND,
                parent_commit=parent,
                create_pr=create_pr,
            )

    def tag(self, name: str, commit: str) -> None:
        try:
            with hub_errors(f"tag {commit[:10]} of {self.repo_id!r} as {name!r}"):
                self.api.create_tag(self.repo_id, tag=name, revision=commit, repo_type=KIND)
        except HubError as error:
            state = self.state() if status_of(error) == 409 else None
            if state is None or state.tags.get(name) != commit:
                raise


# Where rows name posts; releases of older versions lack some of these columns.
NAMING: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        SAMPLE_CONFIGS, ("id", "post_urls", "community_feedback", "prompt_spans", "picture_sources")
    ),
    "responses": ("sources",),
}


class Holding(NamedTuple):
    """A tag, branch or pull request that holds posts: ids of samples, and how many answers do."""

    kind: str
    revision: str
    commit: str
    samples: tuple[str, ...]
    answers: int = 0


TAG = "tag"


def revisions_holding(
    repo_id: str, urls: Collection[str], *, api: HfApi | None = None
) -> list[Holding]:
    """Finds what of a repository still holds posts: tags, branches, and pull requests."""
    remote = Remote(api or HfApi(), repo_id)
    remote.existing()
    with hub_errors(f"read {repo_id!r}"):
        refs = remote.api.list_repo_refs(repo_id, repo_type=KIND, include_pull_requests=True)
    wanted = frozenset(urls)
    tags = sorted(refs.tags, key=lambda one: one.name)
    named = [(TAG, one.name, one.target_commit) for one in tags]
    named += [("branch", one.name, one.target_commit) for one in refs.branches]
    requests = refs.pull_requests or ()
    named += [("pull request", one.ref, one.target_commit) for one in requests]
    found: dict[str, tuple[tuple[str, ...], int]] = {}
    for commit in {commit for *_, commit in named}:
        samples, answers = set[str](), 0
        for path in remote.files(commit):
            config = PurePosixPath(path).parts[0]
            columns = NAMING.get(config, ()) if path.endswith(".parquet") else ()
            for row in remote.columns(commit, path, columns).to_pylist() if columns else ():
                if "sources" in row:
                    answers += not wanted.isdisjoint(row["sources"] or ())
                elif not wanted.isdisjoint(addresses_of(row)):
                    samples.add(row["id"])
        found[commit] = tuple(sorted(samples)), answers
    return [Holding(kind, name, at, *found[at]) for kind, name, at in named if any(found[at])]


def delete_tags(repo_id: str, tags: Iterable[str], *, api: HfApi | None = None) -> None:
    client = api or HfApi()
    for tag in tags:
        with hub_errors(f"delete tag {tag!r} of {repo_id!r}"):
            client.delete_tag(repo_id, tag=tag, repo_type=KIND)
