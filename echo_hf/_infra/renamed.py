"""Old names of contracts that others import: they work, with a DeprecationWarning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def warn_renamed(old: str, new: str, stacklevel: int = 3) -> None:
    """Warn the caller's caller that a name is an old one."""
    warnings.warn(f"{old} is now {new}: use that name", DeprecationWarning, stacklevel=stacklevel)


def make_module_getattr(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module, which finds its old names under the new ones."""

    def find(name: str) -> Any:
        if name not in names:
            text = f"module {module!r} has no attribute {name!r}"
            raise AttributeError(text, name=name, obj=sys.modules[module])
        warn_renamed(f"{module}.{name}", names[name])
        return getattr(sys.modules[module], names[name])

    return find
