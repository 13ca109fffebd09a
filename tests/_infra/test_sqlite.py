"""Every SQLite file of a run is opened, checked, written and closed in one way."""

from __future__ import annotations

import os
import pickle
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from echo_hf._infra.sqlite import Database, open_scratch, select_by_keys, set_write_ahead
from echo_hf.builder.refresh import RefreshLedger
from echo_hf.collect.crawl_ledger import CrawlLedger
from echo_hf.collect.fetch import FetchLedger
from echo_hf.curate.events import EventLog
from echo_hf.errors import StoreError
from echo_hf.pipeline.answer_store import Store


class Notes(Database):
    name = "book of notes"
    remedy = "write anew"
    schema = "create table if not exists notes (text text not null)"


def events(path: Path) -> None:
    EventLog(path).append("rank", "s1", "ann", "rank")


KINDS = (Store, CrawlLedger, FetchLedger, RefreshLedger, events, Notes)
Opens = Callable[[Path], Any]


def of_a_later_version(path: Path, opens: Opens) -> None:
    with closing(sqlite3.connect(path)) as connection:
        opens(path)
        connection.execute("pragma user_version = 9")
        connection.execute("pragma wal_checkpoint(truncate)").fetchall()


def of_another_program(path: Path, _: Opens) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table holidays (day text)")


def of_text(path: Path, _: Opens) -> None:
    path.write_text("ranks, by hand\n" * 100, "utf-8")


@pytest.mark.parametrize("opens", KINDS, ids=lambda one: one.__name__)
@pytest.mark.parametrize(
    ("made", "said"),
    [
        (of_a_later_version, r"is a .* of format 9, this version reads 1: upgrade echo-hf, or "),
        (of_another_program, r"is another program's database, expected a .*: move it away, or "),
        (of_text, r"is not a readable .*: put a copy of it back, or move it away to "),
    ],
)
def test_what_is_no_file_of_ours_is_one_line(
    tmp_path: Path, opens: Opens, made: Callable[[Path, Opens], None], said: str
) -> None:
    path = tmp_path / "file.sqlite"
    made(path, opens)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=rf"^{str(path)!r} {said}") as caught:
        opens(path)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before


def test_another_programs_version_is_not_taken_for_ours(tmp_path: Path) -> None:
    path = tmp_path / "events.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table event (id integer)")
        connection.execute("pragma user_version = 1")
    with pytest.raises(StoreError, match="another program's database"):
        events(path)


@pytest.mark.parametrize("opens", KINDS, ids=lambda one: one.__name__)
def test_a_place_where_no_file_can_be_is_one_line(tmp_path: Path, opens: Opens) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path, tmp_path / "file" / "file.sqlite"):
        with pytest.raises(StoreError, match=rf"^cannot use the .* {str(path)!r} \(.*writable"):
            opens(path)


def test_a_file_without_a_format_is_ours_by_its_tables(tmp_path: Path) -> None:
    path = tmp_path / "refreshed.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "create table checks (post text primary key, platform text not null, "
            "at text not null, gone text) without rowid"
        )
        connection.execute("insert into checks values ('a', 'x', '2026-01-01', 'deleted')")
        connection.commit()
    with RefreshLedger(path) as record:
        assert record.execute("select gone from checks") == [("deleted",)]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("pragma user_version").fetchone() == (1,)


def test_what_fails_half_way_is_not_written(tmp_path: Path) -> None:
    with Notes(tmp_path / "notes") as notes:
        with pytest.raises(KeyboardInterrupt), notes.write() as connection:  # noqa: PT012
            connection.execute("insert into notes values ('lost')")
            raise KeyboardInterrupt
        with notes.write() as connection:
            connection.execute("insert into notes values ('kept')")
        assert notes.execute("select text from notes") == [("kept",)]


def test_what_is_erased_is_in_no_byte_of_the_folder(tmp_path: Path) -> None:
    with Notes(tmp_path / "notes") as notes:
        notes.execute("insert into notes values ('a secret of some length')")
        with notes.erase() as connection:
            connection.execute("delete from notes")
        assert not any(b"secret" in file.read_bytes() for file in tmp_path.iterdir())


