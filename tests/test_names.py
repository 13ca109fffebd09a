"""Names say what they hold, functions begin with a verb, and docstrings say what things do."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import echo_hf

PACKAGE = Path(echo_hf.__file__).parent
DATA = Path(__file__).parent / "data"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# A variable of such a name may hold anything; whoever reads on has to find out what.
VAGUE = frozenset((DATA / "vague_names.txt").read_text("utf-8").split())
PARTICIPLE = re.compile(
    r"\w{3,}(?<!e)ed|drawn|found|given|held|kept|known|made|said|shown|taken|told"
)
NOUNS = frozenset({"embed", "feed", "need", "seed", "shared", "speed"})  # which end like one
VERBS = frozenset((DATA / "verbs.txt").read_text("utf-8").split())


def _trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield str(path.relative_to(PACKAGE)), ast.parse(path.read_text("utf-8"))


def _bindings() -> Iterator[tuple[str, str]]:
    """Every variable and parameter of the package, with its place."""
    for path, tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield f"{path}:{node.lineno}", node.id
            elif isinstance(node, ast.arg):
                yield f"{path}:{node.lineno}", node.arg


def _functions() -> Iterator[tuple[str, str]]:
    for path, tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, FUNCTIONS) and not node.name.startswith("__"):
                yield f"{path}:{node.lineno}", node.name.strip("_")


def _listed(places: list[tuple[str, str]]) -> str:
    return "\n".join(f"{place} {name}" for place, name in places)


def test_at_most_one_variable_in_a_hundred_may_hold_anything() -> None:
    bindings = list(_bindings())
    vague = [(place, name) for place, name in bindings if name.strip("_").lower() in VAGUE]
    assert len(vague) <= 0.01 * len(bindings), _listed(vague)


def test_a_function_is_no_bare_participle() -> None:
    functions = list(_functions())
    bare = [
        (place, name)
        for place, name in functions
        if PARTICIPLE.fullmatch(name) and name not in NOUNS and "_" not in name
    ]
    assert len(bare) <= 0.015 * len(functions), _listed(bare)


def test_seven_functions_in_ten_begin_with_a_verb() -> None:
    functions = list(_functions())
    others = [(place, name) for place, name in functions if name.split("_")[0] not in VERBS]
    assert len(others) <= 0.3 * len(functions), _listed(others)


def test_a_docstring_says_what_a_thing_does_and_is_no_question() -> None:
    begun = []
    for path, tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS)):
                text = ast.get_docstring(node) or ""
                if text.startswith("What "):
                    begun.append((path, text.partition("\n")[0]))
    assert len(begun) <= 5, _listed(begun)
