"""The table of outputs is what the journals tell."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Barrier, Thread

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from echo_hf.engines.base import Usage
from echo_hf.errors import RunError
from echo_hf.reasons import NotTabled, Outcome, OutcomeStage
from echo_hf.systems.journal import Journal, not_tabled, outputs_table, write_outputs
from echo_hf.tables import OUTPUTS
from tests.systems.runs_for_tests import entry, sha


def test_a_row_says_what_the_entry_says(tmp_path: Path) -> None:
    """Column by column, by hand; what decided the image is its provenance."""
    journal = Journal(tmp_path, "mine")
    signature = journal.sign({"model": "m"}, "the same on the same machine")
    journal.add(
        entry(
            0,
            signature=signature,
            outcome=Outcome.REFUSED,
            stage=OutcomeStage.INPUT,
            code="moderated",
            text="No.",
            seed=3,
            revised_prompt="r",
            model_reported="m-1",
            usage=Usage(5, 6, 1),
            cost_usd=0.25,
            latency_s=1.5,
            attempts=2,
            at="2026-01-01T00:00:00+00:00",
            details={"size": "auto"},
        )
    )
    (row,) = outputs_table(tmp_path).to_pylist()
    provenance = json.loads(row.pop("provenance"))
    assert row == {
        "sample_id": "s0",
        "system": "mine",
        "sample_digest": sha(b"fox0"),
        "image": None,
        "outcome": "refused",
        "stage": "input",
        "code": "moderated",
        "text": "No.",
        "seed": 3,
        "revised_prompt": "r",
        "model_reported": "m-1",
        "latency_s": 1.5,
        "usage": {"prompt_tokens": 5, "completion_tokens": 6, "cached_tokens": 1},
        "cost_usd": 0.25,
    }
    assert provenance == {
        "made_by": "echo_hf.systems.journal",
        "signature": signature,
        "system": {"model": "m"},
        "determinism": "the same on the same machine",
        "split": "text_to_image",
        "attempts": 2,
        "at": "2026-01-01T00:00:00+00:00",
        "details": {"size": "auto"},
    }


def test_settings_are_never_mixed_under_one_name(tmp_path: Path) -> None:
    """The last ones alone have rows; the others are counted, kept, and come back with theirs."""
    journal = Journal(tmp_path, "mine")
    first = journal.sign({"seed": 0})
    for number in (0, 1, 2):
        journal.add(entry(number, signature=first))
    second = journal.sign({"seed": 1})
    journal.add(entry(0, signature=second))
    Journal(tmp_path, "theirs").add(entry(0))

    def rows() -> list[tuple[str, str]]:
        found = outputs_table(tmp_path).to_pylist()
        return sorted((row["system"], row["sample_id"]) for row in found)

    assert rows() == [("mine", "s0"), ("theirs", "s0")]
    assert not_tabled(tmp_path) == {"mine": {NotTabled.OTHER_SETTINGS: 2}}
    journal.sign({"seed": 0})
    assert rows() == [("mine", "s1"), ("mine", "s2"), ("theirs", "s0")]
    assert not_tabled(tmp_path) == {"mine": {NotTabled.OTHER_SETTINGS: 1}}


def test_an_empty_run_has_an_empty_table(tmp_path: Path) -> None:
    """With the declared columns."""
    assert pq.read_table(write_outputs(tmp_path)).schema.equals(OUTPUTS.schema)
    assert outputs_table(tmp_path).num_rows == 0


def test_who_writes_last_has_read_last(tmp_path: Path) -> None:
    """Four that end at a time, each after its own output: the table holds all."""
    together = Barrier(4)

    def end(number: int) -> None:
        together.wait(30)
        Journal(tmp_path, f"system{number}").add(entry(number))
        write_outputs(tmp_path)

    threads = [Thread(target=end, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    found = pq.read_table(tmp_path / "outputs.parquet")["system"].to_pylist()
    assert sorted(found) == [f"system{number}" for number in range(4)]


@pytest.mark.parametrize("damage", ["bytes", "columns", "types"])
def test_a_table_that_is_none_stays_and_is_named(tmp_path: Path, damage: str) -> None:
    """One line; nobody's rows are lost."""
    path = tmp_path / "outputs.parquet"
    if damage == "bytes":
        path.write_bytes(b"PAR1 no")
    else:
        row = {"sample_id": "a"} if damage == "columns" else {**dict.fromkeys(OUTPUTS.columns)}
        pq.write_table(pa.Table.from_pylist([{**row, "seed": "x"}]), path)
    before = path.read_bytes()
    with pytest.raises(RunError, match=r"outputs\.parquet' is not a table of outputs") as raised:
        write_outputs(tmp_path)
    assert "\n" not in str(raised.value)
    assert path.read_bytes() == before
