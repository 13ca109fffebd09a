"""`echo-hf build --offline --responses`, as somebody meets it who has posts and no model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from echo_hf.builder.build import build
from echo_hf.hub.publish import publish
from tests.local_hub import STRANGER, LocalHub
from tests.recorded_as_model import RecordedAsModel, bundled_posts, config_over, tables

REPO = "mira/echo"


@pytest.fixture
def config(tmp_path: Path, hub: LocalHub) -> Path:
    """A config whose release is on the Hub with its answers as `v1`, and without them as `v2`."""
    RecordedAsModel().use()
    config = config_over(tmp_path, bundled_posts())
    for tag, carries in (("v1", True), ("v2", False)):
        release = build(config, runs=tmp_path / tag, with_responses=carries)
        publish(release, REPO, tag, api=hub.api())
    return config


def echo_hf(
    hub: LocalHub, config: Path, place: str, *more: str
) -> subprocess.CompletedProcess[str]:
    """Runs the command line where nobody knows the engine that the config names."""
    runs = config.parent / "second"
    command = ["build", str(config), "--runs", str(runs), "--offline", "--responses", place, *more]
    environment = hub.environment(config.parent / "home", STRANGER)
    return subprocess.run(
        [sys.executable, "-m", "echo_hf", *command],
        env={**environment, "HF_HUB_DISABLE_PROGRESS_BARS": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_published_tag_is_built_again(hub: LocalHub, config: Path) -> None:
    """Every table is equal; only the answers are downloaded, and later no Hub is needed."""
    done = echo_hf(hub, config, f"{REPO}@v1", "--with-responses")
    assert (done.returncode, done.stderr) == (0, "")
    assert "note: " not in done.stdout
    first, second = config.parent / "v1" / "quickstart", config.parent / "second" / "quickstart"
    assert tables(second) == tables(first)
    downloaded = {path.parent.name for path in (config.parent / "home").rglob("*.parquet")}
    assert downloaded == {"responses"}
    hub.close()
    again = echo_hf(hub, config, f"{REPO}@v1", "--with-responses")
    assert again.returncode == 0, again.stderr


MISTAKES = {
    f"{REPO}@v2": "carries no responses, only 'analysis', 'image_to_image', 'text_to_image'",
    f"{REPO}@v3": "cannot load 'mira/echo' at revision 'v3': the dataset has no such revision",
    "mira/other@v1": "there is no such dataset",
    "mira/echo": "expected the folder of a release, or a name with a tag",
    "mira/e c h o@v1": "'mira/e c h o' is neither a folder nor the name of a dataset",
}


def test_a_mistake_is_one_line(hub: LocalHub, config: Path) -> None:
    """With exit code 2, and before anything is built."""
    for place, said in MISTAKES.items():
        done = echo_hf(hub, config, place)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert said in done.stderr
    assert not (config.parent / "second" / "quickstart" / "stages").exists()
