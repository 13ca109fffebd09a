"""What contributors read, install and fill in names what is there."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.package.test_metadata import read
from tests.stages_for_tests import ROOT
from tests.test_imports import FLOORS

GITHUB = ROOT / ".github"
AGENTS = (ROOT / "AGENTS.md").read_text("utf-8")
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
# All but the history of changes.
PAGES = sorted({*ROOT.glob("*.md"), *GITHUB.glob("*.md")} - {ROOT / "CHANGELOG.md"})
LINKS = GITHUB / "ISSUE_TEMPLATE" / "config.yml"
FORMS = sorted({*LINKS.parent.glob("*.yml")} - {LINKS})
HOOKS = read(ROOT / ".pre-commit-config.yaml")
# The elements of a form, and what GitHub wants each to have.
ELEMENTS = {
    "checkboxes": {"label", "options"},
    "dropdown": {"label", "options"},
    "input": {"label"},
    "markdown": {"value"},
    "textarea": {"label"},
    "upload": {"label"},
}


def test_hooks_run_the_locked_tools_on_files_that_are_there() -> None:
    """Those of the environment of `make lint`; hooks of others are pinned by a tag."""
    virtual_environment = re.findall(r"^VENV := (\S+)$", MAKEFILE, re.M)
    local = [hook for repo in HOOKS["repos"] if repo["repo"] == "local" for hook in repo["hooks"]]
    assert local
    for hook in local:
        command, *arguments = shlex.split(hook["entry"])
        assert [str(Path(command).parents[1])] == virtual_environment
        assert Path(sys.executable).with_name(Path(command).name).exists(), command
        assert [word for word in arguments if "/" in word and not (ROOT / word).exists()] == []
    tags = [repo["rev"] for repo in HOOKS["repos"] if repo["repo"] != "local"]
    assert all(re.fullmatch(r"v[\d.]+", tag) for tag in tags)


def test_hooks_leave_data_and_golden_files_alone_and_see_all_code() -> None:
    files = [
        path
        for folder in ("echo_hf", "tests", "scripts", "docs")
        for path in (ROOT / folder).rglob("*")
    ]
    assert {
        path.relative_to(ROOT).parts[:2]
        for path in files
        if path.is_file() and re.search(HOOKS["exclude"], path.relative_to(ROOT).as_posix())
    } == {("tests", "data"), ("tests", "frozen"), ("tests", "golden")}


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_is_one_that_github_takes(path: Path) -> None:
    """It has a name, a description, and elements that each have what their kind needs."""
    form = read(path)
    assert form["name"].strip()
    assert form["description"].strip()
    for element in form["body"]:
        assert element["attributes"].keys() >= ELEMENTS[element["type"]]
    asked = [element for element in form["body"] if element["type"] != "markdown"]
    assert asked
    for names in (
        [element["id"] for element in asked],
        [element["attributes"]["label"] for element in asked],
    ):
        assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[\w-]+", element["id"]) for element in asked)


def test_a_vulnerability_is_not_reported_in_an_issue() -> None:
    """The list of forms leads to the private one that `SECURITY.md` names."""
    links = read(LINKS)["contact_links"]
    assert all(link.keys() == {"name", "url", "about"} for link in links)
    private = re.findall(r"\((https://\S+/advisories/new)\)", (ROOT / "SECURITY.md").read_text())
    assert {link["url"] for link in links} >= set(private) != set()


def test_updates_are_looked_for_where_something_is_pinned() -> None:
    updates = read(GITHUB / "dependabot.yml")["updates"]
    assert {update["package-ecosystem"] for update in updates} >= {"github-actions", "pre-commit"}
    for update in updates:
        assert (ROOT / update["directory"].lstrip("/")).is_dir()
        assert update["schedule"]["interval"] in {"daily", "weekly", "monthly"}


def test_the_rooms_are_told_from_low_to_high() -> None:
    """A line for each floor of `tests/test_imports.py`, which proves their order."""
    lines = re.findall(r"^\d+\. ((?:`\w+`(?:, )?)+): \w", AGENTS, re.M)
    assert [set(re.findall(r"\w+", line)) for line in lines] == [set(rooms) for rooms in FLOORS]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_paths_and_links_lead_somewhere(page: Path) -> None:
    text = page.read_text("utf-8")
    code = re.findall(r"`([^`\n]+)`", text)
    targets = {
        word for command in code if command.startswith("make ") for word in command.split()[1:]
    }
    assert {target for target in targets if "=" not in target} <= {
        *re.findall(r"^([\w-]+):", MAKEFILE, re.M)
    }
    paths = {word for text in code for word in text.split() if (ROOT / word.split("/")[0]).is_dir()}
    assert [path for path in paths if "/" in path and not any(ROOT.glob(path))] == []
    for target, _, anchor in re.findall(r"\]\(([\w./-]*)(#([\w-]+))?\)", text):
        destination = page.parent / target if target else page
        assert destination.exists(), target
        assert not anchor or anchor in anchors(destination.read_text("utf-8")), anchor


def anchors(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_actions_are_pinned_by_commit_with_their_version_beside() -> None:
    """A tag can be moved to other code; what publishes the package is no exception."""
    texts = [file.read_text("utf-8") for file in (GITHUB / "workflows").glob("*.yml")]
    texts += [page.read_text("utf-8") for page in (ROOT / "docs").rglob("*.md")]
    used = [line for text in texts for line in re.findall(r"\buses: (.+)", text)]
    assert any("publish" in line for line in used)
    assert [
        line for line in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", line)
    ] == []


def test_the_locks_are_held_against_known_vulnerabilities_each_week() -> None:
    weekly = read(GITHUB / "workflows" / "weekly.yml")
    steps = [step.get("run") for step in weekly["jobs"]["audit"]["steps"]]
    assert "make audit" in steps
    assert "audit" in weekly["jobs"]["report"]["needs"]
    (loop,) = re.findall(r"for environment in ([\w ]+); do \\\n\t\t\.venv-audit", MAKEFILE)
    locked = {file.stem for file in (ROOT / "locks").glob("*.in")}
    assert set(loop.split()) == locked


def test_who_names_the_package_says_what_to_do_until_it_is_on_an_index() -> None:
    """Anybody may take a name that an index does not have yet."""
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "echo_hf").rglob("*.md"), ROOT / "README.md"]
    for page in pages:
        text = page.read_text("utf-8")
        if re.search(r"pip install \"?echo-hf", text):
            assert re.search(r"until it is on|Until echo-hf is on", text), page
