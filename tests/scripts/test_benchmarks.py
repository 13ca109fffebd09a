"""Each benchmark runs at a small size and shows its table."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.scripts.conftest import SCRIPTS, Script

SMALL = {
    "bench_crawl": ("--posts 100", "share of the bare rate"),
    "bench_engines": ("--requests 8 --rounds 1", "openai, 0.25 s an answer"),
    "bench_images": ("color --samples 2 --side 64 --rounds 1", "WEBP"),
    "bench_metrics": ("--systems 4 --samples 20 --judges 2 --ranked 12", "on every sample"),
    "bench_release": ("--samples 10 --kilobytes 5 --rounds 1", "write_release"),
    "bench_report": ("--samples 5 --systems 2 --side 64", "share of the rate of decoding"),
    "bench_scale": ("--sizes 20 --engine instant", "the same again"),
}
FORKING = {"bench_release", "bench_scale"}  # which needs a process without other threads
IN_CORE = {"bench_images", "bench_metrics"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=[] if one in IN_CORE else pytest.mark.slow) for one in sorted(SMALL)],
)
def test_it_shows_its_table(name: str, script: Script) -> None:
    options, row = SMALL[name]
    if name in FORKING:
        command = [sys.executable, str(SCRIPTS / f"{name}.py"), *options.split()]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    else:
        shown = script(f"{name}.py", *options.split())[1]
    assert row in shown


@pytest.mark.extras
@pytest.mark.slow
def test_structure_is_shown_beside_its_model(script: Script) -> None:
    pytest.importorskip("torch", reason="needs the extra `metrics`")
    options = "structure --samples 2 --systems 2 --side 64 --rounds 1"
    assert "cached inputs" in script("bench_images.py", *options.split())[1]


@pytest.mark.extras
@pytest.mark.slow
@pytest.mark.xdist_group("ray")
def test_many_workers_of_ray_are_shown_beside_one() -> None:
    pytest.importorskip("ray", reason="needs the extra `ray`")
    command = [sys.executable, str(SCRIPTS / "bench_scale.py"), "--ray"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    one, many = (line.split("│") for line in shown.splitlines() if line.startswith("│"))
    assert (one[1].strip(), one[4].strip(), many[1].strip()) == ("1", "1.00", "8")
    assert float(many[4]) > 1


def test_none_is_forgotten() -> None:
    assert {path.stem for path in SCRIPTS.glob("bench_*.py")} == set(SMALL)
