"""A registry of named members: built-in ones, loaded on demand, and entry points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any, Generic, TypeVar

from echo_hf.errors import ConfigError, EchoError, MissingExtraError, unknown

MemberT = TypeVar("MemberT")
FactsT = TypeVar("FactsT")
DecoratedT = TypeVar("DecoratedT")
OWN_PACKAGE = "echo_hf"


class Registry(Generic[MemberT, FactsT]):
    """Members by name: built-in ones, those of plug-ins, and entry points of the `group`.

    `modules` maps the names of built-in members to the modules that register them; those of a
    module in `packages` are found by importing it.
    """

    def __init__(
        self,
        kind: str,
        group: str,
        modules: Mapping[str, str] | None = None,
        error: type[EchoError] = ConfigError,
        packages: Sequence[str] = (),
    ) -> None:
        self.kind, self.group, self.modules, self.error = kind, group, dict(modules or {}), error
        self.unread_packages = list(packages)
        self.entries: dict[str, tuple[Any, FactsT | None]] = {}

    def register(
        self, name: str, facts: FactsT | None = None
    ) -> Callable[[DecoratedT], DecoratedT]:
        def add(member: DecoratedT) -> DecoratedT:
            self.entries[name] = member, facts
            return member

        return add

    @property
    def built_in(self) -> list[str]:
        return [name for name, origin in self.list_origins().items() if origin == OWN_PACKAGE]

    def list_names(self) -> list[str]:
        self._import_packages()
        points = (point.name for point in entry_points(group=self.group))
        return sorted({*self.modules, *self.entries, *points})

    def list_origins(self) -> dict[str, str]:
        """Return where each member comes from: a package with its version, or else a module."""
        self._import_packages()
        origins = {
            name: member.__module__.partition(".")[0] for name, (member, _) in self.entries.items()
        }
        for point in entry_points(group=self.group):
            origins[point.name] = (
                f"{point.dist.name} {point.dist.version}" if point.dist else point.value
            )
        origins |= dict.fromkeys(self.modules, OWN_PACKAGE)
        return dict(sorted(origins.items()))

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

    def _load_entry(self, name: str) -> tuple[MemberT | None, FactsT | None]:
        if name not in self.entries:
            if name in self.modules:
                import_module(self.modules[name])
            else:
                self._import_packages()
        return self.entries.get(name, (None, None))

    def _import_packages(self) -> None:
        while self.unread_packages:
            package = import_module(self.unread_packages.pop())
            for module in iter_modules(package.__path__, f"{package.__name__}."):
                import_module(module.name)


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
