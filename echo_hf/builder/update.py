"""Keep a benchmark current: build from what is there now, and say why a stage runs again."""

from __future__ import annotations

import difflib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from echo_hf._infra.atomic import complete, replaced_whole
from echo_hf.builder.build import RUNS, Pipeline, opened
from echo_hf.builder.steps import STAGES, up_to
from echo_hf.config.loading import Config
from echo_hf.hub.manifest import MANIFEST
from echo_hf.hub.release import Release, is_complete
from echo_hf.pipeline.progress import ProgressListener
from echo_hf.pipeline.result import StageStats
from echo_hf.pipeline.run_folder import RunFolder, StageRecord

ASIDE = "release-before"


@dataclass(frozen=True)
class Updated:
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
    watch: ProgressListener | None = None,
) -> Updated:
    """Builds a benchmark from the posts that are there now, and keeps the release before it."""
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


FILES = "files"
DIGEST = "sha256: "
LONGEST_VALUE = 120
MOST_LINES = 12


class Change(NamedTuple):
    """One thing that differs, and makes its stage and all after it run again.

    Attributes:
        stage: The stage.
        field: What changed, as a path such as `engine.model`, or `files` and the name of a file of
            posts; `result` when there is none yet.
        before: What the last result was made with, one or several lines.
        now: What it would be made with.
    """

    stage: str
    field: str
    before: str
    now: str

    @property
    def sentence(self) -> str:
        """What changed, and how much is made anew, in one line."""
        count = len(STAGES) - STAGES.index(self.stage)
        anew = f"{count} stages, from {self.stage!r} on" if count > 1 else f"{self.stage!r} alone"
        if self.field == "result":
            said = f"{self.stage} has not run yet"
        elif self.field.startswith(f"{FILES}."):
            said = f"{self.field.removeprefix(f'{FILES}.')} changed"
        else:
            said = f"{self.stage}: {self.field} changed"
        return f"{said}: {anew if count < len(STAGES) else f'all {count} stages'}"


def why(pipeline: Pipeline, stage: str | None = None) -> list[Change]:
    """What would make stages run again; nothing is run."""
    changes: list[Change] = []
    for name in up_to(stage) if stage else STAGES:
        record = pipeline.folder.record(name)
        if record is not None:
            changes.extend(_changes(name, record, pipeline.described(name)))
        elif not changes:
            changes.append(Change(name, "result", "", ""))
    return changes


def _changes(stage: str, record: StageRecord, described: Mapping[str, Any]) -> Iterator[Change]:
    before, now = _flat(_by_name(record.describe)), _flat(_by_name(described))
    for field in sorted({*before, *now}):
        if before.get(field) != now.get(field):
            yield Change(stage, field, *_told(before.get(field), now.get(field)))


def _by_name(described: Mapping[str, Any]) -> Mapping[str, Any]:
    """Files by their names, each with all that decides what is read from it as one text."""
    files: dict[str, list[str]] = {}
    for one in described.get(FILES, ()):
        lines = (f"{name}: {_line(value)}" for name, value in sorted(one.items()) if value)
        files.setdefault(one.get("name") or one["source"], []).extend(lines)
    return {**described, FILES: {name: "\n".join(lines) for name, lines in files.items()}}


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    if not isinstance(value, Mapping) or not value:
        return {path: value}
    inner = (_flat(item, f"{path}.{name}" if path else name) for name, item in value.items())
    return {name: item for items in inner for name, item in items.items()}


def _told(before: Any, now: Any) -> tuple[str, str]:
    """What went and what came, line by line; of lists, item by item."""
    lines = list(difflib.ndiff(_lines(before), _lines(now)))
    return _those("- ", lines), _those("+ ", lines)


def _lines(value: Any) -> list[str]:
    if isinstance(value, str):
        return value.splitlines()
    return list(map(_line, value)) if isinstance(value, list) else [_line(value)]


def _those(sign: str, lines: Iterable[str]) -> str:
    here = (line.removeprefix(sign) for line in lines if line.startswith(sign))
    found = [line for line in here if not line.startswith(DIGEST)]  # tells nobody anything
    more = [f"and {len(found) - MOST_LINES:,} more"] if len(found) > MOST_LINES else []
    return "\n".join([*found[:MOST_LINES], *more])


def _line(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST_VALUE else f"{len(text):,} characters"
