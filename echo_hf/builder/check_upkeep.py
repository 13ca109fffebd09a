"""Keep checks up: retire those that nobody needs, and take out what rests on forgotten posts."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import Any

from echo_hf.curate.feedback import normalize_keyword
from echo_hf.hub.check_changes import PASS_RATE, CheckChange, CheckReason, compare_checks
from echo_hf.judging.complaints import CommentedSample, Complaints
from echo_hf.judging.results import SavedResults
from echo_hf.scores.certificate import MIN_THREADS
from echo_hf.systems.checks import ACTIVE, Check


def retire_checks(
    checks: Iterable[Check], complaints: Complaints, results: SavedResults | None, window_days: int
) -> tuple[Check, ...]:
    """Retire checks whose complaint has gone, and kept ones that all systems pass.

    A complaint has gone where no sample with it is from the last `window_days` before the newest
    post; one whose time is not known counts as recent, so that no check is retired because of what
    is not known. A system passes where its corrected rate of failures is below 2 %, in each split
    that has one; without such a rate nobody is known to pass. A retired check is proposed again,
    with its history, when its complaint is back: where all systems passed, by one that is newer
    than the day on which it was retired.
    """
    checks, newest = tuple(checks), complaints.newest
    start = newest - timedelta(days=window_days) if newest else None
    latest = {check.name: check for check in sorted(checks, key=lambda check: check.version)}
    decided = []
    for check in checks:
        forms = set(map(normalize_keyword, check.keywords))
        recent = [
            sample
            for sample in complaints.samples
            if forms & sample.forms
            and (sample.time is None or start is None or sample.time > start)
        ]
        update: dict[str, Any] = {}
        if check is latest[check.name] and check.status in ACTIVE:
            if not recent:
                update = {"status": "retired", "reason": CheckReason.COMPLAINT_GONE.value}
            elif check.status == "kept" and _all_pass(check, results):
                update = {"status": "retired", "reason": CheckReason.ALL_PASS.value}
        elif check is latest[check.name] and check.status == "retired":
            was_gone = check.reason == CheckReason.COMPLAINT_GONE
            if any(was_gone or _is_newer(sample, check) for sample in recent):
                update = {"status": "proposed", "reason": CheckReason.COMPLAINT_BACK.value}
        if update and newest:
            update["day"] = newest.date().isoformat()
        decided.append(check.model_copy(update=update))
    return tuple(decided)


def _all_pass(check: Check, results: SavedResults | None) -> bool:
    """Return whether a check's rate is low for each system, by a score after it was decided on."""
    if results is None or (check.key, check.day) not in {
        (saved.check, saved.day) for saved in results.checks
    }:
        return False
    rates = [
        rate.value
        for split in results.details.values()
        for rate in split.checks
        if rate.check == check.key
    ]
    return bool(rates) and all(rate is not None and rate < PASS_RATE for rate in rates)


def _is_newer(sample: CommentedSample, check: Check) -> bool:
    """Return whether a complaint came after a check was retired; without a day, a new one did."""
    if sample.time is None or check.day is None:
        return sample.sample_id not in {each.sample_id for each in check.evidence}
    return sample.time.date().isoformat() > check.day


def drop_evidence(
    checks: Iterable[Check], samples: Collection[str], keywords: Collection[str]
) -> tuple[Check, ...]:
    """Take forgotten samples out of checks, and what was said of them.

    A check with fewer than 15 threads of a kind left is withdrawn. Certificates that rest on such
    samples are no longer true and go, so that the check is proposed, to be proven again from the
    answers about the other samples. Of its keywords those stay that other samples have, and the
    first, which is its title.

    Args:
        checks: All checks of a run.
        samples: The samples that are forgotten.
        keywords: What comments on the other samples name.
    """
    left = []
    for check in checks:
        evidence = tuple(each for each in check.evidence if each.sample_id not in samples)
        if len(evidence) == len(check.evidence):
            left.append(check)
            continue
        named = [name for name in check.keywords[1:] if name in keywords]
        update: dict[str, Any] = {"evidence": evidence, "keywords": (*check.keywords[:1], *named)}
        gone = {each.part for each in check.evidence if each.sample_id in samples}
        check = check.model_copy(update=update)
        few = min(map(check.count_threads, ("complaint", "praise"))) < MIN_THREADS
        if few and check.status in (*ACTIVE, "retired"):
            update = {"status": "withdrawn", "reason": CheckReason.FEW_LEFT.value}
            check = check.model_copy(update={**update, "certificates": ()})
        elif "proof" in gone:
            update = {"certificates": ()}
            if check.status in ACTIVE:
                update |= {"status": "proposed", "reason": CheckReason.EVIDENCE_LEFT.value}
            check = check.model_copy(update=update)
        left.append(check)
    return tuple(left)


def list_check_changes(before: Iterable[Check], after: Iterable[Check]) -> tuple[CheckChange, ...]:
    """List what became of checks: what appeared, was kept, fell, went or was edited, and why."""
    return compare_checks(*([check.model_dump() for check in each] for each in (before, after)))
