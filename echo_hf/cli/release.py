"""Verbs for releases: publish, compare, complete and take back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from echo_hf._infra.console import make_console, say
from echo_hf.cli.verb import (
    ConfigArgument,
    PartlyDoneError,
    Payload,
    Runs,
    call_verb,
    choice,
    flag,
    locate,
    open_progress,
    option,
)
from echo_hf.errors import ConfigError, EchoError, HubError


def publish(
    release: Annotated[
        Path, typer.Argument(help="Folder of a release, as `build` writes it; or a run or config.")
    ],
    repo_id: Annotated[str, option(None, "Dataset repository: ORGANISATION/NAME.")],
    tag: Annotated[str, option(None, "Names the revision: one target at one time.")],
    previous: str | None = choice(
        None, "The revision before: folder or ORG/NAME@TAG. The card says what changed."
    ),
    create_pr: bool = flag("--create-pr", "Only propose it; the tag comes when it is merged."),
    private: bool = flag("--private", "Make a new repository a private one."),
    message: str | None = choice(None, "What the commit is called."),
    allow_rules: bool = flag("--allow-rules", "Publish what rules or recorded answers have built."),
    allow_unscreened: bool = flag(
        "--allow-unscreened", "Publish samples that no safety model saw."
    ),
    dry_run: bool = flag("--dry-run", "Only list the files, and what would change on the Hub."),
    sealed_to: str | None = choice(
        None, "Private repository, ORGANISATION/NAME, that sealed samples go to first."
    ),
    reveal: str | None = choice(None, "Open the samples that were sealed in this earlier tag."),
    logs: Path | None = choice(
        None, "Config of a scored run on it, whose logs for inspect_ai go to ORG/NAME-logs."
    ),
    runs: Runs = None,
) -> Payload:
    """Publish a release on the Hub: one commit, then its tag. Sign in with `hf auth login`."""
    from echo_hf.hub import publish as hub
    from echo_hf.systems.benchmark import find_release_folder

    console = make_console()
    options: Payload = {"previous": previous, "create_pr": create_pr, "private": private}
    options |= {
        "message": message,
        "allow_rules": allow_rules,
        "allow_unscreened": allow_unscreened,
    }
    progress = partial(say, console, style="dim")
    if dry_run and (sealed_to or reveal or logs):
        name = "--reveal" if reveal else "--sealed-to" if sealed_to else "--logs"
        raise ConfigError(f"--dry-run is about the release as it is now: leave out {name}")
    if create_pr and logs:
        raise ConfigError("--logs go with a tag, which a proposal lacks: leave out one of them")
    if dry_run:
        from echo_hf.cli.build_view import show_publication

        for name in ("create_pr", "private", "message"):  # of what is sent, which is nothing
            del options[name]
        planned = hub.plan_publication(
            find_release_folder(release), repo_id, tag, **options, progress=progress
        )
        show_publication(console, planned)
        return vars(planned)
    options |= {"sealed_to": sealed_to, "reveal": reveal}
    folder = find_release_folder(release)
    with TemporaryDirectory() as exported:
        if logs is not None:
            _export_logs(logs, runs, folder, Path(exported) / "logs")
        published = hub.publish(folder, repo_id, tag, **options, progress=progress)
        say(console, hub.summarize(published))
        payload: Payload = {**vars(published), "logs": None}
        if logs is not None:
            from echo_hf.hub.logs import publish_logs

            payload["logs"] = publish_logs(Path(exported) / "logs", repo_id, tag)
            say(console, f"logs: {payload['logs']}")
    return payload


def _export_logs(config: Path, runs: Path | None, release: Path, folder: Path) -> None:
    """Write the logs of a run on a release, before anything is published."""
    from echo_hf.report.export import export
    from echo_hf.systems.benchmark import Benchmark
    from echo_hf.systems.evaluation_run import EvaluationRun

    judged = EvaluationRun.from_config(config, runs).benchmark.identity()
    own = Benchmark(str(release)).identity()
    if judged["digests"] != own["digests"]:
        raise ConfigError(
            f"--logs {str(config)!r} is of other samples, those of {judged['name']!r}, than the "
            f"release {own['name']!r} has: name the config of a run on this release"
        )
    export(config, folder, to="inspect", runs=runs)


def diff(
    a: Annotated[str, typer.Argument(help="The first release: folder, run or ORG/NAME@TAG.")],
    b: Annotated[str, typer.Argument(help="Another one.")],
) -> Payload:
    """Compare two releases: samples, causes, drift, scores."""
    from echo_hf.cli.build_view import show_diff
    from echo_hf.hub import diff as releases
    from echo_hf.systems.benchmark import find_release_folder

    difference = releases.diff(find_release_folder(a), find_release_folder(b))
    show_diff(make_console(), difference)
    return difference.to_json()


def hydrate(
    release: Annotated[Path, typer.Argument(help="Folder of a release with content left out.")],
    to: Path | None = choice(None, "Folder for the release with the content put back."),
    posts: list[Path] | None = choice(None, "File with posts; may be repeated."),
    source: str = choice("jsonl", "How the files of posts are read."),
    pictures: Path | None = choice(None, "Folder with further images, whatever they are called."),
    fetch: bool = flag("--fetch", "Fetch other images from their addresses."),
    check: bool = flag(
        "--check", "Only check files, and proofs of revealed samples; also of ORG/NAME@TAG."
    ),
) -> None:
    """Restore what a platform's terms keep out of a release."""
    from echo_hf.config.collection import FetchPolicy
    from echo_hf.config.sections import PostsSource
    from echo_hf.hub import hydrate as hydrating
    from echo_hf.hub.hydrate import show_hydration
    from echo_hf.systems.benchmark import find_release_folder

    if check:
        from echo_hf.hub.load import check_release

        if to or posts or pictures or fetch:
            raise ConfigError("--check only looks at a release: leave out the other options")
        counts = check_release(find_release_folder(release))
        lines = [f"{counts.proven:,} revealed samples are the ones that were sealed"]
        for tag, (rows, openings, proven) in counts.tags.items():
            lines.append(f"{proven:,} of {rows:,} under the root of {tag!r}")
            if missing := rows - openings:
                lines.append(f"{missing:,} of these have no proof: they changed since, or are gone")
        if counts.dehydrated:
            lines.append(f"{counts.dehydrated:,} more are left out here, and cannot be checked")
        say(make_console(), "; ".join(lines))
        return
    if to is None:
        raise ConfigError("nothing says where the release goes: name a folder with --to")
    if not posts and source == "jsonl":
        raise ConfigError("nothing says where the posts are: name their file with --posts")
    paths: list[Path | None] = [*posts] if posts else [None]
    files = [PostsSource.model_construct(source=source, path=path) for path in paths]
    with open_progress() as watch:
        hydration = hydrating.hydrate(
            find_release_folder(release),
            to,
            files,
            images=pictures,
            fetch=FetchPolicy() if fetch else None,
            progress=lambda stats: watch.report_progress(
                "pictures", stats.done, stats, stats.total
            ),
        )
    show_hydration(watch.console, hydration)
    say(watch.console, f"\nrelease: {hydration.release.path}")


