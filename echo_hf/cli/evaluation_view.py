"""Terminal output of systems, judges, audits, rankings, reports and analyses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from echo_hf._infra.bootstrap import Unscored
from echo_hf._infra.console import SEE_MORE, PlainConsole, make_table, say, say_under, show_table
from echo_hf._infra.text import (
    clean,
    escape_markdown,
    format_interval,
    format_rounded,
    name_stand_in,
    percent,
    pluralize,
    strip_controls,
)
from echo_hf._infra.text import format_table as markdown_table
from echo_hf.engines.base import Failed
from echo_hf.engines.planner import (
    UNKNOWN,
    ZERO,
    ExpectedCost,
    Range,
    add_expected,
    format_dollars,
    format_seconds,
)
from echo_hf.errors import describe_install
from echo_hf.judging.audit import AuditResult, NotAudited
from echo_hf.judging.board import judge_names
from echo_hf.judging.hostile import describe_faults, describe_left_out, describe_tricks
from echo_hf.judging.judge import PLAN_NOTES
from echo_hf.judging.session import JudgeRows, JudgingPlan, JudgingResult
from echo_hf.judging.trust import describe_drift
from echo_hf.reasons import Reason, count_unusable
from echo_hf.scores.rating_table import Unrated
from echo_hf.systems.generate import GenerationSummary, SystemListing
from echo_hf.tables import Outcome

if TYPE_CHECKING:
    from echo_hf.apps.rank import RankingApp
    from echo_hf.builder.update import PlannedStage
    from echo_hf.judging.gate import GateResult
    from echo_hf.judging.imports import ImportResult
    from echo_hf.judging.validity import ComplaintMeasures
    from echo_hf.report.analysis.analyze import AnalysisResult
    from echo_hf.report.analysis.result import Analysis, IntervalFigure
    from echo_hf.report.evaluation import PlannedWork
    from echo_hf.report.report import Report

NOTHING = "-"
OPTIONAL_HEADINGS, EMPTY_CELLS = ("others", "from cache", "$"), ("0", "0 %", NOTHING)
LEFT_ALIGNED, ESTIMATES = ("about",), ("price", "time")
BUDGET_SPENT = "the budget is spent: a larger one, and the same command, resume from here"
MEANINGS = {
    str(reason): reason.meaning for kind in (Failed, Unrated, NotAudited) for reason in kind
}
MAX_REASON = 300
MIN_SECONDS, MIN_DOLLARS = 0.05, 0.005  # seconds and dollars that are not shown as none
MAX_FOUND = 4
PRICE_HINT = "give `price` (a system) or usd_per_million_*_tokens (an engine)"
TableRows = list[tuple[str | Text, ...]]
VERDICTS = {"non_inferior": "green", "worse": "red", "undecided": "yellow"}
CHECK_VERDICTS: Mapping[bool | None, tuple[str, str]] = {
    True: ("passed", "green"),
    False: ("failed", "red"),
    None: ("nobody can say", "yellow"),
}


def make_system_table(systems: Sequence[SystemListing]) -> Table:
    rows: TableRows = []
    for system in systems:
        config = system.config
        price = UNKNOWN if system.image.cost_usd is None else f"{system.image.cost_usd:.3f}"
        missing = [f"[{system.extra}]"] if system.extra else []
        missing += [] if system.known else [f"no adapter {config.adapter!r} is installed"]
        missing += [name for name, is_set in system.keys.items() if not is_set]
        missing += [f"folder {system.no_folder!r}"] if system.no_folder else []
        missing_cell = Text(", ".join(missing), "yellow") if missing else Text("nothing", "green")
        descriptions = (config.status, config.stands_for or NOTHING, config.adapter)
        price = "a GPU" if system.image.gpu else price
        rows.append((Text(config.name, "bold"), *descriptions, price, missing_cell))
    words = ("status", "stands for", "adapter")
    heads = ("system", *words, "$ an image", "missing")
    return make_table(*heads, left=(*words, "missing"), rows=rows)


def list_remedies(systems: Sequence[SystemListing]) -> Iterator[str]:
    """List how to get what is missing to run systems, then how each system treats a seed."""
    extras = sorted({system.extra for system in systems if system.extra})
    if extras:
        yield f"[{extras[0]}]: {describe_install(extras[0])}, and so on"
    if any(not is_set for system in systems for is_set in system.keys.values()):
        yield "a name in capitals: set this environment variable to your key"
    if any(system.no_folder for system in systems):
        yield "a folder: the file of the system says what belongs there"
    for system in systems:
        if system.determinism is not None:
            yield f"{system.config.name}, with the same seed: {system.determinism}"


def make_outcome_table(generated: GenerationSummary) -> Table:
    outcomes = generated.outcomes
    occurring = [
        outcome for outcome in Outcome if any(counts.get(outcome) for counts in outcomes.values())
    ]
    rows: TableRows = [
        (Text(system, "bold"), *(f"{counts.get(outcome, 0):,}" for outcome in occurring))
        for system, counts in outcomes.items()
    ]
    return make_table("system", *occurring, rows=rows)


def show_evaluation_plan(console: Console, plan: Sequence[PlannedWork]) -> None:
    rows: TableRows = [
        (
            Text(work.who, "bold"),
            work.about,
            f"{'up to ' if work.at_most else ''}{work.todo:,}",
            f"{work.stored:,}",
            *_estimate(work),
        )
        for work in plan
        if work.todo
    ]
    heads = ("", "about", "to ask", "stored", *ESTIMATES)
    if rows:
        console.print(make_table(*heads, left=LEFT_ALIGNED, rows=rows))
    else:
        stored = sum(work.stored for work in plan)
        say(console, f"nothing is left to ask: {stored:,} outputs and answers are stored", "dim")
    places = (name_stand_in(work.who, work.in_place_of) for work in plan if work.in_place_of)
    for place in dict.fromkeys(places):
        say(console, place, "dim")
    show_expected(console, [(work.who, work.expected) for work in plan])


def show_stages(console: Console, plan: Sequence[PlannedStage]) -> None:
    rows: TableRows = []
    for stage in plan:
        todo = (
            f"{'' if stage.counted else 'about '}{stage.todo:,}" if stage.todo is not None else "?"
        )
        counts = (stage.stored, stage.prompt_tokens, stage.answer_tokens)
        figures = ("?" if count is None else f"{count:,}" for count in counts)
        rows.append((Text(stage.stage, "bold"), todo, *figures, *_estimate(stage)))
    heads = ("stage", "to ask", "stored", "prompt tokens", "answer tokens", *ESTIMATES)
    console.print(make_table(*heads, rows=rows))
    show_expected(console, [(stage.stage, stage.expected) for stage in plan], other_way=False)
    _show_stage_ways(console, plan)


def _show_stage_ways(console: Console, plan: Sequence[PlannedStage]) -> None:
    """Show on one line what all stages cost in each way that they could be asked."""
    size = max(stage.posts_per_request for stage in plan)
    hours = max((stage.expected.batch_hours or 0 for stage in plan), default=0)
    wait = f" ({_describe_wait(hours)} a batch)" if hours else ""
    words = {
        "plain": "one by one",
        "packed": f"{size} posts a request",
        "batched": f"in batches{wait}",
        "both": "both",
    }
    totals = {way: Range.total(filter(None, (s.ways.get(way) for s in plan))) for way in words}
    if totals["plain"].likely >= MIN_DOLLARS:
        amounts = (f"${usd.likely:,.2f} {words[way]}" for way, usd in totals.items())
        unpriced = [stage.stage for stage in plan if stage.ways.get("plain") is None]
        rest = f"; without {', '.join(unpriced)}, of unknown price" if unpriced else ""
        say(console, f"by way of asking: {', '.join(amounts)}{rest}")


def _estimate(work: Any) -> tuple[str, str]:
    expected: ExpectedCost = work.expected
    usd = NOTHING if expected.cost_usd == 0 else format_dollars(expected.usd)
    if expected.is_batched:
        return usd, _describe_wait(expected.batch_hours)
    if expected.seconds is not None and expected.seconds.likely < MIN_SECONDS:
        return usd, NOTHING
    return (
        usd,
        f"{format_seconds(expected.seconds)}{' GPU' if expected.gpu and expected.seconds else ''}",
    )


def _describe_wait(hours: float | None) -> str:
    return f"up to {hours:g} h" if hours else "unknown, in batches"


def _show_other_way(console: Console, expected: Sequence[ExpectedCost]) -> None:
    """Show the price of the way that the config does not take, where one is known."""
    total = ExpectedCost(ZERO, ZERO)
    for cost in expected:
        total = add_expected(total, cost) if cost.usd else total
    if total.usd is None or total.batch_usd is None or total.usd.likely < MIN_DOLLARS:
        return
    wait = f"one batch after the other {_describe_wait(total.batch_hours)}"
    if total.is_batched:
        say(console, f"{wait}; the same one by one about {format_dollars(total.plain_usd)}")
    else:
        usd = format_dollars(total.batch_usd)
        say(console, f"the same with `batch: true` about {usd}; {wait}")


def show_expected(
    console: Console, estimates: Sequence[tuple[str, ExpectedCost]], *, other_way: bool = True
) -> None:
    """Show the price and time of all work together, and where the estimates come from."""
    unpriced = dict.fromkeys(name for name, estimate in estimates if estimate.usd is None)
    is_untimed = any(estimate.seconds is None for _, estimate in estimates)
    dollars = Range.total(estimate.usd for _, estimate in estimates if estimate.usd)
    times = [(estimate.seconds, estimate.gpu) for _, estimate in estimates if estimate.seconds]
    time = Range.total(seconds for seconds, _ in times)
    usd, seconds = format_dollars(dollars), format_seconds(time)
    gpu_time = Range.total(seconds for seconds, gpu in times if gpu)
    gpu_part = f", of that {format_seconds(gpu_time)} of your own GPU" if gpu_time.high else ""
    parts = [
        f"{'at least' if unknown else 'about'} {amount}"
        for amount, unknown, is_something in (
            (usd, unpriced, dollars.likely >= MIN_DOLLARS),
            (f"{seconds} one after the other{gpu_part}", is_untimed, time.likely >= MIN_SECONDS),
        )
        if is_something
    ]
    if parts:
        say(console, f"in all {'; '.join(parts)}")
    if other_way:
        _show_other_way(console, [estimate for _, estimate in estimates])
    if unpriced:
        say_under(console, "no price", f"known for {', '.join(unpriced)}: {PRICE_HINT}")
    priced = [(name, estimate) for name, estimate in estimates if estimate.usd or estimate.seconds]
    for basis in dict.fromkeys(estimate.basis for _, estimate in priced if estimate.basis):
        names = ", ".join(
            dict.fromkeys(name for name, estimate in priced if estimate.basis == basis)
        )
        say(console, f"{names}: {basis}", "dim")


def _show_left_out(console: Console, left_out: Mapping[Reason, int]) -> None:
    for reason, count in sorted(left_out.items()):
        say(console, f"{count:,} left out, {reason}: {reason.meaning}", "yellow")


def show_judging(console: Console, judged: JudgingResult) -> None:
    _show_left_out(console, judged.left_out)
    if judged.path is None:
        rows: TableRows = []
        for planned in judged.plans:
            plan = planned.plan
            counts = (plan.calls, plan.stored, plan.prompt_tokens, plan.images)
            figures = (*(f"{count:,}" for count in counts), *_estimate(planned))
            rows.append((Text(planned.judge, "bold"), planned.about, *figures))
        heads = ("judge", "about", "calls", "stored", "prompt tokens", "pictures", *ESTIMATES)
        console.print(make_table(*heads, left=LEFT_ALIGNED, rows=rows))
        show_expected(console, [(planned.judge, planned.expected) for planned in judged.plans])
        if judged.ways:
            show_ways(console, judged.ways)
        console.print("nothing was asked: leave out --dry-run to ask")
        return
    console.print(make_answer_table(judged.answered))
    for answered in judged.answered:
        for outcome, count in sorted(answered.outcomes.items()):
            if outcome != Outcome.OK:
                meaning = f"{count:,} {outcome}: {MEANINGS.get(outcome, '')}"
                line = f"{answered.judge} {answered.about}: {meaning}"
                say(console, line, "dim" if outcome == Unrated.NOT_NEEDED else "yellow")
        if unusable := count_unusable(answered.outcomes):
            hint = f"{pluralize(unusable, 'answer')} cannot be used: --again asks anew"
            say(console, f"{answered.judge} {answered.about}: {hint}", "yellow")
    for split, decision in judged.decisions.items():
        say(console, f"{split}: {decision.summary}")
        if decision.undecided:
            pairs = "; ".join(" and ".join(map(clean, pair)) for pair in decision.undecided)
            say(console, f"not decided: {pairs}", "dim")
    if judged.saved:
        calls = sum(planned.plan.calls for planned in judged.saved)
        usd = Range.total(planned.expected.usd for planned in judged.saved if planned.expected.usd)
        priced = f", about {format_dollars(usd)}" if usd.likely else ""
        say(console, f"saved: {calls:,} calls{priced}")
    if judged.spent:
        say(console, BUDGET_SPENT, "yellow")
    show_cost(
        console,
        judged.cost_usd,
        (answered.judge for answered in judged.answered if answered.unpriced),
    )
    say(console, f"{judged.path.stem}: {judged.path}")


def show_cost(console: Console, cost_usd: float | None, unpriced: Iterable[str]) -> None:
    """Print what calls have cost and whose price is unknown; nothing where nothing was paid."""
    if cost_usd:
        say(console, f"cost: ${cost_usd:,.2f}")
    if names := ", ".join(dict.fromkeys(unpriced)):
        say_under(console, "no price", f"known for {names}: {PRICE_HINT}")


def show_ways(console: Console, ways: Sequence[JudgingPlan]) -> None:
    rows: TableRows = []
    for way in ways:
        low, calls, high = (f"{count:,.0f}" for count in way.calls)
        widths = (format_rounded(half) for half in way.half_width.values())
        cells = Text(way.name, "bold"), calls if low == high else f"{low} to {high}"
        rows.append((*cells, *widths, *_estimate(way)))
    heads = ("", "calls", *(f"± {split}" for split in ways[0].half_width), *ESTIMATES)
    title = "what is still to be asked, one way or another"
    show_table(console, title, make_table(*heads, rows=rows), PLAN_NOTES)


def show_import(console: Console, imported: ImportResult) -> None:
    _show_left_out(console, imported.left_out)
    for kind, names in (("judges", imported.judges), ("systems", imported.systems)):
        say(console, f"{kind}: {', '.join(map(clean, names)) or NOTHING}")
    for name, count in imported.rows.items():
        place = imported.paths.get(name, "nothing was written: leave out --dry-run")
        say(console, f"{count:,} rows of {name} ({imported.format}): {place}")


def make_answer_table(answered: Sequence[JudgeRows]) -> Table:
    rows: TableRows = []
    for answers in answered:
        fill, usage = answers.fill, answers.fill.usage
        ok, spared = (answers.outcomes.get(name, 0) for name in (Outcome.OK, Unrated.NOT_NEEDED))
        others = sum(answers.outcomes.values()) - ok - spared
        counts = (ok, others, fill.calls, usage.prompt + usage.completion)
        cached = percent(usage.cached / usage.prompt) if usage.prompt else NOTHING
        figures = (*(f"{count:,}" for count in counts), cached, format_rounded(fill.cost_usd, 2))
        rows.append((Text(answers.judge, "bold"), answers.about, *figures))
    heads = ("judge", "about", "ok", "others", "calls", "tokens", "from cache", "$")
    columns = [
        column
        for column, head in enumerate(heads)
        if head not in OPTIONAL_HEADINGS or any(row[column] not in EMPTY_CELLS for row in rows)
    ]
    cells = ([row[column] for column in columns] for row in rows)
    return make_table(*(heads[column] for column in columns), left=LEFT_ALIGNED, rows=cells)


def show_audit(console: Console, audited: AuditResult) -> None:
    for judge, audit in audited.judges.items():
        mean = format_rounded(audit["mean_of_real_outputs"], 2)
        say(console, f"{judge}, by {audit['rubric']}: mean of real outputs {mean}", "bold")
        console.print(make_check_table(audit))
        noise, use = audit["noise"], audit["scale_use"]
        alike = f"{percent(noise['equal'])} of {noise['samples']} rated alike"
        say(
            console,
            f"asked twice: {alike}, standard deviation {format_rounded(noise['deviation'], 2)}",
        )
        show_pictures(console, audit.get("pictures", {}))
        if audit.get("drift"):
            say(console, f"asked again: {describe_drift(audit['drift'])}")
        if use is not None:
            top = use["at_ceiling"]
            at_top = "" if top is None else f"{percent(top)} at the top of the scale, "
            say(
                console,
                f"its {use['ratings']:,} ratings: {at_top}"
                f"{format_rounded(use['entropy'], 2)} bits of entropy, "
                f"{percent(use['ties'])} of {use['pairs']:,} pairs tied",
            )
        console.print()
    for judge, reason in audited.not_audited.items():
        say(console, f"{judge} is not audited: {reason.meaning}", "yellow")
    if (words := audited.words) and words.missing:
        say(console, f"words in outputs were not read: {words.missing}", "yellow")
        say(console, "without it, let a judge rate by the rubric speaks_to_judge", "dim")
    elif words:
        say(console, f"words read in {words.read:,} of {pluralize(words.outputs, 'output')}")
    show_judging(console, audited.judging)


def show_pictures(console: Console, pictures: Mapping[str, Any]) -> None:
    """Print what hostile pictures did to a judge's ratings."""
    if tricks := pictures.get("tricks"):
        say(console, describe_tricks(tricks), "red" if tricks["raised_by"] else "")
    if faults := pictures.get("faults"):
        say(console, describe_faults(faults))
    if not getattr(console, "details", False):
        left_out = (names for part in pictures.values() for names in part["left_out"].values())
        if count := sum(sum(names.values()) for names in left_out):
            say(console, f"{count:,} of these pictures were not drawn: {SEE_MORE}", "dim")
        return
    for kind, part in pictures.items():
        rows: TableRows = []
        for name, figure in part["pictures"].items():
            ends = format_interval(figure["interval"], 2)
            seen = "" if figure["not_seen"] is None else str(figure["not_seen"])
            verdict = Text("raises" if figure["raises"] else "", "red")
            change = format_rounded(figure["change"], 2)
            rows.append((name, str(figure["rated"]), change, ends, seen, verdict))
        heads = (kind, "rated", "change", "95 %", "not seen", "")
        console.print(make_table(*heads, left=[kind], rows=rows))
        for line in describe_left_out(part):
            say(console, line, "dim")


