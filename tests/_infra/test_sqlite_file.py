"""What every SQLite file of a run needs from its connection."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path

import pytest

from echo_hf._infra.sqlite import write_ahead


def test_a_file_that_another_holds_is_waited_for(tmp_path: Path) -> None:
    """SQLite itself gives this switch up at once; a file held for a moment must not end a run."""
    path = tmp_path / "file.sqlite"
    holder = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    holder.execute("create table one (number integer)")
    holder.execute("begin exclusive")
    released = threading.Timer(0.2, holder.execute, ["commit"])

    waiting = sqlite3.connect(path, timeout=0, isolation_level=None)
    released.start()
    write_ahead(waiting)
    released.join()
    assert waiting.execute("pragma journal_mode").fetchone() == ("wal",)
    waiting.close()
    holder.close()


def test_a_file_that_cannot_be_written_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other process will ever let go of it: waiting a minute would only hide the cause."""
    path = tmp_path / "file.sqlite"
    sqlite3.connect(path).execute("create table one (number integer)").connection.close()
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it is waited for"))

    reading = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        write_ahead(reading)
    reading.close()
