"""A release becomes one commit and a tag, or nothing at all, whatever fails half way."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from huggingface_hub import DatasetCard
from huggingface_hub.hf_api import RepoFile

from echo_hf.curate.decisions import Changes, Decision, append_decisions
from echo_hf.errors import HubError, ReleaseError
from echo_hf.hub.load import open_release
from echo_hf.hub.publish import (
    FileContent,
    PublishResult,
    check_names,
    check_publishable,
    compare_files,
    plan_publication,
    publish,
    summarize,
)
from echo_hf.hub.release import Release, verify_release
from tests.hub.conftest import REPO, Command, Configs, Put, Samples, Write
from tests.hub.quickstart_release import by_id
from tests.local_hub import STRANGER, WRITER, LocalHub
from tests.local_hub_routes import Answer, Question, RefusedError

OPEN = {"allow_rules": True, "allow_unscreened": True}
DATA = "analysis/test-00000-of-00001.parquet"


@pytest.fixture
def later(write: Write, configs: Configs) -> Release:
    analysis = configs["analysis"].select([2, 0])
    return write("later", {"text_to_image": configs["text_to_image"], "analysis": analysis})


def on_disk(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def test_all_files_come_in_one_commit_with_a_tag(
    hub: LocalHub, put: Put, release: Release, tmp_path: Path
) -> None:
    """What is there is a release, and only its card and manifest differ from the disk."""
    steps: list[str] = []
    before = on_disk(release.path)
    done = put(release, message="First\tone", progress=steps.append)
    repository = hub.repositories[REPO]
    assert (done.commit, done.tag, done.unchanged) == (repository.head, "v1", False)
    assert done.url == f"{hub.url}/datasets/{REPO}/tree/v1"
    assert repository.tags == {"v1": repository.head}
    assert [commit.title for commit in repository.history] == ["First\tone", "initial commit"]
    assert [step.split()[0] for step in steps] == ["checking", "uploading", "tagging"]
    assert "7 files" in steps[1]

    there = hub.files(REPO, "v1")
    assert on_disk(release.path) == before
    assert there.keys() == {*before, ".gitattributes"}
    differing = {path for path in before if before[path] != there[path]}
    assert differing == {"README.md", "manifest.json"}
    ours, theirs = (json.loads(each["manifest.json"]) for each in (before, there))
    assert theirs.pop("card")["sha256"] == hashlib.sha256(there["README.md"]).hexdigest()
    ours.pop("card")
    assert ours == theirs
    cards = (each["README.md"].decode().splitlines() for each in (before, there))
    changed = [pair for pair in zip(*cards, strict=True) if pair[0] != pair[1]]
    call = 'samples = load_dataset("{}", "text_to_image", split="test", revision="{}")'
    assert changed == [
        (call.format("ORGANISATION/NAME", "pixelbloom-2025-03"), call.format(REPO, "v1"))
    ]
    for path, data in there.items():
        (tmp_path / "copy" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "copy" / path).write_bytes(data)
    verify_release(tmp_path / "copy")
    assert DatasetCard.load(tmp_path / "copy" / "README.md").data.license == "other"


def test_the_same_content_makes_no_commit(hub: LocalHub, put: Put, release: Release) -> None:
    """Under the same tag, another one, or as a proposal."""
    first = put(release)
    hub.asked.clear()
    assert put(release.path) == replace(first, unchanged=True)
    assert hub.changes_asked() == []
    again = put(release, "v2")
    assert (again.commit, again.tag, again.unchanged) == (first.commit, "v2", True)
    assert hub.repositories[REPO].tags == {"v1": first.commit, "v2": first.commit}
    done = put(release, "v3", create_pr=True)
    assert (done.commit, done.tag, done.unchanged) == (first.commit, None, True)
    said = f"nothing changed: {hub.url}/datasets/{REPO}/commit/{first.commit}"
    assert summarize(done).startswith(said)
    assert hub.repositories[REPO].open_pulls == {}


def test_changed_content_is_a_new_commit_of_what_changed(
    hub: LocalHub, put: Put, release: Release, later: Release
) -> None:
    """What lies beside the release stays; what would be read as its data goes."""
    first = put(release)
    before, repository = hub.files(REPO, "v1"), hub.repositories[REPO]
    repository.change("by hand", **{"LICENSE": b"mine", "text_to_image/test-notes": b"stray"})
    hub.asked.clear()
    second = put(later, "v2")
    assert not second.unchanged
    assert repository.tags == {"v1": first.commit, "v2": second.commit}
    assert repository.commits[repository.commits[second.commit].parent or ""].parent == first.commit
    assert hub.files(REPO, "v1") == before
    found = hub.files(REPO, "v2")
    assert found.keys() == {*on_disk(later.path), ".gitattributes", "LICENSE.txt"}
    assert found["LICENSE.txt"] == b"mine"
    new = hashlib.sha256((later.path / DATA).read_bytes()).hexdigest()
    assert [path for method, path in hub.asked if method == "PUT"] == [f"/large/{new}"]


@pytest.mark.parametrize("create_pr", [False, True])
def test_a_tag_of_another_release_is_refused(
    hub: LocalHub, put: Put, release: Release, later: Release, create_pr: bool
) -> None:
    first = put(release)
    hub.asked.clear()
    with pytest.raises(HubError, match=r"tag 'v1' .* another release .*--tag.*'v1\.1'"):
        put(later, create_pr=create_pr)
    assert hub.changes_asked() == []
    assert hub.repositories[REPO].tags == {"v1": first.commit}


def test_a_pull_request_leaves_the_main_branch_until_it_is_merged(
    hub: LocalHub, put: Put, release: Release, later: Release
) -> None:
    done = put(release, create_pr=True)
    repository = hub.repositories[REPO]
    assert done.url == f"{hub.url}/datasets/{REPO}/discussions/1"
    assert (done.tag, done.unchanged) == (None, False)
    assert done.commit == repository.branches["refs/pr/1"]
    assert hub.files(REPO, "refs/pr/1").keys() == {*on_disk(release.path), ".gitattributes"}
    assert hub.files(REPO).keys() == {".gitattributes"}
    assert repository.tags == {}
    assert "without a tag: the same command" in summarize(done)
    assert put(release, create_pr=True) == replace(done, unchanged=True)
    assert list(repository.open_pulls) == [1]
    put(later, "v2", create_pr=True)
    assert list(repository.open_pulls) == [1, 2]

    merged = repository.merge(1)
    tagged = put(release)
    assert (tagged.commit, tagged.tag, tagged.unchanged) == (merged, "v1", True)
    assert repository.head == merged


def test_whoever_may_not_write_may_propose(
    hub: LocalHub, put: Put, release: Release, later: Release
) -> None:
    with pytest.raises(
        HubError, match="cannot create 'pixel-lab/echo': the Hub refuses this token"
    ):
        put(release, token=STRANGER)
    assert hub.objects == {}
    put(release)
    hub.asked.clear()
    with pytest.raises(HubError, match=r"may not write there: .*--create-pr"):
        put(later, "v2", STRANGER)
    assert hub.changes_asked() == []
    done = put(later, "v2", STRANGER, create_pr=True)
    assert hub.files(REPO, "refs/pr/1").keys() == {*on_disk(later.path), ".gitattributes"}
    assert done.commit != hub.repositories[REPO].head


def test_the_card_says_what_changed_since_the_revision_before(
    hub: LocalHub, put: Put, release: Release, later: Release
) -> None:
    put(release)
    hub.asked.clear()
    with pytest.raises(HubError, match="v0"):
        put(later, "v2", previous=f"{REPO}@v0")
    assert hub.changes_asked() == []
    first = put(later, "v2", previous=f"{REPO}@v1")
    again = put(later, "v2", previous=release)
    card = hub.files(REPO, "v2")["README.md"].decode()
    # One of three samples has left one of its two configs; nothing else has changed.
    assert "compared with pixelbloom-2025-03: 0 added, 0 removed, 1 changed, 2 equal." in card
    assert again == replace(first, unchanged=True)
    verify_release(open_release(f"{REPO}@v2", hub.api()).path)


@pytest.mark.parametrize("create_pr", [False, True])
def test_what_it_is_compared_with_is_no_other_release(
    hub: LocalHub, put: Put, release: Release, later: Release, create_pr: bool
) -> None:
    """Also where the tag did not come the first time, or another is asked for."""
    put(release)
    first = put(later, "v2", previous=release, create_pr=create_pr)
    again = put(later, "v2", create_pr=create_pr)
    assert (again.commit, again.tag, again.unchanged) == (first.commit, first.tag, True)
    assert list(hub.repositories[REPO].open_pulls) == ([1] if create_pr else [])
    if not create_pr:
        del hub.repositories[REPO].tags["v2"]
        for tag in ("v2", "v3"):
            done = put(later, tag)
            assert (done.commit, done.tag, done.unchanged) == (first.commit, tag, True)


@pytest.mark.parametrize("path", ["README.md", DATA, "stats.json"])
def test_what_somebody_changed_is_another_release(
    hub: LocalHub, put: Put, release: Release, path: str
) -> None:
    put(release)
    data = hub.files(REPO)[path] + b"Buy paint at our shop.\n"
    hub.api().upload_file(
        path_or_fileobj=data, path_in_repo=path, repo_id=REPO, repo_type="dataset"
    )
    hub.repositories[REPO].tags["v2"] = hub.repositories[REPO].head
    with pytest.raises(HubError, match=r"tag 'v2' .* another release"):
        put(release, "v2")
    assert not put(release, "v3").unchanged
    assert b"Buy paint" not in hub.files(REPO, "v3")[path]


@pytest.mark.parametrize("why", ["may not write", "is public", "holds 'rows.txt' and no manifest"])
def test_what_is_refused_is_refused_before_the_work(
    hub: LocalHub, put: Put, samples: Samples, write: Write, why: str
) -> None:
    rows = samples({"post_urls": ["https://x.com/i/status/9"], "prompt": "A fox"})
    of_x = write("of_x", {"analysis": rows})
    (of_x.path / "notes.txt").write_text("what reading it would stumble over")
    hub.api().create_repo(REPO, repo_type="dataset")
    if why.startswith("holds"):
        hub.repositories[REPO].change("data", rows=b"1,2")
    said: list[str] = []
    token = STRANGER if why == "may not write" else WRITER
    with pytest.raises(HubError, match=why):
        put(of_x, token=token, private=why == "is public", progress=said.append)
    assert said == []
    head = hub.repositories[REPO].head
    with pytest.raises(ReleaseError, match=r"holds 'notes\.txt'"):
        publish(of_x, "pixel-lab/new", "v1", api=hub.api())
    assert list(hub.repositories) == [REPO]
    assert hub.repositories[REPO].head == head


def test_posts_of_x_are_published_without_their_words(hub: LocalHub, put: Put, full: Path) -> None:
    """The bundled posts of X are invented; their words and images are in no published byte."""
    said: list[str] = []
    done = put(full, progress=said.append, **OPEN)
    again = put(full, **OPEN)
    rows, before = by_id(open_release(f"{REPO}@v1", hub.api()).path), by_id(full)
    of_x = {name for name, row in before.items() if "//x.com/" in " ".join(row["post_urls"])}
    assert of_x
    assert any("leaving out posted words and images" in line for line in said)
    assert [name for name in sorted(of_x) if rows[name]["prompt"] is not None] == []
    assert all(rows[name]["dehydrated"] for name in of_x)
    assert before.keys() == rows.keys()
    assert again == replace(done, unchanged=True)
    assert list(full.parent.glob(".release.*")) == []


HERE = ("--repo-id", "mira/echo", "--tag", "v1")


def test_a_plan_says_what_publishing_would_change_and_sends_nothing(
    hub: LocalHub, put: Put, release: Release, later: Release
) -> None:
    """Of a new repository all files; of a published one what `publish` then uploads."""
    options: dict[str, Any] = {**OPEN, "api": hub.api()}
    first = plan_publication(release, REPO, "v1", **options)
    assert (first.new, first.tagged, REPO in hub.repositories) == (True, None, False)
    assert dict(first.files) == {
        path: len(content) if path not in {"README.md", "manifest.json"} else first.files[path]
        for path, content in on_disk(release.path).items()
    }
    assert set(first.upload) == set(first.files)
    done = put(release)
    same = plan_publication(release, REPO, "v1", **options)
    assert (same.new, same.tagged, same.upload, same.delete) == (False, done.commit, (), ())
    before = hub.files(REPO, "main")
    next_one = plan_publication(later, REPO, "v2", **options)
    assert hub.files(REPO, "main") == before
    put(later, tag="v2")
    now = hub.files(REPO, "main")
    changed = {path for path in now if before.get(path) != now[path]}
    assert set(next_one.upload) == changed
    assert set(next_one.delete) == before.keys() - now.keys()


def test_the_command_says_what_it_does_and_where_it_is(
    hub: LocalHub, release: Release, command: Command
) -> None:
    planned = command("publish", release.path, *HERE, "--create-pr", "--dry-run", hub=hub)
    assert planned.output.splitlines()[-1] == "nothing was sent: leave out --dry-run to publish"
    assert "mira/echo, which is yet to be made" in planned.output
    assert "mira/echo" not in hub.repositories
    done = command("publish", release.path, *HERE, "--create-pr", "--private", hub=hub)
    assert not hub.api(STRANGER).repo_exists("mira/echo", repo_type="dataset")
    page = f"{hub.url}/datasets/mira/echo"
    assert done.output.splitlines()[-1] == (
        f"proposed: {page}/discussions/1, without a tag: the same command "
        "without --create-pr makes the tag once it is merged"
    )
    assert hub.repositories["mira/echo"].private
    assert hub.repositories["mira/echo"].tags == {}
    done = command("publish", release.path, *HERE, hub=hub)
    head = hub.repositories["mira/echo"].head
    told = [f"tagging {head[:10]} as v1", f"published: {page}/tree/v1"]
    assert (done.code, done.output.splitlines()[-2:]) == (0, told)
    again = command("publish", release.path, *HERE, hub=hub)
    assert again.output.splitlines()[-1] == f"nothing changed: {page}/tree/v1 is this release"


def test_a_refusal_is_one_line_and_a_file_may_hold_the_token(
    hub: LocalHub, write: Write, tmp_path: Path, command: Command
) -> None:
    folder = write("plain", rules_built=True).path
    done = command("publish", folder, *HERE, hub=hub)
    assert (done.code, done.output, done.errors.count("\n")) == (2, "", 1)
    assert "--allow-rules" in done.errors
    assert hub.asked == []
    (tmp_path / "token").write_text(WRITER)
    assert command("publish", folder, *HERE, "--allow-rules", hub=hub, token=None).code == 0


@pytest.mark.parametrize(
    ("values", "option", "said"),
    [
        ({"open_reviews": 3}, None, "has 3 samples that a person .*`echo-hf review /"),
        ({"rules_built": True}, "allow_rules", r"--allow-rules .*\ballow_rules: true"),
        ({"unscreened": 7}, "allow_unscreened", r"--allow-unscreened .*\ballow_unscreened: true"),
    ],
)
def test_what_is_doubtful_has_to_be_allowed(
    release: Release, values: dict[str, Any], option: str | None, said: str
) -> None:
    doubtful = Release(release.path, release.manifest.model_copy(update=values))
    for allowed in ({}, {name: True for name in OPEN if name != option}):
        with pytest.raises(ReleaseError, match=said):
            check_publishable(doubtful, **allowed)
    if option:
        check_publishable(doubtful, **{option: True})


Decide = Callable[..., None]


@pytest.fixture
def reviewed(write: Write, samples: Samples) -> Release:
    made = Changes.model_validate({"quality": "Analysis", "sample_digest": "e" * 64})
    told = json.dumps({"review": {"digest": made.fingerprint}})
    edited = {"sample_digest": "e" * 64, "provenance": told}
    doubtful = {"sample_digest": "as built", "doubts": ["lacks_input"]}
    rows = {"analysis": samples({"sample_digest": "as built"}, edited, doubtful)}
    return write("run/release", rows, name="reviewed")


@pytest.fixture
def decide(reviewed: Release) -> Decide:
    def decided(
        said: str,
        name: str,
        digest: str = "as built",
        quality: str = "",
        reasons: tuple[str, ...] = ("personal_data",),
        doubts: tuple[str, ...] = (),
    ) -> None:
        changes = {"quality": quality, "sample_digest": "e" * 64} if quality else None
        values = {"id": name, "sample_digest": digest, "decision": said, "changes": changes}
        made = Decision.model_validate({**values, "reasons": reasons, "doubts": doubts})
        append_decisions(reviewed.path.parent / "review.jsonl", [made])

    return decided


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ([], None),
        ([("keep", "sample0")], None),
        ([("keep", "sample0"), ("remove", "sample0")], "removed"),
        ([("remove", "sample0", "older")], None),
        ([("flag", "sample0")], "opened"),
        ([("edit", "sample0", "as built", "Analysis")], "changed"),
        ([("keep", "sample1", "as built", "Analysis")], None),
        ([("withdraw", "sample1")], "changed"),
        ([("keep", "sample2", "as built", "", (), ("lacks_input",))], "kept"),
        ([("keep", "sample2", "as built", "", (), ("roles_contradict",))], None),
    ],
)
def test_what_was_decided_since_the_build_is_refused(
    reviewed: Release, decide: Decide, said: list[tuple[Any, ...]], what: str | None
) -> None:
    """Sample 1 was built with an edit, which may be withdrawn or made anew."""
    decide("keep", "sample1", "as built", "Analysis")
    for one in said:
        decide(*one)
    if what is None:
        check_publishable(reviewed)
    else:
        with pytest.raises(ReleaseError, match=f"was {what} in review since .*: build again"):
            check_publishable(reviewed, **OPEN)


def test_what_was_decided_is_read_of_a_table_of_an_older_shape(
    reviewed: Release, decide: Decide
) -> None:
    (path,) = (reviewed.path / "analysis").glob("*.parquet")
    pq.write_table(pq.read_table(path).drop_columns(["quality", "doubts"]), path)
    decide("remove", "sample0")
    with pytest.raises(ReleaseError, match="was removed in review"):
        check_publishable(reviewed)


@pytest.mark.parametrize("repo_id", ["echo", "a/b/c", "", "a b/c", "org/na--me", "org/", "/x"])
def test_what_is_no_repository_is_refused(repo_id: str) -> None:
    with pytest.raises(HubError, match="expected one like"):
        check_names(repo_id, "v1")


NO_TAGS = ["", "main", "refs", "a b", "a..b", "v1.", "v1.lock", "-v", "v/1", "v:1", "é", "a" * 101]


def test_a_tag_is_a_plain_name() -> None:
    for tag in ("v1", "gpt-4o-2025-03", "20250325", "1.0_b", "a" * 100):
        check_names("org/echo", tag)
    for tag in (*NO_TAGS, "0123456789abcdef" * 2 + "01234567"):
        with pytest.raises(HubError, match="is not a name of a tag"):
            check_names("org/echo", tag)


def content(data: bytes) -> FileContent:
    return FileContent(data, len(data), hashlib.sha256(data).hexdigest())


def test_git_names_a_blob_alike(tmp_path: Path) -> None:
    data = b"any\n bytes \xff"
    (tmp_path / "file").write_bytes(data)
    command = ["git", "hash-object", "--no-filters", str(tmp_path / "file")]
    git = subprocess.run(command, capture_output=True, text=True, check=True)
    held = {DATA: RepoFile(path=DATA, size=len(data), oid=git.stdout.strip())}
    for source in (data, tmp_path / "file"):
        assert not any(compare_files({DATA: FileContent(source, len(data), "")}, held))
    assert any(compare_files({DATA: content(data[::-1])}, held))


def test_what_readers_would_take_for_data_goes() -> None:
    gone = [
        "analysis/notes.txt",
        "analysis/test-00001-of-00002.parquet",
        "text_to_image/test-00000-of-00001.parquet",
    ]
    stay = [".gitattributes", "LICENSE", "data/train.csv", "text_to_image/notes.txt"]
    held = {path: RepoFile(path=path, size=1, oid="0" * 40) for path in [*gone, *stay, DATA]}
    assert compare_files({DATA: content(b"a")}, held)[1] == gone


@dataclass(frozen=True)
class Scene:
    hub: LocalHub
    put: Put
    first: PublishResult
    later: Release

    @property
    def state(self) -> tuple[dict[str, bytes], dict[str, str]]:
        return self.hub.files(REPO), dict(self.hub.repositories[REPO].tags)

    def publish(self) -> PublishResult:
        return self.put(self.later, "v2")


@pytest.fixture
def scene(hub: LocalHub, put: Put, release: Release, write: Write, configs: Configs) -> Scene:
    rows = {name: dataset.select([]) for name, dataset in configs.items()}
    rows["analysis"] = configs["analysis"].select([2, 1])
    rows["text_to_image"] = configs["text_to_image"].select([1])
    return Scene(hub, put, put(release), write("later", rows))


@pytest.mark.parametrize(
    ("step", "spared"),
    [("before upload", 0), ("before upload", 1), ("after upload", 0), ("before commit", 0)],
)
def test_a_death_before_the_commit_leaves_the_old_revision(
    scene: Scene, step: str, spared: int
) -> None:
    before = scene.state
    scene.hub.at(step, *[None] * spared, scene.hub.die)
    with pytest.raises(HubError, match=r"does not answer .* the same command resumes"):
        scene.publish()
    assert scene.state == before

    scene.hub.dead = False
    scene.hub.asked.clear()
    done = scene.publish()
    assert not done.unchanged
    assert scene.hub.repositories[REPO].tags == {"v1": scene.first.commit, "v2": done.commit}
    assert scene.hub.repositories[REPO].commits[done.commit].parent == scene.first.commit
    if step == "before commit":  # what arrived before is not sent again
        assert [path for method, path in scene.hub.asked if method == "PUT"] == []


@pytest.mark.parametrize("step", ["after commit", "before tag", "after tag"])
def test_a_death_after_the_commit_leaves_the_new_revision(scene: Scene, step: str) -> None:
    old = scene.state[0]
    scene.hub.at(step, scene.hub.die)
    with pytest.raises(HubError, match="does not answer"):
        scene.publish()
    new = scene.hub.files(REPO)
    head = scene.hub.repositories[REPO].head
    assert new["manifest.json"] != old["manifest.json"]
    assert b'revision="v2"' in new["README.md"]

    scene.hub.dead = False
    done = scene.publish()
    assert (done.commit, done.tag, done.unchanged) == (head, "v2", True)
    assert scene.hub.files(REPO) == new
    assert scene.hub.repositories[REPO].tags["v2"] == head


def test_a_death_while_the_repository_is_looked_at(scene: Scene) -> None:
    asked = scene.hub.answer

    def whoami_alone(question: Question) -> Answer:
        scene.hub.dead = scene.hub.dead or question.path != "/api/whoami-v2"
        return asked(question)

    scene.hub.answer = whoami_alone  # type: ignore[method-assign]
    before = scene.state
    with pytest.raises(HubError, match=f"cannot read '{REPO}': the Hub does not answer"):
        scene.publish()
    assert scene.state == before


@pytest.mark.parametrize("step", ["before upload", "before commit"])
def test_whoever_publishes_meanwhile_is_not_overwritten(scene: Scene, step: str) -> None:
    repository = scene.hub.repositories[REPO]
    scene.hub.at(step, lambda: repository.change("from elsewhere", note=b"mine"))
    with pytest.raises(
        HubError, match=f"publish to '{REPO}': somebody else published meanwhile"
    ) as raised:
        scene.publish()
    assert "\n" not in str(raised.value)
    assert repository.history[0].title == "from elsewhere"
    assert repository.tags == {"v1": scene.first.commit}
    done = scene.publish()
    assert repository.commits[done.commit].parent == repository.history[1].oid
    assert scene.hub.files(REPO)["note.txt"] == b"mine"


def test_a_tag_that_appears_meanwhile_does_not_move(scene: Scene) -> None:
    tags = scene.hub.repositories[REPO].tags
    scene.hub.at("before tag", lambda: tags.update(v2=scene.first.commit))
    with pytest.raises(HubError, match=r"cannot tag .* as 'v2'"):
        scene.publish()
    assert tags == {"v1": scene.first.commit, "v2": scene.first.commit}


def test_the_same_tag_from_elsewhere_is_as_good(scene: Scene) -> None:
    repository = scene.hub.repositories[REPO]
    scene.hub.at("before tag", lambda: repository.tags.update(v2=repository.head))
    assert scene.publish().commit == repository.tags["v2"]


def test_a_card_that_the_hub_refuses_is_told(hub: LocalHub, put: Put, write: Write) -> None:
    with pytest.raises(HubError, match=r"the Hub refuses it .*must be one of") as raised:
        put(write("unlicensed", license=""))
    assert "\n" not in str(raised.value)
    assert hub.objects == {}


def test_a_signed_address_is_not_told(scene: Scene) -> None:
    def refuse() -> None:
        raise RefusedError(400, said="wrong")

    scene.hub.at("before upload", *[refuse] * 9)
    with pytest.raises(HubError) as raised:
        scene.publish()
    assert "Error while uploading" in str(raised.value)
    assert "signature" not in str(raised.value)
    assert "secret" not in str(raised.value)
