"""The log of what people did in the apps, and leases that lend a sample to one person."""

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

EVENTS_FILE = "events.sqlite"
UNDO = "undo"
EVENT_COLUMNS = "id, app, subject, person, action, payload, base, at"
LEASE_MINUTES = 10


class _EventFile(Database):
    """The database of events; it is opened for each call, so that several programs can use it."""

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
        """Append an event; it is on the disk when this returns."""
        with _EventFile(self.path) as file, file.write() as connection:
            based_on = connection.execute("select 1 from event where id = ?", (base,)).fetchone()
            if base is not None and based_on is None:
                raise RunError(f"{str(self.path)!r} has no event {base!r}: load the page again")
            return self._insert(connection, (app, subject, person, action), payload or {}, base)

    def undo(self, event: int, person: str) -> Event:
        """Undo an event; undoing an undo restores what it took back."""
        with _EventFile(self.path) as file, file.write() as connection:
            query = "select app, subject from event where id = ? and person = ?"
            row = connection.execute(query, (event, person)).fetchone()
            if row is None:
                raise RunError(f"event {event!r} is none of {person!r}: expected one of their own")
            return self._insert(connection, (*row, person, UNDO), {}, event)

    def _insert(
        self,
        connection: sqlite3.Connection,
        subject_fields: tuple[str, str, str, str],
        payload: Mapping[str, Any],
        base: int | None,
    ) -> Event:
        at, text = self.clock(), json.dumps(payload, sort_keys=True, allow_nan=False)
        # Whoever wrote down a number of a log that was lost must not take a new event for that one.
        query = "select max(seq) from sqlite_sequence where name = 'event'"
        (last,) = connection.execute(query).fetchone()
        number = max(int(at.timestamp() * 1000), 1 + (last or 0))
        row = (number, *subject_fields, text, base, at.isoformat())
        connection.execute("insert into event values (?, ?, ?, ?, ?, ?, ?, ?)", row)
        return _parse_event(row)

    def read_events(
        self, app: str, subject: str | None = None, person: str | None = None
    ) -> tuple[Event, ...]:
        filters = {"app": app, "subject": subject, "person": person}
        given_filters = {name: value for name, value in filters.items() if value is not None}
        where = " and ".join(f"{name} = :{name}" for name in given_filters)
        query = f"select {EVENT_COLUMNS} from event where {where} order by id"  # noqa: S608 - our names
        with _EventFile(self.path) as file, file.connect() as connection:
            return tuple(_parse_event(row) for row in connection.execute(query, given_filters))

    def forget(self, subjects: set[str]) -> int:
        """Delete the events of samples that are taken down, from the bytes of the file as well."""
        if not self.path.exists():
            return 0
        parameters = [(subject,) for subject in sorted(subjects)]
        with _EventFile(self.path) as file:
            file.execute("pragma foreign_keys = off")  # an undo names what goes with it
            with file.erase() as connection:
                rows = connection.executemany("delete from event where subject = ?", parameters)
                connection.executemany("delete from lease where subject = ?", parameters)
        return rows.rowcount


def _parse_event(row: tuple[Any, ...]) -> Event:
    number, app, subject, person, action, payload, base, at = row
    rest_of_row = json.loads(payload), base, datetime.fromisoformat(at)
    return Event(number, app, subject, person, action, *rest_of_row)


def drop_undone(events: Iterable[Event]) -> tuple[Event, ...]:
    ordered = sorted(events, key=lambda event: event.id)
    gone: set[int | None] = set()
    for event in reversed(ordered):  # an undo is later than what it takes back
        if event.action == UNDO and event.id not in gone:
            gone.add(event.base)
    return tuple(event for event in ordered if event.action != UNDO and event.id not in gone)


def latest_by_person(events: Iterable[Event]) -> dict[tuple[str, str], Event]:
    """Return the last event of each person on each subject, for apps where each ranks alone."""
    return {(event.subject, event.person): event for event in drop_undone(events)}


def current_decisions(events: Iterable[Event]) -> dict[str, tuple[Event, ...]]:
    """Return the decisions that stand on each subject: for apps with one decision a subject."""
    subjects: Mapping[str, list[Event]] = defaultdict(list)
    for event in drop_undone(events):
        subjects[event.subject].append(event)
    return {
        subject: tuple(
            event
            for position, event in enumerate(subject_events, 1)
            # A later decision replaces those of its person, and those that it was made upon.
            if not any(
                later.person == event.person or (later.base or 0) >= event.id
                for later in subject_events[position:]
            )
        )
        for subject, subject_events in subjects.items()
    }


@dataclass(frozen=True, slots=True)
class SampleLease:
    person: str
    until: datetime


@dataclass(frozen=True)
class SampleLeases:
    """The leases of an app: a leased sample is not offered to others."""

    log: EventLog
    app: str
    minutes: float = LEASE_MINUTES

    def lend(self, subjects: Iterable[str], person: str) -> str | None:
        """Lease the first sample that nobody else has, or renew the lease of the same person."""
        with _EventFile(self.log.path) as file, file.write() as connection:
            running = self._read_running(connection)
            for subject in subjects:
                if subject not in running or running[subject].person == person:
                    until = self.log.clock() + timedelta(minutes=self.minutes)
                    row = (self.app, subject, person, until.astimezone(UTC).isoformat())
                    connection.execute("insert or replace into lease values (?, ?, ?, ?)", row)
                    return subject
        return None

    def give_back(self, subject: str, person: str) -> None:
        """End a person's lease, if there is one; leases of others stay."""
        with _EventFile(self.log.path) as file, file.write() as connection:
            connection.execute(
                "delete from lease where app = ? and subject = ? and person = ?",
                (self.app, subject, person),
            )

    def get_running(self) -> dict[str, SampleLease]:
        with _EventFile(self.log.path) as file, file.connect() as connection:
            return self._read_running(connection)

    def _read_running(self, connection: sqlite3.Connection) -> dict[str, SampleLease]:
        rows = connection.execute(
            "select subject, person, until from lease where app = ?", (self.app,)
        )
        leases = {row[0]: SampleLease(row[1], datetime.fromisoformat(row[2])) for row in rows}
        moment = self.log.clock()
        # One further off than any is lent was written by a clock that was wrong.
        last = moment + timedelta(minutes=self.minutes)
        return {subject: lease for subject, lease in leases.items() if moment < lease.until <= last}
