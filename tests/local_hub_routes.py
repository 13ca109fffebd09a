"""What the Hub answers to each request that huggingface_hub and datasets make."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import yaml

from tests.local_hub_repository import PULL, Commit, Repository, StoredFile

if TYPE_CHECKING:
    from tests.local_hub import LocalHub

DATE = "2026-03-02T17:12:40.000Z"
LARGE = (".parquet", ".png", ".jpg")
SAFE = frozenset({"GET", "HEAD"})
SPACE = "#space"
ANYONE_POSTS = ("paths-info",)


@dataclass(frozen=True)
class Question:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    endpoint: str

    @property
    def json(self) -> Any:
        return json.loads(self.body or b"{}")

    @property
    def token(self) -> str | None:
        return self.headers.get("authorization", "").removeprefix("Bearer ") or None


@dataclass(frozen=True)
class Answer:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    hub: LocalHub
    question: Question
    repo_id: str
    repository: Repository
    rest: str

    @property
    def revision(self) -> str:
        return self.rest or "main"

    @property
    def is_pull(self) -> bool:
        return bool(self.question.query.get("create_pr"))


class RefusedError(Exception):
    def __init__(self, status: int, code: str = "", said: str = "", **headers: str) -> None:
        super().__init__(said or code)
        named = {"X-Error-Code": code, "X-Error-Message": said or code, **headers}
        self.answer = Answer(
            status,
            json.dumps({"error": said or code}).encode(),
            {name.replace("_", "-"): value for name, value in named.items() if value},
        )


def answer(hub: LocalHub, question: Question) -> Answer:
    """The answer to a request; 404 for what no client was seen to ask for."""
    try:
        for pattern, respond in PLACES.items():
            if match := re.fullmatch(pattern, question.path):
                return respond(hub, question, *match.groups(default=""))
    except RefusedError as refused:
        return refused.answer
    return RefusedError(404, "NotFound").answer


def said(value: Any, status: int = 200) -> Answer:
    return Answer(status, json.dumps(value).encode(), {"Content-Type": "application/json"})


def whoami(hub: LocalHub, question: Question) -> Answer:
    token = _token(hub, question)
    scoped = [{"entity": {"type": "user", "name": token.user}, "permissions": token.permissions}]
    fine = {"fineGrained": {"global": [], "scoped": scoped}} if token.role == "fineGrained" else {}
    access = {"displayName": "test", "role": token.role, **fine}
    orgs = [{"type": "org", "name": name, "roleInOrg": "write"} for name in token.orgs]
    auth = {"type": "access_token", "accessToken": access}
    return said({"type": "user", "name": token.user, "orgs": orgs, "auth": auth})


def validate_yaml(hub: LocalHub, question: Question) -> Answer:
    found = re.match(r"---\n(.*?)\n---\n", question.json["content"], re.DOTALL)
    data = yaml.safe_load(found[1]) if found else None
    if isinstance(data, dict) and data.get("license", "none") != "":
        return said({"errors": [], "warnings": []})
    return said({"errors": [{"message": '"license" must be one of many'}], "warnings": []}, 400)


def create(hub: LocalHub, question: Question) -> Answer:
    asked = question.json
    token = _token(hub, question)
    repo_id = f"{asked.get('organization') or token.user}/{asked['name']}"
    kind = asked.get("type", "dataset")
    if kind == "space" and not asked.get("sdk"):
        raise RefusedError(400, said='"sdk" is required')
    if not token.writes(repo_id):
        raise RefusedError(403, said=f"You don't have the rights to create {repo_id}")
    held = space_key(repo_id) if kind == "space" else repo_id
    page = f"{question.endpoint}/{kind}s/{repo_id}"
    if held in hub.repositories:
        return said({"error": f"You already created this {kind} repo", "url": page}, 409)
    private = asked.get("visibility") == "private" or bool(asked.get("private"))
    hub.repositories[held] = Repository(private)
    return said({"url": page, "id": repo_id, "name": repo_id})


def space_key(repo_id: str) -> str:
    return f"{repo_id}{SPACE}"


def space(hub: LocalHub, question: Question, repo_id: str, verb: str, rest: str) -> Answer:
    return dataset(hub, question, space_key(repo_id), verb, rest)


def large_files(hub: LocalHub, question: Question, repo_id: str) -> Answer:
    # For a pull request the client names no branch.
    _check_writer(hub, question, repo_id, "" if question.json.get("ref") else "1")
    objects = []
    for each in question.json["objects"]:
        to = {"upload": {"href": f"{question.endpoint}/large/{each['oid']}?signature=secret"}}
        known = {} if each["oid"] in hub.objects else {"actions": to}
        objects.append({"oid": each["oid"], "size": each["size"], **known})
    return said({"transfer": "basic", "objects": objects})


def upload(hub: LocalHub, question: Question, sha256: str) -> Answer:
    hub.reach("before upload")
    if hashlib.sha256(question.body).hexdigest() != sha256:
        raise RefusedError(400, said="the bytes are others than was said")
    hub.objects[sha256] = question.body
    hub.reach("after upload")
    return Answer()


def resolve(hub: LocalHub, question: Question, repo_id: str, revision: str, path: str) -> Answer:
    commit = _commit(_repository(hub, question, repo_id), revision)
    stored = commit.files.get(path)
    if stored is None:
        raise RefusedError(404, "EntryNotFound", X_Repo_Commit=commit.oid)
    size = len(stored.data)
    headers = {
        "ETag": f'"{stored.etag}"',
        "X-Repo-Commit": commit.oid,
        "X-Linked-Etag": f'"{stored.etag}"',
        "X-Linked-Size": str(size),
        "Accept-Ranges": "bytes",
        "Content-Type": "application/octet-stream",
    }
    wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", question.headers.get("range", ""))
    if wanted is None or question.method == "HEAD":
        return Answer(200, stored.data, headers)
    start = int(wanted[1]) if wanted[1] else size - int(wanted[2])
    stop = min(int(wanted[2]) + 1, size) if wanted[1] and wanted[2] else size
    headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
    return Answer(206, stored.data[start:stop], headers)


def dataset(hub: LocalHub, question: Question, repo_id: str, verb: str, rest: str) -> Answer:
    respond = VERBS.get((question.method, verb))
    if respond is None:
        raise RefusedError(404, "NotFound")
    repository = _repository(hub, question, repo_id)
    if question.method not in SAFE and verb not in ANYONE_POSTS:
        _check_writer(hub, question, repo_id, question.query.get("create_pr", ""))
    return respond(Asked(hub, question, repo_id, repository, rest))


def info(asked: Asked) -> Answer:
    commit = _commit(asked.repository, asked.revision)
    known = {"gated": False, "disabled": False, "lastModified": DATE, "tags": []}
    return said(
        {
            **known,
            "id": asked.repo_id.removesuffix(SPACE),
            "author": asked.repo_id.split("/")[0],
            "sha": commit.oid,
            "private": asked.repository.private,
            "downloads": 0,
            "likes": 0,
            "siblings": [{"rfilename": path} for path in sorted(commit.files)],
        }
    )


def list_datasets(hub: LocalHub, question: Question) -> Answer:
    wanted = question.query.get("filter")
    found = {key: one for key, one in hub.repositories.items() if wanted in (None, *one.listed)}
    return said([{"id": key, "tags": one.listed} for key, one in found.items()])


def model(hub: LocalHub, question: Question, repo_id: str) -> Answer:
    if repo_id not in hub.models or question.query.get("expand") != "evalResults":
        raise RefusedError(404, "RepoNotFound", "Repository not found")
    return said({"id": repo_id, "evalResults": hub.models[repo_id]})


def leaderboard(asked: Asked) -> Answer:
    rows = asked.repository.filed
    if rows is None:
        raise RefusedError(404, said="This dataset has no leaderboard")
    return said(rows)


def may_write(asked: Asked) -> Answer:
    if asked.rest == "write":
        _check_writer(asked.hub, asked.question, asked.repo_id, "")
    return said({})


def refs(asked: Asked) -> Answer:
    branches = asked.repository.branches
    pulls = {name: oid for name, oid in branches.items() if name.startswith(PULL)}
    own = {name: oid for name, oid in branches.items() if name not in pulls}
    kinds = {
        "branches": ("refs/heads/", own),
        "tags": ("refs/tags/", asked.repository.tags),
        "pullRequests": ("", pulls),
        "converts": ("", {}),
    }
    return said(
        {
            kind: [
                {"name": name, "ref": f"{start}{name}", "targetCommit": oid}
                for name, oid in found.items()
            ]
            for kind, (start, found) in kinds.items()
        }
    )


def discussions(asked: Asked) -> Answer:
    if asked.rest:
        pull = asked.repository.pulls[int(asked.rest)]
        changes = {"base": "refs/heads/main", "mergeCommitId": pull.merged}
        more = {"changes": changes, "filesWithConflicts": [], "diff": ""}
        events = [
            {
                "id": str(at),
                "type": "comment",
                "createdAt": DATE,
                "data": {"edited": False, "hidden": False, "latest": {"raw": text}},
            }
            for at, text in enumerate(pull.said)
        ]
        return said({**_discussion(asked, int(asked.rest)), **more, "events": events})
    wanted = {"open": ("open", "draft"), "closed": ("closed", "merged")}
    some = wanted.get(asked.question.query.get("status", ""), ("open", "draft", "closed", "merged"))
    found = [
        _discussion(asked, number)
        for number, pull in asked.repository.pulls.items()
        if pull.status in some
    ]
    return said({"discussions": found, "count": len(found), "start": 0})


def _discussion(asked: Asked, number: int) -> dict[str, Any]:
    pull = asked.repository.pulls[number]
    return {
        "num": number,
        "title": pull.title,
        "author": {"name": pull.author},
        "createdAt": pull.created,
        "status": pull.status,
        "repo": {"name": asked.repo_id, "type": "dataset"},
        "isPullRequest": True,
    }


def discuss(asked: Asked) -> Answer:
    """Opens a draft, comments on a request, or changes its status."""
    given, (number, _, about) = asked.question.json, asked.rest.partition("/")
    if not number:
        made = asked.repository.propose(given["title"], given["description"], None)
        return said({"num": made})
    pull = asked.repository.pulls[int(number)]
    if comment := given.get("comment"):
        pull.said.append(comment)
    data: dict[str, Any] = {"edited": False, "hidden": False, "latest": {"raw": comment}}
    kind = "comment"
    if about == "status":
        pull.status, kind, data = given["status"], "status-change", {"status": given["status"]}
    event = {"id": "new", "type": kind, "createdAt": DATE, "data": data}
    return said({"newMessage": event, "newStatus": event})


def tree(asked: Asked) -> Answer:
    revision, _, folder = asked.revision.partition("/")
    if revision == "refs":  # a pull request's name has slashes of its own
        _, kind, number, *rest = asked.revision.split("/", 3)
        revision, folder = f"refs/{kind}/{number}", "".join(rest)
    files = _commit(asked.repository, revision).files
    start = f"{folder.rstrip('/')}/" if folder else ""
    if folder and folder not in _folders(files):
        raise RefusedError(404, "EntryNotFound")
    deep = asked.question.query.get("recursive", "").lower() in ("true", "1")
    inside = [
        path
        for path in sorted([*_folders(files), *files])
        if path.startswith(start) and (deep or "/" not in path[len(start) :])
    ]
    return said([_entry(path, files.get(path)) for path in inside])


def paths_info(asked: Asked) -> Answer:
    if "json" in asked.question.headers.get("content-type", ""):
        wanted = asked.question.json["paths"]
    else:
        wanted = parse_qs(asked.question.body.decode()).get("paths", [])
    files = _commit(asked.repository, asked.revision).files
    known = {*_folders(files), *files}
    return said([_entry(path, files.get(path)) for path in wanted if path in known])


def preupload(asked: Asked) -> Answer:
    files = _commit(asked.repository, asked.revision).files
    return said(
        {
            "files": [
                {
                    "path": each["path"],
                    "uploadMode": "lfs" if each["path"].endswith(LARGE) else "regular",
                    "shouldIgnore": False,
                    "oid": files[each["path"]].etag if each["path"] in files else None,
                }
                for each in asked.question.json["files"]
            ]
        }
    )


def make_commit(asked: Asked) -> Answer:
    asked.hub.reach("before commit")
    repository = asked.repository
    header, *changes = (json.loads(line) for line in asked.question.body.splitlines() if line)
    base = _commit(repository, asked.revision)
    parent = header["value"].get("parentCommit")
    if asked.is_pull:
        base = repository.commits[parent] if parent else base
    elif parent not in (None, base.oid):
        raise RefusedError(412, said="A commit has happened since. Please refresh and try again.")
    files = _changed(asked.hub, base, changes)
    title = header["value"]["summary"]
    oid = repository.add(title, base.oid, files)
    page = f"{asked.question.endpoint}/datasets/{asked.repo_id}"
    done = {"success": True, "commitOid": oid, "commitUrl": f"{page}/commit/{oid}"}
    if asked.is_pull:
        author = _token(asked.hub, asked.question).user
        number = repository.propose(title, header["value"].get("description", ""), oid, author)
        done["pullRequestUrl"] = f"{page}/discussions/{number}"
    else:
        repository.branches[asked.revision] = oid
    asked.hub.reach("after commit")
    return said(done)


def commits(asked: Asked) -> Answer:
    """The history of a revision, the last commit first."""
    history = asked.repository.before(_commit(asked.repository, asked.revision).oid)
    return said(
        [
            {"id": one.oid, "title": one.title, "message": "", "authors": [], "date": DATE}
            for one in history
        ]
    )


def make_tag(asked: Asked) -> Answer:
    asked.hub.reach("before tag")
    tag = asked.question.json["tag"]
    if tag in asked.repository.tags:
        raise RefusedError(409, said="Tag reference exists already")
    asked.repository.tags[tag] = _commit(asked.repository, asked.revision).oid
    asked.hub.reach("after tag")
    return said({})


def delete_tag(asked: Asked) -> Answer:
    if asked.repository.tags.pop(asked.rest, None) is None:
        raise RefusedError(404, "RevisionNotFound")
    return said({})


REPO = r"([^/]+/[^/]+)"
PLACES: dict[str, Callable[..., Answer]] = {
    "/api/whoami-v2": whoami,
    "/api/validate-yaml": validate_yaml,
    "/api/repos/create": create,
    rf"/datasets/{REPO}\.git/info/lfs/objects/batch": large_files,
    r"/large/([0-9a-f]{64})": upload,
    # A pull request's revision has slashes of its own.
    rf"/datasets/{REPO}/resolve/(refs/[^/]+/[^/]+|[^/]+)/(.+)": resolve,
    "/api/datasets": list_datasets,
    rf"/api/models/{REPO}": model,
    rf"/api/datasets/{REPO}(?:/([a-z-]+)(?:/(.*))?)?": dataset,
    rf"/api/spaces/{REPO}(?:/([a-z-]+)(?:/(.*))?)?": space,
}
VERBS: dict[tuple[str, str], Callable[[Asked], Answer]] = {
    ("GET", ""): info,
    ("GET", "revision"): info,
    ("GET", "auth-check"): may_write,
    ("GET", "refs"): refs,
    ("GET", "leaderboard"): leaderboard,
    ("GET", "discussions"): discussions,
    ("GET", "commits"): commits,
    ("GET", "tree"): tree,
    ("POST", "paths-info"): paths_info,
    ("POST", "preupload"): preupload,
    ("POST", "discussions"): discuss,
    ("POST", "commit"): make_commit,
    ("POST", "tag"): make_tag,
    ("DELETE", "tag"): delete_tag,
}


def _token(hub: LocalHub, question: Question) -> Any:
    from tests.local_hub import TOKENS

    if question.token not in TOKENS:
        raise RefusedError(401, said="Invalid credentials in Authorization header")
    return TOKENS[question.token]


def _repository(hub: LocalHub, question: Question, repo_id: str) -> Repository:
    repository = hub.repositories.get(repo_id)
    hidden = repository is None or (
        repository.private
        and not (question.token is not None and _token(hub, question).sees(repo_id))
    )
    if repository is None or hidden:
        raise RefusedError(404 if question.token else 401, "RepoNotFound", "Repository not found")
    return repository


def _check_writer(hub: LocalHub, question: Question, repo_id: str, create_pr: str) -> None:
    token = _token(hub, question)
    # Whoever may read may propose.
    if not (token.writes(repo_id) or (create_pr and token.role == "write")):
        raise RefusedError(403, said="You don't have the required permissions")


def _commit(repository: Repository, revision: str) -> Commit:
    commit = repository.find(revision)
    if commit is None:
        raise RefusedError(404, "RevisionNotFound")
    return commit


def _changed(
    hub: LocalHub, base: Commit, changes: Iterable[dict[str, Any]]
) -> dict[str, StoredFile]:
    files = dict(base.files)
    for change in changes:
        value = change["value"]
        if change["key"] == "file":
            files[value["path"]] = StoredFile(base64.b64decode(value["content"]))
        elif change["key"] == "lfsFile":
            files[value["path"]] = StoredFile(hub.objects[value["oid"]], lfs=True)
        elif change["key"] == "deletedFile":
            del files[value["path"]]
        elif change["key"] == "deletedFolder":
            files = {path: one for path, one in files.items() if not path.startswith(value["path"])}
        else:
            raise RefusedError(400, said=f"unknown operation {change['key']}")
    return files


def _folders(files: Iterable[str]) -> set[str]:
    return {
        "/".join(path.split("/")[:count])
        for path in files
        for count in range(1, path.count("/") + 1)
    }


def _entry(path: str, stored: StoredFile | None) -> dict[str, Any]:
    if stored is None:
        return {"type": "directory", "path": path, "oid": "0" * 40, "size": 0}
    size = len(stored.data)
    plain = {"type": "file", "path": path, "oid": stored.git_oid, "size": size}
    lfs = {"lfs": {"oid": stored.sha256, "size": size, "pointerSize": 134}}
    return {**plain, **lfs} if stored.lfs else plain
