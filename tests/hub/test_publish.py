"""A release becomes one commit and a tag, or nothing at all."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from datasets import Dataset
from huggingface_hub import DatasetCard

from echo_hf.errors import HubError, ReleaseError
from echo_hf.hub.facts import CONFIGS, ReleaseFacts
from echo_hf.hub.load import release_at
from echo_hf.hub.manifest import file_entry
from echo_hf.hub.publish import publish, summary
from echo_hf.hub.release import (
    Release,
    read_release,
    released_facts,
    unpacked,
    verify_release,
    write_release,
)
from echo_hf.images.store import ImageStore
from tests.hub.conftest import Samples
from tests.hub.quickstart_release import Row, built, by_id
from tests.local_hub import STRANGER, WRITER, LocalHub

REPO = "pixel-lab/echo"
Configs = Mapping[str, Dataset]


@pytest.fixture
def later(tmp_path: Path, configs: Configs, images: ImageStore, facts: ReleaseFacts) -> Release:
    """A release with other rows in one config, and without another one."""
    rows = {name: configs[name] for name in ("text_to_image", "analysis")}
    rows["analysis"] = rows["analysis"].select([2, 0])
    return write_release(tmp_path / "later", rows, images, replace(facts, name="later"))


def on_disk(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def test_all_files_come_in_one_commit_with_a_tag(hub: LocalHub, release: Release) -> None:
    """The commit holds what is on disk, card and manifest renamed; the tag is on this commit."""
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
    """Written to disk as it is, it verifies: the manifest seals the card that names the tag."""
    publish(release, REPO, "v1", api=hub.api())
    for path, data in hub.files(REPO, "v1").items():
        (tmp_path / "copy" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "copy" / path).write_bytes(data)

    verify_release(tmp_path / "copy")
    card = DatasetCard.load(tmp_path / "copy" / "README.md")
    call = f'load_dataset("{REPO}", "text_to_image", split="test", revision="v1")'
    assert call in card.text


def test_only_card_and_manifest_differ_from_the_disk(hub: LocalHub, release: Release) -> None:
    """In the manifest it is the card's own entry, in the card its line of code; the disk stays."""
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
    """No commit, no upload, no second tag: the answer names the commit that is there."""
    first = publish(release, REPO, "v1", api=hub.api())
    hub.asked.clear()
    again = publish(release.path, REPO, "v1", api=hub.api())

    assert again == replace(first, unchanged=True)
    assert hub.changes_asked() == []


def test_another_tag_for_the_same_content_makes_no_commit(hub: LocalHub, release: Release) -> None:
    """Both tags are on one commit, also when the command for the second is given twice."""
    first = publish(release, REPO, "v1", api=hub.api())
    for _ in range(2):
        again = publish(release, REPO, "v2", api=hub.api())
        assert (again.commit, again.tag, again.unchanged) == (first.commit, "v2", True)
    assert hub.repositories[REPO].tags == {"v1": first.commit, "v2": first.commit}


def test_changed_content_is_a_new_commit(hub: LocalHub, release: Release, later: Release) -> None:
    """The old tag stays where it is; of the old revision nothing is left in the new one."""
    first = publish(release, REPO, "v1", api=hub.api())
    before = hub.files(REPO, "v1")
    second = publish(later, REPO, "v2", api=hub.api())

    assert not second.unchanged
    assert hub.repositories[REPO].tags == {"v1": first.commit, "v2": second.commit}
    assert hub.repositories[REPO].commits[second.commit].parent == first.commit
    assert hub.files(REPO, "v1") == before
    assert hub.files(REPO, "v2").keys() == {*on_disk(later.path), ".gitattributes"}


def test_only_what_changed_is_uploaded(hub: LocalHub, release: Release, later: Release) -> None:
    """A config with the same bytes is not sent again."""
    publish(release, REPO, "v1", api=hub.api())
    hub.asked.clear()
    publish(later, REPO, "v2", api=hub.api())
    new = hashlib.sha256((later.path / "analysis/test-00000-of-00001.parquet").read_bytes())

    uploads = [path for method, path in hub.asked if method == "PUT"]
    assert uploads == [f"/large/{new.hexdigest()}"]