def make_check_table(audit: Mapping[str, Any]) -> Table:
    rows: TableRows = []
    for name, check in sorted(audit["checks"].items()):
        word, style = CHECK_VERDICTS[check["passed"]]
        reason = MEANINGS.get(check["reason"])
        figures = (str(check["rated"]), format_rounded(check["mean"], 2), percent(check["share"]))
        verdict = Text(f"{word}: {reason}" if reason else word, style)
        rows.append((name, *figures, percent(check["rule"]["share"]), verdict))
    heads = ("shown", "rated", "mean", "as it should", "needed", "")
    return make_table(*heads, left=[""], rows=rows)


def show_comparison(console: Console, done: GateResult) -> None:
    title, verdict, cells, notes = compared_parts(done)
    show_table(console, title, make_table(*cells, rows=[cells.values()]), notes)
    say(console, verdict, VERDICTS[done.test.verdict])


def format_comparison_markdown(done: GateResult) -> str:
    title, verdict, cells, notes = compared_parts(done)
    rows = markdown_table(cells, [map(escape_markdown, cells.values())], len(cells))
    parts = (
        f"### {escape_markdown(title)}",
        f"**{escape_markdown(verdict)}**",
        rows,
        *map(escape_markdown, notes),
    )
    return strip_controls("\n\n".join(parts) + "\n")


