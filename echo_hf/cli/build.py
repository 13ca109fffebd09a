"""Verbs that build a benchmark: ask for posts, run stages, check engines, review samples."""

from __future__ import annotations

import datetime
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from echo_hf._infra.console import say, terminal
from echo_hf._infra.text import counted
from echo_hf.builder.steps import STAGES
from echo_hf.cli.verb import (
    Again,
    ConfigFile,
    KeepGoing,
    Runner,
    Runs,
    Told,
    choice,
    flag,
    option,
    placed,
    watching,
)
from echo_hf.errors import ConfigError, ReviewError, RunError
from echo_hf.reasons import Failed, unusable_in

if TYPE_CHECKING:
    from echo_hf.cli.progress import Watch
    from echo_hf.hub.release import Release

Offline = Annotated[bool, option("--offline", "Ask no model: use stored answers only.")]
WithResponses = Annotated[
    bool, option("--with-responses", "Let the release carry the answers, for replay.")
]
AllowEmpty = Annotated[
    bool, option("--allow-empty", "Write the release even where the benchmark has no sample.")
]
Names = list[str] | None
MOST_HOURS = 1_000_000.0  # a century; there is no time before the year 1


def collect(
    config: ConfigFile,
    runs: Runs = None,
    offline: bool = flag("--offline", "Make no requests: read what is there already."),
    plan: bool = flag("--plan", "Only print what would be asked, and what it costs."),
    every: bool = flag("--all", "With --plan: each query on a line of its own."),
    estimate: bool = flag("--estimate", "With --plan: ask for numbers of posts even if it costs."),
    keywords: bool = flag("--keywords", "Only show what each search term brought, once scored."),
) -> Told:
    """Ask platforms for posts, read files, merge duplicates."""
    from echo_hf.builder import build as run
    from echo_hf.builder.search_yield import write_yields
    from echo_hf.cli.build_view import show_crawled, show_plan, show_until, show_yields
    from echo_hf.collect.crawl import as_json, crawl_posts, planned_queries, searches
    from echo_hf.config.loading import load_config
    from echo_hf.pipeline.runs import run_folder

    if (every or estimate) and not plan:
        raise ConfigError("--all and --estimate go with --plan: add it")
    if plan and keywords:
        raise ConfigError("--plan and --keywords are two things: give one at a time")
    if keywords:
        written = write_yields(config, runs=runs)
        show_yields(terminal(), written)
        figures = json.loads(written.figures.read_bytes())
        return {"path": written.figures, "plot": written.plot, **figures}
    loaded = load_config(config)
    asked, folder = searches(loaded), run_folder(loaded, runs)
    if plan and not asked:
        raise ConfigError(f"{str(config)!r} has no search among its posts: nobody would be asked")
    with watching() as watch:
        if plan:
            now, noticed = datetime.datetime.now(datetime.UTC), watch.noticed
            queries = list(
                planned_queries(loaded, folder.root, now, estimate=estimate, noticed=noticed)
            )
        else:
            if asked and not offline:
                show_crawled(watch.console, crawl_posts(loaded, folder, watch))
            run.run_until(loaded, "collect", runs=runs, offline=offline, watch=watch)
            show_until(watch, placed(config, runs))
            return {"path": None, "stages": watch.stats}
    show_plan(watch.console, queries, asked, every=every)
    return {"queries": list(map(as_json, queries))}


def build(
    config: ConfigFile,
    until: str | None = choice(
        None, f"Stop after this stage: {', '.join(STAGES)}.", metavar="STAGE"
    ),
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
) -> Told:
    """Run every stage that is not up to date; write the release."""
    from echo_hf.builder import build as run
    from echo_hf.cli.build_view import show_until

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
    how: Told = {"runs": runs, "offline": offline, "responses": responses, "runner": runner}
    how |= {"again": again, "keep_going": keep_going}
    with watching() as watch:
        if until is not None:
            run.run_until(config, until, **how, watch=watch)
            show_until(watch, placed(config, runs))
            return _told(watch)
        how |= {"with_responses": with_responses, "allow_empty": allow_empty}
        release = run.build(config, **how, watch=watch)
    told = _show_release(watch, release, config, runs=runs)
    _say_next(watch, release)
    return told


