"""Build a benchmark, or a part of it: stage by stage, each result saved before the next begins."""

from __future__ import annotations

import datetime
import hashlib
import json
import logging
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from datasets import Dataset, concatenate_datasets

from echo_hf._infra.text import one_line
from echo_hf.builder.replay import ReplayedRelease, import_answers, open_replay
from echo_hf.collect.collect import Collect, PostMerge
from echo_hf.collect.crawl import count_open
from echo_hf.collect.crawl_ledger import CRAWL_LEDGER_FILE, digest_pages
from echo_hf.collect.records import open_source, read_records
from echo_hf.collect.takedown import (
    ORIGINS_FILE,
    SHA256_HEX,
    STAND_IN,
    Tombstones,
    hash_url,
    record_origins,
)
from echo_hf.collect.urls import restricted_platforms
from echo_hf.config.checks import EngineChoice
from echo_hf.config.loading import Config, load_config
from echo_hf.config.sections import STAGES, Shard
from echo_hf.curate.privacy import Privacy
from echo_hf.curate.splits import ANALYSIS, BENCHMARKS, RELEASE_CONFIGS
from echo_hf.engines.base import Engine, Failed, RunEngines, abstains, check_installed, check_vision
from echo_hf.engines.memory import check_gpu_memory
from echo_hf.engines.pooled import PooledEngine
from echo_hf.errors import EchoError, ReleaseError, RunError, SourceError
from echo_hf.hub.facts import ColumnEntry, LeftOut, ReleaseFacts, count_failed_calls, count_samples
from echo_hf.hub.manifest import FORMAT_VERSION, get_version
from echo_hf.hub.redistribution import iterate_post_urls
from echo_hf.hub.release import Release, is_complete, iterate_rows, read_release, write_release
from echo_hf.hub.remote import POST_COLUMNS
from echo_hf.hub.responses import write_responses
from echo_hf.hub.run_tables import clean_outputs, select_released_tables
from echo_hf.hub.sealed import OtherSamples, SealedSamples
from echo_hf.images.metadata import VERSION as STRIPPER
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.batch_inference import plan_requests
from echo_hf.pipeline.progress import ALREADY_REPORTED, NullProgress, ProgressListener
from echo_hf.pipeline.result import ISSUE_COLUMNS, StageResult
from echo_hf.pipeline.run_folder import RunFolder, StageRecord
from echo_hf.pipeline.runner import LOCAL, Runner, make_runner
from echo_hf.pipeline.runs import open_run_folder
from echo_hf.pipeline.stage import (
    BATCH_ROWS,
    ModelStage,
    Stage,
    compute_fingerprint,
    issue_rows,
    join_digests,
    table_bytes,
)
from echo_hf.pipeline.stage_order import (
    join_columns,
    list_stages_through,
    load_stage_class,
    order_stages,
    select_rows,
)
from echo_hf.pipeline.stage_runner import iterate_keyed_requests, run_stage
from echo_hf.reasons import Fact, find_meaning
from echo_hf.samples.threads import find_roots
from echo_hf.systems.benchmark import Benchmark
from echo_hf.tables import (
    POST_TEXT,
    PRIMARY_POST_COLUMNS,
    SAMPLES,
    arrow_batches,
    arrow_rows,
    remap_dataset,
)

logger = logging.getLogger(__name__)
FETCH_STAGE = "download"
MAX_REASONS = 3