def compared_parts(done: GateResult) -> tuple[str, str, dict[str, str], list[str]]:
    """Return the title, verdict, cells by heading and notes of a comparison."""
    gate = done.test
    level = f"{100 * gate.definition['confidence']:g} %"
    cells = {
        "prompts": f"{gate.n:,}",
        "better": f"{gate.wins:,}",
        "tied": f"{gate.ties:,}",
        "worse": f"{gate.losses:,}",
        "difference": NOTHING if gate.difference is None else f"{gate.difference:+.4g}",
        f"{level} each end": " to ".join(f"{end:+.4g}" for end in gate.interval or ()) or NOTHING,
        "margin": f"{gate.margin:g}",
    }
    present = f"{gate.base_n:,} of {done.base}, {gate.new_n:,} of {done.new}"
    is_whole = gate.base_n == gate.new_n == done.prompts
    notes = [] if is_whole else [f"of {pluralize(done.prompts, 'prompt')} there are {present}"]
    if done.judges:
        notes.append(f"judged by {', '.join(judge_names(done.judges, done.failed))}")
    if gate.reason:
        notes.append(gate.reason.meaning)
    for table, counts in done.left_out.items():
        for reason, count in counts.items():
            notes.append(f"{count:,} rows of {table} do not count: {reason.meaning}")
    return (
        f"{done.metric} of {done.new} against {done.base}",
        format_verdict(done, level),
        cells,
        notes,
    )


