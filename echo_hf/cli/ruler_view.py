"""Terminal output of the scale through all releases, and of what to carry along."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

from echo_hf._infra.console import SEE_MORE, make_table, say, show_table
from echo_hf._infra.text import clean, format_interval, format_rounded, percent, pluralize
from echo_hf.hub.ruler import describe_lead, describe_ruler, rank_systems
from echo_hf.judging.ruler import PlannedCarry, SavedRuler

MAX_ROWS = 12
MAX_NAME = 40


def show_ruler(console: Console, saved: SavedRuler) -> None:
    """Print all systems of each split by strength, with what each rests on."""
    for split, scale in saved.splits.items():
        table = make_table(
            "system", "strength", "95 %", "since", "rests on", left=["since", "rests on"]
        )
        names = rank_systems(scale)
        shown = names if getattr(console, "details", False) else names[:MAX_ROWS]
        for name in shown:
            how = scale.how.get(name)
            basis = how or str(scale.refused.get(name, "-"))
            table.add_row(
                Text(clean(name, MAX_NAME), "bold"),
                format_rounded(scale.strength[name], 2),
                format_interval(scale.interval.get(name), 2),
                clean(scale.first[name], MAX_NAME),
                Text(basis, "" if how == "common" else "dim"),
            )
        lead = describe_lead(scale)
        notes = [*([lead] if lead else []), *describe_ruler(scale)]
        if len(shown) < len(names):
            notes.append(f"{len(names) - len(shown):,} more systems: {SEE_MORE}")
        show_table(console, f"{split}: all systems on one scale", table, notes)
    for reason in saved.unread:
        say(console, f"not read, so that its own board is left out: {reason}", "yellow")


def show_carry_plans(console: Console, plans: Mapping[str, PlannedCarry]) -> None:
    """Print how many samples to carry for a width of differences, and what that costs."""
    for split, plan in plans.items():
        dollars = "price unknown" if plan.cost_usd is None else f"about ${plan.cost_usd:,.2f}"
        text = (
            f"{split}: carry {pluralize(plan.samples, 'sample')} for ± {percent(plan.width)} of a"
        )
        if plan.samples > plan.available:
            text = f"{split}: all {plan.available:,} samples give ± {percent(plan.reachable)} of a"
        spread = format_rounded(plan.deviation, 2)
        say(
            console,
            f"{text} difference, as outcomes spread by {spread}: {dollars} for a new system and "
            "all ratings",
        )
        if plan.bridges:
            bridges = " and ".join(clean(name, MAX_NAME) for name in plan.bridges)
            say(
                console,
                f"  where old samples cannot be drawn anew: run {bridges} again, as bridges",
                "dim",
            )
