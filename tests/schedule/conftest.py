"""A small benchmark of bundled posts that plain rules read, and a Hub in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from echo_hf.cli import app
from echo_hf.schedule.turn import Turn, turn
from tests.hub.conftest import _own_cache as _own_cache
from tests.hub.conftest import hub as hub
from tests.local_hub import LocalHub

REPO = "pixel-lab/echo"
NAME = "mine"  # of the folder in which `init` writes it
SCHEDULE = {"repo_id": REPO, "budget_usd": 0, "allow_rules": True, "allow_unscreened": True}
Take = Callable[..., Turn]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """What `echo-hf init benchmark` writes, with a section `schedule`."""
    folder = tmp_path / "mine"
    done = CliRunner().invoke(app, ["init", "benchmark", str(folder)])
    assert done.exit_code == 0, done.output
    path = folder / "benchmark.yaml"
    change(path, schedule=SCHEDULE)
    return path


def change(path: Path, **sections: Any) -> None:
    data = {**yaml.safe_load(path.read_text("utf-8")), **sections}
    path.write_text(yaml.safe_dump(data, sort_keys=False), "utf-8")


@pytest.fixture
def take(hub: LocalHub, config: Path, tmp_path: Path) -> Take:
    """Takes a turn, as on one machine or, with `runs` and `state`, on several."""

    def take(**given: Any) -> Turn:
        return turn(config, **{"runs": tmp_path / "runs", "api": hub.api(), **given})

    return take
