"""What says how to cite, and how a version is published, is true."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from echo_hf.hub.card import PAPER
from tests.stages_for_tests import ROOT

WORKFLOWS = ROOT / ".github" / "workflows"


def read(path: Path) -> Any:
    """A file of YAML, every value of it a text."""
    return yaml.load(path.read_text("utf-8"), Loader=yaml.BaseLoader)  # noqa: S506 - makes texts only


def test_the_citation_names_this_version_and_the_paper() -> None:
    """With the license and place of the project, and the paper as a release's card cites it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    cited = read(ROOT / "CITATION.cff")
    (paper,) = cited["references"]

    assert cited["version"] == version("echo-hf") == project["version"]
    assert cited["license"] == project["license"]
    assert cited["repository-code"] == project["urls"]["Source"]
    names = [f"{one['family-names']}, {one['given-names']}" for one in paper["authors"]]
    authors = re.search(r"author += \{(.*?)\},\n", PAPER, re.S)
    assert authors
    assert names == re.split(r" and\s+", " ".join(authors[1].split()))
    assert all(str(paper[key]) in PAPER for key in ("title", "year", "url", "collection-title"))


@pytest.mark.parametrize(
    ("name", "pushed", "command", "environment", "allowed"),
    [
        ("release", {"tags": ["v*"]}, "make test-package", "pypi", {"id-token"}),
        ("docs", {"branches": ["main"]}, "make docs", "github-pages", {"id-token", "pages"}),
    ],
)
def test_what_is_published_is_checked_and_needs_no_secret(
    name: str, pushed: dict[str, Any], command: str, environment: str, allowed: set[str]
) -> None:
    """Only the job that publishes gets a token, which it exchanges; it runs none of our code."""
    workflow = read(WORKFLOWS / f"{name}.yml")
    build, publish = workflow["jobs"]["build"], workflow["jobs"]["publish"]

    assert workflow["on"] == {"push": pushed}
    assert workflow["permissions"] == {}
    assert build["permissions"] == {"contents": "read"}
    assert command in [step.get("run") for step in build["steps"]]
    assert publish["needs"] == "build"
    assert publish["permissions"] == dict.fromkeys(allowed, "write")
    assert publish["environment"]["name"] == environment
    assert all("run" not in step for step in publish["steps"])
    assert "secrets." not in (WORKFLOWS / f"{name}.yml").read_text("utf-8")


def test_workflows_name_versions_of_actions() -> None:
    """And the checks are those that anybody can run."""
    steps = [
        step
        for path in WORKFLOWS.glob("*.yml")
        for job in read(path)["jobs"].values()
        for step in job["steps"]
    ]
    used = [step["uses"] for step in steps if "uses" in step]
    assert used
    assert all(re.search(r"@(v\d+|release/v\d+|[0-9a-f]{40})$", one) for one in used)
    assert ".ci/run" in [
        step.get("run") for step in read(WORKFLOWS / "ci.yml")["jobs"]["run"]["steps"]
    ]
