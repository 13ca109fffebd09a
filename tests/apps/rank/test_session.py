"""What people see and do while they rank, without a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from echo_hf.apps.events import EventLog
from echo_hf.apps.rank.draw import Draw, RankedSample, ShownOutput
from echo_hf.apps.rank.session import APP, Acted, Ranker
from echo_hf.systems.base import Task


def sample(name: str, *systems: str, digest: str = "d") -> RankedSample:
    """A sample with an output of each system."""
    shown = tuple(ShownOutput(system, f"{name}/{system}") for system in systems)
    return RankedSample(Task(name, digest, "text_to_image", f"draw {name}"), shown)


def ranker(path: Path, *samples: RankedSample, seed: int = 0) -> Ranker:
    """What shows samples, and writes next to a test."""
    known = {one.task.sample_id: one for one in samples}
    return Ranker(EventLog(path / "events.sqlite"), Draw(samples, known, seed, {}))


@pytest.fixture
def ranked(tmp_path: Path) -> Ranker:
    """Three samples with two outputs each."""
    return ranker(tmp_path, *(sample(name, "ash", "elm") for name in ("s1", "s2", "s3")))


def did(ranked: Ranker, person: str, kind: str, **more: Any) -> Acted:
    """What a page of a person sends about the sample that it shows."""
    subject = ranked.view(person).sample.task.sample_id
    return ranked.act(person, {"kind": kind, "subject": subject, **more})


def at(ranked: Ranker, person: str) -> str:
    """The sample that a person's page shows."""
    return ranked.view(person).sample.task.sample_id


def test_each_action_is_an_event_with_what_was_shown(ranked: Ranker) -> None:
    """The order of the page, the images, the sample's digest, and what was seen before."""
    shown = [[one.system, one.output] for one in ranked.view("ann").outputs]
    did(ranked, "ann", "place", item=0, rank=1)
    did(ranked, "ann", "place", item=1, rank=2)
    first, second = ranked.log.events(APP)
    assert first.payload == {
        "shown": shown,
        "sample_digest": "d",
        "ranks": [1, None],
        "barred": [],
        "impossible": False,
    }
    assert (first.base, second.base) == (None, first.id)
    assert (second.subject, second.person, second.payload["ranks"]) == ("s1", "ann", [1, 2])


def test_what_changes_nothing_is_no_event(ranked: Ranker) -> None:
    """The same rank again, what no page can ask for, and what is about another sample."""
    did(ranked, "ann", "place", item=0, rank=1)
    did(ranked, "ann", "place", item=0, rank=1)
    did(ranked, "ann", "explode")
    ranked.act("ann", {"kind": "place", "subject": "s2", "item": 0, "rank": 2})
    ranked.act("ann", {"kind": ["place"], "subject": None})
    ranked.act("ann", {})
    assert len(ranked.log.events(APP)) == 1


def test_next_goes_to_what_is_not_ranked(ranked: Ranker) -> None:
    """Past what is done, and round the end; when all is done, simply on to the last."""
    did(ranked, "ann", "next")
    assert at(ranked, "ann") == "s2"
    did(ranked, "ann", "impossible")
    did(ranked, "ann", "back")
    assert at(ranked, "ann") == "s1"
    did(ranked, "ann", "next")
    assert at(ranked, "ann") == "s3"
    did(ranked, "ann", "impossible")
    did(ranked, "ann", "next")
    assert at(ranked, "ann") == "s1"
    did(ranked, "ann", "impossible")
    assert set(ranked.view("ann").finished) == {"s1", "s2", "s3"}
    did(ranked, "ann", "next")
    did(ranked, "ann", "next")
    did(ranked, "ann", "next")
    assert at(ranked, "ann") == "s3"


def test_the_table_changes_with_what_is_complete(ranked: Ranker) -> None:
    """A half ranking says nothing yet; a complete one, another one, and none any more do."""
    steps = [
        did(ranked, "ann", "place", item=0, rank=1),
        did(ranked, "ann", "place", item=1, rank=2),
        did(ranked, "ann", "place", item=1, rank=1),
        did(ranked, "ann", "next"),
        did(ranked, "ann", "undo"),
        did(ranked, "ann", "undo"),
        did(ranked, "ann", "undo"),
    ]
    assert [one.table_changes for one in steps] == [False, True, True, False, True, True, False]
    assert [one.view.can_undo for one in steps][-2:] == [True, False]


def test_an_undo_of_nothing_is_nothing(ranked: Ranker) -> None:
    """Nor does it take back what another person did."""
    did(ranked, "ben", "impossible")
    did(ranked, "ann", "undo")
    assert [one.action for one in ranked.log.events(APP)] == ["rank"]


def test_another_seed_does_not_shuffle_what_was_begun(tmp_path: Path) -> None:
    """Order and ranks of a sample that a person has begun are those of the log."""
    one = sample("s1", *(f"m{at}" for at in range(8)))
    before = ranker(tmp_path, one)
    shown = did(before, "ann", "place", item=3, rank=1).view.outputs
    after = ranker(tmp_path, one, seed=1)
    assert after.view("ann").outputs == shown
    assert after.view("ann").ranking.ranks[3] == 1
    assert after.view("ben").outputs != before.view("ben").outputs


@pytest.mark.parametrize(
    "other", [sample("s1", "ash", "elm", "oak"), sample("s1", "ash", "elm", digest="e")]
)
def test_what_has_changed_is_ranked_anew(tmp_path: Path, other: RankedSample) -> None:
    """One more system, or another prompt: the old ranks are not of what is shown now."""
    did(ranker(tmp_path, sample("s1", "ash", "elm")), "ann", "impossible")
    view = ranker(tmp_path, other).view("ann")
    assert view.finished == {}
    assert view.ranking.ranks == (None,) * len(other.outputs)


def test_a_place_outside_the_draw_is_left(tmp_path: Path) -> None:
    """A smaller draw than before: the last sample of it that the person was at."""
    samples = [sample(name, "ash", "elm") for name in ("s1", "s2", "s3")]
    large = ranker(tmp_path, *samples)
    did(large, "ann", "next")
    did(large, "ann", "next")
    assert at(ranker(tmp_path, *samples[:2]), "ann") == "s2"