def test_a_file_opens_again_when_used(tmp_path: Path) -> None:
    notes = Notes(tmp_path / "notes")
    notes.execute("insert into notes values ('a')")
    notes.close()
    notes.close()
    with notes, pickle.loads(pickle.dumps(notes)) as copy:  # noqa: S301
        assert notes.execute("select text from notes") == copy.execute("select text from notes")


def test_any_number_of_keys_is_asked_for() -> None:
    with closing(open_scratch("create table one (number integer)")) as connection:
        connection.executemany("insert into one values (?)", [(n,) for n in range(2000)])
        query = "select number from one where number in ({0}) and number in ({0})"
        found = list(select_by_keys(connection, query, range(500, 2500)))
    assert found == [(number,) for number in range(500, 2000)]


def test_a_file_that_another_holds_is_waited_for(tmp_path: Path) -> None:
    """SQLite itself gives this switch up at once; a file held for a moment must not end a run."""
    path = tmp_path / "file.sqlite"
    holder = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    holder.execute("create table one (number integer)")
    holder.execute("begin exclusive")
    released = threading.Timer(0.2, holder.execute, ["commit"])

    waiting = sqlite3.connect(path, timeout=0, isolation_level=None)
    released.start()
    set_write_ahead(waiting)
    released.join()
    assert waiting.execute("pragma journal_mode").fetchone() == ("wal",)
    waiting.close()
    holder.close()


def test_a_file_that_cannot_be_written_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file.sqlite"
    sqlite3.connect(path).execute("create table one (number integer)").connection.close()
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it is waited for"))
    with (
        closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)) as reading,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        set_write_ahead(reading)


def of_a_stranger(path: Path, script: str) -> None:
    """A frozen file with the marks of ours."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"{Notes.schema}; pragma user_version = 1; {script}")


ENDLESS = """with recursive again(text) as (select 'x' union all select text from again)
select text from again"""
STRANGE = {
    "a view": f"drop table notes; create view notes as {ENDLESS}",
    "a view beside": f"create view more as {ENDLESS}",
    "a trigger": "create trigger more after insert on notes begin delete from notes; end",
    "a computed column": """drop table notes; create table notes (
        text text, more blob generated always as (zeroblob(900000000)))""",
    "a virtual table": "drop table notes; create virtual table notes using fts5(text)",
    "an index": "create index more on notes (length(text))",
}


@pytest.mark.parametrize("kind", STRANGE)
def test_of_a_strangers_file_only_plain_tables_are_read(tmp_path: Path, kind: str) -> None:
    """A view may go on for ever, and fill the disk of whoever takes in its rows."""
    path = tmp_path / "notes.sqlite"
    of_a_stranger(path, STRANGE[kind])
    with pytest.raises(StoreError, match="expected the tables of a book of notes alone") as raised:
        Notes(path, frozen=True)
    assert "\n" not in str(raised.value)


def test_a_strangers_file_gives_no_more_than_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pages may lead back into each other; here rows are added while they are counted."""
    path = tmp_path / "notes.sqlite"
    of_a_stranger(path, "insert into notes values ('a'), ('b')")
    with Notes(path, frozen=True) as notes:
        assert list(notes.iterate_rows("select text from notes order by text")) == [("a",), ("b",)]
        with pytest.raises(StoreError, match="more rows than bytes"):
            list(notes.iterate_rows(ENDLESS))
        with pytest.raises(StoreError):
            notes.execute("insert into notes values ('c')")
        with pytest.raises(StoreError, match="too big"):
            notes.execute("select zeroblob(100000000)")


def test_a_strangers_file_is_a_regular_one(tmp_path: Path) -> None:
    of_a_stranger(tmp_path / "notes.sqlite", "")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "link").symlink_to(tmp_path / "notes.sqlite")
    os.mkfifo(tmp_path / "theirs" / "pipe")
    (tmp_path / "theirs" / "device").symlink_to("/dev/zero")
    for name in ("link", "pipe", "device"):
        with pytest.raises(StoreError, match=r"out of its folder|not a regular file"):
            Notes(tmp_path / "theirs" / name, frozen=True)
