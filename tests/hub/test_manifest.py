"""What a release says of itself: what it holds, failed calls, what its samples lean towards."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from datasets import Dataset

from echo_hf.curate.splits import RELEASE_CONFIGS as SPLIT_CONFIGS
from echo_hf.engines.base import make_engine
from echo_hf.errors import ReleaseError
from echo_hf.hub.facts import (
    CONFIGS,
    MAX_LISTED_KEYS,
    SAMPLE_CONFIGS,
    FailedCalls,
    ReleaseFacts,
    SampleCounts,
    count_failed_calls,
    count_samples,
)
from echo_hf.hub.manifest import make_manifest, read_manifest
from echo_hf.hub.release import Release, read_release, read_release_facts, verify_release
from echo_hf.pipeline.answer_store import Store, compute_request_keys
from echo_hf.pipeline.result import StageResult
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.tables import POSTS
from tests.hub.conftest import Samples, Write
from tests.stages_for_tests import Guess, Scripted, request
from tests.stages_for_tests import posts as stage_posts

Edit = Callable[[Any], Any]


def edited(folder: Path, edit: Edit) -> None:
    data = json.loads((folder / "manifest.json").read_text("utf-8"))
    edit(data)
    (folder / "manifest.json").write_text(json.dumps(data), "utf-8")


def by_hand(path: Path) -> str:
    rows = []
    for row in pq.read_table(path).to_pylist():
        for name in ("input_images", "output_images"):
            row[name] = [hashlib.sha256(each["bytes"]).hexdigest() for each in row[name]]
        if row["screenshot"]:
            row["screenshot"] = hashlib.sha256(row["screenshot"]["bytes"]).hexdigest()
        text = json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        rows.append(hashlib.sha256(text.encode("utf-8")).digest())
    return hashlib.sha256(b"".join(sorted(rows))).hexdigest()


def test_the_manifest_counts_what_is_in_the_files(release: Release) -> None:
    """The digest of a config's content can be computed from its released rows alone."""
    manifest = json.loads((release.path / "manifest.json").read_text("utf-8"))
    counts = {name: (one["rows"], one["pictures"]) for name, one in manifest["configs"].items()}
    assert counts == {"analysis": (3, 7), "image_to_image": (0, 0), "text_to_image": (2, 2)}
    files = [file for entry in manifest["configs"].values() for file in entry["files"]]
    for file in [*files, manifest["card"], manifest["stats"], manifest["benchmark"]]:
        data = (release.path / file["path"]).read_bytes()
        assert file["bytes"] == len(data)
        assert file["sha256"] == hashlib.sha256(data).hexdigest()
    for entry in manifest["configs"].values():
        assert entry["digest"] == by_hand(release.path / entry["files"][0]["path"])


def test_a_release_of_format_1_is_still_read(release: Release) -> None:
    def age(data: Any) -> None:
        data["format"] = 1
        del data["statements"]
        for name in ("stats", "benchmark"):
            (release.path / data.pop(name)["path"]).unlink()
        for origin in data["provenance"].values():
            del origin["prompt"]

    edited(release.path, age)
    verify_release(release.path)
    old = read_release(release.path)
    assert old.manifest.format == 1
    assert old.manifest.provenance["relevance"].prompt is None
    assert read_release_facts(old).license == "other"
    assert (old.stats["configs"]["analysis"]["rows"], old.stats["measured"]) == (3, {})


