"""The log of what people did in the apps: events are added, and nothing is ever changed.

One SQLite file a run, `runs/<name>/events.sqlite`, in write-ahead mode. What stands is a fold over
the events (`apps/fold.py`). An event is on the disk when `append` returns: only then a page shows
the next thing. Any number of processes may write at a time.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from echo_hf.apps.event_file import opened
from echo_hf.errors import RunError

EVENTS_FILE = "events.sqlite"
UNDO = "undo"
COLUMNS = "id, app, subject, person, action, payload, base, at"


def now() -> datetime:
    """The time, UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a person did.

    Attributes:
        id: Its number in the log; later events have larger ones, also than those of a log that was
            lost: it is the time in milliseconds where that is larger than the last one.
        app: Where it was done: `rank` or `review`.
        subject: Id of the sample that it is about.
        person: Pseudonym of who did it.
        action: What was done; `undo` takes back the event that `base` names.
        payload: What else the app wrote down; JSON can hold it.
        base: The last event about the subject that the person had seen; null for none.
        at: When, UTC.
    """

    id: int
    app: str
    subject: str
    person: str
    action: str
    payload: Mapping[str, Any]
    base: int | None
    at: datetime


@dataclass(frozen=True)
class EventLog:
    """The events of a run.

    Attributes:
        path: The SQLite file; made by the first call.
        clock: Gives the time, UTC.
    """

    path: Path
    clock: Callable[[], datetime] = now

    def append(
        self,
        app: str,
        subject: str,
        person: str,
        action: str,
        payload: Mapping[str, Any] | None = None,
        base: int | None = None,
    ) -> Event:
        """Adds an event; it survives a machine that loses its power when this returns.

        Args:
            app: Where it was done.
            subject: Id of the sample.
            person: Pseudonym of who did it.
            action: What was done.
            payload: What else to write down.
            base: The last event about the subject that the person had seen.

        Returns:
            The event.

        Raises:
            RunError: The file cannot be used, or `base` is no event.
        """
        with opened(self.path, writes=True) as connection:
            return self._added(connection, (app, subject, person, action), payload or {}, base)

    def undo(self, event: int, person: str) -> Event:
        """Takes an event back, which may be an undo itself: then what that took back stands again.

        Args:
            event: Number of one of the person's own events.
            person: Pseudonym of who takes it back.

        Returns:
            The event that says so.

        Raises:
            RunError: The file cannot be used, there is no such event, or it is somebody else's.
        """
        with opened(self.path, writes=True) as connection:
            query = f"select {COLUMNS} from event where id = ?"  # noqa: S608 - a constant
            row = connection.execute(query, (event,)).fetchone()
            if row is None or row[3] != person:
                raise RunError(f"event {event!r} is none of {person!r}: expected one of their own")
            return self._added(connection, (row[1], row[2], person, UNDO), {}, event)

    def events(
        self, app: str, subject: str | None = None, person: str | None = None
    ) -> tuple[Event, ...]:
        """What was done.

        Args:
            app: Where.
            subject: Only what is about this sample.
            person: Only what this person did.

        Returns:
            The events in their order.

        Raises:
            RunError: The file cannot be used.
        """
        wanted = {"app": app, "subject": subject, "person": person}
        known = {name: value for name, value in wanted.items() if value is not None}
        where = " and ".join(f"{name} = :{name}" for name in known)
        query = f"select {COLUMNS} from event where {where} order by id"  # noqa: S608 - our names
        with opened(self.path) as connection:
            return tuple(_event(row) for row in connection.execute(query, known))

    def forget(self, subjects: set[str]) -> int:
        """Deletes what was done about samples that have to go, from the file's bytes as well.

        Args:
            subjects: Ids of samples.

        Returns:
            How many events were deleted.

        Raises:
            RunError: The file cannot be used.
        """
        if not self.path.exists():
            return 0
        wanted = [(subject,) for subject in sorted(subjects)]
        with opened(self.path) as connection:
            connection.execute("pragma secure_delete = on")
            connection.execute("pragma foreign_keys = off")  # an undo names what goes with it
            connection.execute("begin immediate")
            before = connection.total_changes
            connection.executemany("delete from event where subject = ?", wanted)
            deleted = connection.total_changes - before
            connection.executemany("delete from lease where subject = ?", wanted)
            connection.execute("commit")
            connection.execute("pragma wal_checkpoint(truncate)").fetchall()
        return deleted

    def _added(
        self,
        connection: sqlite3.Connection,
        what: tuple[str, str, str, str],
        payload: Mapping[str, Any],
        base: int | None,
    ) -> Event:
        at = self.clock()
        text = json.dumps(payload, sort_keys=True, allow_nan=False)
        if base is not None and not _exists(connection, base):
            raise RunError(f"{str(self.path)!r} has no event {base!r}: load the page again")
        added = connection.execute(
            "insert into event (id, app, subject, person, action, payload, base, at) "
            "values (?, ?, ?, ?, ?, ?, ?, ?)",
            (_next_number(connection, at), *what, text, base, at.isoformat()),
        )
        return Event(int(added.lastrowid or 0), *what, json.loads(text), base, at)


def _next_number(connection: sqlite3.Connection, at: datetime) -> int:
    """Whoever wrote down a number of a log that was lost must not take a new event for that one."""
    last = connection.execute("select seq from sqlite_sequence where name = 'event'").fetchone()
    return max(int(at.timestamp() * 1000), 1 + (last[0] if last else 0))


def _exists(connection: sqlite3.Connection, event: int) -> bool:
    found = connection.execute("select 1 from event where id = ?", (event,))
    return found.fetchone() is not None


def _event(row: tuple[Any, ...]) -> Event:
    number, app, subject, person, action, payload, base, at = row
    read = json.loads(payload), base, datetime.fromisoformat(at)
    return Event(number, app, subject, person, action, *read)
