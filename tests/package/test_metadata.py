"""What says how to cite and publish is true; blocks of pages are found and run."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from echo_hf.hub.card import PAPER_BIBTEX
from tests.package.blocks import Environment, blocks, run_page
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
    authors = re.search(r"author += \{(.*?)\},\n", PAPER_BIBTEX, re.S)
    assert authors
    assert names == re.split(r" and\s+", " ".join(authors[1].split()))
    assert all(
        str(paper[key]) in PAPER_BIBTEX for key in ("title", "year", "url", "collection-title")
    )


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


def commands(job: dict[str, Any]) -> list[str]:
    """What a job runs, one command for each cell of its matrix."""
    matrix = job.get("strategy", {}).get("matrix", {})
    lines = [step["run"] for step in job["steps"] if "run" in step]
    targets = matrix.get("target") or [cell["target"] for cell in matrix.get("include", ())]
    return [
        command.replace("${{ matrix.target }}", target)
        for command in lines
        for target in targets or [""]
    ]


def test_workflows_name_versions_of_actions() -> None:
    workflows = [read(path) for path in WORKFLOWS.glob("*.yml")]
    jobs = [job for workflow in workflows for job in workflow["jobs"].values()]
    used = [step["uses"] for job in jobs for step in job["steps"] if "uses" in step]
    assert used
    assert all(re.search(r"@(v\d+|release/v\d+|[0-9a-f]{40})$", action) for action in used)


def test_every_check_is_a_job_on_every_python_that_the_package_names() -> None:
    """What `.ci/run` runs one after the other, CI runs side by side, and the site as well."""
    jobs = read(WORKFLOWS / "ci.yml")["jobs"]
    checks = {
        re.split(r" [A-Z]+=", line)[0].strip()
        for line in (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
        if line.strip().startswith("make ")
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))

    run = {command for job in jobs.values() for command in commands(job)}
    assert {command for command in run if command.startswith("make ")} == checks | {"make docs"}
    assert commands(jobs["core"]) == ["make test"]
    assert jobs["core"]["strategy"]["matrix"]["python"] == named
    assert project["requires-python"] == f">={named[0]}"


def test_both_ends_of_the_ranges_are_tried_every_week_and_an_issue_tells() -> None:
    """What installs new releases gets no token that writes; what writes runs none of our code."""
    workflow = read(WORKFLOWS / "weekly.yml")
    jobs = workflow["jobs"]

    assert workflow["permissions"] == {}
    assert workflow["on"]["schedule"][0]["cron"].split()[2:] == ["*", "*", "1"]
    assert {*commands(jobs["ranges"])} == {"make test-latest", "make test-lowest"}
    report = jobs["report"]
    assert (report["needs"], report["if"]) == (["ranges", "locks", "audit"], "failure()")
    assert any("gh issue create" in command for command in commands(jobs["report"]))
    assert commands(jobs["locks"]) == ["make lock UPGRADE=1", "make test"]
    for job in jobs.values():
        if "write" in job["permissions"].values():
            assert not any(re.search(r"\b(make|pip|python)\b", line) for line in commands(job))
        else:
            assert job["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("name", ["core", "docs", "extras", "vllm"])
def test_a_lock_pins_what_its_environment_asks_for(name: str) -> None:
    """On every supported Python, with versions that `pyproject.toml` allows."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    source = (ROOT / "locks" / f"{name}.in").read_text("utf-8").splitlines()
    lines = [line for line in source if line and not line.startswith("#")]
    extras = re.fullmatch(r"--editable \.\[(.+)\]", lines[0])
    assert extras
    asked = [*project["dependencies"], *lines[1:]]
    for extra in extras[1].split(","):
        asked += project["optional-dependencies"][extra]
    text = (ROOT / "locks" / f"{name}.txt").read_text("utf-8")
    pins = [Requirement(line) for line in text.splitlines() if line and line[0] != "#"]

    for python in ("3.11", "3.12", "3.13"):
        here = {"python_version": python, "python_full_version": f"{python}.9"}
        held = {
            canonicalize_name(pin.name): str(pin.specifier).removeprefix("==")
            for pin in pins
            if pin.marker is None or pin.marker.evaluate(here)
        }
        for requirement in map(Requirement, asked):
            version_held = held[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(version_held, prereleases=True), requirement


PAGE = """# A page

<!-- not run: installs -->
```sh
exit 3
```

```sh
echo 1 > made.txt
cat made.txt
```

What it prints:

```
exit 4
```

1. In a list:

   ```python
   from pathlib import Path

   if True:
       Path("made.txt").write_text(Path("made.txt").read_text() + "2")
   ```

````markdown
```sh
exit 5
```
````

```bash
test "$(tr -d '\\n' < made.txt)" = 12
echo 3 >> made.txt
```

```yaml
exit: 6
```
"""


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """The one that runs the tests, with a home of its own."""
    return Environment(Path(sys.executable).parent, tmp_path / "home")


def test_blocks_in_languages_that_run_are_found(environment: Environment, tmp_path: Path) -> None:
    """And run in order, each in a process of its own; a block inside another one is text."""
    assert [one.text for one in blocks(PAGE, "yaml", "text")] == ["exit: 6"]
    found = [(one.language, one.skipped) for one in blocks(PAGE)]
    assert found == [("sh", "installs"), ("sh", None), ("python", None), ("bash", None)]
    begun = [PAGE.splitlines()[one.line - 1].strip() for one in blocks(PAGE)]
    assert begun == [f"```{language}" for language, _ in found]
    assert run_page(PAGE, environment, tmp_path) == 3
    assert (tmp_path / "made.txt").read_text() == "1\n23\n"


@pytest.mark.parametrize(
    "block",
    ["```sh\nfalse | true\n```", "```python\nkept\n```", "<!-- not run: why -->\n```sh\ntrue\n```"],
    ids=["a pipe", "a name of another block", "no reason"],
)
def test_a_block_that_fails_fails(block: str, environment: Environment, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"line (5|6)"):
        run_page(f"```python\nkept = 1\n```\n\n{block}\n", environment, tmp_path)


def test_the_checkout_is_not_on_the_path(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is anything else of who runs the tests, such as keys."""
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    told = environment.run(["env"], tmp_path)
    names = {line.partition("=")[0] for line in told.stdout.splitlines()}
    assert names <= {"PATH", "HOME", "LANG", "TMPDIR", "HF_HUB_OFFLINE", "PWD", "SHLVL", "_"}