def test_the_manifest_is_stable_text_of_what_the_run_knew(
    release: Release, facts: ReleaseFacts
) -> None:
    text = (release.path / "manifest.json").read_text("utf-8")
    manifest = json.loads(text)
    assert text == json.dumps(manifest, sort_keys=True, indent=2, ensure_ascii=False) + "\n"
    assert read_manifest(release.path).to_text() == text
    assert read_release_facts(release) == facts
    assert (manifest["name"], manifest["protocol"]) == ("pixelbloom-2025-03", "corrected")
    assert manifest["target"]["released"] == "2025-03-25"
    assert [row["stage"] for row in manifest["funnel"]] == ["relevance", "extract"]
    bare = {"digest": "cd" * 32, "engine": None, "prompt": None}
    engine = {"kind": "vllm", "model": "m|n"}
    made = {"digest": "ab" * 32, "engine": engine, "prompt": "ef" * 32}
    assert manifest["provenance"] == {"relevance": made, "splits": bare}


OUTSIDE = ("../outside.parquet", "/etc/hostname", "a/../../x/test-00000-of-00001.parquet", "")
STRANGE: dict[str, tuple[Edit, str]] = {
    **{
        path: (lambda data, path=path: data["card"].update(path=path), r"card\.path is .*")
        for path in OUTSIDE
    },
    "format": (lambda data: data.update(format=3), "format is '3'"),
    "no configs": (lambda data: data.pop("configs"), "configs"),
    "key": (lambda data: data["statements"].update(surprise=1), "surprise"),
    "name": (lambda data: data["configs"].update({"../x": {}}), "configs"),
}


@pytest.mark.parametrize(("edit", "said"), STRANGE.values(), ids=STRANGE)
def test_a_manifest_of_another_shape_is_refused(release: Release, edit: Edit, said: str) -> None:
    """It cannot name a file outside of its release."""
    edited(release.path, edit)
    with pytest.raises(ReleaseError, match=said) as raised:
        read_manifest(release.path)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("text", ["", "[" * 100_000, "\udcff"])
def test_what_is_no_json_object_is_refused(release: Release, text: str) -> None:
    for name, read in (
        ("stats.json", lambda: release.stats),
        ("manifest.json", lambda: read_manifest(release.path)),
    ):
        (release.path / name).write_text(text, "utf-8", errors="surrogateescape")
        with pytest.raises(ReleaseError, match=rf"{name}.* the release again") as raised:
            read()
        assert "\n" not in str(raised.value)
    with pytest.raises(ReleaseError, match=r"no release in .*nowhere.*manifest\.json"):
        read_manifest(release.path / "nowhere")


def test_the_configs_are_those_that_the_splits_fill() -> None:
    assert SAMPLE_CONFIGS == SPLIT_CONFIGS
    assert not {"labels", "posts", "threads"} & set(
        CONFIGS
    )  # who labelled outputs is not published


def test_each_sample_is_counted_once(samples: Samples, write: Write, facts: ReleaseFacts) -> None:
    waits = {"review": ["may_show_minor", "personal_data"]}
    every = samples(waits, {"review": [], "safety": None}, {"review": None, "safety": None})
    made = make_manifest(facts, {}, [samples(waits), every])
    assert (made.open_reviews, made.unscreened, made.hashed_authors) == (1, 2, False)
    for author, comment in (("0123", None), (None, "0123")):
        said = [{"author": None}, {"author": comment}]
        named = samples({}, {"author": author, "community_feedback": said})
        assert make_manifest(facts, {}, [named]).hashed_authors


def test_the_stats_hold_sizes_funnel_and_measures(write: Write) -> None:
    left_out = {"ratings": {"not_released": 2}}
    kinds: Any = {"languages": {"en": 3}, "platforms": {"x": 3}, "tasks": {"edit": 3}}
    authors = {"authors": 2, "repeated_authors": 1, "unknown_authors": 0}
    counts = {**kinds, **authors, "samples": 3, "doubts": {"lacks_input": 1}}
    release = write("release", measured={"all": SampleCounts(**counts)}, left_out=left_out)
    data = json.loads((release.path / "stats.json").read_text("utf-8"))
    size = (release.path / "analysis/test-00000-of-00001.parquet").stat().st_size
    assert data["configs"]["analysis"] == {"rows": 3, "pictures": 7, "bytes": size}
    assert list(data["funnel"]) == ["relevance", "extract"]
    assert data["funnel"]["relevance"]["rejected"] == {"repost": 60}
    assert data["measured"] == {
        "all": {**kinds, **authors, "samples": 3, "doubts": {"lacks_input": 1}}
    }
    assert data["left_out"] == left_out
    assert release.stats == data


