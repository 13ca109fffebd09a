"""The ruler, against counting, scipy's likelihood, and releases cut from real ratings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

from echo_hf._infra.bootstrap import Unscored
from echo_hf.errors import EchoError
from echo_hf.scores import Ruler, Unlinked, ruler
from tests.scores.ratings_for_tests import real_rows

JUDGES = ("gpt4o", "gemini", "qwenvl")
Block = tuple[str, str | None, Sequence[str], Sequence[str], np.ndarray, str]


def rows_of(*blocks: Block) -> dict[str, list[Any]]:
    """Rows of blocks: release, origin, samples, systems, ratings [sample, system], judge."""
    columns: dict[str, list[Any]] = {
        name: [] for name in ("release", "carried_from", "sample_id", "system", "judge", "rating")
    }
    for release, origin, samples, systems, ratings, judge in blocks:
        for sample, row in zip(samples, ratings.tolist(), strict=True):
            for system, rating in zip(systems, row, strict=True):
                cells = (release, origin, sample, system, judge, rating)
                for name, cell in zip(columns, cells, strict=True):
                    columns[name].append(cell)
    return columns


def names(letter: str, count: int) -> list[str]:
    return [f"{letter}{at:03}" for at in range(count)]


@pytest.fixture(scope="module")
def real(test_data: Path) -> np.ndarray:
    """Ratings [sample, system, judge] of 179 samples, 8 systems, 3 judges."""
    rows = real_rows(test_data)
    samples, systems = (sorted({row[key] for row in rows}) for key in ("sample_id", "system"))
    cube = np.full((len(samples), len(systems), len(JUDGES)), np.nan)
    for row in rows:
        if row["rating"] is not None:
            place = samples.index(row["sample_id"]), systems.index(row["system"])
            cube[(*place, JUDGES.index(row["judge"]))] = row["rating"]
    return cube


def cut(real: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """The samples that an old and a new release draw from."""
    order = np.argsort(np.nanmean(real[:, :, 0], axis=1))
    every, half = np.arange(len(real)), len(real) // 2
    return (every, every) if kind == "alike" else (order[half:], order[:half])


def likeliest(verdicts: np.ndarray) -> np.ndarray:
    """Bradley-Terry strengths by scipy, with half a drawn point for each pair."""
    systems = verdicts.shape[1]

    def loss(free: np.ndarray) -> float:
        gaps = free[:, None] - free
        points = np.nan_to_num(verdicts).sum(axis=0) + 0.25
        return float((points * np.logaddexp(0, -gaps))[~np.eye(systems, dtype=bool)].sum())

    strengths = minimize(loss, np.zeros(systems), method="BFGS", options={"gtol": 1e-9}).x
    return np.asarray(strengths - strengths.mean())


def points(ratings: np.ndarray) -> np.ndarray:
    gaps = ratings[:, :, None] - ratings[:, None]
    return np.where(np.isnan(gaps), np.nan, (np.sign(gaps) + 1) / 2)


def carried_release(seed: int = 0, samples: int = 40, systems: int = 3) -> dict[str, list[Any]]:
    """Three retired systems, and three new ones that were run on 30 old prompts as well."""
    rng = np.random.default_rng(seed)
    old, new = names("old", systems), names("new", systems)
    first, second = rng.integers(1, 7, (2, samples, systems)).astype(float)
    again = np.hstack([first[:30], rng.integers(1, 7, (30, systems)).astype(float)])
    return rows_of(
        ("1", None, names("a", samples), old, first, "j"),
        ("2", None, names("b", samples), new, second, "j"),
        ("2", "1", names("a", 30), [*old, *new], again, "j"),
    )


def test_a_difference_is_the_share_of_common_samples_with_the_interval_of_other_programs() -> None:
    """The ends are scoreci.mp(25, 28, 618, 0.9) of R's PropCIs, of a difference of shares."""
    samples = names("a", 618)
    new = np.array([6.0] * 28 + [4.0] * 25 + [5.0] * 565)[:, None]
    rows = rows_of(
        ("1", None, samples, ["retired"], np.full((618, 1), 5.0), "j"),
        ("2", "1", samples, ["retired", "new"], np.hstack([np.full((618, 1), 5.0), new]), "j"),
        ("2", None, ["b1"], ["new"], np.array([[3.0]]), "j"),
    )
    estimate, low, high, count, how = ruler(rows, confidence=0.9).difference("new", "retired")
    assert (estimate, count, how) == (0.5 + 3 / 618 / 2, 618, "common")
    assert np.round(2 * np.array([low, high]) - 1, 4).tolist() == [-0.0148, 0.0247]


