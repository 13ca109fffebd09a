"""No import between the rooms of the package runs upward."""

from __future__ import annotations

import ast
from collections.abc import Iterator
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
# What is still to be registered from above, or to move down.
KNOWN = {
    ("builder", "apps"),  # takedown knows the files of both apps
    ("builder", "systems"),  # and the journals of systems
    ("config", "collect"),  # names of platforms
    ("config", "images"),  # limits of sizes
    ("quickstart", "cli"),  # the progress that it shows
}


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
    """A new room says where it stands."""
    rooms = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    ours = {room for room in rooms if not room.startswith("__")}
    assert ours == set(FLOOR)


def test_no_import_runs_upward() -> None:
    """Nor is one of the known ones forgotten when it is gone."""
    assert _upward() == KNOWN
