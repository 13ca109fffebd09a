"""What importing the package costs, and which names it offers."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import sysconfig
from importlib import import_module
from pathlib import Path

import pytest

import echo_hf
from tests.stages_for_tests import ROOT

HEAVY = ("datasets", "pydantic", "torch", "pyarrow", "numpy", "pandas", "PIL", "transformers")
IMPORT = "import echo_hf"
HELP = "import sys; sys.argv = ['echo-hf', '--help']; from echo_hf.cli import main; main()"
REPORT = "import sys, atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "


def _run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )


@pytest.mark.parametrize("code", [IMPORT, HELP], ids=["import", "help"])
def test_nothing_heavy_is_loaded(code: str) -> None:
    loaded = _run(REPORT + code).stderr.split()
    assert "echo_hf" in loaded
    assert [name for name in HEAVY if name in loaded] == []


@pytest.mark.parametrize("code", [IMPORT, HELP], ids=["import", "help"])
def test_starting_takes_less_than_half_a_second(code: str) -> None:
    taken = []
    for _ in range(5):
        before = os.times()
        _run(code)
        after = os.times()
        taken.append(sum(after[2:4]) - sum(before[2:4]))
    assert statistics.median(taken) < 0.5


def test_the_command_is_installed() -> None:
    command = Path(sysconfig.get_path("scripts")) / "echo-hf"
    shown = [
        subprocess.run(
            [*start, "--help"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        for start in ([str(command)], [sys.executable, "-m", "echo_hf"])
    ]
    assert "Usage: echo-hf" in shown[0]
    assert shown[0].partition("\n")[2].split() == shown[1].partition("\n")[2].split()


def test_the_public_names_are_these() -> None:
    assert echo_hf.__all__ == [
        "CheckResult",
        "Config",
        "EchoError",
        "EngineChoice",
        "Evaluation",
        "ModelStage",
        "Release",
        "Stage",
        "StageResult",
        "Store",
        "__version__",
        "build",
        "check_engine",
        "evaluate_module",
        "evaluate_systems",
        "fill",
        "load_benchmark",
        "load_config",
        "load_manifest",
        "metrics",
        "publish",
        "run_stage",
        "scores",
    ]


@pytest.mark.parametrize("name", echo_hf.__all__)
def test_every_public_name_loads(name: str) -> None:
    for home in set(echo_hf._HOME.values()):
        import_module(home)
    value = getattr(echo_hf, name)
    if name == "__version__":
        assert value.split(".")[0].isdigit()
    elif name in echo_hf._PARTS:
        assert value.__name__ == f"echo_hf.{name}"
    else:
        assert value.__name__ == name
        assert value.__module__.startswith("echo_hf.")


def test_public_names_are_listed_and_others_are_not_there() -> None:
    assert set(echo_hf.__all__) <= set(dir(echo_hf))
    names: dict[str, object] = {}
    exec("from echo_hf import *", names)  # noqa: S102 - the statement is the test
    assert set(echo_hf.__all__) <= set(names)
    with pytest.raises(AttributeError, match="module 'echo_hf' has no attribute 'biuld'"):
        _ = echo_hf.biuld


def test_the_package_is_typed() -> None:
    assert (Path(echo_hf.__file__).parent / "py.typed").exists()
