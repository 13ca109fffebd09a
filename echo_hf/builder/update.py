"""Keep a benchmark current: build from what is there now, and say why a stage runs again."""

from __future__ import annotations

import difflib
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from echo_hf._infra.atomic import complete, replaced_whole
from echo_hf.builder.build import RUNS, BuildRun, last_asking, opened
from echo_hf.builder.steps import STAGES, up_to
from echo_hf.config.loading import Config
from echo_hf.hub.manifest import MANIFEST
from echo_hf.hub.release import Release, is_complete
from echo_hf.pipeline.progress import ProgressListener
from echo_hf.pipeline.result import StageStats

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
    runner: str | None = None,
    watch: ProgressListener | None = None,
) -> Updated:
    """Builds a benchmark from the posts that are there now, and keeps the release before it."""
    with opened(config, runs, offline=offline, runner=runner, watch=watch) as run:
        results, folder = list(run.results(STAGES[-1])), run.folder
        # What a killed update left there is what its release took the place of.
        aside, previous = folder.cache / ASIDE, None
        if not is_complete(aside):
            shutil.rmtree(aside, ignore_errors=True)
            if is_complete(folder.release):
                # A second name for each file, which its replacement will not touch.
                shutil.copytree(complete(folder.release), aside, copy_function=_link)
        before = (aside / MANIFEST).read_bytes() if aside.exists() else None
        try:
            release = run.release(results, with_responses=with_responses, allow_empty=allow_empty)
        except Exception:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        changed = before != (release.path / MANIFEST).read_bytes()
        if changed and before is not None:
            with replaced_whole(folder.previous) as partial:
                shutil.copytree(aside, partial, copy_function=_link, dirs_exist_ok=True)
            previous = folder.previous
        shutil.rmtree(aside, ignore_errors=True)
    return Updated(release, changed, previous, tuple(result.stats for result in results))


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
    """One thing that differs, and makes its stage and all after it run again."""

    stage: str
    field: str  # a path such as `engine.model`; `files` and a name; `result` where there is none
    before: str  # in lines
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


def why(run: BuildRun, stage: str | None = None) -> list[Change]:
    """What would make stages run again; nothing is run."""
    changes: list[Change] = []
    last = last_asking(run.config) if run.config.shard else STAGES[-1]
    for name in up_to(stage or last):
        record = run.folder.record(name)
        if record is None:
            changes += [] if changes else [Change(name, "result", "", "")]
            continue
        before, now = _fields(record.describe), _fields(run.described(name))
        for field in sorted({*before, *now}):
            if before.get(field) != now.get(field):
                # What went and what came, line by line; of lists, item by item.
                given = (_lines(before.get(field)), _lines(now.get(field)))
                lines = list(difflib.ndiff(*given))
                changes.append(Change(name, field, _signed("- ", lines), _signed("+ ", lines)))
    return changes


def _fields(described: Mapping[str, Any]) -> dict[str, Any]:
    """Values by their paths; files by their names, each with all that decides what is read."""
    files: dict[str, list[str]] = {}
    for one in described.get(FILES, ()):
        lines = (f"{name}: {_line(value)}" for name, value in sorted(one.items()) if value)
        files.setdefault(one.get("name") or one["source"], []).extend(lines)
    found: dict[str, Any] = {}
    texts = {name: "\n".join(lines) for name, lines in files.items()}
    waiting: list[tuple[str, Any]] = [("", {**described, FILES: texts})]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, Mapping) and value:
            waiting += [(f"{path}.{name}" if path else name, one) for name, one in value.items()]
        else:
            found[path] = value
    return found


def _lines(value: Any) -> list[str]:
    if isinstance(value, str):
        return value.splitlines()
    return list(map(_line, value)) if isinstance(value, list) else [_line(value)]


def _line(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST_VALUE else f"{len(text):,} characters"


def _signed(sign: str, lines: Iterable[str]) -> str:
    here = (line.removeprefix(sign) for line in lines if line.startswith(sign))
    found = [line for line in here if not line.startswith(DIGEST)]  # tells nobody anything
    more = [f"and {len(found) - MOST_LINES:,} more"] if len(found) > MOST_LINES else []
    return "\n".join([*found[:MOST_LINES], *more])