def _build_shard(config: Path, part: str, runs: Path | None, runner: str | None) -> Told:
    from echo_hf.builder.shards import build_shard

    with watching() as watch:
        folder, results = build_shard(config, part, runs=runs, runner=runner, watch=watch)
    index, count = map(int, part.split("/"))
    tally = results[0].stats.tally
    posts = f"{tally['posts']:,} of {tally['posts'] + tally['in_other_shards']:,} posts"
    every = folder.root.with_name(folder.root.name.replace(f"-{index}-of-", "-*-of-"))
    say(watch.console, f"\npart {index} of {count}: {posts}, in {folder.root}")
    say(watch.console, f"when all parts are done: echo-hf merge {every}")
    return _told(watch)


def _show_trial(config: Path, stage: str, runs: Path | None) -> Told:
    from echo_hf.builder.update import try_stage
    from echo_hf.cli.trial_view import show_trials, trials_json

    trials = trials_json([try_stage(config, stage, runs=runs)])
    show_trials(terminal(), trials)
    return {"path": None, "trials": trials}


def _told(watch: Watch) -> Told:
    return {"path": None, "stages": watch.stats, "samples": None, "unlike_paper": None}


def merge(
    shards: Annotated[
        list[Path], typer.Argument(help="The run folders of all parts, in any order.")
    ],
    runs: Runs = None,
    with_responses: WithResponses = False,
    allow_empty: AllowEmpty = False,
) -> Told:
    """Merge what `build --shard` built, and write the release."""
    from echo_hf.builder.shards import merge as merged
    from echo_hf.config.runs import shown

    with watching() as watch:
        wanted = {"with_responses": with_responses, "allow_empty": allow_empty}
        release = merged(shards, runs=runs, watch=watch, **wanted)
    config = shown(release.path.parent / "config.yaml")
    # What rules abstain from no call could mend.
    waiting = sum(
        count
        for one in watch.stats
        for reason, count in one.quarantined.items()
        if reason != Failed.NEEDS_MODEL
    )
    said = f"{len(shards):,} runs merged, no model asked"
    if waiting:
        again = " --again" if any(unusable_in(one.quarantined) for one in watch.stats) else ""
        said += f"; {waiting:,} rows lack an answer, which `echo-hf build {config}{again}` asks for"
    told = _show_release(watch, release, config, said)
    _say_next(watch, release)
    return {**told, "not_answered": waiting}


def _show_planned(config: Path, runs: Path | None) -> Told:
    from echo_hf.builder.update import planned_build
    from echo_hf.cli.evaluation_view import show_stages

    console = terminal()
    posts, planned = planned_build(config, runs=runs)
    asked = "; nothing is left to ask a model" if posts and not planned else ""
    said = asked if posts else ": run `echo-hf collect` first"
    say(console, f"{counted(posts, 'post')}{said}")
    if planned:
        show_stages(console, planned)
    console.print("nothing was asked: leave out --dry-run to build")
    plans = [{**vars(one), "cost_usd": one.expected.cost_usd} for one in planned]
    return {"path": None, "posts": posts, "plans": plans}


def update(
    config: ConfigFile,
    runs: Runs = None,
    offline: Offline = False,
    with_responses: WithResponses = False,
    allow_empty: AllowEmpty = False,
    again: Again = False,
    keep_going: KeepGoing = False,
    runner: Runner = None,
) -> Told:
    """Build from the posts there are now. Compare with the release before."""
    from echo_hf.builder import update as updates
    from echo_hf.cli.build_view import show_change, show_diff
    from echo_hf.hub.diff import diff as compared

    if again and offline:
        raise ConfigError("--again asks a model: leave out --offline")
    how: Told = {"runs": runs, "offline": offline, "runner": runner, "allow_empty": allow_empty}
    how |= {"again": again, "keep_going": keep_going}
    with watching() as watch:
        done = updates.update(config, **how, with_responses=with_responses, watch=watch)
    calls = [f"{counted(done.asked, 'call')} made"] if done.asked else []
    calls += [f"{done.reused:,} answers of earlier runs used again"] if done.reused else []
    said = [", ".join(calls)] if calls else []
    told = _show_release(watch, done.release, config, *said, runs=runs)
    difference = compared(done.previous, done.release.path) if done.previous else None
    if difference is not None:
        say(watch.console, f"the one before: {done.previous}")
        (show_diff if watch.details else show_change)(watch.console, difference)
    elif not done.changed:
        watch.console.print("nothing changed: it is the one that was there")
    counts = {"calls": done.asked, "reused": done.reused, "changed": done.changed}
    diff = difference and difference.as_json()
    return {**told, **counts, "previous": done.previous, "diff": diff}


