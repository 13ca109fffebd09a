"""The quickstart: build the bundled benchmark, load it back as a user would, show one thread."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from datasets import load_dataset
from rich.console import Console

from echo_hf._infra.text import thread_beside_samples
from echo_hf.builder.build import RUNS, build
from echo_hf.cli.progress import Watch
from echo_hf.config.systems import shipped_config
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.judging.board import show_scores
from echo_hf.judging.score import score
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.quickstart.reference_judge import JUDGE, drawn_truth
from echo_hf.quickstart.systems import outputs
from echo_hf.quickstart.truth import written_applicability
from echo_hf.report.report import report
from echo_hf.report.summary import show_report

UNRATED = {"unsupported": "no picture was drawn for the task"}
ANSWERED = "no model was asked: a person wrote the answers down with the posts (answers.jsonl)"
NEXT = """
what to do next
  {why}
      which stages would run again, and what changed since they last did
  echo-hf build my_config.yaml
      your own posts, target and engine: copy {config} and edit it

  from datasets import load_dataset
  load_dataset("{release}", "text_to_image", split="test")
"""


def show(console: Console, runs: Path) -> None:
    """Builds the bundled benchmark and shows what happened."""
    with Watch(console) as watch:
        release = build(shipped_config(), runs=runs, watch=watch)
    watch.funnel()
    console.print()
    console.print(ANSWERED, soft_wrap=True)
    folder = RunFolder(release.path.parent)
    for config in BENCHMARKS:
        loaded = load_dataset(str(release.path), config, split="test", cache_dir=str(folder.cache))
        console.print(f"loaded back: {len(loaded)} rows of {config}")
    thread, samples = telling_thread(folder)
    console.print()
    console.print(thread_beside_samples(thread, samples, console.width))
    ratings = rated(folder)
    console.print("four drawn stand-ins for image systems\n")
    show_scores(console, score(shipped_config(), runs=runs))
    console.print(rating_note(ratings), soft_wrap=True)
    show_report(console, report(shipped_config(), runs=runs))
    build(shipped_config(), runs=runs)  # with outputs, ratings and results, which are there now
    shown = {"release": _short(release.path), "config": _short(shipped_config())}
    said = NEXT.format(**shown, why=why_command(runs))
    console.print(said, soft_wrap=True)


def why_command(runs: Path) -> str:
    """The command that explains the run of the bundled config, wherever its runs are."""
    command = ["echo-hf", "why", str(_short(shipped_config()))]
    return shlex.join(command if runs == RUNS else [*command, "--runs", str(runs)])


def rated(folder: RunFolder) -> pa.Table:
    """Has the four stand-in systems' outputs rated, and keeps the tables in the run's folder."""
    samples = pq.read_table(folder.stage("splits") / "kept.parquet")
    drawn = [bool(set(BENCHMARKS) & set(splits)) for splits in samples["splits"].to_pylist()]
    benchmark = samples.filter(pa.array(drawn))
    made = outputs(benchmark, folder.pictures)
    ratings = drawn_truth(benchmark, made, folder.pictures)
    pq.write_table(made, folder.root / "outputs.parquet")
    pq.write_table(ratings, folder.root / "ratings.parquet")
    pq.write_table(written_applicability(benchmark), folder.root / "applicability.parquet")
    return ratings


def rating_note(ratings: pa.Table) -> str:
    """Why outputs have no rating, and what the judge knows."""
    outcomes = ratings.filter(pc.is_null(ratings["rating"]))["outcome"].unique().to_pylist()
    reasons = [
        f"{one} ({UNRATED[one]})" if one in UNRATED else str(one) for one in sorted(outcomes)
    ]
    unrated = f"not rated: {', '.join(reasons)}; " if reasons else ""
    return f"{unrated}{JUDGE} only knows these posts"


def _short(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def telling_thread(folder: RunFolder) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """The thread that shows most of what happens: prompt, pictures and feedback across posts."""
    threads = pq.read_table(folder.stage("threads") / "kept.parquet").to_pylist()
    samples = pq.read_table(folder.stage("privacy") / "kept.parquet").to_pylist()
    home = {post["url"]: thread["root_url"] for thread in threads for post in thread["posts"]}
    by_root: dict[str, list[Mapping[str, Any]]] = {}
    for sample in samples:
        by_root.setdefault(home[sample["post_urls"][0]], []).append(sample)
    best = max(threads, key=lambda thread: _worth(thread, by_root.get(thread["root_url"], [])))
    return best, by_root.get(best["root_url"], [])


def _worth(thread: Mapping[str, Any], samples: list[Mapping[str, Any]]) -> tuple[int, int, int]:
    good = [sample for sample in samples if sample["quality"] == "Benchmark"]
    across = sum(len(sample["post_urls"]) > 1 for sample in good)
    said = sum(len(sample["community_feedback"]) for sample in good)
    return across, said, -len(thread["posts"])
