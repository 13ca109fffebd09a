"""Terminal output of the verbs that build and release, and the check of an engine as JSON."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from echo_hf._infra.console import SEE_MORE, make_table, say, say_under
from echo_hf._infra.text import clean, percent, pluralize
from echo_hf.builder.refresh import RefreshEnd
from echo_hf.cli.progress import MAX_REMARK_CHARACTERS, TerminalProgress
from echo_hf.engines.base import Failed
from echo_hf.samples.sample import Doubt

if TYPE_CHECKING:
    from huggingface_hub import HfApi

    from echo_hf.apps.label import LabelApp
    from echo_hf.builder.gold.boxes import BoxesCheck
    from echo_hf.builder.gold.check import CheckResult
    from echo_hf.builder.refresh import PlatformRefresh, RefreshResult
    from echo_hf.builder.review import OpenReviews
    from echo_hf.builder.search_yield import SavedYields, SearchYield
    from echo_hf.builder.takedown import Removal
    from echo_hf.builder.update import StageDifference
    from echo_hf.collect.crawl import PlannedQuery
    from echo_hf.collect.crawl_ledger import CrawlStats
    from echo_hf.config.collection import Search
    from echo_hf.config.paper import PaperDifference
    from echo_hf.hub.check_changes import CheckChange
    from echo_hf.hub.diff import ReleaseDiff, StageChange
    from echo_hf.hub.publish import PublishPlan
    from echo_hf.pipeline.result import StageStats

PLAN_HEADINGS = ("queries", "done", "posts", "requests", "cost")
YIELD_HEADINGS = ("posts", "scored", "on topic", "share", "95 %")
NOTHING = "-"
MAX_TERMS = 40
MAX_TERM_CHARACTERS = 24
MAX_URLS = 10
LOW_YIELD = 0.1  # samples of posts: what rules read of posts that people write as they like
ENGINE_HINT = "names one: `echo-hf engines`"
MAX_IDS = 5
MAX_CHECKS = 5
MAX_MOVERS = 3
MOVERS_HEADING = "what moved most, in points"
COLORS = {"added": "green", "removed": "red", "changed": "yellow", "moved": "yellow"}
STILL_LOADABLE = (
    "anyone who knows a commit's hash can load it until the history of the repository is squashed "
    "(huggingface_hub's super_squash_history)"
)
MIN_RELIABLE_N = 30
MAX_ERROR_CHARACTERS = 200
MAX_PROMPT_CHARACTERS = 160
HALVES = {"held_out": "held-out half", "tune": "half for tuning", "all": "both halves"}
WILSON = (
    "Intervals are at 95 %: Wilson's for shares, which takes the items (n) as independent although "
    "those of one thread are alike"
)
BOOTSTRAP = "; for similarity a bootstrap over threads"
COVERAGE = (
    "Coverage is the share of what people wrote down that got an answer; what got none counts "
    "neither as right nor as wrong in %, and as wrong in strict % (- for a precision, where "
    "nothing can be missing)."
)


def show_build(
    watch: TerminalProgress,
    rows: Mapping[str, int],
    unlike: Sequence[PaperDifference],
    config: Path,
    command: str,
) -> None:
    """Show how posts became samples, what was left out or failed, and what people must review."""
    console, stats = watch.console, watch.stats
    if watch.details:
        for sentence in watch.list_headlines():
            say(console, sentence)
        if unlike:
            say(console, "unlike the paper", "bold")
        for difference in unlike:
            say(console, difference.what)
            console.print(Padding(Text(difference.why, "dim"), (0, 0, 0, 4)))
        return
    say(console, format_funnel(stats, rows), "bold")
    losses = watch.collect_losses()
    watch.show_losses([loss for loss in losses if loss.reason != Failed.NEEDS_MODEL])
    for stage in stats:
        if stage.stage == "splits" and (waiting := stage.tally.get("to_review", 0)):
            waiting_samples = f"{pluralize(waiting, 'sample')} with personal data to review"
            say(console, f"{waiting_samples}: echo-hf review {command}", "yellow")
        if doubts := sum(stage.noted.get(doubt, 0) for doubt in Doubt):
            say(console, f"{pluralize(doubts, 'doubt')} to review: echo-hf review {command}", "dim")
    posts = sum(stage.kept for stage in stats if stage.stage == "collect")
    if unanswered := ", ".join(str(loss) for loss in losses if loss.reason == Failed.NEEDS_MODEL):
        is_low = rows.get("analysis", 0) < LOW_YIELD * posts
        if is_low:
            say(console, "rules read few of these posts: most need a model", "yellow")
        message = f"questions on {unanswered}; `engines` in {config} {ENGINE_HINT}"
        say_under(console, "for a model:", message, "dim")
    if unlike:
        say(console, f"unlike the paper in {pluralize(len(unlike), 'choice')}: {SEE_MORE}", "dim")


def show_partial_build(watch: TerminalProgress, command: str) -> None:
    """Print a line for each stage of a build without a release, and the reasons of its rejects."""
    if not watch.details:  # with them, each was shown as it ended
        for stage in watch.stats:
            watch.show_line(stage)
        watch.show_losses(watch.collect_losses())
    say(watch.console, f"next: echo-hf build {command}")


def format_funnel(stats: Sequence[StageStats], rows: Mapping[str, int]) -> str:
    """Format how many posts, samples and tasks a build has, from its first stage to the release.

    Examples:
        >>> from echo_hf.pipeline.result import StageStats
        >>> stats = [StageStats("collect", 9, 8, makes="posts"), StageStats("splits", 3, 2)]
        >>> format_funnel(stats, {"image_to_image": 0, "text_to_image": 1, "analysis": 2})
        '8 posts → 2 samples → 1 text_to_image task'
    """
    from echo_hf.curate.splits import BENCHMARKS  # which loads the tables

    counts = [
        pluralize(stage.kept, stage.makes.removesuffix("s"))
        for stage in stats
        if stage.stage in ("collect", "threads")
    ]
    counts.append(pluralize(rows.get("analysis", 0), "sample"))
    tasks = {name: rows[name] for name in BENCHMARKS if rows.get(name)}
    parts = " and ".join(f"{count:,} {name}" for name, count in tasks.items())
    noun = "task" if sum(tasks.values()) == 1 else "tasks"
    return " → ".join([*counts, f"{parts} {noun}" if parts else "no task of the benchmark"])


def show_changes(console: Console, changes: Sequence[StageDifference]) -> None:
    """Show what changed since stages ran, once for all stages that it changed in."""
    stages: dict[tuple[str, str, str], list[StageDifference]] = {}
    for change in changes:
        stages.setdefault(change[1:4], []).append(change)
    by_stages: dict[tuple[str, ...], list[StageDifference]] = {}
    for alike in stages.values():
        by_stages.setdefault(tuple(change.stage for change in alike), []).append(alike[0])
    for names, fields in by_stages.items():
        if len(names) > 1:
            parts = ", ".join(change.field for change in fields)
            merged = fields[0]._replace(field=f"{parts} ({', '.join(names)})")
            say(console, merged.sentence, "bold")
        for change in fields:
            if len(names) == 1:
                say(console, change.sentence, "bold")
            for sign, text, style in (("-", change.before, "red"), ("+", change.now, "green")):
                if text:
                    say_under(console, f"  {sign}", text, style)


def show_plan(
    console: Console,
    queries: Sequence[PlannedQuery],
    searches: dict[str, Search],
    *,
    in_full: bool = False,
) -> None:
    for platform, search in searches.items():
        own = [query for query in queries if query.platform == platform]
        say(console, f"\n{platform}: {len(own):,} queries", "bold")
        groups: dict[object, list[PlannedQuery]] = {}
        for query in own:
            key = id(query) if in_full else (query.query.phase, query.query.question.about[0])
            groups.setdefault(key, []).append(query)
        text_columns = ("term", "from", "until", "window", "in")
        rows = (_plan_row(group, search, in_full=in_full) for group in groups.values())
        console.print(make_table("#", *text_columns, *PLAN_HEADINGS, left=text_columns, rows=rows))
        for line in _format_plan(own, search):
            say(console, line)


def _plan_row(group: Sequence[PlannedQuery], search: Search, *, in_full: bool) -> tuple[str, ...]:
    phase, question = group[0].query.phase, group[0].query.question
    options, window = search.phases[phase], question.window
    start = window.start.strftime("%Y-%m-%d") if window else NOTHING
    languages = (question.language or "all") if in_full else (" ".join(options.languages) or "all")
    times = (start, _format_end(group[-1]), options.window, languages)
    return str(phase + 1), question.about[0], *times, *_format_counts(group)


def _format_end(planned: PlannedQuery) -> str:
    window = planned.query.question.window
    if window is None:
        return NOTHING
    return window.end.strftime("%Y-%m-%d %H:%M" if planned.query.cut else "%Y-%m-%d")


def _format_counts(queries: Sequence[PlannedQuery]) -> tuple[str, ...]:
    posts = [query.posts for query in queries if query.posts is not None]
    costs = [query.usd for query in queries if query.usd is not None]
    most = [query.most_usd for query in queries if query.most_usd is not None]
    is_known, requests = len(posts) == len(queries), sum(query.requests for query in queries)
    return (
        f"{len(queries):,}",
        f"{sum(query.done for query in queries):,}",
        f"{sum(posts):,}" if is_known else NOTHING,
        f"{requests:,}" if is_known else f"≥ {requests:,}",
        format_amounts(sum(costs), sum(most)) if len(costs) == len(queries) else NOTHING,
    )


def format_amounts(least: float, most: float) -> str:
    """Format an amount of dollars, or two ends of what it may be.

    >>> format_amounts(5, 15), format_amounts(0, 0)
    ('$5.00 to $15.00', '$0.00')
    """
    return " to ".join(dict.fromkeys(f"${usd:,.2f}" for usd in (least, most)))


def _format_plan(queries: Sequence[PlannedQuery], search: Search) -> Iterator[str]:
    count, done, posts, requests, cost = _format_counts(queries)
    remaining = f"still to come: posts {posts}, requests {requests}, cost {cost}"
    yield f"{count} queries, {done} of them done; {remaining}"
    if cut := [query for query in queries if query.query.cut]:
        last = max(map(_format_end, cut))
        yield f"windows that are not over are cut at {last} UTC, and go on from there"
    if not queries:
        yield "nothing to ask yet: the first window has not begun"
    budget, expand = search.budget, search.expand
    limits = [f"{budget.posts:,} posts"] if budget.posts is not None else []
    limits += [f"${budget.usd:,.2f}"] if budget.usd is not None else []
    for tariff in {query.tariff for query in queries}:  # that of the platform
        counted = budget.posts or 1000
        if (amounts := tariff.compute_cost(counted)) and amounts[0]:
            cap = tariff.most_posts_a_month
            limit = f"; {cap:,} posts a month are the most" if cap else ""
            yield f"{counted:,} posts cost {format_amounts(*amounts)}{limit}"
    if limits:
        yield f"asking ends at {' or '.join(limits)}, replies included"
    elif any(query.usd != 0 for query in queries):
        yield "no budget is set: everything is asked"
    if expand.rounds == 0:
        yield "replies are not asked for"
        return
    rounds = f"in {expand.rounds} rounds at most" if expand.rounds else "until nothing new comes"
    limit = f", {expand.posts:,} posts at most" if expand.posts is not None else ""
    yield f"then replies and ancestors, {rounds}{limit}: their number is not known beforehand"


def show_crawls(console: Console, crawls: Sequence[CrawlStats]) -> None:
    for crawl in crawls:
        console.print(Text(f"\n{crawl.platform}", "bold"), end=" ")
        for line in format_crawl(crawl):
            say(console, clean(line, MAX_REMARK_CHARACTERS))
    if crawls:
        console.print()


def format_crawl(stats: CrawlStats) -> Iterator[str]:
    share, spent = stats.missed_by_terms, stats.spent
    missed = "" if share is None else f" ({percent(share)} that terms alone would have missed)"
    yield f"{stats.by_terms:,} posts by search terms, {stats.by_replies:,} more by replies{missed}"
    if stats.missing:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in stats.missing.items())
        yield f"posts that are named and not there: {reasons}"
    states = ", ".join(f"{count:,} {state}" for state, count in stats.questions.items()) or "none"
    yield (
        f"questions: {states}; in all {spent.requests:,} requests, {spent.posts:,} posts as it "
        f"counts them, {spent.cost}"
    )
    if stats.waits:
        yield (
            f"waited {stats.waits:,} times, {stats.waited_s:,.0f} s in all, because it asked for it"
        )
    for error, count in stats.errors.items():
        yield f"{count:,} not answered: {error}"
    yield f"{stats.end}: {stats.end.meaning}"


def show_yields(console: Console, written: SavedYields) -> None:
    yields, rows = written.yields, []
    for term in (*yields.keywords[:MAX_TERMS], yields.together):
        name = "all terms" if term.keyword is None else clean(term.keyword, MAX_TERM_CHARACTERS)
        alone = "" if term.keyword is None else f"{term.total.alone_passed:,}"
        half = NOTHING if term.half_by_day is None else f"day {term.half_by_day:,}"
        rows.append((name, *_format_yield(term.total), alone, half))
    console.print(make_table("term", *YIELD_HEADINGS, "alone", "half by", rows=rows))
    say(console, "alone: posts on topic that no other term found")
    say(console, "half by: by the end of that day after the release, half of them were written\n")
    if len(yields.keywords) > MAX_TERMS:
        say(console, f"{len(yields.keywords) - MAX_TERMS:,} more terms stand in the file")
    days = zip(yields.windows, yields.together.windows, strict=True)
    by_day = [(window.name, *_format_yield(counts)) for window, counts in days if counts.found]
    console.print(make_table("day", *YIELD_HEADINGS, rows=by_day))
    came_along = f"{yields.came_along:,} posts came along without a search"
    say(console, f"{came_along}, of {yields.unknown:,} nobody says what found them")
    say(console, f"all figures: {written.figures}")
    say(console, f"as an image: {written.plot}")


def _format_yield(search_yield: SearchYield) -> tuple[str, ...]:
    bounds = search_yield.interval
    ends = NOTHING if bounds is None else f"{100 * bounds[0]:.0f} to {100 * bounds[1]:.0f} %"
    return (
        f"{search_yield.found:,}",
        f"{search_yield.scored:,}",
        f"{search_yield.passed:,}",
        percent(search_yield.share),
        ends,
    )


def show_refresh(console: Console, refreshed: RefreshResult) -> None:
    for platform in refreshed.platforms:
        for line in format_refreshed(platform):
            say(console, line)
        for url in list(platform.gone)[:MAX_URLS]:
            say(console, f"  {platform.gone[url]:<12}{url}", "dim")
        if len(platform.gone) > MAX_URLS:
            say(console, f"  and {len(platform.gone) - MAX_URLS:,} more", "dim")
    if refreshed.unasked:
        unasked = ", ".join(
            f"{count:,} of {clean(name)}" for name, count in refreshed.unasked.items()
        )
        say(console, f"posts that nobody was asked about: {unasked}")


def format_refreshed(refreshed: PlatformRefresh) -> Iterator[str]:
    cost = f", ${refreshed.cost_usd:.2f}" if refreshed.cost_usd else ""
    yield (
        f"{refreshed.platform}: {refreshed.posts:,} posts, {refreshed.asked:,} asked about "
        f"now{cost}, {refreshed.fresh:,} "
        f"a short time ago, {len(refreshed.gone):,} gone"
    )
    for reason, count in refreshed.reasons.items():
        yield f"  {count:,} {reason}: {reason.meaning}"
    if refreshed.unknown:
        yield f"  {refreshed.unknown:,} it can say nothing about: they are another server's"
    if refreshed.end != RefreshEnd.ALL_ASKED:
        yield f"  {refreshed.left:,} left: {refreshed.end.meaning}"


def show_removal(console: Console, removal: Removal, config: str) -> None:
    import datasets

    parts = {
        "sample": len(removal.samples),
        "image": removal.images,
        "stored answer": removal.answers,
    }
    went = ", ".join(pluralize(count, noun) for noun, count in parts.items() if count)
    of_all = "" if removal.posts == len(removal.urls) else f" of {len(removal.urls):,}"
    also = f", with {went}" if went else ""
    lines = [f"forgotten: {pluralize(removal.posts, 'post')}{of_all}{also}"]
    if removal.pages:
        lines.append(f"{pluralize(removal.pages, 'stored page')} of platforms lost their content")
    hint = "is that how your posts spell it? It will not be collected"
    lines += [f"nothing here was at {url}: {hint}" for url in removal.unknown]
    lines += [f"check {clean(change.sentence)}" for change in removal.checks]
    lines += [f"still in {place}: edit that file, it is yours" for place in removal.left_in]
    lines.append(
        "what somebody else loaded with datasets may lie in "
        f"{str(datasets.config.HF_DATASETS_CACHE)!r}, too, and wherever the release went: delete "
        "it there"
    )
    for line in (*lines, f"next: echo-hf build {config}"):
        say(console, line)


def show_check_changes(console: Console, changes: Sequence[CheckChange]) -> None:
    """Show what became of checks, and why; without details of the first few."""
    shown = changes if getattr(console, "details", False) else changes[:MAX_CHECKS]
    for change in shown:
        say(console, f"check {clean(change.sentence)}")
    if hidden := len(changes) - len(shown):
        say(console, f"{pluralize(hidden, 'more check')} changed: {SEE_MORE}", "dim")


def show_change(console: Console, difference: ReleaseDiff) -> None:
    """Show how many samples came, went and changed since another release, and why."""
    changed = sum(bool(sample.columns) for sample in difference.changed)
    counts = {"added": len(difference.added), "removed": len(difference.removed)}
    counts |= {"changed": changed, "equal": difference.equal}
    summary = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    causes = ", ".join(f"{count:,} by {cause}" for cause, count in difference.causes.items())
    say(console, f"samples: {summary}{f' ({causes})' if causes else ''}: {SEE_MORE}")


def show_diff(console: Console, difference: ReleaseDiff) -> None:
    console.print(
        Text.assemble((clean(difference.a), "bold"), " → ", (clean(difference.b), "bold"))
    )
    if len(set(difference.targets)) > 1:
        say(console, f"of different targets: {clean(' and '.join(difference.targets))}", "yellow")
    rows = make_table("config", "before", "now", "", left=[""])
    for name, change in difference.configs.items():
        counts = (NOTHING if count is None else f"{count:,}" for count in (change.a, change.b))
        rows.add_row(
            Text(clean(name)), *counts, Text("the same rows" if change.equal else "", "dim")
        )
    samples = make_table("", "count", "which", left=["which"])
    changed = [
        f"{sample.id} ({', '.join(sample.columns)})"
        for sample in difference.changed
        if sample.columns
    ]
    moved = [sample.id for sample in difference.changed if not sample.columns]
    sample_ids = {"added": difference.added, "removed": difference.removed}
    for kind, ids in {**sample_ids, "changed": changed, "moved": moved}.items():
        if ids:
            samples.add_row(Text(kind, COLORS[kind]), f"{len(ids):,}", _format_ids(ids))
    anew = f"of them {difference.remade:,} made again" if difference.remade else ""
    samples.add_row("equal", f"{difference.equal:,}", Text(anew, "dim"))
    causes = make_table("cause", "samples", "meaning", left=["meaning"])
    for cause, count in difference.causes.items():
        causes.add_row(str(cause), f"{count:,}", Text(cause.meaning, "dim"))
    stages = make_table("stage", "in what", left=["in what"])
    for stage in difference.stages:
        stages.add_row(Text(clean(stage.stage)), Text(_format_stage_change(stage)))
    drift_table = make_table(
        "of", "distance", "before", "now", MOVERS_HEADING, left=[MOVERS_HEADING]
    )
    for name, drift in difference.drift.items():
        if not drift.a and not drift.b:
            continue
        distance = "not counted" if drift.distance is None else f"{drift.distance:.3f}"
        movers = []
        for mover in drift.movers[:MAX_MOVERS]:
            color = "green" if mover.change > 0 else "red"
            movers.append(Text(f"{clean(mover.name)} {100 * mover.change:+.1f}", color))
        drift_table.add_row(name, distance, f"{drift.a:,}", f"{drift.b:,}", Text(", ").join(movers))
    parts = {"rows": rows, "samples": samples, "why samples changed": causes}
    for title, part in {**parts, "stages that differ": stages, "drift": drift_table}.items():
        if part.row_count:
            say(console, f"\n{title}", "bold")
            console.print(part)
    if difference.checks:
        say(console, "\nchecks", "bold")
    for check in difference.checks:
        say(console, clean(check.sentence))
    console.print()
    for config, shared in difference.scores.configs.items():
        if shared.shared or shared.a or shared.b:
            verdict = difference.scores.verdict(config)
            line = Text.assemble((f"scores on {config}: ", "bold"), verdict)
            console.print(line, soft_wrap=True)


def _format_ids(ids: Sequence[str]) -> Text:
    tail = f" and {len(ids) - MAX_IDS:,} more" if len(ids) > MAX_IDS else ""
    return Text(f"{', '.join(map(clean, ids[:MAX_IDS]))}{tail}", "dim")


def _format_stage_change(change: StageChange) -> str:
    if change.a is None or change.b is None:
        return "only now" if change.a is None else "only before"
    from echo_hf.hub.diff import Cause

    causes = ", ".join(change.causes)
    names = [(origin.engine or {}).get("model") for origin in (change.a, change.b)]
    models = " → ".join(clean(str(name)) for name in names)
    return (
        f"{causes}: {models}" if Cause.MODEL in change.causes and names[0] != names[1] else causes
    )


def show_publication(console: Console, plan: PublishPlan) -> None:
    """List the files of a release with their sizes, and what becomes of them on the Hub."""
    rows = [
        (path, f"{size / 1e6:,.2f} MB", "new or changed" if path in plan.upload else "the same")
        for path, size in plan.files.items()
    ]
    console.print(make_table("file", "size", "on the Hub", left=("on the Hub",), rows=rows))
    for path in plan.delete:
        say(console, f"deleted there: {clean(path)}", "yellow")
    sent = sum(plan.files[path] for path in plan.upload)
    place = f"{plan.repo_id}{', which is yet to be made' if plan.new else ''}"
    files = pluralize(len(plan.upload), "file")
    say(console, f"{files}, {sent / 1e6:,.1f} MB, would be uploaded to {place}")
    if plan.tagged is None:
        say(console, f"tag {plan.tag} would be set there")
    elif plan.upload or plan.delete:
        message = f"tag {plan.tag} is on another commit ({plan.tagged[:10]}), and stays"
        say(console, f"{message}: choose another --tag", "yellow")
    else:
        say(console, f"tag {plan.tag} is there already ({plan.tagged[:10]})")
    console.print("nothing was sent: leave out --dry-run to publish")


def show_holding(
    console: Console,
    repo_id: str,
    urls: Collection[str],
    *,
    delete: bool = False,
    api: HfApi | None = None,
) -> None:
    from echo_hf.hub.remote import TAG_KIND, delete_tags, find_revisions_with_posts

    holders = find_revisions_with_posts(repo_id, urls, api=api)
    for revision in holders:
        contents = f"{len(revision.samples)} samples and {revision.answers} stored answers"
        line = f"{revision.kind} {revision.revision} of {repo_id} still holds them in {contents}"
        say(console, f"{line} (commit {revision.commit[:10]})")
    if requests := [
        revision.revision for revision in holders if revision.revision.startswith("refs/")
    ]:
        say(console, f"close {', '.join(requests)} and delete its branch, on its page on the Hub")
    tags = [revision.revision for revision in holders if revision.kind == TAG_KIND]
    if delete:
        delete_tags(repo_id, tags, api=api)
        console.print(Text(f"deleted {len(tags)} tags: {', '.join(tags)}".rstrip(": ")))
    elif tags:
        say(console, "next: publish the next release, then the same with --delete-tags")
    if holders:
        say(console, STILL_LOADABLE)


def show_check(console: Console, result: CheckResult) -> None:
    stages_by_engine: dict[str, list[str]] = {}
    rows: list[tuple[str | Text, ...]] = []
    for stage_check in result.stages:
        name = f"{stage_check.engine.kind} {stage_check.engine.options.get('model') or ''}".strip()
        stages_by_engine.setdefault(name, []).append(stage_check.stage)
        for measure in stage_check.measures:
            style = "dim" if measure.n < MIN_RELIABLE_N else ""
            heading = Text(stage_check.stage if measure is stage_check.measures[0] else "", "bold")
            ends = Text(format_interval(measure.low, measure.high), style)
            shares = (format_share(measure.coverage), format_share(measure.strict))
            value, count = format_share(measure.value), Text(f"{measure.n:,}", style)
            rows.append((heading, measure.name.replace("_", " "), value, ends, count, *shares))
    engines = [f"{name} ({', '.join(stages)})" for name, stages in stages_by_engine.items()]
    source = f"{result.target} in {result.posts}, {HALVES[result.half]}"
    engine_names = ", ".join(engines if len(stages_by_engine) > 1 else stages_by_engine)
    title = f"{engine_names} on {source}, {pluralize(result.threads, 'thread')}"
    console.print(Text(f"\n{clean(title, 400)}\n", "bold"))
    heads = ("stage", "measure", "%", "interval", "n", "coverage %", "strict %")
    console.print(make_table(*heads, left=["measure"], rows=rows))
    console.print()
    for sentence in _format_footer(result):
        console.print(Text(sentence, "dim"))


def _format_footer(result: CheckResult) -> Iterator[str]:
    graded = any(measure.interval not in ("wilson", None) for measure in result.measures)
    yield f"{WILSON}{BOOTSTRAP if graded else ''}."
    yield COVERAGE
    if unreliable := sum(measure.n < MIN_RELIABLE_N for measure in result.measures):
        yield (
            f"{unreliable} of {len(result.measures)} measures have n below {MIN_RELIABLE_N}: "
            "differences between engines in them are not reliable."
        )
    for check in result.stages:
        if skipped := max((measure.skipped for measure in check.measures), default=0):
            why = "people say too little of them, or two things"
            yield f"{check.stage}: {skipped} left out: {why}."
    yield from (f"{note}." for note in result.notes)
    costs = [stage.fill.stage_cost_usd for stage in result.stages]
    if (packing := result.packing) and packing.posts:
        counts = (packing.right, packing.right_alone)
        right, alone = (format_share(count / packing.posts) for count in counts)
        low, high = f"{packing.low:+.1f}", f"{packing.high:+.1f}"
        yield (
            f"relevance, {packing.posts_per_request} posts a request: {right} % of "
            f"{packing.posts:,} scores are right, one by one {alone} %: "
            f"{packing.points:+.1f} points ({low} to {high})."
        )
        if all(packing.prompt_tokens):
            tokens = " against ".join(f"{tokens:,}" for tokens in packing.prompt_tokens)
            yield f"Their prompt tokens: {tokens}."
        costs.append(packing.cost_usd[1])
    spent = [cost for cost in costs if cost is not None]
    if spent:
        yield f"These answers cost ${sum(spent):.2f}."


def show_boxes(console: Console, check: BoxesCheck) -> None:
    name = f"{check.engine.kind} {check.engine.options.get('model') or ''}".strip()
    basis = "assumed" if check.is_assumed else "known"
    title = f"{clean(name, 400)}, asked for {check.asked} ({basis})"
    console.print(Text(f"\n{title}\n", "bold"))
    shares = sorted(check.shared.items(), key=lambda pair: -pair[1])
    rows = [(convention, format_share(share)) for convention, share in shares]
    console.print(make_table("boxes read as", "% of the area shared", rows=rows))
    console.print()
    if check.convention is None:
        message = f"it cannot be said: {check.answered} of {check.images} images were answered"
        say(console, f"{message}, and no convention is clearly nearest", "yellow")
    elif check.convention == check.asked and not check.is_assumed:
        say(console, f"it answers in {check.convention}, as is known of it")
    else:
        say(console, f"it answers in {check.convention}")
        say(console, f"next: coordinates: {check.convention} in the section of that engine")


def show_errors(console: Console, result: CheckResult) -> None:
    for measure in result.measures:
        if measure.errors:
            console.print()
            name = f"{measure.stage}, {measure.name.replace('_', ' ')}"
            say(console, f"{name}: {len(measure.errors)} not right", "bold")
        for item in measure.errors:
            say(console, f"  {clean(item.place, MAX_ERROR_CHARACTERS)}")
            say(console, f"    expected {clean(item.expected, MAX_ERROR_CHARACTERS)}")
            answer = clean(item.answer, MAX_ERROR_CHARACTERS) or "(nothing)"
            say(console, f"    given    {answer}")


def format_share(value: float | None) -> str:
    """Format a share in percent with one digit after the point, never rounded to 0 or 100."""
    if value is None:
        return NOTHING
    if value in (0, 1):
        return f"{100 * value:.0f}"
    return f"{min(max(100 * value, 0.1), 99.9):.1f}"


def format_interval(low: float | None, high: float | None) -> str:
    """Format an interval in whole percent, rounded outwards."""
    if low is None or high is None:
        return NOTHING
    # Not for what a float adds at its end.
    return f"{math.floor(100 * low + 1e-9)} to {math.ceil(100 * high - 1e-9)}"


def check_as_json(result: CheckResult) -> dict[str, Any]:
    """Return the result as plain values, without any text of people or engines."""
    stages = [
        {
            "stage": stage.stage,
            "engine": stage.describe["engine"],
            "digest": stage.digest,
            "failed": dict(stage.failed),
            "fill": dataclasses.asdict(stage.fill),
            "measures": [measure.as_json() for measure in stage.measures],
        }
        for stage in result.stages
    ]
    from echo_hf.hub.manifest import get_version

    payload = {"toolkit": get_version(), **vars(result), "stages": stages}
    packing = result.packing and dataclasses.asdict(result.packing)
    return {**payload, "notes": list(result.notes), "packing": packing}


def show_open(console: Console, reviews: OpenReviews, config: str) -> None:
    for number in reviews.cut:
        say(console, f"{reviews.file}:{number} was cut short and does not count: decide again")
    for sample in reviews.open:
        title = Text.assemble((sample.id, "bold"), f"  {', '.join(sample.reasons)}")
        console.print(title, soft_wrap=True)
        for line in (clean(sample.prompt, MAX_PROMPT_CHARACTERS), *sample.images):
            say(console, f"  {line}")
    count = len(reviews.open)
    if not count:
        say(console, "nothing is open for review")
        return
    if waiting := sum(Doubt.ASSUMED_BOXES in sample.reasons for sample in reviews.open):
        message = f"boxes of {pluralize(waiting, 'sample')} wait for a convention"
        say(
            console,
            f"{message}: echo-hf review {config} --boxes CONVENTION, or --app shows them all",
        )
    subject = "1 sample is" if count == 1 else f"{count:,} samples are"
    say(console, f"{subject} open; decide with: echo-hf review {config} --keep ID --remove ID")


def show_labels(console: Console, app: LabelApp) -> None:
    """Show how many outputs people have labelled, and how many are missing, by system."""
    labels = app.read_labels()
    missing = app.count_missing(labels)
    say(console, f"{app.check.key}: {clean(app.check.question, MAX_PROMPT_CHARACTERS)}")
    rows = [
        (group.system, group.split, len(group.answers), len(group.answers.keys() & labels.keys()))
        for group in app.groups
    ]
    cells = [(*map(str, row), f"{missing[row[1], row[0]]:,}") for row in rows]
    head = ("system", "split", "outputs", "labelled", f"missing for ±{app.half_width:g}")
    console.print(make_table(*head, left=("split",), rows=cells))