@dataclass
class BuildRun:
    """One run of the stages over one config."""

    config: Config
    folder: RunFolder
    engines: RunEngines
    offline: bool = False
    watch: ProgressListener = field(default_factory=NullProgress)
    replay: ReplayedRelease | None = None
    runner: Runner = LOCAL
    again: bool = False  # asks again where a stored answer cannot be used
    keep_going: bool = False  # goes on where no answer of a stage can be used
    samples_in_context: Dataset | None = field(default=None, init=False, repr=False)

    @cached_property
    def stages(self) -> tuple[str, ...]:
        """The names of all stages, in the order in which they run."""
        return order_stages(self.config.stages.plugins)

    @cached_property
    def added_columns(self) -> dict[str, ColumnEntry]:
        """The columns of samples that stages of other packages add, by their names."""
        return {
            name: ColumnEntry.from_column(stage, column)
            for stage in self.stages
            for name, column in load_stage_class(stage).adds.items()
        }

    def results(self, until: str) -> Iterator[StageResult]:
        """Run the stages in order, each saved before the next begins."""
        asked_engines: dict[str, EngineChoice] = {}
        image_engines = list[tuple[str, Engine]]()
        shard = self.config.shard
        if shard and until not in list_asking_stages(self.config):
            raise RunError(
                f"{self.config.name!r} is a part of {shard.of!r} and has no release: --shard "
                f"{shard} goes on with it, `echo-hf merge` makes one of all parts"
            )
        through = list_stages_through(self.stages, until)
        for name in through:  # check all stages before any work is done
            stage, engine = self.stage(name), self.engine(name)
            runs_here = not isinstance(engine, PooledEngine)
            key, asks = self.config.stages.get_engine(name), not (self.offline or self.replay)
            # A stage that has run here may need no model: skip its check.
            if key and asks and runs_here and self.folder.read_record(name) is None:
                asked_engines[key] = self.config.engines[key]
                if isinstance(stage, ModelStage) and stage.sends_images and engine:
                    image_engines.append((name, engine))
        check_gpu_memory(asked_engines, estimates=False)
        for choice in asked_engines.values():
            check_installed(choice.kind)
        for name, engine in image_engines:
            check_vision(engine, f"stage {name!r}")
        result: StageResult | None = None
        for name in through:
            if result is None:
                result = self._collect()
            else:
                result = self._run(name, remap_dataset(result.dataset))
            result = replace(
                result,
                dataset=remap_dataset(result.dataset),
                rejects=remap_dataset(result.rejects),
                quarantine=remap_dataset(result.quarantine),
            )
            if "context" in result.dataset.column_names:
                self.samples_in_context = result.dataset
            logger.info("%s", result.stats, extra=ALREADY_REPORTED)
            self.watch.report_result(result)
            yield result

    def release(
        self,
        results: Sequence[StageResult],
        *,
        with_responses: bool = False,
        allow_empty: bool = False,
    ) -> Release:
        """Write the release from the results of all stages, unless it is there already."""
        split_samples = add_post_columns(results[-1].dataset, results[0].dataset)
        samples = split_release(split_samples, self.added_columns)
        sealed = SealedSamples(self.folder)
        if not any(len(samples[name]) for name in BENCHMARKS):
            other = len(samples[ANALYSIS])
            others = f" of the benchmark, {other:,} are for analysis alone" if other else ""
            problem = f"no post became a sample{others}"
            reasons = summarize_reasons(results)
            if not allow_empty:
                advice = "Fix the posts, their `source` or the engine"
                if any(Failed.NEEDS_MODEL in result.stats.quarantined for result in results):
                    advice = "Name a model under `engines`: `echo-hf engines` lists what there is"
                    advice += ", or keep samples by `echo-hf review`" if other else ""
                raise ReleaseError(
                    f"{problem}, so no release is written, and one that is there stays: {reasons}. "
                    f"{advice}{_first_error(results)}; --allow-empty writes one all the same"
                )
            self.watch.report_notice(f"{problem}: {reasons}")
        division = sealed.divide(samples, self.config.splits.sealed, self._read_others())
        samples = dict(division.public)
        left_out: dict[str, Mapping[str, int]] = {}
        if with_responses:
            left_out = self._write_responses(results, division.urls)
        else:  # an earlier build's file may be about posts that are gone
            self.folder.responses.unlink(missing_ok=True)
        chosen = {"carries": bool(self.config.carry), "ranks": self.config.release.human}
        tables = select_released_tables(self.folder.root, samples, **chosen)
        facts = self._facts(results, samples, {**tables.left_out, **left_out})
        facts = division.add_facts(facts)
        private = select_released_tables(sealed.root, division.sealed)
        built_from = join_digests(
            split_samples._fingerprint,
            *map(compute_fingerprint, (*tables.configs.values(), *private.configs.values())),
            repr(facts),
            f"{get_version()} {FORMAT_VERSION}",
        )
        built_mark = self.folder.root / "release.built"
        unchanged = built_mark.exists() and built_mark.read_text() == built_from
        if not (unchanged and is_complete(self.folder.release) and sealed.is_complete(division)):
            built_mark.unlink(missing_ok=True)
            # Recorded before samples leave the stages, so that a takedown finds all.
            before_splits = results[self.stages.index("splits") - 1]
            reviewed = arrow_rows(before_splits.dataset, ["id", "post_urls"])
            record_origins(self.folder.root / ORIGINS_FILE, [reviewed])
            configs: Mapping[str, Dataset] = {**samples, **tables.configs}
            folder, processes = self.folder, self.runner.processes
            private_facts = self._facts(results, division.sealed, private.left_out)
            private_configs = private.configs
            if self._strips:
                configs, facts = _clean_outputs(configs, facts, folder.images)
                private_configs, private_facts = _clean_outputs(
                    private.configs, private_facts, sealed.folder.images
                )
            # What is kept out of the release first: nothing of it is ever in no place.
            sealed.write(division, private_configs, private_facts, folder.images, processes)
            write_release(folder.release, configs, folder.images, facts, processes=processes)
            built_mark.write_text(built_from)
        return read_release(self.folder.release, self.folder.cache)

    def stage(self, name: str) -> Stage:
        """Return a stage as the config sets it up."""
        stage = load_stage_class(name).from_config(self.config, self.folder.images)
        return stage.in_run(self.folder.root)

    def engine(self, name: str) -> Engine | None:
        """Return a stage's engine, or a stand-in for the recorded one; null if it needs none."""
        engine_name = self.config.stages.get_engine(name)
        if engine_name is None:
            return None
        if self.replay is None:
            return self.engines.use(engine_name)
        return self.replay.engine(name, self.config.engines[engine_name])

    def describe(self, name: str) -> dict[str, Any]:
        """Return what decides a stage's result now, as plain JSON values; nothing is run."""
        if name != "collect":
            return self._describe_stage(self.stage(name), self.engine(name))
        description = {"read": self.stage("collect").describe(), "merge": PostMerge().describe()}
        if shard := self.config.shard:
            description["shard"] = shard.model_dump()
        files = describe_files(self.config, self.folder.root / CRAWL_LEDGER_FILE)
        return {**description, "files": files}

    def _describe_stage(self, stage: Stage, engine: Engine | None) -> dict[str, Any]:
        description = describe_stage(stage, engine)
        if list_texts(stage):
            privacy = describe_stage(self.stage("privacy"), None)
            masking = {name: privacy[name] for name in ("version", "parameters", "libraries")}
            description |= {"masking": masking, "authors": privacy["authors"]}
        return description

    @property
    def _strips(self) -> bool:
        return self.config.stages.privacy.image_metadata == "strip"

    def _collect(self) -> StageResult:
        started, root = datetime.datetime.now(datetime.UTC), self.folder.root
        for platform, count in count_open(self.config, root, started):
            self.watch.report_notice(
                f"{platform}: {count:,} questions are open: `echo-hf collect` goes on"
            )
        self.folder.cache.mkdir(exist_ok=True)
        file = self.folder.cache / ".records.partial"
        records = read_records(self.config.posts, root / CRAWL_LEDGER_FILE, file)
        # The file has forgotten posts, too: remove it at once; the open memory map keeps working.
        # Systems that refuse this let the next run replace it.
        with suppress(OSError):
            file.unlink()
        if not len(records):
            names = ", ".join(repr(str(entry.path or entry.source)) for entry in self.config.posts)
            raise SourceError(
                f"{names} holds no record: expected one post a line, or pages of posts; what a "
                "config searches for has to be asked for first, by `echo-hf collect`"
            )
        # Not cached: the images beside the posts may have changed.
        reader = Collect.from_config(self.config, self.folder.images)
        other_urls: pa.Array | None = None
        if self.config.shard:
            records, other_urls = self._select_shard_records(self.config.shard, records, reader)
        cache = self.folder.cache
        collected = run_stage(reader, records, cache_dir=cache, anew=True, runner=self.runner)
        merged = run_stage(PostMerge(), collected.dataset, cache_dir=cache, anew=True)
        posts, rejects, shard_tally = merged.dataset, collected.rejects, dict[str, int]()
        if other_urls is not None:
            others = pc.is_in(arrow_rows(posts, ["url"])["url"], other_urls)
            posts = posts.select(np.flatnonzero(~others.to_numpy()))
            shard_tally = {"in_other_shards": len(other_urls)}
        posts._fingerprint = compute_fingerprint(posts)
        images = arrow_rows(posts, ["pictures"])["pictures"].chunks
        stats = replace(
            collected.stats,
            kept=len(posts),
            rejected={**collected.stats.rejected, **merged.stats.rejected},
            seconds=collected.stats.seconds + merged.stats.seconds,
            tally={
                "posts": len(posts),
                "merged": len(collected.dataset) - len(merged.dataset) - len(merged.rejects),
                **shard_tally,
                "pictures": sum(len(chunk.flatten()) for chunk in images),
            },
        )
        if len(merged.rejects):
            rejected_records = list(_make_record_rows(merged.rejects, records, reader.forgotten))
            superseded = Dataset.from_list(rejected_records, features=rejects.features)
            rejects = concatenate_datasets([rejects, superseded])
        result = replace(collected, dataset=posts, rejects=rejects, stats=stats)
        self._save(result, self.describe("collect"), records._fingerprint)
        return result

    def _select_shard_records(
        self, shard: Shard, records: Dataset, reader: Collect
    ) -> tuple[Dataset, pa.Array]:
        """Return the records that a shard needs, and the addresses of the posts of other shards.

        No image is looked at before that. A record without a post is every shard's.
        """
        cache = self.folder.cache / "all"
        shutil.rmtree(cache, ignore_errors=True)  # left by a killed run
        reader = replace(reader, images=None)
        collected = run_stage(reader, records, cache_dir=cache).dataset
        merged = run_stage(PostMerge(), collected, cache_dir=cache).dataset
        posts = arrow_rows(merged, ["url", "parent_url", "timestamp"])
        roots = find_roots(posts).dictionary_encode()
        names = roots.dictionary.to_pylist()
        is_own = [select_shard(root, shard.count) == shard.index for root in names]
        is_own_post = pa.array(is_own, pa.bool_()).take(roots.indices)
        other_urls = posts["url"].filter(pc.invert(is_own_post)).combine_chunks()
        placed = arrow_rows(collected, ["place", "url"])
        is_other = pc.is_in(placed["url"], other_urls)
        inside = placed["place"].filter(pc.invert(is_other))
        outside = placed["place"].filter(is_other)
        shutil.rmtree(cache, ignore_errors=True)
        places = arrow_rows(records, ["place"])["place"]
        needed = pc.or_(pc.is_in(places, inside), pc.invert(pc.is_in(places, outside)))
        fingerprint = join_digests(records._fingerprint, str(shard))
        rows = np.flatnonzero(needed.to_numpy())
        return records.select(rows, new_fingerprint=fingerprint), other_urls

    def _run(self, name: str, dataset: Dataset) -> StageResult:
        started, asks = time.perf_counter(), not (self.offline or self.replay)
        stage = self.stage(name).prepared(dataset, offline=self.offline, watch=self.watch)
        engine = self.engine(name)
        stage_description, recalled = self._describe_stage(stage, engine), None
        with closing(self.folder.open_store()) if engine else nullcontext() as store:
            # `store is not None`, since an empty store is false.
            if isinstance(stage, ModelStage) and engine and store is not None and engine.stored:
                if self.replay is not None:
                    recalled = import_answers(stage, dataset, engine, store, self.replay.recorded)
                record = self.folder.read_record(name)
                made_from = (record.describe, record.input) if record else None
                if asks and (self.again or made_from != (stage_description, dataset._fingerprint)):
                    planned = plan_requests(stage, dataset, engine, store, again=self.again)
                    self.watch.report_start(name, planned.calls, planned)
            result = run_stage(
                stage,
                dataset,
                engine=engine,
                store=store,
                cache_dir=self.folder.cache,
                offline=not asks,
                again=self.again,
                keep_going=self.keep_going or self.replay is not None,
                progress=lambda stats: self.watch.report_progress(
                    name, stats.calls, self.runner.describe_stats(stats)
                ),
                runner=self.runner,
            )
        result = self._join_columns(stage, dataset, result)
        result.stats.fill = recalled or result.stats.fill
        result.stats.seconds = time.perf_counter() - started
        self._save(result, stage_description, dataset._fingerprint)
        return result

    def _join_columns(self, stage: Stage, dataset: Dataset, result: StageResult) -> StageResult:
        """Add the columns of stages of other packages to the rows that a stage kept."""
        file = self.folder.cache / f"{stage.name}-joined-{result.dataset._fingerprint}.arrow"
        rows, added = result.dataset, dataset
        names = [name for name in self.added_columns if name in dataset.column_names]
        if stage.joins:
            result = self._mask_texts(stage, dataset, result)
            added, names = result.dataset, list(stage.adds)
            rows = select_rows(dataset, added, stage.inputs)
        if names:
            rows = join_columns(rows, added, names, stage.inputs, file)
        return replace(result, dataset=rows)

    def _mask_texts(self, stage: Stage, dataset: Dataset, result: StageResult) -> StageResult:
        """Mask personal data in the texts of a stage of another package, as privacy does."""
        privacy, texts = self.stage("privacy"), list_texts(stage)
        samples = dataset if "context" in dataset.column_names else self.samples_in_context
        if not texts or not isinstance(privacy, Privacy) or samples is None:
            return result
        names = {
            row["id"]: [post["author"] for post in row["context"]]
            for rows in arrow_batches(samples, BATCH_ROWS, ["id", "context"])
            for row in rows.to_pylist()
        }
        table, issues = privacy.mask_columns(arrow_rows(result.dataset), texts, names)
        fingerprint = join_digests(result.dataset._fingerprint, privacy.digest())
        noted = Counter(result.stats.noted) + Counter(str(issue.reason) for issue in issues)
        columns = result.notices.column_names
        masks = issue_rows(stage.outputs, issues).select(columns)
        notices = pa.concat_tables([arrow_rows(result.notices), masks], promote_options="default")
        stats = replace(result.stats, noted=dict(sorted(noted.items())))
        return replace(
            result,
            dataset=Dataset(table, fingerprint=fingerprint),
            notices=Dataset(notices, fingerprint=fingerprint),
            stats=stats,
        )

    def _save(self, result: StageResult, describe: Mapping[str, Any], read: str) -> None:
        record = StageRecord(result.stats.stage, describe, read, result.dataset._fingerprint)
        self.folder.save_result(result, record)
        if self.replay is not None and (remark := self.replay.describe_difference(record)):
            self.watch.report_notice(remark)

    def _read_others(self) -> Iterator[tuple[str, OtherSamples]]:
        """Yield the samples of the releases that the config names, by reference: those are public.

        One that was read for an earlier draw may be out of reach since; one that the analysis alone
        compares with may be so at once.
        """
        config = self.config
        if not config.splits.sealed:
            return
        record = SealedSamples(self.folder).read_record()
        before = [config.analysis.before] if config.analysis.before else []
        carried = {each.release for each in config.carry}
        folder = (config.file.parent if config.file else Path()).resolve()
        for reference in dict.fromkeys([*(each.release for each in config.carry), *before]):
            beside = (folder / reference).resolve()
            name = os.path.relpath(beside, folder)  # the same where it is gone
            origin = Benchmark(
                str(beside) if beside.exists() else reference, cache=self.folder.cache
            )
            try:
                yield name, _read_other(origin)
            except EchoError as error:
                is_known = record is not None and name in record.releases
                if reference in carried and not is_known:
                    raise
                says = "counts as it was" if is_known else "may be sealed again"
                self.watch.report_notice(
                    f"release {reference!r} cannot be read, and what is public there {says}: "
                    f"{one_line(error)}"
                )

    def _write_responses(
        self, results: Sequence[StageResult], sealed_urls: frozenset[str]
    ) -> dict[str, Mapping[str, int]]:
        with closing(self.folder.open_store()) as store:
            inputs = [result.dataset for result in results]
            stages = ((self.stage(name), self.engine(name)) for name in self.stages[1:])
            requests = iterate_keyed_requests(stages, inputs, store)
            restricted = restricted_platforms() - set(self.config.rights)
            written = write_responses(
                self.folder, requests, store, inputs[0], restricted=restricted, sealed=sealed_urls
            )
        counts: dict[str, int] = {}
        for reason, count in written.left_out.items():
            self.watch.report_notice(f"responses: {count:,} left out, {reason}: {reason.meaning}")
            counts[str(reason)] = count
        return {"responses": counts} if counts else {}

    def _facts(
        self,
        results: Sequence[StageResult],
        samples: Mapping[str, Dataset],
        left_out: Mapping[str, Mapping[str, int]],
    ) -> ReleaseFacts:
        posts, provenance = results[0].dataset, dict[str, dict[str, Any]]()
        for name in self.stages:
            if (record := self.folder.read_record(name)) is not None:
                prompt = record.describe.get("prompt")
                provenance[name] = {
                    "digest": record.digest,
                    "engine": record.describe.get("engine"),
                    "prompt": hashlib.sha256(prompt.encode()).hexdigest() if prompt else None,
                }
        names = ("rows_in", "kept", "rejected", "quarantined", "noted", "tally")
        languages = pc.unique(arrow_rows(posts, ["lang"])["lang"].drop_null()).to_pylist()
        return ReleaseFacts(
            name=self.config.name,
            target=self.config.target,
            protocol=self.config.protocol,
            funnel={
                result.stats.stage: {name: getattr(result.stats, name) for name in names}
                for result in results
            },
            provenance=provenance,
            languages=tuple(sorted(languages)),
            rules_built=any(abstains(origin["engine"]) for origin in provenance.values()),
            rights=self.config.rights,
            removed_categories=tuple(map(str, self.config.stages.safety.remove)),
            metadata_stripper=STRIPPER if self._strips else None,
            measured=count_samples(samples, posts),
            left_out=left_out,
            columns=self.added_columns,
            failed={
                result.stats.stage: count_failed_calls(result)
                for result in results
                if len(result.quarantine)
            },
            searches={entry.source: entry.search for entry in self.config.posts if entry.search},
            **self.config.release.model_dump(exclude_none=True, exclude={"human"}),
        )


