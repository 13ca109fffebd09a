"""From a fresh environment onto a board: a stranger submits, a maintainer accepts and merges."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from echo_hf.hub.leaderboard import read_scored, render_leaderboard
from echo_hf.hub.submissions import Placement
from tests.hub.conftest import Command
from tests.local_hub import STRANGER, LocalHub
from tests.package.blocks import Environment
from tests.submissions.conftest import REPO, TAG, folder_of
from tests.submissions.conftest import _own_cache as _own_cache
from tests.submissions.conftest import _release as _release
from tests.submissions.conftest import board as board
from tests.submissions.conftest import command as command
from tests.submissions.conftest import eyes as eyes
from tests.submissions.conftest import hub as hub
from tests.submissions.conftest import reader as reader
from tests.submissions.test_accept import config as config


@pytest.mark.package
@pytest.mark.usefixtures("reader")
def test_a_wheel_submits_and_the_board_has_a_row(
    installed: Environment, board: LocalHub, config: Path, command: Command, tmp_path: Path
) -> None:
    folder_of(tmp_path / "images")
    server = {
        "HF_ENDPOINT": board.url,
        "HF_TOKEN": STRANGER,
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_XET": "1",
    }
    done = installed.run(
        ["echo-hf", "submit", f"{REPO}@{TAG}", "--images", "fern=images"], tmp_path, **server
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{board.url}/datasets/{REPO}/discussions/1" in done.stdout
    placed = command("schedule", config, "--accept", "1", hub=board)
    assert placed.code == 0, placed.errors
    board.repositories[REPO].merge(1)
    text = board.files(REPO)[f"submissions/{TAG}/fern/result.json"]
    split = Placement.model_validate(json.loads(text)).splits["text_to_image"]
    page = render_leaderboard(read_scored(REPO, api=board.api()), TAG, "text_to_image")
    (row,) = (line for line in page.splitlines() if "<td>fern<br>" in line)
    assert f"<td>{split.strength:.3f}</td>" in row
