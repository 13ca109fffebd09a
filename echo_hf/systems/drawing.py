"""Give tasks to one system, a few at a time, and keep each output the moment it comes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from echo_hf.errors import GenerationError, PictureError
from echo_hf.pictures import PictureStore
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.attempts import Tried, tried
from echo_hf.systems.base import Drawn, Retired, System, Task
from echo_hf.systems.config import Limits
from echo_hf.systems.journal import SETTLED, Entry, Journal
from echo_hf.systems.pace import Pace
from echo_hf.systems.watch import Watcher

MOST_FAILURES_IN_A_ROW = 10


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

    def run(self, tasks: Sequence[Task]) -> None:
        """Draws tasks; what is under way when it is stopped is still waited for and kept.

        Args:
            tasks: What to draw.

        Raises:
            GenerationError: No task could succeed, or one after the other failed.
        """
        failures = 0
        for task, one in self._tried(tasks):
            entry = self._keep(task, one)
            failures = failures + 1 if entry.outcome == Outcome.FAILED else 0
            if failures >= MOST_FAILURES_IN_A_ROW:
                raise GenerationError(
                    f"system {self.journal.system!r}: {failures} tasks in a row failed, the last "
                    f"with {entry.text!r}: mend that; the same command goes on from here"
                )

    def retire(self, tasks: Sequence[Task], retired: Retired) -> None:
        """Notes that nobody can draw tasks any more; nothing is asked.

        Args:
            tasks: What would have been drawn.
            retired: What is known of the model.
        """
        drawn = Drawn(
            Outcome.RETIRED, stage=OutcomeStage.PREFLIGHT, code=retired.code, text=retired.text
        )
        for task in tasks:
            self._keep(task, Tried(drawn, 0, 0.0))

    def _tried(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Tried]]:
        """The tasks with what became of them, as they are ready."""
        pace = Pace(self.limits.per_minute)
        concurrency = self.limits.concurrency or self.system.concurrency
        waiting = list(reversed(tasks))
        running: dict[Future[Tried], Task] = {}
        with ThreadPoolExecutor(concurrency, thread_name_prefix="draw") as pool:
            try:
                while waiting or running:
                    while waiting and len(running) < concurrency:
                        task = waiting.pop()
                        work = pool.submit(tried, self.system, task, pace, self.limits.attempts)
                        running[work] = task
                    for work in wait(running, return_when=FIRST_COMPLETED).done:
                        yield running.pop(work), work.result()
            finally:
                pace.stopped.set()
                self._keep_rest(running)

    def _keep_rest(self, running: dict[Future[Tried], Task]) -> None:
        """What was under way is paid for: it is kept, too."""
        if running:
            self.watch.stopping(self.journal.system, len(running))
        for work, task in running.items():
            if work.exception() is None and work.result().drawn.outcome in SETTLED:
                self._keep(task, work.result())

    def _keep(self, task: Task, one: Tried) -> Entry:
        drawn, digest = self._stored(one.drawn)
        entry = Entry(
            sample_id=task.sample_id,
            sample_digest=task.sample_digest,
            split=task.split,
            signature=self.signature,
            outcome=drawn.outcome,
            image=digest,
            stage=drawn.stage,
            code=drawn.code,
            text=drawn.text,
            seed=drawn.seed,
            revised_prompt=drawn.revised_prompt,
            model_reported=drawn.model_reported,
            usage=drawn.usage,
            cost_usd=drawn.cost_usd,
            latency_s=round(one.latency_s, 3),
            attempts=one.attempts,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            details=drawn.details,
        )
        self.journal.add(entry)
        self.watch.drawn(self.journal.system, entry)
        return entry

    def _stored(self, drawn: Drawn) -> tuple[Drawn, str | None]:
        if drawn.picture is None:
            return drawn, None
        try:
            return drawn, self.pictures.put(drawn.picture)
        except PictureError as error:
            failed = replace(drawn, outcome=Outcome.FAILED, picture=None)
            return replace(failed, stage=OutcomeStage.ANSWER, text=str(error)), None
