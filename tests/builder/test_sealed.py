"""Samples that are sealed are in no byte of what is public, and stay so until they are revealed."""

from __future__ import annotations

import hashlib
import json
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from echo_hf.builder.build import build
from echo_hf.builder.takedown import forget
from echo_hf.builder.update import update
from echo_hf.collect.takedown import hash_url
from echo_hf.config.loading import load_config
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import ConfigError, HubError, RunError
from echo_hf.hub.commitments import is_drawn
from echo_hf.hub.release import (
    Release,
    read_release,
    read_release_facts,
    unpack_release,
    write_release,
)
from echo_hf.hub.sealed import SealedSamples, check_openings
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.report.analysis.analyze import analyze
from tests.recorded_as_model import RecordedAsModel, config_over
from tests.recorded_as_model import rows as stage_rows
from tests.sealed_for_tests import (
    ALL,
    KEY,
    PRIVATE,
    built,
    holding,
    released,
    run_of,
    sealed_rows,
    set_key,
    words_of,
)


@pytest.fixture(scope="module")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    set_key(folder)
    built(folder)
    return folder


@pytest.fixture
def folder(built_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built_once, tmp_path, dirs_exist_ok=True))


def test_no_byte_of_a_sealed_row_is_public(folder: Path) -> None:
    run = run_of(folder)
    analyze(folder / "config.yaml", runs=folder / "runs")
    sealed = sealed_rows(folder)
    words = {word for row in sealed.values() for word in words_of(row)}
    assert len(sealed) >= 15
    assert len(words) > 100
    assert holding(words, run / "stages", run / "sealed")  # the search finds what there is
    beside = [path for path in run.iterdir() if path.name not in {*PRIVATE, "release"}]
    assert {path.name for path in beside} >= {"analysis.json", "responses.parquet", "config.yaml"}
    assert holding(words, run / "release", *beside) == set()


def test_what_is_sealed_and_what_is_public_is_everything(folder: Path) -> None:
    run, sealed, public = run_of(folder), sealed_rows(folder), released(run_of(folder) / "release")
    split = {row["id"]: row["splits"] for row in stage_rows(run, "splits")}
    assert sealed.keys() | public.keys() == split.keys()
    assert sealed.keys().isdisjoint(public)
    assert all(split[name][0] in BENCHMARKS for name in sealed)
    manifest = read_release(run / "release").manifest
    assert manifest.sealed
    assert manifest.sealed.rows == {
        name: sum(splits[0] == name for sample, splits in split.items() if sample in sealed)
        for name in BENCHMARKS
    }
    tasks = [row["task"] for row in sealed.values()]
    assert manifest.sealed.task_families == {name: tasks.count(name) for name in {*tasks}}
    left_out = read_release(run / "release").stats["left_out"]
    assert left_out["analysis"] == {"sealed": len(sealed)}
    assert left_out["responses"]["sealed"] > 0
    card = (run / "release" / "README.md").read_text()
    assert f"**{len(sealed)} more samples are sealed**" in card


def test_they_are_drawn_by_the_key_and_their_posts(folder: Path) -> None:
    """Public though drawn is one only because it shares a post or an image with a public one."""
    run, sealed = run_of(folder), sealed_rows(folder)
    for row in stage_rows(run, "splits"):
        drawn = is_drawn(KEY, row["post_id"], 0.5)
        assert drawn or row["id"] not in sealed
    public = released(run / "release").values()
    shown = {source["sha256"] for row in public for source in row["picture_sources"]}
    own = {source["sha256"] for row in sealed.values() for source in row["picture_sources"]}
    assert own
    assert own.isdisjoint(shown)


def test_only_the_owner_may_read_them(folder: Path) -> None:
    place = run_of(folder) / "sealed"
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (place, *place.rglob("*"))}
    assert all(mode == (0o700 if path.is_dir() else 0o600) for path, mode in modes.items())
    assert len(modes) > 10


