"""What importing the package costs, which names it offers, and how its rooms import each other."""

from __future__ import annotations

import ast
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import entry_points, packages_distributions
from pathlib import Path

import pytest

import echo_hf
from tests.stages_for_tests import ROOT

# What the command line stands on, and what that stands on in turn.
LIGHT = {"typer", "click", "annotated_doc", "shellingham", "typing_extensions", "yaml", "_yaml"}
LIGHT |= {"rich", "pygments", "markdown_it", "mdurl"}
LIGHT |= {"attr"}  # older versions of rich look whether it is there
IMPORT = "import echo_hf"
HELP = "import sys; sys.argv = ['echo-hf', '--help']; from echo_hf.cli import main; main()"
REPORT = "import sys, atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "


def _packages_after(code: str) -> set[str]:
    command = [sys.executable, "-c", REPORT + code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stderr.split()}


@pytest.mark.parametrize(
    ("code", "light"), [(IMPORT, set()), (HELP, LIGHT)], ids=["import", "help"]
)
def test_it_starts_without_anything_heavy(code: str, light: set[str]) -> None:
    """Told by what is imported: seconds tell as much of what else a machine does."""
    started = _packages_after(code) - _packages_after("")
    assert "echo_hf" in started
    assert started & packages_distributions().keys() <= light | {"echo_hf"}


def test_the_command_is_installed() -> None:
    """`hf echo` runs it as well, once installed as an extension."""
    command = Path(sysconfig.get_path("scripts")) / "echo-hf"
    named = entry_points(group="console_scripts", value="echo_hf.cli:main")
    assert named.names >= {"echo-hf", "hf-echo"}
    shown = [
        subprocess.run(
            [*start, "--help"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        for start in ([str(command)], [sys.executable, "-m", "echo_hf"])
    ]
    assert "Usage: echo-hf" in shown[0]
    assert shown[0].partition("\n")[2].split() == shown[1].partition("\n")[2].split()


def test_every_public_name_loads_and_other_names_are_not_there() -> None:
    """What is offered is frozen in `tests/frozen`."""
    names: dict[str, object] = {}
    exec("from echo_hf import *", names)  # noqa: S102 - the statement is the test
    assert set(echo_hf.__all__) <= set(names) & set(dir(echo_hf))
    with pytest.raises(AttributeError, match="module 'echo_hf' has no attribute 'biuld'"):
        _ = echo_hf.biuld
    assert (PACKAGE / "py.typed").exists()


PACKAGE = Path(echo_hf.__file__).parent
# From the foundation up; rooms of one line may import each other.
FLOORS = (
    ("tables", "errors", "reasons"),
    ("_infra",),
    ("config",),
    ("images", "prompts", "engines"),
    ("pipeline",),
    ("collect", "samples", "curate"),
    ("scores", "metrics"),
    ("hub",),
    ("systems",),
    ("judging",),
    ("report",),
    ("submissions",),
    ("builder",),  # so that nobody needs it who evaluates
    ("apps", "quickstart"),
    ("schedule",),
    ("cli",),
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def _run_at_import(body: list[ast.stmt]) -> Iterator[ast.AST]:
    for node in body:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.If):
            yield from _run_at_import(getattr(node, "body", []))


def _imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("echo_hf"):
            for name in node.names:
                part = f"{node.module}.{name.name}"
                place = PACKAGE.parent.joinpath(*part.split("."))
                is_module = place.is_dir() or place.with_suffix(".py").exists()
                yield part if is_module else str(node.module)


@cache
def _modules() -> dict[str, ast.Module]:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        place = path.parent if path.stem == "__init__" else path.with_suffix("")
        name = ".".join(place.relative_to(PACKAGE.parent).parts)
        found[name] = ast.parse(path.read_text("utf-8"))
    return found


def test_no_import_runs_upward() -> None:
    rooms = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert {room for room in rooms if not room.startswith("__")} == set(FLOOR)
    used = {
        (module.split(".")[1], one.split(".")[1])
        for module, tree in _modules().items()
        for one in _imported(ast.walk(tree))
        if "." in module and "." in one
    }
    assert len(used) > 50
    assert {
        (one, other) for one, other in used if FLOOR.get(one, 99) < FLOOR.get(other, 0)
    } == set()


def test_no_module_is_imported_in_a_circle() -> None:
    needs = {name: set(_imported(_run_at_import(tree.body))) for name, tree in _modules().items()}
    assert set(TopologicalSorter(needs).static_order()) == set(needs)
