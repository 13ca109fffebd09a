"""Sealed samples go to private repositories alone, and are revealed with proofs, or not at all."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from echo_hf._infra.text import one_line
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import HubError, ReleaseError, RunError
from echo_hf.hub.diff import compare_releases
from echo_hf.hub.hydrate import hydrate
from echo_hf.hub.load import check_release, load_benchmark, load_manifest
from echo_hf.hub.manifest import MAX_PROOF_BYTES, file_entry, read_openings
from echo_hf.hub.publish import plan_publication, publish
from echo_hf.hub.redistribution import dehydrate
from echo_hf.hub.release import (
    Release,
    read_release,
    read_release_facts,
    unpack_release,
    verify_release,
    write_release,
)
from echo_hf.hub.remote import Remote
from echo_hf.hub.sealed import SealedSamples, check_openings
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.run_folder import RunFolder
from tests.hub.conftest import REPO, Command
from tests.hub.quickstart_release import entry
from tests.local_hub import LocalHub
from tests.recorded_as_model import X, bundled_posts
from tests.sealed_for_tests import (
    ALL,
    built,
    holding,
    released,
    run_of,
    sealed_rows,
    set_key,
    words_of,
)

PRIVATE_REPO = "pixel-lab/echo-sealed"
SPLITS = BENCHMARKS
OPTIONS = {"allow_rules": True, "allow_unscreened": True}


@pytest.fixture(scope="module")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose first release had fewer posts: other samples are sealed in the second."""
    folder = tmp_path_factory.mktemp("built")
    set_key(folder)
    built(folder, ALL[: len(ALL) // 2])
    shutil.copytree(run_of(folder) / "release", folder / "first")
    built(folder)
    return folder


@pytest.fixture
def folder(built_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built_once, tmp_path / "lab"))


def root_of(release: Path) -> str:
    sealed = read_release(release).manifest.sealed
    assert sealed
    return sealed.root


@pytest.fixture
def tell(hub: LocalHub, folder: Path) -> Callable[..., Any]:
    """Publishes the release of the run, its first one at `v1`."""
    publish(folder / "first", REPO, "v1", api=hub.api(), **OPTIONS)

    def told(tag: str = "v2", **options: Any) -> Any:
        release = options.pop("release", run_of(folder) / "release")
        return publish(release, REPO, tag, api=hub.api(), **{**OPTIONS, **options})

    return told


def revealed(folder: Path) -> Path:
    """The release of the run after it has opened what its first one had sealed."""
    run = RunFolder(run_of(folder))
    return SealedSamples(run).reveal("v1", root_of(folder / "first")).path


def committed_then(folder: Path) -> set[str]:
    rows = SealedSamples(RunFolder(run_of(folder))).read_commitment(root_of(folder / "first"))
    return {each.row["id"] for each in rows if each.row}


def test_sealed_samples_go_in_full_to_a_private_repository(
    hub: LocalHub, folder: Path, tell: Callable[..., Any]
) -> None:
    rows = sealed_rows(folder)
    tell(sealed_to=PRIVATE_REPO)
    assert hub.repositories[PRIVATE_REPO].private
    assert not hub.repositories[REPO].private
    manifest = load_manifest(PRIVATE_REPO, revision="v2", api=hub.api())
    assert manifest.sealed
    assert manifest.sealed.private
    assert manifest.sealed.root == root_of(run_of(folder) / "release")
    for split in SPLITS:
        loaded = load_benchmark(PRIVATE_REPO, split, revision="v2", api=hub.api())
        assert {*loaded["id"]} <= rows.keys()
        assert not any(loaded["dehydrated"])
    assert check_release(f"{PRIVATE_REPO}@v2", hub.api())[:2] == (len(rows), 0)
    assert tell(sealed_to=PRIVATE_REPO).unchanged


def test_what_restricted_platforms_showed_is_sealed_in_full(hub: LocalHub, tmp_path: Path) -> None:
    """Of public releases those posts are left out; a private repository passes nothing on."""
    set_key(tmp_path)
    release = built(tmp_path, bundled_posts(X))
    publish(release, REPO, "v1", sealed_to=PRIVATE_REPO, api=hub.api(), **OPTIONS)
    public = load_benchmark(REPO, "text_to_image", revision="v1", api=hub.api())
    private = load_benchmark(PRIVATE_REPO, "text_to_image", revision="v1", api=hub.api())
    assert any(public["dehydrated"])
    assert None in public["prompt"]
    assert not any(private["dehydrated"])
    assert None not in private["prompt"]


def test_no_other_place_takes_them(hub: LocalHub, folder: Path, tell: Callable[..., Any]) -> None:
    hub.api().create_repo("pixel-lab/open", repo_type="dataset", private=False)
    for place, said in (("pixel-lab/open", "is public, and sealed"), (REPO, "where the release")):
        with pytest.raises(HubError, match=said):
            tell(sealed_to=place)
    assert "v2" not in hub.repositories[REPO].tags
    private = run_of(folder) / "sealed" / "release"
    for act in (publish, plan_publication):
        with pytest.raises(ReleaseError, match="holds the sealed samples themselves"):
            act(private, REPO, "v3", api=hub.api(), **OPTIONS)
    with pytest.raises(ReleaseError, match="no sealed samples beside"):
        tell(release=folder / "first", sealed_to=PRIVATE_REPO)


def test_a_reveal_opens_what_was_sealed_then_and_nothing_else(
    hub: LocalHub, folder: Path, tell: Callable[..., Any]
) -> None:
    run, then = run_of(folder), committed_then(folder)
    before, sealed = released(run / "release"), sealed_rows(folder)
    opened = then & sealed.keys()
    assert opened
    assert sealed.keys() - opened
    done = tell(reveal="v1")
    assert (done.tag, done.unchanged) == ("v2", False)
    public, left = released(run / "release"), sealed_rows(folder)
    assert public.keys() == before.keys() | opened
    assert left.keys() == sealed.keys() - opened
    assert {name: public[name] for name in opened} == {name: sealed[name] for name in opened}
    words = {word for row in left.values() for word in words_of(row)}
    assert holding(words, run / "release") == set()
    # Whoever loads it has them proven; so has whoever asks for it alone.
    manifest = load_manifest(REPO, revision="v2", api=hub.api())
    assert manifest.revealed["v1"].root == root_of(folder / "first")
    assert manifest.revealed["v1"].rows == len(then)
    for split in (*SPLITS, "analysis"):
        rows = load_benchmark(REPO, split, revision="v2", api=hub.api())
        assert len(rows) == manifest.configs[split].rows
    assert check_release(f"{REPO}@v2", hub.api()).proven == len(opened)
    card = (run / "release" / "README.md").read_text()
    assert f"Revealed: {len(opened)} of the {len(then)} samples that were sealed in" in card


def test_a_diff_says_of_revealed_samples_that_they_are_new(folder: Path) -> None:
    run, before = run_of(folder), read_release(run_of(folder) / "release")
    kept = shutil.copytree(before.path, folder / "before")
    sealed = sealed_rows(folder)
    difference = compare_releases(read_release(kept), read_release(revealed(folder)))
    assert set(difference.added) == committed_then(folder) & sealed.keys()
    assert (difference.removed, difference.changed) == ((), ())
    held = json.dumps(difference.to_json())
    assert not any(name in held for name in sealed_rows(folder))
    assert run.exists()


def test_a_build_after_a_reveal_keeps_rows_and_proofs(folder: Path) -> None:
    """Also with another share, and once a takedown has deleted the release."""
    release = revealed(folder)
    names = ("revealed.jsonl", *(f"{split}/test-00000-of-00001.parquet" for split in SPLITS))
    names += ("analysis/test-00000-of-00001.parquet",)
    after = {name: (release / name).read_bytes() for name in names}
    stats = read_release(release).stats
    proven, sealed = check_openings(read_release(release)), sealed_rows(folder)
    built(folder)
    assert {name: (release / name).read_bytes() for name in after} == after
    now = read_release(release).stats
    assert now["measured"] == stats["measured"]
    assert now["left_out"]["analysis"] == stats["left_out"]["analysis"] == {"sealed": len(sealed)}
    assert sealed_rows(folder).keys() == sealed.keys()
    shutil.rmtree(release)
    built(folder, share=0.0)
    assert check_openings(read_release(release)) == proven
    assert sealed_rows(folder).keys() == sealed.keys()


def test_all_may_be_revealed(hub: LocalHub, folder: Path, tell: Callable[..., Any]) -> None:
    tell()
    tell("v3", reveal="v2")
    run = run_of(folder)
    assert not (run / "sealed" / "release").exists()
    assert read_release(run / "release").manifest.sealed is None
    tell("v4", reveal="v1")  # these are public by now, and were sealed before as well
    openings = read_openings(run / "release", read_release(run / "release").manifest)
    assert {opening.tag for opening in openings} == {"v1", "v2"}
    assert check_release(f"{REPO}@v4", hub.api()).proven > 0


@pytest.mark.parametrize(
    ("reveal", "said"), [("v9", "has no such tag"), ("v0", "nothing was sealed in it")]
)
def test_a_tag_without_sealed_samples_reveals_none(
    hub: LocalHub, folder: Path, tell: Callable[..., Any], tmp_path: Path, reveal: str, said: str
) -> None:
    publish(built(tmp_path / "open", share=0.0), REPO, "v0", api=hub.api(), **OPTIONS)
    before = (run_of(folder) / "release" / "manifest.json").read_bytes()
    with pytest.raises(HubError, match=said):
        tell(reveal=reveal)
    assert (run_of(folder) / "release" / "manifest.json").read_bytes() == before


def test_a_tag_is_revealed_once(hub: LocalHub, folder: Path, tell: Callable[..., Any]) -> None:
    tell(reveal="v1")
    assert tell(reveal="v1").unchanged
    with pytest.raises(HubError, match="has revealed it already"):
        tell("v3", reveal="v1")


def test_a_run_reveals_nothing_of_another(
    hub: LocalHub, folder: Path, tell: Callable[..., Any], tmp_path: Path
) -> None:
    set_key(tmp_path / "other", bytes(32))
    other = built(tmp_path / "other")
    with pytest.raises(RunError, match="expected the run that the tag was published from"):
        publish(other, REPO, "v2", reveal="v1", api=hub.api(), **OPTIONS)
    with pytest.raises(ReleaseError, match="no sealed samples beside"):
        tell(release=folder / "first", reveal="v1")
    assert read_release(other.path).manifest.revealed == {}


def test_a_reveal_that_was_not_sent_is_sent_by_the_next_call(
    hub: LocalHub, folder: Path, tell: Callable[..., Any]
) -> None:
    revealed(folder)
    assert not tell(reveal="v1").unchanged
    assert check_release(f"{REPO}@v2", hub.api()).proven > 0


def kill_at(number: int, act: Callable[[], object]) -> bool:
    """Do it in a process that is killed before its nth change of a folder; whether it was."""
    changes = {"os.rename", "shutil.rmtree"}
    aside = (".reveal.", "pictures")  # what is unpacked, and of no consequence
    if (child := os.fork()) == 0:
        left = number

        def watch(event: str, about: object) -> None:
            nonlocal left
            if event in changes and not any(name in str(about) for name in aside):
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1

        sys.addaudithook(watch)
        act()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGKILL)
    return status != 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")