def _read_other(origin: Benchmark) -> OtherSamples:
    """Read which samples a release has, and of which posts."""
    ids, urls = set[str](), set[str]()
    for name in RELEASE_CONFIGS:
        if name in origin.read_manifest().configs:
            dataset = origin.load(name)
            columns = [column for column in POST_COLUMNS[name] if column in dataset.column_names]
            for row in iterate_rows(dataset, columns=columns):
                ids.add(row["id"])
                urls.update(filter(None, iterate_post_urls(row)))
    return OtherSamples(ids, urls)


def select_shard(root: str, count: int) -> int:
    """Return the shard of a reply tree, which does not depend on other posts or on a takedown."""
    tombstone_hash = SHA256_HEX.fullmatch(root.removeprefix(STAND_IN))
    return int(tombstone_hash[0] if tombstone_hash else hash_url(root), 16) % count


def list_asking_stages(config: Config) -> tuple[str, ...]:
    """Return the stages through the last one that asks a model, or fetches images."""
    stages = order_stages(config.stages.plugins)
    asking = [name for name in stages if name == FETCH_STAGE or config.stages.get_engine(name)]
    return list_stages_through(stages, asking[-1])


def describe_stage(stage: Stage, engine: Engine | None) -> dict[str, Any]:
    """Return what decides a stage's result under an engine, as plain JSON values."""
    description = stage.describe()
    if engine is not None:
        description["engine"] = dict(engine.signature())
    plain: dict[str, Any] = json.loads(json.dumps(description, default=str))
    return plain


