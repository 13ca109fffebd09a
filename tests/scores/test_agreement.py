"""Everything together: that the parts fit, and that what must not matter does not."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.errors import ScoreError
from echo_hf.scores import Agreement, agreement, kemeny_consensus
from tests.scores.ranks_for_tests import RATERS, SYSTEMS, Row, drawn, human_rows, rating_rows

FEW_DRAWS: dict[str, Any] = {"n_boot": 40, "n_resamples": 99}


def figures(found: Agreement) -> dict[str, Any]:
    """What is said of people and judges, without the definition."""
    return {name: one for name, one in asdict(found).items() if name != "definition"}


def renamed(value: Any, names: dict[str, str]) -> Any:
    """The same figures with other names of systems, wherever they stand."""
    if isinstance(value, dict):
        return {names.get(key, key): renamed(one, names) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [renamed(one, names) for one in value]
    return names.get(value, value) if isinstance(value, str) else value


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """Every figure by its path; tests of pairs by their systems, as equal z's may change places."""
    if isinstance(value, dict) and "better" in value:
        pair = "-".join(sorted((value["better"], value["worse"])))
        rest = {name: one for name, one in value.items() if name not in ("better", "worse")}
        return flat(rest, f"{path.rpartition('/')[0]}/{pair}")
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list | tuple):
        parts = [(str(at), one) for at, one in enumerate(value)]
    else:
        return {path: value}
    return {key: one for name, part in parts for key, one in flat(part, f"{path}/{name}").items()}


def texts(found: dict[str, Any]) -> dict[str, Any]:
    """Those of the flat figures that are no numbers, but for the order that is shown."""
    ranking = "/people/consensus/ranking"
    return {
        path: one
        for path, one in found.items()
        if not path.startswith(ranking) and not isinstance(one, int | float)
    }


@given(st.integers(0, 99), st.permutations(SYSTEMS))
def test_names_of_systems_decide_nothing(seed: int, names: list[str]) -> None:
    """All figures are the same, by the new names; a tie of best orders is shown as another one."""
    human, ratings = drawn(14, seed)
    new = dict(zip(SYSTEMS, names, strict=True))
    found = agreement(human, ratings, **FEW_DRAWS)
    turned = agreement(_with_names(human, new), _with_names(ratings, new), **FEW_DRAWS)
    expected, same = flat(renamed(figures(found), new)), flat(figures(turned))
    assert texts(same) == texts(expected)
    numbers = [path for path, one in same.items() if isinstance(one, int | float)]
    assert [same[path] for path in numbers] == pytest.approx([expected[path] for path in numbers])
    if found.people.consensus.n_optimal == 1:
        shown = tuple(new[name] for name in found.people.consensus.ranking)
        assert turned.people.consensus.ranking == shown


def _with_names(rows: list[Row], names: dict[str, str]) -> list[Row]:
    return [{**row, "system": names[row["system"]]} for row in rows]


@given(st.integers(0, 99), st.randoms())
def test_the_order_of_rows_decides_nothing(seed: int, shuffler: Any) -> None:
    """Not even a digit."""
    human, ratings = drawn(12, seed)
    found = agreement(human, ratings, **FEW_DRAWS)
    shuffler.shuffle(human)
    shuffler.shuffle(ratings)
    assert agreement(human, ratings, **FEW_DRAWS) == found


def test_names_of_raters_and_judges_decide_nothing() -> None:
    """The figures of cy are those of ada, when they change names, and the consensus is the same."""
    human, ratings = drawn(20, 4)
    other = dict(zip(RATERS, reversed(RATERS), strict=True))
    turned = [{**row, "rater": other[row["rater"]]} for row in human]
    found, changed = (agreement(rows, ratings, **FEW_DRAWS) for rows in (human, turned))
    assert changed.people.consensus == found.people.consensus
    assert changed.judges.with_consensus == found.judges.with_consensus
    assert changed.judges.people_with_others.value == pytest.approx(
        found.judges.people_with_others.value
    )
    for judge, taus in found.judges.with_raters.items():
        for rater, tau in taus.items():
            assert changed.judges.with_raters[judge][other[rater]] == tau


def test_everybody_twice_is_no_more_evidence() -> None:
    """Each sample's consensus stays, and with it every figure of it but the distance."""
    human, ratings = drawn(20, 1)
    twice = [*human, *({**row, "rater": row["rater"] + " again"} for row in human)]
    found, doubled = (agreement(rows, ratings, **FEW_DRAWS) for rows in (human, twice))
    assert doubled.people.consensus.distance == 2 * found.people.consensus.distance
    assert doubled.people.mean_rank == found.people.mean_rank
    assert doubled.people.friedman == found.people.friedman
    assert doubled.people.tests == found.people.tests
    assert doubled.judges.with_consensus == found.judges.with_consensus


def test_as_published_everybody_twice_is_taken_for_evidence() -> None:
    """A block for each ranking: the statistic doubles, though nothing was learnt."""
    human, ratings = drawn(20, 1)
    twice = [*human, *({**row, "rater": row["rater"] + " again"} for row in human)]
    found, doubled = (
        agreement(rows, ratings, protocol="published", **FEW_DRAWS) for rows in (human, twice)
    )
    assert (found.people.friedman.blocks, doubled.people.friedman.blocks) == (60, 120)
    assert found.people.friedman.statistic is not None
    assert doubled.people.friedman.statistic == pytest.approx(2 * found.people.friedman.statistic)


