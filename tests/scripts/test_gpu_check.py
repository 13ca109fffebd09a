"""One command measures a machine: here the processor, with tiny models."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from echo_hf.engines.memory import find_shape
from tests.scripts.conftest import SCRIPTS

NVIDIA = """\
#!/bin/sh
case "$*" in
    *compute-apps*) cat {folder}/processes ;;
    *memory.used*) cat {folder}/used ;;
    *memory.total,memory.reserved*) echo 81559, 500 ;;
    *) echo "Lumen 100, 81559, 580.1" ;;
esac
"""
NEEDS = "needs torch and more: make test-extras"
Rows = dict[tuple[str, str], list[str]]


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> tuple[ModuleType, ModuleType]:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return import_module("gpu_check"), import_module("gpu_parts.models")


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of files with what a stand-in for nvidia-smi says."""
    program = tmp_path / "nvidia-smi"
    program.write_text(NVIDIA.format(folder=tmp_path))
    program.chmod(0o755)
    (tmp_path / "used").write_text("512\n")
    (tmp_path / "processes").write_text("7\n")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return tmp_path


def checked(*options: object) -> tuple[int, str, Rows]:
    """The exit status, what was printed, and the cells of each row."""
    command = [sys.executable, str(SCRIPTS / "gpu_check.py"), *map(str, options)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    lines = [line.strip("|").split(" | ") for line in done.stdout.splitlines()]
    cells = [[cell.strip() for cell in line] for line in lines if len(line) == 5]
    return done.returncode, done.stdout, {(part, named): rest for part, named, *rest in cells}


@pytest.mark.vllm
def test_engines_are_measured_and_a_kill_leaves_nothing_behind(tmp_path: Path) -> None:
    pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")
    out = tmp_path / "table.md"
    parts = ("reader", "guard", "kill")
    status, printed, rows = checked("--parts", *parts, "--minutes", 15, "--out", out)
    assert status == 0, printed
    assert out.read_text("utf-8") == printed
    asked = {
        "reader": ["relevance", "extract", "roles", "screenshots", "feedback"],
        "guard": ["safety"],
        "kill": [],
    }
    asked["reader"].append("a judge's rating")
    for part, stages in asked.items():
        for stage in stages:
            found, beside, ratio = rows[part, stage]
            assert "tokens/s" in found
            assert beside.startswith("LLM.chat: ")
            assert float(ratio) > 0
        ended = "kill -9" if part == "kill" else "the end"
        assert rows[part, f"left behind by {ended}"][0].startswith("0 processes, 0.00 GiB")
        assert float(rows[part, "memory at its peak"][0].split()[0]) > 0.1
    # The tests give vLLM a gigabyte of cache.
    assert rows["reader", "memory for requests"][0] == "1.0 GiB"


@pytest.mark.extras
def test_a_system_and_metrics_are_measured() -> None:
    pytest.importorskip("diffusers", reason=NEEDS)
    status, printed, rows = checked("--parts", "system", "metrics", "--minutes", 10)
    assert status == 0, printed
    for row in (("system", "images of 2 steps"), ("metrics", "structure distance, 64 x 64")):
        found, beside, ratio = rows[row]
        assert found.endswith(" images/s")
        assert " alone: " in beside
        assert float(ratio) > 0


@pytest.mark.models
@pytest.mark.parametrize(("make", "name"), [("reader", "READER"), ("guard", "GUARD")])
def test_models_have_the_published_shape(
    make: str, name: str, modules: tuple[ModuleType, ModuleType], tmp_path: Path
) -> None:
    """Counted from the layers, they have as many weights as the files on the Hub."""
    pytest.importorskip("torchvision", reason=NEEDS, exc_type=ImportError)
    models = modules[1]
    published = find_shape(getattr(models, name))
    made = getattr(models, make)(tmp_path, tiny=False)
    assert published is not None
    assert made.counted.parameters == published.parameters
    assert made.counted.vision_parameters == published.vision_parameters
    assert made.options["engine_args"] == {"load_format": "dummy"}
    written = sum(file.stat().st_size for file in tmp_path.iterdir())
    assert written < 2**25, "no weights"


@pytest.mark.extras
def test_the_pipeline_has_the_published_shape(modules: tuple[ModuleType, ModuleType]) -> None:
    """As many weights a part as black-forest-labs/FLUX.1-Kontext-dev has on the Hub."""
    pytest.importorskip("diffusers", reason=NEEDS)
    parts = modules[1].kontext_parts(1.0)
    counted = {
        name: sum(weights.numel() for weights in part.parameters())
        for name, part in parts.items()
        if hasattr(part, "parameters")
    }
    assert counted == {
        "vae": 83_819_683,
        "text_encoder": 123_060_480,
        "text_encoder_2": 4_762_310_656,
        "transformer": 11_901_408_320,
    }


def test_a_table_that_could_not_be_written_is_refused_first() -> None:
    assert checked("--out", Path(__file__) / "table.md") == (2, "", {})


@pytest.mark.skipif(find_spec("torch") is not None, reason="everything is here")
def test_a_part_without_its_packages_says_what_to_install() -> None:
    status, _, rows = checked("--parts", "reader", "system", "metrics", "--minutes", 10)
    assert status == 1
    for part, extra in (("reader", "vllm"), ("system", "diffusers"), ("metrics", "metrics")):
        assert rows[part, ""][0].startswith("failed: ")
        assert f'pip install "echo-hf\\[{extra}\\]"' in rows[part, ""][0]
        assert rows[part, "left behind by the end"][0].startswith("0 processes, 0.00 GiB")


def test_what_a_part_leaves_is_found_and_ended(
    modules: tuple[ModuleType, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a process in a session of its own, whose parent was killed."""
    check = modules[0]
    monkeypatch.setattr(check, "LONGEST_END_S", 0.0)
    watched = check.Watched()
    assert watched.left() == (0, 0.0)
    start = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; "
    start += "held = bytearray(2 ** 28); time.sleep(600)'], start_new_session=True)"
    marked = os.environ | {check.MARK: watched.mark}
    with watched.peak() as peak:
        subprocess.run([sys.executable, "-c", start], env=marked, check=True)
        while peak() < 0.25:
            pass
    count, held = watched.left()
    assert count == 1
    assert held >= 0.25
    watched.end()
    monkeypatch.undo()
    assert watched.left()[0] == 0


def test_the_driver_says_what_is_held_on_a_gpu(
    modules: tuple[ModuleType, ModuleType], driver: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = modules[0]
    monkeypatch.setattr(check, "LONGEST_END_S", 0.0)
    watched = check.Watched()
    assert watched.left() == (0, 0.0)
    (driver / "used").write_text("2560\n")
    (driver / "processes").write_text("7\n8\n")
    assert watched.left() == (1, 2.0)
    facts = dict(check.machine(tiny=True))
    assert facts["GPU"] == "Lumen 100, 81559, 580.1 (name, MiB, driver)"


def test_a_table_shows_its_cells_as_they_are(modules: tuple[ModuleType, ModuleType]) -> None:
    check = modules[0]
    text = check.shown([("GPU", "none")], [check.Row("reader", "a|b", "failed: <x>", "", 0.984)])
    assert r"| reader | a\|b | failed: \<x\> |  | 0.98 |" in text
