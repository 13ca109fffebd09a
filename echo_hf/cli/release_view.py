"""Two releases compared, and revisions that still hold posts, in a terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from huggingface_hub import HfApi
from rich.console import Console
from rich.table import Table
from rich.text import Text

from echo_hf._infra.console import plain_table, say
from echo_hf._infra.text import plain
from echo_hf.hub.diff import Cause, Comparability, Drift, Mover, ReleaseDiff, StageChange
from echo_hf.hub.remote import MAIN, delete_tags, revisions_holding

MOST_SAMPLES = 5
MOST_MOVERS = 3
COLORS = {"added": "green", "removed": "red", "changed": "yellow", "moved": "yellow"}


def show_diff(console: Console, difference: ReleaseDiff) -> None:
    """Prints a comparison: samples and causes, stages, drift, scores."""
    console.print(
        Text.assemble((plain(difference.a), "bold"), " → ", (plain(difference.b), "bold"))
    )
    if len(set(difference.targets)) > 1:
        say(console, f"of different targets: {plain(' and '.join(difference.targets))}", "yellow")
    parts = {
        "rows": _configs(difference),
        "samples": _samples(difference),
        "why samples changed": _causes(difference),
        "stages that differ": _stages(difference.stages),
        "drift": _drift(difference),
    }
    for title, part in parts.items():
        if part.row_count:
            say(console, f"\n{title}", "bold")
            console.print(part)
    console.print()
    for line in _scores(difference.scores):
        console.print(line, soft_wrap=True)


def _configs(found: ReleaseDiff) -> Table:
    table = plain_table("config", "before", "now", "", left=[""])
    for name, change in found.configs.items():
        said = "the same rows" if change.equal else ""
        table.add_row(_shown(name), _count(change.a), _count(change.b), Text(said, "dim"))
    return table


def _samples(found: ReleaseDiff) -> Table:
    table = plain_table("", "count", "which", left=["which"])
    changed = [f"{one.id} ({', '.join(one.columns)})" for one in found.changed if one.columns]
    moved = [one.id for one in found.changed if not one.columns]
    named = {"added": found.added, "removed": found.removed, "changed": changed, "moved": moved}
    for kind, ids in named.items():
        table.add_row(Text(kind, COLORS[kind]), f"{len(ids):,}", _listed(ids))
    anew = f"of them {found.remade:,} made again" if found.remade else ""
    table.add_row("equal", f"{found.equal:,}", Text(anew, "dim"))
    return table


def _causes(found: ReleaseDiff) -> Table:
    table = plain_table("cause", "samples", "meaning", left=["meaning"])
    for cause, count in found.causes.items():
        table.add_row(str(cause), f"{count:,}", Text(cause.meaning, "dim"))
    return table


def _stages(changes: Sequence[StageChange]) -> Table:
    table = plain_table("stage", "in what", left=["in what"])
    for change in changes:
        table.add_row(_shown(change.stage), Text(_stage(change)))
    return table


def _stage(change: StageChange) -> str:
    if change.a is None or change.b is None:
        return "only now" if change.a is None else "only before"
    said = ", ".join(change.causes)
    names = [(origin.engine or {}).get("model") for origin in (change.a, change.b)]
    shown = " → ".join(plain(str(name)) for name in names)
    return f"{said}: {shown}" if Cause.MODEL in change.causes and names[0] != names[1] else said


def _drift(found: ReleaseDiff) -> Table:
    last = "what moved most, in points"
    table = plain_table("of", "distance", "before", "now", last, left=[last])
    for name, one in found.drift.items():
        distance = "not counted" if one.distance is None else f"{one.distance:.3f}"
        table.add_row(name, distance, f"{one.a:,}", f"{one.b:,}", _movers(one))
    return table


def _movers(one: Drift) -> Text:
    shown = [_mover(mover) for mover in one.movers[:MOST_MOVERS]]
    return Text(", ").join(shown) if shown else Text("")


def _mover(mover: Mover) -> Text:
    points = 100 * mover.change
    return Text(f"{plain(mover.name)} {points:+.1f}", "green" if points > 0 else "red")


def _scores(scores: Comparability) -> Iterator[Text]:
    for config, shared in scores.configs.items():
        if shared.shared or shared.a or shared.b:
            yield Text.assemble((f"scores on {config}: ", "bold"), scores.verdict(config))


def _listed(ids: Sequence[str]) -> Text:
    more = f" and {len(ids) - MOST_SAMPLES:,} more" if len(ids) > MOST_SAMPLES else ""
    return Text(f"{', '.join(map(plain, ids[:MOST_SAMPLES]))}{more}", "dim")


def _shown(name: str) -> Text:
    return Text(plain(name))


def _count(rows: int | None) -> str:
    return "-" if rows is None else f"{rows:,}"


REACHABLE = (
    "anyone who knows a commit's hash can load it until the history of the repository is squashed "
    "(huggingface_hub's super_squash_history)"
)


def show_holding(
    console: Console,
    repo_id: str,
    urls: Collection[str],
    *,
    delete: bool = False,
    api: HfApi | None = None,
) -> None:
    """Prints the revisions that hold posts."""
    held = revisions_holding(repo_id, urls, api=api)
    for one in held:
        kind = "branch" if one.revision == MAIN else "tag"
        held_in = f"{len(one.samples)} samples and {one.answers} stored answers"
        line = f"{kind} {one.revision} of {repo_id} still holds them in {held_in}"
        say(console, f"{line} (commit {one.commit[:10]})")
    tags = [one.revision for one in held if one.revision != MAIN]
    if delete:
        delete_tags(repo_id, tags, api=api)
        console.print(Text(f"deleted {len(tags)} tags: {', '.join(tags)}".rstrip(": ")))
    elif tags:
        say(console, "next: publish the next release, then the same with --delete-tags")
    if held:
        say(console, REACHABLE)
