"""Verbs that build a benchmark: ask for posts, run stages, check engines, review samples."""

from __future__ import annotations

import datetime
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from echo_hf._infra.console import make_console, say
from echo_hf._infra.text import pluralize
from echo_hf.cli.verb import (
    Again,
    ConfigArgument,
    KeepGoing,
    Payload,
    Runner,
    Runs,
    choice,
    flag,
    locate,
    open_progress,
    option,
)
from echo_hf.errors import ConfigError, ReviewError, RunError, unknown
from echo_hf.reasons import count_unusable

if TYPE_CHECKING:
    from echo_hf.cli.progress import TerminalProgress
    from echo_hf.hub.release import Release

Offline = Annotated[bool, option("--offline", "Ask no model: use stored answers only.")]
WithResponses = Annotated[
    bool, option("--with-responses", "Let the release carry the answers, for replay.")
]
AllowEmpty = Annotated[
    bool, option("--allow-empty", "Write the release even where the benchmark has no sample.")
]
Names = list[str] | None
LISTED = "such as extract: `echo-hf plugins -v` lists them"
MAX_HOURS = 1_000_000.0  # a century; there is no time before the year 1


def collect(
    config: ConfigArgument,
    runs: Runs = None,
    offline: bool = flag("--offline", "Make no requests: read what is there already."),
    plan: bool = flag("--plan", "Only print what would be asked, and what it costs."),
    every: bool = flag("--all", "With --plan: each query on a line of its own."),
    estimate: bool = flag("--estimate", "With --plan: ask for numbers of posts even if it costs."),
    keywords: bool = flag("--keywords", "Only show what each search term brought, once scored."),
) -> Payload:
    """Ask platforms for posts, read files, merge duplicates."""
    from echo_hf.builder import build as run
    from echo_hf.builder.search_yield import write_yields
    from echo_hf.cli.build_view import show_crawls, show_partial_build, show_plan, show_yields
    from echo_hf.collect.crawl import (
        crawl_posts,
        find_searches,
        plan_queries,
        planned_query_to_json,
    )
    from echo_hf.config.loading import load_config
    from echo_hf.pipeline.runs import open_run_folder

    if (every or estimate) and not plan:
        raise ConfigError("--all and --estimate go with --plan: add it")
    if plan and keywords:
        raise ConfigError("--plan and --keywords are two things: give one at a time")
    if keywords:
        written = write_yields(config, runs=runs)
        show_yields(make_console(), written)
        figures = json.loads(written.figures.read_bytes())
        return {"path": written.figures, "plot": written.plot, **figures}
    loaded = load_config(config)
    found_searches, folder = find_searches(loaded), open_run_folder(loaded, runs)
    if plan and not found_searches:
        raise ConfigError(f"{str(config)!r} has no search among its posts: nobody would be asked")
    with open_progress() as watch:
        if plan:
            today, notice = datetime.datetime.now(datetime.UTC), watch.report_notice
            queries = list(
                plan_queries(loaded, folder.root, today, estimate=estimate, notify=notice)
            )
        else:
            if found_searches and not offline:
                show_crawls(watch.console, crawl_posts(loaded, folder, watch))
            run.run_until(loaded, "collect", runs=runs, offline=offline, watch=watch)
            show_partial_build(watch, locate(config, runs))
            return {"path": None, "stages": watch.stats}
    show_plan(watch.console, queries, found_searches, in_full=every)
    return {"queries": list(map(planned_query_to_json, queries))}


