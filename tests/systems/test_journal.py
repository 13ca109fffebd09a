"""What became of each task is written down line by line, read back as it was, and tabled."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.engines.base import Usage
from echo_hf.errors import RunError
from echo_hf.systems.base import OutcomeStage
from echo_hf.systems.journal import (
    Journal,
    JournalEntry,
    NotTabled,
    build_outputs_table,
    count_untabled,
    drop_samples,
    hash_signature,
    lock_run,
    lock_systems,
    open_journals,
    write_outputs,
)
from echo_hf.tables import OUTPUTS, Outcome
from tests.errors_for_tests import said_by
from tests.systems.runs_for_tests import entry, png, sha

FILE = "outputs/mine.jsonl"
WORDS = st.text(st.characters(exclude_categories=["Cs"]))
PLAIN = st.recursive(st.none() | st.booleans() | st.integers() | WORDS, st.lists, max_leaves=4)
ENTRIES = st.builds(
    JournalEntry,
    sample_id=st.sampled_from("abcd"),
    sample_digest=st.just("d"),
    split=st.just("text_to_image"),
    signature=st.sampled_from(["s1", "s2"]),
    outcome=st.sampled_from(Outcome),
    image=st.none() | st.just(sha(b"x")),
    stage=st.none() | st.sampled_from(OutcomeStage),
    text=st.none() | WORDS,
    draw=st.integers(0, 2),
    seed=st.none() | st.integers(0, 2**31),
    usage=st.none() | st.builds(Usage, st.integers(0, 9), st.integers(0, 9)),
    cost_usd=st.none() | st.floats(0, 9),
    latency_s=st.none() | st.floats(0, 9),
    attempts=st.integers(0, 20),
    details=st.dictionaries(WORDS, PLAIN, max_size=2),
)
STEPS = st.lists(
    st.one_of(
        ENTRIES,
        st.just("open it again"),
        st.binary(min_size=1, max_size=9).map(lambda half: half.replace(b"\n", b"{")),
        st.sets(st.sampled_from("abcd"), max_size=2).map(frozenset),
    ),
    max_size=12,
)


@given(STEPS)
def test_it_reads_back_as_a_mapping_would(steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root, model = Path(folder), dict[tuple[str, int], JournalEntry]()
        journal = Journal(root, "mine")
        for step in steps:
            if isinstance(step, JournalEntry):
                journal.add(step)
                model[step.sample_id, step.draw] = step
            elif isinstance(step, bytes):
                journal.path.parent.mkdir(exist_ok=True)
                with journal.path.open("ab") as file:
                    file.write(step)
            elif isinstance(step, frozenset):
                drop_samples(root, step)
                model = {key: one for key, one in model.items() if key[0] not in step}
                journal = Journal(root, "mine")
            else:
                journal = Journal(root, "mine")
        assert dict(Journal(root, "mine").entries) == model


def test_a_signature_is_written_down_once_and_says_what_it_stands_for(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "mine")
    first = journal.sign({"model": "m", "seed": 0}, "always the same")
    assert (
        journal.sign({"seed": 0, "model": "m"})
        == first
        == hash_signature({"seed": 0, "model": "m"})
    )
    journal.add(entry(0, signature=first))
    assert journal.sign({"model": "m", "seed": 1}) != first
    Journal(tmp_path, "mine").sign({"model": "m", "seed": 1})
    assert len((tmp_path / FILE).read_bytes().splitlines()) == 3


@pytest.mark.parametrize("wrong", [{"seed": "many"}, {"details": {"a": {1, 2}}}])
def test_what_could_not_be_read_back_is_not_written(tmp_path: Path, wrong: dict[str, Any]) -> None:
    journal = Journal(tmp_path, "mine")
    journal.add(entry(0))
    said = said_by(RunError, journal.add, entry(1, **wrong))
    assert "the output of 's1' cannot be written down" in said
    assert Journal(tmp_path, "mine").entries.keys() == journal.entries.keys() == {("s0", 0)}


WHOLE = {"sample_id": "a", "sample_digest": "d", "split": "t", "signature": "s", "outcome": "ok"}
DAMAGED = [
    *(b"{", b"", b"[]", b"null", b"\xff", b"[" * 100_000),
    b'{"signature": "s", "describes": []}',
    json.dumps({**WHOLE, "image": "../../secret"}).encode(),
    json.dumps({**WHOLE, "colour": "red"}).encode(),
]


@pytest.mark.parametrize("line", DAMAGED, ids=lambda line: repr(line[-24:]))
def test_a_line_that_is_no_output_is_named(tmp_path: Path, line: bytes) -> None:
    Journal(tmp_path, "mine").add(entry(0))
    damaged = (tmp_path / FILE).read_bytes() + line + b"\n"
    (tmp_path / FILE).write_bytes(damaged)
    for read in (lambda: Journal(tmp_path, "mine"), lambda: drop_samples(tmp_path, {"s0"})):
        said = said_by(RunError, read)
        assert "mine.jsonl', line 2, is not an output" in said
        assert "remove the line" in said
    assert (tmp_path / FILE).read_bytes() == damaged


def test_every_journal_of_a_run_is_found(tmp_path: Path) -> None:
    for name in ("b", "a"):
        Journal(tmp_path, name).add(entry(0, outcome=Outcome.OK, image=sha(png(name))))
    (tmp_path / "outputs" / ".a.lock").touch()
    (tmp_path / "outputs" / ".a.jsonl.partial").write_text("half")
    assert [one.system for one in open_journals(tmp_path)] == ["a", "b"]
    assert [one.images for one in open_journals(tmp_path)] == [{sha(png("a"))}, {sha(png("b"))}]
    assert open_journals(tmp_path / "nowhere") == []


def test_a_dropped_sample_is_in_no_byte(tmp_path: Path) -> None:
    for name in ("with", "without"):
        journal = Journal(tmp_path, name)
        journal.sign({"model": "m"})
        journal.add(entry(1))
    journal = Journal(tmp_path, "with")
    journal.add(entry(7, text="zimtstern"))
    journal.add(entry(7, text="again"))
    with journal.path.open("ab") as file:
        file.write(b'{"sample_id": "s7", "text": "zimtst')
    before = Journal(tmp_path, "without").path.stat().st_mtime_ns

    drop_samples(tmp_path, {"s7"})
    held = journal.path.read_bytes()
    assert (b"s7" in held, b"zimt" in held) == (False, False)
    assert set(Journal(tmp_path, "with").entries) == {("s1", 0)}
    assert Journal(tmp_path, "with").sign({"model": "m"}) == hash_signature({"model": "m"})
    assert Journal(tmp_path, "without").path.stat().st_mtime_ns == before


def test_the_first_draw_of_a_sample_reads_as_it_did_before_there_were_several(
    tmp_path: Path,
) -> None:
    journal = Journal(tmp_path, "mine")
    journal.add(entry(0))
    journal.add(entry(0, draw=1))
    first, second = map(json.loads, (tmp_path / FILE).read_bytes().splitlines())
    assert ("draw" in first, second["draw"]) == (False, 1)
    assert [*Journal(tmp_path, "mine").entries] == [("s0", 0), ("s0", 1)]
    drop_samples(tmp_path, {"s0"})
    assert Journal(tmp_path, "mine").entries == {}


def test_two_at_work_on_one_system_are_one_line(tmp_path: Path) -> None:
    with lock_run(tmp_path):
        assert not (tmp_path / "outputs").exists()
    Journal(tmp_path, "before").add(entry(0))
    with lock_run(tmp_path, ["next"]):
        for name in ("before", "next"):
            busy = rf"another process .* '{name}' .*--systems"
            with pytest.raises(RunError, match=busy) as raised, lock_systems(tmp_path, [name]):
                pass
            assert "\n" not in str(raised.value)
        with lock_systems(tmp_path, ["theirs"]):
            pass
    with lock_systems(tmp_path, ["before", "next"]):
        pass


# The table.


def test_a_row_says_what_the_entry_says(tmp_path: Path) -> None:
    """Column by column, by hand; what decided the image is its provenance."""
    journal = Journal(tmp_path, "mine")
    who = {"model": "m-1", "status": "substitute"}
    signature = journal.sign({"model": "m"}, "the same on the same machine", who)
    alike = {
        "code": "moderated",
        "text": "No.",
        "seed": 3,
        "revised_prompt": "r",
        "model_reported": "m-1",
        "cost_usd": 0.25,
        "latency_s": 1.5,
    }
    aside = {"signature": signature, "attempts": 2, "at": "2026-01-01", "details": {"a": 1}}
    ends = {"outcome": Outcome.REFUSED, "stage": OutcomeStage.INPUT}
    journal.add(entry(0, **alike, **aside, **ends, usage=Usage(5, 6, 1)))
    (row,) = build_outputs_table(tmp_path).to_pylist()
    assert json.loads(row.pop("provenance")) == {
        **aside,
        "made_by": "echo_hf.systems.journal",
        "system": {"model": "m"},
        "determinism": "the same on the same machine",
        "answered_by": who,
        "split": "text_to_image",
    }
    assert row == {
        **alike,
        "sample_id": "s0",
        "system": "mine",
        "draw": 0,
        "sample_digest": sha(b"fox0"),
        "image": None,
        "outcome": "refused",
        "stage": "input",
        "usage": {"prompt_tokens": 5, "completion_tokens": 6, "cached_tokens": 1},
    }


def test_settings_are_never_mixed_under_one_name(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "mine")
    first = journal.sign({"seed": 0})
    for number in (0, 1, 2):
        journal.add(entry(number, signature=first))
    second = journal.sign({"seed": 1})
    journal.add(entry(0, signature=second))
    Journal(tmp_path, "theirs").add(entry(0))

    def rows() -> list[tuple[str, str]]:
        found = build_outputs_table(tmp_path).to_pylist()
        return sorted((row["system"], row["sample_id"]) for row in found)

    assert rows() == [("mine", "s0"), ("theirs", "s0")]
    assert count_untabled(tmp_path) == {"mine": {NotTabled.OTHER_SETTINGS: 2}}
    journal.sign({"seed": 0})
    assert rows() == [("mine", "s1"), ("mine", "s2"), ("theirs", "s0")]
    assert count_untabled(tmp_path) == {"mine": {NotTabled.OTHER_SETTINGS: 1}}


def test_who_writes_last_has_read_last(tmp_path: Path) -> None:
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


def test_a_table_that_is_none_stays_and_is_named(tmp_path: Path) -> None:
    path = tmp_path / "outputs.parquet"
    for row in (None, {"sample_id": "a"}, {**dict.fromkeys(OUTPUTS.columns), "seed": "x"}):
        if row is None:
            path.write_bytes(b"PAR1 no")
        else:
            pq.write_table(pa.Table.from_pylist([row]), path)
        before = path.read_bytes()
        said = said_by(RunError, write_outputs, tmp_path)
        assert "outputs.parquet' is not a table of outputs" in said
        assert path.read_bytes() == before
