"""Outputs of others become a pull request that holds what it says, or are refused in a line."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from PIL import Image

from echo_hf.metrics import color_shift
from tests.hub.conftest import Command
from tests.local_hub import STRANGER, LocalHub
from tests.submissions.conftest import EDITS, INPUTS, NAMES, REPO, TAG, folder_of, noise

PLACE = "submissions/fern"


def test_a_stranger_proposes_what_the_folder_holds(
    board: LocalHub, command: Command, tmp_path: Path
) -> None:
    folder_of(tmp_path / "fern")
    given = f"fern={tmp_path / 'fern'}"
    known = ["--model", "mira/fern", "--code", "https://code.example/fern"]
    done = command("submit", f"{REPO}@{TAG}", "--images", given, *known, hub=board, token=STRANGER)
    assert (done.code, done.errors) == (0, "")
    repository = board.repositories[REPO]
    assert repository.open_pulls == {1: f"Submit fern to {TAG}"}
    before, after = repository.commits[repository.head].files, board.files(REPO, "refs/pr/1")
    assert after.keys() - before.keys() == {
        f"{PLACE}/submission.json",
        f"{PLACE}/outputs-00000.parquet",
    }
    told = json.loads(after[f"{PLACE}/submission.json"])
    (file,) = told["files"]
    data = after[f"{PLACE}/outputs-00000.parquet"]
    assert (file["bytes"], file["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    digest = told.pop("digest")
    canonical = json.dumps(told, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    assert digest == hashlib.sha256(canonical.encode()).hexdigest()
    assert (told["model"], told["commit"]) == ("mira/fern", repository.tags[TAG])
    rows = pq.read_table(io.BytesIO(data)).to_pylist()
    assert {row["sample_id"]: row["image"]["bytes"] for row in rows} == {
        name: noise("fern", name) for name in NAMES
    }
    (shift,) = (row for row in told["figures"] if row["metric"] == "color_shift")
    inputs = [[Image.open(io.BytesIO(one)) for one in INPUTS[name]] for name in EDITS]
    outputs = [Image.open(io.BytesIO(noise("fern", name))) for name in EDITS]
    assert shift["value"] == pytest.approx(color_shift(inputs, outputs, protocol="corrected").value)
    assert digest in repository.pulls[1].said[0]
