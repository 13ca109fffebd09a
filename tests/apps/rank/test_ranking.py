"""A ranking while it is made: what each key or drop does to it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from echo_hf.apps.rank.session import IMAGE, RANKED, Ranking, changed

Ranks = tuple[int | None, ...]


@st.composite
def rankings(draw: st.DrawFn) -> Ranking:
    """Any ranking of two to eight images that a person can reach."""
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
    """Worked out by hand."""
    found = changed(Ranking(before), kind, item, rank)
    assert found == Ranking(after)


@given(rankings(), st.data())
def test_an_inserted_image_stands_alone_and_others_keep_their_order(
    ranking: Ranking, data: st.DataObject
) -> None:
    """Whoever was before another, or tied with it, still is; ranks stay within 1 and the count."""
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
    """As scipy ranks them densely; none where none can be ranked."""
    ranked = {at: one for at, one in enumerate(ranking.ranks) if one is not None}
    dense = dict(zip(ranked, rankdata(list(ranked.values()), "dense"), strict=True))
    expected = {} if ranking.impossible else dense
    assert ranking.places == tuple(expected.get(at) for at in range(len(ranking.ranks)))


@given(rankings())
def test_a_ranking_is_read_back(ranking: Ranking) -> None:
    """From what is written into the log."""
    assert Ranking.from_json(ranking.as_json()) == ranking


@given(rankings(), st.data())
def test_no_action_leaves_a_barred_image_with_a_rank(ranking: Ranking, data: st.DataObject) -> None:
    """Whatever is done: no image is both, and no rank is beyond the last."""
    count = len(ranking.ranks)
    kind = data.draw(st.sampled_from([*RANKED, *IMAGE, "impossible"]))
    item, rank = data.draw(st.integers(0, count - 1)), data.draw(st.integers(1, count))
    after = changed(ranking, kind, item, rank)
    assert after is not None
    assert all(after.ranks[at] is None for at in after.barred)
    assert all(one is None or 1 <= one <= count for one in after.ranks)


def test_complete_is_when_nothing_is_left() -> None:
    """Each has a rank or cannot be ranked, or none can be."""
    whole: Mapping[Ranking, bool] = {
        Ranking((1, None)): False,
        Ranking((1, 1)): True,
        Ranking((1, None), frozenset({1})): True,
        Ranking((None, None), impossible=True): True,
        Ranking.empty(3): False,
    }
    assert {one: one.is_complete for one in whole} == whole


def test_what_cannot_be_ranked_can_be_ranked_after_all() -> None:
    """The same key takes it back; ranks that were there before a sample was given up stay."""
    barred = Ranking((1, 2)).bar(0)
    assert barred == Ranking((None, 2), frozenset({0}))
    assert barred.bar(0) == Ranking((None, 2))
    assert barred.place(0, 2) == Ranking((2, 2))
    assert Ranking((1, 2)).give_up().give_up() == Ranking((1, 2))


@pytest.mark.parametrize(
    ("kind", "item", "rank"),
    [
        ("place", 0, 0),
        ("place", 0, 4),
        ("place", 3, 1),
        ("place", -1, 1),
        ("place", True, 1),
        ("place", 0, True),
        ("place", "0", 1),
        ("place", 0, 1.0),
        ("place", 0, None),
        ("better", None, None),
        ("clear", [0], None),
        ("drop table", 0, 1),
        ("", None, None),
    ],
)
def test_what_a_page_cannot_ask_for_is_nothing(kind: str, item: object, rank: object) -> None:
    """Anything may be sent."""
    assert changed(Ranking.empty(3), kind, item, rank) is None