@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_a_killed_reveal_has_opened_all_or_nothing(folder: Path, tmp_path: Path, step: int) -> None:
    root, then = root_of(folder / "first"), committed_then(folder)
    before, opened = released(run_of(folder) / "release"), then & sealed_rows(folder).keys()
    left = sealed_rows(folder).keys() - opened
    states, number = set[bool](), 0
    while True:
        copy = Path(shutil.copytree(folder, tmp_path / f"copy{number}"))
        run = RunFolder(run_of(copy))
        sealed = SealedSamples(run)
        if not kill_at(number, lambda sealed=sealed: sealed.reveal("v1", root)):  # type: ignore[misc]
            break
        release = read_release(run.release)
        verify_release(release.path)
        public, is_open = released(release.path), "v1" in release.manifest.revealed
        states.add(is_open)
        assert public.keys() == before.keys() | (opened if is_open else set())
        assert check_openings(release).proven == (len(opened) if is_open else 0)
        if number % 5 == 0:  # a build takes over from either state
            built(copy)
            now = released(run.release).keys()
            assert now == before.keys() | (opened if is_open else set())
            assert sealed_rows(copy).keys() == (left if is_open else left | opened)
        sealed.reveal("v1", root)
        assert released(run.release).keys() == before.keys() | opened
        assert sealed_rows(copy).keys() == left
        assert {*read_record(copy)["sealed"]} >= left
        assert opened.isdisjoint(read_record(copy)["sealed"])
        shutil.rmtree(copy)
        number += step
    assert states == {True, False}
    assert number > 10