def build(
    config: ConfigArgument,
    until: str | None = choice(None, f"Stop after this stage, {LISTED}.", metavar="STAGE"),
    runs: Runs = None,
    offline: Offline = False,
    responses: str | None = choice(
        None, "Folder of a release, or ORG/NAME@TAG: read the answers it carries, ask no model."
    ),
    with_responses: WithResponses = False,
    allow_empty: AllowEmpty = False,
    again: Again = False,
    keep_going: KeepGoing = False,
    runner: Runner = None,
    dry_run: bool = flag("--dry-run", "Only show what would be asked, the cost and the time."),
    try_: str | None = choice(
        None,
        "Send the first request of this stage, show it with its answer, and keep nothing.",
        "--try",
        metavar="STAGE",
    ),
    shard: str | None = choice(
        None, "Build part I, from 0, of N, and no release: `merge` writes it.", metavar="I/N"
    ),
) -> Payload:
    """Run every stage that is not up to date; write the release."""
    from echo_hf.builder import build as run
    from echo_hf.cli.build_view import show_partial_build

    if shard is not None:
        others = until or offline or responses or with_responses or allow_empty or dry_run
        if others or again or keep_going or try_:
            raise ConfigError("--shard goes with --runs and --runner: leave other options out")
        return _build_shard(config, shard, runs, runner)
    if dry_run:
        if until is not None or responses or offline or again or try_:
            raise ConfigError(
                "--dry-run asks nobody: leave out --until, --responses, --offline, --again, --try"
            )
        return _show_planned(config, runs)
    if try_ is not None:
        if until or offline or responses or with_responses or allow_empty or again or keep_going:
            raise ConfigError("--try goes with --runs alone: it builds nothing")
        return _show_trial(config, try_, runs)
    if until is not None and (with_responses or allow_empty):
        raise ConfigError("--until writes no release: leave out --with-responses and --allow-empty")
    if again and (offline or responses):
        raise ConfigError("--again asks a model: leave out --offline and --responses")
    options: Payload = {"runs": runs, "offline": offline, "responses": responses, "runner": runner}
    options |= {"again": again, "keep_going": keep_going}
    with open_progress() as watch:
        if until is not None:
            run.run_until(config, until, **options, watch=watch)
            show_partial_build(watch, locate(config, runs))
            return _build_payload(watch)
        options |= {"with_responses": with_responses, "allow_empty": allow_empty}
        release = run.build(config, **options, watch=watch)
    payload = _show_release(watch, release, config, runs=runs)
    _print_next_step(watch, release)
    return payload


def _build_shard(config: Path, part: str, runs: Path | None, runner: str | None) -> Payload:
    from echo_hf.builder.shards import build_shard

    with open_progress() as watch:
        folder, results = build_shard(config, part, runs=runs, runner=runner, watch=watch)
    index, count = map(int, part.split("/"))
    tally = results[0].stats.tally
    posts = f"{tally['posts']:,} of {tally['posts'] + tally['in_other_shards']:,} posts"
    pattern = folder.root.with_name(folder.root.name.replace(f"-{index}-of-", "-*-of-"))
    say(watch.console, f"\npart {index} of {count}: {posts}, in {folder.root}")
    say(watch.console, f"when all parts are done: echo-hf merge {pattern}")
    return _build_payload(watch)


def _show_trial(config: Path, stage: str, runs: Path | None) -> Payload:
    from echo_hf.builder.update import try_stage
    from echo_hf.cli.trial_view import show_trials, trials_as_json

    trials = trials_as_json([try_stage(config, stage, runs=runs)])
    show_trials(make_console(), trials)
    return {"path": None, "trials": trials}


def _build_payload(watch: TerminalProgress) -> Payload:
    return {"path": None, "stages": watch.stats, "samples": None, "unlike_paper": None}


def merge(
    shards: Annotated[
        list[Path], typer.Argument(help="The run folders of all parts, in any order.")
    ],
    runs: Runs = None,
    with_responses: WithResponses = False,
    allow_empty: AllowEmpty = False,
) -> Payload:
    """Merge what `build --shard` built, and write the release."""
    from echo_hf.builder.shards import merge as merged
    from echo_hf.config.runs import relative_to_cwd
    from echo_hf.engines.base import Failed

    with open_progress() as watch:
        options = {"with_responses": with_responses, "allow_empty": allow_empty}
        release = merged(shards, runs=runs, watch=watch, **options)
    config = relative_to_cwd(release.path.parent / "config.yaml")
    # What rules abstain from no call could mend.
    waiting = sum(
        count
        for stage in watch.stats
        for reason, count in stage.quarantined.items()
        if reason != Failed.NEEDS_MODEL
    )
    summary = f"{len(shards):,} runs merged, no model asked"
    if waiting:
        suffix = (
            " --again" if any(count_unusable(stage.quarantined) for stage in watch.stats) else ""
        )
        summary += (
            f"; {waiting:,} rows lack an answer, which `echo-hf build {config}{suffix}` asks for"
        )
    payload = _show_release(watch, release, config, summary)
    _print_next_step(watch, release)
    return {**payload, "not_answered": waiting}


