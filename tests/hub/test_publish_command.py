"""`echo-hf publish`, as a user meets it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from datasets import Dataset

from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.release import Release, write_release
from echo_hf.images.store import ImageStore
from tests.local_hub import READER, WRITER, LocalHub

HERE = ("--repo-id", "mira/echo", "--tag", "v1")


def echo_hf(
    hub: LocalHub, home: Path, *arguments: str | Path, token: str | None = WRITER
) -> subprocess.CompletedProcess[str]:
    """Runs the command line with this Hub alone."""
    return subprocess.run(
        [sys.executable, "-m", "echo_hf", "publish", *map(str, arguments)],
        env=hub.environment(home, token, HF_HUB_DISABLE_PROGRESS_BARS="1"),
        capture_output=True,
        text=True,
        check=False,
    )


def test_publish_says_what_it_does_and_where_it_is(
    hub: LocalHub, release: Release, tmp_path: Path
) -> None:
    """A line for each step and the address at last; the second time only that nothing changed."""
    done = echo_hf(hub, tmp_path, release.path, *HERE)
    assert (done.returncode, done.stderr) == (0, "")
    head = hub.repositories["mira/echo"].head
    assert done.stdout.splitlines()[-2:] == [
        f"tagging {head[:10]} as v1",
        f"published: {hub.url}/datasets/mira/echo/tree/v1",
    ]
    again = echo_hf(hub, tmp_path, release.path, *HERE)
    assert again.returncode == 0
    assert again.stdout.splitlines()[-1] == (
        f"nothing changed: {hub.url}/datasets/mira/echo/tree/v1 is this release"
    )


def test_a_pull_request_says_how_the_tag_comes(
    hub: LocalHub, release: Release, tmp_path: Path
) -> None:
    """There is no tag yet, and the message says when there will be."""
    done = echo_hf(hub, tmp_path, release.path, *HERE, "--create-pr", "--private")
    assert done.stdout.splitlines()[-1] == (
        f"proposed: {hub.url}/datasets/mira/echo/discussions/1, without a tag: the same command "
        "without --create-pr makes the tag once it is merged"
    )
    assert hub.repositories["mira/echo"].private
    assert hub.repositories["mira/echo"].tags == {}


@pytest.mark.parametrize(
    ("token", "said"),
    [(None, "there is no token: run `hf auth login`"), (READER, "may only read")],
)
def test_a_missing_or_read_only_token_is_one_line(
    hub: LocalHub, release: Release, tmp_path: Path, token: str | None, said: str
) -> None:
    """huggingface_hub's own token is meant: from the environment, or from `hf auth login`."""
    done = echo_hf(hub, tmp_path, release.path, *HERE, token=token)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr

    (tmp_path / "token").write_text(WRITER)
    if token is None:
        assert echo_hf(hub, tmp_path, release.path, *HERE, token=None).returncode == 0


def test_what_rules_built_needs_an_option(
    hub: LocalHub,
    tmp_path: Path,
    configs: Mapping[str, Dataset],
    images: ImageStore,
    facts: ReleaseFacts,
) -> None:
    """It is refused before the Hub is asked, and published when it is allowed."""
    folder = tmp_path / "plain"
    write_release(folder, configs, images, replace(facts, rules_built=True))
    done = echo_hf(hub, tmp_path, folder, *HERE)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--allow-rules" in done.stderr
    assert hub.asked == []
    assert echo_hf(hub, tmp_path, folder, *HERE, "--allow-rules").returncode == 0


@pytest.mark.parametrize(
    ("folder", "repo_id", "said"),
    [("none", "mira/echo", "no release in"), ("release", "echo", "expected one like")],
)
def test_a_wrong_name_is_one_line(
    hub: LocalHub, release: Release, tmp_path: Path, folder: str, repo_id: str, said: str
) -> None:
    """A folder without a release, and a repository without an owner."""
    done = echo_hf(hub, tmp_path, tmp_path / folder, "--repo-id", repo_id, "--tag", "v1")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert said in done.stderr
    assert hub.asked == []
