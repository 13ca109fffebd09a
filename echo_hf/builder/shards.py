"""Build a benchmark in parts that know nothing of each other, and make one of their answers."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from datasets import Dataset

from echo_hf._infra.atomic import replaced_file
from echo_hf._infra.sqlite import check_settled
from echo_hf.builder.build import FETCHES, BuildRun, last_asking, opened
from echo_hf.builder.replay import ReplayEngine
from echo_hf.builder.steps import STAGES, up_to
from echo_hf.collect.crawl_ledger import LEDGER as COLLECTED
from echo_hf.collect.download import Download
from echo_hf.collect.fetch import LEDGER, FetchLedger
from echo_hf.collect.takedown import TOMBSTONES, add_tombstones, read_tombstones
from echo_hf.config.loading import Config, load_config, parse_config
from echo_hf.config.sections import Shard
from echo_hf.engines.base import Engine, Engines, abstains
from echo_hf.errors import ConfigError, RunError
from echo_hf.hub.release import Release
from echo_hf.pipeline.progress import ProgressListener
from echo_hf.pipeline.result import StageResult
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.tables import arrow_rows

DONE = "shard.done"
BEFORE_FETCHES = STAGES[STAGES.index(FETCHES) - 1]


def build_shard(
    config: Config | Path | str,
    part: str,
    *,
    runs: Path | str | None = None,
    runner: str | None = None,
    watch: ProgressListener | None = None,
) -> tuple[RunFolder, list[StageResult]]:
    """Builds a part, such as `0/4`, up to the last stage that asks a model or fetches images.

    What the whole run knows of its reply trees is read from its folder; nothing is written there.
    """
    config = load_config(config)
    config = as_shard(whole_of(config), part)
    with opened(config, runs, runner=runner, watch=watch) as run:
        done, whole = run.folder.root / DONE, run.folder.root.with_name(whole_of(config).name)
        done.unlink(missing_ok=True)
        if (found := whole / COLLECTED).exists():
            check_settled(found)
            with replaced_file(run.folder.root / COLLECTED) as partial:
                shutil.copyfile(found, partial)
        add_tombstones(run.folder.root / TOMBSTONES, read_tombstones(whole / TOMBSTONES).hashes)
        results = list(_taking(run, last_asking(config), [RunFolder(whole)]))
        done.touch()
    return run.folder, results


def whole_of(config: Config) -> Config:
    """The config of the benchmark that a shard's config belongs to; of a whole one itself."""
    shard = config.shard
    return config.model_copy(update={"name": shard.of, "shard": None}) if shard else config


def as_shard(config: Config, part: str) -> Config:
    """The config of a part, such as `0/4`, of a benchmark."""
    given = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", part)
    index, count = map(int, given.groups()) if given else (0, 0)
    if index >= count:
        raise ConfigError(f"--shard {part!r}: expected I/N, I from 0 to N - 1, such as 0/4")
    named = {"name": f"{config.name}.shard-{index}-of-{count}"}
    shard = {"of": config.name, "index": index, "count": count}
    checked = parse_config({**config.model_dump(mode="json"), **named, "shard": shard}, "--shard")
    return config.model_copy(update={"name": checked.name, "shard": checked.shard})


def merge(
    shards: Sequence[Path | str],
    *,
    runs: Path | str | None = None,
    with_responses: bool = False,
    allow_empty: bool = False,
    watch: ProgressListener | None = None,
) -> Release:
    """Makes one run of the folders of all shards, in any order, and its release.

    The shards are only read, on this machine alone, and no model is asked: what none has answered
    stays in quarantine.
    """
    found = sorted(map(_opened_shard, shards), key=lambda one: (one[1].index, one[2].root))
    if not found:
        raise RunError("no run is named: expected the folders of all shards of a benchmark")
    (config, first, folder), *_ = found
    # Where a part was computed changes nothing of it.
    made = [
        {**one.model_dump(mode="json", exclude={"runner"}), "number of shards": of.count}
        for one, of, _ in found
    ]
    for theirs, (*_, other) in zip(made, found, strict=True):
        if differing := [name for name in theirs if theirs[name] != made[0][name]]:
            raise RunError(
                f"{str(other.root)!r} has another {differing[0]!r} in its config than "
                f"{str(folder.root)!r}: expected all parts of one benchmark, built from one config"
            )
    if missing := set(range(first.count)).difference(shard.index for _, shard, _ in found):
        raise RunError(
            f"part {min(missing)} of {first.count} is missing: build it by `echo-hf build CONFIG "
            f"--shard {min(missing)}/{first.count}`, and name all parts"
        )
    folders = [folder for *_, folder in found]
    if runs is None and len({one.root.resolve().parent for one in folders}) > 1:
        raise RunError(
            f"{str(folder.root)!r} and the other parts lie in several folders of runs: say with "
            "--runs in which one the whole goes"
        )
    signatures = _signatures(config, folders)
    how: dict[str, Any] = {"offline": True, "keep_going": True, "runner": "local"}
    with opened(config, runs, **how, watch=watch) as run:
        run.folder.save_config(config)  # where a build goes on, it is asked as before
        known = read_tombstones(run.folder.root / TOMBSTONES).hashes
        for folder in folders:
            if lost := read_tombstones(folder.root / TOMBSTONES).hashes - known:
                raise RunError(
                    f"{len(lost):,} posts are forgotten in {str(folder.root)!r} and not in "
                    f"{str(run.folder.root)!r}: run `echo-hf forget` on the config of the whole too"
                )
        with _Answered(config.engines, signatures) as run.engines:
            results = list(_taking(run, STAGES[-1], folders))
            list(map(_opened_shard, shards))  # nobody began one anew while it was read
            return run.release(results, with_responses=with_responses, allow_empty=allow_empty)


