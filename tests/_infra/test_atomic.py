"""Files and folders are replaced as a whole or not at all, and held by one process at a time."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from echo_hf._infra.atomic import lock_file, replace_file, replace_folder, restore_folder
from echo_hf.errors import ReleaseError, ReviewError, RunError
from tests.stages_for_tests import ROOT


def contents(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    folder = tmp_path / "release"
    (folder / "analysis").mkdir(parents=True)
    (folder / "analysis" / "rows").write_text("old")
    return folder


@pytest.mark.parametrize("litter", [(), ("partial", "previous")])
def test_the_new_folder_replaces_the_old_one(old: Path, litter: tuple[str, ...]) -> None:
    for role in litter:
        (old.parent / f".release.{role}").mkdir()
        (old.parent / f".release.{role}" / "litter").write_text("x")
    with replace_folder(old, {"analysis"}) as partial:
        (partial / "card").write_text("new")
        assert contents(old) == {"analysis/rows": "old"}
    assert contents(old.parent) == {"release/card": "new"}
    assert [path.name for path in old.parent.iterdir()] == ["release"]
    with replace_folder(old / "a" / "b", set()) as partial:  # parents are made
        (partial / "card").write_text("new")
    assert (old / "a" / "b" / "card").read_text() == "new"


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_an_error_leaves_what_was_there(old: Path, error: type[BaseException], kind: str) -> None:
    replaced: AbstractContextManager[Path] = replace_folder(old, {"analysis"})
    if kind == "file":
        replaced = replace_file(old / "analysis" / "rows")
    with pytest.raises(error), replaced as partial:  # noqa: PT012
        (partial if kind == "file" else partial / "card").write_text("new")
        raise error
    assert contents(old.parent) == {"release/analysis/rows": "old"}


def test_a_kill_between_or_after_the_renames_is_mended(old: Path) -> None:
    """The old folder was only moved aside; one in place is never replaced by what lies aside."""
    aside = old.parent / ".release.previous"
    old.rename(aside)
    restore_folder(old)
    assert contents(old.parent) == {"release/analysis/rows": "old"}
    aside.mkdir()
    (aside / "rows").write_text("older")
    restore_folder(old)
    assert contents(old) == {"analysis/rows": "old"}


def test_what_is_not_ours_is_never_deleted(old: Path) -> None:
    (old / ".git").write_text("ref")
    before = contents(old.parent)
    for place, said in ((old, r"'\.git'"), (old / ".git", "is a file")):
        with pytest.raises(ReleaseError, match=said), replace_folder(place, {"analysis"}):
            pass
    assert contents(old.parent) == before


def test_a_file_is_replaced_when_all_of_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with replace_file(path) as first, replace_file(path) as second:
        first.write_text("first")
        second.write_text("second")
        assert path.read_text() == "old"
        assert all(one.match(".*.partial") for one in (first, second))
    assert contents(tmp_path) == {"file": "first"}
    with pytest.raises(IsADirectoryError, match=r"'\.'"), replace_file(Path()):
        pass


def test_one_holds_a_file_at_a_time(tmp_path: Path) -> None:
    place, busy = tmp_path / "lock", ReviewError("somebody decides")
    for _ in range(2):
        with (
            lock_file(place, busy),
            pytest.raises(ReviewError, match="decides"),
            lock_file(place, busy),
        ):
            pass
    (tmp_path / "file").write_text("x")
    place = tmp_path / "file" / "lock"
    said: Any = re.escape(f"cannot lock {str(place)!r} (")
    with pytest.raises(RunError, match=said), lock_file(place, RunError("busy")):
        pass
    files = (ROOT / "echo_hf").rglob("*.py")  # else it would be told without the file's name
    taking = [file.name for file in files if "import FileLock" in file.read_text("utf-8")]
    assert taking == ["atomic.py"]
