"""What people see and do while they rank: every answer is a fold of the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Self

from echo_hf.apps.events import Event, EventLog, standing
from echo_hf.apps.rank.draw import Draw, RankedSample, ShownOutput, shuffled


@dataclass(frozen=True, slots=True)
class Ranking:
    """Ranks of the images of one sample, by their place on the page."""

    ranks: tuple[int | None, ...]
    barred: frozenset[int] = frozenset()
    impossible: bool = False

    @classmethod
    def empty(cls, count: int) -> Self:
        return cls((None,) * count)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(tuple(value["ranks"]), frozenset(value["barred"]), value["impossible"])

    def as_json(self) -> dict[str, Any]:
        return {
            "ranks": list(self.ranks),
            "barred": sorted(self.barred),
            "impossible": self.impossible,
        }

    @property
    def is_complete(self) -> bool:
        left = (at for at, rank in enumerate(self.ranks) if rank is None and at not in self.barred)
        return self.impossible or next(left, None) is None

    @property
    def places(self) -> tuple[int | None, ...]:
        """What is written down: ranks without gaps, null where an image cannot be ranked."""
        if self.impossible:
            return (None,) * len(self.ranks)
        there = sorted({rank for rank in self.ranks if rank is not None})
        known = {rank: place for place, rank in enumerate(there, 1)}
        return tuple(None if rank is None else known[rank] for rank in self.ranks)

    def place(self, item: int, rank: int) -> Ranking:
        """Gives an image a rank; it ties with those that have it already."""
        return self._with({item: rank})

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
        moved = {at: one + (rank <= one < end) for at, one in others.items()}
        return self._with({**moved, item: rank})

    def better(self, item: int) -> Ranking:
        """Moves an image one rank up; one without a rank gets the first that nobody has."""
        rank = self.ranks[item]
        return self.place(item, self._first_free() if rank is None else max(rank - 1, 1))

    def worse(self, item: int) -> Ranking:
        """Moves an image one rank down; one without a rank gets the last that nobody has."""
        rank, last = self.ranks[item], len(self.ranks)
        if rank is None:
            return self.place(item, max(set(range(1, last + 1)) - set(self.ranks)))
        return self.place(item, min(rank + 1, last))

    def clear(self, item: int) -> Ranking:
        return self._with({item: None})

    def bar(self, item: int) -> Ranking:
        """Says that an image cannot be ranked, or that it can after all."""
        if item in self.barred:
            return replace(self, barred=self.barred - {item})
        cleared = self._with({item: None})
        return replace(cleared, barred=cleared.barred | {item})

    def give_up(self) -> Ranking:
        """Says that none of the images can be ranked, or that they can after all."""
        return replace(self, impossible=not self.impossible)

    def _with(self, changed: Mapping[int, int | None]) -> Ranking:
        ranks = tuple(changed.get(at, rank) for at, rank in enumerate(self.ranks))
        return Ranking(ranks, self.barred - set(changed))

    def _first_free(self) -> int:
        return min(set(range(1, len(self.ranks) + 1)) - set(self.ranks))


# What a page may ask for: with an image and a rank, with an image, about the sample as a whole.
RANKED: Mapping[str, Callable[[Ranking, int, int], Ranking]] = {
    "place": Ranking.place,
    "insert": Ranking.insert,
}
IMAGE: Mapping[str, Callable[[Ranking, int], Ranking]] = {
    "better": Ranking.better,
    "worse": Ranking.worse,
    "clear": Ranking.clear,
    "bar": Ranking.bar,
}


def changed(ranking: Ranking, kind: str, item: object, rank: object) -> Ranking | None:
    if kind == "impossible":
        return ranking.give_up()
    count = len(ranking.ranks)
    if type(item) is not int or not 0 <= item < count:
        return None
    if kind in IMAGE:
        return IMAGE[kind](ranking, item)
    if kind in RANKED and type(rank) is int and 1 <= rank <= count:
        return RANKED[kind](ranking, item, rank)
    return None


APP = "rank"
RANK = "rank"
OPEN = "open"


@dataclass(frozen=True, slots=True)
class View:
    person: str
    sample: RankedSample
    number: int
    total: int
    outputs: tuple[ShownOutput, ...]
    ranking: Ranking
    saved: datetime | None
    can_undo: bool
    finished: Mapping[str, Ranking]


@dataclass(frozen=True, slots=True)
class Acted:
    view: View
    table_changes: bool


@dataclass(frozen=True)
class Ranker:
    log: EventLog
    draw: Draw

    def view(self, person: str) -> View:
        return self._state(person).view()

    def act(self, person: str, action: Mapping[str, Any]) -> Acted:
        state = self._state(person)
        kind = action.get("kind")
        if action.get("subject") == state.sample.task.sample_id:
            if kind in ("next", "back"):
                self._open(state, state.next if kind == "next" else state.before)
            elif kind == "undo" and state.actions:
                self.log.undo(state.actions[-1].id, person)
            else:
                self._rank(state, action)
        view = self.view(person)
        return Acted(view, view.finished != state.finished)

    def _rank(self, state: _State, said: Mapping[str, Any]) -> None:
        kind, item, rank = said.get("kind"), said.get("item"), said.get("rank")
        ranking = changed(state.ranking, str(kind), item, rank)
        if ranking is None or ranking == state.ranking:
            return
        payload = {
            "shown": [[one.system, one.output] for one in state.outputs],
            "sample_digest": state.sample.task.sample_digest,
            **ranking.as_json(),
        }
        sample = state.sample.task.sample_id
        self.log.append(APP, sample, state.person, RANK, payload, state.last_event(sample))

    def _open(self, state: _State, sample: RankedSample) -> None:
        self.log.append(APP, sample.task.sample_id, state.person, OPEN)

    def _state(self, person: str) -> _State:
        return _State(self.draw, person, self.log.events(APP, person=person))


@dataclass(frozen=True)
class _State:
    draw: Draw
    person: str
    events: Sequence[Event]

    @cached_property
    def actions(self) -> tuple[Event, ...]:
        return tuple(one for one in standing(self.events) if one.action == RANK)

    @cached_property
    def last(self) -> Mapping[str, Event]:
        return {event.subject: event for event in self.actions}

    @cached_property
    def at(self) -> int:
        numbers = {one.task.sample_id: at for at, one in enumerate(self.draw.samples)}
        known = (numbers[one.subject] for one in reversed(self.events) if one.subject in numbers)
        return next(known, 0)

    @property
    def sample(self) -> RankedSample:
        return self.draw.samples[self.at]

    @property
    def ranking(self) -> Ranking:
        return self._of(self.sample)

    @property
    def outputs(self) -> tuple[ShownOutput, ...]:
        event = self.last.get(self.sample.task.sample_id)
        if event is not None and is_of(event, self.sample):
            return tuple(ShownOutput(*one) for one in event.payload["shown"])
        return shuffled(self.sample, self.person, self.draw.seed)

    @property
    def next(self) -> RankedSample:
        """The next sample that is not ranked; else simply the next."""
        order = [*self.draw.samples[self.at + 1 :], *self.draw.samples[: self.at]]
        left = (one for one in order if one.task.sample_id not in self.finished)
        return next(left, self.draw.samples[min(self.at + 1, len(self.draw.samples) - 1)])

    @property
    def before(self) -> RankedSample:
        return self.draw.samples[max(self.at - 1, 0)]

    def last_event(self, subject: str) -> int | None:
        return next((one.id for one in reversed(self.events) if one.subject == subject), None)

    @cached_property
    def finished(self) -> Mapping[str, Ranking]:
        every = {one.task.sample_id: self._of(one) for one in self.draw.samples}
        return {name: ranking for name, ranking in every.items() if ranking.is_complete}

    def view(self) -> View:
        saved = self.events[-1].at if self.events else None
        return View(
            person=self.person,
            sample=self.sample,
            number=self.at + 1,
            total=len(self.draw.samples),
            outputs=self.outputs,
            ranking=self.ranking,
            saved=saved,
            can_undo=bool(self.actions),
            finished=self.finished,
        )

    def _of(self, sample: RankedSample) -> Ranking:
        event = self.last.get(sample.task.sample_id)
        if event is None or not is_of(event, sample):
            return Ranking.empty(len(sample.outputs))
        return Ranking.from_json(event.payload)


def is_of(event: Event, sample: RankedSample) -> bool:
    """Whether a ranking is of the very images that a sample has now."""
    shown = {ShownOutput(*one) for one in event.payload["shown"]}
    same = event.payload["sample_digest"] == sample.task.sample_digest
    return same and shown == set(sample.outputs)
