"""Build a benchmark, or a part of it, from the posts that a config names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from echo_hf.config import Config, load_config
from echo_hf.engines.loaded import Engines
from echo_hf.hub.release import Release
from echo_hf.pipeline import Pipeline
from echo_hf.replay import Replay, replay_of
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
    responses: Path | str | None = None,
    with_responses: bool = False,
    allow_empty: bool = False,
    watch: Watcher | None = None,
) -> Release:
    """Builds a benchmark; what an earlier run has done already is not done again.

    Args:
        config: The config, or the path of its file.
        runs: Folder of runs; this one goes into the sub-folder of the config's name.
        offline: Ask nobody: answer from the store alone, and fetch no picture.
        responses: Folder of a release, or `ORG/NAME@TAG` on the Hub, that carries the answers to
            read in place of asking a model: the same posts give the same tables.
        with_responses: Whether the release carries the stored answers that it was made from.
        allow_empty: Whether a release without a sample is written.
        watch: Told of each plan, call and result.

    Returns:
        The release, on disk and readable with `datasets.load_dataset`.

    Raises:
        EchoError: The config, a source, an engine or the recorded answers are not usable, or no
            post became a sample; the message says how to go on.
    """
    with opened(config, runs, offline=offline, responses=responses, watch=watch) as pipeline:
        results = list(pipeline.results(STAGES[-1]))
        return pipeline.release(results, with_responses=with_responses, allow_empty=allow_empty)


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
    responses: Path | str | None = None,
    watch: Watcher | None = None,
) -> Iterator[Pipeline]:
    """A pipeline over a config, with its run folder locked and its engines freed at the end.

    Args:
        config: The config, or the path of its file.
        runs: Folder of runs.
        offline: Ask no model.
        writes: Lock the folder and write the config down; false to look only.
        responses: As for `build`.
        watch: Told of each plan, call and result.

    Yields:
        The pipeline.
    """
    config = config if isinstance(config, Config) else load_config(config)
    folder = RunFolder(Path(runs) / config.name)
    watch = watch or Unwatched()
    with (
        replay_of(responses) as replay,
        folder.locked() if writes else nullcontext(),
        Engines(config.engines) as engines,
    ):
        if writes:
            folder.save_config(config)
        if replay:
            _tell_unknown(replay, watch)
        yield Pipeline(config, folder, engines, offline, watch, replay)


def _tell_unknown(replay: Replay, watch: Watcher) -> None:
    for stage in replay.unknown():
        watch.noticed(f"the release was built with a stage {stage!r}, which this version has not")
