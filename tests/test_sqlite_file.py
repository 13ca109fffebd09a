"""What every SQLite file of a run needs from its connection."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

from echo_hf.sqlite_file import write_ahead


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
