"""The counts of a release, on disk and read back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from echo_hf.errors import ReleaseError
from echo_hf.hub.facts import ReleaseFacts, SampleCounts
from echo_hf.hub.release import Release, write_release
from echo_hf.images.store import ImageStore

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
    """Plain JSON: sizes as in the manifest, stages in their order, and what the run measured."""
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
    """Whatever stands in its place, the message names the file and what to do."""
    (release.path / "stats.json").write_text(text, "utf-8", errors="surrogateescape")
    with pytest.raises(ReleaseError, match=r"stats\.json.*download the release again") as raised:
        _ = release.stats
    assert "\n" not in str(raised.value)


def test_a_missing_file_is_one_line(release: Release) -> None:
    """A release whose manifest lists counts has them, or is not whole."""
    (release.path / "stats.json").unlink()
    with pytest.raises(ReleaseError, match=r"stats\.json"):
        _ = release.stats