def test_a_judge_who_half_agrees_is_told_from_one_who_does_not() -> None:
    """By interval, p value and share of what people reach."""
    judges = agreement(*drawn(120, 0)).judges
    jay, kite = judges.with_consensus["jay"], judges.with_consensus["kite"]
    assert jay.interval is not None
    assert kite.interval is not None
    assert jay.interval[0] > 0.3
    assert kite.interval[0] < 0 < kite.interval[1]
    assert jay.p_value is not None
    assert kite.p_value is not None
    assert jay.p_value < 0.001 < 0.05 < kite.p_value
    shares = judges.share_of_ceiling
    assert shares["jay"].share is not None
    assert shares["kite"].share is not None
    assert 0.6 < shares["jay"].share < 1.2
    assert abs(shares["kite"].share) < 0.3


def test_broken_ties_hang_on_the_seed_and_kept_ones_do_not() -> None:
    """Where a judge uses few ratings; the published figure is one of many."""
    human, ratings = drawn(40, 3)
    taus = {
        (protocol, seed): agreement(human, ratings, protocol=protocol, seed=seed, n_boot=0)
        .judges.with_consensus["kite"]
        .tau
        for protocol in ("published", "corrected")
        for seed in (0, 0, 1, 2)
    }
    assert len({tau for (protocol, _), tau in taus.items() if protocol == "published"}) == 3
    assert len({tau for (protocol, _), tau in taus.items() if protocol == "corrected"}) == 1


def test_what_people_could_not_rank_is_counted_and_left_out() -> None:
    """Ben finds the first sample impossible, and cy leaves a system of the second out."""
    ranks: dict[str, list[tuple[int | None, ...]]] = {
        "ada": [(1, 2, 3), (1, 2, 3), (1, 2, 3)],
        "ben": [(None, None, None), (1, 2, 3), (3, 2, 1)],
        "cy": [(1, 2, 3), (1, None, 2), (1, 2, 3)],
    }
    found = agreement(human_rows(ranks), rating_rows({"jay": [(3, 2, 1, 9)] * 4}), **FEW_DRAWS)
    assert asdict(found.counts) == {
        "samples": 3,
        "rankings": 8,
        "partial": 1,
        "refused": 1,
        "ratings_elsewhere": 3 + 4,
    }
    assert found.people.mean_rank_by_rater["ben"]["ash"].samples == 2
    assert found.people.mean_rank_by_rater["cy"]["cedar"].value == 3
    assert found.judges.with_consensus["jay"].tau == 1
    assert found.judges.with_raters["jay"]["ben"].tau == 0
    rankings = [
        [[SYSTEMS[at]] for at, rank in sorted(enumerate(sample), key=lambda one: one[1]) if rank]
        for sample in [(1, 2, 3)] * 6 + [(3, 2, 1)]
    ]
    overall = kemeny_consensus([*rankings, [["ash"], ["cedar"]]])
    assert found.people.consensus == overall


def test_people_can_be_compared_without_judges() -> None:
    """All that is about judges is empty."""
    human, _ = drawn(12, 0)
    found = agreement(human, **FEW_DRAWS)
    judges = found.judges
    assert judges.with_consensus == judges.with_raters == judges.share_of_ceiling == {}
    assert list(judges.among_raters) == ["ada", "ben"]
    assert judges.people_with_others.value is not None


def test_one_person_is_a_consensus_without_a_ceiling() -> None:
    """Judges are compared with that person alone."""
    human, ratings = drawn(12, 0)
    alone = [row for row in human if row["rater"] == "ada"]
    found = agreement(alone, ratings, **FEW_DRAWS).judges
    for judge in ("jay", "kite"):
        assert found.with_consensus[judge] == found.with_raters[judge]["ada"]
        assert found.share_of_ceiling[judge].share is None
    assert found.people_with_others.value is None


@pytest.mark.parametrize("protocol", ["published", "corrected"])
def test_json_can_hold_it(protocol: Any) -> None:
    """With nothing that is no number, and with how it was made."""
    found = agreement(*drawn(12, 0), protocol=protocol, seed=5, **FEW_DRAWS)
    read = json.loads(json.dumps(found.as_json(), allow_nan=False))
    assert read["definition"]["seed"] == 5
    assert read["definition"]["protocol"] == read["protocol"] == protocol
    assert read["judges"]["with_consensus"]["jay"]["tau"] == found.judges.with_consensus["jay"].tau


def test_choices_that_there_are_not_are_one_line() -> None:
    """With the nearest name."""
    human, ratings = drawn(12, 0)
    with pytest.raises(ScoreError, match="'publish'; did you mean 'published'"):
        agreement(human, ratings, protocol="publish")  # type: ignore[arg-type]
    with pytest.raises(ScoreError, match="seed is -1"):
        agreement(human, ratings, seed=-1)
    with pytest.raises(ScoreError, match=r"n_boot is 2\.5"):
        agreement(human, ratings, n_boot=2.5)  # type: ignore[arg-type]
