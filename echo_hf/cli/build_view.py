"""What verbs of building and releasing show in a terminal, and an engine's check as JSON."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from echo_hf._infra.console import MORE, plain_table, say, say_under
from echo_hf._infra.text import counted, percent, plain
from echo_hf.cli.progress import LONGEST_REMARK, Watch
from echo_hf.reasons import Doubt, Failed, RefreshEnd

if TYPE_CHECKING:
    from huggingface_hub import HfApi

    from echo_hf.apps.takedown import Removal
    from echo_hf.builder.gold.boxes import BoxesCheck
    from echo_hf.builder.gold.check import CheckResult
    from echo_hf.builder.refresh import Refresh, Refreshed
    from echo_hf.builder.review import Reviews
    from echo_hf.builder.search_yield import WrittenYields, Yield
    from echo_hf.builder.update import Change
    from echo_hf.collect.crawl import PlannedQuery
    from echo_hf.collect.crawl_ledger import CrawlStats
    from echo_hf.config.collection import Search
    from echo_hf.config.paper import Difference
    from echo_hf.hub.diff import ReleaseDiff, StageChange
    from echo_hf.hub.publish import Publication
    from echo_hf.pipeline.result import StageStats

NUMBERS = ("queries", "done", "posts", "requests", "cost")
FIGURES = ("posts", "scored", "on topic", "share", "95 %")
NOTHING = "-"
MOST_TERMS = 40
LONGEST_TERM = 24
MOST_NAMED = 10
FEW_KEPT = 0.1  # samples of posts: what rules read of posts that people write as they like
TO_MODELS = "names one: `echo-hf engines`"


def show_built(
    watch: Watch, rows: Mapping[str, int], unlike: Sequence[Difference], config: Path, command: str
) -> None:
    """Shows how posts became samples, what was left out or failed, and what people have to see."""
    console, stats = watch.console, watch.stats
    if watch.details:
        for sentence in watch.headlines():
            say(console, sentence)
        if unlike:
            say(console, "unlike the paper", "bold")
        for difference in unlike:
            say(console, difference.what)
            console.print(Padding(Text(difference.why, "dim"), (0, 0, 0, 4)))
        return
    say(console, funnel(stats, rows), "bold")
    losses = watch.losses()
    watch.show_losses([loss for loss in losses if loss.reason != Failed.NEEDS_MODEL])
    for stage in stats:
        if stage.stage == "splits" and (waiting := stage.tally.get("to_review", 0)):
            held = f"{counted(waiting, 'sample')} with personal data to review"
            say(console, f"{held}: echo-hf review {command}", "yellow")
        if doubts := sum(stage.noted.get(doubt, 0) for doubt in Doubt):
            say(console, f"{counted(doubts, 'doubt')} to review: echo-hf review {command}", "dim")
    posts = sum(stage.kept for stage in stats if stage.stage == "collect")
    if needy := ", ".join(str(loss) for loss in losses if loss.reason == Failed.NEEDS_MODEL):
        few = rows.get("analysis", 0) < FEW_KEPT * posts
        if few:
            say(console, "rules read few of these posts: most need a model", "yellow")
        said = f"questions on {needy}; `engines` in {config} {TO_MODELS}"
        say_under(console, "for a model:", said, "dim")
    if unlike:
        say(console, f"unlike the paper in {counted(len(unlike), 'choice')}: {MORE}", "dim")


def show_until(watch: Watch, command: str) -> None:
    """Prints a line for each stage of a build without a release, and what they left out."""
    if not watch.details:  # with them, each was shown as it ended
        for stage in watch.stats:
            watch.show_line(stage)
        watch.show_losses(watch.losses())
    say(watch.console, f"next: echo-hf build {command}")


def funnel(stats: Sequence[StageStats], rows: Mapping[str, int]) -> str:
    """Says what became of the posts of a build, from the first stage to the release.

    Examples:
        >>> from echo_hf.pipeline.result import StageStats
        >>> stats = [StageStats("collect", 9, 8, makes="posts"), StageStats("splits", 3, 2)]
        >>> funnel(stats, {"image_to_image": 0, "text_to_image": 1, "analysis": 2})
        '8 posts → 2 samples → 1 text_to_image task'
    """
    from echo_hf.curate.splits import BENCHMARKS  # which loads the tables

    shown = [
        counted(stage.kept, stage.makes.removesuffix("s"))
        for stage in stats
        if stage.stage in ("collect", "threads")
    ]
    shown.append(counted(rows.get("analysis", 0), "sample"))
    tasks = {name: rows[name] for name in BENCHMARKS if rows.get(name)}
    named = " and ".join(f"{count:,} {name}" for name, count in tasks.items())
    noun = "task" if sum(tasks.values()) == 1 else "tasks"
    return " → ".join([*shown, f"{named} {noun}" if named else "no task of the benchmark"])


def show_changes(console: Console, changes: Sequence[Change]) -> None:
    """Shows what changed since stages ran, once for all stages that it changed in."""
    stages: dict[tuple[str, str, str], list[Change]] = {}
    for change in changes:
        stages.setdefault(change[1:], []).append(change)
    together: dict[tuple[str, ...], list[Change]] = {}
    for alike in stages.values():
        together.setdefault(tuple(change.stage for change in alike), []).append(alike[0])
    for names, fields in together.items():
        if len(names) > 1:
            parts = ", ".join(change.field for change in fields)
            shown = fields[0]._replace(field=f"{parts} ({', '.join(names)})")
            say(console, shown.sentence, "bold")
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
    every: bool = False,
) -> None:
    for name, search in searches.items():
        own = [one for one in queries if one.platform == name]
        say(console, f"\n{name}: {len(own):,} queries", "bold")
        groups: dict[object, list[PlannedQuery]] = {}
        for one in own:
            key = id(one) if every else (one.query.phase, one.query.question.about[0])
            groups.setdefault(key, []).append(one)
        words = ("term", "from", "until", "window", "in")
        rows = (_plan_row(group, search, every=every) for group in groups.values())
        console.print(plain_table("#", *words, *NUMBERS, left=words, rows=rows))
        for line in _plan_lines(own, search):
            say(console, line)


def _plan_row(group: Sequence[PlannedQuery], search: Search, *, every: bool) -> tuple[str, ...]:
    phase, question = group[0].query.phase, group[0].query.question
    options, window = search.phases[phase], question.window
    start = window.start.strftime("%Y-%m-%d") if window else NOTHING
    asked = (question.language or "all") if every else (" ".join(options.languages) or "all")
    times = (start, _end(group[-1]), options.window, asked)
    return str(phase + 1), question.about[0], *times, *_numbers(group)


def _end(one: PlannedQuery) -> str:
    window = one.query.question.window
    if window is None:
        return NOTHING
    return window.end.strftime("%Y-%m-%d %H:%M" if one.query.cut else "%Y-%m-%d")


def _numbers(queries: Sequence[PlannedQuery]) -> tuple[str, ...]:
    posts = [one.posts for one in queries if one.posts is not None]
    costs = [one.usd for one in queries if one.usd is not None]
    is_known, requests = len(posts) == len(queries), sum(one.requests for one in queries)
    return (
        f"{len(queries):,}",
        f"{sum(one.done for one in queries):,}",
        f"{sum(posts):,}" if is_known else NOTHING,
        f"{requests:,}" if is_known else f"≥ {requests:,}",
        f"${sum(costs, 0.0):,.2f}" if len(costs) == len(queries) else NOTHING,
    )


def _plan_lines(queries: Sequence[PlannedQuery], search: Search) -> Iterator[str]:
    every, done, posts, requests, cost = _numbers(queries)
    still = f"still to come: posts {posts}, requests {requests}, cost {cost}"
    yield f"{every} queries, {done} of them done; {still}"
    if cut := [one for one in queries if one.query.cut]:
        last = max(map(_end, cut))
        yield f"windows that are not over are cut at {last} UTC, and go on from there"
    if not queries:
        yield "nothing to ask yet: the first window has not begun"
    budget, expand = search.budget, search.expand
    most = [f"{budget.posts:,} posts"] if budget.posts is not None else []
    most += [f"${budget.usd:,.2f}"] if budget.usd is not None else []
    if most:
        yield f"asking ends at {' or '.join(most)}, replies included"
    elif any(one.usd != 0 for one in queries):
        yield "no budget is set: everything is asked"
    if expand.rounds == 0:
        yield "replies are not asked for"
        return
    rounds = f"in {expand.rounds} rounds at most" if expand.rounds else "until nothing new comes"
    limit = f", {expand.posts:,} posts at most" if expand.posts is not None else ""
    yield f"then replies and ancestors, {rounds}{limit}: their number is not known beforehand"


def show_crawled(console: Console, done: Sequence[CrawlStats]) -> None:
    for one in done:
        console.print(Text(f"\n{one.platform}", "bold"), end=" ")
        for line in crawl_lines(one):
            say(console, plain(line, LONGEST_REMARK))
    if done:
        console.print()


def crawl_lines(stats: CrawlStats) -> Iterator[str]:
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


def show_yields(console: Console, written: WrittenYields) -> None:
    found, rows = written.yields, []
    for one in (*found.keywords[:MOST_TERMS], found.together):
        name = "all terms" if one.keyword is None else plain(one.keyword, LONGEST_TERM)
        alone = "" if one.keyword is None else f"{one.total.alone_passed:,}"
        half = NOTHING if one.half_by_day is None else f"day {one.half_by_day:,}"
        rows.append((name, *_figures(one.total), alone, half))
    console.print(plain_table("term", *FIGURES, "alone", "half by", rows=rows))
    say(console, "alone: posts on topic that no other term found")
    say(console, "half by: by the end of that day after the release, half of them were written\n")
    if len(found.keywords) > MOST_TERMS:
        say(console, f"{len(found.keywords) - MOST_TERMS:,} more terms stand in the file")
    days = zip(found.windows, found.together.windows, strict=True)
    by_day = [(window.name, *_figures(counts)) for window, counts in days if counts.found]
    console.print(plain_table("day", *FIGURES, rows=by_day))
    along = f"{found.came_along:,} posts came along without a search"
    say(console, f"{along}, of {found.unknown:,} nobody says what found them")
    say(console, f"all figures: {written.figures}")
    say(console, f"as an image: {written.plot}")


def _figures(one: Yield) -> tuple[str, ...]:
    interval = one.interval
    ends = NOTHING if interval is None else f"{100 * interval[0]:.0f} to {100 * interval[1]:.0f} %"
    return f"{one.found:,}", f"{one.scored:,}", f"{one.passed:,}", percent(one.share), ends


def show_refresh(console: Console, done: Refresh) -> None:
    for one in done.platforms:
        for line in refresh_lines(one):
            say(console, line)
        for url in list(one.gone)[:MOST_NAMED]:
            say(console, f"  {one.gone[url]:<12}{url}", "dim")
        if len(one.gone) > MOST_NAMED:
            say(console, f"  and {len(one.gone) - MOST_NAMED:,} more", "dim")
    if done.unasked:
        rest = ", ".join(f"{count:,} of {plain(name)}" for name, count in done.unasked.items())
        say(console, f"posts that nobody was asked about: {rest}")


def refresh_lines(refreshed: Refreshed) -> Iterator[str]:
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


def show_removal(console: Console, taken: Removal, config: str) -> None:
    import datasets

    parts = {"sample": len(taken.samples), "image": taken.images, "stored answer": taken.answers}
    went = ", ".join(counted(count, noun) for noun, count in parts.items() if count)
    wanted = "" if taken.posts == len(taken.urls) else f" of {len(taken.urls):,}"
    lines = [f"forgotten: {counted(taken.posts, 'post')}{wanted}{f', with {went}' if went else ''}"]
    if taken.pages:
        lines.append(f"{counted(taken.pages, 'stored page')} of platforms lost their content")
    hint = "is that how your posts spell it? It will not be collected"
    lines += [f"nothing here was at {url}: {hint}" for url in taken.unknown]
    lines += [f"still in {place}: edit that file, it is yours" for place in taken.left_in]
    lines.append(
        "what somebody else loaded with datasets may lie in "
        f"{str(datasets.config.HF_DATASETS_CACHE)!r}, too, and wherever the release went: delete "
        "it there"
    )
    for line in (*lines, f"next: echo-hf build {config}"):
        say(console, line)


MOST_SAMPLES = 5
MOST_MOVERS = 3
MOVED = "what moved most, in points"
COLORS = {"added": "green", "removed": "red", "changed": "yellow", "moved": "yellow"}
REACHABLE = (
    "anyone who knows a commit's hash can load it until the history of the repository is squashed "
    "(huggingface_hub's super_squash_history)"
)


def show_change(console: Console, difference: ReleaseDiff) -> None:
    """Shows how many samples came, went and changed since another release, and why."""
    changed = sum(bool(sample.columns) for sample in difference.changed)
    counts = {"added": len(difference.added), "removed": len(difference.removed)}
    counts |= {"changed": changed, "equal": difference.equal}
    said = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    causes = ", ".join(f"{count:,} by {cause}" for cause, count in difference.causes.items())
    say(console, f"samples: {said}{f' ({causes})' if causes else ''}: {MORE}")


def show_diff(console: Console, difference: ReleaseDiff) -> None:
    console.print(
        Text.assemble((plain(difference.a), "bold"), " → ", (plain(difference.b), "bold"))
    )
    if len(set(difference.targets)) > 1:
        say(console, f"of different targets: {plain(' and '.join(difference.targets))}", "yellow")
    rows = plain_table("config", "before", "now", "", left=[""])
    for name, change in difference.configs.items():
        counts = (NOTHING if count is None else f"{count:,}" for count in (change.a, change.b))
        rows.add_row(
            Text(plain(name)), *counts, Text("the same rows" if change.equal else "", "dim")
        )
    samples = plain_table("", "count", "which", left=["which"])
    changed = [f"{one.id} ({', '.join(one.columns)})" for one in difference.changed if one.columns]
    moved = [one.id for one in difference.changed if not one.columns]
    named = {"added": difference.added, "removed": difference.removed}
    for kind, ids in {**named, "changed": changed, "moved": moved}.items():
        if ids:
            samples.add_row(Text(kind, COLORS[kind]), f"{len(ids):,}", _some(ids))
    anew = f"of them {difference.remade:,} made again" if difference.remade else ""
    samples.add_row("equal", f"{difference.equal:,}", Text(anew, "dim"))
    causes = plain_table("cause", "samples", "meaning", left=["meaning"])
    for cause, count in difference.causes.items():
        causes.add_row(str(cause), f"{count:,}", Text(cause.meaning, "dim"))
    stages = plain_table("stage", "in what", left=["in what"])
    for stage in difference.stages:
        stages.add_row(Text(plain(stage.stage)), Text(_stage(stage)))
    drift = plain_table("of", "distance", "before", "now", MOVED, left=[MOVED])
    for name, one in difference.drift.items():
        if not one.a and not one.b:
            continue
        distance = "not counted" if one.distance is None else f"{one.distance:.3f}"
        movers = [
            Text(f"{plain(mover.name)} {100 * mover.change:+.1f}", _color(mover.change))
            for mover in one.movers[:MOST_MOVERS]
        ]
        drift.add_row(name, distance, f"{one.a:,}", f"{one.b:,}", Text(", ").join(movers))
    parts = {"rows": rows, "samples": samples, "why samples changed": causes}
    for title, part in {**parts, "stages that differ": stages, "drift": drift}.items():
        if part.row_count:
            say(console, f"\n{title}", "bold")
            console.print(part)
    console.print()
    for config, shared in difference.scores.configs.items():
        if shared.shared or shared.a or shared.b:
            verdict = difference.scores.verdict(config)
            line = Text.assemble((f"scores on {config}: ", "bold"), verdict)
            console.print(line, soft_wrap=True)


def _color(change: float) -> str:
    return "green" if change > 0 else "red"


def _some(ids: Sequence[str]) -> Text:
    more = f" and {len(ids) - MOST_SAMPLES:,} more" if len(ids) > MOST_SAMPLES else ""
    return Text(f"{', '.join(map(plain, ids[:MOST_SAMPLES]))}{more}", "dim")


def _stage(change: StageChange) -> str:
    if change.a is None or change.b is None:
        return "only now" if change.a is None else "only before"
    from echo_hf.hub.diff import Cause

    said = ", ".join(change.causes)
    names = [(origin.engine or {}).get("model") for origin in (change.a, change.b)]
    shown = " → ".join(plain(str(name)) for name in names)
    return f"{said}: {shown}" if Cause.MODEL in change.causes and names[0] != names[1] else said


def show_publication(console: Console, planned: Publication) -> None:
    """Lists the files of a release with their sizes, and what becomes of them on the Hub."""
    rows = [
        (path, f"{size / 1e6:,.2f} MB", "new or changed" if path in planned.upload else "the same")
        for path, size in planned.files.items()
    ]
    console.print(plain_table("file", "size", "on the Hub", left=("on the Hub",), rows=rows))
    for path in planned.delete:
        say(console, f"deleted there: {plain(path)}", "yellow")
    sent = sum(planned.files[path] for path in planned.upload)
    place = f"{planned.repo_id}{', which is yet to be made' if planned.new else ''}"
    files = counted(len(planned.upload), "file")
    say(console, f"{files}, {sent / 1e6:,.1f} MB, would be uploaded to {place}")
    if planned.tagged is None:
        say(console, f"tag {planned.tag} would be set there")
    elif planned.upload or planned.delete:
        said = f"tag {planned.tag} is on another commit ({planned.tagged[:10]}), and stays"
        say(console, f"{said}: choose another --tag", "yellow")
    else:
        say(console, f"tag {planned.tag} is there already ({planned.tagged[:10]})")
    console.print("nothing was sent: leave out --dry-run to publish")


def show_holding(
    console: Console,
    repo_id: str,
    urls: Collection[str],
    *,
    delete: bool = False,
    api: HfApi | None = None,
) -> None:
    from echo_hf.hub.remote import TAG, delete_tags, revisions_holding

    held = revisions_holding(repo_id, urls, api=api)
    for one in held:
        held_in = f"{len(one.samples)} samples and {one.answers} stored answers"
        line = f"{one.kind} {one.revision} of {repo_id} still holds them in {held_in}"
        say(console, f"{line} (commit {one.commit[:10]})")
    if requests := [one.revision for one in held if one.revision.startswith("refs/")]:
        say(console, f"close {', '.join(requests)} and delete its branch, on its page on the Hub")
    tags = [one.revision for one in held if one.kind == TAG]
    if delete:
        delete_tags(repo_id, tags, api=api)
        console.print(Text(f"deleted {len(tags)} tags: {', '.join(tags)}".rstrip(": ")))
    elif tags:
        say(console, "next: publish the next release, then the same with --delete-tags")
    if held:
        say(console, REACHABLE)


FEW = 30
LONGEST_SHOWN = 200
LONGEST_PROMPT = 160
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


def show_check(console: Console, result: CheckResult) -> None:
    asked: dict[str, list[str]] = {}
    rows: list[tuple[str | Text, ...]] = []
    for one in result.stages:
        name = f"{one.engine.kind} {one.engine.options.get('model') or ''}".strip()
        asked.setdefault(name, []).append(one.stage)
        for measure in one.measures:
            style = "dim" if measure.n < FEW else ""
            stage = Text(one.stage if measure is one.measures[0] else "", "bold")
            ends = Text(interval(measure.low, measure.high), style)
            shares = (tenths(measure.coverage), tenths(measure.strict))
            value, count = tenths(measure.value), Text(f"{measure.n:,}", style)
            rows.append((stage, measure.name.replace("_", " "), value, ends, count, *shares))
    named = [f"{name} ({', '.join(stages)})" for name, stages in asked.items()]
    where = f"{result.target} in {result.posts}, {HALVES[result.half]}"
    who = ", ".join(named if len(asked) > 1 else asked)
    title = f"{who} on {where}, {counted(result.threads, 'thread')}"
    console.print(Text(f"\n{plain(title, 400)}\n", "bold"))
    heads = ("stage", "measure", "%", "interval", "n", "coverage %", "strict %")
    console.print(plain_table(*heads, left=["measure"], rows=rows))
    console.print()
    for sentence in _footer(result):
        console.print(Text(sentence, "dim"))


def _footer(result: CheckResult) -> Iterator[str]:
    graded = any(measure.interval not in ("wilson", None) for measure in result.measures)
    yield f"{WILSON}{BOOTSTRAP if graded else ''}."
    yield COVERAGE
    if few := sum(measure.n < FEW for measure in result.measures):
        yield (
            f"{few} of {len(result.measures)} measures have n below {FEW}: differences between "
            "engines in them are not reliable."
        )
    for one in result.stages:
        if skipped := max((measure.skipped for measure in one.measures), default=0):
            yield f"{one.stage}: {skipped} left out: people say too little of them, or two things."
    yield from (f"{note}." for note in result.notes)
    cost = [one.fill.stage_cost_usd for one in result.stages if one.fill.stage_cost_usd is not None]
    if cost:
        yield f"These answers cost ${sum(cost):.2f}."


def show_boxes(console: Console, found: BoxesCheck) -> None:
    name = f"{found.engine.kind} {found.engine.options.get('model') or ''}".strip()
    said = "assumed" if found.is_assumed else "known"
    title = f"{plain(name, 400)}, asked for {found.asked} ({said})"
    console.print(Text(f"\n{title}\n", "bold"))
    shares = sorted(found.shared.items(), key=lambda one: -one[1])
    rows = [(convention, tenths(share)) for convention, share in shares]
    console.print(plain_table("boxes read as", "% of the area shared", rows=rows))
    console.print()
    if found.convention is None:
        told = f"it cannot be said: {found.answered} of {found.images} images were answered"
        say(console, f"{told}, and no convention is clearly nearest", "yellow")
    elif found.convention == found.asked and not found.is_assumed:
        say(console, f"it answers in {found.convention}, as is known of it")
    else:
        say(console, f"it answers in {found.convention}")
        say(console, f"next: coordinates: {found.convention} in the section of that engine")


def show_errors(console: Console, result: CheckResult) -> None:
    for measure in result.measures:
        if measure.errors:
            console.print()
            name = f"{measure.stage}, {measure.name.replace('_', ' ')}"
            say(console, f"{name}: {len(measure.errors)} not right", "bold")
        for item in measure.errors:
            say(console, f"  {plain(item.place, LONGEST_SHOWN)}")
            say(console, f"    expected {plain(item.expected, LONGEST_SHOWN)}")
            given = plain(item.given, LONGEST_SHOWN) or "(nothing)"
            say(console, f"    given    {given}")


def tenths(value: float | None) -> str:
    """A share in percent with one digit after the point, never rounded to all or nothing."""
    if value is None:
        return NOTHING
    if value in (0, 1):
        return f"{100 * value:.0f}"
    return f"{min(max(100 * value, 0.1), 99.9):.1f}"


def interval(low: float | None, high: float | None) -> str:
    """An interval in whole percent, rounded outwards."""
    if low is None or high is None:
        return NOTHING
    # Not for what a float adds at its end.
    return f"{math.floor(100 * low + 1e-9)} to {math.ceil(100 * high - 1e-9)}"


def as_json(result: CheckResult) -> dict[str, Any]:
    """The whole result as plain values, without a word of what people or engines wrote."""
    stages = [
        {
            "stage": one.stage,
            "engine": one.describe["engine"],
            "digest": one.digest,
            "failed": dict(one.failed),
            "fill": dataclasses.asdict(one.fill),
            "measures": [measure.as_json() for measure in one.measures],
        }
        for one in result.stages
    ]
    from echo_hf.hub.manifest import toolkit_version

    told = {"toolkit": toolkit_version(), **vars(result), "stages": stages}
    return {**told, "notes": list(result.notes)}


def show_open(console: Console, reviews: Reviews, config: str) -> None:
    for number in reviews.cut:
        say(console, f"{reviews.file}:{number} was cut short and does not count: decide again")
    for one in reviews.open:
        title = Text.assemble((one.id, "bold"), f"  {', '.join(one.reasons)}")
        console.print(title, soft_wrap=True)
        for line in (plain(one.prompt, LONGEST_PROMPT), *one.images):
            say(console, f"  {line}")
    count = len(reviews.open)
    if not count:
        say(console, "nothing is open for review")
        return
    if held := sum(Doubt.ASSUMED_BOXES in one.reasons for one in reviews.open):
        told = f"boxes of {counted(held, 'sample')} wait for a convention"
        say(console, f"{told}: echo-hf review {config} --boxes CONVENTION, or --app shows them all")
    told = "1 sample is" if count == 1 else f"{count:,} samples are"
    say(console, f"{told} open; decide with: echo-hf review {config} --keep ID --remove ID")