def add_post_columns(samples: Dataset, posts: Dataset) -> Dataset:
    """Return samples with the columns of their primary posts."""
    table, rows = arrow_rows(samples), arrow_rows(posts, ["url", *PRIMARY_POST_COLUMNS])
    primary = [next(iter(urls or ()), None) for urls in table["post_urls"].to_pylist()]
    at = pc.index_in(pa.array(primary, pa.string()), value_set=rows["url"].combine_chunks())
    for name in PRIMARY_POST_COLUMNS:
        table = table.set_column(table.column_names.index(name), name, rows[name].take(at))
    content = hashlib.sha256(table_bytes(table.select(PRIMARY_POST_COLUMNS))).hexdigest()
    return Dataset(table, fingerprint=join_digests(samples._fingerprint, content))


def list_texts(stage: Stage) -> list[str]:
    """Return the columns with words of posts or of images that a stage adds to samples."""
    return [name for name, column in stage.adds.items() if column.content == POST_TEXT]


def split_release(samples: Dataset, added: Iterable[str] = ()) -> dict[str, Dataset]:
    """Return the samples of each split of the release, without the column that names splits."""
    splits_of_sample = arrow_rows(samples, ["splits"])["splits"].to_pylist()
    columns = samples.select_columns([*SAMPLES.columns, *added])
    return {
        name: columns.select([row for row, splits in enumerate(splits_of_sample) if name in splits])
        for name in RELEASE_CONFIGS
    }