def test_a_difference_from_the_other_side_is_its_mirror_image() -> None:
    found = ruler(carried_release())
    for system, others in found.differences.items():
        for other, (estimate, low, high, count, how) in others.items():
            back = found.difference(other, system)
            assert (back.samples, back.how) == (count, how)
            assert np.allclose(
                [back.estimate, back.low, back.high], [1 - estimate, 1 - high, 1 - low]
            )


def test_strengths_are_those_of_the_newest_board_and_place_old_systems_beside_it() -> None:
    """A system that is gone stands as far from the mean of the new ones as on carried samples."""
    rows = carried_release(samples=30)
    found = ruler(rows)
    systems = sorted({*rows["system"]})
    cubes = []
    for origin in (None, "1"):
        chosen = [
            (sample, system, rating)
            for release, carried, sample, system, _, rating in zip(*rows.values(), strict=True)
            if release == "2" and carried == origin
        ]
        samples = sorted({sample for sample, _, _ in chosen})
        cube = np.full((len(samples), len(systems)), np.nan)
        for sample, system, rating in chosen:
            cube[samples.index(sample), systems.index(system)] = rating
        cubes.append(cube)
    is_new = np.array([name.startswith("new") for name in systems])
    board = likeliest(points(cubes[0][:, is_new]))
    carried = likeliest(points(cubes[1]))
    expected = np.where(is_new, 0.0, carried - carried[is_new].mean())
    expected[is_new] = board
    assert np.allclose([found.strength[name] for name in systems], expected, atol=1e-5)
    assert set(found.how.values()) == {"common"}
    assert found.first == {name: "1" if name.startswith("old") else "2" for name in found.strength}


def test_a_system_that_always_wins_has_a_finite_strength_and_an_interval_with_width() -> None:
    rows = rows_of(("1", None, names("a", 30), ["best", "last"], np.tile([9.0, 1.0], (30, 1)), "j"))
    found = ruler(rows)
    low, high = found.interval["best"] or (0.0, 0.0)
    assert np.isfinite([low, high]).all()
    assert low < (found.strength["best"] or 0.0) < high
    estimate, low, high, *_ = found.difference("best", "last")
    assert estimate == 1
    assert low is not None
    assert 0.5 < low < 1


def test_samples_that_all_tie_leave_an_interval_with_width_around_a_half() -> None:
    rows = rows_of(("1", None, names("a", 30), ["x", "y"], np.full((30, 2), 5.0), "j"))
    estimate, low, high, *_ = ruler(rows).difference("x", "y")
    assert estimate == 0.5
    assert low is not None
    assert low < 0.5 < (high or 0)


def test_difficulty_is_how_much_lower_the_same_systems_are_rated_on_the_new_samples() -> None:
    """New systems are witnesses: they were rated on old and new samples side by side."""
    rng = np.random.default_rng(3)
    drawn, own = rng.normal(6, 1, (30, 2)), rng.normal(4, 1, (50, 2))
    rows = rows_of(
        ("1", None, names("a", 30), ["old"], np.full((30, 1), 5.0), "j"),
        ("2", "1", names("a", 30), ["x", "y"], drawn, "j"),
        ("2", None, names("b", 50), ["x", "y"], own, "j"),
    )
    found = ruler(rows).difficulty
    assert found["1"] == (0.0, None)
    change = found["2"]
    assert change is not None
    assert change.interval is not None
    assert change.estimate == pytest.approx(drawn.mean() - own.mean())
    parts = drawn.mean(axis=1), own.mean(axis=1)
    error = np.sqrt(sum(part.var(ddof=1) / len(part) for part in parts))
    half = stats.t.ppf(0.975, 29) * error
    assert np.allclose(np.array(change.interval) - change.estimate, [-half, half])


