"""The quickstart: build the bundled benchmark, load it back as a user would, show one thread."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from datasets import load_dataset
from rich.console import Console

from echo_hf.run import build
from echo_hf.run_folder import RunFolder
from echo_hf.terminal import Watch
from echo_hf.thread_view import thread_beside_samples

CONFIG = "quickstart.yaml"
NEXT = """
what to do next
  echo-hf why {config}
      which stages would run again, and what changed since they last did
  echo-hf build my_config.yaml
      your own posts and target: copy {config} and edit it

  from datasets import load_dataset
  load_dataset("{release}", "text_to_image", split="test")
"""


def shipped_config() -> Path:
    """The config of the bundled corpus, in a checkout as well as in an installed package."""
    package = Path(str(files("echo_hf")))
    installed = package / "eval_configs" / CONFIG
    return installed if installed.exists() else package.parent / "eval_configs" / CONFIG


def show(console: Console, runs: Path) -> None:
    """Builds the bundled benchmark and shows what happened.

    Args:
        console: Where to print.
        runs: Folder of runs.
    """
    with Watch(console) as watch:
        release = build(shipped_config(), runs=runs, watch=watch)
    watch.funnel()
    loaded = load_dataset(str(release.path), "text_to_image", split="test")
    console.print(f"\nloaded back: {len(loaded)} rows of text_to_image\n", highlight=False)
    thread, samples = telling_thread(RunFolder(release.path.parent))
    console.print(thread_beside_samples(thread, samples, console.width))
    shown = {"release": _short(release.path), "config": _short(shipped_config())}
    console.print(NEXT.format(**shown), markup=False, highlight=False, soft_wrap=True)


def _short(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def telling_thread(folder: RunFolder) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """The thread that shows most of what happens: prompt, pictures and feedback across posts.

    Args:
        folder: A run whose `extract` stage has finished.

    Returns:
        The row of `threads` and its rows of `samples`.
    """
    threads = pq.read_table(folder.stage("threads") / "kept.parquet").to_pylist()
    samples = pq.read_table(folder.stage("extract") / "kept.parquet").to_pylist()
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