def read_record(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((run_of(folder) / "sealed" / "drawn.json").read_text())
    return record


def forge(release: Path, change: Callable[[list[dict[str, Any]]], object]) -> Path:
    """Change the lines of its proofs, and the manifest with them."""
    lines = [json.loads(line) for line in (release / "revealed.jsonl").read_text().splitlines()]
    change(lines)
    (release / "revealed.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return seal_again(release)


def seal_again(release: Path) -> Path:
    manifest = json.loads((release / "manifest.json").read_text())
    manifest["proofs"] = file_entry(release, "revealed.jsonl").model_dump()
    (release / "manifest.json").write_text(json.dumps(manifest))
    verify_release(release)
    return release


FORGERIES: dict[str, Callable[[list[dict[str, Any]]], object]] = {
    "another salt": lambda lines: lines[0].update(salt="0" * 64),
    "a shorter path": lambda lines: lines[0]["path"].pop(),
    "a deep path": lambda lines: lines[0].update(path=["L" + "0" * 64] * 10_000),
    "a path in the file system": lambda lines: lines[0].update(path=["../../etc/passwd"]),
    "another root": lambda lines: [line.update(root="0" * 64) for line in lines],
    "an unknown tag": lambda lines: lines[0].update(tag="v0"),
    "no tag": lambda lines: lines[0].update(tag=""),
    "a row twice": lambda lines: lines.append(lines[0]),
    "another row": lambda lines: lines[0].update(id=lines[1]["id"], salt=lines[0]["salt"]),
    "too many lines": lambda lines: lines.extend(
        [{**lines[0], "id": f"s{number}"} for number in range(10_000)]
    ),
    "a row that is none": lambda lines: lines[0].update(id="nobody"),
    "more keys": lambda lines: lines[0].update(more="x"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_proofs_are_refused(folder: Path, forgery: str) -> None:
    release = forge(revealed(folder), FORGERIES[forgery])
    with pytest.raises(ReleaseError) as refused:
        check_release(release)
    assert len(str(refused.value)) < 1000
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("content", [b"{", b"\xff\n", b"[]\n", b"{}" * 9, None])
def test_a_file_of_proofs_that_is_none_is_refused(folder: Path, content: bytes | None) -> None:
    release = revealed(folder)
    path = release / "revealed.jsonl"
    if content is None:
        with path.open("wb") as file:
            file.truncate(MAX_PROOF_BYTES + 1)
    else:
        path.write_bytes(content)
    seal_again(release)
    for split in SPLITS:
        with pytest.raises(ReleaseError, match=r"revealed\.jsonl"):
            load_benchmark(release, split)


def test_a_root_that_the_tag_has_not_is_refused(
    hub: LocalHub, folder: Path, tmp_path: Path, tell: Callable[..., Any]
) -> None:
    """One who owns a repository can forge rows, root and proofs alike, but not what they tagged."""
    set_key(tmp_path / "other", bytes(32))
    forged = built(tmp_path / "other", ALL[: len(ALL) // 2])
    run = RunFolder(run_of(tmp_path / "other"))
    SealedSamples(run).reveal("v1", root_of(forged.path))
    assert check_release(run.release).proven > 0  # alone it is consistent
    tell(release=run.release)
    with pytest.raises(ReleaseError, match="says that tag 'v1' was sealed with root"):
        check_release(f"{REPO}@v2", hub.api())


@pytest.mark.parametrize("part", ["prompt", "image", "feedback"])
def test_an_altered_row_is_refused_by_whoever_loads_it(
    folder: Path, tmp_path: Path, part: str
) -> None:
    """The release is written again over it, so that files and manifest agree."""
    release = read_release(revealed(folder))
    openings = read_openings(release.path, release.manifest)
    store = ImageStore(tmp_path / "store")
    datasets, names = unpack_release(release, store), {opening.id for opening in openings}
    split, row = next(
        (split, number)
        for split in SPLITS
        for number, each in enumerate(datasets[split])
        if each["id"] in names and each["output_images"] and each["community_feedback"]
    )

    def alter(each: dict[str, Any], number: int) -> dict[str, Any]:
        if number == row and part == "prompt":
            return {**each, "prompt": each["prompt"] + " "}
        if number == row and part == "image":
            return {**each, "output_images": [*each["output_images"], each["output_images"][0]]}
        if number == row:
            first, *others = each["community_feedback"]
            return {**each, "community_feedback": [{**first, "verdict": "mixed"}, *others]}
        return each

    datasets[split] = datasets[split].map(
        alter, with_indices=True, features=datasets[split].features
    )
    written = write_release(tmp_path / "altered", datasets, store, read_release_facts(release))
    with pytest.raises(ReleaseError, match="is not the one that was sealed in 'v1'"):
        load_benchmark(written.path, split)
    other = next(name for name in SPLITS if name != split)
    load_benchmark(written.path, other)


def test_an_image_under_the_name_of_another_is_refused(folder: Path, tmp_path: Path) -> None:
    """The bytes count: a file says itself what digest an image has."""
    path = revealed(folder)
    names = {opening.id for opening in read_openings(path, read_release(path).manifest)}
    for split in SPLITS:
        (file,) = (path / split).glob("*.parquet")
        table = pq.read_table(file)
        rows = table.to_pylist()
        for row in rows:
            if row["id"] in names:
                for image in row["output_images"]:
                    image["bytes"] += b"\0"
        pq.write_table(table.from_pylist(rows, table.schema), file)
        manifest = json.loads((path / "manifest.json").read_text())
        config = manifest["configs"][split]
        config["files"] = [file_entry(path, f"{split}/{file.name}").model_dump()]
        (path / "manifest.json").write_text(json.dumps(manifest))
    refusals = 0
    for split in SPLITS:
        try:
            load_benchmark(path, split)
        except ReleaseError as error:
            refusals += "is not the one that was sealed" in str(error)
    assert refusals


def test_dehydrated_rows_are_counted_and_proven_once_they_are_back(tmp_path: Path) -> None:
    folder = tmp_path / "lab"
    set_key(folder)
    root = root_of(built(folder, bundled_posts(X)).path)
    full = SealedSamples(RunFolder(run_of(folder))).reveal("v1", root)
    count = check_release(full.path).proven
    dry = dehydrate(full.path, tmp_path / "dry")
    checked = check_release(dry.path)
    assert checked.dehydrated > count / 2
    assert sum(checked[:2]) == count
    wet = hydrate(dry.path, tmp_path / "wet", [entry(folder / "posts.jsonl")]).release
    back = check_release(wet.path)
    assert back.proven > checked.proven
    assert sum(back[:2]) == count


def test_the_command_line_says_what_it_checked(folder: Path, command: Command) -> None:
    release = revealed(folder)
    done = command("hydrate", release, "--check")
    manifest = read_release(release).manifest
    count, rows = len(read_openings(release, manifest)), manifest.revealed["v1"].rows
    said = f"{count} revealed samples are the ones that were sealed; "
    said += f"{count} of {rows} under the root of 'v1'"
    assert count == rows > 1
    assert (done.code, one_line(done.output)) == (0, said)
    fewer = Path(shutil.copytree(release, folder / "fewer"))
    forge(fewer, lambda lines: lines.pop())
    done = command("hydrate", fewer, "--check")
    said = said.replace(f"{count} ", f"{count - 1} ").replace(f"of {count - 1}", f"of {count}")
    said += "; 1 of these have no proof: they changed since, or are gone"
    assert (done.code, one_line(done.output)) == (0, said)
    forge(release, FORGERIES["another salt"])
    done = command("hydrate", release, "--check")
    assert done.code == 2
    assert "is not the one that was sealed in 'v1'" in done.output + done.errors
    for wrong in (["--check", "--to", "x"], []):
        assert command("hydrate", release, *wrong).code == 2
    told = ["publish", release, "--repo-id", REPO, "--tag", "v2", "--dry-run", "--reveal", "v1"]
    assert command(*told).code == 2


def test_revealed_rows_without_a_file_of_proofs_are_refused(folder: Path, command: Command) -> None:
    release = revealed(folder)
    manifest = json.loads((release / "manifest.json").read_text())
    (release / "revealed.jsonl").unlink()
    for _ in range(2):  # whether or not the manifest names one
        done = command("hydrate", release, "--check")
        assert done.code == 2
        assert "revealed.jsonl" in done.output + done.errors
        del manifest["proofs"]
        (release / "manifest.json").write_text(json.dumps(manifest))
        manifest["proofs"] = None
    done = command("hydrate", release, "--check")
    assert f"says that {manifest['revealed']['v1']['rows']} rows were revealed, and has no" in (
        one_line(done.output + done.errors)
    )


def test_a_release_without_sealed_samples_is_what_it_was(write: Callable[..., Release]) -> None:
    release = write("plain")
    manifest = json.loads((release.path / "manifest.json").read_text())
    assert manifest.keys().isdisjoint({"sealed", "revealed", "proofs"})
    assert check_openings(release) == (0, 0, {})
    assert replace(read_release_facts(release)).openings == ()


def test_what_cannot_be_published_is_not_opened(
    hub: LocalHub, folder: Path, tell: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that can be known before is: a taken tag, rights, places of what stays sealed."""
    hub.api().create_repo("pixel-lab/open", repo_type="dataset", private=False)
    tell("v2")
    publish(folder / "first", PRIVATE_REPO, "v3", private=True, api=hub.api(), **OPTIONS)
    run = run_of(folder)
    names = ("release/manifest.json", "sealed/drawn.json", "sealed/release/manifest.json")
    before = [(run / name).read_bytes() for name in names]
    for options, said in (
        ({"tag": "v2"}, "tag 'v2' of 'pixel-lab/echo' is on another release"),
        ({"tag": "main"}, "not a name of a tag"),
        ({"private": True}, "is public, and --private is for new"),
        ({"previous": folder / "nothing"}, "no release in"),
        ({"sealed_to": "pixel-lab/open"}, "is public, and sealed samples go"),
        ({"sealed_to": REPO}, "where the release goes"),
        ({"sealed_to": "nowhere"}, "not a name of a repository"),
        ({"sealed_to": PRIVATE_REPO}, "tag 'v3' of 'pixel-lab/echo-sealed' is on another release"),
        ({"reveal": "v2", "sealed_to": "pixel-lab/new"}, "stays sealed after --reveal"),
    ):
        with pytest.raises((HubError, ReleaseError), match=said):
            tell(**{"tag": "v3", "reveal": "v1", **options})
        assert [(run / name).read_bytes() for name in names] == before
    with monkeypatch.context() as patch:
        patch.setattr(Remote, "check_writable", refuse)
        with pytest.raises(HubError, match="may not write"):
            tell("v3", reveal="v1")
    assert [(run / name).read_bytes() for name in names] == before
    assert not tell("v3", reveal="v1").unchanged


def refuse(_: Remote) -> None:
    raise HubError("this token may not write there")