def test_judge_shift_is_the_mean_gap_on_the_same_outputs() -> None:
    rng = np.random.default_rng(4)
    before = rng.normal(5, 1, (40, 2))
    after = before[:25] + rng.normal(0.7, 0.3, (25, 2))
    rows = rows_of(
        ("1", None, names("a", 40), ["x", "y"], before, "old judge"),
        ("2", "1", names("a", 25), ["x", "y"], after, "new judge"),
        ("2", None, names("b", 20), ["z", "w"], rng.normal(5, 1, (20, 2)), "new judge"),
    )
    change = ruler(rows).judge_shift["1"]
    gaps = (after - before[:25]).mean(axis=1)
    interval = stats.ttest_1samp(gaps, 0).confidence_interval(0.95)
    assert change.estimate == pytest.approx(gaps.mean())
    assert change.interval == pytest.approx((interval.low, interval.high))


def test_bridges_shift_an_old_board_by_their_mean_distance() -> None:
    """(new - mean of bridges) in the new release less (old - mean of bridges) in the old one."""
    rng = np.random.default_rng(5)
    bridges = ["b1", "b2", "b3"]
    first, second = rng.integers(1, 8, (2, 60, 4)).astype(float)
    rows = rows_of(
        ("1", None, names("x", 60), [*bridges, "old"], first, "j"),
        ("2", None, names("y", 60), [*bridges, "new"], second, "j"),
    )
    found = ruler(rows)
    before, after = (likeliest(points(ratings)) for ratings in (first, second))
    expected = (after[3] - after[:3].mean()) - (before[3] - before[:3].mean())
    estimate, low, high, count, how = found.difference("new", "old")
    assert estimate is not None
    assert (count, how, found.how["old"], found.how["new"]) == (60, "bridges", "bridges", "common")
    assert np.log(estimate / (1 - estimate)) == pytest.approx(expected, abs=1e-5)
    assert low is not None
    assert low < estimate < (high or 0)
    assert found.bend is not None
    assert found.bend.bridges == tuple(bridges)
    assert ruler(rows, method="common").refused == {"old": Unlinked.UNCONNECTED}


def test_the_bend_test_of_two_bridges_is_hotellings_of_their_difference() -> None:
    """With one residual it is Student's t of how far their distance moved, squared."""
    rng = np.random.default_rng(6)
    first, second = rng.integers(1, 8, (2, 80, 2)).astype(float)
    rows = rows_of(
        ("1", None, names("x", 80), ["b1", "b2", "old"], np.c_[first, first[:, :1]], "j"),
        ("2", None, names("y", 80), ["b1", "b2", "new"], np.c_[second, second[:, :1]], "j"),
    )
    bend = ruler(rows).bend
    assert bend is not None
    assert bend.p is not None
    moved, variance = 0.0, 0.0
    for sign, ratings in ((1, first), (-1, second)):
        share = points(ratings)[:, 0, 1]
        mean = (share.sum() + 0.25) / (len(share) + 0.5)
        moved += sign * np.log(mean / (1 - mean))
        slope = (len(share) + 0.5) * mean * (1 - mean)
        # Its error by the delta method, with the two quarters of a drawn point.
        drawn = 0.25**2 * (mean**2 + (1 - mean) ** 2)
        samples = len(share) / (len(share) - 1)
        variance += (samples * ((share - mean) ** 2).sum() + drawn) / slope**2
    expected = stats.f.sf(moved**2 / variance, 1, 79)
    assert bend.p == pytest.approx(expected, rel=1e-2)


def bridged(count: int, judges: tuple[str, str] = ("j", "j"), again: int = 0) -> Ruler:
    rng = np.random.default_rng(count)
    bridges = names("bridge", count)
    first, second = rng.integers(1, 8, (2, 60, count + 1)).astype(float)
    blocks: list[Block] = [
        ("1", None, names("x", 60), [*bridges, "old"], first, judges[0]),
        ("2", None, names("y", 60), [*bridges, "new"], second, judges[1]),
    ]
    if again:
        rated = np.clip(first[:again] + rng.integers(-1, 2, (again, count + 1)), 1, 7)
        blocks.append(("2", "1", names("x", again), [*bridges, "old"], rated, judges[1]))
    return ruler(rows_of(*blocks))


def test_one_bridge_gives_no_interval_and_two_no_verdict() -> None:
    found = {count: bridged(count) for count in (1, 2, 3)}
    single = found[1].difference("new", "old")
    assert single.estimate is not None
    assert (single.low, single.high, found[1].interval["old"]) == (None, None, None)
    assert found[2].difference("new", "old").low is not None
    reasons = {count: result.refused.get("old") for count, result in found.items()}
    assert reasons == {1: Unlinked.ONE_BRIDGE, 2: Unlinked.TWO_BRIDGES, 3: None}


