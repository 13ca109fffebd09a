"""What a run of systems is about to do, for how much, and who is told of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Protocol

from echo_hf.config.systems import Price, SystemConfig
from echo_hf.images.store import PictureStore
from echo_hf.reasons import NoTask, NotTabled, Outcome
from echo_hf.systems.base import Task, may_fit_now
from echo_hf.systems.journal import Entry


@dataclass(frozen=True)
class Plan:
    """What one system is about to do."""

    system: str
    todo: tuple[Task, ...]
    stored: int
    stale: int
    cost_usd: float | None
    seconds: float | None


def plan_of(
    config: SystemConfig,
    tasks: Sequence[Task],
    entries: Mapping[str, Entry],
    signature: str,
    concurrency: int,
    pictures: PictureStore,
) -> Plan:
    """What a system has to do for the tasks of a benchmark."""
    done = {
        task.sample_id
        for task in tasks
        if (entry := entries.get(task.sample_id)) is not None
        and entry.signature == signature
        and is_settled(task, entry, pictures)
        and not may_fit_now(entry.details, config)
    }
    left = (task for task in tasks if task.sample_id not in done)
    todo = tuple(sorted(left, key=lambda task: _has_failed(task, entries, signature)))
    before = [entries[task.sample_id] for task in todo if task.sample_id in entries]
    known = [one for one in entries.values() if one.signature == signature]
    per_picture = _mean(one.cost_usd for one in known if one.outcome == Outcome.OK)
    if per_picture is None or config.usd_per_image == 0:
        per_picture = config.usd_per_image
    latency = _mean(one.latency_s for one in known if one.attempts)
    return Plan(
        system=config.name,
        todo=todo,
        stored=len(tasks) - len(todo),
        stale=sum(one.settled for one in before),
        cost_usd=None if per_picture is None else per_picture * len(todo),
        seconds=_seconds(latency, len(todo), concurrency, config.limits.per_minute),
    )


def is_settled(task: Task, entry: Entry, pictures: PictureStore) -> bool:
    """Whether something that was written down says what became of a task, whatever the settings."""
    if not entry.settled or entry.sample_digest != task.sample_digest:
        return False
    return entry.image is None or _is_there(pictures.path(entry.image), entry.image_bytes)


def _has_failed(task: Task, entries: Mapping[str, Entry], signature: str) -> bool:
    entry = entries.get(task.sample_id)
    return (
        entry is not None
        and entry.outcome == Outcome.FAILED
        and (entry.signature, entry.sample_digest) == (signature, task.sample_digest)
    )


def _is_there(picture: Path, size: int | None) -> bool:
    # A machine that lost its power may leave a name without bytes, or with too few.
    found = picture.stat().st_size if picture.is_file() else 0
    return found > 0 if size is None else found == size


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _seconds(
    latency: float | None, tasks: int, concurrency: int, per_minute: float | None
) -> float | None:
    if latency is None:
        return None
    slowest = 60 * tasks / per_minute if per_minute else 0.0
    return max(slowest, latency * tasks / concurrency)


class Watcher(Protocol):
    """Told of what happens; `echo_hf.cli.evaluation_view.Show` prints it."""

    def planned(self, plans: Sequence[Plan], left_out: Mapping[NoTask, int]) -> None:
        """This is about to be drawn."""
        ...

    def drawn(self, system: str, entry: Entry) -> None:
        """An output is known."""
        ...

    def stopping(self, system: str, running: int) -> None:
        """No task is begun any more; those under way are waited for."""
        ...

    def finished(self, system: str, said: str | None) -> None:
        """A system is done; or stopped, and why."""
        ...

    def tabled(self, kept_back: Mapping[str, Mapping[NotTabled, int]]) -> None:
        """The table of outputs is written, without so many outputs of systems."""
        ...


class Unwatched:
    """A watcher that tells nobody."""

    def planned(self, plans: Sequence[Plan], left_out: Mapping[NoTask, int]) -> None:
        """Says nothing."""

    def drawn(self, system: str, entry: Entry) -> None:
        """Says nothing."""

    def stopping(self, system: str, running: int) -> None:
        """Says nothing."""

    def finished(self, system: str, said: str | None) -> None:
        """Says nothing."""

    def tabled(self, kept_back: Mapping[str, Mapping[NotTabled, int]]) -> None:
        """Says nothing."""


MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Billed:
    """What is billed for a task; null where the answer does not say."""

    text_in: int | None = None
    image_in: int | None = None
    text_out: int | None = None
    image_out: int | None = None
    pictures: int = 0


def cost_usd(price: Price | None, billed: Billed) -> float | None:
    """The price of a task."""
    if price is None:
        return None
    if price.usd_per_image is not None:
        return price.usd_per_image * billed.pictures
    parts = [
        _part(price.text_in, billed.text_in),
        _part(price.image_in, billed.image_in),
        _part(price.text_out, billed.text_out),
        _part(price.image_out, billed.image_out),
    ]
    known = [part for part in parts if part is not None]
    return sum(known) / MILLION if len(known) == len(parts) else None


def added(*costs: float | None) -> float | None:
    """The sum of several costs, null when one is not known."""
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None


def _part(price: float | None, tokens: int | None) -> float | None:
    if tokens == 0 or price == 0:
        return 0.0
    return None if price is None or tokens is None else price * tokens
