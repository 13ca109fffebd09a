"""What judges did, in a terminal: what they would be asked, or what they have answered."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from echo_hf.judging.asking import Answered, Planned
from echo_hf.judging.session import Judged
from echo_hf.reasons import Failed, Outcome, Unrated

UNKNOWN = "?"
NOTHING = "-"
MEANINGS = {str(reason): reason.meaning for kind in (Failed, Unrated) for reason in kind}


def show_judged(console: Console, judged: Judged) -> None:
    """Prints what became of a run of judges, or what it would ask.

    Args:
        console: Where to print.
        judged: The run.
    """
    for reason, count in sorted(judged.left_out.items()):
        line = f"{count:,} left out, {reason}: {reason.meaning}"
        console.print(Text(line, "yellow"), soft_wrap=True)
    if judged.path is None:
        console.print(plan_table(judged.plans))
        console.print("nothing was asked: leave out --dry-run to ask")
        return
    console.print(answer_table(judged.answered))
    for line in _remarks(judged):
        console.print(Text(line, "yellow"), soft_wrap=True)
    if judged.cost_usd is not None:
        console.print(Text(f"cost, as far as it is known: ${judged.cost_usd:.2f}"))
    console.print(Text(f"{judged.path.stem}: {judged.path}"), soft_wrap=True)


def plan_table(plans: Sequence[Planned]) -> Table:
    """What judges would be asked, as a table.

    Args:
        plans: One of each judge and rubric.

    Returns:
        The table; `?` where no price is known.
    """
    table = _table("judge", "about", "calls", "stored", "prompt tokens", "pictures", "about $")
    for one in plans:
        plan = one.plan
        counts = (plan.calls, plan.stored, plan.prompt_tokens, plan.pictures)
        cost = UNKNOWN if one.cost_usd is None else f"{one.cost_usd:.2f}"
        table.add_row(Text(one.who, "bold"), one.rubric, *(f"{n:,}" for n in counts), cost)
    return table


def answer_table(answered: Sequence[Answered]) -> Table:
    """What judges have answered, as a table.

    Args:
        answered: One of each judge and rubric.

    Returns:
        The table, with the share of prompt tokens that came from a cache.
    """
    table = _table("judge", "about", "ok", "others", "calls", "tokens", "from cache", "$")
    for one in answered:
        fill, usage = one.fill, one.fill.usage
        ok = one.outcomes.get(Outcome.OK, 0)
        table.add_row(
            Text(one.who, "bold"),
            one.rubric,
            f"{ok:,}",
            f"{sum(one.outcomes.values()) - ok:,}",
            f"{fill.calls:,}",
            f"{usage.prompt + usage.completion:,}",
            f"{100 * usage.cached / usage.prompt:.0f} %" if usage.prompt else NOTHING,
            NOTHING if fill.cost_usd is None else f"{fill.cost_usd:.2f}",
        )
    return table


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in headings[:2] else "right")
    return table


def _remarks(judged: Judged) -> list[str]:
    """Why there is no answer, and that a budget is spent."""
    remarks = [
        f"{one.who} {one.rubric}: {count:,} {outcome}: {MEANINGS.get(outcome, '')}"
        for one in judged.answered
        for outcome, count in sorted(one.outcomes.items())
        if outcome != Outcome.OK
    ]
    if judged.spent:
        remarks.append("the budget is spent: a larger one, and the same command, go on from here")
    return remarks
