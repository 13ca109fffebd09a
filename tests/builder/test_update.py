"""An update costs what is new, keeps ids, and keeps the release before it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from echo_hf.builder.build import build
from echo_hf.builder.update import ASIDE, Updated, update
from echo_hf.errors import ReleaseError
from echo_hf.hub.release import Release, read_release, verify_release
from tests.recorded_as_model import BOARD, Post, RecordedAsModel, bundled_posts, config_over, tables

REPLY = {
    "url": f"{BOARD}wren_writes/status/9900316480399999999",
    "author": "wren_writes",
    "text": "that second one is perfect, the light is exactly right",
    "timestamp": "2026-03-09T09:00:00Z",
}


def updated(folder: Path, posts: list[Post], **more: Any) -> tuple[Updated, RecordedAsModel]:
    """What an update over these posts came to, and the engine that was asked."""
    engine = RecordedAsModel().use()
    config = config_over(folder, posts, **more)
    return update(config, runs=folder / "runs"), engine


def samples(release: Release) -> dict[str, dict[str, Any]]:
    """The samples of the analysis config, by id, with images by their bytes."""
    rows = release.datasets["analysis"].with_format("arrow")[:].to_pylist()
    return {row["id"]: row for row in rows}


def thread(posts: list[Post], root: str) -> set[str]:
    """The addresses of a post and of all that answers it."""
    found = {root}
    while more := {p["url"] for p in posts if p.get("parent_url") in found} - found:
        found |= more
    return found


def test_the_first_update_has_nothing_to_compare_with(tmp_path: Path) -> None:
    """It is a build: everything is asked, and there was no release before."""
    done, engine = updated(tmp_path, bundled_posts())
    assert (done.previous, done.changed, done.reused) == (None, True, 0)
    assert done.asked == len(engine.asked) > 100
    verify_release(done.release.path)


def test_without_changes_nothing_is_asked_or_written(tmp_path: Path) -> None:
    """No call, no file with other bytes, no release before."""
    updated(tmp_path, bundled_posts())
    run = tmp_path / "runs" / "quickstart"
    before = tables(run)
    done, engine = updated(tmp_path, bundled_posts())
    assert (done.previous, done.changed, done.asked, engine.asked) == (None, False, 0, [])
    assert tables(run) == before
    assert not (run / "previous").exists()
    assert not (run / "cache" / ASIDE).exists()


def test_a_new_post_costs_its_thread_alone(tmp_path: Path) -> None:
    """Nobody is asked about any other thread, and samples of those are equal, ids and all."""
    posts = bundled_posts()
    first, _ = updated(tmp_path, posts)
    before = samples(first.release)
    root = next(p["url"] for p in posts if len(thread(posts, p["url"])) > 2 and _of(before, p))
    done, engine = updated(tmp_path, [*posts, {**REPLY, "parent_url": root}])

    around = thread(posts, root) | {REPLY["url"]}
    assert engine.asked
    assert engine.sources() <= around
    assert done.asked == len(engine.asked)
    assert done.reused > 100
    after = samples(done.release)
    untouched = {name for name, row in before.items() if around.isdisjoint(row["post_urls"])}
    assert len(untouched) > 30
    assert {name: after[name] for name in untouched} == {name: before[name] for name in untouched}
    assert set(before) <= set(after)


def test_the_release_before_is_kept_whole(tmp_path: Path) -> None:
    """`previous` holds every byte of it, and the next change takes its place."""
    posts = bundled_posts()
    first, _ = updated(tmp_path, posts)
    run = tmp_path / "runs" / "quickstart"
    ids, whole = [set(samples(first.release))], [_bytes(first.release.path)]
    for end in (-20, -40):
        done, _ = updated(tmp_path, posts[:end])
        assert done.previous == run / "previous"
        verify_release(done.previous)
        assert _bytes(done.previous) == whole[-1]
        assert set(samples(read_release(done.previous))) == ids[-1]
        ids.append(set(samples(done.release)))
        whole.append(_bytes(done.release.path))
    assert ids[0] > ids[1] > ids[2]
    unchanged, _ = updated(tmp_path, posts[:-40])
    assert unchanged.previous is None
    assert _bytes(run / "previous") == whole[1]


def test_a_removed_post_leaves(tmp_path: Path) -> None:
    """Its samples go; the others stay as they are, and nobody is asked about their threads."""
    posts = bundled_posts()
    first, _ = updated(tmp_path, posts)
    before = samples(first.release)
    roots = (post for post in posts if post["url"].startswith(BOARD) and "parent_url" not in post)
    alone = (post for post in roots if thread(posts, post["url"]) == {post["url"]})
    root = next(post["url"] for post in alone if _of(before, post))
    done, engine = updated(tmp_path, [post for post in posts if post["url"] != root])
    theirs = {name for name, row in before.items() if root in row["post_urls"]}

    assert theirs
    assert engine.asked == []
    assert samples(done.release) == {k: row for k, row in before.items() if k not in theirs}


def test_a_refused_update_leaves_both_releases(tmp_path: Path) -> None:
    """Posts that give no sample are a mistake: the release and the one before stay."""
    posts = bundled_posts()
    updated(tmp_path, posts)
    done, _ = updated(tmp_path, posts[:-20])
    run = tmp_path / "runs" / "quickstart"
    before = _bytes(done.release.path), _bytes(run / "previous")
    with pytest.raises(ReleaseError, match="no post became a sample"):
        updated(tmp_path, [{"url": "https://board.example/1", "text": "hello"}])
    assert (_bytes(run / "release"), _bytes(run / "previous")) == before
    assert not (run / "cache" / ASIDE).exists()


def test_after_a_kill_the_release_before_is_still_known(tmp_path: Path) -> None:
    """One that was killed between writing the release and keeping the one before is made up for."""
    posts = bundled_posts()
    first, _ = updated(tmp_path, posts)
    run = tmp_path / "runs" / "quickstart"
    whole = _bytes(first.release.path)
    shutil.copytree(first.release.path, run / "cache" / ASIDE)
    build(config_over(tmp_path, posts[:-20]), runs=tmp_path / "runs")
    done, engine = updated(tmp_path, posts[:-20])
    assert (done.previous, done.changed, engine.asked) == (run / "previous", True, [])
    assert _bytes(run / "previous") == whole


def test_answers_are_carried_only_while_they_are_asked_for(tmp_path: Path) -> None:
    """A build without the option takes them out of the run and the release again."""
    RecordedAsModel().use()
    config = config_over(tmp_path, bundled_posts())
    first = update(config, runs=tmp_path / "runs", with_responses=True)
    assert first.release.manifest.configs["responses"].rows > 100
    second = update(config, runs=tmp_path / "runs")
    assert "responses" not in second.release.manifest.configs
    assert not (tmp_path / "runs" / "quickstart" / "responses.parquet").exists()
    assert second.changed


def _of(samples: dict[str, dict[str, Any]], post: Post) -> bool:
    return any(post["url"] in row["post_urls"] for row in samples.values())


def _bytes(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
