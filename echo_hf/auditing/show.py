"""Audits of judges in a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from echo_hf.auditing.audit import Audited
from echo_hf.judging.show import show_judged
from echo_hf.reasons import NotAudited

NOTHING = "-"
MEANINGS: Mapping[str | None, str] = {str(reason): reason.meaning for reason in NotAudited}
PASSED: Mapping[bool | None, tuple[str, str]] = {
    True: ("passed", "green"),
    False: ("failed", "red"),
    None: ("nobody can say", "yellow"),
}


def show_audited(console: Console, audited: Audited) -> None:
    """Prints how each judge did, or what it would be asked.

    Args:
        console: Where to print.
        audited: The audit.
    """
    for judge, audit in audited.judges.items():
        mean = _number(audit["mean_of_real_outputs"])
        console.print(Text(f"{judge}, by {audit['rubric']}: real outputs {mean}", "bold"))
        console.print(check_table(audit))
        for line in _remarks(audit):
            console.print(Text(line), soft_wrap=True)
        console.print()
    show_judged(console, audited.asked)


def check_table(audit: Mapping[str, Any]) -> Table:
    """How a judge did on each honeypot.

    Args:
        audit: As `audit.json` has it.

    Returns:
        The table.
    """
    table = Table(box=None, pad_edge=False)
    for heading in ("shown", "rated", "mean", "as it should", "needed", ""):
        table.add_column(heading, justify="left" if heading in ("shown", "") else "right")
    for name, check in sorted(audit["checks"].items()):
        word, style = PASSED[check["passed"]]
        reason = MEANINGS.get(check["reason"])
        table.add_row(
            Text(name),
            str(check["rated"]),
            _number(check["mean"]),
            _share(check["share"]),
            _share(check["rule"]["share"]),
            Text(f"{word}: {reason}" if reason else word, style),
        )
    return table


def _remarks(audit: Mapping[str, Any]) -> list[str]:
    noise, use = audit["noise"], audit["scale_use"]
    lines = [
        f"asked twice: {_share(noise['equal'])} of {noise['samples']} rated alike, standard "
        f"deviation {_number(noise['deviation'])}"
    ]
    if use is not None:
        lines.append(
            f"its {use['ratings']:,} ratings: {_share(use['at_ceiling'])} at the top of the scale, "
            f"{_number(use['entropy'])} bits, {_share(use['ties'])} of {use['pairs']:,} pairs tied"
        )
    return lines


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"


def _share(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.0f} %"
