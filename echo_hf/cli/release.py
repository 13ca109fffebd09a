"""Verbs for releases: publish, compare, complete and take back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from echo_hf._infra.console import say, terminal
from echo_hf.cli.verb import DEFAULT_RUNS, ConfigFile, Runs, Told, choice, flag, option, watching
from echo_hf.errors import HubError


def publish(
    release: Annotated[Path, typer.Argument(help="Folder of a release, as `build` writes it.")],
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
) -> Told:
    """Publish a release on the Hub: one commit, then its tag. Sign in with `hf auth login`."""

    from echo_hf.hub import publish as hub

    console = terminal()
    published = hub.publish(
        release,
        repo_id,
        tag,
        previous=previous,
        create_pr=create_pr,
        private=private,
        message=message,
        allow_rules=allow_rules,
        allow_unscreened=allow_unscreened,
        progress=lambda step: console.print(Text(step, "dim"), soft_wrap=True),
    )
    say(console, hub.summary(published))
    return vars(published)


def diff(
    a: Annotated[str, typer.Argument(help="The first release: folder or ORG/NAME@TAG.")],
    b: Annotated[str, typer.Argument(help="Another one.")],
) -> Told:
    """Compare two releases: samples, causes, drift, scores."""
    from echo_hf.cli.release_view import show_diff
    from echo_hf.hub import diff as releases

    found = releases.diff(a, b)
    show_diff(terminal(), found)
    return found.as_json()


def hydrate(
    release: Annotated[Path, typer.Argument(help="Folder of a release with content left out.")],
    to: Annotated[Path, option(None, "Folder for the release with the content put back.")],
    posts: list[Path] | None = choice(None, "File with posts; may be repeated."),
    source: str = choice("jsonl", "How the files of posts are read."),
    pictures: Path | None = choice(None, "Folder with further images, whatever they are called."),
    fetch: bool = flag("--fetch", "Fetch other images from their addresses."),
) -> None:
    """Restore what a platform's terms keep out of a release."""
    from echo_hf.config.collection import FetchPolicy
    from echo_hf.config.sections import Posts
    from echo_hf.hub import hydrate as hydrating
    from echo_hf.hub.hydrate import show_hydration

    paths: list[Path | None] = [*posts] if posts else [None]
    files = [Posts.model_construct(source=source, path=path) for path in paths]
    policy = FetchPolicy() if fetch else None
    with watching() as watch:
        hydration = hydrating.hydrate(
            release,
            to,
            files,
            images=pictures,
            fetch=policy,
            progress=lambda stats: watch.advanced("pictures", stats.done, stats, stats.total),
        )
    show_hydration(watch.console, hydration)
    say(watch.console, f"\nrelease: {hydration.release.path}")


def leaderboard(
    repo_id: Annotated[str, option(None, "Dataset whose results it shows: ORG/NAME.")],
    space: str | None = choice(None, "The Space to make: ORG/NAME."),
    folder: Path | None = choice(None, "Only write the Space's files, into this folder."),
    private: bool = flag("--private", "Make a new Space a private one."),
) -> None:
    """Make a Space on the Hub that shows a dataset's results."""

    from echo_hf.hub import leaderboard as spaces

    if folder is not None:
        said = f"written: {spaces.write_space(repo_id, folder)}"
    elif space is not None:
        said = f"leaderboard: {spaces.create_space(repo_id, space, private=private)}"
    else:
        raise HubError("nothing says where the leaderboard goes: give --space, or --folder")
    say(terminal(), said)


def forget(
    config: ConfigFile,
    urls: Annotated[list[str], typer.Argument(help="Addresses of posts.")],
    repo_id: str | None = choice(None, "ORG/NAME on the Hub: say which tags still hold them."),
    delete_tags: bool = flag("--delete-tags", "Delete those tags, with --repo-id."),
    runs: Runs = DEFAULT_RUNS,
) -> None:
    """Permanently remove posts from a run, and all made of them."""
    from echo_hf.cli import posts_view
    from echo_hf.cli.release_view import show_holding

    if delete_tags and not repo_id:
        raise HubError("--delete-tags needs --repo-id ORG/NAME: whose tags?")
    console = terminal()
    taken = posts_view.forget(urls, config, runs=runs)
    posts_view.show_removal(console, taken, config)
    if repo_id:
        show_holding(console, repo_id, taken.urls, delete=delete_tags)
