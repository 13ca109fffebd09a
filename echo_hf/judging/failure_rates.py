"""How often systems fail by each kept check, without the mistakes that the check makes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from echo_hf.hub.check_changes import FAILURE_RATE
from echo_hf.hub.run_tables import ResultRow
from echo_hf.judging.rate import read_flags
from echo_hf.judging.results import SavedCheck, SavedFailureRate
from echo_hf.metrics.result import coverage_of
from echo_hf.scores.failure_rate import (
    MIN_LABELS,
    FailureRate,
    failure_rate,
    failure_rate_by_people,
)
from echo_hf.scores.votes import ProtocolName
from echo_hf.systems.checks import VOTE, Check, CheckCertificate, select_newest

NO_MEASURER = "no judge with a certificate, and not all whose vote has one, answered it"
CAVEAT = (
    "the check was proven on outputs in posts: where it misses more of this system's failures, the "
    "rate is too low"
)
JUDGED_BY = ("judge", "prompt_digest")
Output = tuple[str, str]  # sample and system
Labels = Mapping[Output, float]


class Measurer(NamedTuple):
    """The judge, or the vote, whose answers count, and its certificate."""

    judges: tuple[str, ...]
    certificate: CheckCertificate


def name_figure(check: str) -> str:
    """Return the metric of a check's corrected rates in results."""
    return f"{FAILURE_RATE}_{check}"


def save_checks(checks: Sequence[Check]) -> tuple[SavedCheck, ...]:
    """Return the newest version of each check, as results keep it."""
    newest = select_newest(checks)
    return tuple(
        SavedCheck(check=check.key, **{name: getattr(check, name) for name in CHECK_FIELDS})
        for check in newest.values()
    )


CHECK_FIELDS = ("title", "question", "fits", "status", "reason", "day", "certificates")


def find_measurer(check: Check, judges: Sequence[str]) -> Measurer | None:
    """Return whose answers count: the vote where all its judges answered, or else one of them."""
    # A judge that gave no answer to prove the check by has no part in the vote.
    own = [each.judge for each in check.certificates if each.judge != VOTE and each.has_answers]
    answered = [judge for judge in own if judge in judges]
    deciding = check.deciding
    if deciding is not None and answered == own:
        return Measurer(tuple(own), deciding)
    certificate = check.find_certificate(answered[0]) if len(answered) == 1 else None
    return Measurer(tuple(answered), certificate) if certificate and certificate.kept else None


def measure_checks(
    checks: Sequence[Check],
    ratings: pa.Table | None,
    labels: Mapping[str, Labels],
    systems: Sequence[str],
    not_fitting: Mapping[str, frozenset[str]],
) -> tuple[SavedFailureRate, ...]:
    """Measure each system by each kept check.

    Args:
        checks: Checks of any status.
        ratings: Of one split, by any rubric.
        labels: People's labels of outputs, by check.
        systems: The systems of the run.
        not_fitting: The samples that somebody said a check does not fit, by check.
    """
    rates = list[SavedFailureRate]()
    for check in select_newest(checks).values():
        if ratings is None or check.status != "kept":
            continue
        rows = ratings.filter(pc.equal(ratings["rubric"], check.key))
        if not rows.num_rows:
            continue
        measurer, answers = read_answers(check, rows, not_fitting.get(check.key, frozenset()))
        for system in systems:
            own = {output: answer for output, answer in answers.items() if output[1] == system}
            rate = measurer and measure_system(own, measurer, labels.get(check.key, {}))
            fields: dict[str, Any] = {"reason": NO_MEASURER}
            if rate:
                kept = ("raw", "value", "interval", "outputs", "labels")
                fields = {name: getattr(rate, name) for name in kept}
                fields["method"] = rate.method
                fields["reason"] = rate.reason and rate.reason.meaning
                fields["measurer"] = measurer and measurer.certificate.judge
            rates.append(SavedFailureRate(check=check.key, system=system, **fields))
    return tuple(rates)