def test_an_older_release_is_known_by_its_tag(
    hub: LocalHub, release: Release, later: Release
) -> None:
    """Published again under its tag after a newer one, it does not take the newer one's place."""
    first = publish(release, REPO, "v1", api=hub.api())
    second = publish(later, REPO, "v2", api=hub.api())
    again = publish(release, REPO, "v1", api=hub.api())

    assert again == replace(first, unchanged=True)
    assert hub.repositories[REPO].head == second.commit


@pytest.mark.parametrize("create_pr", [False, True])
def test_a_tag_of_another_release_is_refused(
    hub: LocalHub, release: Release, later: Release, create_pr: bool
) -> None:
    """Tags never move: nothing is uploaded, and the message offers another name."""
    first = publish(release, REPO, "v1", api=hub.api())
    hub.asked.clear()
    with pytest.raises(HubError, match=r"tag 'v1' .* another release .*--tag.*'v1\.1'"):
        publish(later, REPO, "v1", create_pr=create_pr, api=hub.api())

    assert hub.changes_asked() == []
    assert hub.repositories[REPO].tags == {"v1": first.commit}


def test_files_of_other_kinds_stay(hub: LocalHub, release: Release, later: Release) -> None:
    """A licence stays; whatever would be read as data of one of the configs goes."""
    publish(release, REPO, "v1", api=hub.api())
    repository = hub.repositories[REPO]
    repository.change("by hand", **{"LICENSE": b"mine", "text_to_image/test-notes": b"stray"})
    publish(later, REPO, "v2", api=hub.api())

    found = hub.files(REPO, "v2")
    assert found["LICENSE.txt"] == b"mine"
    assert "text_to_image/test-notes.txt" not in found
    assert ".gitattributes" in found


def test_a_repository_of_something_else_is_left_alone(hub: LocalHub, release: Release) -> None:
    """A name that was meant for another dataset costs nothing."""
    hub.api().create_repo(REPO, repo_type="dataset")
    hub.repositories[REPO].change("data", rows=b"1,2")
    with pytest.raises(HubError, match=r"holds 'rows\.txt' and no manifest\.json"):
        publish(release, REPO, "v1", api=hub.api())
    assert hub.repositories[REPO].tags == {}


def test_an_empty_repository_is_filled(hub: LocalHub, release: Release) -> None:
    """One that was made on the Hub's page, with its first files, is as good as none."""
    hub.api().create_repo(REPO, repo_type="dataset")
    assert publish(release, REPO, "v1", api=hub.api()).commit == hub.repositories[REPO].head


def test_a_pull_request_leaves_the_main_branch(hub: LocalHub, release: Release) -> None:
    """All files are in the request, there is no tag, and a second run proposes nothing new."""
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
    """After the merge the same command, without asking for a request, only makes the tag."""
    publish(release, REPO, "v1", create_pr=True, api=hub.api())
    merged = hub.repositories[REPO].merge(1)
    done = publish(release, REPO, "v1", api=hub.api())

    assert (done.commit, done.tag, done.unchanged) == (merged, "v1", True)
    assert hub.repositories[REPO].head == merged


def test_what_the_main_branch_holds_is_not_proposed(hub: LocalHub, release: Release) -> None:
    """There is nothing to merge: the commit is named, and that a tag is still to be made."""
    head = publish(release, REPO, "v1", api=hub.api()).commit
    hub.repositories[REPO].tags.clear()
    done = publish(release, REPO, "v1", create_pr=True, api=hub.api())
    assert (done.commit, done.tag, done.unchanged) == (head, None, True)
    assert summary(done).startswith(f"nothing changed: {hub.url}/datasets/{REPO}/commit/{head}")
    assert hub.repositories[REPO].open_pulls == {}


def test_another_open_pull_request_is_not_this_one(
    hub: LocalHub, release: Release, later: Release
) -> None:
    """Two releases are proposed side by side."""
    publish(later, REPO, "v2", create_pr=True, api=hub.api())
    publish(release, REPO, "v1", create_pr=True, api=hub.api())
    assert list(hub.repositories[REPO].open_pulls) == [1, 2]


