"""`echo-hf build --offline --responses`, as somebody meets it who has posts and no model."""

from __future__ import annotations

from pathlib import Path

import pytest

from echo_hf.builder.build import build
from echo_hf.hub.release import Release
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


MISTAKES = {
    f"{REPO}@v2": "carries no responses, only 'analysis', 'image_to_image', 'text_to_image'",
    f"{REPO}@v3": "cannot load 'pixel-lab/echo' at revision 'v3': the dataset has no such revision",
    "mira/other@v1": "there is no such dataset",
    REPO: "expected the folder of a release, or a name with a tag",
    "mira/e c h o@v1": "'mira/e c h o' is neither a folder nor the name of a dataset",
}


def test_a_mistake_is_one_line(
    hub: LocalHub, put: Put, release: Release, tmp_path: Path, command: Command
) -> None:
    """With exit code 2, and before anything is built."""
    put(release, "v2")
    config = config_over(tmp_path, bundled_posts())
    runs = ("--runs", tmp_path / "second", "--offline")
    for place, said in MISTAKES.items():
        done = command("build", config, *runs, "--responses", place, hub=hub, token=STRANGER)
        assert (done.code, done.errors.count("\n")) == (2, 1)
        assert said in done.errors
    assert not (tmp_path / "second" / "quickstart" / "stages").exists()
