"""Systems, judges, audits and rankings in a terminal: plans, progress, outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from echo_hf.judging.audit import Audited
from echo_hf.judging.session import Answered, Judged, Planned
from echo_hf.reasons import Failed, NotAudited, Outcome, Unrated
from echo_hf.systems.generate import Generated, Listed

if TYPE_CHECKING:
    from echo_hf.apps.rank.rank import Ranks


UNKNOWN = "?"


def system_table(systems: Sequence[Listed]) -> Table:
    """Systems as a table: what each stands for, and what is missing to run it."""
    table = Table(box=None, pad_edge=False)
    for heading in ("system", "status", "stands for", "adapter", "$ a picture", "missing"):
        right = heading == "$ a picture"
        # A narrow terminal folds names rather than leave out what is missing.
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
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


def what_seeds_give(systems: Sequence[Listed]) -> Iterator[str]:
    """What the same seed gives, a line for each system that says so."""
    for one in systems:
        if one.determinism is not None:
            yield f"{one.config.name}, with the same seed: {one.determinism}"


def what_to_do(systems: Sequence[Listed]) -> Iterator[str]:
    """How what is missing to run systems is come by, a line for each kind of it."""
    extras = sorted({one.extra for one in systems if one.extra})
    if extras:
        yield f'[{extras[0]}]: pip install "echo-hf[{extras[0]}]", and so on'
    if any(not is_set for one in systems for is_set in one.keys.values()):
        yield "a name in capitals: set this environment variable to your key"
    if any(one.no_folder for one in systems):
        yield "a folder: the file of the system says what belongs there"


def _price(one: Listed) -> str:
    if one.usd_per_image is not None:
        return f"{one.usd_per_image:.3f}"
    return UNKNOWN if one.config.price is None else "by tokens"


def _missing(one: Listed) -> Text:
    unset = [name for name, is_set in one.keys.items() if not is_set]
    parts = [f"[{one.extra}]"] if one.extra else []
    parts += [] if one.known else [f"no adapter {one.config.adapter!r} is installed"]
    parts += [*unset, *([f"folder {one.no_folder!r}"] if one.no_folder else [])]
    return Text(", ".join(parts), "yellow") if parts else Text("nothing", "green")


def outcome_table(generated: Generated) -> Table:
    """What became of the tasks of each system, as a table."""
    there = [one for one in Outcome if any(counts.get(one) for counts in _counts(generated))]
    table = Table(box=None, pad_edge=False)
    table.add_column("system")
    for outcome in there:
        table.add_column(outcome.value, justify="right")
    for system, counts in generated.outcomes.items():
        table.add_row(Text(system, "bold"), *(f"{counts.get(one, 0):,}" for one in there))
    return table


def _counts(generated: Generated) -> Sequence[Mapping[Outcome, int]]:
    return list(generated.outcomes.values())


NOTHING = "-"
MEANINGS = {str(reason): reason.meaning for kind in (Failed, Unrated) for reason in kind}


def show_judged(console: Console, judged: Judged) -> None:
    """Prints what became of a run of judges, or what it would ask."""
    for reason, count in sorted(judged.left_out.items()):
        line = f"{count:,} left out, {reason}: {reason.meaning}"
        console.print(Text(line, "yellow"), soft_wrap=True)
    if judged.path is None:
        console.print(judging_plan_table(judged.plans))
        console.print("nothing was asked: leave out --dry-run to ask")
        return
    console.print(answer_table(judged.answered))
    for line in _remarks(judged):
        console.print(Text(line, "yellow"), soft_wrap=True)
    if judged.cost_usd is not None:
        console.print(Text(f"cost, as far as it is known: ${judged.cost_usd:.2f}"))
    console.print(Text(f"{judged.path.stem}: {judged.path}"), soft_wrap=True)


def judging_plan_table(plans: Sequence[Planned]) -> Table:
    """What judges would be asked, as a table."""
    table = _table("judge", "about", "calls", "stored", "prompt tokens", "pictures", "about $")
    for one in plans:
        plan = one.plan
        counts = (plan.calls, plan.stored, plan.prompt_tokens, plan.pictures)
        cost = UNKNOWN if one.cost_usd is None else f"{one.cost_usd:.2f}"
        table.add_row(Text(one.who, "bold"), one.rubric, *(f"{n:,}" for n in counts), cost)
    return table


def answer_table(answered: Sequence[Answered]) -> Table:
    """What judges have answered, as a table."""
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


AUDIT_MEANINGS: Mapping[str | None, str] = {str(reason): reason.meaning for reason in NotAudited}
PASSED: Mapping[bool | None, tuple[str, str]] = {
    True: ("passed", "green"),
    False: ("failed", "red"),
    None: ("nobody can say", "yellow"),
}


def show_audited(console: Console, audited: Audited) -> None:
    """Prints how each judge did, or what it would be asked."""
    for judge, audit in audited.judges.items():
        mean = _number(audit["mean_of_real_outputs"])
        console.print(Text(f"{judge}, by {audit['rubric']}: real outputs {mean}", "bold"))
        console.print(check_table(audit))
        for line in _audit_remarks(audit):
            console.print(Text(line), soft_wrap=True)
        console.print()
    show_judged(console, audited.asked)


def check_table(audit: Mapping[str, Any]) -> Table:
    """How a judge did on each honeypot."""
    table = Table(box=None, pad_edge=False)
    for heading in ("shown", "rated", "mean", "as it should", "needed", ""):
        table.add_column(heading, justify="left" if heading in ("shown", "") else "right")
    for name, check in sorted(audit["checks"].items()):
        word, style = PASSED[check["passed"]]
        reason = AUDIT_MEANINGS.get(check["reason"])
        table.add_row(
            Text(name),
            str(check["rated"]),
            _number(check["mean"]),
            _share(check["share"]),
            _share(check["rule"]["share"]),
            Text(f"{word}: {reason}" if reason else word, style),
        )
    return table


def _audit_remarks(audit: Mapping[str, Any]) -> list[str]:
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


def show_draw(console: Console, ranks: Ranks) -> None:
    """Says what there is to rank, and what is not there and why."""
    draw = ranks.ranker.draw
    splits = Counter(sample.task.split for sample in draw.samples)
    parts = ", ".join(f"{count} of {split}" for split, count in splits.items())
    console.print(Text(f"to rank: {parts} (seed {draw.seed})"), soft_wrap=True)
    for reason, count in draw.left_out.items():
        console.print(
            Text(f"not ranked: {count} {reason}: {reason.meaning}", "dim"), soft_wrap=True
        )


def show_address(console: Console, address: str) -> None:
    """Says where the page is."""
    console.print(Text(f"\nopen {address} in a browser; Ctrl-C ends it, nothing is lost"))


def show_written(console: Console, ranks: Ranks) -> None:
    """Says what was written down."""
    written = ranks.write()
    if not written.rankings and not written.kept:
        return
    rankings = f"{written.rankings} ranking{'' if written.rankings == 1 else 's'}"
    others = f", beside {written.kept} rows from elsewhere" if written.kept else ""
    console.print(Text(f"\n{rankings} in {written.path}{others}"), soft_wrap=True)
    for reason, count in written.left_out.items():
        console.print(Text(f"{count} ranks are not there, {reason}: {reason.meaning}", "dim"))
    console.print(Text("next: echo-hf agree compares judges with them", "dim"))
