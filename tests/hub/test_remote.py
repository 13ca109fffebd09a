"""Who may publish is known before any work is done, and which revisions still hold a post."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import huggingface_hub
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset
from rich.console import Console

from echo_hf.cli.release_view import show_holding
from echo_hf.errors import HubError
from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.publish import publish
from echo_hf.hub.release import Release, write_release
from echo_hf.hub.remote import delete_tags, revisions_holding
from echo_hf.images.store import ImageStore
from echo_hf.tables import RESPONSES
from tests.hub.conftest import Samples
from tests.local_hub import FINE_READER, FINE_WRITER, READER, LocalHub

REFUSED = {
    None: "there is no token: run `hf auth login`, or set HF_TOKEN",
    "hf_unknown": "the Hub does not know this token",
    READER: "the token of 'mira' may only read: make one that may write",
    FINE_READER: "the token of 'mira' may only read: make one that may write",
}


@pytest.mark.parametrize("token", REFUSED)
def test_a_token_that_may_not_write_is_found_before_any_work(
    hub: LocalHub, release: Release, token: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    (release.path / "notes.txt").write_text("a release that is refused when it is looked at")
    with pytest.raises(HubError) as raised:
        publish(release, "mira/echo", "v1", api=hub.api(token))

    assert REFUSED[token] in str(raised.value)
    assert "\n" not in str(raised.value)
    assert str(token) not in str(raised.value)
    assert [path for _, path in hub.asked if path != "/api/agent-harnesses"] == (
        ["/api/whoami-v2"] if token else []
    )


def test_a_fine_grained_token_may_write_where_it_says_so(hub: LocalHub, release: Release) -> None:
    assert publish(release, "mira/echo", "v1", api=hub.api(FINE_WRITER)).tag == "v1"


def test_a_hub_out_of_reach_is_told(hub: LocalHub, release: Release) -> None:
    hub.close()
    with pytest.raises(HubError, match="cannot publish to 'mira/echo': the Hub does not answer"):
        publish(release, "mira/echo", "v1", api=hub.api())


def test_offline_mode_is_told(
    hub: LocalHub, release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(HubError, match="HF_HUB_OFFLINE is set: unset it"):
        publish(release, "mira/echo", "v1", api=hub.api())
    assert hub.asked == []


REPO = "pixel-lab/echo"
POST = "https://a.example/7"
SPAN = {"post_url": POST, "field": "text", "start": 0, "end": 3}
COMMENT = {"post_url": "https://a.example/8", "feedback": "so red"}


def test_tags_that_hold_a_post_are_found_and_deleted(
    hub: LocalHub,
    release: Release,
    tmp_path: Path,
    configs: Mapping[str, Dataset],
    images: ImageStore,
    facts: ReleaseFacts,
) -> None:
    analysis = release.datasets["analysis"].select_columns(["id", "post_urls"]).to_list()
    gone = analysis[0]
    rows = {
        name: every.filter(lambda row: row["id"] != gone["id"]) for name, every in configs.items()
    }
    later = write_release(tmp_path / "later", rows, images, replace(facts, name="later"))
    publish(release, REPO, "v1", api=hub.api())
    before = revisions_holding(REPO, gone["post_urls"], api=hub.api())
    publish(later, REPO, "v2", api=hub.api())
    (held,) = revisions_holding(REPO, gone["post_urls"], api=hub.api())

    assert [one.revision for one in before] == ["v1", "main"]
    assert (held.revision, held.samples) == ("v1", (gone["id"],))
    assert held.commit == hub.repositories[REPO].tags["v1"]
    assert revisions_holding(REPO, ["https://a.example/other"], api=hub.api()) == []
    delete_tags(REPO, [held.revision], api=hub.api())
    assert set(hub.repositories[REPO].tags) == {"v2"}
    assert revisions_holding(REPO, gone["post_urls"], api=hub.api()) == []


def test_a_repository_that_is_not_there_is_named(hub: LocalHub) -> None:
    with pytest.raises(HubError, match="there is no dataset 'pixel-lab/ecko'"):
        revisions_holding("pixel-lab/ecko", ["https://a.example/1"], api=hub.api())


@pytest.mark.parametrize("delete", [False, True])
def test_what_still_holds_a_post_is_told(hub: LocalHub, release: Release, delete: bool) -> None:
    publish(release, REPO, "v1", api=hub.api())
    urls = release.datasets["analysis"]["post_urls"][0]
    out = io.StringIO()
    show_holding(Console(file=out, width=400), REPO, urls, delete=delete, api=hub.api())

    said = out.getvalue()
    assert f"tag v1 of {REPO} still holds them in 1 samples" in said
    assert f"branch main of {REPO} still holds them in 1 samples" in said
    assert ("deleted 1 tags: v1" in said) is delete
    assert ("--delete-tags" in said) is not delete
    assert "super_squash_history" in said
    assert set(hub.repositories[REPO].tags) == (set() if delete else {"v1"})


@pytest.mark.parametrize(
    "values",
    [
        {"post_urls": ["https://a.example/6", POST]},
        {"prompt_spans": [SPAN]},
        {"picture_sources": [{"role": "output", "sha256": "ab", "post_url": POST}]},
        {"community_feedback": [{**COMMENT, "post_url": POST}]},
        {"community_feedback": [{**COMMENT, "spans": [SPAN]}]},
    ],
)
def test_a_post_is_found_wherever_a_sample_names_it(
    hub: LocalHub,
    tmp_path: Path,
    samples: Samples,
    images: ImageStore,
    facts: ReleaseFacts,
    values: dict[str, Any],
) -> None:
    rows = {"analysis": samples({"prompt": "A fox"}, {"prompt": "A hat", **values})}
    publish(write_release(tmp_path / "one", rows, images, facts), REPO, "v1", api=hub.api())

    held = revisions_holding(REPO, [POST], api=hub.api())
    assert [(one.revision, one.samples) for one in held] == [
        ("v1", ("sample1",)),
        ("main", ("sample1",)),
    ]


def test_stored_answers_about_a_post_are_counted(
    hub: LocalHub,
    tmp_path: Path,
    configs: Mapping[str, Dataset],
    images: ImageStore,
    facts: ReleaseFacts,
) -> None:
    sources = [[POST], ["https://a.example/8"], ["https://a.example/8", POST]]
    empty = dict.fromkeys(RESPONSES.columns)
    answers = [
        {**empty, "request_key": f"{number:064x}", "text": "{}", "sources": urls}
        for number, urls in enumerate(sources)
    ]
    rows = {**configs, "responses": Dataset.from_list(answers, features=RESPONSES.features)}
    publish(write_release(tmp_path / "one", rows, images, facts), REPO, "v1", api=hub.api())
    out = io.StringIO()
    show_holding(Console(file=out, width=400), REPO, [POST], api=hub.api())

    held = revisions_holding(REPO, [POST], api=hub.api())
    assert [(one.revision, one.samples, one.answers) for one in held] == [
        ("v1", (), 2),
        ("main", (), 2),
    ]
    assert "still holds them in 0 samples and 2 stored answers" in out.getvalue()


def test_files_of_older_releases_are_read_as_they_are(hub: LocalHub) -> None:
    data = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": ["old"], "post_urls": [[POST]]}), data)
    hub.api().create_repo(REPO, repo_type="dataset")
    hub.api().upload_file(
        path_or_fileobj=data.getvalue().to_pybytes(),
        path_in_repo="analysis/test-00000-of-00001.parquet",
        repo_id=REPO,
        repo_type="dataset",
    )

    (held,) = revisions_holding(REPO, [POST], api=hub.api())
    assert (held.revision, held.samples, held.answers) == ("main", ("old",), 0)
