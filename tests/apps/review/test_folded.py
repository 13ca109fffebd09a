"""From every click in the log to the one line that a build follows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from echo_hf.apps.events import EventLog
from echo_hf.apps.review.controller import APP, OPEN, Ledger, payload_of
from echo_hf.builder.review import made_decision
from echo_hf.curate.decisions import Decision, append_decisions, read_decisions
from tests.curate.reviewed_rows_for_tests import row

ROOT = Path(__file__).resolve().parents[3]
EDIT = {"prompt": {"text": "an owl", "modified": True}}
KILLED = """
import os, signal, sys
from pathlib import Path
from echo_hf.apps.review.controller import ReviewController
from echo_hf.builder.review import Case
from tests.curate.reviewed_rows_for_tests import row
import echo_hf.apps.review.controller as folded
folded.append_decisions = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
desk = ReviewController.of({"one": Case(row())}, {}, Path(sys.argv[1]))
desk.view("ann")
desk.act("ann", {"kind": "remove", "subject": "one", "base": 0})
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """An empty log beside no file."""
    return Ledger(EventLog(tmp_path / "events.sqlite"), tmp_path / "review.jsonl")


def act(
    ledger: Ledger, person: str, kind: str, base: int | None = None, changes: Any = None
) -> int:
    """Somebody decides about the sample; the number of the event."""
    made = Decision.model_validate({**made_decision(row(), kind).model_dump(), "changes": changes})
    return ledger.log.append(APP, "one", person, kind, payload_of(made), base).id


def last(ledger: Ledger) -> Decision:
    """What stands in the file, after all that the log has is in it."""
    ledger.catch_up()
    return read_decisions(ledger.file).by_id["one"]


def test_a_decision_is_a_line_with_who_and_when(ledger: Ledger) -> None:
    """All that a build needs is in the line; opening a sample is no decision."""
    ledger.log.append(APP, "one", "ann", OPEN)
    number = act(ledger, "ann", "keep", changes=EDIT)
    line = last(ledger)

    assert (line.decision, line.reviewer, line.event) == ("keep", "ann", number)
    assert line.changes is not None
    assert line.changes.named == ("prompt",)
    assert line.at is not None
    assert line.is_about(row())


def test_what_is_written_is_not_written_again(ledger: Ledger) -> None:
    """However often it catches up."""
    act(ledger, "ann", "keep")
    assert [ledger.catch_up() for _ in range(3)] == [1, 0, 0]
    assert len(ledger.file.read_text("utf-8").splitlines()) == 1


def test_what_is_taken_back_is_as_before(ledger: Ledger) -> None:
    """First the decision before, then none; an undo that is undone stands again."""
    first = act(ledger, "ann", "keep")
    second = act(ledger, "ann", "remove", first)
    assert last(ledger).decision == "remove"
    undone = ledger.log.undo(second, "ann")
    assert last(ledger).decision == "keep"
    ledger.log.undo(first, "ann")
    assert (last(ledger).decision, last(ledger).changes) == ("withdraw", None)
    ledger.log.undo(undone.id, "ann")
    assert last(ledger).decision == "remove"


def test_a_line_by_hand_stands_until_somebody_decides(ledger: Ledger) -> None:
    """And comes back when that is taken back."""
    first = act(ledger, "ann", "keep")
    ledger.catch_up()
    append_decisions(ledger.file, [made_decision(row(), "remove", note="by hand")])
    assert last(ledger).note == "by hand"
    second = act(ledger, "bo", "flag", base=first)
    assert last(ledger).decision == "flag"
    ledger.log.undo(second, "bo")
    assert (last(ledger).decision, last(ledger).note) == ("remove", "by hand")
    ledger.log.undo(first, "ann")
    assert (last(ledger).decision, last(ledger).note) == ("remove", "by hand")


def test_a_log_that_was_lost_takes_no_later_decision_with_it(ledger: Ledger) -> None:
    """What is decided after that comes into the file, as what was decided before."""
    act(ledger, "ann", "keep")
    act(ledger, "ann", "flag")
    assert last(ledger).decision == "flag"
    for file in ledger.log.path.parent.glob("events.sqlite*"):
        file.unlink()
    act(ledger, "ann", "remove")
    assert last(ledger).decision == "remove"


def test_a_decision_by_hand_disagrees_with_nobody(ledger: Ledger) -> None:
    """It was made after the first of the two, and so the second is the only one that stands."""
    act(ledger, "ann", "keep")
    ledger.catch_up()
    append_decisions(ledger.file, [made_decision(row(), "remove")])
    act(ledger, "bo", "flag")
    assert (last(ledger).decision, last(ledger).reviewer) == ("flag", "bo")


def test_two_who_disagree_leave_it_open(ledger: Ledger) -> None:
    """Neither saw the other's: it is flagged, unchanged; who saw both settles it."""
    act(ledger, "ann", "keep", changes=EDIT)
    second = act(ledger, "bo", "remove")
    line = last(ledger)
    assert (line.decision, line.changes, line.reviewer) == ("flag", None, None)
    assert line.note == "two people disagree (ann: keep, bo: remove)"
    third = act(ledger, "cy", "remove", base=second)
    assert (last(ledger).decision, last(ledger).event) == ("remove", third)


def test_two_who_agree_in_other_words_do_not_disagree(ledger: Ledger) -> None:
    """A note is no decision."""
    act(ledger, "ann", "keep")
    noted = made_decision(row(), "keep", note="fine")
    ledger.log.append(APP, "one", "bo", "keep", payload_of(noted))
    assert (last(ledger).decision, last(ledger).reviewer) == ("keep", "bo")


def test_killed_between_the_log_and_the_file(tmp_path: Path) -> None:
    """The event is there, the line is not; the next start writes it, once."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)], env=environment, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "review.jsonl").exists()
    ledger = Ledger(EventLog(tmp_path / "events.sqlite"), tmp_path / "review.jsonl")

    assert (ledger.catch_up(), ledger.catch_up()) == (1, 0)
    line = read_decisions(ledger.file).by_id["one"]
    assert (line.decision, line.reviewer) == ("remove", "ann")