def test_whoever_may_not_write_may_propose(hub: LocalHub, release: Release, later: Release) -> None:
    """A stranger's release is refused before it is looked at, but may come as a request."""
    publish(release, REPO, "v1", api=hub.api())
    hub.asked.clear()
    with pytest.raises(HubError, match=r"may not write there: .*--create-pr"):
        publish(later, REPO, "v2", api=hub.api(STRANGER))
    assert hub.changes_asked() == []

    done = publish(later, REPO, "v2", create_pr=True, api=hub.api(STRANGER))
    assert hub.files(REPO, "refs/pr/1").keys() == {*on_disk(later.path), ".gitattributes"}
    assert done.commit != hub.repositories[REPO].head


def test_a_namespace_of_others_is_refused(hub: LocalHub, release: Release) -> None:
    """Where the token may not make a repository, the message says so and nothing is sent."""
    with pytest.raises(HubError, match="cannot create 'pixel-lab/echo': the Hub refuses it"):
        publish(release, REPO, "v1", api=hub.api(STRANGER))
    assert hub.objects == {}


@pytest.mark.parametrize("private", [False, True])
def test_a_new_repository_is_as_private_as_asked(
    hub: LocalHub, release: Release, private: bool
) -> None:
    """A private one does not exist for strangers."""
    publish(release, REPO, "v1", private=private, api=hub.api(WRITER))
    assert hub.repositories[REPO].private is private
    assert hub.api(WRITER).repo_exists(REPO, repo_type="dataset")
    assert hub.api(STRANGER).repo_exists(REPO, repo_type="dataset") is not private


def test_private_cannot_be_asked_of_a_public_repository(
    hub: LocalHub, release: Release, later: Release
) -> None:
    """What is meant to be private is not shown to everybody by mistake."""
    publish(release, REPO, "v1", api=hub.api())
    with pytest.raises(HubError, match="is public, and --private is for new"):
        publish(later, REPO, "v2", private=True, api=hub.api())
    assert list(hub.repositories[REPO].tags) == ["v1"]


def test_a_changed_release_is_refused_before_anything_is_made(
    hub: LocalHub, release: Release
) -> None:
    """A folder that is no longer what was written leaves no trace on the Hub."""
    (release.path / "notes.txt").write_text("x")
    with pytest.raises(ReleaseError, match=r"holds 'notes\.txt'"):
        publish(release, REPO, "v1", api=hub.api())
    assert hub.repositories == {}


def test_the_message_and_each_step_are_told(hub: LocalHub, release: Release) -> None:
    """The commit is called what was asked, and progress is a line for each step."""
    steps: list[str] = []
    done = publish(release, REPO, "v1", message="First\tone", progress=steps.append, api=hub.api())
    assert hub.repositories[REPO].commits[done.commit].title == "First\tone"
    assert [step.split()[0] for step in steps] == ["checking", "uploading", "tagging"]
    assert "7 files" in steps[1]


def test_the_card_says_what_changed_since_the_revision_before(
    hub: LocalHub, release: Release, later: Release
) -> None:
    """Named by its place on the Hub; the same command again changes nothing, and it verifies."""
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
    """Nobody wants a card that is silent about what was asked for."""
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
    """With `previous` or without, both ways: there it is, as it was published or proposed."""
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
    """The commit is there: no second one is made, for this tag or for another one."""
    publish(release, REPO, "v1", api=hub.api())
    before: list[Any] = [release, None] if compared_first else [None, release]
    first = publish(later, REPO, "v2", previous=before[0], api=hub.api())
    del hub.repositories[REPO].tags["v2"]
    for tag in ("v2", "v3"):
        again = publish(later, REPO, tag, previous=before[1], api=hub.api())
        assert (again.commit, again.tag, again.unchanged) == (first.commit, tag, True)


