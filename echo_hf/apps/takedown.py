"""Take posts down: out of a run, and out of all that was made from it."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from echo_hf._infra.atomic import complete, replaced_file
from echo_hf.apps.events import EVENTS_FILE, EventLog
from echo_hf.collect.collect import Collect
from echo_hf.collect.crawl_ledger import LEDGER as COLLECTED
from echo_hf.collect.crawl_ledger import forget_answers
from echo_hf.collect.fetch import LEDGER, FetchLedger, read_ledger
from echo_hf.collect.records import read_records
from echo_hf.collect.takedown import (
    ORIGINS,
    TOMBSTONES,
    add_tombstones,
    drop_origins,
    hashed,
    note_origins,
    read_origins,
    read_tombstones,
)
from echo_hf.collect.urls import canonical_url, web_url
from echo_hf.config.loading import Config, load_config
from echo_hf.curate.decisions import FILE, drop_decisions, read_decisions
from echo_hf.engines.recorded import KIND as RECORDED
from echo_hf.errors import RunError
from echo_hf.hub.facts import CONFIGS, SCORE_CONFIGS
from echo_hf.hub.redistribution import addresses_of
from echo_hf.hub.remote import NAMING
from echo_hf.hub.run_tables import SAMPLE
from echo_hf.judging.audit import drop_audited
from echo_hf.judging.score import AGREEMENT_FILE
from echo_hf.pipeline.progress import LOG
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.pipeline.runs import run_folder
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.reasons import Notice
from echo_hf.report.analysis.result import FILE as ANALYSIS_FILE
from echo_hf.systems.journal import drop_samples, journals, locked_all

HUMAN = "human"


def remove_rows(root: Path, samples: Collection[str]) -> None:
    """Deletes what journals, tables, audits, apps and reviewers say about samples."""
    if not samples:
        return
    drop_samples(root, samples)
    drop_audited(root, samples)
    EventLog(root / EVENTS_FILE).forget(set(samples))
    drop_decisions(root / FILE, samples)
    for path in _run_tables(root):
        table = pq.read_table(path)
        if SAMPLE in table.column_names:
            about = pc.is_in(table[SAMPLE], pa.array(sorted(samples), pa.string()))
            with replaced_file(path) as partial:
                pq.write_table(table.filter(pc.invert(about)), partial)


def images_named(root: Path) -> set[str]:
    """The images that journals, tables beside the stages, and reviewers' changes name."""
    named = {digest for journal in journals(root) for digest in journal.images}
    for path in _run_tables(root):
        for name in CONFIGS[path.stem].table.images if path.stem in CONFIGS else ():
            named.update(pq.read_table(path, columns=[name])[name].drop_null().to_pylist())
    # All of them: what is taken back on the page makes an earlier one stand again.
    every = read_decisions(root / FILE).every
    return named.union(*(one.changed.images for one in every if one.changed))


def _run_tables(root: Path) -> list[Path]:
    paths = (root / f"{name}.parquet" for name in (*SCORE_CONFIGS, HUMAN))
    return [path for path in paths if path.exists()]


IMAGES_OF_SAMPLE = ("input_images", "output_images")
# What is quickly made anew, and may hold a post that has left all else: errors repeat what was
# asked.
TRACES = ("cache", f"{LOG}*", ".*.partial")
# Made anew by the next build; answers for replay and results may hold what was said of the posts.
DERIVED = (
    *("release", "previous", "stages", "report", "release.built", "responses.parquet"),
    *("results.json", ANALYSIS_FILE, AGREEMENT_FILE, "keywords.json", "keywords.svg"),
)
Row = dict[str, Any]


@dataclass(frozen=True)
class Removal:
    urls: tuple[str, ...]
    posts: int
    unknown: tuple[str, ...]
    samples: tuple[str, ...]
    images: int
    answers: int
    left_in: tuple[str, ...]
    pages: int = 0


def forget(
    urls: Iterable[str], config: Config | Path | str, *, runs: Path | str | None = None
) -> Removal:
    """Takes posts out of a run: their text, samples, images, and all answers they went into."""
    config = load_config(config)
    given_urls = {url: canonical_url(url, fragment=True) for url in urls}
    for url, found in given_urls.items():
        if found is None:
            raise RunError(f"{url!r} is not an address of a post: expected one such as https://...")
    forgotten = tuple(dict.fromkeys(filter(None, given_urls.values())))
    folder = run_folder(config, runs)
    root, collected = folder.root, folder.root / COLLECTED
    systems = [system.name for system in config.systems]
    with folder.locked(), locked_all(root, systems):
        # The posts of the input files, with what is to be forgotten, and what was before.
        records = read_records(config.posts, collected)
        given: list[Row] = run_stage(Collect(folder.images), records).dataset.to_list()
        add_tombstones(root / TOMBSTONES, map(hashed, forgotten))
        # What a killed build, or one by an older version, has not noted.
        tables = _tables(root / "stages", folder.release, folder.previous)
        note_origins(root / ORIGINS, _columns(tables, ["id", "post_urls"]))
        held = _held(folder, given, frozenset(forgotten))
        with closing(folder.store()) as store:
            answers = store.forget(forgotten)
        pages, lost = forget_answers(collected, forgotten), list[Path]()
        is_here = bool(held.posts or answers)
        if is_here:
            remove_rows(root, held.samples)
            # Crops and local files are made anew.
            shown = held.shown | images_named(root)
            lost = [file for file in folder.images.root.glob("*/*") if file.name not in shown]
            for file in lost:
                file.unlink()
            if (root / LEDGER).exists():
                with FetchLedger(root / LEDGER) as ledger:
                    ledger.forget(web_url(one) or one for one in held.addresses)
        # Where nothing was made of them, what was made of others stays.
        _delete(root, (*TRACES, *DERIVED) if is_here else TRACES)
        drop_origins(root / ORIGINS, held.samples)
        left = tuple(_left_in(config, folder, forgotten)) if is_here else ()
    unknown = tuple(url for url in forgotten if url not in held.posts)
    samples = tuple(sorted(held.samples))
    return Removal(forgotten, len(held.posts), unknown, samples, len(lost), answers, left, pages)


