"""Keep a benchmark current: build it from what is there now, and keep what was there before.

Only new and changed threads cost anything, because every answer is kept under its request. Ids come
from the posts alone, so that a sample that nothing happened to has the id it had.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from echo_hf.config import Config
from echo_hf.hub.manifest import MANIFEST
from echo_hf.hub.release import Release, is_complete
from echo_hf.run import RUNS, opened
from echo_hf.run_folder import RunFolder
from echo_hf.stage_result import StageStats
from echo_hf.steps import STAGES
from echo_hf.swap import complete, replaced_whole
from echo_hf.watch import Watcher

ASIDE = "release-before"


@dataclass(frozen=True)
class Updated:
    """What an update came to.

    Attributes:
        release: The release as it is now.
        changed: Whether it is another one than before, or the first.
        previous: The release that it took the place of; null where nothing changed, or there was
            none.
        stats: What each stage did, in order.
    """

    release: Release
    changed: bool
    previous: Path | None
    stats: tuple[StageStats, ...]

    @property
    def asked(self) -> int:
        """How many calls were made, second tries included."""
        return sum(stats.fill.calls for stats in self.stats)

    @property
    def reused(self) -> int:
        """How many answers of earlier runs were looked up, by stages with new or changed rows."""
        return sum(stats.fill.store_hits for stats in self.stats)


def update(
    config: Config | Path | str,
    *,
    runs: Path | str = RUNS,
    offline: bool = False,
    with_responses: bool = False,
    allow_empty: bool = False,
    watch: Watcher | None = None,
) -> Updated:
    """Builds a benchmark from the posts that are there now, and keeps the release before it.

    Args:
        config: The config, or the path of its file.
        runs: Folder of runs.
        offline: Ask no model: answer from the store alone.
        with_responses: Whether the release carries the stored answers that it was made from.
        allow_empty: Whether a release without a sample is written.
        watch: Told of each plan, call and result.

    Returns:
        The release, and the one before it where they differ.

    Raises:
        EchoError: As for `build`; the release that is there stays.
    """
    with opened(config, runs, offline=offline, watch=watch) as pipeline:
        results = list(pipeline.results(STAGES[-1]))
        before = _set_aside(pipeline.folder)
        try:
            release = pipeline.release(
                results, with_responses=with_responses, allow_empty=allow_empty
            )
        except Exception:
            shutil.rmtree(pipeline.folder.cache / ASIDE, ignore_errors=True)
            raise
        previous = _kept(before, release, pipeline.folder) if before else None
    changed = before is None or previous is not None
    return Updated(release, changed, previous, tuple(result.stats for result in results))


def _set_aside(folder: RunFolder) -> Path | None:
    """A second name for each file of the release, which its replacement will not touch."""
    aside = folder.cache / ASIDE
    # What a killed update left there is what its release took the place of.
    if not is_complete(aside):
        shutil.rmtree(aside, ignore_errors=True)
        if not is_complete(folder.release):
            return None
        shutil.copytree(complete(folder.release), aside, copy_function=_link)
    return aside


def _kept(before: Path, release: Release, folder: RunFolder) -> Path | None:
    changed = (before / MANIFEST).read_bytes() != (release.path / MANIFEST).read_bytes()
    if changed:
        with replaced_whole(folder.previous) as partial:
            shutil.copytree(before, partial, copy_function=_link, dirs_exist_ok=True)
    shutil.rmtree(before)
    return folder.previous if changed else None


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links
        shutil.copy2(source, target)
