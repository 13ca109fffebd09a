"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pytest
from hypothesis import HealthCheck, settings

from echo_hf.collect.sources.base import SOURCES
from echo_hf.config.collection import PLATFORMS, SITES
from echo_hf.config.rubrics import RUBRICS
from echo_hf.config.sections import STAGES
from echo_hf.curate.privacy import KEY_VARIABLE
from echo_hf.engines.base import ENGINES
from echo_hf.metrics.base import METRICS
from echo_hf.systems.registry import SYSTEMS

# The machine may be busy: how long an example takes says nothing about whether it is right.
_UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("few", _UNHURRIED, max_examples=12, derandomize=True, database=None)
settings.register_profile("many", _UNHURRIED, max_examples=300)
ROOT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--slow", action="store_true", help="run the slow tests too, with many examples a law"
    )
    parser.addoption("--refreeze", action="store_true", help="write frozen files and screens anew")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("many" if config.getoption("--slow") else "few")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--slow"):
        slow = [one for one in items if one.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [one for one in items if not one.get_closest_marker("slow")]


@pytest.fixture(scope="session")
def test_data() -> Path:
    folder = Path(os.environ.get("ECHO_HF_TEST_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / "posts").is_dir():
        pytest.skip(f"no real posts in {str(folder)!r}: set ECHO_HF_TEST_DATA to their folder")
    return folder


@pytest.fixture(scope="session")
def quickstart_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run of the quickstart, which nobody may change."""
    folder = tmp_path_factory.mktemp("quickstart")
    own = {"PYTHONPATH": str(ROOT), KEY_VARIABLE: ""}
    command = [sys.executable, "-m", "echo_hf", "quickstart"]
    subprocess.run(command, cwd=folder, env=os.environ | own, check=True, capture_output=True)
    return folder / "runs" / "quickstart"


@pytest.fixture(scope="session")
def ray_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Ray cluster of a head and two nodes, with a package installed that brings an engine."""
    pytest.importorskip("ray.cluster_utils", reason="needs the extra `ray`")
    from ray.cluster_utils import Cluster

    site = tmp_path_factory.mktemp("site")
    (facts := site / "paced-1.0.dist-info").mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: paced\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[echo_hf.engines]\npaced = paced:PacedEngine\n")
    shutil.copy(ROOT / "tests" / "paced_plugin.py", site / "paced.py")
    memory = {"object_store_memory": 100 * 2**20}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{site}{os.pathsep}{ROOT}")
        patch.syspath_prepend(site)
        cluster = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 1, "include_dashboard": False, **memory},
        )
        for _ in range(2):
            cluster.add_node(num_cpus=1, **memory)
        yield cluster
        cluster.shutdown()


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    every = (ENGINES, SYSTEMS, SOURCES, PLATFORMS, SITES, METRICS, RUBRICS, STAGES)
    before = [dict(one.entries) for one in every]
    yield
    for one, entries in zip(every, before, strict=True):
        for name in one.entries.keys() - entries.keys() - set(one.built_in):
            del one.entries[name]
        one.entries.update(entries)


@pytest.fixture(autouse=True, scope="session")
def _quiet() -> None:
    datasets.disable_progress_bars()


@pytest.fixture(autouse=True, scope="session")
def _no_author_key() -> None:
    os.environ.pop(KEY_VARIABLE, None)  # what a build gives must not depend on who runs the tests
