"""What somebody who watches systems draw is told, as it happens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from echo_hf.reasons import NoTask, NotTabled
from echo_hf.systems.journal import Entry
from echo_hf.systems.plan import Plan


class Watcher(Protocol):
    """Told of what happens; `echo_hf.systems.show.Show` prints it."""

    def planned(self, plans: Sequence[Plan], left_out: Mapping[NoTask, int]) -> None:
        """This is about to be drawn."""
        ...

    def drawn(self, system: str, entry: Entry) -> None:
        """An output is known."""
        ...

    def stopping(self, system: str, running: int) -> None:
        """No task is begun any more; those under way are waited for."""
        ...

    def finished(self, system: str, said: str | None) -> None:
        """A system is done; or stopped, and why."""
        ...

    def tabled(self, kept_back: Mapping[str, Mapping[NotTabled, int]]) -> None:
        """The table of outputs is written, without so many outputs of systems."""
        ...


class Unwatched:
    """A watcher that tells nobody."""

    def planned(self, plans: Sequence[Plan], left_out: Mapping[NoTask, int]) -> None:
        """Says nothing."""

    def drawn(self, system: str, entry: Entry) -> None:
        """Says nothing."""

    def stopping(self, system: str, running: int) -> None:
        """Says nothing."""

    def finished(self, system: str, said: str | None) -> None:
        """Says nothing."""

    def tabled(self, kept_back: Mapping[str, Mapping[NotTabled, int]]) -> None:
        """Says nothing."""
