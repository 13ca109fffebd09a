"""What a build would ask its engines, before it asks: the next stage counted, the rest by share."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.parquet as pq
from datasets import Dataset

from echo_hf.builder.build import RUNS, BuildRun, opened
from echo_hf.builder.steps import STAGES
from echo_hf.builder.update import why
from echo_hf.collect.crawl_ledger import LEDGER
from echo_hf.collect.records import read_records
from echo_hf.config.loading import Config
from echo_hf.engines.base import Engine
from echo_hf.engines.estimate import NO_WORK, Expected, expected_calls
from echo_hf.engines.memory import check_fit
from echo_hf.engines.planner import TOKENS_PER_IMAGE, RequestPlan
from echo_hf.engines.prices import price_list
from echo_hf.pipeline.batch_inference import plan
from echo_hf.pipeline.stage import ModelStage

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
    config: Config | Path | str, *, runs: Path | str = RUNS
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
            basis=f"{BY_SHARE}; {found.basis}",
        )
    return PlannedStage(name, calls, 0, False, found)