@pytest.mark.parametrize(("again", "reason"), [(0, True), (19, True), (20, False)])
def test_new_judges_link_an_old_release_only_by_20_samples_rated_again(
    again: int, reason: bool
) -> None:
    found = bridged(3, ("then", "now"), again)
    assert found.refused == ({"old": Unlinked.OTHER_JUDGES} if reason else {})
    assert (found.difference("new", "old").estimate is None) is reason


def test_what_no_system_links_has_no_strength() -> None:
    rng = np.random.default_rng(7)
    first, second = rng.integers(1, 8, (2, 30, 2)).astype(float)
    found = ruler(
        rows_of(
            ("1", None, names("x", 30), ["a", "b"], first, "j"),
            ("2", None, names("y", 30), ["c", "d"], second, "j"),
        )
    )
    assert found.refused == dict.fromkeys("ab", Unlinked.UNCONNECTED)
    assert found.difference("a", "c") == (None, None, None, 0, None)
    assert found.difference("a", "b").how == "common"  # the same judges rated them side by side
    assert found.difficulty["1"] is None


def test_releases_link_in_a_chain_and_retired_systems_stay() -> None:
    """Each release carries samples of the one before, which its own systems were run on."""
    rng = np.random.default_rng(8)
    skill = dict(zip("abcdefghi", np.linspace(-2, 2, 9), strict=True))

    def rate(samples: int, systems: str) -> np.ndarray:
        return np.array([skill[name] for name in systems]) + rng.normal(
            0, 1.5, (samples, len(systems))
        )

    rows = rows_of(
        ("1", None, names("x", 80), [*"abc"], rate(80, "abc"), "j"),
        ("2", None, names("y", 80), [*"def"], rate(80, "def"), "j"),
        ("2", "1", names("x", 40), [*"abcdef"], rate(40, "abcdef"), "j"),
        ("3", None, names("z", 80), [*"ghi"], rate(80, "ghi"), "j"),
        ("3", "2", names("y", 40), [*"defghi"], rate(40, "defghi"), "j"),
    )
    found = ruler(rows)
    assert [found.how[name] for name in "adg"] == ["bridges", "common", "common"]
    assert found.difference("a", "d").how == "common"
    chained = found.difference("a", "g")
    assert chained.how == "bridges"  # from the samples of one release to those of another
    assert chained.estimate is not None
    assert chained.high is not None
    assert chained.estimate < chained.high < 0.5
    assert found.releases == ("1", "2", "3")
    assert all(change is not None for change in found.difficulty.values())


def test_any_release_can_be_the_one_whose_judges_count() -> None:
    """On the old one nothing but the carried samples links the new systems."""
    rows = carried_release()
    found = ruler(rows, at="1")
    assert found.at == "1"
    assert found.difference("new000", "old000").how == "common"
    assert found.strength.keys() == {*rows["system"]}
    assert None not in found.strength.values()


def test_an_absent_column_makes_a_sample_the_oldest_releases_own() -> None:
    rows = carried_release()
    with_column, without = (
        ruler(rows),
        ruler({k: v for k, v in rows.items() if k != "carried_from"}),
    )
    assert without.strength == with_column.strength
    assert without.difficulty == with_column.difficulty


def test_a_sample_that_is_own_and_carried_counts_once() -> None:
    rows = carried_release()
    own = [at for at, name in enumerate(rows["sample_id"]) if name == "b000"]
    twice = {name: column + [column[at] for at in own] for name, column in rows.items()}
    twice["carried_from"][-len(own) :] = ["1"] * len(own)
    assert ruler(twice).differences == ruler(rows).differences
    twice["rating"][-1] += 1
    with pytest.raises(EchoError, match=r"system 'new002'.* is there twice: expected one rating"):
        ruler(twice)