def _clean_outputs(
    configs: Mapping[str, Dataset], facts: ReleaseFacts, images: ImageStore
) -> tuple[Mapping[str, Dataset], ReleaseFacts]:
    """Remove the metadata of the images that systems drew, and count what cannot be cleaned."""
    configs, count = clean_outputs(configs, images)
    if count:
        left_out = dict(facts.left_out.get("outputs", {}))
        left_out[LeftOut.OUTPUT_NOT_CLEANED.value] = count
        facts = replace(facts, left_out={**facts.left_out, "outputs": left_out})
    return configs, facts


def _make_record_rows(
    posts: Dataset, records: Dataset, forgotten: Tombstones
) -> Iterator[dict[str, Any]]:
    row_of_place = {place: row for row, place in enumerate(records["place"])}
    for post in posts:
        record = records[row_of_place[post["place"]]]
        if forgotten.occur_in(json.loads(record["record"])):
            record["record"] = None  # it has the forgotten post
        yield {**record, **{name: post[name] for name in ISSUE_COLUMNS}}


def summarize_reasons(results: Sequence[StageResult]) -> str:
    """Say why most rows did not go on into the benchmark, with counts, in a sentence."""
    counts: Counter[tuple[str, str]] = Counter()
    for result in results:
        stage = result.stats.stage
        for reason_counts in (result.stats.rejected, result.stats.quarantined):
            counts.update({(stage, reason): count for reason, count in reason_counts.items()})
        notices = arrow_rows(result.notices, ["_parent", "_reason"]).to_pylist()
        # Count a row once, whatever the number of its notices.
        rows = {(notice["_reason"], tuple(notice["_parent"])) for notice in notices}
        rows = {
            (reason, parents) for reason, parents in rows if reason in Fact.FOR_ANALYSIS.reasons
        }
        counts.update((stage, reason) for reason, _ in rows)
    sentences = [
        f"{count:,} {reason} in {stage} ({find_meaning(reason) or reason})"
        for (stage, reason), count in counts.most_common(MAX_REASONS)
    ]
    return "; ".join(sentences) or "no row was left out"


