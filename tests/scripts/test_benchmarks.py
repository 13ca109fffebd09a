"""Each benchmark runs at a small size and shows its table."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.stages_for_tests import ROOT

SMALL = {
    "bench_color_shift": ("--samples 2 --side 64 --rounds 1", "WEBP"),
    "bench_consensus": ("--systems 4 --samples 5 --people 2", "consensus on every sample"),
    "bench_crawl": ("--posts 100", "share of the bare rate"),
    "bench_engines": ("--only openai --requests 8 --rounds 1", "openai, 0.25 s an answer"),
    "bench_metrics": ("--systems 3 --samples 20 --judges 2", "win_rate of a table"),
    "bench_pipeline": ("--sizes 20", "relevance, rules"),
    "bench_release": ("--samples 10 --kilobytes 5 --rounds 1", "write_release"),
    "bench_report": ("--samples 5 --systems 2 --side 64", "share of the rate of decoding"),
}


def table_of(name: str, options: str) -> str:
    command = [sys.executable, str(ROOT / "scripts" / f"{name}.py"), *options.split()]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", SMALL)
def test_it_shows_its_table(name: str) -> None:
    options, row = SMALL[name]
    assert row in table_of(name, options)


@pytest.mark.extras
@pytest.mark.slow
def test_that_of_structure_distance_shows_its_table() -> None:
    pytest.importorskip("torch")
    options = "--samples 2 --systems 2 --side 64 --rounds 1"
    assert "model" in table_of("bench_structure", options)


def test_none_is_forgotten() -> None:
    there = {path.stem for path in (ROOT / "scripts").glob("bench_*.py")}
    assert there == {*SMALL, "bench_structure"}
