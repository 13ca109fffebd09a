"""What people see and do while they rank, without a browser."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, rankdata

from echo_hf.apps.rank import (
    APP,
    IMAGE,
    RANKED,
    Draw,
    RankedSample,
    Ranker,
    Ranking,
    ShownOutput,
    View,
    changed,
    drawn_samples,
    shuffled,
)
from echo_hf.images.store import ImageStore
from echo_hf.reasons import LeftOut, NotJudged, NotRanked
from echo_hf.systems.base import Task
from echo_hf.systems.benchmark import Benchmark
from echo_hf.tables import OUTPUTS
from tests.judging.run_for_tests import output, put, root, run, stripes

Ranks = tuple[int | None, ...]


@st.composite
def rankings(draw: st.DrawFn) -> Ranking:
    count = draw(st.integers(2, 8))
    rank = st.one_of(st.none(), st.integers(1, count))
    ranks = tuple(draw(st.lists(rank, min_size=count, max_size=count)))
    unranked = [at for at, one in enumerate(ranks) if one is None]
    barred = draw(st.sets(st.sampled_from(unranked))) if unranked else set()
    return Ranking(ranks, frozenset(barred), draw(st.booleans()))


@pytest.mark.parametrize(
    ("before", "kind", "item", "rank", "after"),
    [
        ((None, None, None), "place", 1, 3, (None, 3, None)),
        ((1, None, None), "place", 2, 1, (1, None, 1)),
        ((1, 2, None), "insert", 2, 1, (2, 3, 1)),
        ((1, 1, None), "insert", 2, 1, (2, 2, 1)),
        ((1, 3, None), "insert", 2, 1, (2, 3, 1)),
        ((2, 3, None), "insert", 2, 3, (1, 3, 2)),  # no room below: the gap above closes
        ((1, 2, 3), "insert", 2, 2, (1, 3, 2)),
        ((1, 2, 3), "better", 2, None, (1, 2, 2)),
        ((1, 2, 3), "better", 0, None, (1, 2, 3)),
        ((1, 2, 3), "worse", 0, None, (2, 2, 3)),
        ((1, 2, 3), "worse", 2, None, (1, 2, 3)),
        ((1, None, 3), "better", 1, None, (1, 2, 3)),
        ((1, None, None), "worse", 1, None, (1, 3, None)),
        ((1, 2, 3), "clear", 1, None, (1, None, 3)),
    ],
)
def test_what_a_key_does(
    before: Ranks, kind: str, item: int, rank: int | None, after: Ranks
) -> None:
    assert changed(Ranking(before), kind, item, rank) == Ranking(after)
    # What cannot be ranked can be ranked after all.
    barred = Ranking((1, 2)).bar(0)
    assert barred == Ranking((None, 2), frozenset({0}))
    assert (barred.bar(0), barred.place(0, 2)) == (Ranking((None, 2)), Ranking((2, 2)))
    assert Ranking((1, 2)).give_up().give_up() == Ranking((1, 2))


@given(rankings(), st.data())
def test_an_inserted_image_stands_alone_and_others_keep_their_order(
    ranking: Ranking, data: st.DataObject
) -> None:
    count = len(ranking.ranks)
    item = data.draw(st.integers(0, count - 1))
    rank = data.draw(st.integers(1, count))
    after = ranking.insert(item, rank).ranks
    others = {at: one for at, one in enumerate(ranking.ranks) if one is not None and at != item}
    assert all(1 <= (after[at] or 0) <= count for at in [*others, item])
    assert all(after[at] != after[item] for at in others)
    for one, old in others.items():
        for other, older in others.items():
            new = (after[one] or 0) - (after[other] or 0)
            assert (new > 0) - (new < 0) == (old > older) - (old < older)
        assert ((after[one] or 0) < (after[item] or 0)) == (old < rank)


@given(rankings())
def test_places_are_ranks_without_gaps(ranking: Ranking) -> None:
    ranked = {at: one for at, one in enumerate(ranking.ranks) if one is not None}
    dense = dict(zip(ranked, rankdata(list(ranked.values()), "dense"), strict=True))
    expected = {} if ranking.impossible else dense
    assert ranking.places == tuple(expected.get(at) for at in range(len(ranking.ranks)))


@given(rankings(), st.data())
def test_no_action_leaves_a_barred_image_with_a_rank(ranking: Ranking, data: st.DataObject) -> None:
    count = len(ranking.ranks)
    kind = data.draw(st.sampled_from([*RANKED, *IMAGE, "impossible"]))
    item, rank = data.draw(st.integers(0, count - 1)), data.draw(st.integers(1, count))
    after = changed(ranking, kind, item, rank)
    assert all(after.ranks[at] is None for at in after.barred)
    assert all(one is None or 1 <= one <= count for one in after.ranks)


def test_complete_is_when_nothing_is_left() -> None:
    barred, impossible = Ranking((1, None), frozenset({1})), Ranking((None,) * 2, impossible=True)
    assert [one.is_complete for one in (Ranking((1, 1)), barred, impossible)] == [True] * 3
    assert [Ranking(one).is_complete for one in ((1, None), (None,) * 3)] == [False] * 2


UNKNOWN: list[tuple[str, object, object]] = [
    *(("place", 0, rank) for rank in (0, 4, True, 1.0, None)),
    *(("place", item, 1) for item in (3, -1, True, "0")),
    *(("better", None, None), ("clear", [0], None), ("drop table", 0, 1), ("", None, None)),
]


@pytest.mark.parametrize(("kind", "item", "rank"), UNKNOWN)
def test_what_a_page_cannot_ask_for_is_nothing(kind: str, item: object, rank: object) -> None:
    assert changed(Ranking((None,) * 3), kind, item, rank) is None


def sample(name: str, *systems: str, digest: str = "d") -> RankedSample:
    shown = tuple(ShownOutput(system, f"{name}/{system}") for system in systems)
    return RankedSample(Task(name, digest, "text_to_image", f"draw {name}"), shown)


def ranker(path: Path, *samples: RankedSample, seed: int = 0) -> Ranker:
    known = {one.task.sample_id: one for one in samples}
    return Ranker(path, Draw(samples, known, seed, {}))


@pytest.fixture
def ranked(tmp_path: Path) -> Ranker:
    return ranker(tmp_path, *(sample(name, "ash", "elm") for name in ("s1", "s2", "s3")))


def did(ranked: Ranker, person: str, kind: str, **more: Any) -> tuple[View, bool]:
    subject = ranked.view(person).sample.task.sample_id
    return ranked.act(person, {"kind": kind, "subject": subject, **more})


def test_each_action_is_an_event_with_what_was_shown(ranked: Ranker) -> None:
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
    did(ranked, "ann", "place", item=0, rank=1)
    did(ranked, "ann", "place", item=0, rank=1)
    did(ranked, "ann", "explode")
    ranked.act("ann", {"kind": "place", "subject": "s2", "item": 0, "rank": 2})
    ranked.act("ann", {"kind": ["place"], "subject": None})
    ranked.act("ann", {})
    assert len(ranked.log.events(APP)) == 1


def test_next_goes_to_what_is_not_ranked(ranked: Ranker) -> None:
    steps = [
        "next",
        "impossible",
        "back",
        "next",
        "impossible",
        "next",
        "impossible",
        *["next"] * 3,
    ]
    places = []
    for kind in steps:
        view, _ = did(ranked, "ann", kind)
        places.append(view.sample.task.sample_id)
    assert places == ["s2", "s2", "s1", "s3", "s3", "s1", "s1", "s2", "s3", "s3"]
    assert set(view.finished) == {"s1", "s2", "s3"}


def test_the_table_changes_with_what_is_complete(ranked: Ranker) -> None:
    steps = [
        did(ranked, "ann", "place", item=0, rank=1),
        did(ranked, "ann", "place", item=1, rank=2),
        did(ranked, "ann", "place", item=1, rank=1),
        did(ranked, "ann", "next"),
        did(ranked, "ann", "undo"),
        did(ranked, "ann", "undo"),
        did(ranked, "ann", "undo"),
    ]
    assert [changes for _, changes in steps] == [False, True, True, False, True, True, False]
    assert [bool(view.actions) for view, _ in steps][-2:] == [True, False]


def test_a_seed_shuffles_what_was_not_begun_and_what_has_changed_is_ranked_anew(
    tmp_path: Path,
) -> None:
    """The order of images is a person's own, of each sample, and stays."""
    one = sample("s1", *(f"m{at}" for at in range(8)))
    other = RankedSample(replace(one.task, sample_id="t"), one.outputs)
    ann = shuffled(one, "ann", 0)
    assert sorted(ann, key=lambda image: image.system) == list(one.outputs)
    assert ann not in [shuffled(one, "ben", 0), shuffled(one, "ann", 1), shuffled(other, "ann", 0)]
    assert did(ranker(tmp_path, one), "ann", "place", item=3, rank=1)[0].outputs == ann
    after = ranker(tmp_path, one, seed=1)
    assert after.view("ann").outputs == ann
    assert after.view("ann").ranking.ranks[3] == 1
    for changed_one in (
        sample("s1", "ash", "elm"),
        RankedSample(replace(one.task, sample_digest="e"), ann),
    ):
        view = ranker(tmp_path, changed_one).view("ann")
        assert view.ranking.ranks == (None,) * len(changed_one.outputs)


