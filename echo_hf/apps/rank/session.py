"""What people see and do while they rank: every answer is a fold of the log, nothing is kept here.

A person's place is the sample of the last thing they did, so a page that is loaded again, or a
server that was killed, goes on where it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from echo_hf.apps.events import Event, EventLog
from echo_hf.apps.fold import standing
from echo_hf.apps.rank.draw import Draw, RankedSample, Shown, shuffled
from echo_hf.apps.rank.ranking import Ranking, changed

APP = "rank"
RANK = "rank"
OPEN = "open"


@dataclass(frozen=True, slots=True)
class View:
    """What one person's page shows.

    Attributes:
        person: Pseudonym of the person.
        sample: The sample.
        number: Its number in the draw, from 1.
        total: How many samples there are.
        outputs: Its pictures in the order of the page.
        ranking: The person's ranking of them so far.
        saved: When the last action was written down; null before the first one.
        can_undo: Whether there is an action to take back.
        finished: The person's rankings that are complete, by sample.
    """

    person: str
    sample: RankedSample
    number: int
    total: int
    outputs: tuple[Shown, ...]
    ranking: Ranking
    saved: datetime | None
    can_undo: bool
    finished: Mapping[str, Ranking]


@dataclass(frozen=True, slots=True)
class Acted:
    """What became of something that a person did.

    Attributes:
        view: What the page shows next.
        table_changes: Whether a ranking is complete that was not, or is another one, or none.
    """

    view: View
    table_changes: bool


@dataclass(frozen=True)
class Ranker:
    """Shows people samples, and writes down what they do.

    Attributes:
        log: The log of events.
        draw: The samples.
    """

    log: EventLog
    draw: Draw

    def view(self, person: str) -> View:
        """What a person's page shows now.

        Args:
            person: Pseudonym of the person.

        Returns:
            The sample that they were at last, or the first.

        Raises:
            RunError: The log cannot be used.
        """
        return self._state(person).view()

    def act(self, person: str, said: Mapping[str, Any]) -> Acted:
        """Writes down what a person did; it is on the disk when this returns.

        Args:
            person: Pseudonym of the person.
            said: What the page sent: `kind`, `subject` and, by kind, `item` and `rank`. Anything
                may be in it: what is not understood, or is about another sample than the one that
                the person is at (another window was faster), changes nothing.

        Returns:
            What became of it.

        Raises:
            RunError: The log cannot be used.
        """
        state = self._state(person)
        kind = said.get("kind")
        if said.get("subject") == state.sample.task.sample_id:
            if kind in ("next", "back"):
                self._open(state, state.next if kind == "next" else state.before)
            elif kind == "undo" and state.actions:
                self.log.undo(state.actions[-1].id, person)
            else:
                self._rank(state, said)
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
    def outputs(self) -> tuple[Shown, ...]:
        event = self.last.get(self.sample.task.sample_id)
        if event is not None and is_of(event, self.sample):
            return tuple(Shown(*one) for one in event.payload["shown"])
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
    """Whether a ranking is of the very pictures that a sample has now."""
    shown = {Shown(*one) for one in event.payload["shown"]}
    same = event.payload["sample_digest"] == sample.task.sample_digest
    return same and shown == set(sample.outputs)
