"""Build from what is there now; say why a stage would run again, and what a build would ask."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
from datasets import Dataset

from echo_hf._infra.atomic import complete, replaced_whole
from echo_hf.builder.build import BuildRun, last_asking, opened
from echo_hf.builder.steps import STAGES, up_to
from echo_hf.collect.crawl_ledger import LEDGER
from echo_hf.collect.records import read_records
from echo_hf.config.loading import Config
from echo_hf.engines.base import Engine, check_installed, check_sees_images
from echo_hf.engines.memory import check_fit
from echo_hf.engines.planner import NO_WORK, TOKENS_PER_IMAGE, Expected, RequestPlan, expected_calls
from echo_hf.engines.prices import price_list
from echo_hf.errors import RunError, StageError
from echo_hf.hub.manifest import MANIFEST
from echo_hf.hub.release import Release, is_complete
from echo_hf.pipeline.batch_inference import plan
from echo_hf.pipeline.progress import ProgressListener
from echo_hf.pipeline.result import StageStats
from echo_hf.pipeline.stage import ModelStage
from echo_hf.pipeline.trial import Trial, first_requests, send_trial

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
    runs: Path | str | None = None,
    offline: bool = False,
    with_responses: bool = False,
    allow_empty: bool = False,
    again: bool = False,
    keep_going: bool = False,
    runner: str | None = None,
    watch: ProgressListener | None = None,
) -> Updated:
    """Builds a benchmark from the posts that are there now, and keeps the release before it."""
    how: dict[str, Any] = {"offline": offline, "again": again, "keep_going": keep_going}
    with opened(config, runs, **how, runner=runner, watch=watch) as run:
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
LONGEST_VALUE = 120


class Change(NamedTuple):
    """One thing that differs, and makes its stage and all after it run again."""

    stage: str
    field: str  # a path such as `engine.model`; `files` and a name; `result` where there is none
    before: str  # as JSON, or how long it is
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
            was, is_now = before.get(field), now.get(field)
            if was != is_now:
                changes.append(Change(name, field, _shown(was), _shown(is_now)))
    return changes


def _fields(described: Mapping[str, Any]) -> dict[str, Any]:
    """Values by their paths; files by their names, each with all that decides what is read."""
    files: dict[str, list[Any]] = {}
    for one in described.get(FILES, ()):
        files.setdefault(one.get("name") or one["source"], []).append(sorted(one.items()))
    found: dict[str, Any] = {}
    waiting: list[tuple[str, Any]] = [("", {**described, FILES: files})]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, Mapping) and value:
            waiting += [(f"{path}.{name}" if path else name, one) for name, one in value.items()]
        else:
            found[path] = value
    return found


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST_VALUE else f"{len(text):,} characters"


TWICE = 2  # as many, or half: what the shares of other posts may well be
BY_SHARE = "calls by the share of the bundled corpus, half to twice"


@dataclass(frozen=True)
class PlannedStage:
    """What one stage is about to ask; `todo` is the likely number where it is not `counted`."""

    stage: str
    todo: int
    stored: int
    counted: bool  # its input is there
    expected: Expected


def planned_build(
    config: Config | Path | str, *, runs: Path | str | None = None
) -> tuple[int, tuple[PlannedStage, ...]]:
    """The number of posts of a build, and what each stage with a model would ask."""
    with opened(config, runs, writes=False) as run:
        asked = sorted(filter(None, map(run.config.stages.engine_of, STAGES)))
        check_fit({name: run.config.engines[name] for name in asked})
        changes = why(run)
        begins = STAGES.index(changes[0].stage) if changes else len(STAGES)
        if begins:
            posts = pq.read_metadata(_kept(run, STAGES[0])).num_rows
        else:
            posts = len(read_records(run.config.posts, run.folder.root / LEDGER))
        planned = [
            _planned(run, name, engine, posts, counted=at == begins)
            for at, name in enumerate(STAGES)
            if posts and at >= max(begins, 1) and (engine := run.engine(name)) is not None
        ]
    return posts, tuple(planned)


def _kept(run: BuildRun, stage: str) -> str:
    return str(run.folder.stage(stage) / "kept.parquet")


def _planned(
    run: BuildRun, name: str, engine: Engine, posts: int, *, counted: bool
) -> PlannedStage:
    stage = run.stage(name)
    if not isinstance(stage, ModelStage) or not engine.stored:  # answers that cost nothing
        return PlannedStage(name, 0, 0, counted, NO_WORK)
    if counted:
        before = _kept(run, STAGES[STAGES.index(name) - 1])
        dataset = Dataset.from_parquet(before, cache_dir=str(run.folder.cache))
        with closing(run.folder.store()) as store:
            stage = stage.prepared(dataset, offline=True, watch=run.watch)
            counts = plan(stage, dataset, engine, store)
        expected = expected_calls(engine, counts)
        return PlannedStage(name, counts.calls, counts.stored, True, expected)
    share = price_list()["stages"][name]
    calls = round(posts * share["calls"])
    images = round(calls * share["images"])
    tokens = calls * share["text"] + images * TOKENS_PER_IMAGE
    likely = RequestPlan(requests=calls, prompt_tokens=tokens, images=images)
    found = expected_calls(engine, likely)
    if calls:
        found = replace(
            found,
            usd=found.usd and found.usd.widened(TWICE),
            seconds=found.seconds and found.seconds.widened(TWICE),
            basis="; ".join(filter(None, (BY_SHARE, found.basis))),
        )
    return PlannedStage(name, calls, 0, False, found)


def try_stage(config: Config | Path | str, name: str, *, runs: Path | str | None = None) -> Trial:
    """Sends the first request of a stage, and keeps nothing of it."""
    earlier = up_to(name)[:-1]
    with opened(config, runs, writes=False) as run:
        stage, engine = run.stage(name), run.engine(name)
        if not isinstance(stage, ModelStage) or engine is None:
            asking = [one for one in STAGES if run.config.stages.engine_of(one)]
            raise StageError(f"stage {name!r} asks no model: expected {', '.join(asking)}")
        check_installed(run.config.engines[str(run.config.stages.engine_of(name))].kind)
        if stage.sends_images:
            check_sees_images(engine, f"stage {name!r}")
        before = earlier[-1]
        first = f"run `echo-hf build` with --until {before} on this config first"
        if not Path(_kept(run, before)).exists():
            raise RunError(f"nothing in {str(run.folder.root)!r} to ask {name!r} about: {first}")
        dataset = Dataset.from_parquet(_kept(run, before), cache_dir=str(run.folder.cache))
        stage = stage.prepared(dataset, offline=True, watch=run.watch)
        requests = first_requests(stage, dataset, engine, 1)
        if not requests:
            raise RunError(
                f"of {len(dataset):,} rows that {before!r} kept, {name!r} asks about none: "
                "expected one to try it on"
            )
        return send_trial(stage, requests[0], engine, f"stage {name!r}")
