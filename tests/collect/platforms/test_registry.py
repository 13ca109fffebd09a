"""Platforms by name: ours, those of other packages, and none that is imported unasked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from echo_hf.collect.platforms.base import make_platform
from echo_hf.collect.urls import PLATFORMS as BY_HOST
from echo_hf.config.collection import HOMES, PLATFORMS
from echo_hf.errors import ConfigError
from tests.collect.platforms.simulated import NAME, Simulated, registered


def test_an_unknown_platform_gets_the_nearest_name() -> None:
    """In one line, with its place where one is given."""
    with pytest.raises(ConfigError, match=r"unknown platform 'mastodn'; did you mean 'mastodon'"):
        make_platform("mastodn")
    with pytest.raises(ConfigError, match=r"^c.yaml: posts.0.source: unknown platform 'y'"):
        PLATFORMS.check("y", "c.yaml: posts.0.source")


def test_a_config_knows_the_names_of_platforms() -> None:
    """Of all that addresses name."""
    assert set(HOMES) == {*BY_HOST.values(), "x", "mastodon", "web"}


def test_another_package_brings_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By an entry point, and only while it is installed."""
    assert NAME not in PLATFORMS.names()
    monkeypatch.syspath_prepend(registered(tmp_path))

    assert NAME in PLATFORMS.names()
    assert isinstance(make_platform(NAME), Simulated)


def test_a_config_imports_no_client_library() -> None:
    """Naming a platform costs nothing; only asking it does."""
    code = (
        "import sys; from echo_hf.config.loading import load_config;"
        "load_config('eval_configs/nano_banana_2_1_release.yaml');"
        "print({'tweepy', 'atproto', 'mastodon', 'datasets'} & set(sys.modules))"
    )
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"
