"""The log of what people did in the apps, what stands after it, and samples lent to one person."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from echo_hf._infra.sqlite import Database
from echo_hf.errors import RunError


class _EventFile(Database):
    """Opened for one call, so that several programs can use it."""

    name = "log of events"
    remedy = "begin again"
    application = 0x6563686F  # "echo" in ASCII
    schema = """
create table if not exists event (
    id integer primary key autoincrement, app text not null, subject text not null,
    person text not null, action text not null, payload text not null,
    base integer references event (id), at text not null
);
create index if not exists event_of_subject on event (app, subject);
create trigger if not exists event_stays before update on event
    begin select raise(abort, 'events are never changed'); end;
create table if not exists lease (
    app text not null, subject text not null, person text not null, until text not null,
    primary key (app, subject)
) without rowid"""
    # In write-ahead mode `full` alone has each commit on the disk when it returns.
    pragmas = "pragma synchronous = full; pragma foreign_keys = on"


EVENTS_FILE = "events.sqlite"
UNDO = "undo"
COLUMNS = "id, app, subject, person, action, payload, base, at"


@dataclass(frozen=True, slots=True)
class Event:
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
    path: Path
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def append(
        self,
        app: str,
        subject: str,
        person: str,
        action: str,
        payload: Mapping[str, Any] | None = None,
        base: int | None = None,
    ) -> Event:
        """Adds an event; it survives a machine that loses its power when this returns."""
        with _EventFile(self.path) as file, file.transaction() as connection:
            found = connection.execute("select 1 from event where id = ?", (base,)).fetchone()
            if base is not None and found is None:
                raise RunError(f"{str(self.path)!r} has no event {base!r}: load the page again")
            return self._added(connection, (app, subject, person, action), payload or {}, base)

    def undo(self, event: int, person: str) -> Event:
        """Takes an event back; one that is an undo itself lets what it took back stand again."""
        with _EventFile(self.path) as file, file.transaction() as connection:
            query = "select app, subject from event where id = ? and person = ?"
            row = connection.execute(query, (event, person)).fetchone()
            if row is None:
                raise RunError(f"event {event!r} is none of {person!r}: expected one of their own")
            return self._added(connection, (*row, person, UNDO), {}, event)

    def _added(
        self,
        connection: sqlite3.Connection,
        what: tuple[str, str, str, str],
        payload: Mapping[str, Any],
        base: int | None,
    ) -> Event:
        at, text = self.clock(), json.dumps(payload, sort_keys=True, allow_nan=False)
        # Whoever wrote down a number of a log that was lost must not take a new event for that one.
        query = "select max(seq) from sqlite_sequence where name = 'event'"
        (last,) = connection.execute(query).fetchone()
        number = max(int(at.timestamp() * 1000), 1 + (last or 0))
        row = (number, *what, text, base, at.isoformat())
        connection.execute("insert into event values (?, ?, ?, ?, ?, ?, ?, ?)", row)
        return _event(row)

    def events(
        self, app: str, subject: str | None = None, person: str | None = None
    ) -> tuple[Event, ...]:
        wanted = {"app": app, "subject": subject, "person": person}
        known = {name: value for name, value in wanted.items() if value is not None}
        where = " and ".join(f"{name} = :{name}" for name in known)
        query = f"select {COLUMNS} from event where {where} order by id"  # noqa: S608 - our names
        with _EventFile(self.path) as file, file.opened() as connection:
            return tuple(_event(row) for row in connection.execute(query, known))

    def forget(self, subjects: set[str]) -> int:
        """Deletes what was done about samples that have to go, from the file's bytes as well."""
        if not self.path.exists():
            return 0
        wanted = [(subject,) for subject in sorted(subjects)]
        with _EventFile(self.path) as file:
            file.execute("pragma foreign_keys = off")  # an undo names what goes with it
            with file.erasing() as connection:
                rows = connection.executemany("delete from event where subject = ?", wanted)
                connection.executemany("delete from lease where subject = ?", wanted)
        return rows.rowcount


def _event(row: tuple[Any, ...]) -> Event:
    number, app, subject, person, action, payload, base, at = row
    read = json.loads(payload), base, datetime.fromisoformat(at)
    return Event(number, app, subject, person, action, *read)


def standing(events: Iterable[Event]) -> tuple[Event, ...]:
    ordered = sorted(events, key=lambda event: event.id)
    gone: set[int | None] = set()
    for event in reversed(ordered):  # an undo is later than what it takes back
        if event.action == UNDO and event.id not in gone:
            gone.add(event.base)
    return tuple(one for one in ordered if one.action != UNDO and one.id not in gone)


def by_person(events: Iterable[Event]) -> dict[tuple[str, str], Event]:
    """What each person last did about each subject: for apps where each has an own say."""
    return {(event.subject, event.person): event for event in standing(events)}


def decisions(events: Iterable[Event]) -> dict[str, tuple[Event, ...]]:
    """What is decided about each subject: for apps where there is one decision a subject."""
    subjects: Mapping[str, list[Event]] = defaultdict(list)
    for event in standing(events):
        subjects[event.subject].append(event)
    return {
        subject: tuple(
            event
            for at, event in enumerate(found, 1)
            # A later decision replaces those of its person, and those that it was made upon.
            if not any(
                later.person == event.person or (later.base or 0) >= event.id
                for later in found[at:]
            )
        )
        for subject, found in subjects.items()
    }


MINUTES = 10


@dataclass(frozen=True, slots=True)
class Lease:
    person: str
    until: datetime


@dataclass(frozen=True)
class Leases:
    """Who has which sample of an app; a lease only keeps others from being offered it."""

    log: EventLog
    app: str
    minutes: float = MINUTES

    def lend(self, subjects: Iterable[str], person: str) -> str | None:
        """Lends the first sample that nobody else has, or renews it where the person has it."""
        with _EventFile(self.log.path) as file, file.transaction() as connection:
            taken = self._running(connection)
            for subject in subjects:
                if subject not in taken or taken[subject].person == person:
                    until = self.log.clock() + timedelta(minutes=self.minutes)
                    row = (self.app, subject, person, until.astimezone(UTC).isoformat())
                    connection.execute("insert or replace into lease values (?, ?, ?, ?)", row)
                    return subject
        return None

    def give_back(self, subject: str, person: str) -> None:
        """Ends a person's lease, if there is one; anybody else's stays."""
        with _EventFile(self.log.path) as file, file.transaction() as connection:
            connection.execute(
                "delete from lease where app = ? and subject = ? and person = ?",
                (self.app, subject, person),
            )

    def running(self) -> dict[str, Lease]:
        with _EventFile(self.log.path) as file, file.opened() as connection:
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
