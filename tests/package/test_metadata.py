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

from echo_hf.hub.card import PAPER
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
