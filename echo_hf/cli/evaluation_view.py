"""Systems, judges, audits, rankings, reports and analyses in a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from echo_hf._infra.console import plain_table, say, show_table
from echo_hf._infra.text import counted, disarmed, escaped, in_place, percent, plain, rounded
from echo_hf._infra.text import table as markdown_table
from echo_hf.engines.estimate import UNKNOWN, Expected, Range, shown_dollars, shown_time
from echo_hf.judging.audit import Audited
from echo_hf.judging.board import judge_names
from echo_hf.judging.judge import BASIS
from echo_hf.judging.session import Answered, JudgingPlan, JudgingResult, Planned
from echo_hf.judging.trust import drift_said
from echo_hf.reasons import Failed, NotAudited, Outcome, Unrated
from echo_hf.systems.generate import Generated, SystemListing

if TYPE_CHECKING:
    from echo_hf.apps.rank.rank import Ranks
    from echo_hf.builder.estimate import PlannedStage
    from echo_hf.judging.gate import Compared
    from echo_hf.judging.imports import Imported
    from echo_hf.report.analysis.analyze import Analyzed
    from echo_hf.report.analysis.result import Analysis, Estimate
    from echo_hf.report.evaluation import PlannedWork
    from echo_hf.report.report import Report

NOTHING, ON_GPU = "-", "a GPU"
LONGEST, LONGEST_REASON = 40, 300
ABOUT, TAKES = ("about",), ("price", "time")
SPENT = "the budget is spent: a larger one, and the same command, resume from here"
MEANINGS = {
    str(reason): reason.meaning for kind in (Failed, Unrated, NotAudited) for reason in kind
}
MOST_ROWS = 10
Rows = list[tuple[str | Text, ...]]


def system_table(systems: Sequence[SystemListing]) -> Table:
    rows: Rows = []
    for one in systems:
        config = one.config
        price = UNKNOWN if one.image.cost_usd is None else f"{one.image.cost_usd:.3f}"
        price = ON_GPU if one.image.gpu else price
        missing = [
            *([f"[{one.extra}]"] if one.extra else []),
            *([] if one.known else [f"no adapter {config.adapter!r} is installed"]),
            *(name for name, is_set in one.keys.items() if not is_set),
            *([f"folder {one.no_folder!r}"] if one.no_folder else []),
        ]
        said = Text(", ".join(missing), "yellow") if missing else Text("nothing", "green")
        named = (config.status, config.stands_for or NOTHING, config.adapter)
        rows.append((Text(config.name, "bold"), *named, price, said))
    words = ("status", "stands for", "adapter")
    heads = ("system", *words, "$ an image", "missing")
    return plain_table(*heads, left=(*words, "missing"), rows=rows)


def what_to_do(systems: Sequence[SystemListing]) -> Iterator[str]:
    """How to come by what is missing to run systems; then what the same seed gives with each."""
    extras = sorted({one.extra for one in systems if one.extra})
    if extras:
        yield f'[{extras[0]}]: pip install "echo-hf[{extras[0]}]", and so on'
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
        (Text(one.who, "bold"), one.about, f"{one.todo:,}", f"{one.stored:,}", *_takes(one))
        for one in plan
    ]
    heads = ("", "about", "to ask", "stored", *TAKES)
    console.print(plain_table(*heads, left=ABOUT, rows=rows))
    places = (in_place(one.who, one.in_place_of) for one in plan if one.in_place_of)
    for said in dict.fromkeys(places):
        say(console, said, "dim")
    say_expected(console, [(one.who, one.expected) for one in plan])


def stage_table(plan: Sequence[PlannedStage]) -> Table:
    words = {True: "", False: "about "}
    rows: Rows = [
        (Text(a.stage, "bold"), f"{words[a.counted]}{a.todo:,}", f"{a.stored:,}", *_takes(a))
        for a in plan
    ]
    return plain_table("stage", "to ask", "stored", *TAKES, rows=rows)


def _takes(one: PlannedWork | Planned | PlannedStage | JudgingPlan) -> tuple[str, str]:
    found = one.expected
    is_bare = found.gpu and found.cost_usd == 0  # whatever the GPU costs
    usd = NOTHING if is_bare else shown_dollars(found.usd)
    return usd, f"{shown_time(found.seconds)}{' GPU' if found.gpu and found.seconds else ''}"


def say_expected(console: Console, every: Sequence[tuple[str, Expected]]) -> None:
    """What the work of all takes together, and what that rests on."""
    unpriced = dict.fromkeys(who for who, one in every if one.usd is None)
    untimed = dict.fromkeys(who for who, one in every if one.seconds is None)
    usd = shown_dollars(Range.total(one.usd for _, one in every if one.usd))
    times = [(one.seconds, one.gpu) for _, one in every if one.seconds]
    seconds = shown_time(Range.total(one for one, _ in times))
    on_gpu = Range.total(one for one, gpu in times if gpu)
    own = f", of that {shown_time(on_gpu)} of your own GPU" if on_gpu.high else ""
    least = ["at least " if missing else "about " for missing in (unpriced, untimed)]
    say(console, f"in all {least[0]}{usd}; {least[1]}{seconds} one after the other{own}")
    if unpriced:
        names = ", ".join(unpriced)
        say(console, f"no price is known of {names}: give a system `price`, an engine", "yellow")
        say(console, "usd_per_million_prompt_tokens and usd_per_million_completion_tokens")
    if untimed:
        say(console, f"how long {', '.join(untimed)} will take is not known", "yellow")
    for basis in dict.fromkeys(one.basis for _, one in every if one.basis):
        names = ", ".join(dict.fromkeys(who for who, one in every if one.basis == basis))
        say(console, f"{names}: {basis}", "dim")


def show_judged(console: Console, judged: JudgingResult) -> None:
    for reason, count in sorted(judged.left_out.items()):
        say(console, f"{count:,} left out, {reason}: {reason.meaning}", "yellow")
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
        show_ways(console, judged.ways)
        console.print("nothing was asked: leave out --dry-run to ask")
        return
    console.print(answer_table(judged.answered))
    for one in judged.answered:
        for outcome, count in sorted(one.outcomes.items()):
            if outcome != Outcome.OK:
                meaning = MEANINGS.get(outcome, "")
                line = f"{one.who} {one.rubric}: {count:,} {outcome}: {meaning}"
                say(console, line, "dim" if outcome == Unrated.NOT_NEEDED else "yellow")
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
    if judged.cost_usd is not None:
        say(console, f"cost, as far as it is known: ${judged.cost_usd:.2f}")
    say(console, f"{judged.path.stem}: {judged.path}")


def show_ways(console: Console, ways: Sequence[JudgingPlan]) -> None:
    if not ways:
        return
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
    for reason, count in sorted(imported.left_out.items()):
        say(console, f"{count:,} left out, {reason}: {reason.meaning}", "yellow")
    for kind in ("judges", "systems"):
        names = ", ".join(plain(name) for name in getattr(imported, kind))
        say(console, f"{kind}: {names or NOTHING}")
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
    return plain_table(*heads, left=ABOUT, rows=rows)


VERDICTS = {"non_inferior": "green", "worse": "red", "undecided": "yellow"}
PASSED: Mapping[bool | None, tuple[str, str]] = {
    True: ("passed", "green"),
    False: ("failed", "red"),
    None: ("nobody can say", "yellow"),
}


def show_audited(console: Console, audited: Audited) -> None:
    for judge, audit in audited.judges.items():
        mean = rounded(audit["mean_of_real_outputs"], 2)
        say(console, f"{judge}, by {audit['rubric']}: real outputs {mean}", "bold")
        console.print(check_table(audit))
        noise, use = audit["noise"], audit["scale_use"]
        alike = f"{percent(noise['equal'])} of {noise['samples']} rated alike"
        deviation = rounded(noise["deviation"], 2)
        say(console, f"asked twice: {alike}, standard deviation {deviation}")
        if audit.get("drift"):
            say(console, f"asked again: {drift_said(audit['drift'])}")
        if use is not None:
            say(
                console,
                f"its {use['ratings']:,} ratings: {percent(use['at_ceiling'])} at the top of the "
                f"scale, {rounded(use['entropy'], 2)} bits, {percent(use['ties'])} of "
                f"{use['pairs']:,} pairs tied",
            )
        console.print()
    show_judged(console, audited.asked)


def check_table(audit: Mapping[str, Any]) -> Table:
    rows: Rows = []
    for name, check in sorted(audit["checks"].items()):
        word, style = PASSED[check["passed"]]
        reason = MEANINGS.get(check["reason"])
        rated = (str(check["rated"]), rounded(check["mean"], 2))
        shares = (percent(check["share"]), percent(check["rule"]["share"]))
        rows.append((name, *rated, *shares, Text(f"{word}: {reason}" if reason else word, style)))
    heads = ("shown", "rated", "mean", "as it should", "needed", "")
    return plain_table(*heads, left=[""], rows=rows)


def show_compared(console: Console, done: Compared) -> None:
    title, said, heads, cells, notes = compared_parts(done)
    show_table(console, title, plain_table(*heads, rows=[cells]), notes)
    say(console, said, VERDICTS[done.found.verdict])


def compared_markdown(done: Compared) -> str:
    title, said, heads, cells, notes = compared_parts(done)
    rows = markdown_table(heads, [map(escaped, cells)], len(heads))
    parts = f"### {escaped(title)}", f"**{escaped(said)}**", rows, *map(escaped, notes)
    return disarmed("\n\n".join(parts) + "\n")


def compared_parts(done: Compared) -> tuple[str, str, list[str], list[str], list[str]]:
    """What both show of a comparison: title, verdict, heads, cells, notes."""
    found = done.found
    sure = f"{100 * found.definition['confidence']:g} %"
    heads = ["prompts", "better", "tied", "worse", "difference", f"{sure} each end", "margin"]
    cells = [f"{one:,}" for one in (found.n, found.wins, found.ties, found.losses)]
    cells += [NOTHING if found.difference is None else f"{found.difference:+.4g}"]
    cells += [" to ".join(f"{end:+.4g}" for end in found.interval or ()) or NOTHING]
    there = f"{found.base_n:,} of {done.base}, {found.new_n:,} of {done.new}"
    notes = [f"of {counted(done.prompts, 'prompt')} there are {there}"]
    if done.judges:
        notes.append(f"judged by {', '.join(judge_names(done.judges, done.failed))}")
    if found.reason:
        notes.append(found.reason.meaning)
    for table, counts in done.left_out.items():
        for reason, count in counts.items():
            notes.append(f"{count:,} rows of {table} do not count: {reason.meaning}")
    title = f"{done.metric} of {done.new} against {done.base}"
    return title, verdict_of(done, sure), heads, [*cells, f"{found.margin:g}"], notes


def verdict_of(done: Compared, sure: str) -> str:
    found = done.found
    if found.verdict != "undecided":
        passed = found.verdict == "non_inferior"
        said = "non-inferior: {} is at most {:g}" if passed else "worse: {} is more than {:g}"
        return f"{said.format(done.new, found.margin)} worse than {done.base} ({sure})"
    if found.needed == 0:
        return "undecided: there are prompts enough, and the difference lies near the margin"
    count = "more" if found.needed is None else f"about {found.needed:,} more"
    return f"undecided: {count} prompts are needed, if the two are equally good"


def show_draw(console: Console, ranks: Ranks) -> None:
    draw = ranks.ranker.draw
    splits = Counter(sample.task.split for sample in draw.samples)
    parts = ", ".join(
        f"{count} of {split}{ranks.basis.get(split, '')}" for split, count in splits.items()
    )
    say(console, f"to rank: {parts} (seed {draw.seed})")
    for reason, count in draw.left_out.items():
        say(console, f"not ranked: {count} {reason}: {reason.meaning}", "dim")


def show_address(console: Console, address: str) -> None:
    say(console, f"\nopen {address} in a browser; Ctrl-C ends it, nothing is lost")


def show_written(console: Console, ranks: Ranks) -> None:
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


def show_analysis(console: Console, done: Analyzed) -> None:
    for table in analysis_tables(done.analysis):
        console.print(table)
        console.print()
    for name, why in done.analysis.not_fetched.items():
        say(console, f"not fetched: {name}: {plain(why, LONGEST_REASON)}", "yellow")
    for name, part in done.analysis.parts.items():
        if part.reason is not None:
            line = f"no {name}, {part.reason}: {plain(part.detail, LONGEST_REASON)}"
            say(console, line, "yellow")
    tasks = done.analysis.tasks.found
    if tasks and tasks.no_references:
        line = f"no tasks of references: {plain(tasks.no_references, LONGEST_REASON)}"
        say(console, line, "yellow")
    named = done.analysis.open_tasks.found
    for one in named.compared if named else ():
        if one.untold:
            untold = plain(one.untold, LONGEST_REASON)
            say(console, f"no new tasks beside {plain(one.name, LONGEST)}: {untold}", "yellow")
    say(console, f"analysis: {done.path}")


def analysis_tables(analysis: Analysis) -> Iterator[Table]:
    bigrams = {one.name: one for one in analysis.diversity.found or ()}
    lengths = {one.name: one.words for one in analysis.lengths.found or ()}
    at = next((one.at for one in bigrams.values()), 0)
    rows: Rows = []
    for one in analysis.sets:
        begins, length = bigrams.get(one.name), lengths.get(one.name)
        rows.append(
            (
                plain(one.name, LONGEST),
                f"{one.prompts:,}",
                f"{length.median:g}" if length else NOTHING,
                f"{begins.unique:,}" if begins else NOTHING,
                _estimate(begins.expected if begins else None, 0),
                _estimate(begins.ratio if begins else None, 2),
            )
        )
    title = f"{analysis.name}: prompts, and the sets they are compared with"
    heads = ("set", "prompts", "words", "first bigrams", f"of {at:,}", "ratio")
    yield plain_table(*heads, title=title, rows=rows)
    if perplexities := analysis.perplexity.found:
        rows = [
            (
                *(plain(one.name, LONGEST), f"{one.prompts:,}", f"{one.tokens:,}"),
                *(_estimate(level, 1) for level in (one.token_level, one.prompt_level)),
                _estimate(one.ratio, 2),
            )
            for one in perplexities
        ]
        heads = ("set", "prompts", "tokens", "of tokens", "of prompts", "ratio")
        yield plain_table(*heads, title="perplexity, lower is more natural", rows=rows)
    if tasks := analysis.tasks.found:
        rows = [
            (*_counted(one.task, one.samples, f"{one.share:.0%}"), _names(one.absent_from))
            for one in tasks.counts
        ]
        kinds = ("task", "samples", "share", "absent from")
        yield plain_table(*kinds, title="tasks", left=kinds[-1:], rows=rows)
    if named := analysis.open_tasks.found:
        rows = [
            (
                *_counted(one.phrase, one.samples, f"{one.share:.0%}"),
                NOTHING if (before := named.share_before(one)) is None else f"{before:.0%}",
                str(one.first_seen or NOTHING),
                _names(one.new_to),
            )
            for one in named.groups[:MOST_ROWS]
        ]
        heads = ("task in free words", "samples", "share", "before", "first seen", "new to")
        title = f"what people ask for: {len(named.groups):,} tasks of {named.phrased:,} samples"
        yield plain_table(*heads, title=title, left=heads[-1:], rows=rows)
    if failures := analysis.failures.found:
        rows = [
            (*_counted(one.keyword, one.comments, f"{one.samples:,}"), _names([*one.spellings][1:]))
            for one in failures.keywords[:MOST_ROWS]
        ]
        kinds = ("keyword", "comments", "samples", "spellings")
        yield plain_table(*kinds, title="what people say failed", left=kinds[-1:], rows=rows)


def _counted(name: str, count: int, more: str) -> tuple[str, str, str]:
    return plain(name, LONGEST), f"{count:,}", more


def _names(names: Iterable[str]) -> str:
    return ", ".join(plain(one, LONGEST) for one in names) or NOTHING


def _estimate(estimate: Estimate | None, digits: int) -> str:
    if estimate is None or estimate.value is None:
        return NOTHING
    value = f"{estimate.value:,.{digits}f}"
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} [{estimate.low:,.{digits}f}, {estimate.high:,.{digits}f}]"