def _show_planned(config: Path, runs: Path | None) -> Payload:
    from echo_hf.builder.update import plan_build
    from echo_hf.cli.evaluation_view import show_stages

    console = make_console()
    posts, planned = plan_build(config, runs=runs)
    tail = "; nothing is left to ask a model" if posts and not planned else ""
    remainder_line = tail if posts else ": run `echo-hf collect` first"
    say(console, f"{pluralize(posts, 'post')}{remainder_line}")
    if planned:
        show_stages(console, planned)
    console.print("nothing was asked: leave out --dry-run to build")
    plans = [{**vars(stage), "cost_usd": stage.expected.cost_usd} for stage in planned]
    return {"path": None, "posts": posts, "plans": plans}


def update(
    config: ConfigArgument,
    runs: Runs = None,
    offline: Offline = False,
    with_responses: WithResponses = False,
    allow_empty: AllowEmpty = False,
    again: Again = False,
    keep_going: KeepGoing = False,
    runner: Runner = None,
) -> Payload:
    """Build from the posts there are now. Compare with the release before."""
    from echo_hf.builder import update as updates
    from echo_hf.cli.build_view import show_change, show_check_changes, show_diff
    from echo_hf.hub.diff import diff as compared

    if again and offline:
        raise ConfigError("--again asks a model: leave out --offline")
    options: Payload = {
        "runs": runs,
        "offline": offline,
        "runner": runner,
        "allow_empty": allow_empty,
    }
    options |= {"again": again, "keep_going": keep_going}
    with open_progress() as watch:
        updated = updates.update(config, **options, with_responses=with_responses, watch=watch)
    del watch.stats[len(updated.stats) :]  # what was asked for checks is no stage
    calls = [f"{pluralize(updated.calls_made, 'call')} made"] if updated.calls_made else []
    calls += (
        [f"{updated.reused_answers:,} answers of earlier runs used again"]
        if updated.reused_answers
        else []
    )
    lines = [", ".join(calls)] if calls else []
    payload = _show_release(watch, updated.release, config, *lines, runs=runs)
    difference = compared(updated.previous, updated.release.path) if updated.previous else None
    if difference is not None:
        say(watch.console, f"the one before: {updated.previous}")
        (show_diff if watch.details else show_change)(watch.console, difference)
    elif not updated.changed:
        watch.console.print("nothing changed: it is the one that was there")
    changes = updated.checks.changes if updated.checks else ()
    show_check_changes(watch.console, changes)
    counts = {
        "calls": updated.calls_made,
        "reused": updated.reused_answers,
        "changed": updated.changed,
        "checks": [change.as_json() for change in changes] if updated.checks else None,
    }
    diff = difference and difference.to_json()
    return {**payload, **counts, "previous": updated.previous, "diff": diff}


def _show_release(
    watch: TerminalProgress, release: Release, config: Path, *lines: str, runs: Path | None = None
) -> Payload:
    from echo_hf.cli.build_view import show_build
    from echo_hf.config.loading import load_config
    from echo_hf.config.paper import find_differences
    from echo_hf.config.runs import relative_to_cwd
    from echo_hf.hub.facts import SAMPLE_CONFIGS

    configs = release.manifest.configs.items()
    rows = {name: entry.rows for name, entry in configs if name in SAMPLE_CONFIGS}
    deviations = find_differences(load_config(config))
    show_build(watch, rows, deviations, config, locate(config, runs))
    if seal := release.manifest.sealed:
        lines = (*lines, f"sealed: {sum(seal.rows.values()):,} samples, in none of these counts")
    for line in (*lines, f"release: {relative_to_cwd(release.path)}"):
        say(watch.console, line)
    unlike = [deviation._asdict() for deviation in deviations]
    return {"path": release.path, "stages": watch.stats, "samples": rows, "unlike_paper": unlike}


