"""Build a benchmark, or a part of it, from the posts that a config names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from echo_hf.config import Config, load_config
from echo_hf.engines.loaded import Engines
from echo_hf.hub.release import Release
from echo_hf.pipeline import Pipeline
from echo_hf.run_folder import RunFolder
from echo_hf.stage_result import StageResult
from echo_hf.steps import STAGES, up_to
from echo_hf.watch import Unwatched, Watcher

RUNS = Path("runs")


def build(
    config: Config | Path | str,
    *,
    runs: Path | str = RUNS,
    offline: bool = False,
    watch: Watcher | None = None,
) -> Release:
    """Builds a benchmark; what an earlier run has done already is not done again.

    Args:
        config: The config, or the path of its file.
        runs: Folder of runs; this one goes into the sub-folder of the config's name.
        offline: Ask no model: answer from the store alone.
        watch: Told of each plan, call and result.

    Returns:
        The release, on disk and readable with `datasets.load_dataset`.

    Raises:
        EchoError: The config, a source, or an engine is not usable; the message says how to go on.
    """
    with opened(config, runs, offline=offline, watch=watch) as pipeline:
        return pipeline.release(list(pipeline.results(STAGES[-1])))


def run_until(
    config: Config | Path | str,
    until: str,
    *,
    runs: Path | str = RUNS,
    offline: bool = False,
    watch: Watcher | None = None,
) -> list[StageResult]:
    """Runs the stages up to one of them.

    Args:
        config: The config, or the path of its file.
        until: Name of the last stage to run.
        runs: Folder of runs.
        offline: Ask no model: answer from the store alone.
        watch: Told of each plan, call and result.

    Returns:
        The results in order.

    Raises:
        EchoError: As for `build`, or there is no such stage.
    """
    up_to(until)
    with opened(config, runs, offline=offline, watch=watch) as pipeline:
        return list(pipeline.results(until))


@contextmanager
def opened(
    config: Config | Path | str,
    runs: Path | str = RUNS,
    *,
    offline: bool = False,
    writes: bool = True,
    watch: Watcher | None = None,
) -> Iterator[Pipeline]:
    """A pipeline over a config, with its run folder locked and its engines freed at the end.

    Args:
        config: The config, or the path of its file.
        runs: Folder of runs.
        offline: Ask no model.
        writes: Lock the folder and write the config down; false to look only.
        watch: Told of each plan, call and result.

    Yields:
        The pipeline.
    """
    config = config if isinstance(config, Config) else load_config(config)
    folder = RunFolder(Path(runs) / config.name)
    with folder.locked() if writes else nullcontext(), Engines(config.engines) as engines:
        if writes:
            folder.save_config(config)
        yield Pipeline(config, folder, engines, offline, watch or Unwatched())
