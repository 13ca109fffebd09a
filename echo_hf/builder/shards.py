"""Build a benchmark in independent shards, and merge their answers into one release."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from datasets import Dataset

from echo_hf._infra.atomic import replace_file
from echo_hf._infra.sqlite import check_checkpointed
from echo_hf.builder.build import FETCH_STAGE, BuildRun, list_asking_stages, open_run
from echo_hf.builder.replay import ReplayEngine
from echo_hf.collect.crawl_ledger import CRAWL_LEDGER_FILE
from echo_hf.collect.download import Download
from echo_hf.collect.fetch import FETCH_LEDGER_FILE, FetchLedger
from echo_hf.collect.takedown import TOMBSTONES_FILE, add_tombstones, read_tombstones
from echo_hf.config.loading import Config, load_config, parse_config
from echo_hf.config.sections import Shard
from echo_hf.engines.base import Engine, RunEngines, abstains
from echo_hf.errors import ConfigError, RunError
from echo_hf.hub.release import Release
from echo_hf.pipeline.progress import ProgressListener
from echo_hf.pipeline.result import StageResult
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.tables import arrow_rows

DONE_FILE = "shard.done"


def build_shard(
    config: Config | Path | str,
    part: str,
    *,
    runs: Path | str | None = None,
    runner: str | None = None,
    watch: ProgressListener | None = None,
) -> tuple[RunFolder, list[StageResult]]:
    """Build a shard, such as `0/4`, up to the last stage that asks a model or fetches images.

    What the whole run knows of its reply trees is read from its folder; nothing is written there.
    """
    config = load_config(config)
    config = make_shard_config(unshard(config), part)
    with open_run(config, runs, runner=runner, watch=watch) as run:
        done, whole = run.folder.root / DONE_FILE, run.folder.root.with_name(unshard(config).name)
        done.unlink(missing_ok=True)
        if (crawl_ledger := whole / CRAWL_LEDGER_FILE).exists():
            check_checkpointed(crawl_ledger)
            with replace_file(run.folder.root / CRAWL_LEDGER_FILE) as partial:
                shutil.copyfile(crawl_ledger, partial)
        known_hashes = read_tombstones(whole / TOMBSTONES_FILE).hashes
        add_tombstones(run.folder.root / TOMBSTONES_FILE, known_hashes)
        results = list(_run_and_take(run, list_asking_stages(config)[-1], [RunFolder(whole)]))
        done.touch()
    return run.folder, results


def unshard(config: Config) -> Config:
    """Return the config of the whole benchmark that a shard's config belongs to."""
    shard = config.shard
    return config.model_copy(update={"name": shard.of, "shard": None}) if shard else config


def make_shard_config(config: Config, part: str) -> Config:
    """Return the config of a shard, such as `0/4`, of a benchmark."""
    shard_match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", part)
    index, count = map(int, shard_match.groups()) if shard_match else (0, 0)
    if index >= count:
        raise ConfigError(f"--shard {part!r}: expected I/N, I from 0 to N - 1, such as 0/4")
    sections = config.model_dump(mode="json") | {"name": f"{config.name}.shard-{index}-of-{count}"}
    sections["shard"] = {"of": config.name, "index": index, "count": count}
    checked = parse_config(sections, "--shard")
    return config.model_copy(update={"name": checked.name, "shard": checked.shard})


def merge(
    shards: Sequence[Path | str],
    *,
    runs: Path | str | None = None,
    with_responses: bool = False,
    allow_empty: bool = False,
    watch: ProgressListener | None = None,
) -> Release:
    """Merge the folders of all shards, in any order, into one run, and write its release.

    The shards are only read, on this machine alone, and no model is asked: what none has answered
    stays in quarantine.
    """
    parts = sorted(map(_open_shard, shards), key=lambda shard: (shard[1].index, shard[2].root))
    if not parts:
        raise RunError("no run is named: expected the folders of all shards of a benchmark")
    config, first, first_folder = parts[0]
    # The runner may differ: it does not change a result.
    configs = [
        {**part.model_dump(mode="json", exclude={"runner"}), "number of shards": shard.count}
        for part, shard, _ in parts
    ]
    for fields, (*_, other) in zip(configs, parts, strict=True):
        if differing := [name for name in fields if fields[name] != configs[0][name]]:
            raise RunError(
                f"{str(other.root)!r} has another {differing[0]!r} in its config than "
                f"{str(first_folder.root)!r}: expected all parts of one benchmark, built from one "
                "config"
            )
    if missing := set(range(first.count)).difference(shard.index for _, shard, _ in parts):
        raise RunError(
            f"part {min(missing)} of {first.count} is missing: build it by `echo-hf build CONFIG "
            f"--shard {min(missing)}/{first.count}`, and name all parts"
        )
    folders = [folder for *_, folder in parts]
    if runs is None and len({folder.root.resolve().parent for folder in folders}) > 1:
        raise RunError(
            f"{str(first_folder.root)!r} and the other parts lie in several folders of runs: say "
            "with --runs in which one the whole goes"
        )
    signatures = _read_signatures(config, folders)
    options: dict[str, Any] = {"offline": True, "keep_going": True, "runner": "local"}
    with open_run(config, runs, **options, watch=watch) as run:
        run.folder.save_config(config)  # a later build of the whole uses the same config
        known_hashes = read_tombstones(run.folder.root / TOMBSTONES_FILE).hashes
        for folder in folders:
            if hashes := read_tombstones(folder.root / TOMBSTONES_FILE).hashes - known_hashes:
                raise RunError(
                    f"{len(hashes):,} posts are forgotten in {str(folder.root)!r} and not in "
                    f"{str(run.folder.root)!r}: run `echo-hf forget` on the config of the whole too"
                )
        with _ReplayEngines(config.engines, signatures) as run.engines:
            results = list(_run_and_take(run, run.stages[-1], folders))
            list(map(_open_shard, shards))  # check that no shard was restarted meanwhile
            return run.release(results, with_responses=with_responses, allow_empty=allow_empty)


