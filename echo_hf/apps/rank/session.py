"""What people see and do while they rank: samples that a seed draws, and a fold of the log."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Self

import pyarrow as pa

from echo_hf.apps.events import Event, EventLog, standing
from echo_hf.images.store import ImageStore
from echo_hf.judging.rate import outputs_to_rate
from echo_hf.reasons import NotRanked, Reason
from echo_hf.systems.base import Task
from echo_hf.systems.benchmark import Tasks

LEAST_OUTPUTS = 2
APP = "rank"
RANK = "rank"
OPEN = "open"


@dataclass(frozen=True, slots=True)
class ShownOutput:
    system: str
    output: str


@dataclass(frozen=True, slots=True)
class RankedSample:
    task: Task
    outputs: tuple[ShownOutput, ...]


@dataclass(frozen=True)
class Draw:
    samples: tuple[RankedSample, ...]
    known: Mapping[str, RankedSample]
    seed: int
    left_out: Mapping[Reason, int]


def drawn_samples(
    outputs: pa.Table,
    benchmark: Tasks,
    images: ImageStore,
    *,
    draw: Callable[[str, int], int],
    seed: int,
    splits: Collection[str],
) -> Draw:
    """Draws samples of which at least two systems have made an image, as many as `draw` says.

    It is asked with each split, and with how many such samples the split has.
    """
    there = outputs_to_rate(outputs, benchmark)
    left_out: Counter[Reason] = Counter(there.left_out)
    every: list[RankedSample] = []
    for task in there.tasks:
        rows = there.outputs.get(task.sample_id, ())
        made = [ShownOutput(row["system"], row["image"]) for row in rows]
        shown = tuple(one for one in made if images.path(one.output).exists())
        left_out[NotRanked.LOST_IMAGE] += len(made) - len(shown)
        every.append(RankedSample(task, shown))
    samples: list[RankedSample] = []
    for split in splits:
        some = [one for one in every if one.task.split == split]
        enough = [one for one in some if len(one.outputs) >= LEAST_OUTPUTS]
        order = sorted(enough, key=lambda one: _digest(seed, one.task.sample_id))
        first = order[: draw(split, len(enough))]
        left_out[NotRanked.FEW_OUTPUTS] += len(some) - len(enough)
        left_out[NotRanked.NOT_DRAWN] += len(enough) - len(first)
        samples += first
    known = {one.task.sample_id: one for one in every if one.outputs}
    counts = {reason: count for reason, count in left_out.items() if count}
    return Draw(tuple(samples), known, seed, Counter(counts))


def shuffled(sample: RankedSample, person: str, seed: int) -> tuple[ShownOutput, ...]:
    """The images of a sample in the order in which a person sees them."""

    def place(one: ShownOutput) -> str:
        return _digest(seed, person, sample.task.sample_id, one.system)

    return tuple(sorted(sample.outputs, key=place))


def _digest(*parts: object) -> str:
    return hashlib.sha256(":".join(map(str, parts)).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Ranking:
    """Ranks of the images of one sample, by their place on the page."""

    ranks: tuple[int | None, ...]
    barred: frozenset[int] = frozenset()
    impossible: bool = False

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(tuple(value["ranks"]), frozenset(value["barred"]), value["impossible"])

    def as_json(self) -> dict[str, Any]:
        ranks, barred = list(self.ranks), sorted(self.barred)
        return {"ranks": ranks, "barred": barred, "impossible": self.impossible}

    @property
    def is_complete(self) -> bool:
        ranks = enumerate(self.ranks)
        return self.impossible or all(rank or at in self.barred for at, rank in ranks)

    @property
    def places(self) -> tuple[int | None, ...]:
        """What is written down: ranks without gaps, null where an image cannot be ranked."""
        there = sorted({rank for rank in self.ranks if rank is not None and not self.impossible})
        known = {rank: place for place, rank in enumerate(there, 1)}
        return tuple(None if rank is None else known.get(rank) for rank in self.ranks)

    def place(self, item: int, rank: int | None) -> Ranking:
        """Gives an image a rank, or none; it ties with those that have it already."""
        ranks = (*self.ranks[:item], rank, *self.ranks[item + 1 :])
        return Ranking(ranks, self.barred - {item})

    def insert(self, item: int, rank: int) -> Ranking:
        """Gives an image a rank of its own; those in the way move one down."""
        others = {at: one for at, one in enumerate(self.ranks) if one is not None and at != item}
        taken, end = set(others.values()), rank
        while end in taken:
            end += 1
        if end > len(self.ranks):
            closed = {one: place for place, one in enumerate(sorted(taken), 1)}
            rank = 1 + sum(one < rank for one in taken)
            others, end = {at: closed[one] for at, one in others.items()}, len(self.ranks)
        moved = {at: one + (rank <= one < end) for at, one in others.items()} | {item: rank}
        ranks = tuple(moved.get(at) for at in range(len(self.ranks)))
        return Ranking(ranks, self.barred - set(moved))

    def better(self, item: int) -> Ranking:
        """Moves an image one rank up; one without a rank gets the first that nobody has."""
        rank = self.ranks[item]
        return self.place(item, min(self._free()) if rank is None else max(rank - 1, 1))

    def worse(self, item: int) -> Ranking:
        """Moves an image one rank down; one without a rank gets the last that nobody has."""
        rank, last = self.ranks[item], len(self.ranks)
        return self.place(item, max(self._free()) if rank is None else min(rank + 1, last))

    def clear(self, item: int) -> Ranking:
        return self.place(item, None)

    def bar(self, item: int) -> Ranking:
        """Says that an image cannot be ranked, or that it can after all."""
        if item in self.barred:
            return replace(self, barred=self.barred - {item})
        return replace(self.place(item, None), barred=self.barred | {item})

    def give_up(self) -> Ranking:
        """Says that none of the images can be ranked, or that they can after all."""
        return replace(self, impossible=not self.impossible)

    def _free(self) -> set[int]:
        return set(range(1, len(self.ranks) + 1)) - {one for one in self.ranks if one is not None}


# What a page may ask for with an image and a rank, and with an image alone.
RANKED = ("place", "insert")
IMAGE = ("better", "worse", "clear", "bar")


def changed(ranking: Ranking, kind: object, item: object, rank: object) -> Ranking | None:
    """The ranking after what a page asks for, null for what none can ask."""
    count = len(ranking.ranks)
    if kind == "impossible":
        return ranking.give_up()
    if not isinstance(kind, str) or type(item) is not int or not 0 <= item < count:
        return None
    found: Ranking | None = None
    if kind in IMAGE:
        found = getattr(ranking, kind)(item)
    elif kind in RANKED and type(rank) is int and 1 <= rank <= count:
        found = getattr(ranking, kind)(item, rank)
    return found


@dataclass(frozen=True)
class View:
    """What one person sees, made of what that person did."""

    draw: Draw
    person: str
    events: Sequence[Event]

    @property
    def total(self) -> int:
        return len(self.draw.samples)

    @cached_property
    def number(self) -> int:
        """Of the sample that was opened or ranked last, from 1."""
        numbers = {one.task.sample_id: at for at, one in enumerate(self.draw.samples, 1)}
        known = (numbers[one.subject] for one in reversed(self.events) if one.subject in numbers)
        return next(known, 1)

    @property
    def sample(self) -> RankedSample:
        return self.draw.samples[self.number - 1]

    @cached_property
    def actions(self) -> tuple[Event, ...]:
        return tuple(one for one in standing(self.events) if one.action == RANK)

    @property
    def saved(self) -> datetime | None:
        return self.events[-1].at if self.events else None

    @cached_property
    def rankings(self) -> Mapping[str, Event]:
        """The last ranking of each sample that has the very images that were ranked."""
        last = {event.subject: event for event in self.actions}
        samples = {one.task.sample_id: one for one in self.draw.samples}
        return {name: last[name] for name in last.keys() & samples if _is_of(last[name], samples)}

    @property
    def ranking(self) -> Ranking:
        event = self.rankings.get(self.sample.task.sample_id)
        empty = Ranking((None,) * len(self.sample.outputs))
        return empty if event is None else Ranking.from_json(event.payload)

    @property
    def outputs(self) -> tuple[ShownOutput, ...]:
        event = self.rankings.get(self.sample.task.sample_id)
        if event is None:
            return shuffled(self.sample, self.person, self.draw.seed)
        return tuple(ShownOutput(*one) for one in event.payload["shown"])

    @cached_property
    def finished(self) -> Mapping[str, Ranking]:
        found = {name: Ranking.from_json(one.payload) for name, one in self.rankings.items()}
        return {name: ranking for name, ranking in found.items() if ranking.is_complete}

    @property
    def next(self) -> RankedSample:
        """The next sample that is not ranked; else simply the next."""
        samples = self.draw.samples
        order = [*samples[self.number :], *samples[: self.number - 1]]
        left = (one for one in order if one.task.sample_id not in self.finished)
        return next(left, samples[min(self.number, self.total - 1)])


def _is_of(event: Event, samples: Mapping[str, RankedSample]) -> bool:
    sample, payload = samples[event.subject], event.payload
    shown = {ShownOutput(*one) for one in payload["shown"]}
    return payload["sample_digest"] == sample.task.sample_digest and shown == set(sample.outputs)


@dataclass(frozen=True)
class Ranker:
    log: EventLog
    draw: Draw

    def view(self, person: str) -> View:
        return View(self.draw, person, self.log.events(APP, person=person))

    def act(self, person: str, action: Mapping[str, Any]) -> tuple[View, bool]:
        """Does what a page asks for; what it shows then, and whether the table changes."""
        now, kind = self.view(person), action.get("kind")
        subject = now.sample.task.sample_id
        if action.get("subject") == subject:
            if kind in ("next", "back"):
                before = self.draw.samples[max(now.number - 2, 0)]
                opened = now.next if kind == "next" else before
                self.log.append(APP, opened.task.sample_id, person, OPEN)
            elif kind == "undo" and now.actions:
                self.log.undo(now.actions[-1].id, person)
            else:
                ranking = changed(now.ranking, kind, action.get("item"), action.get("rank"))
                if ranking is not None and ranking != now.ranking:
                    payload = {
                        "shown": [[one.system, one.output] for one in now.outputs],
                        "sample_digest": now.sample.task.sample_digest,
                        **ranking.as_json(),
                    }
                    seen = (one.id for one in reversed(now.events) if one.subject == subject)
                    self.log.append(APP, subject, person, RANK, payload, next(seen, None))
        view = self.view(person)
        return view, view.finished != now.finished
