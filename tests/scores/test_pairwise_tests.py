"""Which two systems differ: the paper's table, other software's figures, and a count by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, rankdata

from echo_hf.errors import ScoreError
from echo_hf.scores import PairTest, dunn, siegel_castellan
from echo_hf.scores.friedman import bonferroni, stars, two_sided
from tests.scores.published_data import ANXIETY, ROUNDING_TIMES

PAIRS = 28
# ECHO's table C.1: z, p, Bonferroni's p, mark.
TABLE_C1 = [
    (7.429, 0.000000, 0.000000, "***"),
    (6.218, 0.000000, 0.000000, "***"),
    (6.175, 0.000000, 0.000000, "***"),
    (6.127, 0.000000, 0.000000, "***"),
    (5.755, 0.000000, 0.000000, "***"),
    (4.377, 0.000012, 0.000337, "***"),
    (4.011, 0.000061, 0.001694, "**"),
    (3.418, 0.000631, 0.017675, "*"),
    (3.052, 0.002274, 0.063676, "-"),
    (2.207, 0.027314, 0.764788, "-"),
    (2.164, 0.030461, 0.852901, "-"),
    (2.117, 0.034287, 0.960036, "-"),
]
WAYS = ("round out", "narrow", "wide")
PEOPLE = ("one", "two", "three")


def adjusted_of(z: float) -> tuple[float, float]:
    """The p value of a z, and Bonferroni's of 28 pairs."""
    p_values = np.append(two_sided([z]), np.ones(PAIRS - 1))
    return float(p_values[0]), float(bonferroni(p_values)[0])


@pytest.mark.parametrize(("z", "p_value", "corrected", "mark"), TABLE_C1)
def test_the_published_table(z: float, p_value: float, corrected: float, mark: str) -> None:
    """Its p values are those of z's that round to the printed one, and so are the marks."""
    most, least = adjusted_of(z - 0.0005), adjusted_of(z + 0.0005)
    half_a_digit = 5.001e-7
    assert least[0] - half_a_digit <= p_value <= most[0] + half_a_digit
    assert least[1] - half_a_digit <= corrected <= most[1] + half_a_digit
    assert stars(adjusted_of(z)[1]) == mark


def test_eight_of_the_published_pairs_differ() -> None:
    """As the paper counts them."""
    assert sum(adjusted_of(z)[1] < 0.05 for z, *_ in TABLE_C1) == 8


def by_pair(tests: tuple[PairTest, ...]) -> dict[frozenset[str], PairTest]:
    """Tests by their two systems."""
    return {frozenset((one.better, one.worse)): one for one in tests}


# scikit-posthocs 0.17.1, posthoc_dunn and posthoc_siegel_friedman: p values of the pairs
# (0, 1), (0, 2), (1, 2), and the same adjusted by Holm's method.
@pytest.mark.parametrize(
    ("test", "values", "names", "expected", "holm"),
    [
        (
            dunn,
            ANXIETY.T,
            PEOPLE,
            (0.8523677475360022, 0.05180793218586458, 0.03310360511435641),
            (0.8523677475360022, 0.10361586437172916, 0.09931081534306922),
        ),
        (
            siegel_castellan,
            ANXIETY.T,
            PEOPLE,
            (0.6926327840419602, 0.039832619244741505, 0.014255291355700065),
            (0.6926327840419602, 0.07966523848948301, 0.042765874067100196),
        ),
        (
            dunn,
            ROUNDING_TIMES,
            WAYS,
            (0.8809202901635685, 0.27311163544970607, 0.21286441763715747),
            (0.8809202901635685, 0.6385932529114724, 0.6385932529114724),
        ),
        (
            siegel_castellan,
            ROUNDING_TIMES,
            WAYS,
            (0.3657122962815128, 0.0015462034770807383, 0.02373851525005458),
            (0.3657122962815128, 0.004638610431242215, 0.04747703050010916),
        ),
    ],
)
def test_p_values_are_those_of_scikit_posthocs(
    test: object, values: np.ndarray, names: tuple[str, ...], expected: object, holm: object
) -> None:
    """With ties, raw and adjusted; Bonferroni's are three times the raw ones, at most 1."""
    assert callable(test)
    found = by_pair(test(values, names))
    pairs = [frozenset((names[one], names[other])) for one, other in ((0, 1), (0, 2), (1, 2))]
    assert [found[pair].p_value for pair in pairs] == pytest.approx(expected, rel=1e-10)
    assert [found[pair].holm for pair in pairs] == pytest.approx(holm, rel=1e-10)
    assert [found[pair].bonferroni for pair in pairs] == pytest.approx(
        [min(1, 3 * found[pair].p_value) for pair in pairs]
    )


def test_the_two_tests_are_not_the_same() -> None:
    """Between players times differ far more than between ways, which only one of them knows."""
    pair = frozenset(("round out", "wide"))
    assert by_pair(siegel_castellan(ROUNDING_TIMES, WAYS))[pair].bonferroni < 0.01
    assert by_pair(dunn(ROUNDING_TIMES, WAYS))[pair].p_value > 0.2


def test_dunn_by_hand() -> None:
    """Seven values with a tie of two, in groups of three, two and two, as textbooks have it."""
    values = np.array([[1.0, 4.0, 6.0], [2.0, 4.0, 7.0], [3.0, np.nan, np.nan]])
    flat = [1.0, 2.0, 3.0, 4.0, 4.0, 6.0, 7.0]
    ranks = rankdata(flat)
    variance = 7 * 8 / 12 - (2**3 - 2) / (12 * 6)
    z = (ranks[5:].mean() - ranks[:3].mean()) / np.sqrt(variance * (1 / 2 + 1 / 3))
    found = by_pair(dunn(values, "abc"))[frozenset("ac")]
    assert found.z == pytest.approx(z)
    assert found.p_value == pytest.approx(2 * norm.sf(z))
    assert (found.better, found.worse) == ("a", "c")


def test_a_system_without_a_value_is_in_no_pair() -> None:
    """The others are tested."""
    values = np.array([[1.0, 2.0, np.nan], [1.0, 3.0, np.nan]])
    assert [frozenset((one.better, one.worse)) for one in dunn(values, "abc")] == [frozenset("ab")]


@pytest.mark.parametrize("test", [dunn, siegel_castellan])
def test_no_block_gives_no_test(test: object) -> None:
    """Neither a pair nor a warning."""
    assert callable(test)
    assert test(np.empty((0, 3)), "abc") == ()
    assert test(np.full((2, 3), np.nan), "abc") == ()


@pytest.mark.parametrize("test", [dunn, siegel_castellan])
@given(st.permutations(range(3)))
def test_columns_may_stand_in_any_order(test: object, order: list[int]) -> None:
    """The same z, p and direction for the same two systems."""
    assert callable(test)
    found = by_pair(test(ROUNDING_TIMES, WAYS))
    turned = by_pair(test(ROUNDING_TIMES[:, order], [WAYS[at] for at in order]))
    for pair, one in found.items():
        assert (turned[pair].better, turned[pair].worse) == (one.better, one.worse)
        assert turned[pair].z == pytest.approx(one.z, rel=1e-12)
        assert turned[pair].holm == pytest.approx(one.holm, rel=1e-9)


def test_names_that_do_not_fit_are_one_line() -> None:
    """It says how many columns there are."""
    with pytest.raises(ScoreError, match=r"values have 3 columns: expected one for each of \['a'"):
        dunn(ROUNDING_TIMES, ["a", "b"])
