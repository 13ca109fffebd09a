"""Open the SQLite files of a run, all with the same settings."""

from __future__ import annotations

import sqlite3
import time

LONGEST_WAIT_S = 60
PAUSE_S = 0.01
PRIMARY = 0xFF  # what is above it tells kinds of one error apart


def write_ahead(connection: sqlite3.Connection) -> None:
    """Lets a file be read while it is written, waiting for other processes that hold it."""
    until = time.monotonic() + LONGEST_WAIT_S
    while True:
        try:
            connection.execute("pragma journal_mode = wal")
            return
        except sqlite3.OperationalError as error:
            # This switch alone does not wait for other processes by itself.
            held = error.sqlite_errorcode & PRIMARY == sqlite3.SQLITE_BUSY
            if not held or time.monotonic() > until:
                raise
            time.sleep(PAUSE_S)