def _delete(root: Path, names: Iterable[str]) -> None:
    for name in names:
        for path in (*root.glob(name), *root.glob(f".{name}.*")):  # also what a killed process left
            if not path.is_dir():
                path.unlink(missing_ok=True)
            else:
                shutil.rmtree(path)  # an error is told: silence would be a promise not kept


@dataclass
class _Held:
    posts: set[str] = field(default_factory=set)
    samples: set[str] = field(default_factory=set)
    shown: set[str] = field(default_factory=set)
    addresses: set[str] = field(default_factory=set)


def _held(folder: RunFolder, given: Sequence[Row], forgotten: frozenset[str]) -> _Held:
    """What a run holds of posts, and the images that others show."""
    held, shared = _Held(), set[str]()
    by_hash = {hashed(url): url for url in forgotten}
    every, origins = read_tombstones(folder.root / TOMBSTONES), read_origins(folder.root / ORIGINS)
    theirs = origins.filter(pc.is_in(origins["post"], pa.array(list(by_hash), pa.string())))
    held.posts = {by_hash[one] for one in theirs["post"].to_pylist()}
    held.samples = set(theirs["sample_id"].to_pylist())
    stages = _tables(folder.root / "stages")
    in_stages = _rows(stages, ["url", "pictures"])
    in_threads = (post for row in _rows(stages, ["posts"]) for post in row["posts"] or ())
    for post in chain(given, in_stages, in_threads):
        is_theirs = post["url"] in every
        held.posts |= {post["url"]} & forgotten
        images = post["pictures"] or []
        addresses = {one["url"] for one in images if one["url"]}
        (held.addresses if is_theirs else shared).update(addresses)
        held.shown |= set() if is_theirs else {one["sha256"] for one in images}
    for sample in _rows(stages, ["id", *IMAGES_OF_SAMPLE, "screenshot"]):
        if sample["id"] not in held.samples:
            held.shown |= {one for name in IMAGES_OF_SAMPLE for one in sample[name] or ()}
            held.shown |= {sample["screenshot"]} - {None}
    # The posts that a release names may have left all other files since.
    for file in _tables(folder.release, folder.previous):
        names = pq.read_schema(file).names
        columns = [name for name in NAMING.get(file.parent.name, ()) if name in names]
        for row in pq.read_table(file, columns=columns).to_pylist():
            named = {*(row.get("sources") or ()), *filter(None, addresses_of(row))}
            held.posts |= named & forgotten
    held.addresses -= shared
    # The images that lie here for addresses which other posts name.
    known = read_ledger(folder.root / LEDGER, [web_url(one) or one for one in shared])
    held.shown |= {entry.sha256 for entry in known.values() if entry.sha256}
    return held


def _tables(*folders: Path) -> list[Path]:
    return [file for one in folders for file in sorted(complete(one).glob("*/*.parquet"))]


def _columns(files: Iterable[Path], columns: list[str]) -> Iterator[pa.Table]:
    for file in files:
        if set(columns) <= set(pq.read_schema(file).names):
            yield pq.read_table(file, columns=columns)


def _rows(files: Iterable[Path], columns: list[str]) -> Iterator[Row]:
    for table in _columns(files, columns):
        yield from table.to_pylist()


def _left_in(config: Config, folder: RunFolder, forgotten: Iterable[str]) -> Iterator[str]:
    """Lines of input files, by what collection notices of them, and of recorded answers."""
    reader = Collect.from_config(config, folder.images)
    for row in run_stage(reader, read_records(config.posts)).notices.to_list():
        if row["_reason"] == Notice.FORGOTTEN:
            yield from row["_parent"]
    paths = [one.options.get("path") for one in config.engines.values() if one.kind == RECORDED]
    for path in filter(None, paths):
        for number, line in enumerate(Path(path).read_text("utf-8-sig").split("\n"), 1):
            if any(url in line for url in forgotten):
                yield f"{path}:{number}"
