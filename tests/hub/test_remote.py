"""Who may publish is known before any work is done, and which revisions still hold a post."""

from __future__ import annotations

import io
from typing import Any

import huggingface_hub
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset
from rich.console import Console

from echo_hf.cli.build_view import show_holding
from echo_hf.errors import HubError
from echo_hf.hub.release import Release
from echo_hf.hub.remote import (
    Remote,
    RevisionWithPosts,
    delete_tags,
    find_revisions_with_posts,
    hub_errors,
)
from echo_hf.tables import RESPONSES
from tests.hub.conftest import REPO, Configs, Put, Samples, Write
from tests.local_hub import FINE_READER, FINE_WRITER, READER, LocalHub
from tests.local_hub_repository import Repository

REFUSED = {
    None: "there is no token: run `hf auth login`, or set HF_TOKEN",
    "hf_unknown": "the Hub refuses this token",
    READER: "the token of 'mira' may only read: make one that may write",
    FINE_READER: "the token of 'mira' may only read: make one that may write",
}


@pytest.mark.parametrize("token", REFUSED)
def test_a_token_that_may_not_write_is_found_before_any_work(
    hub: LocalHub, put: Put, release: Release, token: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    (release.path / "notes.txt").write_text("a release that is refused when it is looked at")
    with pytest.raises(HubError) as raised:
        put(release, token=token)
    assert REFUSED[token] in str(raised.value)
    assert "\n" not in str(raised.value)
    assert str(token) not in str(raised.value)
    asked = [path for _, path in hub.asked if path != "/api/agent-harnesses"]
    assert asked == (["/api/whoami-v2"] if token else [])


def test_a_fine_grained_token_may_write_where_it_says_so(put: Put, release: Release) -> None:
    assert put(release, token=FINE_WRITER).tag == "v1"


@pytest.mark.parametrize(("resource", "own"), [(None, [1]), (f"datasets/{REPO}", [2])])
def test_a_request_is_own_by_its_account(
    hub: LocalHub, monkeypatch: pytest.MonkeyPatch, resource: str | None, own: list[int]
) -> None:
    """A job's token stands for no user: the Hub names `[OIDC]`, as nobody can be called."""
    if resource:
        monkeypatch.setenv("HF_OIDC_RESOURCE", resource)
    repository = hub.repositories[REPO] = Repository()
    for author in ("mira", "[OIDC] of a job", "sora"):
        repository.propose("Publish echo", "", None, author)
    requests = Remote(hub.api(), REPO).list_own_requests()
    assert [request.number for request in requests] == own


def test_a_hub_out_of_reach_is_told(
    hub: LocalHub, put: Put, release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
        with pytest.raises(HubError, match="HF_HUB_OFFLINE is set: unset it"):
            put(release)
    assert hub.asked == []
    hub.close()
    with pytest.raises(HubError, match=f"cannot publish to '{REPO}': the Hub does not answer"):
        put(release)


def test_what_signs_an_address_is_not_told() -> None:
    error = OSError("cannot PUT https://s3.example/a?X-Signature=secret&more=1 now")
    with (
        pytest.raises(HubError, match=r"PUT https://s3\.example/a now") as raised,
        hub_errors("up"),
    ):
        raise error
    assert "secret" not in str(raised.value)


POST = "https://a.example/7"
SPAN = {"post_url": POST, "field": "text", "start": 0, "end": 3}
COMMENT = {"post_url": "https://a.example/8", "feedback": "so red"}


def holding(hub: LocalHub, *urls: str) -> list[RevisionWithPosts]:
    return find_revisions_with_posts(REPO, urls, api=hub.api())


def test_tags_that_hold_a_post_are_found_and_deleted(
    hub: LocalHub, put: Put, release: Release, write: Write, configs: Configs
) -> None:
    gone = configs["analysis"][0]
    others = {name: range(len(configs[name]))[name == "analysis" :] for name in configs}
    rows = {name: configs[name].select(kept) for name, kept in others.items()}
    put(release)
    assert [one.revision for one in holding(hub, *gone["post_urls"])] == ["v1", "main"]
    put(write("later", rows), "v2")
    (held,) = holding(hub, *gone["post_urls"])
    assert (held.revision, held.samples) == ("v1", (gone["id"],))
    assert held.commit == hub.repositories[REPO].tags["v1"]
    assert holding(hub, "https://a.example/other") == []
    delete_tags(REPO, [held.revision], api=hub.api())
    assert set(hub.repositories[REPO].tags) == {"v2"}
    assert holding(hub, *gone["post_urls"]) == []
    with pytest.raises(HubError, match="there is no dataset 'pixel-lab/ecko'"):
        find_revisions_with_posts("pixel-lab/ecko", ["https://a.example/1"], api=hub.api())


def test_a_request_or_a_branch_that_holds_a_post_is_found(
    hub: LocalHub, put: Put, release: Release, configs: Configs
) -> None:
    put(release)
    repository, (url, *_) = hub.repositories[REPO], configs["analysis"][0]["post_urls"]
    held = repository.head
    repository.branches |= {"draft": held, "refs/pr/7": held}
    repository.branches["main"] = repository.add("empty", held, {})
    del repository.tags["v1"]
    found = holding(hub, url)
    assert [one[:3] for one in found] == [
        ("branch", "draft", held),
        ("pull request", "refs/pr/7", held),
    ]
    out = io.StringIO()
    show_holding(Console(file=out, width=400), REPO, [url], delete=True, api=hub.api())
    assert "close refs/pr/7 and delete its branch, on its page on the Hub" in out.getvalue()
    assert "deleted 0 tags" in out.getvalue()


NAMED: dict[str, dict[str, Any]] = {
    "post": {"post_urls": ["https://a.example/6", POST]},
    "span": {"prompt_spans": [SPAN]},
    "image": {"picture_sources": [{"role": "output", "sha256": "ab", "post_url": POST}]},
    "comment": {"community_feedback": [{**COMMENT, "post_url": POST}]},
    "span of a comment": {"community_feedback": [{**COMMENT, "spans": [SPAN]}]},
}


def test_a_post_is_found_wherever_it_is_named(
    hub: LocalHub, put: Put, samples: Samples, write: Write
) -> None:
    sources = [[POST], ["https://a.example/8"], ["https://a.example/8", POST]]
    answers = [
        {**dict.fromkeys(RESPONSES.columns), "request_key": f"{number:064x}", "sources": urls}
        for number, urls in enumerate(sources)
    ]
    rows = samples({"prompt": "A fox"}, *NAMED.values())
    responses = Dataset.from_list(answers, RESPONSES.features)
    put(write("one", {"analysis": rows, "responses": responses}))
    every = tuple(f"sample{number}" for number in range(1, 1 + len(NAMED)))
    held = [(one.revision, one.samples, one.answers) for one in holding(hub, POST)]
    assert held == [("v1", every, 2), ("main", every, 2)]


@pytest.mark.parametrize("delete", [False, True])
def test_what_still_holds_a_post_is_told(hub: LocalHub, delete: bool) -> None:
    """Files of older releases are read as they are."""
    data = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": ["old"], "post_urls": [[POST]]}), data)
    hub.api().create_repo(REPO, repo_type="dataset")
    hub.api().upload_file(
        path_or_fileobj=data.getvalue().to_pybytes(),
        path_in_repo="analysis/test-00000-of-00001.parquet",
        repo_id=REPO,
        repo_type="dataset",
    )
    repository = hub.repositories[REPO]
    repository.tags["v1"] = repository.head
    out = io.StringIO()
    show_holding(Console(file=out, width=400), REPO, [POST], delete=delete, api=hub.api())
    said = out.getvalue()
    assert f"tag v1 of {REPO} still holds them in 1 samples and 0 stored answers" in said
    assert f"branch main of {REPO} still holds them in 1 samples" in said
    assert ("deleted 1 tags: v1" in said) is delete
    assert ("--delete-tags" in said) is not delete
    assert "super_squash_history" in said
    assert set(repository.tags) == (set() if delete else {"v1"})
