"""A registry of named members: built-in ones, loaded on demand, and entry points."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any, Generic, TypeVar

from echo_hf.errors import ConfigError, EchoError, MissingExtraError, unknown


@lru_cache
def _list_plugins(group: str, *_paths: str) -> tuple[str, ...]:
    """Return the names of a group's entry points, which pages ask for by the hundred."""
    return tuple(point.name for point in entry_points(group=group))


MemberT = TypeVar("MemberT")
FactsT = TypeVar("FactsT")
DecoratedT = TypeVar("DecoratedT")


class Registry(Generic[MemberT, FactsT]):
    """Members by name: `built_in` maps names to modules, `group` names the entry points.

    Importing `home` registers built-in members that `built_in` does not name.
    """

    def __init__(
        self,
        kind: str,
        group: str,
        built_in: Mapping[str, str],
        error: type[EchoError] = ConfigError,
        *,
        home: str | None = None,
    ) -> None:
        self.kind, self.group, self.built_in, self.error = kind, group, built_in, error
        self.home = home
        self.entries: dict[str, tuple[Any, FactsT | None]] = {}

    def register(
        self, name: str, facts: FactsT | None = None
    ) -> Callable[[DecoratedT], DecoratedT]:
        def add(member: DecoratedT) -> DecoratedT:
            self.entries[name] = member, facts
            return member

        return add

    def list_names(self) -> list[str]:
        self._load_home()
        return sorted({*self.built_in, *self.entries, *_list_plugins(self.group, *sys.path)})

    def check(self, name: str, place: str = "") -> None:
        if name not in self.list_names():
            raise self.error(unknown(self.kind, name, self.list_names(), place))

    def find(self, name: str, place: str = "") -> MemberT:
        if (member := self.find_known(name)) is not None:
            return member
        self.check(name, place)
        (point, *_) = entry_points(group=self.group, name=name)
        try:
            loaded: MemberT = point.load()
        except (ImportError, AttributeError) as error:
            raise self.error(
                f"{self.kind} {name!r} comes from {point.value!r}, which cannot be loaded "
                f"({error}): install or fix that package"
            ) from error
        return self.entries.setdefault(name, (loaded, None))[0]  # type: ignore[no-any-return]

    def find_known(self, name: str) -> MemberT | None:
        """Return a member that is built in or was found before."""
        return self._load_entry(name)[0]

    def facts(self, name: str) -> FactsT | None:
        """Return the facts registered with a member; null for one of another package."""
        return self._load_entry(name)[1]

    def _load_home(self) -> None:
        if self.home is not None:
            import_module(self.home)

    def _load_entry(self, name: str) -> tuple[MemberT | None, FactsT | None]:
        self._load_home()
        if name in self.built_in and name not in self.entries:
            import_module(self.built_in[name])
        return self.entries.get(name, (None, None))


@dataclass(frozen=True, slots=True)
class Requirements:
    """Purpose of a member, and the extra and packages that it requires."""

    about: str = ""
    extra: str | None = None
    packages: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """Packages that are not installed, found out without importing them."""
        missing = []
        for name in self.packages:
            with suppress(ModuleNotFoundError):  # of the package around it
                if find_spec(name):
                    continue
            missing.append(name)
        return tuple(missing)

    def check_installed(self, needed_by: str) -> None:
        if self.extra is not None and self.missing:
            raise MissingExtraError(needed_by, self.extra)
