"""Answers of a release are found by their keys, each once."""

from __future__ import annotations

from pathlib import Path

import pytest
from datasets import Dataset

from echo_hf._infra.sqlite import MOST_VARIABLES
from echo_hf.engines.base import Completion, Usage
from echo_hf.errors import ReleaseError
from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.release import Release, write_release
from echo_hf.hub.responses import Recorded, read_recorded
from echo_hf.images.store import ImageStore
from echo_hf.tables import RESPONSES
from tests.hub.conftest import Configs

GIVEN = {
    b"\1" * 32: Completion("{}", usage=Usage(1, 2, 3)),
    b"\2" * 32: Completion(None, None, "refusal"),
    b"\3" * 32: Completion(None, "needs_model", "error"),
}


def test_what_is_recorded_is_found() -> None:
    """As it was given, failures too; of other keys nothing is known."""
    with Recorded() as recorded:
        recorded.add(GIVEN.items())
        assert recorded.get([*GIVEN, b"\4" * 32]) == GIVEN
        assert recorded.get([b"\2" * 32]) == {b"\2" * 32: GIVEN[b"\2" * 32]}
        assert recorded.get([]) == {}
        assert len(recorded) == 3


def test_any_number_of_keys_may_be_asked_for() -> None:
    """More than one statement of SQLite takes."""
    many = {
        number.to_bytes(32): Completion(str(number)) for number in range(2 * MOST_VARIABLES + 1)
    }
    with Recorded() as recorded:
        recorded.add(many.items())
        assert recorded.get(list(many)) == many


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in the folder for temporary files nor where the run is."""
    monkeypatch.setenv("SQLITE_TMPDIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with Recorded() as recorded:
        recorded.add((n.to_bytes(32), Completion("x" * 5000)) for n in range(2000))
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def carried(configs: Configs, tmp_path: Path, images: ImageStore, facts: ReleaseFacts) -> Release:
    """A release with an answer that stands in two of its files."""
    row = {
        "request_key": "0a" * 32,
        "task": "extract",
        "text": "{}",
        "finish_reason": "stop",
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "cached_tokens": 3},
        "sources": [],
    }
    answers = Dataset.from_list([row, row], features=RESPONSES.features)
    held = {**configs, "responses": answers}
    return write_release(tmp_path / "carried", held, images, facts, shard_bytes=1)


def test_one_key_in_two_rows_is_refused(carried: Release) -> None:
    """Nobody knows which of them was read: the key is named, and nothing is recorded."""
    with pytest.raises(ReleaseError, match=f"request_key '{'0a' * 32}' stands in two rows") as said:
        read_recorded(carried.path)
    assert "\n" not in str(said.value)


def test_only_its_own_files_have_to_be_there(
    configs: Configs, tmp_path: Path, images: ImageStore, facts: ReleaseFacts
) -> None:
    """A release of which the responses alone were downloaded is as good as all of it."""
    answers = Dataset(RESPONSES.features.arrow_schema.empty_table())
    release = write_release(tmp_path / "b", {**configs, "responses": answers}, images, facts)
    for name in configs:
        for file in release.manifest.configs[name].files:
            (release.path / file.path).unlink()
    with read_recorded(release.path) as recorded:
        assert len(recorded) == 0
    (release.path / release.manifest.configs["responses"].files[0].path).unlink()
    with pytest.raises(ReleaseError, match="is missing"):
        read_recorded(release.path)


def test_no_release_and_no_responses_are_told(release: Release, tmp_path: Path) -> None:
    """What it carries instead is named."""
    with pytest.raises(ReleaseError, match="no release in"):
        read_recorded(tmp_path / "nothing")
    with pytest.raises(ReleaseError, match="carries no responses, only 'analysis'"):
        read_recorded(release.path)
