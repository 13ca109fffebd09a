"""Systems, judges, audits and rankings in a terminal: plans, progress, outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from echo_hf._infra.console import plain_table, say
from echo_hf._infra.text import percent, rounded
from echo_hf.judging.audit import Audited
from echo_hf.judging.session import Answered, JudgingResult, Planned
from echo_hf.reasons import Failed, NotAudited, Outcome, Unrated
from echo_hf.systems.generate import Generated, SystemListing

if TYPE_CHECKING:
    from echo_hf.apps.rank.rank import Ranks
    from echo_hf.report.evaluation import PlannedWork


UNKNOWN = "?"


def system_table(systems: Sequence[SystemListing]) -> Table:
    """Systems as a table: what each stands for, and what is missing to run it."""
    words = ("status", "stands for", "adapter")
    table = plain_table("system", *words, "$ an image", "missing", left=(*words, "missing"))
    for one in systems:
        table.add_row(
            Text(one.config.name, "bold"),
            one.config.status,
            Text(one.config.stands_for or "-"),
            Text(one.config.adapter),
            _price(one),
            _missing(one),
        )
    return table


def what_seeds_give(systems: Sequence[SystemListing]) -> Iterator[str]:
    """What the same seed gives, a line for each system that says so."""
    for one in systems:
        if one.determinism is not None:
            yield f"{one.config.name}, with the same seed: {one.determinism}"


def what_to_do(systems: Sequence[SystemListing]) -> Iterator[str]:
    """How what is missing to run systems is come by, a line for each kind of it."""
    extras = sorted({one.extra for one in systems if one.extra})
    if extras:
        yield f'[{extras[0]}]: pip install "echo-hf[{extras[0]}]", and so on'
    if any(not is_set for one in systems for is_set in one.keys.values()):
        yield "a name in capitals: set this environment variable to your key"
    if any(one.no_folder for one in systems):
        yield "a folder: the file of the system says what belongs there"


def _price(one: SystemListing) -> str:
    if one.usd_per_image is not None:
        return f"{one.usd_per_image:.3f}"
    return UNKNOWN if one.config.price is None else "by tokens"


def _missing(one: SystemListing) -> Text:
    unset = [name for name, is_set in one.keys.items() if not is_set]
    parts = [f"[{one.extra}]"] if one.extra else []
    parts += [] if one.known else [f"no adapter {one.config.adapter!r} is installed"]
    parts += [*unset, *([f"folder {one.no_folder!r}"] if one.no_folder else [])]
    return Text(", ".join(parts), "yellow") if parts else Text("nothing", "green")


def outcome_table(generated: Generated) -> Table:
    """What became of the tasks of each system, as a table."""
    there = [
        one for one in Outcome if any(counts.get(one) for counts in generated.outcomes.values())
    ]
    table = plain_table("system", *there)
    for system, counts in generated.outcomes.items():
        table.add_row(Text(system, "bold"), *(f"{counts.get(one, 0):,}" for one in there))
    return table


def show_planned(console: Console, plan: Sequence[PlannedWork]) -> None:
    """Prints what systems and judges are about to be asked, and what all of it costs."""
    table = plain_table("", "about", "to ask", "stored", "about $", left=ABOUT)
    for one in plan:
        cost = UNKNOWN if one.cost_usd is None else f"{one.cost_usd:.2f}"
        table.add_row(
            Text(one.who, "bold"), Text(one.about), f"{one.todo:,}", f"{one.stored:,}", cost
        )
    console.print(table)
    unknown = [one.who for one in plan if one.cost_usd is None]
    known = sum(one.cost_usd or 0.0 for one in plan)
    more = (
        f", and {', '.join(dict.fromkeys(unknown))} at a price that is not known" if unknown else ""
    )
    say(console, f"in all about ${known:.2f}{more}")


NOTHING = "-"
ABOUT = ("about",)
MEANINGS = {str(reason): reason.meaning for kind in (Failed, Unrated) for reason in kind}


def show_judged(console: Console, judged: JudgingResult) -> None:
    """Prints what became of a run of judges, or what it would ask."""
    for reason, count in sorted(judged.left_out.items()):
        say(console, f"{count:,} left out, {reason}: {reason.meaning}", "yellow")
    if judged.path is None:
        console.print(judging_plan_table(judged.plans))
        console.print("nothing was asked: leave out --dry-run to ask")
        return
    console.print(answer_table(judged.answered))
    for line in _remarks(judged):
        say(console, line, "yellow")
    if judged.cost_usd is not None:
        say(console, f"cost, as far as it is known: ${judged.cost_usd:.2f}")
    say(console, f"{judged.path.stem}: {judged.path}")


def judging_plan_table(plans: Sequence[Planned]) -> Table:
    """What judges would be asked, as a table."""
    table = plain_table(
        "judge", "about", "calls", "stored", "prompt tokens", "pictures", "about $", left=ABOUT
    )
    for one in plans:
        plan = one.plan
        counts = (plan.calls, plan.stored, plan.prompt_tokens, plan.images)
        cost = UNKNOWN if one.cost_usd is None else f"{one.cost_usd:.2f}"
        table.add_row(Text(one.who, "bold"), one.rubric, *(f"{n:,}" for n in counts), cost)
    return table


def answer_table(answered: Sequence[Answered]) -> Table:
    table = plain_table(
        "judge", "about", "ok", "others", "calls", "tokens", "from cache", "$", left=ABOUT
    )
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
            rounded(fill.cost_usd, 2),
        )
    return table


def _remarks(judged: JudgingResult) -> list[str]:
    """Why there is no answer, and that a budget is spent."""
    remarks = [
        f"{one.who} {one.rubric}: {count:,} {outcome}: {MEANINGS.get(outcome, '')}"
        for one in judged.answered
        for outcome, count in sorted(one.outcomes.items())
        if outcome != Outcome.OK
    ]
    if judged.spent:
        remarks.append("the budget is spent: a larger one, and the same command, resume from here")
    return remarks


AUDIT_MEANINGS: Mapping[str | None, str] = {str(reason): reason.meaning for reason in NotAudited}
PASSED: Mapping[bool | None, tuple[str, str]] = {
    True: ("passed", "green"),
    False: ("failed", "red"),
    None: ("nobody can say", "yellow"),
}


def show_audited(console: Console, audited: Audited) -> None:
    """Prints how each judge did, or what it would be asked."""
    for judge, audit in audited.judges.items():
        mean = rounded(audit["mean_of_real_outputs"], 2)
        say(console, f"{judge}, by {audit['rubric']}: real outputs {mean}", "bold")
        console.print(check_table(audit))
        for line in _audit_remarks(audit):
            say(console, line)
        console.print()
    show_judged(console, audited.asked)


def check_table(audit: Mapping[str, Any]) -> Table:
    """How a judge did on each honeypot."""
    table = plain_table("shown", "rated", "mean", "as it should", "needed", "", left=[""])
    for name, check in sorted(audit["checks"].items()):
        word, style = PASSED[check["passed"]]
        reason = AUDIT_MEANINGS.get(check["reason"])
        table.add_row(
            Text(name),
            str(check["rated"]),
            rounded(check["mean"], 2),
            percent(check["share"]),
            percent(check["rule"]["share"]),
            Text(f"{word}: {reason}" if reason else word, style),
        )
    return table


def _audit_remarks(audit: Mapping[str, Any]) -> list[str]:
    noise, use = audit["noise"], audit["scale_use"]
    lines = [
        f"asked twice: {percent(noise['equal'])} of {noise['samples']} rated alike, standard "
        f"deviation {rounded(noise['deviation'], 2)}"
    ]
    if use is not None:
        lines.append(
            f"its {use['ratings']:,} ratings: {percent(use['at_ceiling'])} at the top of the "
            f"scale, {rounded(use['entropy'], 2)} bits, {percent(use['ties'])} of "
            f"{use['pairs']:,} pairs tied"
        )
    return lines


def show_draw(console: Console, ranks: Ranks) -> None:
    """Says what there is to rank, and what is not there and why."""
    draw = ranks.ranker.draw
    splits = Counter(sample.task.split for sample in draw.samples)
    parts = ", ".join(f"{count} of {split}" for split, count in splits.items())
    say(console, f"to rank: {parts} (seed {draw.seed})")
    for reason, count in draw.left_out.items():
        console.print(
            Text(f"not ranked: {count} {reason}: {reason.meaning}", "dim"), soft_wrap=True
        )


def show_address(console: Console, address: str) -> None:
    """Says where the page is."""
    say(console, f"\nopen {address} in a browser; Ctrl-C ends it, nothing is lost")


def show_written(console: Console, ranks: Ranks) -> None:
    """Says what was written down."""
    written = ranks.write()
    if not written.rankings and not written.kept:
        return
    rankings = f"{written.rankings} ranking{'' if written.rankings == 1 else 's'}"
    others = f", beside {written.kept} rows from elsewhere" if written.kept else ""
    say(console, f"\n{rankings} in {written.path}{others}")
    for reason, count in written.left_out.items():
        say(console, f"{count} ranks are not there, {reason}: {reason.meaning}", "dim")
    say(console, "next: echo-hf agree compares judges with them", "dim")