WORDS = tuple(f"word{at:02}" for at in range(12))
EDITS = {f"edit{at}": [stripes((at, 100, 100))] for at in range(3)}
SPLITS = ("image_to_image", "text_to_image")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("drawn")
    run(found, EDITS, WORDS)
    return found


def rows(folder: Path, **images: str | None) -> list[dict[str, object]]:
    return [
        output(name, system, EDITS.get(name, ()), image=image)
        for name in (*EDITS, *WORDS)
        for system, image in images.items()
    ]


def two(folder: Path) -> list[dict[str, object]]:
    return rows(folder, ash=put(folder, stripes((1, 1, 1))), elm=put(folder, stripes((2, 2, 2))))


def draw_of(
    folder: Path, made: list[dict[str, object]], draw: int = 100, seed: int = 0, splits=SPLITS
) -> Draw:
    table = pa.Table.from_pylist(made, OUTPUTS.schema)
    images = ImageStore(root(folder) / "pictures")
    tasks = Benchmark(str(folder / "benchmark")).tasks(images)
    return drawn_samples(table, tasks, images, draw=lambda *_: draw, seed=seed, splits=splits)


def ids(draw: Draw) -> list[str]:
    return [sample.task.sample_id for sample in draw.samples]


def test_a_draw_is_in_the_order_of_a_digest_of_the_seed_and_the_id(folder: Path) -> None:
    order = sorted(WORDS, key=lambda name: hashlib.sha256(f"7:{name}".encode()).hexdigest())
    found = draw_of(folder, two(folder), draw=2, seed=7)
    assert ids(found)[2:] == order[:2]
    assert {name[:4] for name in ids(found)[:2]} == {"edit"}
    assert ids(draw_of(folder, two(folder), 9, 7, ["text_to_image"])) == order[:9]
    assert found.left_out == {NotRanked.NOT_DRAWN: 11}


