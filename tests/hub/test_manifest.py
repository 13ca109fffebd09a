"""The manifest says what a release holds, and is not trusted when it is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.curate.splits import CONFIGS as SPLIT_CONFIGS
from echo_hf.errors import ReleaseError
from echo_hf.hub.facts import SAMPLE_CONFIGS, ReleaseFacts
from echo_hf.hub.manifest import content_digest, facts_of, read_manifest, row_digest
from echo_hf.hub.release import Release, read_release, verify_release

Configs = Mapping[str, Dataset]


@pytest.fixture
def folder(release: Release) -> Path:
    """The folder of a written release."""
    return release.path


def by_hand(path: Path) -> str:
    """The documented digest of a Parquet file's rows, from the file alone."""
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
    """Rows, images, sizes and digests are those of the files themselves."""
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
    """Who has only the Parquet file can check a config's digest as it is documented."""
    found = read_manifest(folder).configs[config].digest
    assert found == by_hand(folder / config / "test-00000-of-00001.parquet")


def test_the_manifest_is_stable_text(folder: Path) -> None:
    """Keys are sorted, the text is indented, and reading it back loses nothing."""
    text = (folder / "manifest.json").read_text("utf-8")
    assert text == json.dumps(json.loads(text), sort_keys=True, indent=2, ensure_ascii=False) + "\n"
    assert read_manifest(folder).text() == text


def test_the_manifest_says_what_the_run_knew(folder: Path) -> None:
    """Name, target, protocol, funnel in order, and provenance are those of the facts."""
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
    """What was written before there were counts, tasks and prompts' digests stays a release."""

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
    """A path that is not one a release can have is refused, on one line that shows it."""
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
    """Another format, a missing or an unknown key stops the reading, and is named."""
    _edited(folder, edit)
    with pytest.raises(ReleaseError, match=said):
        read_manifest(folder)


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, "\udcff"])
def test_a_manifest_that_is_no_json_object_is_refused(folder: Path, text: str) -> None:
    """Broken, deep or foreign JSON is one line for the user, never a crash."""
    (folder / "manifest.json").write_text(text, "utf-8", errors="surrogateescape")
    with pytest.raises(ReleaseError, match=r"manifest\.json"):
        read_manifest(folder)


def test_a_folder_without_manifest_is_no_release(tmp_path: Path) -> None:
    """The message names the folder and what was expected in it."""
    with pytest.raises(ReleaseError, match=r"no release in .*nowhere.*manifest\.json"):
        read_manifest(tmp_path / "nowhere")


def test_the_configs_are_those_that_the_splits_fill() -> None:
    """The configs of samples are the parts that the splits stage makes."""
    assert SAMPLE_CONFIGS == SPLIT_CONFIGS


VALUES = st.dictionaries(st.text(max_size=5), st.none() | st.text(max_size=5) | st.booleans())


@given(st.lists(VALUES, max_size=6), st.randoms(use_true_random=False))
def test_row_order_does_not_change_the_content_digest(rows: list[dict[str, Any]], rng: Any) -> None:
    """Any order of the same rows has the same digest."""
    shuffled = list(rows)
    rng.shuffle(shuffled)
    assert content_digest(map(row_digest, rows)) == content_digest(map(row_digest, shuffled))


@given(st.lists(VALUES, max_size=6), VALUES)
def test_another_row_changes_the_content_digest(
    rows: list[dict[str, Any]], further: dict[str, Any]
) -> None:
    """A row more changes the digest, also one that repeats another."""
    digests = [row_digest(row) for row in rows]
    assert content_digest(digests) != content_digest([*digests, row_digest(further)])


def test_the_facts_can_be_read_back(release: Release, facts: ReleaseFacts) -> None:
    """All that a release was written with, so that it can be written again with other rows."""
    assert facts_of(read_manifest(release.path)) == facts


def test_a_manifest_without_statements_has_the_usual_ones(folder: Path) -> None:
    """A release of before they were written down can be read."""
    _edited(folder, lambda data: data.pop("statements"))
    assert facts_of(read_manifest(folder)).license == "other"
