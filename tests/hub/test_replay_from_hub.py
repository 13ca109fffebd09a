"""`echo-hf build --offline --responses`, as somebody meets it who has posts and no model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from echo_hf.builder.build import build
from echo_hf.hub.publish import publish
from echo_hf.hub.release import Release
from tests.hub.conftest import Command
from tests.local_hub import STRANGER, LocalHub
from tests.recorded_as_model import RecordedAsModel, bundled_posts, config_over, tables

REPO = "mira/echo"


@pytest.fixture
def config(tmp_path: Path, hub: LocalHub) -> Path:
    """A config whose release is on the Hub with its answers as `v1`."""
    RecordedAsModel().use()
    config = config_over(tmp_path, bundled_posts())
    built = build(config, runs=tmp_path / "v1", with_responses=True)
    publish(built, REPO, "v1", api=hub.api())
    return config


def test_a_published_tag_is_built_again(hub: LocalHub, config: Path) -> None:
    command = ["build", config, "--runs", config.parent / "second", "--offline"]
    command += ["--responses", f"{REPO}@v1", "--with-responses"]
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-m", "echo_hf", *map(str, command)],
            env=hub.environment(config.parent / "home", STRANGER, HF_HUB_DISABLE_PROGRESS_BARS="1"),
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "note: " not in done.stdout
        hub.close()
    first, second = config.parent / "v1" / "quickstart", config.parent / "second" / "quickstart"
    assert tables(second) == tables(first)
    downloaded = {path.parent.name for path in (config.parent / "home").rglob("*.parquet")}
    assert downloaded == {"responses"}


MISTAKES = {
    f"{REPO}@v2": "carries no responses, only 'analysis', 'image_to_image', 'text_to_image'",
    f"{REPO}@v3": "cannot load 'mira/echo' at revision 'v3': the dataset has no such revision",
    "mira/other@v1": "there is no such dataset",
    "mira/echo": "expected the folder of a release, or a name with a tag",
    "mira/e c h o@v1": "'mira/e c h o' is neither a folder nor the name of a dataset",
}


def test_a_mistake_is_one_line(
    hub: LocalHub, release: Release, tmp_path: Path, command: Command
) -> None:
    """With exit code 2, and before anything is built."""
    publish(release, REPO, "v2", api=hub.api())
    config = config_over(tmp_path, bundled_posts())
    runs = ("--runs", tmp_path / "second", "--offline")
    for place, said in MISTAKES.items():
        done = command("build", config, *runs, "--responses", place, hub=hub, token=STRANGER)
        assert (done.code, done.errors.count("\n")) == (2, 1)
        assert said in done.errors
    assert not (tmp_path / "second" / "quickstart" / "stages").exists()
