"""What stands after all events: what was taken back is gone, what was decided anew is replaced."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from echo_hf.apps.events import UNDO, Event


def standing(events: Iterable[Event]) -> tuple[Event, ...]:
    """The events that were not taken back, without those that take back.

    An undo that was itself taken back counts for nothing. Two undos of one event are as good as
    one: it stands again when both are taken back.

    Args:
        events: Events of one app, in any order.

    Returns:
        Those that stand, in the order of their numbers.
    """
    ordered = sorted(events, key=lambda event: event.id)
    gone: set[int | None] = set()
    for event in reversed(ordered):  # an undo is later than what it takes back
        if event.action == UNDO and event.id not in gone:
            gone.add(event.base)
    return tuple(one for one in ordered if one.action != UNDO and one.id not in gone)


def by_person(events: Iterable[Event]) -> dict[tuple[str, str], Event]:
    """What each person last did about each subject: for apps where each has an own say.

    Args:
        events: Events of one app, in any order.

    Returns:
        The last event that stands, by subject and person.
    """
    return {(event.subject, event.person): event for event in standing(events)}


def decisions(events: Iterable[Event]) -> dict[str, tuple[Event, ...]]:
    """What is decided about each subject: for apps where there is one decision a subject.

    A decision replaces those that its person had seen, which are those up to its base, and the
    same person's earlier ones. What is left is one decision, or several by people who did not see
    each other's: `is_conflict` says whether these contradict each other. Whoever has seen them all
    and decides settles it.

    Args:
        events: Events of one app that are decisions or undos, in any order.

    Returns:
        The decisions that nothing replaces, by subject, in the order of their numbers.
    """
    subjects: Mapping[str, list[Event]] = defaultdict(list)
    for event in standing(events):
        subjects[event.subject].append(event)
    return {subject: _unreplaced(found) for subject, found in subjects.items()}


def is_conflict(found: Iterable[Event]) -> bool:
    """Whether decisions about one subject, as `decisions` gives them, contradict each other."""
    said: list[tuple[str, Mapping[str, object]]] = []
    for event in found:
        if (event.action, event.payload) not in said:
            said.append((event.action, event.payload))
    return len(said) > 1


def _unreplaced(found: list[Event]) -> tuple[Event, ...]:
    return tuple(
        event
        for at, event in enumerate(found)
        if not any(_replaces(later, event) for later in found[at + 1 :])
    )


def _replaces(later: Event, event: Event) -> bool:
    return later.person == event.person or (later.base or 0) >= event.id
