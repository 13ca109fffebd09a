"""Every block of README, tutorials and the guide to `eval` runs as it stands, from the wheel."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.package.blocks import Environment, blocks, run_page
from tests.stages_for_tests import ROOT

README = ROOT / "README.md"
PAGES = [*sorted(ROOT.glob("docs/tutorials/*.md")), ROOT / "docs/how-to/evaluate.md"]
EXTRAS = re.compile(r"(?:echo-hf|\.)\[([\w,-]+)\]")


@pytest.mark.package
def test_the_readme_runs(installed: Environment, tmp_path: Path) -> None:
    """In an empty folder, where its first block is the quickstart."""
    assert run_page(README.read_text("utf-8"), installed, tmp_path) > 0


@pytest.mark.package
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_runs(path: Path, installed: Environment, tmp_path: Path) -> None:
    """In a folder of its own, where the quickstart ran before."""
    installed.quickstart(tmp_path)
    assert run_page(path.read_text("utf-8"), installed, tmp_path) > 0


@pytest.mark.parametrize("path", [README, *PAGES], ids=lambda path: path.stem)
def test_what_is_installed_exists(path: Path) -> None:
    """A block that is not run installs, with extras that the project has."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    known = set(project["optional-dependencies"])
    for block in blocks(path.read_text("utf-8")):
        named = {extra for found in EXTRAS.findall(block.text) for extra in found.split(",")}
        assert named <= known
        assert block.skipped is None or "pip install" in block.text
