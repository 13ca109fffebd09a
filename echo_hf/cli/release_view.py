"""Two releases compared, and revisions that still hold posts, in a terminal."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from huggingface_hub import HfApi
from rich.console import Console
from rich.text import Text

from echo_hf._infra.console import plain_table, say
from echo_hf._infra.text import plain
from echo_hf.hub.diff import Cause, ReleaseDiff, StageChange
from echo_hf.hub.remote import MAIN, delete_tags, revisions_holding

MOST_SAMPLES = 5
MOST_MOVERS = 3
MOVED = "what moved most, in points"
COLORS = {"added": "green", "removed": "red", "changed": "yellow", "moved": "yellow"}
REACHABLE = (
    "anyone who knows a commit's hash can load it until the history of the repository is squashed "
    "(huggingface_hub's super_squash_history)"
)


def show_diff(console: Console, difference: ReleaseDiff) -> None:
    console.print(
        Text.assemble((plain(difference.a), "bold"), " → ", (plain(difference.b), "bold"))
    )
    if len(set(difference.targets)) > 1:
        say(console, f"of different targets: {plain(' and '.join(difference.targets))}", "yellow")
    rows = plain_table("config", "before", "now", "", left=[""])
    for name, change in difference.configs.items():
        counts = ("-" if count is None else f"{count:,}" for count in (change.a, change.b))
        rows.add_row(
            Text(plain(name)), *counts, Text("the same rows" if change.equal else "", "dim")
        )
    samples = plain_table("", "count", "which", left=["which"])
    changed = [f"{one.id} ({', '.join(one.columns)})" for one in difference.changed if one.columns]
    moved = [one.id for one in difference.changed if not one.columns]
    named = {"added": difference.added, "removed": difference.removed}
    for kind, ids in {**named, "changed": changed, "moved": moved}.items():
        samples.add_row(Text(kind, COLORS[kind]), f"{len(ids):,}", _listed(ids))
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


def _listed(ids: Sequence[str]) -> Text:
    more = f" and {len(ids) - MOST_SAMPLES:,} more" if len(ids) > MOST_SAMPLES else ""
    return Text(f"{', '.join(map(plain, ids[:MOST_SAMPLES]))}{more}", "dim")


def _stage(change: StageChange) -> str:
    if change.a is None or change.b is None:
        return "only now" if change.a is None else "only before"
    said = ", ".join(change.causes)
    names = [(origin.engine or {}).get("model") for origin in (change.a, change.b)]
    shown = " → ".join(plain(str(name)) for name in names)
    return f"{said}: {shown}" if Cause.MODEL in change.causes and names[0] != names[1] else said


def show_holding(
    console: Console,
    repo_id: str,
    urls: Collection[str],
    *,
    delete: bool = False,
    api: HfApi | None = None,
) -> None:
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
