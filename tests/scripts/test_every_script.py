"""Each script runs at its smallest size, and understands the commands that pages show."""

from __future__ import annotations

import argparse
import re

import pytest

from tests.apps.browser import chromium
from tests.docs.commands import Command, commands_of
from tests.scripts.conftest import SCRIPTS, Script
from tests.stages_for_tests import ROOT

# Options, the exit status, and what is printed; in braces stands a fixture.
SMALLEST = {
    "bench_choices": ("{test_data}/ratings --runs 2", 0, "fewer choices"),
    "bench_costs": ("--posts 30 --models gpt-5.4-mini", 0, "30 generated"),
    "bench_crawl": ("--posts 10", 0, "share of the bare rate"),
    "bench_draws": ("--samples 2 --systems 2 --outputs 2", 0, "all of it"),
    "bench_engines": ("--requests 1 --rounds 1", 0, "openai, 0.25 s an answer"),
    "bench_images": ("color --samples 1 --side 16 --rounds 1", 0, "WEBP"),
    "bench_metrics": ("--systems 2 --samples 10 --judges 1 --ranked 10", 0, "on every sample"),
    "bench_release": ("--samples 1 --kilobytes 1 --rounds 1", 0, "write_release"),
    "bench_report": ("--samples 2 --systems 2 --side 16", 0, "share of the rate of decoding"),
    "bench_scale": ("--sizes 20 --engine instant", 0, "the same again"),
    "gpu_check": ("--parts kill --minutes 0", 1, "failed: not begun: --minutes are over"),
    "rate_stand_ins": ("--check", 0, "ratings are current"),
    "readme_figure": ("--check --run {quickstart_run}", 0, ""),
    "write_docs": ("--check", 0, ""),
    "write_requests": ("--folder {tmp_path}", 0, "wrote: relevance.txt"),
}
MAIN = 'if __name__ == "__main__":'
FILES = {path.stem: path.read_text("utf-8") for path in sorted(SCRIPTS.glob("*.py"))}


@pytest.mark.parametrize("name", [name for name, text in FILES.items() if MAIN in text])
def test_a_script_runs(name: str, script_alone: Script, request: pytest.FixtureRequest) -> None:
    assert name in SMALLEST, f"add scripts/{name}.py to SMALLEST, with the options of a short run"
    options, status, shown = SMALLEST[name]
    given = re.sub(r"{(\w+)}", lambda named: str(request.getfixturevalue(named[1])), options)
    ended, printed = script_alone(f"{name}.py", *given.split())
    assert ended == status, printed
    assert shown in printed


@pytest.mark.parametrize("name", [name for name, text in FILES.items() if MAIN not in text])
def test_a_module_is_imported_by_a_script(name: str) -> None:
    assert any(re.search(rf"^from {name} import", text, re.M) for text in FILES.values())


@commands_of("python", "scripts/")
def test_a_command_of_the_pages_is_understood(
    command: Command, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brackets are around what may be left out."""
    read = argparse.ArgumentParser.parse_args

    def read_only(parser: argparse.ArgumentParser) -> None:
        read(parser)
        parser.exit()

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", read_only)
    _, path, *options = (word.strip("[]") for word in command.words)
    assert (ROOT / path).parent == SCRIPTS
    assert script((ROOT / path).name, *options)[0] == 0


@pytest.mark.extras
def test_structure_is_shown_beside_its_model(script: Script) -> None:
    pytest.importorskip("torch", reason="needs the extra `metrics`")
    options = "structure --samples 1 --systems 1 --side 16 --rounds 1"
    assert "cached inputs" in script("bench_images.py", *options.split())[1]


@pytest.mark.extras
@pytest.mark.browser
def test_the_page_of_a_report_is_opened(script: Script) -> None:
    pytest.importorskip("playwright", reason="needs playwright")
    options = "--samples 2 --systems 2 --side 16 --chromium"
    assert "opens in" in script("bench_report.py", *options.split(), str(chromium()))[1]


@pytest.mark.extras
@pytest.mark.xdist_group("ray")
def test_many_workers_of_ray_are_shown_beside_one(script_alone: Script) -> None:
    pytest.importorskip("ray", reason="needs the extra `ray`")
    options = "--ray --workers 1 2 --answers 20"
    printed = script_alone("bench_scale.py", *options.split())[1]
    one, two = (line.split("│") for line in printed.splitlines() if line.startswith("│"))
    assert (one[1].strip(), one[4].strip(), two[1].strip()) == ("1", "1.00", "2")
    # Who is faster at this size depends on what else the machine does.
    assert float(two[4]) > 0