def test_every_row_is_proven_under_the_root(folder: Path) -> None:
    run = RunFolder(run_of(folder))
    private, sealed = read_release(run.root / "sealed/release"), SealedSamples(run)
    root = read_release(run.release).manifest.sealed
    assert root
    rows = sealed_rows(folder)
    assert check_openings(private, BENCHMARKS)[:2] == (len(rows), 0)
    for name in rows:
        row, proof = sealed.open_row(root.root, name)
        text = json.dumps(row, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        assert (proof.root, row["id"]) == (root.root, name)
        assert proof.proves(text.encode())
        assert not proof.proves(text.encode().replace(name.encode(), name[::-1].encode()))
    with pytest.raises(RunError, match="is not under root"):
        sealed.open_row(root.root, "nobody")


def test_a_build_changes_nothing_where_nothing_has_changed(folder: Path) -> None:
    before = {path: path.read_bytes() for path in run_of(folder).glob("[rs]e*/**/*.*")}
    built(folder)
    (run_of(folder) / "release.built").unlink()
    built(folder)
    assert {path: path.read_bytes() for path in run_of(folder).glob("[rs]e*/**/*.*")} == before


def test_a_fate_is_for_good_whatever_the_share_and_the_posts(tmp_path: Path) -> None:
    """Over updates with fewer and more posts, and shares up and down."""
    set_key(tmp_path)
    fates: dict[str, bool] = {}
    for posts, share in ((ALL[:40], 0.5), (ALL, 0.5), (ALL[20:], 0.0), (ALL, 0.9), (ALL, 0.1)):
        config = config_over(tmp_path, posts, splits={"sealed": share})
        RecordedAsModel().use()
        done = update(config, runs=tmp_path / "runs")
        public, sealed = released(done.release.path), sealed_rows(tmp_path)
        now = dict.fromkeys(public, False) | dict.fromkeys(sealed, True)
        assert {name: fates[name] for name in fates.keys() & now} == {
            name: now[name] for name in fates.keys() & now
        }
        assert share or not [name for name in now.keys() - fates if now[name]]
        fates |= now
        words = {word for row in sealed.values() for word in words_of(row)}
        assert holding(words, tmp_path / "runs/quickstart/release") == set()
    assert {*fates.values()} == {True, False}


def test_what_was_released_before_is_never_sealed(tmp_path: Path) -> None:
    first = released(built(tmp_path, ALL[:40], 0.0).path)
    assert not (run_of(tmp_path) / "sealed").exists()
    second = released(built(tmp_path, ALL, 0.9).path)
    left = {row["id"] for row in stage_rows(run_of(tmp_path), "splits")}
    assert len(first.keys() & left) > 10
    assert first.keys() & left <= second.keys()
    assert sealed_rows(tmp_path)


def test_what_a_carried_release_has_is_never_sealed(tmp_path: Path) -> None:
    first = released(built(tmp_path / "old", ALL[:40], 0.0).path)
    carry = [{"release": "../old/runs/quickstart/release"}]
    built(tmp_path / "new", ALL, 0.9, carry=carry)
    sealed = sealed_rows(tmp_path / "new")
    assert sealed
    assert sealed.keys().isdisjoint(first)
    built(tmp_path / "other", ALL, 0.9)
    assert not sealed_rows(tmp_path / "other").keys().isdisjoint(first)


@pytest.mark.parametrize(
    "named", [{"carry": [{"release": "../old"}]}, {"analysis": {"before": "../old"}}]
)
def test_what_another_release_has_of_a_post_is_not_sealed(
    tmp_path: Path, named: dict[str, Any]
) -> None:
    """Also under other ids, which other software gives, and once that release is gone."""
    urls, folder = renamed(built(tmp_path / "first", ALL[:40], 0.0), tmp_path), tmp_path / "new"
    set_key(folder)
    built(folder, ALL[:60], 0.9, **named)
    sealed = sealed_rows(folder)
    assert sealed
    assert urls.isdisjoint(url for row in sealed.values() for url in row["post_urls"])
    shutil.move(tmp_path / "old", tmp_path / "gone")
    built(folder, ALL, 0.9, **named)
    later = sealed_rows(folder)
    assert later.keys() >= sealed.keys()
    assert urls.isdisjoint(url for row in later.values() for url in row["post_urls"])
    name = next(iter(urls))
    record = run_of(folder) / "sealed" / "drawn.json"
    assert hash_url(name) in record.read_text()
    SealedSamples(RunFolder(run_of(folder))).forget([], [name])
    assert hash_url(name) not in record.read_text()
    set_key(tmp_path / "plain")
    built(tmp_path / "plain", ALL, 0.9)
    plain = sealed_rows(tmp_path / "plain").values()
    assert not urls.isdisjoint(url for row in plain for url in row["post_urls"])


def renamed(release: Release, folder: Path) -> set[str]:
    """Write a release `old` whose samples have other ids; return the posts that they are of."""
    store = ImageStore(folder / "store")
    datasets = {
        name: rows.map(lambda row: {"id": f"x{row['id']}"}, features=rows.features)
        for name, rows in unpack_release(release, store).items()
        if "post_urls" in rows.column_names
    }
    write_release(folder / "old", datasets, store, read_release_facts(release))
    return {url for rows in datasets.values() for urls in rows["post_urls"] for url in urls}


def test_a_release_that_was_never_read_is_missed(tmp_path: Path) -> None:
    with pytest.raises(HubError, match="neither a folder"):
        built(tmp_path, ALL[:40], 0.9, carry=[{"release": "../old"}])
    built(tmp_path, ALL[:40], 0.9, analysis={"before": "../old"})


def test_a_takedown_makes_nothing_public_or_sealed(folder: Path) -> None:
    """Release and stages go with a post; what was public is known all the same."""
    run, public, sealed = run_of(folder), released(run_of(folder) / "release"), sealed_rows(folder)
    name = next(iter(public))
    forget(public[name]["post_urls"][:1], folder / "config.yaml", runs=folder / "runs")
    assert not (run / "release").exists()
    built(folder, share=0.9)
    gone = {name} | {
        other
        for other, row in public.items()
        if public[name]["post_urls"][0] in json.dumps(row, default=str)
    }
    assert public.keys() - gone <= released(run / "release").keys()
    assert sealed_rows(folder).keys() == sealed.keys()


def test_a_forgotten_post_of_a_sealed_sample_leaves_its_leaf_alone(folder: Path) -> None:
    run, before = RunFolder(run_of(folder)), sealed_rows(folder)
    manifest = read_release(run.release).manifest
    assert manifest.sealed
    name, row = next((name, row) for name, row in before.items() if row["output_images"])
    words = {*words_of(row)} - {
        word for other in before.values() if other is not row for word in words_of(other)
    }
    assert holding(words, run.root / "sealed")
    removal = forget(row["post_urls"][:1], folder / "config.yaml", runs=folder / "runs")
    assert name in removal.samples
    assert holding(words, run.root) == set()
    rows = SealedSamples(run).read_commitment(manifest.sealed.root)
    assert sum(each.row is None for each in rows) == len(before.keys() & {*removal.samples})
    built(folder)
    own = {text.encode() for text in (name, row["post_urls"][0], row["prompt"])}
    assert holding(own, run.root) == set()
    after = sealed_rows(folder)
    assert after.keys() == before.keys() - {*removal.samples}
    assert check_openings(read_release(run.root / "sealed/release"), BENCHMARKS).proven == len(
        after
    )


@pytest.mark.parametrize("share", [1, 1.5, -0.1, float("nan"), float("inf"), "half"])
def test_a_share_is_at_least_none_and_less_than_all(tmp_path: Path, share: object) -> None:
    config = config_over(tmp_path, ALL[:1], splits={"sealed": share})
    with pytest.raises(ConfigError, match=r"splits\.sealed"):
        load_config(config)


@pytest.mark.parametrize(
    "content", [None, "", "00" * 31, "no key", "zz" * 32, b"\xff\xfe", "aa" * 32]
)
def test_without_its_key_nothing_is_drawn_again(folder: Path, content: str | bytes | None) -> None:
    key, release = run_of(folder) / "sealed" / "key", run_of(folder) / "release"
    before = {path: path.read_bytes() for path in release.rglob("*.*")}
    if content is None:
        key.unlink()
    else:
        key.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(RunError, match="another key would draw other samples"):
        built(folder)
    with pytest.raises(RunError, match="another key would draw other samples"):
        built(folder, share=0.0)
    assert {path: path.read_bytes() for path in release.rglob("*.*")} == before


@pytest.mark.parametrize(
    "text",
    [
        *(None, "{", "{}", '{"sealed": 1}', '{"sealed": [], "more": 1}'),
        json.dumps({"sealed": [], "public": [], "key": hashlib.sha256(KEY).hexdigest()}),
    ],
)
def test_without_its_record_nothing_is_released(folder: Path, text: str | None) -> None:
    record = run_of(folder) / "sealed" / "drawn.json"
    if text is None:
        record.unlink()
    else:
        record.write_text(text)
    with pytest.raises(RunError, match=r"drawn\.json"):
        built(folder)


def test_a_lost_folder_is_missed(folder: Path) -> None:
    """The release says that samples are sealed: a new draw would make them public."""
    shutil.rmtree(run_of(folder) / "sealed")
    with pytest.raises(RunError, match="which says what is sealed: bring it back"):
        built(folder)


def test_a_run_may_be_moved(folder: Path) -> None:
    before = sealed_rows(folder)
    shutil.move(folder / "runs", folder / "elsewhere")
    RecordedAsModel().use()
    build(folder / "config.yaml", runs=folder / "elsewhere")
    assert released(folder / "elsewhere/quickstart/sealed/release").keys() == before.keys()


@pytest.mark.parametrize("place", ["row", "salt", "leaf", "lines", "json"])
def test_altered_commitments_are_refused(folder: Path, place: str) -> None:
    run = RunFolder(run_of(folder))
    (path,) = run.root.glob("sealed/commitments/*.jsonl")
    lines = path.read_text().splitlines()
    first = json.loads(lines[0])
    if place == "row":
        first["row"]["prompt"] += "."
    elif place in ("salt", "leaf"):
        first[place] = "0" * 64
    lines[0] = "{" if place == "json" else json.dumps(first)
    path.write_text("\n".join(lines[1:] if place == "lines" else lines))
    with pytest.raises(RunError, match="has changed"):
        SealedSamples(run).read_commitment(path.stem)