def _first_error(results: Sequence[StageResult]) -> str:
    for result in results:
        rows = arrow_rows(result.quarantine, ["_reason", "_detail"])
        failed = rows.filter(pc.equal(rows["_reason"], Failed.ENGINE_ERROR.value))["_detail"]
        if len(failed):
            failure_text = f"in {result.stats.stage!r} the engine failed on {len(failed):,} rows"
            return f" ({failure_text}, first with {failed[0].as_py()!r})"
    return ""


def describe_files(config: Config, collected: Path) -> list[dict[str, Any]]:
    """Return where the posts of a config come from, with the sha256 of each file."""
    files: list[dict[str, Any]] = []
    for entry in config.posts:
        if entry.search is not None:
            digest = digest_pages(collected, entry.source)
            files.append({"source": entry.source, "sha256": digest})
            continue
        _, path = open_source(entry)
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        file_fields = {"source": entry.source, "name": path.name, "keywords": list(entry.keywords)}
        files.append({**file_fields, "sha256": digest})
    return files


def read_stage(
    folder: RunFolder, stage: str, columns: list[str], kind: str, command: str
) -> pa.Table:
    """Read the posts that a stage of an earlier run kept; `command` is what has to be run first."""
    try:
        return pq.read_table(folder.stage_folder(stage) / "kept.parquet", columns=columns)
    except (OSError, pa.ArrowException) as error:
        raise RunError(
            f"no {kind} posts in {str(folder.root)!r}: run `echo-hf {command}` on this config first"
        ) from error


