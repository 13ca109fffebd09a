"""What became of each task is written down line by line, and read back as it was."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.engines.base import Usage
from echo_hf.errors import RunError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.journal import (
    SETTLED,
    Journal,
    JournalEntry,
    digest_of,
    drop_samples,
    journals,
)
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
    """Entries, processes that die in the middle of a line, new ones, and samples taken out."""
    with tempfile.TemporaryDirectory() as folder:
        root, model = Path(folder), dict[str, JournalEntry]()
        journal = Journal(root, "mine")
        for step in steps:
            if isinstance(step, JournalEntry):
                journal.add(step)
                model[step.sample_id] = step
            elif isinstance(step, bytes):
                journal.path.parent.mkdir(exist_ok=True)
                with journal.path.open("ab") as file:
                    file.write(step)
            elif isinstance(step, frozenset):
                drop_samples(root, step)
                model = {name: one for name, one in model.items() if name not in step}
                journal = Journal(root, "mine")
            else:
                journal = Journal(root, "mine")
        assert dict(Journal(root, "mine").entries) == model


def test_a_signature_is_written_down_once_and_says_what_it_stands_for(tmp_path: Path) -> None:
    """A digest of its content, in whatever order; another content is another one."""
    journal = Journal(tmp_path, "mine")
    first = journal.sign({"model": "m", "seed": 0})
    assert journal.sign({"seed": 0, "model": "m"}) == first == digest_of({"seed": 0, "model": "m"})
    second = journal.sign({"model": "m", "seed": 1})

    again = Journal(tmp_path, "mine")
    assert second != first
    assert again.describes(first) == {"model": "m", "seed": 0}
    assert again.describes("unheard of") == {}
    again.sign({"model": "m", "seed": 1})
    assert len((tmp_path / FILE).read_bytes().splitlines()) == 2


def test_what_a_seed_gives_stands_with_the_signature(tmp_path: Path) -> None:
    """As the system said it; an older journal says nothing."""
    journal = Journal(tmp_path, "mine")
    first = journal.sign({"seed": 0}, "always the same")
    second = journal.sign({"seed": 1})
    again = Journal(tmp_path, "mine")
    for one in (journal, again):
        assert (one.determinism(first), one.determinism(second)) == ("always the same", None)


def test_the_current_settings_are_those_of_the_last_line(tmp_path: Path) -> None:
    """Signed or drawn with; also where earlier settings come back, and when it is opened again."""
    journal = Journal(tmp_path, "mine")
    assert journal.current is None
    first, second = journal.sign({"seed": 0}), journal.sign({"seed": 1})
    assert Journal(tmp_path, "mine").current == journal.current == second
    journal.sign({"seed": 0})
    assert Journal(tmp_path, "mine").current == journal.current == first
    journal.add(entry(0, signature=second))
    assert Journal(tmp_path, "mine").current == journal.current == second


@pytest.mark.parametrize(
    "wrong", [{"seed": object()}, {"seed": "many"}, {"details": {"a": {1, 2}}}, {"image": "../x"}]
)
def test_what_could_not_be_read_back_is_not_written(tmp_path: Path, wrong: dict[str, Any]) -> None:
    """One line, and the file stays one that every later command can read."""
    journal = Journal(tmp_path, "mine")
    journal.add(entry(0))
    with pytest.raises(RunError, match=r"the output of 's1' cannot be written down") as raised:
        journal.add(entry(1, **wrong))
    assert "\n" not in str(raised.value)
    assert Journal(tmp_path, "mine").entries.keys() == journal.entries.keys() == {"s0"}


def test_threads_write_whole_lines(tmp_path: Path) -> None:
    """Eight threads at a time: every line is there, and none in the middle of another."""
    journal = Journal(tmp_path, "mine")

    def write(first: int) -> None:
        for number in range(first, first + 10):
            journal.add(entry(number, text="x" * 3000))

    threads = [Thread(target=write, args=(10 * number,)) for number in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert set(Journal(tmp_path, "mine").entries) == {f"s{number}" for number in range(80)}


def test_half_a_line_is_cut_off_by_the_next_one(tmp_path: Path) -> None:
    """What a killed process left is no output, and does not spoil the one after it."""
    Journal(tmp_path, "mine").add(entry(0))
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole + whole[: len(whole) // 2])
    journal = Journal(tmp_path, "mine")
    assert set(journal.entries) == {"s0"}
    journal.add(entry(1))
    lines = (tmp_path / FILE).read_text("utf-8").splitlines()
    assert [json.loads(line)["sample_id"] for line in lines] == ["s0", "s1"]


DAMAGED = [
    b"{",
    b"",
    b'""',
    b"[]",
    b"null",
    b"7",
    b"\xff",
    b"[" * 100_000,
    b'{"signature": "s"}',
    b'{"signature": 5, "describes": {}}',
    b'{"signature": "s", "describes": []}',
    b'{"sample_id": "a", "sample_digest": "d", "split": "t", "signature": "s"}',
    *(
        json.dumps(
            {
                "sample_id": "a",
                "sample_digest": "d",
                "split": "t",
                "signature": "s",
                "outcome": "ok",
                **wrong,
            }
        ).encode()
        for wrong in (
            {"outcome": "fine"},
            {"stage": "nowhere"},
            {"image": "../../secret"},
            {"usage": "many"},
            {"sample_id": 5},
            {"colour": "red"},
            {"details": []},
        )
    ),
]


@pytest.mark.parametrize("line", DAMAGED, ids=lambda line: repr(line[-24:]))
def test_a_line_that_is_no_output_is_named(tmp_path: Path, line: bytes) -> None:
    """Nothing is guessed, and nothing is deleted: one line says which line it is."""
    Journal(tmp_path, "mine").add(entry(0))
    damaged = (tmp_path / FILE).read_bytes() + line + b"\n"
    (tmp_path / FILE).write_bytes(damaged)
    for read in (lambda: Journal(tmp_path, "mine"), lambda: drop_samples(tmp_path, {"s0"})):
        with pytest.raises(RunError, match=r"mine\.jsonl', line 2, is not an output") as raised:
            read()
        assert "\n" not in str(raised.value)
        assert "remove the line" in str(raised.value)
    assert (tmp_path / FILE).read_bytes() == damaged


@pytest.mark.parametrize("outcome", Outcome)
def test_failures_and_retired_models_are_asked_again(outcome: Outcome) -> None:
    """The four outcomes that asking again would not change are settled."""
    settled = outcome in ("ok", "refused", "no_image", "unsupported")
    assert entry(0, outcome=outcome).settled == settled == (outcome in SETTLED)


def test_every_journal_of_a_run_is_found(tmp_path: Path) -> None:
    """By name; locks and what a killed process left beside them are none."""
    for name in ("b", "a"):
        Journal(tmp_path, name).add(entry(0, outcome=Outcome.OK, image=sha(png(name))))
    (tmp_path / "outputs" / ".a.lock").touch()
    (tmp_path / "outputs" / ".a.jsonl.partial").write_text("half")
    assert [one.system for one in journals(tmp_path)] == ["a", "b"]
    assert [one.images for one in journals(tmp_path)] == [{sha(png("a"))}, {sha(png("b"))}]
    assert journals(tmp_path / "nowhere") == []


def test_a_dropped_sample_is_in_no_byte(tmp_path: Path) -> None:
    """Nor in an older line about it, nor in half a line; files without it are not touched."""
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
    assert set(Journal(tmp_path, "with").entries) == {"s1"}
    assert Journal(tmp_path, "with").describes(digest_of({"model": "m"})) == {"model": "m"}
    assert Journal(tmp_path, "without").path.stat().st_mtime_ns == before