def read_answers(
    check: Check, rows: pa.Table, misfits: Collection[str]
) -> tuple[Measurer | None, dict[Output, bool]]:
    """Read whose answers to a check count, and what they are of the samples that it fits."""
    digests = {each.judge: each.prompt_digest for each in check.certificates}
    is_same = [
        digest is None or digests.get(judge) in (None, digest)
        for judge, digest in zip(*(rows[name].to_pylist() for name in JUDGED_BY), strict=True)
    ]
    rows = rows.filter(pa.array(is_same, pa.bool_()))  # other instructions have no certificate
    measurer = find_measurer(check, rows["judge"].unique().to_pylist())
    votes = read_votes(rows, measurer.judges if measurer else ())
    return measurer, {output: vote for output, vote in votes.items() if output[0] not in misfits}


def find_misfits(applicability: pa.Table | None, check: str) -> frozenset[str]:
    """Find the samples that somebody said a check does not fit."""
    flags = read_flags(applicability, check)
    return frozenset(sample for sample, flag in flags.items() if flag is False)


def read_votes(rows: pa.Table, judges: Sequence[str]) -> dict[Output, bool]:
    """Read whether most judges said yes to each output that all answered; a tie is no answer."""
    by_judge: dict[str, dict[Output, list[float]]] = {judge: {} for judge in judges}
    for row in rows.to_pylist():
        if row["judge"] in by_judge and row["rating"] is not None:
            output = row["sample_id"], row["system"]
            by_judge[row["judge"]].setdefault(output, []).append(row["rating"])
    return vote([take_majority(answers) for answers in by_judge.values()])


def take_majority(answers: Mapping[Output, Sequence[float]]) -> dict[Output, bool]:
    """Return the more frequent of several answers of 0 and 1; none where both are."""
    means = {output: float(np.mean(own)) for output, own in answers.items()}
    return {output: mean > 0.5 for output, mean in means.items() if mean != 0.5}


def vote(answers: Sequence[Mapping[Output, bool]]) -> dict[Output, bool]:
    """Return what most judges answered where all did; a tie is no answer."""
    common = set(answers[0]).intersection(*answers) if answers else set()
    return take_majority({key: [float(own[key]) for own in answers] for key in common})


def measure_system(
    answers: Mapping[Output, bool], measurer: Measurer, labels: Labels
) -> FailureRate:
    """Estimate a rate by people's labels where there are enough, or else by the certificate."""
    people = np.array([labels.get(output, np.nan) for output in answers])
    if np.count_nonzero(~np.isnan(people)) >= MIN_LABELS:
        return failure_rate_by_people(list(answers.values()), people)
    yes = sum(answers.values())
    return failure_rate(yes, len(answers), measurer.certificate.certificate)


def make_result_rows(
    rates: Sequence[SavedFailureRate],
    checks: Sequence[SavedCheck],
    split: str,
    protocol: ProtocolName,
    samples: int,
) -> Iterator[ResultRow]:
    """Make the rows of results, one for each check and system."""
    by_key = {check.check: check for check in checks}
    for rate in rates:
        check, (low, high) = by_key[rate.check], rate.interval or (None, None)
        definition = {
            "metric": name_figure(rate.check),
            "title": check.title,
            "question": check.question,
            "direction": "lower is better",
            "measurer": rate.measurer,
            "method": rate.method,
            "raw": rate.raw,
            "labels": rate.labels,
            "complaint_threads": max(
                (each.complaint_threads for each in check.certificates), default=0
            ),
            "missing": rate.reason,
        }
        if rate.method == "corrected":
            definition["caveat"] = CAVEAT
        yield ResultRow(
            metric=name_figure(rate.check),
            protocol=protocol,
            split=split,
            system=rate.system,
            value=rate.value,
            low=low,
            high=high,
            n=rate.outputs,
            coverage=coverage_of(rate.outputs, samples),
            definition=definition,
        )