def _print_next_step(watch: TerminalProgress, release: Release) -> None:
    from echo_hf.config.runs import relative_to_cwd
    from echo_hf.curate.splits import BENCHMARKS

    configs = release.manifest.configs
    if any(configs[name].rows for name in BENCHMARKS if name in configs):
        run = shlex.quote(str(relative_to_cwd(release.path.parent)))
        if release.manifest.sealed:  # which only its own config asks about
            say(watch.console, f"next: echo-hf eval {run}, with systems and judges in its config")
            return
        say(watch.console, f"next: echo-hf eval {run} --images NAME=FOLDER")


def why(
    config: ConfigArgument,
    stage: Annotated[str | None, typer.Argument(help=f"Only this stage, {LISTED}.")] = None,
    check: str | None = choice(None, "Instead, why this check is kept, fell or went: its NAME."),
    runs: Runs = None,
) -> Payload:
    """Show which stages would run again, and why. --check: why a check has its status."""
    if check is not None:
        return _show_check(config, check, stage, runs)
    from echo_hf.builder import update as reasons
    from echo_hf.builder.build import open_run
    from echo_hf.cli.build_view import show_changes

    console = make_console()
    with open_run(config, runs, writes=False) as run:
        changes = reasons.explain_changes(run, stage)
    show_changes(console, changes)
    if not changes:
        console.print("every result is up to date: nothing would run")
    fields = [dict(zip(change._fields[:-1], change, strict=False)) for change in changes]
    sentences = [{"sentence": change.sentence} for change in changes]
    return {"changes": [{**pair[0], **pair[1]} for pair in zip(fields, sentences, strict=True)]}


def _show_check(config: Path, name: str, stage: str | None, runs: Path | None) -> Payload:
    from echo_hf.cli.checks_view import describe_versions, show_versions
    from echo_hf.systems.evaluation_run import EvaluationRun

    if stage is not None:
        raise ConfigError("a stage and --check are two things: give one at a time")
    checks = EvaluationRun.from_config(config, runs).read_checks()
    versions = [check for check in checks if name in (check.name, check.key)]
    if not versions:
        names = {check.name for check in checks}
        raise ConfigError(unknown("check", name, names, "--check"))
    show_versions(make_console(), versions)
    return {"check": versions[-1].name, "versions": describe_versions(versions)}


def check_engine(
    config: Annotated[
        Path | None, typer.Argument(help="Names engines, options and, for --gold, the target.")
    ] = None,
    engine: str | None = choice(None, "Kind of engine, instead of all that CONFIG names."),
    model: str | None = choice(None, "Its model."),
    gold: Path | None = choice(
        None, "Folder of threads you annotated yourself; else the bundled ones."
    ),
    half: str = choice("held_out", "held_out, tune or all."),
    stage: Names = choice(None, "Only this stage.", "--stage"),
    runs: Runs = None,
    offline: Offline = False,
    errors: bool = flag("--errors", "Show what was wrong; with --half tune only."),
    boxes: bool = flag("--boxes", "Find out how its model names places in an image; nothing else."),
) -> Payload:
    """Measure how well an engine does each stage. Careful readers wrote down what is right."""
    from echo_hf.builder.gold import check
    from echo_hf.cli import build_view
    from echo_hf.config.checks import EngineChoice

    if model is not None and engine is None:
        raise ConfigError("--model is that of --engine: name both")
    model_options = {} if model is None else {"model": model}
    chosen = None if engine is None else EngineChoice(kind=engine, **model_options)
    if boxes:
        if gold is not None or stage or errors:
            raise ConfigError(
                "--boxes draws its own images: leave out --gold, --stage and --errors"
            )
        from echo_hf.builder.gold.boxes import check_boxes

        with open_progress() as watch:
            measured = check_boxes(config, engine=chosen, runs=runs, offline=offline, watch=watch)
        build_view.show_boxes(watch.console, measured)
        return vars(measured)
    options: Payload = {"gold": gold, "half": half, "stages": stage or None, "errors": errors}
    with open_progress() as watch:
        result = check.check_engine(
            config, engine=chosen, **options, runs=runs, offline=offline, watch=watch
        )
    build_view.show_check(watch.console, result)
    build_view.show_errors(watch.console, result)
    return build_view.check_as_json(result)


