"""What a run of systems is about to do and has done, and for how much."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from statistics import fmean

from echo_hf.config.systems import Price, SystemConfig
from echo_hf.images.store import ImageStore
from echo_hf.reasons import Outcome
from echo_hf.systems.base import Task, may_fit_now
from echo_hf.systems.journal import JournalEntry


@dataclass(frozen=True)
class GenerationPlan:
    system: str
    todo: tuple[Task, ...]
    stored: int
    stale: int
    cost_usd: float | None
    seconds: float | None

    def __str__(self) -> str:
        cost = "?" if self.cost_usd is None else f"{self.cost_usd:.2f}"
        took = "?" if self.seconds is None else timedelta(seconds=round(self.seconds))
        return (
            f"{len(self.todo):>9,} to draw, {self.stale:,} of them again, {self.stored:,} kept; "
            f"about ${cost}, about {took}"
        )


def plan_of(
    config: SystemConfig,
    tasks: Sequence[Task],
    entries: Mapping[str, JournalEntry],
    signature: str,
    concurrency: int,
    images: ImageStore,
) -> GenerationPlan:
    done = {
        task.sample_id
        for task in tasks
        if (entry := entries.get(task.sample_id)) is not None
        and entry.signature == signature
        and is_settled(task, entry, images)
        and not may_fit_now(entry.details, config)
    }
    left = (task for task in tasks if task.sample_id not in done)
    todo = tuple(sorted(left, key=lambda task: _has_failed(task, entries, signature)))
    before = [entries[task.sample_id] for task in todo if task.sample_id in entries]
    known = [one for one in entries.values() if one.signature == signature]
    per_image = _mean(one.cost_usd for one in known if one.outcome == Outcome.OK)
    if per_image is None or config.usd_per_image == 0:
        per_image = config.usd_per_image
    latency = _mean(one.latency_s for one in known if one.attempts)
    return GenerationPlan(
        system=config.name,
        todo=todo,
        stored=len(tasks) - len(todo),
        stale=sum(one.settled for one in before),
        cost_usd=None if per_image is None else per_image * len(todo),
        seconds=_seconds(latency, len(todo), concurrency, config.limits.per_minute),
    )


def is_settled(task: Task, entry: JournalEntry, images: ImageStore) -> bool:
    """Whether something that was written down says what became of a task, whatever the settings."""
    if not entry.settled or entry.sample_digest != task.sample_digest:
        return False
    return entry.image is None or _is_there(images.path(entry.image), entry.image_bytes)


def _has_failed(task: Task, entries: Mapping[str, JournalEntry], signature: str) -> bool:
    entry = entries.get(task.sample_id)
    return (
        entry is not None
        and entry.outcome == Outcome.FAILED
        and (entry.signature, entry.sample_digest) == (signature, task.sample_digest)
    )


def _is_there(image: Path, size: int | None) -> bool:
    # A machine that lost its power may leave a name without bytes, or with too few.
    found = image.stat().st_size if image.is_file() else 0
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


@dataclass
class Generations:
    """What a system has given so far, in words for people."""

    system: str
    entries: list[JournalEntry] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def __str__(self) -> str:
        counts = Counter(one.outcome for one in self.entries)
        outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(counts.items()))
        per_minute = 60 * len(self.entries) / max(time.monotonic() - self.began, 1e-9)
        dollars = sum(one.cost_usd or 0.0 for one in self.entries)
        cost = f", ${dollars:.2f}" if dollars else ""
        return f"{self.system}: {outcomes} ({per_minute:.0f} a minute){cost}"

    def failures(self) -> Iterator[str]:
        """How many failed, by their codes, with an example each."""
        by_code: dict[str, list[JournalEntry]] = {}
        for one in self.entries:
            if one.outcome == Outcome.FAILED:
                by_code.setdefault(one.code or str(one.stage), []).append(one)
        for code, failed in sorted(by_code.items()):
            yield f"{self.system}: {len(failed)} failed, {code}: {failed[0].text or ''}"


MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Billed:
    """What is billed for a task; null where the answer does not say."""

    text_in: int | None = None
    image_in: int | None = None
    text_out: int | None = None
    image_out: int | None = None
    images: int = 0


def cost_usd(price: Price | None, billed: Billed) -> float | None:
    if price is None:
        return None
    if price.usd_per_image is not None:
        return price.usd_per_image * billed.images
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