def schedule(
    config: ConfigArgument,
    on: str | None = choice(None, "github or hf: write the file that has turns taken there."),
    to: Path | None = choice(None, "With --on: the file to write, instead of the usual place."),
    once: bool = flag("--once", "Take one turn, here and now."),
    state: Path | None = choice(
        None, "With --once: folder where runs are kept between turns, such as a mounted bucket."
    ),
    dry_run: bool = flag("--dry-run", "With --once: only show each step, its cost and its time."),
    submissions: bool = flag("--submissions", "List the open submissions of others."),
    accept: int | None = choice(
        None, "Judge the submission of this number, and place it on the board.", min=1
    ),
    budget: float | None = choice(
        None, "With --accept: US dollars after which nobody is asked any more.", min=0
    ),
    runs: Runs = None,
) -> Payload:
    """Keep a benchmark current: collect, build, evaluate, propose."""
    from echo_hf.schedule import turn as loop
    from echo_hf.schedule import written

    if submissions or accept is not None:
        if on or once or to or dry_run or (submissions and accept is not None):
            raise ConfigError("--submissions and --accept go with --state and --runs alone")
        return _handle_submissions(config, accept, budget, {"runs": runs, "state": state})
    if budget is not None:
        raise ConfigError("--budget goes with --accept: leave it out")
    if (on is None) == (not once):
        raise ConfigError("what should take turns? expected --on github, --on hf, or --once")
    if on is not None:
        if state or dry_run:
            raise ConfigError("--state and --dry-run go with --once: leave them out")
        path, todo = written.write_workflow(config, on, to)
        for line in (f"wrote {path}", "once, by hand:", *todo):
            say(make_console(), line)
        return {"path": path, "todo": todo}
    if to is not None:
        raise ConfigError("--to goes with --on: leave it out")
    if dry_run:
        return _plan_turn(config, runs)
    with open_progress() as watch:

        def show_step(step: str, message: str) -> None:
            say(watch.console, f"{step}: {message}", "bold")

        done = loop.turn(config, runs=runs, state=state, watch=watch, on_step=show_step)
    if done.held:
        raise PartlyDoneError(f"nothing was proposed: {'; '.join(done.held)}", vars(done))
    return vars(done)


