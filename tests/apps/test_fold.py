"""What stands after events: the laws of undo and of decisions, against a plain reading of them."""

from __future__ import annotations

import random
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from echo_hf.apps.events import UNDO, Event, by_person, decisions, is_conflict, standing

AT = datetime(2026, 3, 2, tzinfo=UTC)
PEOPLE = ("ann", "ben", "cy")


def event(number: int, action: str, base: int | None = None, **more: str) -> Event:
    """An event of Ann's about one sample, unless it says otherwise."""
    subject, person = more.get("subject", "s"), more.get("person", "ann")
    return Event(number, "review", subject, person, action, {}, base, AT)


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    """Events of which some take back earlier ones."""
    found: list[Event] = []
    for number in range(1, draw(st.integers(1, 12)) + 1):
        person = draw(st.sampled_from(PEOPLE))
        own = [one for one in found if one.person == person]
        if own and draw(st.booleans()):
            back = draw(st.sampled_from(own))
            found.append(event(number, UNDO, back.id, person=person, subject=back.subject))
        else:
            subject = draw(st.sampled_from(("s", "t")))
            base = draw(st.sampled_from([None, *(one.id for one in found)]))
            action = draw(st.sampled_from(("keep", "flag")))
            found.append(event(number, action, base, person=person, subject=subject))
    return found


def stands(one: Event, log: list[Event]) -> bool:
    """The definition: nothing that stands takes it back."""
    return not any(
        other.action == UNDO and other.base == one.id and stands(other, log) for other in log
    )


@given(logs())
def test_what_stands_is_what_nothing_that_stands_takes_back(log: list[Event]) -> None:
    """The definition in words, by recursion."""
    expected = tuple(one for one in log if one.action != UNDO and stands(one, log))
    assert standing(log) == expected


@given(logs(), st.integers())
def test_the_fold_is_stable_under_the_order_of_reading(log: list[Event], seed: int) -> None:
    """However the rows come out of the file."""
    mixed = random.Random(seed).sample(log, len(log))
    assert standing(mixed) == standing(log)
    assert by_person(mixed) == by_person(log)
    assert decisions(mixed) == decisions(log)


@given(logs())
def test_undo_is_undone(log: list[Event]) -> None:
    """An event and its undo leave what was before; the undo's undo brings it back."""
    end = log[-1].id
    did = event(end + 1, "keep", person="ann")
    undone = event(end + 2, UNDO, did.id)
    again = event(end + 3, UNDO, undone.id)
    assert standing([*log, did, undone]) == standing(log)
    assert standing([*log, did, undone, again]) == standing([*log, did])


def test_two_undos_of_one_event_are_as_good_as_one() -> None:
    """A second window may be late; both have to be taken back."""
    log = [event(1, "keep"), event(2, UNDO, 1), event(3, UNDO, 1), event(4, UNDO, 3)]
    assert standing(log) == ()
    assert standing([*log, event(5, UNDO, 2)]) == (log[0],)


def test_each_person_has_an_own_say() -> None:
    """The last thing that stands, by sample and person."""
    log = [
        event(1, "keep"),
        event(2, "flag", person="ben"),
        event(3, "flag"),
        event(4, "keep", subject="t"),
        event(5, UNDO, 3),
    ]
    found = {key: one.id for key, one in by_person(log).items()}
    assert found == {("s", "ann"): 1, ("s", "ben"): 2, ("t", "ann"): 4}


def test_a_decision_replaces_those_that_were_seen() -> None:
    """Ben saw Ann's; one is left."""
    log = [event(1, "keep"), event(2, "flag", 1, person="ben")]
    assert decisions(log) == {"s": (log[1],)}


def test_two_decisions_on_one_base_are_a_conflict_until_one_has_seen_both() -> None:
    """Neither saw the other's; a third who saw both settles it."""
    log = [
        event(1, "keep"),
        event(2, "flag", 1, person="ben"),
        event(3, "edit", 1, person="cy"),
    ]
    assert decisions(log) == {"s": (log[1], log[2])}
    assert is_conflict(decisions(log)["s"])
    settled = event(4, "keep", 3, person="ann")
    assert decisions([*log, settled]) == {"s": (settled,)}
    assert decisions([*log, settled, event(5, UNDO, 4)])["s"] == (log[1], log[2])


def test_a_decision_on_an_old_base_does_not_hide_a_later_one() -> None:
    """Cy had only seen Ann's, whose place Ben's has taken: the two are left."""
    log = [
        event(1, "keep"),
        event(2, "flag", 1, person="ben"),
        event(3, "flag", 2, person="ann"),
        event(4, "keep", 2, person="cy"),
    ]
    assert decisions(log) == {"s": (log[2], log[3])}


def test_people_who_say_the_same_do_not_contradict() -> None:
    """Two keep it, without knowing of each other."""
    log = [event(1, "keep"), event(2, "keep", person="ben")]
    assert len(decisions(log)["s"]) == 2
    assert not is_conflict(decisions(log)["s"])


@given(logs())
def test_nothing_that_stands_is_forgotten(log: list[Event]) -> None:
    """A sample with a decision that stands has one that nothing replaces, the last one."""
    last = {one.subject: one for one in standing(log)}
    found = decisions(log)
    assert found.keys() == last.keys()
    assert all(found[subject][-1] == one for subject, one in last.items())
