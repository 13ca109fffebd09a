"""The manifest says what a release holds, and is not trusted when it is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from datasets import Dataset

from echo_hf.curate.splits import CONFIGS as SPLIT_CONFIGS
from echo_hf.errors import ReleaseError
from echo_hf.hub.facts import SAMPLE_CONFIGS, ReleaseFacts, SampleCounts
from echo_hf.hub.manifest import Manifest, make_manifest, read_manifest
from echo_hf.hub.release import Release, read_release, released_facts, verify_release, write_release
from echo_hf.images.store import ImageStore

Configs = Mapping[str, Dataset]


@pytest.fixture
def folder(release: Release) -> Path:
    return release.path


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


def test_the_manifest_counts_what_is_in_the_files(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    assert {name: entry["rows"] for name, entry in manifest["configs"].items()} == {
        "analysis": 3,
        "image_to_image": 0,
        "text_to_image": 2,
    }
    assert manifest["configs"]["analysis"]["pictures"] == 7
    files = [file for entry in manifest["configs"].values() for file in entry["files"]]
    for file in [*files, manifest["card"], manifest["stats"], manifest["benchmark"]]:
        data = (folder / file["path"]).read_bytes()
        assert file["bytes"] == len(data)
        assert file["sha256"] == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("config", ["analysis", "image_to_image", "text_to_image"])
def test_the_content_digest_can_be_computed_from_the_released_rows(
    folder: Path, config: str
) -> None:
    found = read_manifest(folder).configs[config].digest
    assert found == by_hand(folder / config / "test-00000-of-00001.parquet")


def test_the_manifest_is_stable_text(folder: Path) -> None:
    text = (folder / "manifest.json").read_text("utf-8")
    assert text == json.dumps(json.loads(text), sort_keys=True, indent=2, ensure_ascii=False) + "\n"
    assert read_manifest(folder).text() == text


def test_the_manifest_says_what_the_run_knew(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    assert manifest["name"] == "pixelbloom-2025-03"
    assert manifest["target"]["released"] == "2025-03-25"
    assert (manifest["protocol"], manifest["rules_built"]) == ("corrected", False)
    assert [row["stage"] for row in manifest["funnel"]] == ["relevance", "extract"]
    assert manifest["funnel"][0]["counts"]["rejected"] == {"repost": 60}
    assert manifest["provenance"]["relevance"]["engine"] == {"kind": "vllm", "model": "m|n"}
    assert manifest["provenance"]["splits"] == {
        "digest": "cd" * 32,
        "engine": None,
        "prompt": None,
    }
    assert manifest["provenance"]["relevance"]["prompt"] == "ef" * 32


def test_a_release_of_format_1_is_still_read(folder: Path) -> None:
    def age(data: Any) -> None:
        data["format"] = 1
        for name in ("stats", "benchmark"):
            (folder / data.pop(name)["path"]).unlink()
        for origin in data["provenance"].values():
            del origin["prompt"]

    _edited(folder, age)
    verify_release(folder)
    release = read_release(folder)
    assert release.manifest.format == 1
    assert release.manifest.provenance["relevance"].prompt is None
    assert release.stats["configs"]["analysis"]["rows"] == 3
    assert release.stats["measured"] == {}


def _edited(folder: Path, edit: Any) -> None:
    path = folder / "manifest.json"
    data = json.loads(path.read_text("utf-8"))
    edit(data)
    path.write_text(json.dumps(data), "utf-8")


@pytest.mark.parametrize(
    "path",
    [
        "../outside.parquet",
        "/etc/hostname",
        "text_to_image/../../x/test-00000-of-00001.parquet",
        "text_to_image/test-00000-of-00001.parquet\n",
        "",
    ],
)
def test_a_manifest_cannot_name_a_file_outside_the_release(folder: Path, path: str) -> None:
    _edited(folder, lambda data: data["card"].update(path=path))
    with pytest.raises(ReleaseError, match=r"card\.path") as raised:
        read_manifest(folder)
    assert "\n" not in str(raised.value)
    assert repr(path) in str(raised.value)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda data: data.update(format=3), "format is '3'"),
        (lambda data: data.pop("configs"), "configs"),
        (lambda data: data.update(surprise=1), "surprise"),
        (lambda data: data["configs"].update({"../x": {}}), "configs"),
    ],
)
def test_a_manifest_of_another_shape_is_refused(folder: Path, edit: Any, said: str) -> None:
    _edited(folder, edit)
    with pytest.raises(ReleaseError, match=said):
        read_manifest(folder)


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, "\udcff"])
def test_a_manifest_that_is_no_json_object_is_refused(folder: Path, text: str) -> None:
    (folder / "manifest.json").write_text(text, "utf-8", errors="surrogateescape")
    with pytest.raises(ReleaseError, match=r"manifest\.json"):
        read_manifest(folder)


def test_a_folder_without_manifest_is_no_release(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match=r"no release in .*nowhere.*manifest\.json"):
        read_manifest(tmp_path / "nowhere")


def test_the_configs_are_those_that_the_splits_fill() -> None:
    assert SAMPLE_CONFIGS == SPLIT_CONFIGS


def test_the_facts_can_be_read_back(release: Release, facts: ReleaseFacts) -> None:
    assert released_facts(release) == facts


def test_a_manifest_without_statements_has_the_usual_ones(folder: Path) -> None:
    _edited(folder, lambda data: data.pop("statements"))
    assert released_facts(read_release(folder)).license == "other"


Samples = Callable[..., Dataset]
SCREENED = {"flagged": False, "categories": [], "model": "guard"}


def comment(author: str | None) -> dict[str, Any]:
    return {"post_id": "2", "post_url": None, "author": author, "feedback": "too blue"}


def counted(facts: ReleaseFacts, configs: Configs) -> Manifest:
    return make_manifest(facts, {}, configs.values())


def test_each_sample_is_counted_once(samples: Samples, facts: ReleaseFacts) -> None:
    waits = {"review": ["may_show_minor", "personal_data"], "safety": SCREENED}
    configs = {
        "text_to_image": samples(waits),
        "analysis": samples(
            waits, {"review": [], "safety": None}, {"review": None, "safety": None}
        ),
    }
    found = counted(facts, configs)
    assert (found.open_reviews, found.unscreened, found.hashed_authors) == (1, 2, False)


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ({"author": "0123456789abcdef"}, True),
        ({"community_feedback": [comment(None), comment("0123456789abcdef")]}, True),
        ({"community_feedback": [comment(None)]}, False),
        ({}, False),
    ],
)
def test_an_author_stands_in_it_as_whoever_posted(
    samples: Samples, facts: ReleaseFacts, row: Mapping[str, Any], named: bool
) -> None:
    assert counted(facts, {"analysis": samples({}, row)}).hashed_authors is named


def test_the_manifest_of_a_release_says_it(
    tmp_path: Path, samples: Samples, images: ImageStore, facts: ReleaseFacts
) -> None:
    rows = samples(
        {"review": ["personal_data"], "author": "0123456789abcdef", "safety": None},
        {"review": [], "safety": None},
    )
    release = write_release(tmp_path / "release", {"analysis": rows}, images, facts)
    manifest = json.loads((release.path / "manifest.json").read_text("utf-8"))

    told = {name: manifest[name] for name in ("open_reviews", "unscreened", "hashed_authors")}
    assert told == {"open_reviews": 1, "unscreened": 2, "hashed_authors": True}


COUNTS = SampleCounts(
    samples=3,
    languages={"en": 3},
    platforms={"x": 3},
    tasks={"edit": 3},
    authors=2,
    repeated_authors=1,
    unknown_authors=0,
)


def test_the_file_holds_sizes_funnel_and_measures(
    tmp_path: Path, configs: Any, images: ImageStore, facts: ReleaseFacts
) -> None:
    known = replace(facts, measured={"all": COUNTS}, left_out={"ratings": {"not_released": 2}})
    release = write_release(tmp_path / "release", configs, images, known)
    data = json.loads((release.path / "stats.json").read_text("utf-8"))
    size = (release.path / "analysis/test-00000-of-00001.parquet").stat().st_size
    assert data["configs"]["analysis"] == {"rows": 3, "pictures": 7, "bytes": size}
    assert list(data["funnel"]) == ["relevance", "extract"]
    assert data["funnel"]["relevance"]["rejected"] == {"repost": 60}
    assert data["measured"]["all"]["authors"] == 2
    assert data["left_out"] == {"ratings": {"not_released": 2}}
    assert release.stats == data


@pytest.mark.parametrize("text", ["", "[]", '{"configs": {}, "funnel": {}, "more": 1}', "\udcff"])
def test_a_file_that_is_not_understood_is_one_line(release: Release, text: str) -> None:
    (release.path / "stats.json").write_text(text, "utf-8", errors="surrogateescape")
    with pytest.raises(ReleaseError, match=r"stats\.json.*download the release again") as raised:
        _ = release.stats
    assert "\n" not in str(raised.value)
