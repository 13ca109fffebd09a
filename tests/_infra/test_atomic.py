"""Files and folders are replaced as a whole or not at all, and held by one process at a time."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from echo_hf._infra.atomic import held, replaced_file, replaced_whole, restore
from echo_hf.errors import ReleaseError, ReviewError, RunError
from tests.stages_for_tests import ROOT


def contents(folder: Path) -> dict[str, str]:
    """Every file under a folder with its text."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A folder with something in it."""
    folder = tmp_path / "release"
    (folder / "analysis").mkdir(parents=True)
    (folder / "analysis" / "rows").write_text("old")
    return folder


def test_the_new_folder_replaces_the_old_one(old: Path) -> None:
    """Nothing of the old folder is left, in it or beside it."""
    with replaced_whole(old, {"analysis"}) as partial:
        (partial / "card").write_text("new")
    assert contents(old.parent) == {"release/card": "new"}
    assert [path.name for path in old.parent.iterdir()] == ["release"]


def test_the_old_folder_stays_until_the_new_one_is_complete(old: Path) -> None:
    """While the new one is written, the old one is read as before."""
    with replaced_whole(old, {"analysis"}) as partial:
        (partial / "card").write_text("new")
        assert contents(old) == {"analysis/rows": "old"}


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_leaves_the_old_folder(old: Path, error: type[BaseException]) -> None:
    """What was begun is removed, whatever ended it."""
    with pytest.raises(error), replaced_whole(old, {"analysis"}) as partial:  # noqa: PT012
        (partial / "card").write_text("new")
        raise error
    assert contents(old.parent) == {"release/analysis/rows": "old"}


def test_a_folder_that_is_not_there_is_made(tmp_path: Path) -> None:
    """Parents are made as well."""
    with replaced_whole(tmp_path / "a" / "b", set()) as partial:
        (partial / "card").write_text("new")
    assert contents(tmp_path) == {"a/b/card": "new"}


def test_a_kill_between_the_renames_is_mended(old: Path) -> None:
    """The old folder was only moved aside: whoever looks next puts it back."""
    old.rename(old.parent / ".release.previous")
    restore(old)
    assert contents(old.parent) == {"release/analysis/rows": "old"}


def test_a_kill_after_the_renames_keeps_the_new_folder(old: Path) -> None:
    """The folder in place is complete: what lies aside never takes its place."""
    aside = old.parent / ".release.previous"
    aside.mkdir()
    (aside / "rows").write_text("older")
    restore(old)
    assert contents(old) == {"analysis/rows": "old"}


def test_what_killed_runs_left_is_cleared_by_the_next(old: Path) -> None:
    """Neither half a folder nor an old one stays beside the release, nor gets into it."""
    for role in ("partial", "previous"):
        (old.parent / f".release.{role}").mkdir()
        (old.parent / f".release.{role}" / "litter").write_text("x")
    with replaced_whole(old, {"analysis"}) as partial:
        (partial / "card").write_text("new")
    assert contents(old.parent) == {"release/card": "new"}


def test_foreign_files_are_never_deleted(old: Path) -> None:
    """A folder that holds anything else, hidden or not, is refused by name and left alone."""
    (old / ".git").mkdir()
    (old / ".git" / "HEAD").write_text("ref")
    before = contents(old.parent)
    with pytest.raises(ReleaseError, match=r"'\.git'"), replaced_whole(old, {"analysis"}):
        pass
    assert contents(old.parent) == before


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    """A file is not replaced by a folder."""
    (tmp_path / "release").write_text("mine")
    with (
        pytest.raises(ReleaseError, match="is a file"),
        replaced_whole(tmp_path / "release", set()),
    ):
        pass
    assert (tmp_path / "release").read_text() == "mine"


def test_a_file_is_replaced_when_all_of_it_is_written(tmp_path: Path) -> None:
    """Until then the old one is there, beside no other; two writers do not disturb each other."""
    path = tmp_path / "file"
    path.write_text("old")
    with replaced_file(path) as first, replaced_file(path) as second:
        first.write_text("first")
        second.write_text("second")
        assert path.read_text() == "old"
        assert all(one.match(".*.partial") for one in (first, second))
    assert contents(tmp_path) == {"file": "first"}


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file(tmp_path: Path, error: type[BaseException]) -> None:
    """What was begun is removed, whatever ended it."""
    (tmp_path / "file").write_text("old")
    with pytest.raises(error), replaced_file(tmp_path / "file") as partial:  # noqa: PT012
        partial.write_text("new")
        raise error
    assert contents(tmp_path) == {"file": "old"}


def test_who_comes_second_is_told_what_the_first_is_at(tmp_path: Path) -> None:
    """In the words of the caller; afterwards the file is free."""
    place, busy = tmp_path / "lock", ReviewError("somebody decides")
    for _ in range(2):
        with held(place, busy), pytest.raises(ReviewError, match="decides"), held(place, busy):
            pass


def test_a_place_that_cannot_be_locked_is_named(tmp_path: Path) -> None:
    """Such as one below a file."""
    (tmp_path / "file").write_text("x")
    place = tmp_path / "file" / "lock"
    with (
        pytest.raises(RunError, match=re.escape(f"cannot lock {str(place)!r} (")),
        held(place, RunError("busy")),
    ):
        pass


def test_nothing_else_takes_locks() -> None:
    """Else a file system without locks is told without the name of the file."""
    files = (ROOT / "echo_hf").rglob("*.py")
    taking = [file.name for file in files if "import FileLock" in file.read_text("utf-8")]
    assert taking == ["atomic.py"]
