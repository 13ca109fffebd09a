"""Systems, judges, audits, rankings, reports and analyses in a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from echo_hf._infra.console import MORE, Terminal, plain_table, say, say_under, show_table
from echo_hf._infra.text import counted, disarmed, escaped, in_place, percent, plain, rounded
from echo_hf._infra.text import table as markdown_table
from echo_hf.engines.planner import UNKNOWN, Expected, Range, shown_dollars, shown_time
from echo_hf.errors import install_command
from echo_hf.judging.audit import Audited
from echo_hf.judging.board import judge_names
from echo_hf.judging.judge import BASIS
from echo_hf.judging.session import Answered, JudgingPlan, JudgingResult
from echo_hf.judging.trust import drift_said
from echo_hf.reasons import Failed, NotAudited, Outcome, Reason, Unrated, Unscored, unusable_in
from echo_hf.systems.generate import Generated, SystemListing

if TYPE_CHECKING:
    from echo_hf.apps.rank import Ranker
    from echo_hf.builder.update import PlannedStage
    from echo_hf.judging.gate import Compared
    from echo_hf.judging.imports import Imported
    from echo_hf.report.analysis.analyze import Analyzed
    from echo_hf.report.analysis.result import Analysis, Estimate
    from echo_hf.report.evaluation import PlannedWork
    from echo_hf.report.report import Report

NOTHING = "-"
IF_ANY, NONE = ("others", "from cache", "$"), ("0", "0 %", NOTHING)
ABOUT, TAKES = ("about",), ("price", "time")
SPENT = "the budget is spent: a larger one, and the same command, resume from here"
MEANINGS = {
    str(reason): reason.meaning for kind in (Failed, Unrated, NotAudited) for reason in kind
}
LONGEST_REASON = 300
SHORTEST, CHEAPEST = 0.05, 0.005  # seconds and dollars that are not shown as none
MOST_FOUND = 4
PRICED = "give `price` (a system) or usd_per_million_*_tokens (an engine)"
Rows = list[tuple[str | Text, ...]]


def system_table(systems: Sequence[SystemListing]) -> Table:
    rows: Rows = []
    for one in systems:
        config = one.config
        price = UNKNOWN if one.image.cost_usd is None else f"{one.image.cost_usd:.3f}"
        missing = [f"[{one.extra}]"] if one.extra else []
        missing += [] if one.known else [f"no adapter {config.adapter!r} is installed"]
        missing += [name for name, is_set in one.keys.items() if not is_set]
        missing += [f"folder {one.no_folder!r}"] if one.no_folder else []
        said = Text(", ".join(missing), "yellow") if missing else Text("nothing", "green")
        named = (config.status, config.stands_for or NOTHING, config.adapter)
        price = "a GPU" if one.image.gpu else price
        rows.append((Text(config.name, "bold"), *named, price, said))
    words = ("status", "stands for", "adapter")
    heads = ("system", *words, "$ an image", "missing")
    return plain_table(*heads, left=(*words, "missing"), rows=rows)


def what_to_do(systems: Sequence[SystemListing]) -> Iterator[str]:
    """How to come by what is missing to run systems; then what the same seed gives with each."""
    extras = sorted({one.extra for one in systems if one.extra})
    if extras:
        yield f"[{extras[0]}]: {install_command(extras[0])}, and so on"
    if any(not is_set for one in systems for is_set in one.keys.values()):
        yield "a name in capitals: set this environment variable to your key"
    if any(one.no_folder for one in systems):
        yield "a folder: the file of the system says what belongs there"
    for one in systems:
        if one.determinism is not None:
            yield f"{one.config.name}, with the same seed: {one.determinism}"


def outcome_table(generated: Generated) -> Table:
    every = generated.outcomes
    there = [one for one in Outcome if any(counts.get(one) for counts in every.values())]
    rows: Rows = [
        (Text(system, "bold"), *(f"{counts.get(one, 0):,}" for one in there))
        for system, counts in every.items()
    ]
    return plain_table("system", *there, rows=rows)


def show_planned(console: Console, plan: Sequence[PlannedWork]) -> None:
    rows: Rows = [
        (
            Text(one.who, "bold"),
            one.about,
            f"{'up to ' if one.at_most else ''}{one.todo:,}",
            f"{one.stored:,}",
            *_takes(one),
        )
        for one in plan
        if one.todo
    ]
    heads = ("", "about", "to ask", "stored", *TAKES)
    if rows:
        console.print(plain_table(*heads, left=ABOUT, rows=rows))
    else:
        stored = sum(one.stored for one in plan)
        say(console, f"nothing is left to ask: {stored:,} outputs and answers are stored", "dim")
    places = (in_place(one.who, one.in_place_of) for one in plan if one.in_place_of)
    for said in dict.fromkeys(places):
        say(console, said, "dim")
    say_expected(console, [(one.who, one.expected) for one in plan])


def show_stages(console: Console, plan: Sequence[PlannedStage]) -> None:
    rows: Rows = []
    for one in plan:
        todo = f"{'' if one.counted else 'about '}{one.todo:,}"
        rows.append((Text(one.stage, "bold"), todo, f"{one.stored:,}", *_takes(one)))
    console.print(plain_table("stage", "to ask", "stored", *TAKES, rows=rows))
    say_expected(console, [(one.stage, one.expected) for one in plan])


def _takes(one: Any) -> tuple[str, str]:
    """The price and the time of work that is expected."""
    found: Expected = one.expected
    usd = NOTHING if found.cost_usd == 0 else shown_dollars(found.usd)
    if found.seconds is not None and found.seconds.likely < SHORTEST:
        return usd, NOTHING
    return usd, f"{shown_time(found.seconds)}{' GPU' if found.gpu and found.seconds else ''}"


def say_expected(console: Console, every: Sequence[tuple[str, Expected]]) -> None:
    """What the work of all takes together, and what that rests on."""
    unpriced = dict.fromkeys(who for who, one in every if one.usd is None)
    is_untimed = any(one.seconds is None for _, one in every)
    dollars = Range.total(one.usd for _, one in every if one.usd)
    times = [(one.seconds, one.gpu) for _, one in every if one.seconds]
    time = Range.total(one for one, _ in times)
    usd, seconds = shown_dollars(dollars), shown_time(time)
    on_gpu = Range.total(one for one, gpu in times if gpu)
    own = f", of that {shown_time(on_gpu)} of your own GPU" if on_gpu.high else ""
    parts = [
        f"{'at least' if unknown else 'about'} {amount}"
        for amount, unknown, is_something in (
            (usd, unpriced, dollars.likely >= CHEAPEST),
            (f"{seconds} one after the other{own}", is_untimed, time.likely >= SHORTEST),
        )
        if is_something
    ]
    if parts:
        say(console, f"in all {'; '.join(parts)}")
    if unpriced:
        say_under(console, "no price", f"known for {', '.join(unpriced)}: {PRICED}")
    known = [(who, one) for who, one in every if one.usd or one.seconds]
    for basis in dict.fromkeys(one.basis for _, one in known if one.basis):
        names = ", ".join(dict.fromkeys(who for who, one in known if one.basis == basis))
        say(console, f"{names}: {basis}", "dim")


def _show_left_out(console: Console, left_out: Mapping[Reason, int]) -> None:
    for reason, count in sorted(left_out.items()):
        say(console, f"{count:,} left out, {reason}: {reason.meaning}", "yellow")


def show_judged(console: Console, judged: JudgingResult) -> None:
    _show_left_out(console, judged.left_out)
    if judged.path is None:
        rows: Rows = []
        for planned in judged.plans:
            plan = planned.plan
            counts = (plan.calls, plan.stored, plan.prompt_tokens, plan.images)
            figures = (*(f"{count:,}" for count in counts), *_takes(planned))
            rows.append((Text(planned.who, "bold"), planned.rubric, *figures))
        heads = ("judge", "about", "calls", "stored", "prompt tokens", "pictures", *TAKES)
        console.print(plain_table(*heads, left=ABOUT, rows=rows))
        say_expected(console, [(one.who, one.expected) for one in judged.plans])
        if judged.ways:
            show_ways(console, judged.ways)
        console.print("nothing was asked: leave out --dry-run to ask")
        return
    console.print(answer_table(judged.answered))
    for one in judged.answered:
        for outcome, count in sorted(one.outcomes.items()):
            if outcome != Outcome.OK:
                line = f"{one.who} {one.rubric}: {count:,} {outcome}: {MEANINGS.get(outcome, '')}"
                say(console, line, "dim" if outcome == Unrated.NOT_NEEDED else "yellow")
        if unusable := unusable_in(one.outcomes):
            said = f"{counted(unusable, 'answer')} cannot be used: --again asks anew"
            say(console, f"{one.who} {one.rubric}: {said}", "yellow")
    for split, found in judged.decisions.items():
        say(console, f"{split}: {found.said}")
        if found.undecided:
            pairs = "; ".join(" and ".join(map(plain, pair)) for pair in found.undecided)
            say(console, f"not decided: {pairs}", "dim")
    if judged.saved:
        calls = sum(one.plan.calls for one in judged.saved)
        usd = Range.total(one.expected.usd for one in judged.saved if one.expected.usd)
        priced = f", about {shown_dollars(usd)}" if usd.likely else ""
        say(console, f"saved: {calls:,} calls{priced}")
    if judged.spent:
        say(console, SPENT, "yellow")
    say_cost(console, judged.cost_usd, (one.who for one in judged.answered if one.unpriced))
    say(console, f"{judged.path.stem}: {judged.path}")


def say_cost(console: Console, cost_usd: float | None, unpriced: Iterable[str]) -> None:
    """Prints what calls have cost, and of whom nobody knows it; nothing where nobody was paid."""
    if cost_usd:
        say(console, f"cost: ${cost_usd:,.2f}")
    if names := ", ".join(dict.fromkeys(unpriced)):
        say_under(console, "no price", f"known for {names}: {PRICED}")


def show_ways(console: Console, ways: Sequence[JudgingPlan]) -> None:
    rows: Rows = []
    for one in ways:
        low, calls, high = (f"{count:,.0f}" for count in one.calls)
        widths = (rounded(half) for half in one.half_width.values())
        named = Text(one.name, "bold"), calls if low == high else f"{low} to {high}"
        rows.append((*named, *widths, *_takes(one)))
    heads = ("", "calls", *(f"± {split}" for split in ways[0].half_width), *TAKES)
    title = "what is still to be asked, one way or another"
    show_table(console, title, plain_table(*heads, rows=rows), BASIS)


def show_imported(console: Console, imported: Imported) -> None:
    _show_left_out(console, imported.left_out)
    for kind, names in (("judges", imported.judges), ("systems", imported.systems)):
        say(console, f"{kind}: {', '.join(map(plain, names)) or NOTHING}")
    for name, count in imported.rows.items():
        place = imported.paths.get(name, "nothing was written: leave out --dry-run")
        say(console, f"{count:,} rows of {name} ({imported.format}): {place}")


def answer_table(answered: Sequence[Answered]) -> Table:
    rows: Rows = []
    for one in answered:
        fill, usage = one.fill, one.fill.usage
        ok, spared = (one.outcomes.get(name, 0) for name in (Outcome.OK, Unrated.NOT_NEEDED))
        others = sum(one.outcomes.values()) - ok - spared
        counts = (ok, others, fill.calls, usage.prompt + usage.completion)
        cached = percent(usage.cached / usage.prompt) if usage.prompt else NOTHING
        figures = (*(f"{count:,}" for count in counts), cached, rounded(fill.cost_usd, 2))
        rows.append((Text(one.who, "bold"), one.rubric, *figures))
    heads = ("judge", "about", "ok", "others", "calls", "tokens", "from cache", "$")
    shown = [
        at
        for at, head in enumerate(heads)
        if head not in IF_ANY or any(row[at] not in NONE for row in rows)
    ]
    cells = ([row[at] for at in shown] for row in rows)
    return plain_table(*(heads[at] for at in shown), left=ABOUT, rows=cells)


VERDICTS = {"non_inferior": "green", "worse": "red", "undecided": "yellow"}
PASSED: Mapping[bool | None, tuple[str, str]] = {
    True: ("passed", "green"),
    False: ("failed", "red"),
    None: ("nobody can say", "yellow"),
}


def show_audited(console: Console, audited: Audited) -> None:
    for judge, audit in audited.judges.items():
        mean = rounded(audit["mean_of_real_outputs"], 2)
        say(console, f"{judge}, by {audit['rubric']}: mean of real outputs {mean}", "bold")
        console.print(check_table(audit))
        noise, use = audit["noise"], audit["scale_use"]
        alike = f"{percent(noise['equal'])} of {noise['samples']} rated alike"
        say(console, f"asked twice: {alike}, standard deviation {rounded(noise['deviation'], 2)}")
        if audit.get("drift"):
            say(console, f"asked again: {drift_said(audit['drift'])}")
        if use is not None:
            say(
                console,
                f"its {use['ratings']:,} ratings: {percent(use['at_ceiling'])} at the top of the "
                f"scale, {rounded(use['entropy'], 2)} bits of entropy, {percent(use['ties'])} of "
                f"{use['pairs']:,} pairs tied",
            )
        console.print()
    show_judged(console, audited.asked)


def check_table(audit: Mapping[str, Any]) -> Table:
    rows: Rows = []
    for name, check in sorted(audit["checks"].items()):
        word, style = PASSED[check["passed"]]
        reason = MEANINGS.get(check["reason"])
        figures = (str(check["rated"]), rounded(check["mean"], 2), percent(check["share"]))
        verdict = Text(f"{word}: {reason}" if reason else word, style)
        rows.append((name, *figures, percent(check["rule"]["share"]), verdict))
    heads = ("shown", "rated", "mean", "as it should", "needed", "")
    return plain_table(*heads, left=[""], rows=rows)


def show_compared(console: Console, done: Compared) -> None:
    title, said, cells, notes = compared_parts(done)
    show_table(console, title, plain_table(*cells, rows=[cells.values()]), notes)
    say(console, said, VERDICTS[done.found.verdict])


def compared_markdown(done: Compared) -> str:
    title, said, cells, notes = compared_parts(done)
    rows = markdown_table(cells, [map(escaped, cells.values())], len(cells))
    parts = f"### {escaped(title)}", f"**{escaped(said)}**", rows, *map(escaped, notes)
    return disarmed("\n\n".join(parts) + "\n")


def compared_parts(done: Compared) -> tuple[str, str, dict[str, str], list[str]]:
    """What both show of a comparison: title, verdict, cells by their headings, notes."""
    found = done.found
    sure = f"{100 * found.definition['confidence']:g} %"
    cells = {
        "prompts": f"{found.n:,}",
        "better": f"{found.wins:,}",
        "tied": f"{found.ties:,}",
        "worse": f"{found.losses:,}",
        "difference": NOTHING if found.difference is None else f"{found.difference:+.4g}",
        f"{sure} each end": " to ".join(f"{end:+.4g}" for end in found.interval or ()) or NOTHING,
        "margin": f"{found.margin:g}",
    }
    there = f"{found.base_n:,} of {done.base}, {found.new_n:,} of {done.new}"
    is_whole = found.base_n == found.new_n == done.prompts
    notes = [] if is_whole else [f"of {counted(done.prompts, 'prompt')} there are {there}"]
    if done.judges:
        notes.append(f"judged by {', '.join(judge_names(done.judges, done.failed))}")
    if found.reason:
        notes.append(found.reason.meaning)
    for table, counts in done.left_out.items():
        for reason, count in counts.items():
            notes.append(f"{count:,} rows of {table} do not count: {reason.meaning}")
    return f"{done.metric} of {done.new} against {done.base}", verdict_of(done, sure), cells, notes


def verdict_of(done: Compared, sure: str) -> str:
    found = done.found
    if found.verdict != "undecided":
        passed = found.verdict == "non_inferior"
        said = "non-inferior: {} is at most {:g}" if passed else "worse: {} is more than {:g}"
        return f"{said.format(done.new, found.margin)} worse than {done.base} ({sure})"
    if found.reason is Unscored.LOW_COVERAGE:
        return (
            f"undecided: {percent(found.coverage)} of the prompts count for both, fewer than 95 %: "
            "have the rest generated and judged"
        )
    if found.needed == 0:
        return "undecided: there are prompts enough, and the difference lies near the margin"
    count = "more" if found.needed is None else f"about {found.needed:,} more"
    return f"undecided: {count} prompts are needed, if the two are equally good"


def show_draw(console: Console, ranks: Ranker) -> None:
    draw = ranks.draw
    splits = Counter(sample.task.split for sample in draw.samples)
    parts = (f"{count} of {name}{ranks.basis.get(name, '')}" for name, count in splits.items())
    say(console, f"to rank: {', '.join(parts)} (seed {draw.seed})")
    for reason, count in draw.left_out.items():
        say(console, f"not ranked: {count} {reason}: {reason.meaning}", "dim")


def show_written(console: Console, ranks: Ranker) -> None:
    written = ranks.write()
    if not written.rankings and not written.kept:
        return
    others = f", beside {written.kept} rows from elsewhere" if written.kept else ""
    say(console, f"\n{counted(written.rankings, 'ranking')} in {written.path}{others}")
    for reason, count in written.left_out.items():
        say(console, f"{count} ranks are not there, {reason}: {reason.meaning}", "dim")
    say(console, "next: echo-hf score corrects win rates by them, agree compares judges", "dim")


def show_report(console: Console, written: Report) -> None:
    for reason, images in sorted(Counter(written.problems.values()).items()):
        say(console, f"{counted(images, 'image')} cannot be shown: {reason}", "yellow")
    held = f"{counted(written.samples, 'sample')}, {counted(written.images, 'image')}"
    say(console, f"report: {written.path} ({held})")


def show_analysis(console: Terminal, done: Analyzed) -> None:
    """Shows what people complain of and ask for, and what could not be found."""
    found = done.analysis
    say(console, f"{found.name}: {counted(found.samples, 'sample')}", "bold")
    for name, said in findings(found):
        say_under(console, f"{name:<16}", said)
    for name, why in found.not_fetched.items():
        say_under(console, f"not fetched: {plain(name)}:", plain(why, LONGEST_REASON), "yellow")
    lacks: dict[str, str | None] = {
        f"no {name}, {part.reason}": part.detail
        for name, part in found.parts.items()
        if part.reason
    }
    if found.tasks.found and found.tasks.found.no_references:
        lacks["no tasks of references"] = found.tasks.found.no_references
    for one in found.open_tasks.found.compared if found.open_tasks.found else ():
        if one.untold:
            lacks[f"no new tasks beside {plain(one.name)}"] = one.untold
    if console.details:
        for what, detail in lacks.items():
            say_under(console, f"{what}:", plain(detail, LONGEST_REASON), "dim")
    elif lacks:
        say(console, f"{counted(len(lacks), 'part')} not computed: {MORE}", "dim")
    say(console, f"analysis: {done.path}; `echo-hf report` shows it")


def findings(found: Analysis) -> Iterator[tuple[str, str]]:
    """The findings of an analysis that a line can hold, each with its name."""
    if failures := found.failures.found:
        most = (f"{one.keyword} {one.comments:,}" for one in failures.keywords[:MOST_FOUND])
        yield "failures named", ", ".join(map(plain, most)) or "none"
    if tasks := found.tasks.found:
        most = (f"{one.task} {percent(one.share)}" for one in tasks.counts)
        yield "tasks", ", ".join(islice(map(plain, most), MOST_FOUND))
    if phrased := found.open_tasks.found:
        most = (f"{one.phrase} {one.samples:,}" for one in phrased.groups[:MOST_FOUND])
        yield "in own words", ", ".join(map(plain, most)) or "none"
    for spoken in (found.languages.found or ())[:1]:
        counts = Counter(spoken.prompts).most_common(MOST_FOUND)
        yield "languages", ", ".join(f"{plain(name)} {count:,}" for name, count in counts)
    for one in found.diversity.found or ():
        beside = "" if one.ratio is None else f", the benchmark has {_ratio(one.ratio)} as many"
        expected = rounded(one.expected.value, 0)
        said = f"{expected} different ones in {one.at:,} prompts of {plain(one.name)}{beside}"
        yield "first bigrams", said
    for alike in (found.near_duplicates.found or ())[:1]:
        said = f"{alike.in_clusters:,} of {alike.prompts:,} prompts, in {alike.clusters:,} groups"
        yield "near-duplicates", said
    if since := found.since.found:
        moved = (f"{one.name} {100 * one.change:+.1f} points" for one in since.tasks.moved)
        said = ", ".join(islice(map(plain, moved), MOST_FOUND)) or "nothing"
        yield f"since {plain(since.name)}", said


def _ratio(ratio: Estimate) -> str:
    return NOTHING if ratio.value is None else f"{ratio.value:.2f} times"
