"""What users import is explained where it is defined, so that `help` and an editor show it."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import echo_hf
from echo_hf import errors
from echo_hf.config.sections import STAGES
from tests.stages_for_tests import ROOT


def imported() -> dict[str, Any]:
    """Public names, errors, stages, and what the page for Python lists: contracts of plug-ins."""
    page = (ROOT / "docs" / "reference" / "api.md").read_text("utf-8")
    places = re.findall(r"^### ([\w.]+)\.(\w+)$", page, re.M)
    places += [(stage.__module__, stage.__name__) for stage in map(STAGES.find, STAGES.modules)]
    places += [(errors.__name__, name) for name in vars(errors) if name.endswith("Error")]
    for part in (echo_hf, echo_hf.metrics, echo_hf.scores):
        places += [(part.__name__, name) for name in part.__all__]
    objects = {
        f"{part}.{name}": getattr(importlib.import_module(part), name) for part, name in places
    }
    return {name: value for name, value in objects.items() if callable(value)}


IMPORTED = imported()


def described(section: str, docstring: str) -> set[str]:
    """The names that a section of a docstring explains."""
    block = re.search(rf"^{section}:\n((?: .*\n|\n)*)", f"{inspect.cleandoc(docstring)}\n", re.M)
    return {*re.findall(r"^    (\w+)(?: \(.+?\))?:", block[1] if block else "", re.M)}


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """Methods and properties that a class defines itself."""
    for name, member in vars(kind).items():
        beneath = [getattr(member, key, None) for key in ("fget", "func", "__func__")]
        (function, *_) = (*filter(None, beneath), member)
        if inspect.isfunction(function) and not name.startswith("_"):
            yield name, function


FUNCTIONS = {
    f"{part.__name__}.{name}": value
    for part in (echo_hf, echo_hf.metrics, echo_hf.scores)
    for name in part.__all__
    if inspect.isfunction(value := getattr(part, name))
}


@pytest.mark.parametrize("value", FUNCTIONS.values(), ids=FUNCTIONS)
def test_help_says_what_a_function_returns(value: Any) -> None:
    assert re.search(r"^Returns:\n    \S", inspect.cleandoc(value.__doc__), re.M)


@pytest.mark.parametrize("value", IMPORTED.values(), ids=IMPORTED)
def test_what_users_import_is_explained(value: Any) -> None:
    """A function with every parameter, a class with its fields, its methods and its properties."""
    docstring = value.__doc__ or ""
    assert docstring.strip()
    assert not docstring.startswith(f"{value.__name__}(")  # what Python writes for a dataclass
    if inspect.isclass(value):
        methods = dict(members(value))
        fields = {
            name
            for name, kind in inspect.get_annotations(value).items()
            if not (name.startswith("_") or name in methods or "ClassVar" in str(kind))
        }
        assert described("Attributes", docstring) | described("Args", docstring) >= fields
        assert [name for name, member in methods.items() if not member.__doc__] == []
    else:
        assert described("Args", docstring) >= {*inspect.signature(value).parameters}