def _handle_submissions(
    config: Path, number: int | None, budget: float | None, place: Payload
) -> Payload:
    from huggingface_hub.utils.tqdm import disable_progress_bars

    from echo_hf.cli.submission_view import show_open, show_placement
    from echo_hf.schedule import turn as loop

    if number is None:
        listed, failed = loop.list_submissions(config, **place)
        show_open(make_console(), listed, failed)
        rows = [
            {**each.request._asdict(), "commit": each.changes.commit, "state": each.state}
            for each in listed
        ]
        return {"submissions": rows, "failed": failed}
    disable_progress_bars()  # of each file that is looked at
    with open_progress(sums_up_calls=True) as watch:
        done = loop.accept(config, number, budget_usd=budget, watch=watch, **place)
    show_placement(watch.console, done)
    placement = done.placement and done.placement.model_dump(mode="json")
    payload = {**vars(done), "placement": placement}
    if done.placement is None:
        raise PartlyDoneError(
            f"the budget ended before submission {number} was judged: the same command goes on, "
            "with another --budget",
            payload,
        )
    return payload


def submit(
    release: Annotated[
        str, typer.Argument(help="ORG/NAME@TAG; with --to or --dry-run also a folder.")
    ],
    images: Annotated[str, option("--images", "NAME=FOLDER or NAME=FILE.csv, by sample id.")],
    model: str | None = choice(None, "Its model: a repository on the Hub, or a name."),
    developer: str = choice("unknown", "Who made the model."),
    code: str | None = choice(None, "Address of the code that made the outputs: https://..."),
    to: Path | None = choice(None, "Only write the submission, into this folder."),
    dry_run: bool = flag("--dry-run", "Only check and measure; nothing is written or sent."),
) -> Payload:
    """Propose outputs of your system for the board of a release.

    They are checked, cleaned of metadata and measured here; what is sent is a pull request. Nothing
    is judged before a maintainer accepts it.
    """
    from huggingface_hub.utils.tqdm import disable_progress_bars

    from echo_hf.cli.submission_view import show_submission
    from echo_hf.submissions.submit import submit as propose

    disable_progress_bars()  # of each file that is looked at
    with open_progress() as watch:
        options: Payload = {"model": model, "developer": developer, "code": code}
        done = propose(release, images, **options, to=to, dry_run=dry_run, watch=watch)
    show_submission(watch.console, done)
    payload = done.submission.model_dump(mode="json")
    return {"path": done.path, "url": done.url, "submission": payload}