def quarantined(folder: Path, *texts: str) -> StageResult:
    with closing(Store(folder / "answers.sqlite")) as store:
        return run_stage(Guess(), stage_posts(*texts), engine=Scripted(), store=store)


def keys(*lines: str) -> tuple[str, ...]:
    found = compute_request_keys(Scripted().signature(), [request(line) for line in lines])
    return tuple(sorted(key.hex() for key in found))


def test_calls_are_counted_by_reason(tmp_path: Path) -> None:
    result = quarantined(tmp_path, "red", "refuse a", "refuse b", "refuse b", "babble c")
    assert count_failed_calls(result) == {
        "refused": FailedCalls(rows=3, requests=keys("refuse a", "refuse b")),
        "unreadable": FailedCalls(rows=1, requests=keys("babble c")),
    }
    assert count_failed_calls(quarantined(tmp_path, "red")) == {}
    # Rules abstain without a call.
    result = run_stage(Guess(), stage_posts("red", "blue"), engine=make_engine("rules"))
    assert count_failed_calls(result) == {"needs_model": FailedCalls(rows=2)}


def test_of_many_the_first_thousand_are_listed(tmp_path: Path) -> None:
    lines = [f"refuse {number}" for number in range(MAX_LISTED_KEYS + 5)]
    (told,) = count_failed_calls(quarantined(tmp_path, *lines)).values()
    assert (told.rows, told.unlisted) == (MAX_LISTED_KEYS + 5, 5)
    assert told.requests == keys(*lines)[:MAX_LISTED_KEYS]


POSTED = [
    {"url": "u1", "lang": "en-US", "platform": "x", "author": "mira"},
    {"url": "u2", "lang": "und", "platform": "x", "author": "mira"},
    {"url": "u3", "lang": "iw", "platform": "bluesky", "author": "mira"},
    {"url": "u4", "lang": None, "platform": None, "author": None},
    {"url": "unused", "lang": "fr", "platform": "x", "author": "jo"},
]


def test_each_sample_is_counted_once_by_its_primary_post(samples: Samples) -> None:
    tasks = {"u1": "edit", "u2": "edit", "u3": None, "u4": "edit", "?": None}
    rows = [{"post_urls": [url, "unused"], "task": task} for url, task in tasks.items()]
    rows[2]["doubts"], rows[4]["doubts"] = ["lacks_input"], ["lacks_input", "roles_contradict"]
    every = samples(*rows, {"post_urls": []})
    configs = {
        "image_to_image": every.select([0, 1, 3]),
        "text_to_image": every.select([]),
        "analysis": every,
    }
    posts = [{**dict.fromkeys(POSTS.columns), **row} for row in POSTED]
    found = count_samples(configs, Dataset.from_list(posts, features=POSTS.features))
    assert list(found) == ["all", "image_to_image", "text_to_image", "analysis"]
    assert found["all"] == found["analysis"]
    assert found["all"].model_dump() == {
        "samples": 6,
        "languages": {"unknown": 4, "en": 1, "he": 1},
        "platforms": {"unknown": 3, "x": 2, "bluesky": 1},
        "tasks": {"edit": 3, "unknown": 3},
        "doubts": {"lacks_input": 2, "roles_contradict": 1},
        "authors": 2,
        "repeated_authors": 1,
        "unknown_authors": 3,
    }
    assert found["image_to_image"].languages == {"unknown": 2, "en": 1}
    assert found["image_to_image"].repeated_authors == 1
    assert found["text_to_image"].samples == found["text_to_image"].authors == 0