def _show_release(
    watch: Watch, release: Release, config: Path, *lines: str, runs: Path | None = None
) -> Told:
    from echo_hf.cli.build_view import show_built
    from echo_hf.config.loading import load_config
    from echo_hf.config.paper import differences
    from echo_hf.config.runs import shown
    from echo_hf.hub.facts import SAMPLE_CONFIGS

    configs = release.manifest.configs.items()
    rows = {name: entry.rows for name, entry in configs if name in SAMPLE_CONFIGS}
    unlike = differences(load_config(config))
    show_built(watch, rows, unlike, config, placed(config, runs))
    for line in (*lines, f"release: {shown(release.path)}"):
        say(watch.console, line)
    told = [one._asdict() for one in unlike]
    return {"path": release.path, "stages": watch.stats, "samples": rows, "unlike_paper": told}


def _say_next(watch: Watch, release: Release) -> None:
    from echo_hf.config.runs import shown
    from echo_hf.curate.splits import BENCHMARKS

    configs = release.manifest.configs
    if any(configs[name].rows for name in BENCHMARKS if name in configs):
        run = shlex.quote(str(shown(release.path.parent)))
        say(watch.console, f"next: echo-hf eval {run} --images NAME=FOLDER")


def why(
    config: ConfigFile,
    stage: Annotated[
        str | None, typer.Argument(help=f"Only this stage: {', '.join(STAGES)}.")
    ] = None,
    runs: Runs = None,
) -> Told:
    """Show which stages would run again, and why."""
    from echo_hf.builder import update as reasons
    from echo_hf.builder.build import opened
    from echo_hf.cli.build_view import show_changes

    console = terminal()
    with opened(config, runs, writes=False) as run:
        changes = reasons.why(run, stage)
    show_changes(console, changes)
    if not changes:
        console.print("every result is up to date: nothing would run")
    return {"changes": [{**one._asdict(), "sentence": one.sentence} for one in changes]}


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
) -> Told:
    """Measure how well an engine does each stage. Careful readers wrote down what is right."""
    from echo_hf.builder.gold import check
    from echo_hf.cli import build_view
    from echo_hf.config.checks import EngineChoice

    if model is not None and engine is None:
        raise ConfigError("--model is that of --engine: name both")
    options = {} if model is None else {"model": model}
    chosen = None if engine is None else EngineChoice(kind=engine, **options)
    if boxes:
        if gold is not None or stage or errors:
            raise ConfigError(
                "--boxes draws its own images: leave out --gold, --stage and --errors"
            )
        from echo_hf.builder.gold.boxes import check_boxes

        with watching() as watch:
            found = check_boxes(config, engine=chosen, runs=runs, offline=offline, watch=watch)
        build_view.show_boxes(watch.console, found)
        return vars(found)
    how: Told = {"gold": gold, "half": half, "stages": stage or None, "errors": errors}
    with watching() as watch:
        result = check.check_engine(
            config, engine=chosen, **how, runs=runs, offline=offline, watch=watch
        )
    build_view.show_check(watch.console, result)
    build_view.show_errors(watch.console, result)
    return build_view.as_json(result)