def _plan_turn(config: Path, runs: Path | None) -> Payload:
    from echo_hf.cli.build import build, collect
    from echo_hf.cli.evaluate import checks, eval_
    from echo_hf.collect.crawl import find_searches
    from echo_hf.config.loading import load_config
    from echo_hf.schedule.turn import STEPS, get_schedule

    console, loaded = make_console(), load_config(config)
    options, step_plans = get_schedule(loaded), Payload()
    plans: dict[str, Callable[..., Payload]] = {"update": partial(call_verb, build, dry_run=True)}
    if find_searches(loaded):
        plans["collect"] = partial(call_verb, collect, plan=True)
    if loaded.checks is not None:
        plans["checks"] = partial(call_verb, checks, budget=options.budget_usd, dry_run=True)
    if loaded.systems:
        plans["eval"] = partial(call_verb, eval_, budget=options.budget_usd, dry_run=True)
    for step, description in STEPS.items():
        say(console, f"{step}: {description}", "bold")
        if step in plans:
            try:
                step_plans[step] = plans[step](config=config, runs=runs)
            except EchoError as error:  # what it stands on is yet to be built
                say(console, f"cannot be told yet: {error}", "yellow")
                step_plans[step] = {"unknown": str(error)}
    say(console, f"to {options.repo_id}; nothing was asked: leave out --dry-run for a turn")
    return {"plan": step_plans}


def leaderboard(
    repo_id: str | None = choice(None, "Dataset whose results it shows: ORG/NAME."),
    space: str | None = choice(None, "The Space to make: ORG/NAME."),
    folder: Path | None = choice(None, "Only write the Space's files, into this folder."),
    private: bool = flag("--private", "Make a new Space a private one."),
    hub: bool = flag(
        "--hub", "Show the Hub's own board, and what releases verify; else the Hub's benchmarks."
    ),
) -> Payload:
    """Make a Space that shows results, or read the Hub's board."""
    from echo_hf.hub import leaderboard as spaces

    if hub:
        if folder or space or private:
            raise ConfigError("--hub only reads a board: leave out --space, --folder and --private")
        return _read_hub(repo_id)
    if repo_id is None:
        raise HubError("nothing says whose results it shows: give --repo-id ORG/NAME")
    if folder is None and space is None:
        raise HubError("nothing says where the leaderboard goes: give --space, --folder or --hub")
    if folder is not None:
        path = spaces.write_space(repo_id, folder)
        say(make_console(), f"written: {path}")
        return {"path": path, "url": None}
    space_url = spaces.create_space(repo_id, str(space), private=private)
    say(make_console(), f"leaderboard: {space_url}")
    return {"path": None, "url": space_url}


def _read_hub(repo_id: str | None) -> Payload:
    from echo_hf.cli.hub_board_view import show_benchmarks, show_hub_board
    from echo_hf.hub.hub_board import list_benchmarks, read_hub_board

    console = make_console()
    if repo_id is None:
        benchmarks, others = list_benchmarks()
        show_benchmarks(console, benchmarks, others)
        return {"benchmarks": [listed._asdict() for listed in benchmarks], "others": others}
    board = read_hub_board(repo_id)
    show_hub_board(console, board)
    return {**vars(board), "rows": [vars(row) for row in board.rows]}


def forget(
    config: ConfigArgument,
    urls: Annotated[list[str], typer.Argument(help="Addresses of posts.")],
    repo_id: str | None = choice(None, "ORG/NAME on the Hub: say which tags still hold them."),
    delete_tags: bool = flag("--delete-tags", "Delete those tags, with --repo-id."),
    runs: Runs = None,
) -> None:
    """Permanently remove posts from a run, and all made of them."""
    from echo_hf.builder.takedown import forget as forget_posts
    from echo_hf.cli.build_view import show_holding, show_removal

    if delete_tags and not repo_id:
        raise HubError("--delete-tags needs --repo-id ORG/NAME: whose tags?")
    console = make_console()
    removal = forget_posts(urls, config, runs=runs)
    show_removal(console, removal, locate(config, runs))
    if repo_id:
        show_holding(console, repo_id, removal.urls, delete=delete_tags)
