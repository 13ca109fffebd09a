"""A run between two turns of the loop, kept in a folder that machines of a day may mount."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from echo_hf._infra.atomic import replaced_file, write_json
from echo_hf.errors import RunError
from echo_hf.pipeline.progress import LOG, ProgressListener

COUNT = "schedule.json"  # how often the run was kept: of two copies the newer has more
UNFINISHED = ".unfinished"
DATABASE = ".sqlite"
REMADE = ("stages", "release", "previous")  # from stored answers, at no cost
HERE_ALONE = ("cache", LOG, UNFINISHED)
ENDINGS = (f"{DATABASE}-wal", f"{DATABASE}-shm", ".partial", ".lock")
SECONDS = 600.0  # between two keepings while one stage goes on


@dataclass
class KeptRun:
    """A run's folder, and where it is kept; null where it stays on this machine."""

    folder: Path
    place: Path | None

    def fetch(self) -> str:
        """Brings the run here, unless what is here is newer, as after a killed turn."""
        if self.place is None:
            return "it is on this machine"
        if not self.place.parent.is_dir():
            raise RunError(
                f"--state is {str(self.place.parent)!r}: expected a folder; mount it, or make it"
            )
        place, folder = self.place.resolve(), self.folder.resolve()
        ours = any((place / one).exists() for one in (COUNT, UNFINISHED))
        is_apart = not (place.is_relative_to(folder) or folder.is_relative_to(place))
        if not is_apart or (place.is_dir() and any(place.iterdir()) and not ours):
            raise RunError(
                f"{str(self.place)!r} has other files, which a turn would delete: expected a "
                "folder that turns have made, or an empty one, apart from the run; name another "
                "by --state"
            )
        here, there = _count(self.folder), _count(self.place)
        if there <= here:
            return "what is here is the newest" if here else "nothing is kept yet"
        begun = self.folder / UNFINISHED
        if not here and not begun.exists() and any(_names(self.folder, ())):
            raise RunError(
                f"{str(self.folder)!r} was built without --state, and what {str(place)!r} keeps "
                "would replace it: move one of them away, or name another folder by --runs"
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        begun.touch()
        skipped = REMADE if (self.place / UNFINISHED).exists() else ()
        fetched = _mirror(self.place, self.folder, skipped)
        begun.unlink()
        return f"{fetched:,} files fetched"

    def keep(self) -> None:
        """Writes what changed to where it is kept; one that is killed there is made up for."""
        if not self.folder.is_dir():
            return
        write_json(self.folder / COUNT, {"kept": _count(self.folder) + 1})
        if self.place is None:
            return
        self.place.mkdir(exist_ok=True)
        (self.place / UNFINISHED).touch()
        _mirror(self.folder, self.place, snapshots=True)
        (self.place / UNFINISHED).unlink()


def _count(folder: Path) -> int:
    try:
        return int(json.loads((folder / COUNT).read_bytes())["kept"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _mirror(
    source: Path, target: Path, skipped: tuple[str, ...] = (), *, snapshots: bool = False
) -> int:
    """Makes a folder like another one; a database that is in use is copied as it is at a moment."""
    copied, names = 0, set(_names(source, skipped))
    # The count comes last: whoever finds it new finds all else.
    for name in sorted(names, key=lambda name: (name == COUNT, name)):
        path, copy = source / name, target / name
        try:
            changed = _changed(path)
            if copy.exists() and _changed(copy) == changed:
                continue
            copy.parent.mkdir(parents=True, exist_ok=True)
            with replaced_file(copy) as partial:
                if snapshots and path.suffix == DATABASE:
                    _snapshot(path, partial)
                else:
                    shutil.copyfile(path, partial)
            os.utime(copy, ns=(changed, changed))
            copied += 1
        except FileNotFoundError:
            continue  # replaced meanwhile: the next keeping has it
    for name in set(_names(target, ())) - names:
        (target / name).unlink(missing_ok=True)
    if not snapshots:
        # A log of an older database beside a newer one would be taken for its own.
        for log in (one for ending in ENDINGS[:2] for one in target.glob(f"*{ending}")):
            log.unlink(missing_ok=True)
    return copied


def _names(folder: Path, skipped: tuple[str, ...]) -> Iterator[str]:
    for at, folders, files in os.walk(folder):
        place = Path(at).relative_to(folder)
        if place == Path():
            folders[:] = [one for one in folders if one not in (*HERE_ALONE, *skipped)]
        for name in files:
            alone = place == Path() and name in HERE_ALONE
            if not (alone or name.endswith(ENDINGS) or name.startswith(".echo-hf-")):
                yield str(place / name)


def _changed(path: Path) -> int:
    """When a file changed last, of a database also what its log says."""
    log = path.with_name(f"{path.name}-wal")
    return max(one.stat().st_mtime_ns for one in (path, log) if one == path or one.exists())


def _snapshot(path: Path, copy: Path) -> None:
    # A network disk has no locks that SQLite could trust: the copy is made beside it.
    with TemporaryDirectory() as aside:
        whole = Path(aside) / "copy"
        with closing(sqlite3.connect(path)) as here, closing(sqlite3.connect(whole)) as there:
            here.backup(there)
        shutil.copyfile(whole, copy)


@dataclass
class Keeping(ProgressListener):
    """Keeps a run when a stage has its result, and now and then while one goes on."""

    run: KeptRun
    watch: ProgressListener
    _last: float = field(default_factory=time.monotonic)

    def started(self, what: str, total: int, plan: object) -> None:
        self.watch.started(what, total, plan)

    def advanced(self, what: str, done: int, stats: object, total: int | None = None) -> None:
        self.watch.advanced(what, done, stats, total)
        if time.monotonic() - self._last > SECONDS:
            self._keep()

    def waits(self, who: str, seconds: float) -> None:
        self.watch.waits(who, seconds)

    def noticed(self, remark: str) -> None:
        self.watch.noticed(remark)

    def finished(self, result: object) -> None:
        self.watch.finished(result)
        self._keep()

    def _keep(self) -> None:
        self.run.keep()
        self._last = time.monotonic()
