"""A release becomes one commit and a tag, or nothing at all."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pyarrow.parquet as pq
import pytest
from datasets import Dataset
from huggingface_hub import DatasetCard

from echo_hf.curate.decisions import Changes, Decision, append_decisions
from echo_hf.errors import HubError, ReleaseError
from echo_hf.hub.facts import CONFIGS, ReleaseFacts
from echo_hf.hub.load import release_at
from echo_hf.hub.manifest import file_entry
from echo_hf.hub.publish import check_names, check_publishable, publish, summary
from echo_hf.hub.release import (
    Release,
    read_release,
    released_facts,
    unpacked,
    verify_release,
    write_release,
)
from echo_hf.images.store import ImageStore
from tests.hub.conftest import Command, Samples
from tests.hub.quickstart_release import Row, by_id
from tests.local_hub import READER, STRANGER, WRITER, LocalHub

REPO = "pixel-lab/echo"
Configs = Mapping[str, Dataset]


@pytest.fixture
def later(tmp_path: Path, configs: Configs, images: ImageStore, facts: ReleaseFacts) -> Release:
    rows = {name: configs[name] for name in ("text_to_image", "analysis")}
    rows["analysis"] = rows["analysis"].select([2, 0])
    return write_release(tmp_path / "later", rows, images, replace(facts, name="later"))


def on_disk(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def test_all_files_come_in_one_commit_with_a_tag(hub: LocalHub, release: Release) -> None:
    done = publish(release, REPO, "v1", api=hub.api())
    repository = hub.repositories[REPO]

    assert (done.commit, done.tag, done.unchanged) == (repository.head, "v1", False)
    assert done.url == f"{hub.url}/datasets/{REPO}/tree/v1"
    assert repository.tags == {"v1": repository.head}
    assert [commit.title for commit in repository.history] == ["Publish v1", "initial commit"]
    there, here = hub.files(REPO, "v1"), on_disk(release.path)
    assert there.keys() == {*here, ".gitattributes"}
    assert {path: data for path, data in there.items() if path.endswith(".parquet")} == {
        path: data for path, data in here.items() if path.endswith(".parquet")
    }


def test_the_published_revision_is_a_release(
    hub: LocalHub, release: Release, tmp_path: Path
) -> None:
    publish(release, REPO, "v1", api=hub.api())
    for path, data in hub.files(REPO, "v1").items():
        (tmp_path / "copy" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "copy" / path).write_bytes(data)

    verify_release(tmp_path / "copy")
    card = DatasetCard.load(tmp_path / "copy" / "README.md")
    call = f'load_dataset("{REPO}", "text_to_image", split="test", revision="v1")'
    assert call in card.text


def test_only_card_and_manifest_differ_from_the_disk(hub: LocalHub, release: Release) -> None:
    before = on_disk(release.path)
    publish(release, REPO, "v1", api=hub.api())
    there = hub.files(REPO, "v1")

    assert on_disk(release.path) == before
    ours, theirs = (json.loads(each["manifest.json"]) for each in (before, there))
    card = theirs.pop("card")
    ours.pop("card")
    assert ours == theirs
    assert card["sha256"] == hashlib.sha256(there["README.md"]).hexdigest()
    lines = zip(
        before["README.md"].decode().splitlines(),
        there["README.md"].decode().splitlines(),
        strict=True,
    )
    assert [old for old, new in lines if old != new] == [
        'samples = load_dataset("ORGANISATION/NAME", "text_to_image", split="test", '
        'revision="pixelbloom-2025-03")'
    ]


def test_the_same_again_changes_nothing(hub: LocalHub, release: Release) -> None:
    first = publish(release, REPO, "v1", api=hub.api())
    hub.asked.clear()
    again = publish(release.path, REPO, "v1", api=hub.api())

    assert again == replace(first, unchanged=True)
    assert hub.changes_asked() == []


def test_another_tag_for_the_same_content_makes_no_commit(hub: LocalHub, release: Release) -> None:
    first = publish(release, REPO, "v1", api=hub.api())
    for _ in range(2):
        again = publish(release, REPO, "v2", api=hub.api())
        assert (again.commit, again.tag, again.unchanged) == (first.commit, "v2", True)
    assert hub.repositories[REPO].tags == {"v1": first.commit, "v2": first.commit}


def test_changed_content_is_a_new_commit(hub: LocalHub, release: Release, later: Release) -> None:
    first = publish(release, REPO, "v1", api=hub.api())
    before = hub.files(REPO, "v1")
    second = publish(later, REPO, "v2", api=hub.api())

    assert not second.unchanged
    assert hub.repositories[REPO].tags == {"v1": first.commit, "v2": second.commit}
    assert hub.repositories[REPO].commits[second.commit].parent == first.commit
    assert hub.files(REPO, "v1") == before
    assert hub.files(REPO, "v2").keys() == {*on_disk(later.path), ".gitattributes"}


def test_only_what_changed_is_uploaded(hub: LocalHub, release: Release, later: Release) -> None:
    publish(release, REPO, "v1", api=hub.api())
    hub.asked.clear()
    publish(later, REPO, "v2", api=hub.api())
    new = hashlib.sha256((later.path / "analysis/test-00000-of-00001.parquet").read_bytes())

    uploads = [path for method, path in hub.asked if method == "PUT"]
    assert uploads == [f"/large/{new.hexdigest()}"]


@pytest.mark.parametrize("create_pr", [False, True])
def test_a_tag_of_another_release_is_refused(
    hub: LocalHub, release: Release, later: Release, create_pr: bool
) -> None:
    first = publish(release, REPO, "v1", api=hub.api())
    hub.asked.clear()
    with pytest.raises(HubError, match=r"tag 'v1' .* another release .*--tag.*'v1\.1'"):
        publish(later, REPO, "v1", create_pr=create_pr, api=hub.api())

    assert hub.changes_asked() == []
    assert hub.repositories[REPO].tags == {"v1": first.commit}


def test_files_of_other_kinds_stay(hub: LocalHub, release: Release, later: Release) -> None:
    publish(release, REPO, "v1", api=hub.api())
    repository = hub.repositories[REPO]
    repository.change("by hand", **{"LICENSE": b"mine", "text_to_image/test-notes": b"stray"})
    publish(later, REPO, "v2", api=hub.api())

    found = hub.files(REPO, "v2")
    assert found["LICENSE.txt"] == b"mine"
    assert "text_to_image/test-notes.txt" not in found
    assert ".gitattributes" in found


def test_a_pull_request_leaves_the_main_branch(hub: LocalHub, release: Release) -> None:
    done = publish(release, REPO, "v1", create_pr=True, api=hub.api())
    repository = hub.repositories[REPO]

    assert done.url == f"{hub.url}/datasets/{REPO}/discussions/1"
    assert (done.tag, done.unchanged) == (None, False)
    assert done.commit == repository.branches["refs/pr/1"]
    assert hub.files(REPO, "refs/pr/1").keys() == {*on_disk(release.path), ".gitattributes"}
    assert hub.files(REPO).keys() == {".gitattributes"}
    assert repository.tags == {}
    again = publish(release, REPO, "v1", create_pr=True, api=hub.api())
    assert again == replace(done, unchanged=True)
    assert list(repository.open_pulls) == [1]
    assert "without a tag: the same command" in summary(done)


def test_a_merged_pull_request_gets_its_tag(hub: LocalHub, release: Release) -> None:
    publish(release, REPO, "v1", create_pr=True, api=hub.api())
    merged = hub.repositories[REPO].merge(1)
    done = publish(release, REPO, "v1", api=hub.api())

    assert (done.commit, done.tag, done.unchanged) == (merged, "v1", True)
    assert hub.repositories[REPO].head == merged


def test_what_the_main_branch_holds_is_not_proposed(hub: LocalHub, release: Release) -> None:
    head = publish(release, REPO, "v1", api=hub.api()).commit
    hub.repositories[REPO].tags.clear()
    done = publish(release, REPO, "v1", create_pr=True, api=hub.api())
    assert (done.commit, done.tag, done.unchanged) == (head, None, True)
    assert summary(done).startswith(f"nothing changed: {hub.url}/datasets/{REPO}/commit/{head}")
    assert hub.repositories[REPO].open_pulls == {}


def test_another_open_pull_request_is_not_this_one(
    hub: LocalHub, release: Release, later: Release
) -> None:
    publish(later, REPO, "v2", create_pr=True, api=hub.api())
    publish(release, REPO, "v1", create_pr=True, api=hub.api())
    assert list(hub.repositories[REPO].open_pulls) == [1, 2]


def test_whoever_may_not_write_may_propose(hub: LocalHub, release: Release, later: Release) -> None:
    publish(release, REPO, "v1", api=hub.api())
    hub.asked.clear()
    with pytest.raises(HubError, match=r"may not write there: .*--create-pr"):
        publish(later, REPO, "v2", api=hub.api(STRANGER))
    assert hub.changes_asked() == []

    done = publish(later, REPO, "v2", create_pr=True, api=hub.api(STRANGER))
    assert hub.files(REPO, "refs/pr/1").keys() == {*on_disk(later.path), ".gitattributes"}
    assert done.commit != hub.repositories[REPO].head


def test_a_namespace_of_others_is_refused(hub: LocalHub, release: Release) -> None:
    with pytest.raises(HubError, match="cannot create 'pixel-lab/echo': the Hub refuses it"):
        publish(release, REPO, "v1", api=hub.api(STRANGER))
    assert hub.objects == {}


@pytest.mark.parametrize("private", [False, True])
def test_a_new_repository_is_as_private_as_asked(
    hub: LocalHub, release: Release, private: bool
) -> None:
    publish(release, REPO, "v1", private=private, api=hub.api(WRITER))
    assert hub.repositories[REPO].private is private
    assert hub.api(WRITER).repo_exists(REPO, repo_type="dataset")
    assert hub.api(STRANGER).repo_exists(REPO, repo_type="dataset") is not private


def test_a_changed_release_is_refused_before_anything_is_made(
    hub: LocalHub, release: Release
) -> None:
    (release.path / "notes.txt").write_text("x")
    with pytest.raises(ReleaseError, match=r"holds 'notes\.txt'"):
        publish(release, REPO, "v1", api=hub.api())
    assert hub.repositories == {}


def test_the_message_and_each_step_are_told(hub: LocalHub, release: Release) -> None:
    steps: list[str] = []
    done = publish(release, REPO, "v1", message="First\tone", progress=steps.append, api=hub.api())
    assert hub.repositories[REPO].commits[done.commit].title == "First\tone"
    assert [step.split()[0] for step in steps] == ["checking", "uploading", "tagging"]
    assert "7 files" in steps[1]


def test_the_card_says_what_changed_since_the_revision_before(
    hub: LocalHub, release: Release, later: Release
) -> None:
    publish(release, REPO, "v1", api=hub.api())
    first = publish(later, REPO, "v2", previous=f"{REPO}@v1", api=hub.api())
    again = publish(later, REPO, "v2", previous=release, api=hub.api())

    card = hub.files(REPO, "v2")["README.md"].decode()
    # One of three samples has left one of its two configs; nothing else has changed.
    assert "compared with pixelbloom-2025-03: 0 added, 0 removed, 1 changed, 2 equal." in card
    assert again == replace(first, unchanged=True)
    folder = load_folder(hub, "v2")
    verify_release(folder)


def test_a_revision_before_that_is_not_there_publishes_nothing(
    hub: LocalHub, release: Release
) -> None:
    publish(release, REPO, "v1", api=hub.api())
    hub.asked.clear()
    with pytest.raises(HubError, match="v0"):
        publish(release, REPO, "v2", previous=f"{REPO}@v0", api=hub.api())
    assert hub.changes_asked() == []


@pytest.mark.parametrize("create_pr", [False, True])
@pytest.mark.parametrize("compared_first", [False, True])
def test_what_it_is_compared_with_is_no_other_release(
    hub: LocalHub, release: Release, later: Release, compared_first: bool, create_pr: bool
) -> None:
    publish(release, REPO, "v1", api=hub.api())
    before: list[Any] = [release, None] if compared_first else [None, release]
    first, again = (
        publish(later, REPO, "v2", previous=one, create_pr=create_pr, api=hub.api())
        for one in before
    )
    revision = "refs/pr/1" if create_pr else "v2"

    assert (again.commit, again.tag, again.unchanged) == (first.commit, first.tag, True)
    assert list(hub.repositories[REPO].open_pulls) == ([1] if create_pr else [])
    card = hub.files(REPO, revision)["README.md"].decode()
    assert ("compared with pixelbloom-2025-03" in card) is compared_first


@pytest.mark.parametrize("compared_first", [False, True])
def test_a_tag_that_did_not_come_is_made_whatever_it_is_compared_with(
    hub: LocalHub, release: Release, later: Release, compared_first: bool
) -> None:
    publish(release, REPO, "v1", api=hub.api())
    before: list[Any] = [release, None] if compared_first else [None, release]
    first = publish(later, REPO, "v2", previous=before[0], api=hub.api())
    del hub.repositories[REPO].tags["v2"]
    for tag in ("v2", "v3"):
        again = publish(later, REPO, tag, previous=before[1], api=hub.api())
        assert (again.commit, again.tag, again.unchanged) == (first.commit, tag, True)


def test_a_card_that_somebody_changed_is_another_card(hub: LocalHub, release: Release) -> None:
    publish(release, REPO, "v1", api=hub.api())
    card = hub.files(REPO)["README.md"]
    hub.api().upload_file(
        path_or_fileobj=card + b"Buy paint at our shop.\n",
        path_in_repo="README.md",
        repo_id=REPO,
        repo_type="dataset",
    )
    assert not publish(release, REPO, "v2", api=hub.api()).unchanged
    assert b"Buy paint" not in hub.files(REPO, "v2")["README.md"]


def encoded_anew(release: Release, folder: Path, **values: Any) -> Release:
    shutil.copytree(release.path, folder)
    configs = {}
    for name, entry in release.manifest.configs.items():
        for file in entry.files:
            rows = pq.read_table(folder / file.path)
            pq.write_table(rows, folder / file.path, compression="gzip")
        files = tuple(file_entry(folder, file.path) for file in entry.files)
        configs[name] = entry.model_copy(update={"files": files})
    manifest = release.manifest.model_copy(update={"configs": configs, **values})
    (folder / "manifest.json").write_text(manifest.text(), "utf-8")
    return read_release(folder)


def test_the_same_rows_in_other_files_are_the_same_release(
    hub: LocalHub, release: Release, tmp_path: Path
) -> None:
    first = publish(release, REPO, "v1", api=hub.api())
    other = encoded_anew(release, tmp_path / "other", echo_hf="0.0.1")
    hub.asked.clear()
    again = publish(other, REPO, "v1", api=hub.api())

    assert on_disk(other.path) != on_disk(release.path)
    assert again == replace(first, unchanged=True)
    assert hub.changes_asked() == []


@pytest.mark.parametrize("path", ["analysis/test-00000-of-00001.parquet", "stats.json"])
def test_a_tag_on_changed_files_holds_no_release(
    hub: LocalHub, release: Release, tmp_path: Path, path: str
) -> None:
    publish(release, REPO, "v1", api=hub.api())
    before = hub.files(REPO)[path]
    hub.api().upload_file(
        path_or_fileobj=before[:-1] + b"?", path_in_repo=path, repo_id=REPO, repo_type="dataset"
    )
    hub.repositories[REPO].tags["v1"] = hub.repositories[REPO].head
    with pytest.raises(HubError, match=r"tag 'v1' .* another release"):
        publish(encoded_anew(release, tmp_path / "other"), REPO, "v1", api=hub.api())


@pytest.mark.parametrize("why", ["may not write", "is public", "not a repository of releases"])
def test_what_is_refused_is_refused_before_the_work(
    hub: LocalHub,
    tmp_path: Path,
    samples: Samples,
    images: ImageStore,
    facts: ReleaseFacts,
    why: str,
) -> None:
    rows = {"analysis": samples({"post_urls": ["https://x.com/i/status/9"], "prompt": "A fox"})}
    of_x = write_release(tmp_path / "of_x", rows, images, facts)
    (of_x.path / "notes.txt").write_text("what reading it would stumble over")
    hub.api().create_repo(REPO, repo_type="dataset")
    if why == "not a repository of releases":
        hub.repositories[REPO].change("data", rows=b"1,2")
    token = STRANGER if why == "may not write" else WRITER
    said: list[str] = []
    with pytest.raises(HubError, match=why):
        publish(
            of_x, REPO, "v1", private=why == "is public", progress=said.append, api=hub.api(token)
        )
    assert said == []


def load_folder(hub: LocalHub, tag: str) -> Path:
    return release_at(f"{REPO}@{tag}", hub.api()).path


def test_posts_of_x_are_published_without_their_words(hub: LocalHub, full: Path) -> None:
    """The bundled posts of X are invented; their words and images are in no published byte."""
    open_ = {"allow_rules": True, "allow_unscreened": True}
    said: list[str] = []
    done = publish(full, REPO, "v1", api=hub.api(), progress=said.append, **open_)
    again = publish(full, REPO, "v1", api=hub.api(), **open_)
    rows, before = by_id(load_folder(hub, "v1")), by_id(full)

    of_x = {name for name, row in before.items() if "//x.com/" in " ".join(row["post_urls"])}
    assert of_x
    assert any("leaving out posted words and images" in line for line in said)
    assert [name for name in sorted(of_x) if rows[name]["prompt"] is not None] == []
    assert all(rows[name]["dehydrated"] for name in of_x)
    assert before.keys() == rows.keys()
    assert again == replace(done, unchanged=True)
    assert list(full.parent.glob(".release.*")) == []


def scored(release: Release, of_x: Mapping[str, Row], store: ImageStore) -> dict[str, Dataset]:
    made: dict[str, list[Row]] = {"outputs": [], "ratings": [], "responses": []}
    for name, row in of_x.items():
        text = row["prompt"]
        said = dict.fromkeys(("text", "revised_prompt", "code"), text)
        image = next(iter([*row["input_images"], *row["output_images"]]), None)
        about = {"sample_id": name, "system": "a"}
        made["outputs"].append({**about, **said, "image": image})
        made["ratings"].append({**about, "explanation": text})
        answer = {"request_key": name, "text": text, "sources": row["post_urls"]}
        made["responses"].append(answer)
    tables = {}
    for name, rows in made.items():
        table = CONFIGS[name].table
        full = [{**dict.fromkeys(table.columns), **row} for row in rows]
        tables[name] = Dataset.from_list(full, features=table.features)
    return {**unpacked(release, store), **tables}


def test_outputs_ratings_and_answers_are_published_without_posts_of_x(
    hub: LocalHub, full: Path, tmp_path: Path
) -> None:
    release, store = read_release(full), ImageStore(tmp_path / "store")
    every = unpacked(release, store)["analysis"].to_list()
    of_x = {row["id"]: row for row in every if "//x.com/" in " ".join(row["post_urls"])}
    whole = write_release(
        tmp_path / "whole", scored(release, of_x, store), store, released_facts(release)
    )
    publish(whole, REPO, "v1", api=hub.api(), allow_rules=True, allow_unscreened=True)
    copy = load_folder(hub, "v1")

    theirs, others = ({one for row in rows for one in content(row, store)} for rows in (
        of_x.values(), [row for row in every if row["id"] not in of_x]
    ))  # fmt: skip
    wanted = theirs - others
    assert len(wanted) > 50
    published, before = plain_bytes(copy), plain_bytes(whole.path)
    assert [one for one in wanted if one in published] == []
    assert [one for one in wanted if one not in before] == []
    rows = {name: entry.rows for name, entry in read_release(copy).manifest.configs.items()}
    assert (rows["outputs"], rows["ratings"], rows["responses"]) == (len(of_x), len(of_x), 0)


def content(row: Row, store: ImageStore) -> list[bytes]:
    digests = [*row["input_images"], *row["output_images"]]
    return [row["prompt"].encode(), *(store.open(digest)[:400] for digest in digests)]


def plain_bytes(folder: Path) -> bytes:
    files = [path for path in folder.rglob("*") if path.is_file()]
    plain = [path.read_bytes() for path in files]
    for path in files:
        if path.suffix == ".parquet":
            sink = io.BytesIO()
            pq.write_table(pq.read_table(path), sink, compression="none", use_dictionary=False)
            plain.append(sink.getvalue())
    return b"".join(plain)


HERE = ("--repo-id", "mira/echo", "--tag", "v1")


def test_publish_says_what_it_does_and_where_it_is(
    hub: LocalHub, release: Release, command: Command
) -> None:
    done = command("publish", release.path, *HERE, hub=hub)
    assert done.code == 0
    head = hub.repositories["mira/echo"].head
    assert done.output.splitlines()[-2:] == [
        f"tagging {head[:10]} as v1",
        f"published: {hub.url}/datasets/mira/echo/tree/v1",
    ]
    again = command("publish", release.path, *HERE, hub=hub)
    assert again.output.splitlines()[-1] == (
        f"nothing changed: {hub.url}/datasets/mira/echo/tree/v1 is this release"
    )


def test_a_pull_request_says_how_the_tag_comes(
    hub: LocalHub, release: Release, command: Command
) -> None:
    done = command("publish", release.path, *HERE, "--create-pr", "--private", hub=hub)
    assert done.output.splitlines()[-1] == (
        f"proposed: {hub.url}/datasets/mira/echo/discussions/1, without a tag: the same command "
        "without --create-pr makes the tag once it is merged"
    )
    assert hub.repositories["mira/echo"].private
    assert hub.repositories["mira/echo"].tags == {}


@pytest.mark.parametrize(
    ("token", "said"),
    [(None, "there is no token: run `hf auth login`"), (READER, "may only read")],
)
def test_a_missing_or_read_only_token_is_one_line(
    hub: LocalHub, release: Release, tmp_path: Path, command: Command, token: str, said: str
) -> None:
    done = command("publish", release.path, *HERE, hub=hub, token=token)
    assert (done.code, done.output, done.errors.count("\n")) == (2, "", 1)
    assert said in done.errors
    (tmp_path / "token").write_text(WRITER)
    if token is None:
        assert command("publish", release.path, *HERE, hub=hub, token=None).code == 0


def test_what_rules_built_needs_an_option(
    hub: LocalHub,
    tmp_path: Path,
    configs: Configs,
    images: ImageStore,
    facts: ReleaseFacts,
    command: Command,
) -> None:
    """It is refused before the Hub is asked, and published when it is allowed."""
    folder = tmp_path / "plain"
    write_release(folder, configs, images, replace(facts, rules_built=True))
    done = command("publish", folder, *HERE, hub=hub)
    assert (done.code, done.errors.count("\n")) == (2, 1)
    assert "--allow-rules" in done.errors
    assert hub.asked == []
    assert command("publish", folder, *HERE, "--allow-rules", hub=hub).code == 0


def having(release: Release, **values: Any) -> Release:
    return Release(release.path, release.manifest.model_copy(update=values))


def test_open_reviews_are_always_refused(release: Release) -> None:
    with pytest.raises(ReleaseError, match="has 3 samples that a person") as raised:
        check_publishable(having(release, open_reviews=3), allow_rules=True, allow_unscreened=True)
    assert f"`echo-hf review {release.path}`" in str(raised.value)


@pytest.mark.parametrize(
    ("values", "option"),
    [({"rules_built": True}, "allow_rules"), ({"unscreened": 7}, "allow_unscreened")],
)
def test_what_is_doubtful_has_to_be_allowed(
    release: Release, values: dict[str, Any], option: str
) -> None:
    other = {"allow_rules", "allow_unscreened"} - {option}
    for allowed in ({}, dict.fromkeys(other, True)):
        with pytest.raises(ReleaseError, match=f"--{option.replace('_', '-')}"):
            check_publishable(having(release, **values), **allowed)
    check_publishable(having(release, **values), **{option: True})


@pytest.fixture
def reviewed(tmp_path: Path, samples: Samples, images: ImageStore, facts: ReleaseFacts) -> Release:
    rows = samples({"sample_digest": "as built"}, {"sample_digest": "another"})
    return write_release(tmp_path / "run" / "release", {"analysis": rows}, images, facts)


Said = Literal["keep", "remove", "flag", "withdraw"]


def decided(release: Release, *said: Said, digest: str = "as built") -> None:
    append_decisions(
        release.path.parent / "review.jsonl",
        [
            Decision(id="sample0", sample_digest=digest, decision=each, reasons=("personal_data",))
            for each in said
        ],
    )


def test_what_was_removed_since_the_build_is_refused(reviewed: Release) -> None:
    check_publishable(reviewed)
    decided(reviewed, "keep", "remove")
    with pytest.raises(ReleaseError, match=r"'sample0' .* was removed in review since .*: build"):
        check_publishable(reviewed, allow_rules=True, allow_unscreened=True)


@pytest.mark.parametrize(
    ("said", "digest"),
    [(("keep",), "as built"), (("remove", "keep"), "as built"), (("remove",), "older")],
)
def test_other_decisions_are_in_nobodys_way(
    reviewed: Release, said: tuple[Said, ...], digest: str
) -> None:
    decided(reviewed, *said, digest=digest)
    check_publishable(reviewed)


def test_what_was_decided_is_read_of_a_table_of_an_older_shape(reviewed: Release) -> None:
    (path,) = (reviewed.path / "analysis").glob("*.parquet")
    table = pq.read_table(path)
    pq.write_table(table.drop_columns(["quality"]).append_column("old", table["id"]), path)
    decided(reviewed, "keep")
    check_publishable(reviewed)
    decided(reviewed, "remove")
    with pytest.raises(ReleaseError, match="was removed in review"):
        check_publishable(reviewed)


@pytest.mark.parametrize("said", ["flag", "withdraw"])
def test_what_was_opened_since_the_build_is_refused(reviewed: Release, said: Said) -> None:
    decided(reviewed, "keep", said)
    with pytest.raises(ReleaseError, match=r"'sample0' .* was opened in review since .*: build"):
        check_publishable(reviewed, allow_rules=True, allow_unscreened=True)
    decided(reviewed, "keep")
    check_publishable(reviewed)


def edited(release: Release, quality: str | None, said: str = "edit") -> Decision:
    changes = Changes.model_validate({"quality": quality, "sample_digest": "e" * 64})
    made = Decision.model_validate(
        {"id": "sample0", "sample_digest": "as built", "decision": said, "reasons": ()}
        | {"changes": changes if quality else None}
    )
    append_decisions(release.path.parent / "review.jsonl", [made])
    return made


def test_what_was_changed_since_the_build_is_refused(reviewed: Release) -> None:
    edited(reviewed, "Analysis")
    with pytest.raises(ReleaseError, match=r"'sample0' .* was changed in review since .*: build"):
        check_publishable(reviewed, allow_rules=True, allow_unscreened=True)
    edited(reviewed, None, "withdraw")
    check_publishable(reviewed)


def test_a_release_with_the_change_may_be_published(
    tmp_path: Path, samples: Samples, images: ImageStore, facts: ReleaseFacts
) -> None:
    made = Changes.model_validate({"quality": "Analysis", "sample_digest": "e" * 64})
    told = json.dumps({"review": {"digest": made.fingerprint}})
    rows = samples({"sample_digest": "e" * 64, "provenance": told})
    release = write_release(tmp_path / "run" / "release", {"analysis": rows}, images, facts)
    edited(release, "Analysis", "keep")
    check_publishable(release)
    for quality, said, what in (
        ("Benchmark", "edit", "changed"),
        (None, "withdraw", "changed"),
        (None, "remove", "removed"),
    ):
        edited(release, quality, said)
        with pytest.raises(ReleaseError, match=f"was {what} in review"):
            check_publishable(release)


@pytest.mark.parametrize("repo_id", ["echo", "a/b/c", "", "a b/c", "org/na--me", "org/", "/x"])
def test_what_is_no_repository_is_refused(repo_id: str) -> None:
    with pytest.raises(HubError, match="expected one like"):
        check_names(repo_id, "v1")


NO_TAGS = ["", "main", "refs", "a b", "a..b", "v1.", "v1.lock", "-v", "v/1", "v:1", "é", "a" * 101]


@pytest.mark.parametrize("tag", [*NO_TAGS, "0123456789abcdef" * 2 + "01234567"])
def test_what_is_no_tag_is_refused(tag: str) -> None:
    with pytest.raises(HubError, match="is not a name of a tag"):
        check_names("org/echo", tag)


@pytest.mark.parametrize("tag", ["v1", "gpt-4o-2025-03", "20250325", "1.0_b", "a" * 100])
def test_a_tag_is_a_plain_name(tag: str) -> None:
    check_names("org/echo", tag)
