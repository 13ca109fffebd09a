"""The contract of a stage: same table in every runner, every row accounted for, one digest."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from datasets import Dataset, load_from_disk
from datasets.fingerprint import Hasher

from echo_hf.curate.splits import SampleReject
from echo_hf.engines.base import Failed
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.answers import Failure, StoredAnswers
from echo_hf.pipeline.stage import Stage, StageRows, parent_lists, row_keys
from echo_hf.samples.sample import SampleNotice
from echo_hf.tables import HUMAN, RATINGS, STRING, Column, Table
from tests.stages_for_tests import ROOT, Echo, EchoAgain, Guess, GuessShade, posts


def _mapped(stage: Stage, dataset: Dataset) -> list[dict[str, Any]]:
    made = dataset.with_format("arrow").map(stage, **stage.map_arguments(dataset))
    rows: list[dict[str, Any]] = made.with_format("arrow")[:].to_pylist()
    return rows


# Each changes one thing that decides the result.


@dataclass(frozen=True)
class Reworded(Guess):
    wording: ClassVar[str] = "Name it."

    @property
    def prompt(self) -> Any:
        return replace(super().prompt, text=self.wording)


def test_what_decides_the_result_changes_the_digest(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Parameters, version, prompt and schema do; a field without a digest does not."""
    stages = [Echo("!"), Echo("?"), EchoAgain("!"), Guess(), Guess(instructions="Name a colour!")]
    stages += [Guess(loud=True), GuessShade()]
    dataset = posts("red")
    for told in (
        [stage.digest() for stage in stages],
        [stage.map_arguments(dataset)["new_fingerprint"] for stage in stages],
        [Hasher.hash(stage) for stage in stages],
    ):
        assert len(set(told)) == len(stages)
    assert Echo("!", scratch="/a").digest() == Echo("!", scratch="/b").digest()
    assert "scratch" not in Echo().describe()["parameters"]
    dataset.save_to_disk(tmp_path)  # a map by hand reads back what an equal digest made
    for scratch in ("/a", "/b"):
        _mapped(Echo("!", scratch=scratch), load_from_disk(tmp_path))
    assert len(list(tmp_path.glob("cache-*.arrow"))) == 1
    before = Hasher.hash(Reworded())
    monkeypatch.setattr(Reworded, "wording", "Name it now.")
    assert Hasher.hash(Reworded()) != before


def test_the_engine_counts_in_the_digest_and_the_store_does_not(tmp_path: Path) -> None:
    with (
        closing(Store(tmp_path / "a.sqlite")) as store,
        closing(Store(tmp_path / "b.sqlite")) as other,
    ):
        digests = [
            Guess().answered_by(StoredAnswers(place, {"model": model})).digest()
            for place, model in ((store, "one"), (other, "one"), (store, "two"))
        ]
    assert digests[0] == digests[1]
    assert len({Guess().digest(), digests[0], digests[2]}) == 3


DIGESTS = """
import datetime
from dataclasses import dataclass
from datasets.fingerprint import Hasher
from echo_hf.collect.relevance import Relevance
from echo_hf.config.sections import Target
from tests.stages_for_tests import Echo, Guess
target = Target(name="Lumen", developer="Northlight", released=datetime.date(2026, 3, 2))
for stage in (Guess(), Relevance(target)):
    print(stage.digest(), Hasher.hash(stage))
print(Echo(frozenset(("a", "b", "c", "d"))).digest())
"""


def test_digest_and_hash_are_the_same_in_every_process() -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", DIGESTS], cwd=ROOT, env=environment, capture_output=True, check=True
    )
    here = io.StringIO()
    with contextlib.redirect_stdout(here):
        exec(DIGESTS, {})  # noqa: S102 - with another seed of hashes
    assert ran.stdout.decode() == here.getvalue()
    assert len(set(here.getvalue().splitlines())) == 3


@pytest.mark.parametrize(
    ("table", "row", "key"),
    [
        (HUMAN, {"sample_id": "s", "rater": "r", "system": "x"}, "s\x1fr\x1fx"),
        (HUMAN, {"sample_id": "s", "rater": None, "system": "x"}, "s\x1f\x1fx"),
        (
            RATINGS,
            {
                "sample_id": "s",
                "system": "x",
                "draw": 1,
                "judge": "j",
                "rubric": "overall",
                "repeat": 12,
            },
            "s\x1fx\x1f1\x1fj\x1foverall\x1f12",
        ),
    ],
)
def test_a_key_of_several_columns_is_one_string(table: Table, row: Any, key: str) -> None:
    given = pa.Table.from_pylist([row, row], schema=table.schema)
    pieces = pa.concat_tables([given.slice(1), given.slice(0, 0), given])
    assert row_keys(pieces, table).to_pylist() == [key] * 3
    assert row_keys(table.make_empty(), table).to_pylist() == []


@pytest.mark.parametrize("keys", [[], ["a", None, "c"]])
def test_each_key_is_a_list_of_its_own(keys: list[str | None]) -> None:
    wanted = [[key] for key in keys]
    assert parent_lists(pa.array(keys, pa.string())).to_pylist() == wanted
    assert parent_lists(pa.chunked_array([keys], pa.string())).to_pylist() == wanted


PAIRS = Table("pairs", "a pair", ("name",), {name: Column(STRING, name) for name in ("name", "of")})


def found(rows: StageRows) -> list[tuple[Any, ...]]:
    columns = ("_parent", "_status", "_reason", "_detail", "_request", "name")
    return [tuple(row[name] for name in columns) for row in rows.to_table().to_pylist()]


def test_what_becomes_of_a_row() -> None:
    rows = StageRows(PAIRS)
    rows.quarantine(2, "c", Failure(Failed.CUT, "length", "ff"))
    rows.add_issue(1, "b", SampleReject.TRASH)
    rows.add_issue(0, "a", SampleNotice.NEITHER, "x")
    rows.keep(0, "a", {"name": "first", "unknown": 1})
    assert found(rows) == [
        (["a"], "kept", None, None, None, "first"),
        (["a"], "noted", "neither", "x", None, None),
        (["b"], "rejected", "trash", None, None, None),
        (["c"], "quarantined", "cut", "length", "ff", None),
    ]


def test_rows_stand_in_the_order_of_the_input() -> None:
    """Of one input row, those kept come first; others keep the order in which they were added."""
    rows = StageRows(PAIRS)
    for number, (row, keeps) in enumerate([(2, 0), (0, 1), (2, 1), (1, 0), (2, 0), (0, 1)]):
        if keeps:
            rows.keep(row, f"k{row}", {"name": str(number), "of": None})
        else:
            rows.add_issue(row, f"k{row}", SampleNotice.NEITHER, str(number))
    order = [(parents[0], name or detail) for parents, _, _, detail, _, name in found(rows)]
    assert order == [
        *(("k0", "1"), ("k0", "5"), ("k1", "3")),
        *(("k2", "2"), ("k2", "0"), ("k2", "4")),
    ]