def build(
    config: Config | Path | str,
    *,
    runs: Path | str | None = None,
    offline: bool = False,
    responses: Path | str | None = None,
    with_responses: bool = False,
    allow_empty: bool = False,
    again: bool = False,
    keep_going: bool = False,
    runner: str | None = None,
    watch: ProgressListener | None = None,
) -> Release:
    """Build a benchmark; what an earlier run has done already is not done again.

    Args:
        config: The config, or the path of its file.
        runs: Folder of runs; this one goes into the sub-folder of the config's name. Null for
            ECHO_HF_RUNS, the config's `runs`, or `runs` beside its file.
        offline: Ask nobody: answer from the store alone, and fetch no image.
        responses: Folder of a release, or `ORG/NAME@TAG` on the Hub, that carries the answers to
            read in place of asking a model: the same posts give the same tables.
        with_responses: Whether the release carries the stored answers that it was made from.
        allow_empty: Whether a release without a sample of the benchmark is written.
        again: Whether a model is asked again where its stored answer cannot be used.
        keep_going: Whether it is asked on where none of its answers to a stage can be used.
        runner: `local` or `ray`, instead of the config's: where the work is done.
        watch: Told of each plan, call and result.

    Returns:
        The release, on disk and readable with `datasets.load_dataset`.

    Raises:
        EchoError: The config, a source, an engine or the recorded answers are not usable, or no
            post became a sample of the benchmark; the message says how to go on.
    """
    options: dict[str, Any] = {"offline": offline, "responses": responses, "runner": runner}
    options |= {"again": again, "keep_going": keep_going, "watch": watch}
    with open_run(config, runs, **options) as run:
        results = list(run.results(run.stages[-1]))
        return run.release(results, with_responses=with_responses, allow_empty=allow_empty)


