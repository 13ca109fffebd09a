"""`echo-hf build --offline --responses`, as somebody meets it who has posts and no model."""

from __future__ import annotations

from pathlib import Path

import pytest

from echo_hf.builder.build import build
from tests.hub.conftest import REPO, Command, Put
from tests.local_hub import STRANGER, LocalHub
from tests.recorded_as_model import RecordedAsModel, bundled_posts, config_over, tables


@pytest.fixture
def config(tmp_path: Path, put: Put) -> Path:
    """A config whose release is on the Hub with its answers as `v1`."""
    RecordedAsModel().use()
    config = config_over(tmp_path, bundled_posts())
    built = build(config, runs=tmp_path / "v1", with_responses=True)
    put(built)
    return config


def test_a_published_tag_is_built_again(hub: LocalHub, config: Path, command: Command) -> None:
    """Once more when the Hub is gone, and nothing but the answers is downloaded."""
    arguments = ["build", config, "--runs", config.parent / "second", "--offline"]
    arguments += ["--responses", f"{REPO}@v1", "--with-responses"]
    for _ in range(2):
        done = command(*arguments, hub=hub, token=STRANGER)
        assert (done.code, done.errors) == (0, "")
        assert "note: " not in done.output
        hub.close()
    first, second = config.parent / "v1" / "quickstart", config.parent / "second" / "quickstart"
    assert tables(second) == tables(first)
    downloaded = {path.parent.name for path in (config.parent / "hub-cache").rglob("*.parquet")}
    assert downloaded == {"responses"}