def test_a_card_that_somebody_changed_is_another_card(hub: LocalHub, release: Release) -> None:
    """What was written by hand into its last section is no comparison of ours: it is renewed."""
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
    """The same rows as another version would write them: in other files, with other values."""
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
    """Another version of the toolkit packs rows otherwise: the tag holds what they say."""
    first = publish(release, REPO, "v1", api=hub.api())
    other = encoded_anew(release, tmp_path / "other", echo_hf="0.0.1")
    hub.asked.clear()
    again = publish(other, REPO, "v1", api=hub.api())

    assert on_disk(other.path) != on_disk(release.path)
    assert again == replace(first, unchanged=True)
    assert hub.changes_asked() == []


def test_the_same_rows_under_another_licence_are_another_release(
    hub: LocalHub, release: Release, tmp_path: Path
) -> None:
    """Nobody is told that nothing changed when what the card states did."""
    publish(release, REPO, "v1", api=hub.api())
    statements = release.manifest.statements.model_copy(update={"license": "cc-by-4.0"})
    other = encoded_anew(release, tmp_path / "other", statements=statements)
    with pytest.raises(HubError, match=r"tag 'v1' .* another release"):
        publish(other, REPO, "v1", api=hub.api())


@pytest.mark.parametrize("path", ["analysis/test-00000-of-00001.parquet", "stats.json"])
def test_a_tag_on_changed_files_holds_no_release(
    hub: LocalHub, release: Release, tmp_path: Path, path: str
) -> None:
    """A manifest of equal rows is not believed where the files beside it are not those it lists."""
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
    """No file of the release is read for what the repository alone forbids."""
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
    """A tag of the repository as it is downloaded whole."""
    return release_at(f"{REPO}@{tag}", hub.api()).path


def test_posts_of_x_are_published_without_their_words(hub: LocalHub, tmp_path: Path) -> None:
    """The bundled posts of X are invented; their words and images are in no published byte."""
    run = built(tmp_path)
    open_ = {"allow_rules": True, "allow_unscreened": True}
    said: list[str] = []
    done = publish(run / "release", REPO, "v1", api=hub.api(), progress=said.append, **open_)
    again = publish(run / "release", REPO, "v1", api=hub.api(), **open_)
    rows = by_id(load_folder(hub, "v1"))
    before = by_id(run / "release")

    of_x = {name for name, row in before.items() if "//x.com/" in " ".join(row["post_urls"])}
    assert of_x
    assert any("leaving out posted words and images" in line for line in said)
    assert [name for name in sorted(of_x) if rows[name]["prompt"] is not None] == []
    assert all(rows[name]["dehydrated"] for name in of_x)
    assert before.keys() == rows.keys()
    assert again == replace(done, unchanged=True)
    assert list((run / "release").parent.glob(".release.*")) == []


def scored(release: Release, of_x: Mapping[str, Row], store: ImageStore) -> dict[str, Dataset]:
    """Outputs that give the posted images back, and texts that say the prompts again."""
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
    hub: LocalHub, tmp_path: Path
) -> None:
    """Explanations, answers and edits may repeat posts: no prompt or image is in any byte."""
    release, store = read_release(built(tmp_path) / "release"), ImageStore(tmp_path / "store")
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
    """The prompt of a sample, and the first bytes of its images, beyond what all files have."""
    digests = [*row["input_images"], *row["output_images"]]
    return [row["prompt"].encode(), *(store.open(digest)[:400] for digest in digests)]


def plain_bytes(folder: Path) -> bytes:
    """All files of a release, those of Parquet as values without any packing."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    plain = [path.read_bytes() for path in files]
    for path in files:
        if path.suffix == ".parquet":
            sink = io.BytesIO()
            pq.write_table(pq.read_table(path), sink, compression="none", use_dictionary=False)
            plain.append(sink.getvalue())
    return b"".join(plain)


def test_a_stated_right_publishes_everything(hub: LocalHub, tmp_path: Path) -> None:
    """With `rights` in the config the rows are as they were built, and the card repeats it."""
    run = built(tmp_path, rights={"x": "a contract of 2026-03-01"})
    publish(run / "release", REPO, "v1", api=hub.api(), allow_rules=True, allow_unscreened=True)

    assert by_id(load_folder(hub, "v1")) == by_id(run / "release")
    assert "a contract of 2026-03-01" in hub.files(REPO, "v1")["README.md"].decode()