def review(
    config: ConfigArgument,
    keep: Names = choice(None, "ID of a sample that may be published.", "--keep"),
    remove: Names = choice(None, "ID of a sample to leave out.", "--remove"),
    flag: Names = choice(None, "ID of a sample to leave for somebody else to decide.", "--flag"),
    withdraw: Names = choice(None, "ID of a sample whose decision is withdrawn.", "--withdraw"),
    boxes: str | None = choice(
        None,
        "CONVENTION: cut all screenshots whose boxes wait for it: abs_resized, rel_1000, rel_1 or "
        "rel_1000_yx.",
    ),
    note: str | None = choice(None, "Why, kept with the decisions."),
    reviewer: str | None = choice(None, "Your pseudonym, kept with them."),
    app: bool = flag("--app", "Review in a browser: also prompts, roles and crops."),
    people: Names = choice(
        None,
        "With --app: pseudonym of who may review; may be repeated. auth: as "
        "ECHO_HF_PEOPLE has them, NAME:PASSWORD each. Else everybody may choose one.",
        "--people",
    ),
    host: str = choice("127.0.0.1", "With --app: network address to listen on."),
    port: int = choice(7861, "With --app: its port; 0: any that is free.", min=0, max=65535),
    anyone: bool = flag("--anyone", "With --app: allow review without passwords on another HOST."),
    check: str | None = choice(
        None, "With --app: label outputs by this kept check, as NAME or NAME@VERSION."
    ),
    systems: Names = choice(None, "With --check: only this system; may be repeated.", "--systems"),
    width: float | None = choice(
        None, "With --check: until rates of failures are known to ± this; 0.1 by default."
    ),
    gold: Path | None = choice(
        None, "Write what was kept into this folder, for `check-engine --gold`."
    ),
    runs: Runs = None,
) -> Payload:
    """List samples that need a decision, or decide. --app: in a browser.

    --check: have people answer a check about the outputs of systems.
    """
    from echo_hf.builder import review as reviews
    from echo_hf.builder.gold.export import export_gold
    from echo_hf.cli.build_view import show_open

    console = make_console()
    decisions = {"keep": keep, "remove": remove, "flag": flag, "withdraw": withdraw}
    decided: Payload = {**decisions, "boxes": boxes}
    flags = [f"--{name}" for name, value in {**decided, "app": app, "gold": gold}.items() if value]
    # What would be left undone is refused.
    if len(flags) > 1 and flags[-1] in ("--app", "--gold"):
        raise ReviewError(f"{flags[0]} and {flags[-1]} are two things: give one at a time")
    if (note or reviewer) and not any(decided.values()):
        raise ReviewError(
            "--note and --reviewer go with a decision: add --keep, --remove, --flag, --withdraw or "
            "--boxes"
        )
    if (people or anyone or check) and not app:
        raise ReviewError("--people, --anyone and --check go with --app: add it")
    if (systems or width is not None) and not check:
        raise ReviewError("--systems and --width go with --check: add it")
    if any(decided.values()):
        ids: Payload = {what: names or () for what, names in decisions.items()}
        details: Payload = {"boxes": boxes, "note": note, "reviewer": reviewer}
        decided_samples = reviews.decide(config, **ids, **details, runs=runs)
        for decision in decided_samples:
            say(console, f"{decision.decision}  {decision.id}")
        say(console, f"written down; what makes it count: echo-hf build {locate(config, runs)}")
        return {"decisions": [decision.model_dump(mode="json") for decision in decided_samples]}
    if app:
        from echo_hf.apps.page import ServerAddress, check_apps_installed

        check_apps_installed("`echo-hf review --app`")
        server = ServerAddress(host, port)
    if check is not None:
        from echo_hf.apps.label import DEFAULT_WIDTH, label, open_labels
        from echo_hf.cli.build_view import show_labels

        half_width = DEFAULT_WIDTH if width is None else width
        label_app = open_labels(
            config, check, runs=runs, systems=systems or (), half_width=half_width
        )
        show_labels(console, label_app)

        def announce_labels(address: str) -> None:
            say(console, f"\nopen {address} in a browser; Ctrl-C ends it, nothing is lost")

        try:
            label(
                label_app,
                server=server,
                people=people or (),
                allow_anyone=anyone,
                on_ready=announce_labels,
            )
        finally:
            show_labels(console, label_app)
            say(console, f"what makes them count: echo-hf score {locate(config, runs)}", "dim")
        return {}
    if app:
        from echo_hf.apps.review import open_review
        from echo_hf.apps.review import review as reviewed

        desk = open_review(config, runs=runs)

        def announce(address: str) -> None:
            say(console, f"{len(desk.cases):,} samples to review at {address}")
            say(console, "Ctrl-C ends it; every decision is written down")

        try:
            reviewed(
                desk, server=server, people=people or (), allow_anyone=anyone, on_ready=announce
            )
        finally:
            say(console, f"what makes it count: echo-hf build {locate(config, runs)}")
        return {}
    if gold is not None:
        exported = export_gold(config, gold, runs=runs)
        for line in exported.describe():
            say(console, line)
        return {"path": gold, **vars(exported)}
    open_reviews = reviews.open_reviews(config, runs=runs)
    show_open(console, open_reviews, locate(config, runs))
    return {"path": open_reviews.file, "open": open_reviews.open}