def format_verdict(done: GateResult, level: str) -> str:
    gate = done.test
    if gate.verdict != "undecided":
        passed = gate.verdict == "non_inferior"
        template = "non-inferior: {} is at most {:g}" if passed else "worse: {} is more than {:g}"
        return f"{template.format(done.new, gate.margin)} worse than {done.base} ({level})"
    if gate.reason is Unscored.LOW_COVERAGE:
        return (
            f"undecided: {percent(gate.coverage)} of the prompts count for both, fewer than "
            "95 %: have the rest generated and judged"
        )
    if gate.needed == 0:
        return "undecided: there are prompts enough, and the difference lies near the margin"
    count = "more" if gate.needed is None else f"about {gate.needed:,} more"
    return f"undecided: {count} prompts are needed, if the two are equally good"


def show_draw(console: Console, ranker: RankingApp) -> None:
    draw = ranker.draw
    splits = Counter(sample.task.split for sample in draw.samples)
    parts = (f"{count} of {name}{ranker.basis.get(name, '')}" for name, count in splits.items())
    say(console, f"to rank: {', '.join(parts)} (seed {draw.seed})")
    for reason, count in draw.left_out.items():
        say(console, f"not ranked: {count} {reason}: {reason.meaning}", "dim")


def show_ranking_files(console: Console, ranker: RankingApp) -> None:
    written = ranker.write()
    if not written.rankings and not written.kept:
        return
    others = f", beside {written.kept} rows from elsewhere" if written.kept else ""
    say(console, f"\n{pluralize(written.rankings, 'ranking')} in {written.path}{others}")
    for reason, count in written.left_out.items():
        say(console, f"{count} ranks are not there, {reason}: {reason.meaning}", "dim")
    say(console, "next: echo-hf score corrects win rates by them, agree compares judges", "dim")


