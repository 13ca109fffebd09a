"""The quickstart: build the bundled benchmark, load it back as a user would, show one thread."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from echo_hf._infra.console import MORE, say
from echo_hf._infra.text import plain
from echo_hf.builder.steps import STAGES
from echo_hf.config.runs import runs_folder, shown
from echo_hf.config.systems import shipped_config
from echo_hf.judging.board import show_scores, show_win_rates
from echo_hf.pipeline.progress import LOG, ProgressListener

RECORD = "quickstart.json"
# What reading alone changes.
PASSING = {"__pycache__", "cache", ".lock", "answers.sqlite", "fetched.sqlite", RECORD}
PASSING |= {LOG, f"{LOG}.1"}
JUDGE = "drawn_truth"
UNRATED = {"unsupported": "no image was drawn for the task"}
ANSWERED = "no model was asked: a person wrote the answers down with the posts (answers.jsonl)"
NEXT = """
what to do next
  {why}
      which stages would run again, and what changed since they last did
  echo-hf init benchmark mine
      a config for your own posts, target and engine
  echo-hf init comparison mine
      a config that compares your own images

  from datasets import load_dataset
  load_dataset("{release}", "text_to_image", split="test")
"""


class Screen(Protocol):
    """A progress listener that shows a build in a terminal."""

    console: Console
    details: bool

    def show_stage(self, stats: Any, aside: Sequence[pa.Table]) -> None: ...

    def headlines(self) -> list[str]: ...


def show(screen: Screen, runs: Path | None = None) -> None:
    """Builds the bundled benchmark and shows what happened; an unchanged run from its files."""
    place = runs_folder(None, runs)
    console, run = screen.console, place / shipped_config().stem
    made = _unchanged(run)
    if made is None:
        made = _made(screen, place)
    elif screen.details:
        _show_stages(screen, run)
    if not screen.details:
        _show_shortly(console, run, made)
        return
    console.print()
    for sentence in made["headlines"]:
        console.print(Text(sentence))
    console.print()
    console.print(ANSWERED, soft_wrap=True)
    for config, rows in made["loaded"].items():
        console.print(f"loaded back: {rows} rows of {config}")
    thread, samples = telling_thread(run)
    console.print()
    console.print(thread_beside_samples(thread, samples, console.width))
    console.print("four drawn stand-ins for image systems\n")
    show_scores(console, run / "results.json")
    console.print(rating_note(pq.ParquetFile(run / "ratings.parquet").read()), soft_wrap=True)
    console.print(f"report: {run / 'report' / 'index.html'} ({made['report']})", soft_wrap=True)
    why = ["echo-hf", "why", str(shown(shipped_config()))]
    why += [] if runs is None else ["--runs", str(runs)]
    said = NEXT.format(release=shown(run.resolve() / "release"), why=shlex.join(why))
    console.print(said, soft_wrap=True)


def _show_shortly(console: Console, run: Path, made: Mapping[str, Any]) -> None:
    """Posts and what became of them, one task beside the posts it is made of, boards, what next."""
    counts = {name: _stats(run, name)["kept"] for name in ("collect", "threads", "splits")}
    tasks = " and ".join(f"{rows} {config}" for config, rows in made["loaded"].items())
    say(
        console,
        f"{counts['collect']} invented posts → {counts['threads']} threads → "
        f"{counts['splits']} samples → {tasks} tasks",
        "bold",
    )
    console.print()
    thread, samples = telling_thread(run)
    sample = next(sample for sample in samples if len(sample["post_urls"]) > 1)
    posts = [post for post in thread["posts"] if post["url"] in sample["post_urls"]]
    posts = sorted(posts, key=lambda post: post["depth"])
    parts = {("reply" if post["depth"] else "post"): _post(post) for post in posts}
    parts |= {"prompt": Text(plain(sample["prompt"], 400), "bold")}
    for name, text in parts.items():
        line = Text.assemble((f"{name:<8}", "dim"), text)
        line.truncate(console.width, overflow="ellipsis")
        console.print(line)
    console.print()
    lacks = show_win_rates(console, run / "results.json")
    say(
        console,
        f"the systems are drawings with known faults; {JUDGE} rates by what is known",
        "dim",
    )
    console.print()
    say(console, f"open    {run / 'report' / 'index.html'}")
    say(console, "next    echo-hf init benchmark mine     a config for your own posts and engine")
    say(console, "        echo-hf init comparison mine    a config that compares your own images")
    if lacks:
        say(console, f"{lacks}: {MORE}", "dim")


def _stats(run: Path, stage: str) -> dict[str, Any]:
    stats: dict[str, Any] = json.loads((run / "stages" / stage / "stats.json").read_text("utf-8"))
    return stats


def _made(screen: Screen, runs: Path) -> dict[str, Any]:
    from echo_hf.builder.build import opened
    from echo_hf.curate.splits import BENCHMARKS
    from echo_hf.judging.score import score
    from echo_hf.quickstart.systems import rated
    from echo_hf.report.markup import plural
    from echo_hf.report.report import report

    with opened(shipped_config(), runs, watch=cast("ProgressListener", screen)) as pipeline:
        results, folder = list(pipeline.results(STAGES[-1])), pipeline.folder
        pipeline.release(results)  # for scores and report; outputs are not there yet
        rated(folder)
        score(shipped_config(), runs=runs)
        written = report(shipped_config(), runs=runs)
        release = pipeline.release(results)
    held = f"{plural(written.samples, 'sample')}, {plural(written.images, 'image')}"
    loaded = {
        config: sum(
            pq.ParquetFile(one).read().num_rows for one in (release.path / config).glob("*.parquet")
        )
        for config in BENCHMARKS
    }
    made = {"headlines": screen.headlines(), "loaded": loaded, "report": held}
    record = {**made, "of": _state(folder.root)}
    (folder.root / RECORD).write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    return made


def _unchanged(run: Path) -> dict[str, Any] | None:
    try:
        record: dict[str, Any] = json.loads((run / RECORD).read_text("utf-8"))
        return record if record["of"] == _state(run) else None
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _state(run: Path) -> str:
    """Of what a run is made and what it holds: code, corpus, packages, settings, its files."""
    known: list[object] = [sys.version]
    for folder in (Path(__file__).parents[1], shipped_config().parent, run):
        for path in sorted(folder.rglob("*")):
            if not PASSING & set(path.relative_to(folder).parts) and path.is_file():
                found = path.stat()
                known.append((str(path), found.st_size, found.st_mtime_ns))
    known += sorted(name for name in os.environ.items() if name[0].startswith("ECHO_HF_"))
    known += sorted({one.name for place in sys.path for one in Path(place).glob("*.dist-info")})
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()


def _show_stages(screen: Screen, run: Path) -> None:
    for name in STAGES:
        folder, stats = run / "stages" / name, _stats(run, name)
        stats["fill"] = SimpleNamespace(**stats["fill"])
        parts = ("rejects", "quarantine", "notices")
        aside = [pq.ParquetFile(folder / f"{part}.parquet").read() for part in parts]
        screen.show_stage(SimpleNamespace(**stats), aside)


def rating_note(ratings: pa.Table) -> str:
    """Why outputs have no rating, and what the judge knows."""
    outcomes = ratings.filter(pc.is_null(ratings["rating"]))["outcome"].unique().to_pylist()
    reasons = [f"{one} ({UNRATED[one]})" if one in UNRATED else one for one in sorted(outcomes)]
    unrated = f"not rated: {', '.join(reasons)}; " if reasons else ""
    return f"{unrated}{JUDGE} only knows these posts"


def telling_thread(run: Path) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """The thread that shows most of what happens: prompt, images and feedback across posts."""
    threads = pq.ParquetFile(run / "stages" / "threads" / "kept.parquet").read().to_pylist()
    samples = pq.ParquetFile(run / "stages" / "privacy" / "kept.parquet").read().to_pylist()
    home = {post["url"]: thread["root_url"] for thread in threads for post in thread["posts"]}
    by_root: dict[str, list[Mapping[str, Any]]] = {}
    for sample in samples:
        by_root.setdefault(home[sample["post_urls"][0]], []).append(sample)

    def worth(thread: Mapping[str, Any]) -> tuple[int, int, int]:
        every = by_root.get(thread["root_url"], [])
        good = [sample for sample in every if sample["quality"] == "Benchmark"]
        across = sum(len(sample["post_urls"]) > 1 for sample in good)
        said = sum(len(sample["community_feedback"]) for sample in good)
        return across, said, -len(thread["posts"])

    best = max(threads, key=worth)
    return best, by_root.get(best["root_url"], [])


def thread_beside_samples(
    thread: Mapping[str, Any], samples: Sequence[Mapping[str, Any]], width: int
) -> RenderableType:
    """One thread as a tree, and the samples it became."""
    half = width // 2 - 1 if width >= 100 else width
    left = Panel(_tree(thread), title="one thread", width=half, border_style="dim")
    right = Panel(Group(*map(_sample, samples)), title="became", width=half, border_style="dim")
    return Columns([left, right], padding=(0, 1)) if width >= 100 else Group(left, right)


def _tree(thread: Mapping[str, Any]) -> Tree:
    root, *others = thread["posts"]
    nodes = [Tree(_post(root), guide_style="dim")]
    for post in others:
        nodes.append(nodes[post["parent"]].add(_post(post)))
    return nodes[0]


def _post(post: Mapping[str, Any]) -> Text:
    if post["missing"]:
        return Text(f"({post['missing'].replace('_', ' ')})", "dim italic")
    images = len(post["pictures"])
    shown = f" [{images} image{'s' if images > 1 else ''}]" if images else ""
    author = Text(plain(post["author"], 24) + ": ", "bold")
    return author.append(plain(post["text"]), "not bold").append(shown, "cyan not bold")


def _sample(sample: Mapping[str, Any]) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    table.add_row("prompt", Text(plain(sample["prompt"], 400), "bold"))
    table.add_row("quality", sample["quality"])
    table.add_row("modified", "yes" if sample["prompt_modified"] else "no")
    table.add_row("inputs", str(len(sample["input_images"])))
    table.add_row("outputs", str(len(sample["output_images"])))
    for said in sample["community_feedback"]:
        table.add_row("feedback", Text(plain(said["feedback"]), "italic"))
    table.add_row("id", Text(sample["id"], "dim"))
    return table