def _opened_shard(place: Path | str) -> tuple[Config, Shard, RunFolder]:
    folder = RunFolder(Path(place))
    config = load_config(folder.root / "config.yaml") if folder.root.is_dir() else None
    if config is None or config.shard is None:
        raise RunError(
            f"{str(place)!r} is no shard: expected the folders that `echo-hf build CONFIG --shard "
            "I/N` has made, such as runs/*.shard-*-of-4"
        )
    stages = up_to(last_asking(config))
    if not (folder.root / DONE).exists() or None in map(folder.record, stages):
        raise RunError(
            f"{str(place)!r} has not ended: run `echo-hf build {folder.root / 'config.yaml'} "
            f"--shard {config.shard} --runs {folder.root.parent}` to its end"
        )
    return whole_of(config), config.shard, folder


def _signatures(config: Config, folders: Sequence[RunFolder]) -> dict[str, Mapping[str, Any]]:
    """Who answered, by the names of the engines; the same in all shards."""
    found: dict[str, tuple[Mapping[str, Any], RunFolder]] = {}
    for folder in folders:
        for stage in up_to(last_asking(config)):
            name, record = config.stages.engine_of(stage), folder.record(stage)
            if name is None or record is None:
                continue
            made = record.describe["engine"]
            said, other = found.setdefault(name, (made, folder))
            if said != made:
                raise RunError(
                    f"{str(other.root)!r} and {str(folder.root)!r} were answered by different "
                    f"engines {name!r}: build one of them again, like the others"
                )
    return {name: signature for name, (signature, _) in found.items()}


class _Answered(Engines):
    """Engines that have answered elsewhere: neither their packages nor a GPU are needed here."""

    def __init__(self, choices: Mapping[str, Any], signatures: Mapping[str, Any]) -> None:
        super().__init__(choices)
        self._signatures = signatures

    def use(self, name: str) -> Engine:
        signature = self._signatures[name]
        return super().use(name) if abstains(signature) else ReplayEngine(signature)


def _taking(run: BuildRun, until: str, places: Sequence[RunFolder]) -> Iterator[StageResult]:
    """The results of a run that takes in, before it asks, what other runs know of its posts."""
    for result in run.results(until):
        if result.stats.stage == "collect":
            _take_answers(run, result.dataset, places)
        elif result.stats.stage == BEFORE_FETCHES:
            _take_images(run, result.dataset, places)
        yield result


def _take_answers(run: BuildRun, posts: Dataset, places: Sequence[RunFolder]) -> None:
    columns = arrow_rows(posts, ["url", "parent_url"])
    # What a post replies to stands in its thread, collected or not; what is forgotten in neither.
    known = {url for name in columns.column_names for url in columns[name].to_pylist()}
    with closing(run.folder.store()) as store:
        for number, place in enumerate(places, 1):
            damaged = store.take(place.answers, known) if place.answers.exists() else 0
            if damaged:
                run.watch.noticed(
                    f"{str(place.answers)!r}: {damaged:,} answers were damaged since they were "
                    "stored, and are left out; build that part again, which asks again"
                )
            run.watch.advanced("answers", number, "runs read", len(places))


def _take_images(run: BuildRun, threads: Dataset, places: Sequence[RunFolder]) -> None:
    stage = run.stage(FETCHES)
    names = stage.ledger_names(threads) if isinstance(stage, Download) else []
    with FetchLedger(run.folder.root / LEDGER) as ledger:
        for number, place in enumerate(places, 1):
            found = place.root / LEDGER
            for digest in ledger.take(found, names) if names and found.exists() else ():
                run.folder.images.take(place.images, digest)
            run.watch.advanced("pictures", number, "runs read", len(places))
