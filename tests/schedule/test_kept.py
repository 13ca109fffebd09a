"""What is kept of a run can be fetched elsewhere, whenever the keeping was ended."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from echo_hf.errors import RunError
from echo_hf.schedule.turn import COUNT, UNFINISHED, KeptRun


@pytest.fixture
def run(tmp_path: Path) -> KeptRun:
    (tmp_path / "mount").mkdir()
    one = KeptRun(tmp_path / "here" / "run", tmp_path / "mount" / "run")
    for name in (
        "stages/collect/kept.parquet",
        "pictures/ab/abcd",
        "cache/x",
        ".lock",
        "outputs/.amber.lock",
        "a.partial",
    ):
        path = one.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return one


def names(folder: Path | None) -> set[str]:
    assert folder is not None
    return {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()}


def elsewhere(run: KeptRun) -> KeptRun:
    return KeptRun(run.folder.with_name("elsewhere") / "run", run.place)


KEPT = {"stages/collect/kept.parquet", "pictures/ab/abcd", COUNT}


def test_what_a_machine_needs_alone_stays_there(run: KeptRun) -> None:
    run.keep()
    assert names(run.place) == KEPT
    other = elsewhere(run)
    assert other.fetch() == "3 files fetched"
    assert names(other.folder) == KEPT
    assert other.fetch() == "what is here is the newest"


def test_what_was_deleted_here_is_deleted_there(run: KeptRun) -> None:
    """Posts that were forgotten do not live on in what is kept."""
    run.keep()
    (run.folder / "pictures/ab/abcd").unlink()
    run.keep()
    assert names(run.place) == KEPT - {"pictures/ab/abcd"}
    other = elsewhere(run)
    other.fetch()
    run.keep()
    (other.folder / "stray").write_text("of an older turn")
    other.fetch()
    assert names(other.folder) == names(run.place)


def test_the_newer_of_two_copies_counts(run: KeptRun) -> None:
    run.keep()
    other = elsewhere(run)
    other.fetch()
    (run.folder / "answers").write_text("of a killed turn")
    (run.folder / COUNT).write_text('{"kept": 7}')
    assert run.fetch() == "what is here is the newest"
    assert (run.folder / "answers").exists()
    run.keep()
    other.fetch()
    assert (other.folder / "answers").read_text() == "of a killed turn"


def test_a_run_that_was_built_by_hand_is_not_replaced(run: KeptRun) -> None:
    """A fetch that was killed leaves a mark, and is done again."""
    run.keep()
    other = elsewhere(run)
    other.folder.mkdir(parents=True)
    (other.folder / "answers").write_text("by hand")
    with pytest.raises(RunError, match="was built without --state"):
        other.fetch()
    assert names(other.folder) == {"answers"}
    (other.folder / UNFINISHED).touch()
    other.fetch()
    assert names(other.folder) == KEPT


def test_a_database_in_use_is_kept_with_all_that_is_committed(run: KeptRun) -> None:
    """The copy has no log beside it, and is never opened where it is kept."""
    path = run.folder / "answers.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as here:
        here.execute("pragma journal_mode = wal")
        here.execute("create table answer (text)")
        for number in range(3):
            here.execute("insert into answer values (?)", (f"answer {number}",))
            run.keep()
            assert run.place is not None
            assert not list(run.place.glob("*-wal"))
            copy = run.folder.with_name("copy.sqlite")
            shutil.copyfile(run.place / "answers.sqlite", copy)
            with closing(sqlite3.connect(copy)) as there:
                assert there.execute("select count(*) from answer").fetchone() == (number + 1,)


def test_an_older_log_is_not_read_into_a_fetched_database(run: KeptRun) -> None:
    with closing(sqlite3.connect(run.folder / "answers.sqlite")) as here:
        here.execute("create table newer (text)")
    run.keep()
    other = elsewhere(run)
    other.folder.mkdir(parents=True)
    (other.folder / UNFINISHED).touch()
    for ending in ("", "-wal", "-shm"):
        (other.folder / f"answers.sqlite{ending}").write_bytes(b"older")
    other.fetch()
    assert {one for one in names(other.folder) if "sqlite" in one} == {"answers.sqlite"}
    with closing(sqlite3.connect(other.folder / "answers.sqlite")) as there:
        assert there.execute("select name from sqlite_master").fetchall() == [("newer",)]


def test_of_a_keeping_that_was_killed_results_are_made_again(run: KeptRun) -> None:
    """Half of them may be older; what they are made of, answers and images, is whole."""
    run.keep()
    assert run.place is not None
    (run.place / UNFINISHED).touch()
    other = elsewhere(run)
    other.fetch()
    assert names(other.folder) == KEPT - {"stages/collect/kept.parquet"}


def test_a_mount_that_is_not_there_is_no_empty_one(run: KeptRun, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="expected a folder; mount it"):
        KeptRun(run.folder, tmp_path / "no mount" / "run").fetch()


@pytest.mark.parametrize("place", ["mount/run", "here/run", "here/run/run", "here"])
def test_files_of_others_are_not_mirrored_away(run: KeptRun, tmp_path: Path, place: str) -> None:
    """A config's folder often has the name that the config has, and stands where runs are kept."""
    (tmp_path / place).mkdir(parents=True, exist_ok=True)
    (tmp_path / place / "benchmark.yaml").touch()
    before = names(tmp_path)
    with pytest.raises(RunError, match="has other files, which a turn would delete"):
        KeptRun(run.folder, tmp_path / place).fetch()
    assert names(tmp_path) == before