def run_until(
    config: Config | Path | str, until: str, *, runs: Path | str | None = None, **options: Any
) -> list[StageResult]:
    """Run the stages up to one of them.

    Raises:
        SourceError: No record is a post.
    """
    STAGES.check(until)
    config = load_config(config)
    list_stages_through(order_stages(config.stages.plugins), until)
    with open_run(config, runs, **options) as run:
        results = list(run.results(until))
        collected = results[0]
        if not len(collected.dataset):
            reasons = summarize_reasons(results[:1])
            raise SourceError(
                f"no post in {collected.stats.rows_in:,} records: {reasons}. Fix the posts or "
                f"their `source`; {str(run.folder.stage_folder(run.stages[0]))!r} holds all"
            )
        return results


@contextmanager
def open_run(
    config: Config | Path | str,
    runs: Path | str | None = None,
    *,
    offline: bool = False,
    writes: bool = True,
    responses: Path | str | None = None,
    runner: str | None = None,
    again: bool = False,
    keep_going: bool = False,
    watch: ProgressListener | None = None,
) -> Iterator[BuildRun]:
    """Open a run over a config: lock its folder, and free its engines at the end."""
    config = load_config(config).run_by(runner)
    folder = open_run_folder(config, runs)
    watch = watch or NullProgress()
    with (
        open_replay(responses) as replay,
        folder.lock() if writes else nullcontext(),
        make_runner(config.runner, folder.root, watch) if writes else LOCAL as place,
        RunEngines(config.engines, place.place_engine) as engines,
    ):
        if writes:
            folder.save_config(config)
        options = {"offline": offline, "again": again, "keep_going": keep_going}
        yield BuildRun(config, folder, engines, watch=watch, replay=replay, runner=place, **options)
