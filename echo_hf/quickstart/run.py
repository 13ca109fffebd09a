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

from echo_hf._infra.console import SEE_MORE, say
from echo_hf._infra.text import clean
from echo_hf.config.runs import find_runs_folder, relative_to_cwd
from echo_hf.config.sections import BUILT_IN_STAGES, STAGES
from echo_hf.config.systems import shipped_config
from echo_hf.judging.board import show_scores, show_win_rates
from echo_hf.pipeline.progress import LOG_FILE, ProgressListener

RECORD_FILE = "quickstart.json"
# What reading alone changes.
VOLATILE_NAMES = {"__pycache__", "cache", ".lock", "answers.sqlite", "fetched.sqlite", RECORD_FILE}
VOLATILE_NAMES |= {LOG_FILE, f"{LOG_FILE}.1"}
JUDGE = "drawn_truth"
UNRATED = {"unsupported": "no image was drawn for the task"}
ANSWERS_NOTE = "no model was asked: a person wrote the answers down with the posts (answers.jsonl)"
NEXT_STEPS = """
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


class ConsoleProgress(Protocol):
    """A progress listener that shows a build in a terminal."""

    console: Console
    details: bool

    def show_stage(self, stats: Any, left_out_tables: Sequence[pa.Table]) -> None: ...

    def list_headlines(self) -> list[str]: ...


def show_quickstart(screen: ConsoleProgress, runs: Path | None = None) -> None:
    """Build the bundled benchmark and show the outcome; an unchanged run is read from its files."""
    runs_root = find_runs_folder(None, runs)
    console, run = screen.console, runs_root / shipped_config().stem
    record = _read_unchanged_record(run)
    if record is None:
        record = _build_quickstart(screen, runs_root)
    elif screen.details:
        _show_stages(screen, run)
    if not screen.details:
        _show_summary(console, run, record)
        return
    console.print()
    for sentence in record["headlines"]:
        console.print(Text(sentence))
    console.print()
    console.print(ANSWERS_NOTE, soft_wrap=True)
    for config, rows in record["loaded"].items():
        console.print(f"loaded back: {rows} rows of {config}")
    thread, samples = choose_thread(run)
    console.print()
    console.print(render_thread_and_samples(thread, samples, console.width))
    console.print("four drawn stand-ins for image systems\n")
    show_scores(console, run / "results.json")
    console.print(record["complaints"], soft_wrap=True)
    console.print(describe_unrated(pq.ParquetFile(run / "ratings.parquet").read()), soft_wrap=True)
    console.print(f"report: {run / 'report' / 'index.html'} ({record['report']})", soft_wrap=True)
    why = ["echo-hf", "why", str(relative_to_cwd(shipped_config()))]
    why += [] if runs is None else ["--runs", str(runs)]
    next_steps = NEXT_STEPS.format(
        release=relative_to_cwd(run.resolve() / "release"), why=shlex.join(why)
    )
    console.print(next_steps, soft_wrap=True)


def _show_summary(console: Console, run: Path, record: Mapping[str, Any]) -> None:
    """Print the funnel, one task beside its posts, the boards, and what to do next."""
    counts = {name: _read_stats(run, name)["kept"] for name in ("collect", "threads", "splits")}
    tasks = " and ".join(f"{rows} {config}" for config, rows in record["loaded"].items())
    say(
        console,
        f"{counts['collect']} invented posts → {counts['threads']} threads → "
        f"{counts['splits']} samples → {tasks} tasks",
        "bold",
    )
    console.print()
    thread, samples = choose_thread(run)
    sample = next(sample for sample in samples if len(sample["post_urls"]) > 1)
    posts = [post for post in thread["posts"] if post["url"] in sample["post_urls"]]
    posts = sorted(posts, key=lambda post: post["depth"])
    parts = {("reply" if post["depth"] else "post"): _render_post(post) for post in posts}
    parts |= {"prompt": Text(clean(sample["prompt"], 400), "bold")}
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
    say(console, record["complaints"], "dim")
    console.print()
    say(console, f"open    {run / 'report' / 'index.html'}")
    say(console, "next    echo-hf init benchmark mine     a config for your own posts and engine")
    say(console, "        echo-hf init comparison mine    a config that compares your own images")
    if lacks:
        say(console, f"{lacks}: {SEE_MORE}", "dim")


def _read_stats(run: Path, stage: str) -> dict[str, Any]:
    stats: dict[str, Any] = json.loads((run / "stages" / stage / "stats.json").read_text("utf-8"))
    return stats


def _build_quickstart(screen: ConsoleProgress, runs: Path) -> dict[str, Any]:
    from echo_hf.builder.build import open_run
    from echo_hf.curate.splits import BENCHMARKS
    from echo_hf.judging.score import score
    from echo_hf.quickstart.systems import write_stand_in_outputs
    from echo_hf.report.markup import plural
    from echo_hf.report.report import report

    with open_run(shipped_config(), runs, watch=cast("ProgressListener", screen)) as pipeline:
        results, folder = list(pipeline.results(BUILT_IN_STAGES[-1])), pipeline.folder
        pipeline.release(results)  # for scores and report; outputs are not there yet
        write_stand_in_outputs(folder)
        score(shipped_config(), runs=runs)
        written = report(shipped_config(), runs=runs)
        release = pipeline.release(results)
    contents = f"{plural(written.samples, 'sample')}, {plural(written.images, 'image')}"
    loaded = {
        config: sum(
            pq.ParquetFile(file).read().num_rows
            for file in (release.path / config).glob("*.parquet")
        )
        for config in BENCHMARKS
    }
    record = {"headlines": screen.list_headlines(), "loaded": loaded, "report": contents}
    record["complaints"] = describe_complaints(shipped_config(), runs)
    saved_record = {**record, "of": _compute_state(folder.root)}
    (folder.root / RECORD_FILE).write_text(json.dumps(saved_record, indent=1) + "\n", "utf-8")
    return record


def describe_complaints(config: Path, runs: Path) -> str:
    """Say how many failures people name, and how many more threads a check of one would take."""
    from echo_hf.builder.checks import check_complaints

    groups = check_complaints(config, runs=runs, dry_run=True).groups
    first = groups[0]
    return (
        f"people name {len(groups)} failures, {first.group.keyword} in {len(first.group.threads)} "
        f"threads: a check takes {first.missing.complaint} more, and {first.missing.praise} with "
        "praise"
    )


def _read_unchanged_record(run: Path) -> dict[str, Any] | None:
    try:
        record: dict[str, Any] = json.loads((run / RECORD_FILE).read_text("utf-8"))
        return record if record["of"] == _compute_state(run) else None
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _compute_state(run: Path) -> str:
    """Return a digest of all that a run depends on: code, corpus, packages, settings, files."""
    facts: list[object] = [sys.version]
    for folder in (Path(__file__).parents[1], shipped_config().parent, run):
        for path in sorted(folder.rglob("*")):
            if not VOLATILE_NAMES & set(path.relative_to(folder).parts) and path.is_file():
                file_stat = path.stat()
                facts.append((str(path), file_stat.st_size, file_stat.st_mtime_ns))
    facts += sorted(name for name in os.environ.items() if name[0].startswith("ECHO_HF_"))
    facts += sorted({info.name for place in sys.path for info in Path(place).glob("*.dist-info")})
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _show_stages(screen: ConsoleProgress, run: Path) -> None:
    for name in BUILT_IN_STAGES:
        STAGES.find(name)  # its module says what its reasons mean
        folder, stats = run / "stages" / name, _read_stats(run, name)
        stats["fill"] = SimpleNamespace(**stats["fill"])
        parts = ("rejects", "quarantine", "notices")
        aside = [pq.ParquetFile(folder / f"{part}.parquet").read() for part in parts]
        screen.show_stage(SimpleNamespace(**stats), aside)


def describe_unrated(ratings: pa.Table) -> str:
    """Say why outputs have no rating, and what the judge knows."""
    outcomes = ratings.filter(pc.is_null(ratings["rating"]))["outcome"].unique().to_pylist()
    reasons = [
        f"{outcome} ({UNRATED[outcome]})" if outcome in UNRATED else outcome
        for outcome in sorted(outcomes)
    ]
    unrated = f"not rated: {', '.join(reasons)}; " if reasons else ""
    return f"{unrated}{JUDGE} only knows these posts"


def choose_thread(run: Path) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """Choose the thread with the most content: prompt, images and feedback across posts."""
    threads = pq.ParquetFile(run / "stages" / "threads" / "kept.parquet").read().to_pylist()
    samples = pq.ParquetFile(run / "stages" / "privacy" / "kept.parquet").read().to_pylist()
    root_of = {post["url"]: thread["root_url"] for thread in threads for post in thread["posts"]}
    by_root: dict[str, list[Mapping[str, Any]]] = {}
    for sample in samples:
        by_root.setdefault(root_of[sample["post_urls"][0]], []).append(sample)

    def count_content(thread: Mapping[str, Any]) -> tuple[int, int, int]:
        own = by_root.get(thread["root_url"], [])
        good = [sample for sample in own if sample["quality"] == "Benchmark"]
        with_several_posts = sum(len(sample["post_urls"]) > 1 for sample in good)
        comments = sum(len(sample["community_feedback"]) for sample in good)
        return with_several_posts, comments, -len(thread["posts"])

    best = max(threads, key=count_content)
    return best, by_root.get(best["root_url"], [])


def render_thread_and_samples(
    thread: Mapping[str, Any], samples: Sequence[Mapping[str, Any]], width: int
) -> RenderableType:
    """Render one thread as a tree, beside the samples that it became."""
    half = width // 2 - 1 if width >= 100 else width
    panel = Panel(_render_tree(thread), title="one thread", width=half, border_style="dim")
    became = Panel(
        Group(*map(_render_sample, samples)), title="became", width=half, border_style="dim"
    )
    return Columns([panel, became], padding=(0, 1)) if width >= 100 else Group(panel, became)


def _render_tree(thread: Mapping[str, Any]) -> Tree:
    root, *others = thread["posts"]
    nodes = [Tree(_render_post(root), guide_style="dim")]
    for post in others:
        nodes.append(nodes[post["parent"]].add(_render_post(post)))
    return nodes[0]


def _render_post(post: Mapping[str, Any]) -> Text:
    if post["missing"]:
        return Text(f"({post['missing'].replace('_', ' ')})", "dim italic")
    images = len(post["pictures"])
    image_count = f" [{images} image{'s' if images > 1 else ''}]" if images else ""
    author = Text(clean(post["author"], 24) + ": ", "bold")
    return author.append(clean(post["text"]), "not bold").append(image_count, "cyan not bold")


def _render_sample(sample: Mapping[str, Any]) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    table.add_row("prompt", Text(clean(sample["prompt"], 400), "bold"))
    table.add_row("quality", sample["quality"])
    table.add_row("modified", "yes" if sample["prompt_modified"] else "no")
    table.add_row("inputs", str(len(sample["input_images"])))
    table.add_row("outputs", str(len(sample["output_images"])))
    for comment in sample["community_feedback"]:
        table.add_row("feedback", Text(clean(comment["feedback"]), "italic"))
    table.add_row("id", Text(sample["id"], "dim"))
    return table
