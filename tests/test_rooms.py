"""No import between the rooms of the package runs upward, and none at import in a circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import echo_hf

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
    ("builder",),
    ("systems",),
    ("judging",),
    ("apps", "report", "quickstart"),
    ("cli",),
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}


def _imports(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "echo_hf":
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("echo_hf."):
            yield node.module.split(".")[1]


def _upward() -> set[tuple[str, str]]:
    found = set()
    for module in PACKAGE.rglob("*.py"):
        room = module.relative_to(PACKAGE).with_suffix("").parts[0]
        if room in FLOOR:
            used = {name for name in _imports(module) if name in FLOOR}
            found |= {(room, one) for one in used if FLOOR[one] > FLOOR[room]}
    return found


def test_every_room_has_its_floor() -> None:
    rooms = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    ours = {room for room in rooms if not room.startswith("__")}
    assert ours == set(FLOOR)


def test_no_import_runs_upward() -> None:
    assert _upward() == set()


def _at_import(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("echo_hf"):
            for name in node.names:
                part = f"{node.module}.{name.name}"
                yield part if _place(part).exists() else str(node.module)
        elif not isinstance(node, ast.FunctionDef | ast.If):
            yield from _at_import(getattr(node, "body", []))


def _place(module: str) -> Path:
    path = PACKAGE.parent.joinpath(*module.split("."))
    return path if path.is_dir() else path.with_suffix(".py")


def test_no_module_is_imported_in_a_circle() -> None:
    needs = {}
    for path in PACKAGE.rglob("*.py"):
        place = path.parent if path.stem == "__init__" else path.with_suffix("")
        name = ".".join(place.relative_to(PACKAGE.parent).parts)
        needs[name] = set(_at_import(ast.parse(path.read_text("utf-8")).body))
    assert set(TopologicalSorter(needs).static_order()) == set(needs)