def test_the_result_is_json_that_holds_no_nan() -> None:
    for rows in (carried_release(), carried_release(systems=1)):
        found = ruler(rows)
        plain = json.loads(json.dumps(found.as_json(), allow_nan=False))
        assert plain["differences"]["new000"]["old000"]["how"] == "common"
        assert "new000" in repr(found)
        assert list(found.to_pandas().columns) == [
            *("system", "strength", "low", "high", "samples", "reason")
        ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"at": "3"}, "unknown release '3'; known: 1, 2"),
        ({"method": "best"}, "unknown method 'best'"),
        ({"confidence": 1.0}, "confidence is 1.0: expected 0.5 to 1"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_a_choice_that_is_none_is_refused_in_a_line(change: dict[str, Any], message: str) -> None:
    with pytest.raises(EchoError, match=message):
        ruler(carried_release(), **change)


@pytest.mark.parametrize(
    ("column", "cell", "message"),
    [
        ("rating", float("inf"), "expected a finite number"),
        ("release", None, "'release' is null in row 0"),
        ("system", None, "'system' is null in row 0"),
    ],
)
def test_a_cell_that_cannot_be_is_named(column: str, cell: Any, message: str) -> None:
    rows = carried_release()
    rows[column][0] = cell
    with pytest.raises(EchoError, match=message):
        ruler(rows)


def test_rows_that_are_there_twice_and_tables_without_rows_are_refused() -> None:
    rows = carried_release()
    with pytest.raises(EchoError, match="is there twice"):
        ruler({name: column + column[:1] for name, column in rows.items()})
    with pytest.raises(EchoError, match="no rows"):
        ruler([])
    with pytest.raises(EchoError, match="no column 'release'"):
        ruler({name: column for name, column in rows.items() if name != "release"})


def test_missing_ratings_and_few_samples_leave_reasons_instead_of_numbers() -> None:
    rows = rows_of(
        ("1", None, names("a", 12), ["x y", "x  y", "z"], np.full((12, 3), np.nan), "j"),
        ("1", None, names("b", 2), ["x y", "x  y"], np.array([[1.0, 2.0], [3.0, 3.0]]), "j"),
    )
    found = ruler(rows)
    assert found.refused == {
        "x y": Unscored.FEW_SAMPLES,
        "x  y": Unscored.FEW_SAMPLES,
        "z": Unscored.NOTHING_IN_COMMON,
    }
    assert found.difference("x y", "x  y") == (0.25, None, None, 2, "common")
    alone = ruler(rows_of(("1", None, ["a"], ["x"], np.array([[1.0]]), "j")))
    assert alone.strength == {"x": None}
    with pytest.raises(EchoError, match=r"unknown system 'xx y'.*'x y'"):
        found.difference("xx y", "z")
    with pytest.raises(EchoError, match="expected two systems"):
        found.difference("z", "z")


def share_covered(pairs: Iterable[tuple[float | None, float, float | None]]) -> float:
    return float(np.mean([(low or 0) <= truth <= (high or 1) for low, truth, high in pairs]))


@pytest.mark.parametrize("kind", ["alike", "harder"])
@pytest.mark.parametrize("carried", [30, 50, 90])
def test_common_samples_recover_shares_however_releases_differ(
    real: np.ndarray, kind: str, carried: int
) -> None:
    """Releases of 90 samples drawn with replacement, so that the truth is known exactly."""
    rng, ratings = np.random.default_rng(2_000 + carried), real[:, :, 0]
    old_pool, new_pool = cut(real, kind)
    errors, ends = [], []
    for _ in range(60):
        shuffled, old, new = rng.permutation(8), rng.choice(old_pool, 90), rng.choice(new_pool, 90)
        systems = [f"s{at}" for at in shuffled]
        drawn, samples = rng.choice(90, carried, replace=False), names("a", 90)
        again = [samples[at] for at in drawn]
        found = ruler(
            rows_of(
                ("1", None, samples, systems[:4], ratings[old][:, shuffled[:4]], "j"),
                ("2", None, names("b", 90), systems[4:], ratings[new][:, shuffled[4:]], "j"),
                ("2", "1", again, systems, ratings[old[drawn]][:, shuffled], "j"),
            )
        )
        for newer in shuffled[4:]:
            for older in shuffled[:4]:
                truth = float(np.nanmean(points(ratings[old_pool][:, [newer, older]])[:, 0, 1]))
                difference = found.difference(f"s{newer}", f"s{older}")
                assert difference.how == "common"
                errors.append((difference.estimate or 0) - truth)
                ends.append((difference.low, truth, difference.high))
    # 60 draws of 16 pairs: the mean error's own is 0.3 points, the coverage's 0.012.
    assert abs(np.mean(errors)) <= 0.005 + 0.006
    assert 0.93 - 0.025 <= share_covered(ends) <= 0.97 + 0.02
    if carried == 50:
        assert np.sqrt(np.mean(np.square(errors))) <= 0.055


BRIDGED = [  # bridges, pools, the judges of both releases, samples rated again, published error
    (3, "alike", (0, 0), 0, 0.21),
    (3, "harder", (0, 0), 0, 0.50),
    (3, "alike", (0, 1), 20, 0.26),
    (3, "alike", (0, 1), 50, 0.20),
    (3, "alike", (0, 2), 50, 0.28),
]


def draw_bridged(
    real: np.ndarray, rng: np.random.Generator, case: tuple[int, str, tuple[int, int], int]
) -> tuple[Ruler, np.ndarray, np.ndarray, np.ndarray]:
    """A ruler of two releases with bridges; which systems are old and new alone; true strengths."""
    count, kind, judges, again = case
    order = np.argsort(-np.nanmean(real[:, :, :2], axis=(1, 2)))
    every = np.arange(len(real))
    old_pool, new_pool = (every, every) if kind == "alike" else (order[:90], order[89:])
    shuffled = rng.permutation(8)
    middle = count + (9 - count) // 2
    before, after = shuffled[:middle], np.r_[shuffled[:count], shuffled[middle:]]
    first, second = real[rng.choice(old_pool, 90)], real[rng.choice(new_pool, 90)]
    systems, samples = [[f"s{at}" for at in chosen] for chosen in (before, after)], names("a", 90)
    blocks: list[Block] = [
        ("1", None, samples, systems[0], first[:, before, judges[0]], JUDGES[judges[0]]),
        ("2", None, names("b", 90), systems[1], second[:, after, judges[1]], JUDGES[judges[1]]),
    ]
    if again:
        rated = first[:again, before, judges[1]]
        blocks.append(("2", "1", samples[:again], systems[0], rated, JUDGES[judges[1]]))
    found = ruler(rows_of(*blocks))
    return found, shuffled[count:middle], shuffled[middle:], new_pool


@pytest.mark.parametrize(("count", "kind", "judges", "again", "published"), BRIDGED)
def test_bridges_are_as_near_the_truth_as_published(
    real: np.ndarray, count: int, kind: str, judges: tuple[int, int], again: int, published: float
) -> None:
    """Root mean squared errors of log odds, and intervals that cover 0.94 to 0.99."""
    rng, errors, ends, truth = np.random.default_rng(31), [], [], None
    for _ in range(60):
        found, old, new, pool = draw_bridged(real, rng, (count, kind, judges, again))
        truth = likeliest(points(real[pool][:, :, judges[1]])) if truth is None else truth
        for newer in new:
            for older in old:
                difference = found.difference(f"s{newer}", f"s{older}")
                assert difference.how == "bridges"
                estimate, gap = difference.estimate or 0, truth[newer] - truth[older]
                errors.append(np.log(estimate / (1 - estimate)) - gap)
                ends.append((difference.low, 1 / (1 + np.exp(-gap)), difference.high))
    assert np.sqrt(np.mean(np.square(errors))) <= published * 1.25
    assert share_covered(ends) >= 0.90


def count_alarms(real: np.ndarray, count: int, again: int, draws: int, seed: int) -> float:
    rng, judges = np.random.default_rng(seed), (0, 1) if again else (0, 0)
    case = (count, "alike", judges, again)
    bends = (draw_bridged(real, rng, case)[0].bend for _ in range(draws))
    return float(np.mean([bend.alarm for bend in bends if bend]))


@pytest.mark.parametrize("count", [2, 3, 4])
def test_bridges_that_did_not_move_seldom_raise_the_alarm(real: np.ndarray, count: int) -> None:
    """In 150 draws a test of 6 % would pass 10 % once in 40 cases."""
    assert count_alarms(real, count, 0, 150, 41) <= 0.10


@pytest.mark.slow
@pytest.mark.parametrize(("count", "again"), [(2, 0), (3, 0), (4, 0), (3, 20), (3, 50)])
def test_bridges_that_did_not_move_raise_the_alarm_in_6_of_100_draws_at_most(
    real: np.ndarray, count: int, again: int
) -> None:
    assert count_alarms(real, count, again, 1_000, 42) <= 0.06


def test_a_bridge_that_moved_by_two_points_is_seen(real: np.ndarray) -> None:
    rng, ratings, alarms = np.random.default_rng(43), real[:, :, 0], []
    for _ in range(40):
        chosen = rng.permutation(8)[:5]
        bridges = [f"s{at}" for at in chosen[:3]]
        first, second = (ratings[rng.choice(179, 90)][:, chosen] for _ in range(2))
        second[:, 0] = np.clip(second[:, 0] + 2, 0, 10)
        found = ruler(
            rows_of(
                ("1", None, names("a", 90), [*bridges, "old"], first[:, :4], "j"),
                ("2", None, names("b", 90), [*bridges, "new"], second[:, [0, 1, 2, 4]], "j"),
            )
        )
        alarms.append(bool(found.bend and found.bend.alarm))
    assert np.mean(alarms) > 0.8  # 0.97 with 4 bridges was published


@pytest.mark.parametrize("carry", [True, False])
def test_samples_that_are_harder_by_a_point_are_found_within_the_interval(
    real: np.ndarray, carry: bool
) -> None:
    """Planted: every rating of the new samples is a point lower; by witnesses, or by 4 bridges."""
    rng, ratings, estimates, ends = np.random.default_rng(51), real[:, :, 0], [], []
    for _ in range(60):
        chosen = rng.permutation(8)
        old, new = (ratings[rng.choice(179, 90)] for _ in range(2))
        blocks: list[Block] = [
            ("1", None, names("a", 90), names("s", 4), old[:, chosen[:4]], "j"),
            ("2", None, names("b", 90), names("s", 4), new[:, chosen[:4]] - 1, "j"),
        ]
        if carry:
            blocks[1] = ("2", None, names("b", 90), names("t", 4), new[:, chosen[4:]] - 1, "j")
            drawn = old[:50, chosen]
            both = [*names("s", 4), *names("t", 4)]
            blocks.append(("2", "1", names("a", 50), both, drawn, "j"))
        change = ruler(rows_of(*blocks)).difficulty["2"]
        assert change is not None
        assert change.interval is not None
        estimates.append(change.estimate)
        ends.append((change.interval[0], 1.0, change.interval[1]))
    assert abs(np.mean(estimates) - 1) <= 3 * np.std(estimates) / np.sqrt(60)
    assert share_covered(ends) >= 0.88


def test_a_tiny_release_takes_no_interval_from_others() -> None:
    """Four samples that both bridges were rated on link nothing, and widen nothing."""
    rng = np.random.default_rng(11)
    bridges = names("bridge", 4)
    first, second = rng.integers(1, 8, (2, 60, 5)).astype(float)
    blocks: list[Block] = [
        ("1", None, names("x", 60), [*bridges, "old"], first, "j"),
        ("2", None, names("y", 60), [*bridges, "new"], second, "j"),
    ]
    plain = ruler(rows_of(*blocks)).difference("new", "old")
    tiny: Block = ("0", None, names("w", 4), bridges, rng.integers(1, 8, (4, 4)).astype(float), "j")
    assert ruler(rows_of(tiny, *blocks)).difference("new", "old") == plain


def test_a_witness_of_few_samples_does_not_move_the_difficulty() -> None:
    rng = np.random.default_rng(12)
    old, own = rng.normal(6, 1, (40, 2)), rng.normal(5, 1, (40, 2))
    blocks: list[Block] = [
        ("2", "1", names("a", 40), ["n1", "n2"], old, "j"),
        ("2", None, names("b", 40), ["n1", "n2"], own, "j"),
    ]
    plain = ruler(rows_of(*blocks)).difficulty["2"]
    sparse: list[Block] = [
        ("2", "1", names("a", 2), ["rare"], np.array([[1.0], [9.0]]), "j"),
        ("2", None, names("b", 2), ["rare"], np.array([[9.0], [1.0]]), "j"),
    ]
    found = ruler(rows_of(*blocks, *sparse)).difficulty["2"]
    assert plain is not None
    assert found == plain
    assert plain.estimate == pytest.approx((old - own).mean())


def test_a_stray_rating_by_another_judge_leaves_the_difficulty() -> None:
    rng = np.random.default_rng(13)
    old, own = rng.normal(6, 1, (40, 2)), rng.normal(5, 1, (40, 2))
    rows = rows_of(
        ("2", "1", names("a", 40), ["n1", "n2"], old, "j"),
        ("2", None, names("b", 40), ["n1", "n2"], own, "j"),
        ("2", None, names("b", 1), ["n1"], np.array([[3.0]]), "k"),
    )
    found = ruler(rows).difficulty["2"]
    assert found is not None
    assert found.estimate == pytest.approx((old - own).mean())