def show_report(console: Console, written: Report) -> None:
    for sentence in written.sentences:
        say(console, sentence)
    for reason, images in sorted(Counter(written.problems.values()).items()):
        say(console, f"{pluralize(images, 'image')} cannot be shown: {reason}", "yellow")
    contents = f"{pluralize(written.samples, 'sample')}, {pluralize(written.images, 'image')}"
    say(console, f"report: {written.path} ({contents})")


def show_analysis(console: PlainConsole, done: AnalysisResult) -> None:
    """Show what people complain of and ask for, and what could not be computed."""
    analysis = done.analysis
    say(console, f"{analysis.name}: {pluralize(analysis.samples, 'sample')}", "bold")
    for name, text in list_findings(analysis):
        say_under(console, f"{name:<16}", text)
    for name, why in analysis.not_fetched.items():
        say_under(console, f"not fetched: {clean(name)}:", clean(why, MAX_REASON), "yellow")
    lacks: dict[str, str | None] = {
        f"no {name}, {part.reason}": part.detail
        for name, part in analysis.parts.items()
        if part.reason
    }
    if analysis.tasks.found and analysis.tasks.found.no_references:
        lacks["no tasks of references"] = analysis.tasks.found.no_references
    for one in analysis.open_tasks.found.compared if analysis.open_tasks.found else ():
        if one.untold:
            lacks[f"no new tasks beside {clean(one.name)}"] = one.untold
    if console.details:
        if analysis.measures.found and (rows := list_measures(analysis.measures.found)):
            heads = ("complaint", "measure", "AUC", "95 %", "threads", "measures it")
            console.print(make_table(*heads, left=("measure", "measures it"), rows=rows))
        for measure in analysis.measures.found.measures if analysis.measures.found else ():
            if measure.missing:
                lacks[f"{measure.name} not held against complaints"] = measure.missing
        for what, detail in lacks.items():
            say_under(console, f"{what}:", clean(detail, MAX_REASON), "dim")
    elif lacks:
        say(console, f"{pluralize(len(lacks), 'part')} not computed: {SEE_MORE}", "dim")
    say(console, f"analysis: {done.path}; `echo-hf report` shows it")


