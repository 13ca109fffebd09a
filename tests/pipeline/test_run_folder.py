"""The folder of a run: saved whole, locked, told apart by what made it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from datasets import Dataset

from echo_hf.config.loading import load_config
from echo_hf.errors import RunError
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.result import StageResult
from echo_hf.pipeline.run_folder import RunFolder, StageRecord
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.tables import POSTS
from tests.stages_for_tests import Echo, Guess, Scripted, posts, url

DESCRIBE: Mapping[str, Any] = {"name": "echo", "version": 1, "parameters": {"ending": "ü"}}
RECORD = StageRecord("echo", DESCRIBE, "aaa", "bbb")
TEXTS = ("red", "drop it", "note blue")


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "runs" / "lumen")


def _echo(ending: str = "!") -> StageResult:
    return run_stage(Echo(ending), posts(*TEXTS))


def _texts(folder: RunFolder, part: str) -> list[str]:
    texts: list[str] = pq.read_table(folder.stage_folder("echo") / f"{part}.parquet")[
        "text"
    ].to_pylist()
    return texts


def _files(folder: RunFolder) -> dict[str, int]:
    files = (path for path in folder.root.rglob("*") if path.is_file())
    return {str(path.relative_to(folder.root)): path.stat().st_mtime_ns for path in files}


def test_a_result_is_saved_part_by_part(folder: RunFolder, tmp_path: Path) -> None:
    folder.save_result(_echo(), RECORD)
    names = [f"{one}.json" for one in ("digest", "stats")]
    names += [f"{one}.parquet" for one in ("kept", "notices", "quarantine", "rejects")]
    assert sorted(_files(folder)) == sorted(f"stages/echo/{name}" for name in names)
    texts = [_texts(folder, part) for part in ("kept", "rejects", "quarantine")]
    assert texts == [["red!", "note blue!"], ["drop it"], []]
    file = folder.stage_folder("echo") / "kept.parquet"
    read = Dataset.from_parquet(str(file), cache_dir=str(tmp_path / "hf"))
    assert read.features == POSTS.features
    before = _files(folder)
    folder.save_result(_echo(), StageRecord("echo", dict(DESCRIBE), "aaa", "bbb"))
    assert _files(folder) == before  # an unchanged result is left as it is
    notices = pq.read_table(folder.stage_folder("echo") / "notices.parquet").to_pylist()
    assert notices == [{"_parent": [url(2)], "_reason": "bad_field", "_detail": None}]


def test_a_records_digest_is_the_stages() -> None:
    stage = Echo("ü")
    record = StageRecord("echo", stage.describe(), "a", "b")
    text = json.dumps(stage.describe(), sort_keys=True, ensure_ascii=False)
    assert record.digest == stage.digest() == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    "changed", [{"describe": {**DESCRIBE, "version": 2}}, {"input": "abc"}, {"output": "bcd"}]
)
def test_a_changed_result_replaces_the_old(folder: RunFolder, changed: dict[str, Any]) -> None:
    folder.save_result(_echo(), RECORD)
    (folder.stage_folder("echo") / "left.over").write_text("x")
    (folder.root / "stages" / ".echo.partial").mkdir()  # of a save that was killed
    assert _texts(folder, "kept") == ["red!", "note blue!"]
    folder.save_result(_echo("?"), record := replace(RECORD, **changed))
    assert [path.name for path in (folder.root / "stages").iterdir()] == ["echo"]
    assert _texts(folder, "kept") == ["red?", "note blue?"]
    assert folder.read_record("echo") == record
    assert not (folder.stage_folder("echo") / "left.over").exists()


def test_new_reasons_for_the_same_rows_are_saved(folder: RunFolder, store: Store) -> None:
    record = StageRecord("guess", DESCRIBE, "aaa", "bbb")
    for offline in (True, False):
        result = run_stage(
            Guess(), posts("error red"), engine=Scripted(), store=store, offline=offline
        )
        folder.save_result(result, record)
    saved = pq.read_table(folder.stage_folder("guess") / "quarantine.parquet")
    assert saved["_reason"].to_pylist() == ["engine_error"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"stage": "echo", "odd": 1}'])
def test_a_damaged_record_is_as_none(folder: RunFolder, text: str) -> None:
    folder.save_result(_echo(), RECORD)
    (folder.stage_folder("echo") / "digest.json").write_text(text)
    assert folder.read_record("echo") is None
    folder.save_result(_echo(), RECORD)
    assert folder.read_record("echo") == RECORD


def test_a_missing_file_is_written_again(folder: RunFolder) -> None:
    folder.save_result(result := _echo(), RECORD)
    path = folder.stage_folder("echo") / "rejects.parquet"
    whole = path.read_bytes()
    path.unlink()
    folder.save_result(result, RECORD)
    assert path.read_bytes() == whole


def test_the_config_is_written_down(folder: RunFolder, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        "name: lumen\n"
        "target: {name: Lümen, developer: Northlight, released: 2026-03-02}\n"
        "posts: [{source: jsonl, path: posts.jsonl}]\n"
        "engines: {text: {kind: vllm, model: m, options: {a: [1, 2]}}}\n",
        "utf-8",
    )
    config = load_config(tmp_path / "c.yaml")
    with folder.lock():
        folder.save_config(config)
    assert load_config(folder.root / "config.yaml") == config


def test_one_process_works_in_a_folder_at_a_time(folder: RunFolder) -> None:
    other = RunFolder(folder.root)
    with folder.lock(), pytest.raises(RunError) as caught, other.lock():
        pytest.fail("both hold the lock")
    assert str(caught.value) == (
        f"another process is working in {str(folder.root)!r}: wait for it, or choose another "
        "folder with --runs"
    )
    folder.cache.mkdir(parents=True)
    # The first was left half written.
    for name in (".echo.arrow.ab12cd.partial", "echo-0123.arrow"):
        (folder.cache / name).write_bytes(b"x")
    with folder.lock():
        assert [path.name for path in folder.cache.iterdir()] == ["echo-0123.arrow"]
    cannot = r"^cannot write in '.*\.arrow/lumen' \(.*\): choose another folder with --runs$"
    with pytest.raises(RunError, match=cannot), RunFolder(folder.cache / name / "lumen").lock():
        pytest.fail("there is no folder to lock")
