"""A run of judges in a run's folder: one process at a time, one judge after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from echo_hf.config_fields import EngineChoice
from echo_hf.engines.loaded import Engines
from echo_hf.errors import JudgeError, RunError
from echo_hf.file_lock import held
from echo_hf.judging.asking import Answered, Asking, Planned, Question
from echo_hf.reasons import Failed, Reason
from echo_hf.run_folder import RunFolder
from echo_hf.watch import Unwatched, Watcher

LOCK = ".judge.lock"


@dataclass(frozen=True)
class Judged:
    """What became of a run of judges.

    Attributes:
        path: The table that was filled; null where nobody was asked.
        plans: What each judge would be asked; of a dry run alone.
        answered: What each judge has answered, in order.
        left_out: How many outputs and samples nobody was asked about, by reason.
        cost_usd: What this run cost as far as it is known; null when nothing is.
        spent: Whether a budget ended it before all was asked.
    """

    path: Path | None
    plans: tuple[Planned, ...] = ()
    answered: tuple[Answered, ...] = ()
    left_out: Mapping[Reason, int] = field(default_factory=dict)
    cost_usd: float | None = None
    spent: bool = False


@contextmanager
def asking_in(
    folder: RunFolder,
    engines: Mapping[str, EngineChoice],
    budget_usd: float | None,
    watch: Watcher | None,
) -> Iterator[Asking]:
    """What asks judges in a run's folder, with its store open and other processes kept out.

    Args:
        folder: The run's folder.
        engines: Who answers, by name of the judge.
        budget_usd: Most US dollars to spend, null for no limit.
        watch: Told of plans, calls and results.

    Yields:
        What asks; no model is in memory when the block ends.

    Raises:
        RunError: Another process asks judges there.
        JudgeError: A judge cannot be asked.
        EngineError: There is no such engine, or it does not take one of its options.
    """
    busy = RunError(
        f"another process is judging in {str(folder.root)!r}: wait for it, or choose another "
        "folder with --runs"
    )
    lock = held(folder.root / LOCK, busy)
    with lock, Engines(engines) as loaded, closing(folder.store()) as store:
        asking = Asking(loaded, store, watch or Unwatched(), budget_usd)
        for who in engines:
            asking.engine(who).signature()  # what is wrong with one is said before any is asked
        yield asking


def asked(
    asking: Asking,
    questions: Sequence[Question],
    left_out: Mapping[Reason, int],
    write: Callable[[Answered, Collection[str]], Path],
    samples: Collection[str],
) -> Judged:
    """Asks all questions, and writes down what was answered to each as soon as it is done.

    Args:
        asking: What asks.
        questions: One of each judge and rubric.
        left_out: What nobody is asked about.
        write: Writes the answers to a question, and gives the file.
        samples: Ids of the samples that this run is about.

    Returns:
        What became of it.

    Raises:
        MissingExtraError: A package of a judge's engine is not there; nobody was asked.
        JudgeError: A judge had to be stopped; the others have finished.
    """
    for question in questions:
        asking.check_installed(question.who)  # before anything is spent
    path, answered = None, list[Answered]()
    for question in questions:
        answered.append(asking.ask(question))
        path = write(answered[-1], samples)
    stopped = [one.stopped for one in answered if one.stopped]
    if stopped:
        raise JudgeError("; ".join(stopped))
    costs = [one.fill.cost_usd for one in answered if one.fill.cost_usd is not None]
    return Judged(
        path,
        answered=tuple(answered),
        left_out=left_out,
        cost_usd=sum(costs) if costs else None,
        spent=asking.is_spent and any(one.outcomes.get(Failed.NOT_ANSWERED) for one in answered),
    )