def list_findings(analysis: Analysis) -> Iterator[tuple[str, str]]:
    """Yield the findings of an analysis that fit on a line, each with its name."""
    if failures := analysis.failures.found:
        names = (f"{term.keyword} {term.comments:,}" for term in failures.keywords[:MAX_FOUND])
        yield "failures named", ", ".join(map(clean, names)) or "none"
    if held := analysis.measures.found:
        rows = list_measures(held)
        names = (
            f"{measure} for {keyword} {auc}"
            for keyword, measure, auc, *_, verdict in rows
            if verdict == "yes"
        )
        text = ", ".join(islice(names, MAX_FOUND)) or "none means what people complain about"
        few = f"too few threads complain, or praise, to tell: {len(held.groups):,} complaints"
        yield "measures (AUC)", text if rows else few
    if tasks := analysis.tasks.found:
        task_shares = (f"{task.task} {percent(task.share)}" for task in tasks.counts)
        yield "tasks", ", ".join(islice(map(clean, task_shares), MAX_FOUND))
    if phrased := analysis.open_tasks.found:
        phrases = (f"{group.phrase} {group.samples:,}" for group in phrased.groups[:MAX_FOUND])
        yield "in own words", ", ".join(map(clean, phrases)) or "none"
    for spoken in (analysis.languages.found or ())[:1]:
        counts = Counter(spoken.prompts).most_common(MAX_FOUND)
        yield "languages", ", ".join(f"{clean(name)} {count:,}" for name, count in counts)
    for curve in analysis.diversity.found or ():
        beside = "" if curve.ratio is None else f", the benchmark has {_ratio(curve.ratio)} as many"
        expected = format_rounded(curve.expected.value, 0)
        text = f"{expected} different ones in {curve.at:,} prompts of {clean(curve.name)}{beside}"
        yield "first bigrams", text
    for alike in (analysis.near_duplicates.found or ())[:1]:
        text = f"{alike.in_clusters:,} of {alike.prompts:,} prompts, in {alike.clusters:,} groups"
        yield "near-duplicates", text
    if since := analysis.since.found:
        movers = (f"{mover.name} {100 * mover.change:+.1f} points" for mover in since.tasks.moved)
        text = ", ".join(islice(map(clean, movers), MAX_FOUND)) or "nothing"
        yield f"since {clean(since.name)}", text


def list_measures(held: ComplaintMeasures) -> list[list[str]]:
    """Return a row for each complaint and measure, the surest first."""
    rows = []
    for group in held.groups:
        for cell in sorted(group.measures, key=lambda cell: -(cell.low or 0)):
            ends = NOTHING if cell.low is None else f"{cell.low:.2f}-{cell.high:.2f}"
            threads = f"{cell.complaint_threads:,} and {cell.praise_threads:,}"
            auc = NOTHING if cell.auc is None else f"{cell.auc:.2f}"
            names = clean(group.keyword), clean(cell.measure)
            rows.append([*names, auc, ends, threads, cell.verdict])
    return rows


def _ratio(ratio: IntervalFigure) -> str:
    return NOTHING if ratio.value is None else f"{ratio.value:.2f} times"
