"""Samples that are lent to one person for a while, so that two do not work on the same one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from echo_hf.apps.event_file import opened
from echo_hf.apps.events import EventLog

MINUTES = 10


@dataclass(frozen=True, slots=True)
class Lease:
    """A sample that is lent.

    Attributes:
        person: Who has it.
        until: When it ends unless it is renewed, UTC.
    """

    person: str
    until: datetime


@dataclass(frozen=True)
class Leases:
    """Who has which sample of an app; a lease only keeps others from being offered it.

    Attributes:
        log: The log of events, whose file and clock they share.
        app: The app.
        minutes: How long a sample is lent.
    """

    log: EventLog
    app: str
    minutes: float = MINUTES

    def lend(self, subjects: Iterable[str], person: str) -> str | None:
        """Lends the first sample that nobody else has, or renews it where the person has it.

        Args:
            subjects: Samples, the most wanted first.
            person: Who asks.

        Returns:
            The sample that is theirs now; null where others have them all.

        Raises:
            RunError: The file cannot be used.
        """
        with opened(self.log.path, writes=True) as connection:
            taken = self._running(connection)
            for subject in subjects:
                if subject not in taken or taken[subject].person == person:
                    until = self.log.clock() + timedelta(minutes=self.minutes)
                    row = (self.app, subject, person, until.astimezone(UTC).isoformat())
                    connection.execute("insert or replace into lease values (?, ?, ?, ?)", row)
                    return subject
        return None

    def give_back(self, subject: str, person: str) -> None:
        """Ends a person's lease, if there is one; anybody else's stays.

        Args:
            subject: The sample.
            person: Who had it.

        Raises:
            RunError: The file cannot be used.
        """
        with opened(self.log.path, writes=True) as connection:
            connection.execute(
                "delete from lease where app = ? and subject = ? and person = ?",
                (self.app, subject, person),
            )

    def running(self) -> dict[str, Lease]:
        """The samples that are lent now, and to whom.

        Raises:
            RunError: The file cannot be used.
        """
        with opened(self.log.path) as connection:
            return self._running(connection)

    def _running(self, connection: sqlite3.Connection) -> dict[str, Lease]:
        rows = connection.execute(
            "select subject, person, until from lease where app = ?", (self.app,)
        )
        leases = {row[0]: Lease(row[1], datetime.fromisoformat(row[2])) for row in rows}
        now = self.log.clock()
        # One further off than any is lent was written by a clock that was wrong.
        last = now + timedelta(minutes=self.minutes)
        return {subject: lease for subject, lease in leases.items() if now < lease.until <= last}
