"""Whose answers count for a rate of failures, and which way it is estimated."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from scipy import stats

from echo_hf.judging.failure_rates import (
    find_measurer,
    make_result_rows,
    measure_checks,
    read_votes,
    save_checks,
)
from echo_hf.systems.checks import VOTE, Check, CheckCertificate
from echo_hf.tables import RATINGS
from tests.systems.test_checks import make

N = 60


def certificate(judge: str, *, kept: bool = True, caught: int = 48, passed: int = 51) -> Any:
    shares = caught / N, passed / N
    return CheckCertificate(
        judge=judge,
        sensitivity=shares[0],
        specificity=shares[1],
        j=sum(shares) - 1,
        low=sum(shares) - 1.2,
        high=1.0,
        p=0.001,
        caught=caught,
        complaints=N,
        passed=passed,
        praise=N,
        complaint_threads=N,
        praise_threads=N,
        kept=kept,
    )


def check(*certificates: CheckCertificate, status: str = "kept") -> Check:
    return make(status=status, certificates=certificates)


def ratings(answers: dict[str, list[int | None]], system: str = "amber") -> pa.Table:
    """Answers by judge, one a sample."""
    rows = [
        {
            "sample_id": f"s{number}",
            "system": system,
            "judge": judge,
            "rubric": "cast@1",
            "repeat": 0,
            "rating": answer,
        }
        for judge, own in answers.items()
        for number, answer in enumerate(own)
    ]
    return pa.Table.from_pylist(rows, RATINGS.schema)


def measure(kept: Check, table: pa.Table, labels: Any = None, misfits: Any = None) -> Any:
    (rate,) = measure_checks([kept], table, labels or {}, ["amber"], misfits or {})
    return rate


def test_the_rate_is_corrected_as_rogan_and_gladen_do() -> None:
    rate = measure(check(certificate("mira")), ratings({"mira": [1] * 60 + [0] * 140}))
    sensitivity, specificity = 48 / 60, 51 / 60
    assert rate.raw == pytest.approx(0.3)
    assert rate.value == pytest.approx((0.3 + specificity - 1) / (sensitivity + specificity - 1))
    assert (rate.measurer, rate.method, rate.outputs) == ("mira", "corrected", 200)


def test_results_say_how_many_threads_complained() -> None:
    """By the judge that was proven on most of them; a leaderboard shows those checks first."""
    few = certificate("orin").model_copy(update={"complaint_threads": 15})
    proven = check(few, certificate("mira"))
    rate = measure(proven, ratings({"mira": [1] * 60 + [0] * 140}))
    (row,) = make_result_rows([rate], save_checks([proven]), "text_to_image", "corrected", 200)
    assert row.metric == "failure_rate_cast@1"
    assert row.definition["complaint_threads"] == N


def test_labels_of_people_take_the_place_of_the_certificate() -> None:
    table = ratings({"mira": [1] * 60 + [0] * 140})
    labels = {("s0", "amber"): 1.0} | {(f"s{number}", "amber"): 0.0 for number in range(60, 89)}
    kept = check(certificate("mira"))
    assert measure(kept, table, {"cast@1": dict(list(labels.items())[:29])}).method == "corrected"
    rate = measure(kept, table, {"cast@1": labels})
    assert (rate.method, rate.labels) == ("exact", 30)
    exact = stats.binomtest(1, 30).proportion_ci(method="exact")
    assert rate.value == pytest.approx(1 / 30)
    assert rate.interval == pytest.approx((exact.low, exact.high))


def test_samples_that_a_check_does_not_fit_do_not_count() -> None:
    table = ratings({"mira": [1, 1, 0, 0]})
    rate = measure(check(certificate("mira")), table, misfits={"cast@1": frozenset({"s0", "s3"})})
    assert (rate.outputs, rate.raw) == (2, 0.5)


def test_the_vote_counts_where_all_its_judges_answered() -> None:
    both = check(certificate("mira"), certificate("noor", kept=False), certificate(VOTE))
    answers: dict[str, list[int | None]] = {"mira": [1, 1, 0, None], "noor": [1, 0, 0, 1]}
    assert measure(both, ratings(answers)).measurer == VOTE
    # Two judges that disagree give no answer, nor does a vote in which a judge is missing.
    votes = read_votes(ratings(answers), ("mira", "noor"))
    assert {sample: answer for (sample, _), answer in votes.items()} == {"s0": True, "s2": False}


@pytest.mark.parametrize(
    ("judges", "measurer"),
    [(["mira"], "mira"), (["noor"], None), (["mira", "noor"], VOTE), (["third"], None), ([], None)],
)
def test_a_judge_alone_counts_by_its_own_certificate(
    judges: list[str], measurer: str | None
) -> None:
    both = check(certificate("mira"), certificate("noor", kept=False), certificate(VOTE))
    chosen = find_measurer(both, judges)
    assert (chosen and chosen.certificate.judge) == measurer


def test_a_rate_without_a_certificate_says_why() -> None:
    rate = measure(check(certificate("mira")), ratings({"third": [1, 0]}))
    assert (rate.value, rate.measurer) == (None, None)
    assert "no judge with a certificate" in rate.reason


def test_checks_that_are_not_kept_measure_nothing() -> None:
    table = ratings({"mira": [1, 0]})
    for status in ("proposed", "fell", "retired", "withdrawn", "replaced"):
        fallen = check(certificate("mira"), status=status)
        assert measure_checks([fallen], table, {}, ["amber"], {}) == ()
