"""Give tasks to one system, a few at a time, and keep each output the moment it comes.

Each output is written down by the thread that drew it: whatever happens to the one that waits for
them, such as Ctrl-C, what is there is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass
from itertools import islice

from echo_hf.errors import EchoError, GenerationError
from echo_hf.pictures import PictureStore
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.attempts import Tried, tried
from echo_hf.systems.base import Drawn, Retired, System, Task
from echo_hf.systems.config import Limits
from echo_hf.systems.journal import SETTLED, Entry, Journal
from echo_hf.systems.keeping import entry_of
from echo_hf.systems.pace import Pace
from echo_hf.systems.plan import is_settled
from echo_hf.systems.watch import Watcher

MOST_FAILURES_IN_A_ROW = 10
LONGEST_REMARK = 300
# Failures of one task alone: however many there are in a row, the next task may well do.
OF_ONE_TASK = frozenset({"no_file", "no_input", "several_files"})
Work = Future[Entry | None]


def concurrency_of(limits: Limits, system: System) -> int:
    """Most tasks at a time: what a config says, else what the system does."""
    return limits.concurrency or system.concurrency


@dataclass(frozen=True)
class Drawing:
    """One system at work.

    Attributes:
        system: The system, entered.
        journal: Where its outputs are written down.
        pictures: Where its pictures go.
        limits: How hard it is worked.
        signature: Digest of what decides its pictures.
        watch: Told of each output.
    """

    system: System
    journal: Journal
    pictures: PictureStore
    limits: Limits
    signature: str
    watch: Watcher

    def run(self, tasks: Iterable[Task]) -> list[Entry]:
        """Draws tasks; what is under way when it is stopped is still waited for and kept.

        A model that is found to be gone is not asked again: the tasks that are left retire.

        Args:
            tasks: What to draw.

        Returns:
            What became of them, in the order in which it was known.

        Raises:
            GenerationError: No task could succeed, or one after the other failed.
            OSError: An output cannot be written down.
        """
        pace, waiting = Pace(self.limits.per_minute), iter(tasks)
        concurrency = concurrency_of(self.limits, self.system)
        running: set[Work] = set()
        entries: list[Entry] = []
        left: list[Task] = []
        row = _Row(self.journal.system)
        with ThreadPoolExecutor(concurrency, thread_name_prefix="draw") as pool:
            try:
                while True:
                    for task in islice(waiting, concurrency - len(running)):
                        running.add(pool.submit(self._drawn, task, pace))
                    if not running:
                        break
                    for work in wait(running, return_when=FIRST_COMPLETED).done:
                        running.discard(work)
                        told = self._told(work.result())
                        entries += told
                        row.check(told)
                        if any(map(_is_gone, told)):
                            left, waiting = [*left, *waiting], iter(())
            finally:
                pace.stopped.set()
                self._wait_for(running)
        return entries + self._left(left, entries)

    def retire(self, tasks: Sequence[Task], retired: Retired) -> list[Entry]:
        """Notes that nobody can draw tasks any more; nothing is asked.

        A picture that was drawn with other settings stays: it cannot be had again.

        Args:
            tasks: What would have been drawn.
            retired: What is known of the model.

        Returns:
            What became of the tasks.
        """
        drawn = Drawn(
            Outcome.RETIRED, stage=OutcomeStage.PREFLIGHT, code=retired.code, text=retired.text
        )
        entries: list[Entry] = []
        for task in tasks:
            before = self.journal.entries.get(task.sample_id)
            if before is None or not is_settled(task, before, self.pictures):
                before = self._keep(task, Tried(drawn, 0, 0.0))
            entries += self._told(before)
        return entries

    def _left(self, tasks: Sequence[Task], entries: Sequence[Entry]) -> list[Entry]:
        """Retires what was not begun when the model was found to be gone."""
        gone = next(filter(_is_gone, entries), None)
        return self.retire(tasks, Retired(gone.text or "", gone.code)) if gone else []

    def _drawn(self, task: Task, pace: Pace) -> Entry | None:
        """Draws a task and keeps what became of it; in a thread of its own."""
        one = tried(self.system, task, pace, self.limits.attempts)
        if pace.stopped.is_set() and one.drawn.outcome not in SETTLED:
            return None  # its attempts were cut short: it has not failed
        return self._keep(task, one)

    def _keep(self, task: Task, one: Tried) -> Entry:
        entry = entry_of(task, one, self.signature, self.pictures)
        self.journal.add(entry)
        return entry

    def _told(self, entry: Entry | None) -> list[Entry]:
        if entry is None:
            return []
        self.watch.drawn(self.journal.system, entry)
        return [entry]

    def _wait_for(self, running: set[Work]) -> None:
        """Waits for what is paid for already; it keeps itself."""
        if not running:
            return
        self.watch.stopping(self.journal.system, len(running))
        lost: BaseException | None = None
        for work in as_completed(running):
            error = work.exception()
            if error is None:
                self._told(work.result())
            elif not isinstance(error, EchoError):
                lost = error
        if lost is not None:
            raise lost


def _is_gone(entry: Entry) -> bool:
    # Told of one task, as by a list of outputs that were made before, it says nothing of others.
    return entry.outcome == Outcome.RETIRED and entry.stage != OutcomeStage.PREFLIGHT


class _Row:
    """The failures in a row of a system that may be out of order.

    Args:
        system: Its name.
    """

    def __init__(self, system: str) -> None:
        self._system, self._failed = system, 0

    def check(self, entries: Sequence[Entry]) -> None:
        """Counts outputs in the order in which they came; raises where too many have failed."""
        for one in entries:
            if one.outcome != Outcome.FAILED:
                self._failed = 0
            elif one.stage != OutcomeStage.INPUT and one.code not in OF_ONE_TASK:
                self._failed += 1
            if self._failed >= MOST_FAILURES_IN_A_ROW:
                raise broken(self._system, f"{self._failed} tasks in a row failed", one)


def broken(system: str, how: str, last: Entry) -> GenerationError:
    """What to say of a system that only fails.

    Args:
        system: Its name.
        how: How often it failed.
        last: Its last failure.

    Returns:
        The error, with what that said.
    """
    said = (last.text or "")[:LONGEST_REMARK]
    return GenerationError(
        f"system {system!r}: {how}, the last with {said!r}: mend that; the same command goes on "
        "from here"
    )