def review(
    config: ConfigFile,
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
    gold: Path | None = choice(
        None, "Write what was kept into this folder, for `check-engine --gold`."
    ),
    runs: Runs = None,
) -> Told:
    """List samples that need a decision, or decide. --app: in a browser."""
    from echo_hf.builder import review as reviews
    from echo_hf.builder.gold.export import export_gold
    from echo_hf.cli.build_view import show_open

    console = terminal()
    named = {"keep": keep, "remove": remove, "flag": flag, "withdraw": withdraw}
    decided: Told = {**named, "boxes": boxes}
    asked = [f"--{name}" for name, value in {**decided, "app": app, "gold": gold}.items() if value]
    # What would be left undone is refused.
    if len(asked) > 1 and asked[-1] in ("--app", "--gold"):
        raise ReviewError(f"{asked[0]} and {asked[-1]} are two things: give one at a time")
    if (note or reviewer) and not any(decided.values()):
        raise ReviewError(
            "--note and --reviewer go with a decision: add --keep, --remove, --flag, --withdraw or "
            "--boxes"
        )
    if (people or anyone) and not app:
        raise ReviewError("--people and --anyone go with --app: add it")
    if any(decided.values()):
        about: Told = {what: names or () for what, names in named.items()}
        said: Told = {"boxes": boxes, "note": note, "reviewer": reviewer}
        made = reviews.decide(config, **about, **said, runs=runs)
        for one in made:
            say(console, f"{one.decision}  {one.id}")
        say(console, f"written down; what makes it count: echo-hf build {placed(config, runs)}")
        return {"decisions": [one.model_dump(mode="json") for one in made]}
    if app:
        from echo_hf.apps.page import Place, check_installed
        from echo_hf.apps.review import desk_of
        from echo_hf.apps.review import review as reviewed

        check_installed("`echo-hf review --app`")
        desk = desk_of(config, runs=runs)

        def ready(address: str) -> None:
            say(console, f"{len(desk.cases):,} samples to review at {address}")
            say(console, "Ctrl-C ends it; every decision is written down")

        try:
            place = Place(host, port)
            reviewed(desk, place=place, people=people or (), anyone=anyone, ready=ready)
        finally:
            say(console, f"what makes it count: echo-hf build {placed(config, runs)}")
        return {}
    if gold is not None:
        exported = export_gold(config, gold, runs=runs)
        for line in exported.told():
            say(console, line)
        return {"path": gold, **vars(exported)}
    found = reviews.open_reviews(config, runs=runs)
    show_open(console, found, placed(config, runs))
    return {"path": found.file, "open": found.open}


def refresh(
    config: ConfigFile,
    apply: bool = flag("--apply", "Permanently forget the posts that are gone."),
    platforms: list[str] | None = choice(None, "Only this one; may be repeated.", "--platform"),
    older_than: float = choice(
        24.0, "HOURS: leave out posts that were asked about in this time.", min=0, max=MOST_HOURS
    ),
    budget: float = choice(0.0, "USD: most that platforms may charge for it.", min=0),
    however_many: bool = flag("--however-many", "With --apply: even when most of them are gone."),
    runs: Runs = None,
) -> Told:
    """Ask platforms which posts no longer exist. --apply forgets those."""
    from echo_hf.apps.takedown import forget
    from echo_hf.builder import refresh as refreshing
    from echo_hf.cli.build_view import show_refresh, show_removal

    with watching() as watch:
        done = refreshing.refresh(
            config,
            watch,
            runs=runs,
            only=platforms or (),
            older_than=datetime.timedelta(hours=older_than),
            budget_usd=budget,
        )
    show_refresh(watch.console, done)
    doubtful = [one.platform for one in done.platforms if one.is_doubtful]
    if apply and doubtful and not however_many:
        raise RunError(
            f"most posts of {doubtful[0]} are said to be gone: check its key and whether it is "
            "well, and add --however-many if that is so; nothing was forgotten"
        )
    removal = forget(done.gone, config, runs=runs) if apply and done.gone else None
    if removal is not None:
        show_removal(watch.console, removal, placed(config, runs))
    elif done.gone:
        command = f"echo-hf refresh {placed(config, runs)} --apply"
        said = f"next: {command} takes {len(done.gone):,} posts out for good"
        watch.console.print(said, soft_wrap=True)
    return {"platforms": done.platforms, "unasked": done.unasked, "forgotten": removal}