def refresh(
    config: ConfigArgument,
    apply: bool = flag("--apply", "Permanently forget the posts that are gone."),
    platforms: list[str] | None = choice(None, "Only this one; may be repeated.", "--platform"),
    older_than: float = choice(
        24.0, "HOURS: leave out posts that were asked about in this time.", min=0, max=MAX_HOURS
    ),
    budget: float = choice(0.0, "USD: most that platforms may charge for it.", min=0),
    however_many: bool = flag("--however-many", "With --apply: even when most of them are gone."),
    runs: Runs = None,
) -> Payload:
    """Ask platforms which posts no longer exist. --apply forgets those."""
    from echo_hf.builder import refresh as refreshing
    from echo_hf.builder.takedown import forget
    from echo_hf.cli.build_view import show_refresh, show_removal

    with open_progress() as watch:
        refreshed = refreshing.refresh(
            config,
            watch,
            runs=runs,
            only=platforms or (),
            older_than=datetime.timedelta(hours=older_than),
            budget_usd=budget,
        )
    show_refresh(watch.console, refreshed)
    doubtful = [platform.platform for platform in refreshed.platforms if platform.is_doubtful]
    if apply and doubtful and not however_many:
        raise RunError(
            f"most posts of {doubtful[0]} are said to be gone: check its key and whether it is "
            "well, and add --however-many if that is so; nothing was forgotten"
        )
    removal = forget(refreshed.gone, config, runs=runs) if apply and refreshed.gone else None
    if removal is not None:
        show_removal(watch.console, removal, locate(config, runs))
    elif refreshed.gone:
        command = f"echo-hf refresh {locate(config, runs)} --apply"
        next_step = f"next: {command} takes {len(refreshed.gone):,} posts out for good"
        watch.console.print(next_step, soft_wrap=True)
    return {"platforms": refreshed.platforms, "unasked": refreshed.unasked, "forgotten": removal}
