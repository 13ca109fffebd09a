"""The table of people's ranks: made of the log, beside what came from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from echo_hf.apps.rank.rank import HumanTable, write_human
from echo_hf.apps.rank.session import APP, Ranker
from echo_hf.errors import RunError
from echo_hf.reasons import LeftOut
from echo_hf.tables import HUMAN
from tests.apps.rank.test_session import did, ranker, sample

Row = dict[str, Any]


def row(sample: str, rater: str, system: str, rank: int | None) -> Row:
    """A row of the table."""
    key = {"sample_id": sample, "rater": rater, "system": system}
    return {**key, "rank": rank, "cannot_rank": rank is None}


@pytest.fixture
def ranked(tmp_path: Path) -> Ranker:
    """Two samples with three outputs each."""
    return ranker(tmp_path, *(sample(name, "ash", "elm", "oak") for name in ("s1", "s2")))


def written(tmp_path: Path, ranked: Ranker) -> HumanTable:
    """Writes the table."""
    return write_human(tmp_path, ranked.log.events(APP), ranked.draw)


def rows(tmp_path: Path) -> list[Row]:
    """What the table holds."""
    found: list[Row] = pq.read_table(tmp_path / "human.parquet").to_pylist()
    return found


def place(ranked: Ranker, person: str, **ranks: int) -> None:
    """Ranks systems of the sample that a person is at."""
    shown = [one.system for one in ranked.view(person).outputs]
    for system, rank in ranks.items():
        did(ranked, person, "place", item=shown.index(system), rank=rank)


def test_rows_are_ranks_of_systems(tmp_path: Path, ranked: Ranker) -> None:
    """Ties are equal, gaps are closed, and what cannot be ranked says so."""
    place(ranked, "ann", ash=3, elm=1, oak=3)
    place(ranked, "ben", ash=1, elm=2)
    did(ranked, "cy", "impossible")
    assert written(tmp_path, ranked) == HumanTable(tmp_path / "human.parquet", 2, 0, {})
    nothing = [row("s1", "cy", system, None) for system in ("ash", "elm", "oak")]
    ann = [row("s1", "ann", name, rank) for name, rank in {"ash": 2, "elm": 1, "oak": 2}.items()]
    assert rows(tmp_path) == [*ann, *nothing]
    assert pq.read_schema(tmp_path / "human.parquet").equals(HUMAN.schema)


def test_writing_again_changes_no_byte(tmp_path: Path, ranked: Ranker) -> None:
    """The file is the same, and not even written."""
    place(ranked, "ann", ash=1, elm=2, oak=3)
    path = written(tmp_path, ranked).path
    before = path.read_bytes(), path.stat().st_mtime_ns
    written(tmp_path, ranked)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_nothing_ranked_makes_no_file(tmp_path: Path, ranked: Ranker) -> None:
    """Somebody has only looked."""
    did(ranked, "ann", "next")
    assert written(tmp_path, ranked).rankings == 0
    assert not (tmp_path / "human.parquet").exists()


def test_ranks_from_elsewhere_stay(tmp_path: Path, ranked: Ranker) -> None:
    """Of other people, and of people of the app about samples that they did not rank in it."""
    elsewhere = [row("s1", "zoe", "ash", 1), row("s2", "ann", "ash", 4), row("gone", "x", "y", 1)]
    mine = [row("s1", "ann", "ash", 9)]
    table = pa.Table.from_pylist([*elsewhere, *mine], HUMAN.schema)
    pq.write_table(table, tmp_path / "human.parquet")
    place(ranked, "ann", ash=1, elm=2, oak=3)
    assert written(tmp_path, ranked).kept == 3
    found = rows(tmp_path)
    assert [one for one in elsewhere if one not in found] == []
    assert row("s1", "ann", "ash", 1) in found
    assert mine[0] not in found
    assert len(found) == 6


def test_what_is_taken_back_leaves_the_table(tmp_path: Path, ranked: Ranker) -> None:
    """Also when the file had it already."""
    did(ranked, "ann", "impossible")
    written(tmp_path, ranked)
    did(ranked, "ann", "undo")
    assert written(tmp_path, ranked).rankings == 0
    assert rows(tmp_path) == []


def test_ranks_of_images_that_are_gone_are_counted(tmp_path: Path, ranked: Ranker) -> None:
    """One system is gone, one drew anew: the third keeps its rank; another prompt ends all."""
    place(ranked, "ann", ash=1, elm=2, oak=3)
    events = ranked.log.events(APP)
    other = ranker(tmp_path, sample("s1", "elm", "oak"))
    result = write_human(tmp_path, events, other.draw)
    assert result.left_out == {LeftOut.OTHER_OUTPUT: 1}
    assert rows(tmp_path) == [row("s1", "ann", "elm", 2), row("s1", "ann", "oak", 3)]
    anew = ranker(tmp_path, sample("s1", "ash", "elm", "oak", digest="e"))
    assert write_human(tmp_path, events, anew.draw).left_out == {LeftOut.OTHER_OUTPUT: 3}


def test_a_table_that_cannot_be_read_is_not_written_over(tmp_path: Path, ranked: Ranker) -> None:
    """It may hold what nothing else does."""
    (tmp_path / "human.parquet").write_text("ranks, by hand", "utf-8")
    did(ranked, "ann", "impossible")
    with pytest.raises(RunError, match="is not a table of human"):
        written(tmp_path, ranked)
    assert (tmp_path / "human.parquet").read_text("utf-8") == "ranks, by hand"
