"""What is found by name: ours, loaded when it is asked for, and what other packages bring."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any, Generic, TypeVar

from echo_hf.errors import ConfigError, EchoError, MissingExtraError, unknown

Member = TypeVar("Member")
Facts = TypeVar("Facts")
Made = TypeVar("Made")


class Registry(Generic[Member, Facts]):
    """Members by name; `ours` are the modules that register our own, `group` entry points."""

    def __init__(
        self, kind: str, group: str, ours: Mapping[str, str], error: type[EchoError] = ConfigError
    ) -> None:
        self.kind, self.group, self.ours, self.error = kind, group, ours, error
        self.entries: dict[str, tuple[Any, Facts | None]] = {}

    def register(self, name: str, facts: Facts | None = None) -> Callable[[Made], Made]:
        def add(member: Made) -> Made:
            self.entries[name] = member, facts
            return member

        return add

    def names(self) -> list[str]:
        theirs = (point.name for point in entry_points(group=self.group))
        return sorted({*self.ours, *self.entries, *theirs})

    def check(self, name: str, place: str = "") -> None:
        if name not in self.names():
            raise self.error(unknown(self.kind, name, self.names(), place))

    def find(self, name: str, place: str = "") -> Member:
        if (member := self.known(name)) is not None:
            return member
        self.check(name, place)
        (point, *_) = entry_points(group=self.group, name=name)
        try:
            found: Member = point.load()
        except (ImportError, AttributeError) as error:
            raise self.error(
                f"{self.kind} {name!r} comes from {point.value!r}, which cannot be loaded "
                f"({error}): install or fix that package"
            ) from error
        return self.entries.setdefault(name, (found, None))[0]  # type: ignore[no-any-return]

    def known(self, name: str) -> Member | None:
        """The member of a name, where it is ours or was found before."""
        return self._entry(name)[0]

    def facts(self, name: str) -> Facts | None:
        """What is known of a member, null of one from another package."""
        return self._entry(name)[1]

    def _entry(self, name: str) -> tuple[Member | None, Facts | None]:
        if name in self.ours and name not in self.entries:
            import_module(self.ours[name])
        return self.entries.get(name, (None, None))


@dataclass(frozen=True, slots=True)
class Needs:
    """What a member is for, and the extra and the importable packages that it needs."""

    about: str = ""
    extra: str | None = None
    packages: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """The packages that are not installed; none of them is imported to find out."""
        missing = []
        for name in self.packages:
            with suppress(ModuleNotFoundError):  # of the package around it
                if find_spec(name):
                    continue
            missing.append(name)
        return tuple(missing)

    def check_installed(self, who: str) -> None:
        if self.extra is not None and self.missing:
            raise MissingExtraError(who, self.extra)