def test_every_sample_is_drawn_as_often_as_any_other(folder: Path) -> None:
    """Over 500 seeds, how often each of 12 is among 4: as chance would have it."""
    table = pa.Table.from_pylist(two(folder), OUTPUTS.schema)
    images = ImageStore(root(folder) / "pictures")
    tasks, drawn = Benchmark(str(folder / "benchmark")).tasks(images), Counter[str]()
    for seed in range(500):
        some = {"draw": lambda *_: 4, "seed": seed, "splits": ["text_to_image"]}
        drawn.update(ids(drawn_samples(table, tasks, images, **some)))
    assert len(drawn) == 12
    expected, left = 500 * 4 / 12, 1 - 4 / 12
    far = sum((count - expected) ** 2 for count in drawn.values()) / (expected * left)
    assert far * 11 / 12 < chi2.ppf(0.999, 11)


def test_samples_need_two_images_that_are_there(folder: Path) -> None:
    made = two(folder)
    of = {(row["sample_id"], row["system"]): row for row in made}
    of["word00", "ash"].update(outcome="refused", image=None)
    of["word01", "elm"].update(sample_digest="0" * 64)
    of["word02", "elm"].update(image="f" * 64)
    found = draw_of(folder, made)
    assert not {"word00", "word01", "word02"} & set(ids(found))
    assert len(found.samples) == 12
    assert found.left_out == {
        NotJudged.WITHOUT_IMAGE: 1,
        LeftOut.OTHER_SAMPLE: 1,
        NotRanked.LOST_IMAGE: 1,
        NotRanked.FEW_OUTPUTS: 3,
    }
