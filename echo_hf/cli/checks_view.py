"""Terminal output of checks: what people complain about, and what was proven of each question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from echo_hf._infra.console import SEE_MORE, make_table, say, show_table
from echo_hf._infra.text import clean, format_interval, format_rounded, pluralize
from echo_hf.builder.checks import ChecksResult, GroupState
from echo_hf.cli.evaluation_view import show_cost, show_judging
from echo_hf.hub.check_changes import CHECK_MEANINGS, CheckState
from echo_hf.judging.session import JudgingResult
from echo_hf.systems.checks import Check

MAX_GROUPS = 8
MAX_SAMPLES = 3
STYLES = {"kept": "green", "fell": "yellow"}


def show_checks(console: Console, result: ChecksResult) -> None:
    """Print the failures that people name, each with its check or what it lacks."""
    for reason, count in result.left_out.items():
        samples = pluralize(count, "sample")
        say(console, f"{samples} left out, {reason}: {reason.meaning}", "dim")
    if not result.groups:
        say(console, "no comment names a failure of an output that its posts show")
        return
    checks = {check.key: check for check in result.checks}
    table = make_table("failure", "threads", "check", "J", "95 %", "", left=["check", ""])
    shown = result.groups if getattr(console, "details", False) else result.groups[:MAX_GROUPS]
    for state in shown:
        check = checks.get(state.check or "")
        certificate = check.deciding if check else None
        table.add_row(
            Text(clean(state.group.keyword, 40), "bold"),
            f"{len(state.group.threads):,}",
            state.check or "",
            format_rounded(certificate.j if certificate else None, 2),
            format_interval(certificate.interval if certificate else None, 2),
            Text(describe_state(state, check), STYLES.get(check.status if check else "", "dim")),
        )
    show_table(console, "what people complain about", table)
    if len(shown) < len(result.groups):
        say(console, f"{len(result.groups) - len(shown):,} more failures: {SEE_MORE}", "dim")
    for state in shown:
        check = checks.get(state.check or "")
        if check is not None:
            say(console, f"{check.key}: {clean(check.question, 300)}")
        if getattr(console, "details", False) and check is not None:
            for certificate in check.certificates:
                say(console, f"  {clean(certificate.judge, 40)}: {certificate.summary}", "dim")
    if result.plans:
        show_judging(console, JudgingResult(None, result.plans))
    show_cost(console, result.cost_usd, ())
    if result.path is not None:
        say(console, f"checks: {result.path}")


def describe_state(state: GroupState, check: Check | None) -> str:
    """Say in a few words what became of a failure that people name."""
    if state.refused is not None:
        return f"refused: {state.refused.meaning}"
    if state.missing:
        parts = (
            f"{count:,} {what}"
            for count, what in (
                (state.missing.complaint, "with complaints"),
                (state.missing.praise, "with praise"),
            )
            if count
        )
        return f"needs more threads: {', '.join(parts)}"
    if check is None:
        return "to be written"
    if check.status == "fell":
        certificate = check.deciding
        needed = certificate.needed if certificate else None
        more = f"; about {needed:,} more threads of each kind would do" if needed else ""
        return f"fell short: {CHECK_MEANINGS.get(check.reason or '', check.reason)}{more}"
    reason = CHECK_MEANINGS.get(check.reason or "", check.reason)
    return f"{check.status}: {reason}" if reason else check.status


def describe_checks(result: ChecksResult) -> dict[str, Any]:
    """Describe the result as JSON can hold it; without what posts say."""
    groups = [
        {
            "keyword": state.group.keyword,
            "spellings": dict(state.group.spellings),
            "threads": len(state.group.threads),
            "trend": state.group.trend,
            "newest": state.group.newest,
            "needed": state.missing._asdict(),
            "check": state.check,
            "refused": state.refused,
        }
        for state in result.groups
    ]
    checks = [
        {"check": check.key, **check.model_dump(exclude={"evidence", "instructions", "provenance"})}
        for check in result.checks
    ]
    plans = [
        {
            "judge": plan.judge,
            "rubric": plan.rubric,
            "calls": plan.plan.calls,
            "expected": plan.expected,
        }
        for plan in result.plans
    ]
    return {
        "path": result.path,
        "groups": groups,
        "checks": checks,
        "left_out": result.left_out,
        "plans": plans,
        "cost_usd": result.cost_usd,
    }


def show_versions(console: Console, versions: Sequence[Check]) -> None:
    """Print why a check has its status, what it was tried on, and its versions before."""
    *earlier, check = versions
    details, reason = getattr(console, "details", False), check.reason or ""
    status = "fell short" if check.status == "fell" else f"is {check.status}"
    since = f" since {check.day}, the day of the newest post" if check.day else ""
    why = f": {CHECK_MEANINGS.get(reason, reason)}" if reason else ""
    say(console, f"{check.key} {status}{since}{clean(why)}", STYLES.get(check.status, "bold"))
    say(console, f"asks: {clean(check.question, 300)}")
    say(console, f"counts as yes: {clean(check.counts_as_yes, 600)}", "dim")
    if check.fits:
        say(console, f"of samples where: {clean(check.fits, 300)}", "dim")
    say(console, f"complaints call it: {clean(', '.join(check.keywords), 300)}", "dim")
    for (label, part), names in _group_evidence(check).items():
        threads = pluralize(check.count_threads(label, part), "thread")
        hidden = 0 if details else max(0, len(names) - MAX_SAMPLES)
        more = f" and {hidden:,} more: {SEE_MORE}" if hidden else ""
        samples = ", ".join(map(clean, names[: len(names) - hidden]))
        say(console, f"{label}, for {part}: {threads}, samples {samples}{more}")
    for certificate in check.certificates:
        j = f"J {format_rounded(certificate.j, 2)} ({format_interval(certificate.interval, 2)})"
        say(console, f"{clean(certificate.judge, 40)}: {certificate.summary}; {j}")
    if not check.certificates:
        say(console, "no judge has a certificate for it: `echo-hf checks` proves it")
    for version in reversed(earlier):
        proof = CheckState.from_row(version.model_dump()).grounds
        origin = "written by a model" if version.origin == "model" else "edited by a person"
        line = f"before, {version.key}, {origin}, {version.status}: {clean(version.question, 300)}"
        say(console, f"{line} {proof}".rstrip(), "dim")


def _group_evidence(check: Check) -> dict[tuple[str, str], list[str]]:
    samples: dict[tuple[str, str], list[str]] = {}
    for each in check.evidence:
        samples.setdefault((each.label, each.part), []).append(each.sample_id)
    return samples


def describe_versions(versions: Sequence[Check]) -> list[dict[str, Any]]:
    """Describe the versions of a check as JSON can hold them, with meanings of reasons."""
    return [
        {
            **check.model_dump(exclude={"instructions", "provenance"}),
            "meaning": CHECK_MEANINGS.get(check.reason or ""),
            "threads": [
                {"label": label, "part": part, "threads": check.count_threads(label, part)}
                for label, part in _group_evidence(check)
            ],
        }
        for check in versions
    ]