def _open_shard(place: Path | str) -> tuple[Config, Shard, RunFolder]:
    folder = RunFolder(Path(place))
    config = load_config(folder.root / "config.yaml") if folder.root.is_dir() else None
    if config is None or config.shard is None:
        raise RunError(
            f"{str(place)!r} is no shard: expected the folders that `echo-hf build CONFIG --shard "
            "I/N` has made, such as runs/*.shard-*-of-4"
        )
    stages = list_asking_stages(config)
    if not (folder.root / DONE_FILE).exists() or None in map(folder.read_record, stages):
        raise RunError(
            f"{str(place)!r} has not ended: run `echo-hf build {folder.root / 'config.yaml'} "
            f"--shard {config.shard} --runs {folder.root.parent}` to its end"
        )
    return unshard(config), config.shard, folder


def _read_signatures(config: Config, folders: Sequence[RunFolder]) -> dict[str, Mapping[str, Any]]:
    """Return the signature of each engine by its name, which all shards must agree on."""
    signatures: dict[str, tuple[Mapping[str, Any], RunFolder]] = {}
    for folder in folders:
        for stage in list_asking_stages(config):
            name, record = config.stages.get_engine(stage), folder.read_record(stage)
            if name is None or record is None:
                continue
            answered_by = record.describe["engine"]
            first_signature, first_folder = signatures.setdefault(name, (answered_by, folder))
            if first_signature != answered_by:
                raise RunError(
                    f"{str(first_folder.root)!r} and {str(folder.root)!r} were answered by "
                    f"different engines {name!r}: build one of them again, like the others"
                )
    return {name: signature for name, (signature, _) in signatures.items()}


class _ReplayEngines(RunEngines):
    """Engines that answered elsewhere: their packages and a GPU are not needed here."""

    def __init__(self, choices: Mapping[str, Any], signatures: Mapping[str, Any]) -> None:
        super().__init__(choices)
        self._signatures = signatures

    def use(self, name: str) -> Engine:
        signature = self._signatures[name]
        return super().use(name) if abstains(signature) else ReplayEngine(signature)


def _run_and_take(run: BuildRun, until: str, places: Sequence[RunFolder]) -> Iterator[StageResult]:
    """Run the stages, taking over what other runs know of the posts before anything is asked."""
    before_fetch = run.stages[run.stages.index(FETCH_STAGE) - 1]
    for result in run.results(until):
        if result.stats.stage == "collect":
            _take_answers(run, result.dataset, places)
        if result.stats.stage == before_fetch:
            _take_images(run, result.dataset, places)
        yield result


def _take_answers(run: BuildRun, posts: Dataset, places: Sequence[RunFolder]) -> None:
    columns = arrow_rows(posts, ["url", "parent_url"])
    # A parent is in the thread even if it was not collected; forgotten posts are in neither.
    known_urls = {url for name in columns.column_names for url in columns[name].to_pylist()}
    with closing(run.folder.open_store()) as store:
        for number, place in enumerate(places, 1):
            damaged = store.take(place.answers, known_urls) if place.answers.exists() else 0
            if damaged:
                run.watch.report_notice(
                    f"{str(place.answers)!r}: {damaged:,} answers were damaged since they were "
                    "stored, and are left out; build that part again, which asks again"
                )
            run.watch.report_progress("answers", number, "runs read", len(places))


def _take_images(run: BuildRun, threads: Dataset, places: Sequence[RunFolder]) -> None:
    stage = run.stage(FETCH_STAGE)
    names = stage.list_ledger_names(threads) if isinstance(stage, Download) else []
    with FetchLedger(run.folder.root / FETCH_LEDGER_FILE) as ledger:
        for number, place in enumerate(places, 1):
            ledger_path = place.root / FETCH_LEDGER_FILE
            for digest in ledger.take(ledger_path, names) if names and ledger_path.exists() else ():
                run.folder.images.take(place.images, digest)
            run.watch.report_progress("pictures", number, "runs read", len(places))
