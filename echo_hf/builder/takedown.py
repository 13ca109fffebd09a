"""Take posts down: remove them from a run, with all that was made of them."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from echo_hf._infra.atomic import find_complete, replace_file
from echo_hf.builder.check_upkeep import drop_evidence, list_check_changes
from echo_hf.collect.collect import Collect
from echo_hf.collect.crawl_ledger import CRAWL_LEDGER_FILE as COLLECTED
from echo_hf.collect.crawl_ledger import forget_posts
from echo_hf.collect.fetch import FETCH_LEDGER_FILE, FetchLedger, read_ledger
from echo_hf.collect.records import read_records
from echo_hf.collect.sources.base import PostNotice
from echo_hf.collect.takedown import (
    ORIGINS_FILE,
    TOMBSTONES_FILE,
    add_tombstones,
    drop_origins,
    hash_url,
    read_origins,
    read_tombstones,
    record_origins,
)
from echo_hf.collect.urls import canonical_url, web_url
from echo_hf.config.loading import Config, load_config
from echo_hf.curate.decisions import DECISIONS_FILE, drop_decisions, read_decisions
from echo_hf.curate.events import EVENTS_FILE, EventLog
from echo_hf.engines.recorded import KIND as RECORDED
from echo_hf.errors import RunError
from echo_hf.hub.check_changes import CheckChange
from echo_hf.hub.facts import CONFIGS, SCORE_CONFIGS
from echo_hf.hub.redistribution import iterate_post_urls
from echo_hf.hub.remote import POST_COLUMNS
from echo_hf.hub.run_tables import AGREEMENT_FILE, ANALYSIS_FILE, RESULTS_FILE, SAMPLE_COLUMN
from echo_hf.hub.sealed import SealedSamples
from echo_hf.judging.audit import drop_audit_ratings
from echo_hf.judging.session import lock_judging
from echo_hf.pipeline.progress import LOG_FILE
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.pipeline.runs import open_run_folder
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.systems.carried import drop_carried_samples, list_carried
from echo_hf.systems.checks import read_own_checks, write_checks
from echo_hf.systems.journal import drop_samples, lock_run, open_journals
from echo_hf.tables import HUMAN, LABELS, Row

IMAGE_COLUMNS = ("input_images", "output_images")
# What is quickly made anew, and may hold a post that has left all else: errors repeat what was
# asked.
TRACE_FILES = ("cache", f"{LOG_FILE}*", ".*.partial")
# Made anew by the next build; answers for replay and results may hold what was said of the posts.
DERIVED_FILES = (
    *("release", "previous", "stages", "report", "release.built", "responses.parquet"),
    *(RESULTS_FILE, ANALYSIS_FILE, AGREEMENT_FILE, "keywords.json", "keywords.svg"),
)


def remove_rows(root: Path, samples: Collection[str]) -> None:
    """Delete the rows of samples from journals, tables, audits, event logs and decisions."""
    if not samples:
        return
    drop_samples(root, samples)
    drop_audit_ratings(root, samples)
    EventLog(root / EVENTS_FILE).forget(set(samples))
    drop_decisions(root / DECISIONS_FILE, samples)
    for path in _list_run_tables(root):
        table = pq.read_table(path)
        if SAMPLE_COLUMN in table.column_names:
            about = pc.is_in(table[SAMPLE_COLUMN], pa.array(sorted(samples), pa.string()))
            with replace_file(path) as partial:
                pq.write_table(table.filter(pc.invert(about)), partial)


def find_named_images(root: Path) -> set[str]:
    """Return the digests that journals, tables beside the stages, and decisions name."""
    digests = {digest for journal in open_journals(root) for digest in journal.images}
    for path in _list_run_tables(root):
        for name in CONFIGS[path.stem].table.images if path.stem in CONFIGS else ():
            digests.update(pq.read_table(path, columns=[name])[name].drop_null().to_pylist())
    # All of them: what is taken back on the page makes an earlier one stand again.
    decisions = read_decisions(root / DECISIONS_FILE).log
    return digests.union(*(decision.edits.images for decision in decisions if decision.edits))


def _list_run_tables(root: Path) -> list[Path]:
    names = dict.fromkeys((*SCORE_CONFIGS, HUMAN.name, LABELS.name))
    paths = (root / f"{name}.parquet" for name in names)
    return [path for path in paths if path.exists()]


def withdraw_checks(root: Path, samples: Collection[str]) -> tuple[CheckChange, ...]:
    """Take samples out of the checks of a run, and return what became of these.

    Of what complaints were called only what the stages still have of others is known to be theirs.
    """
    if not samples or not (checks := read_own_checks(root)):
        return ()
    keywords = {
        comment.get("keyword")
        for row in _read_rows(_list_tables(root / "stages"), ["id", "community_feedback"])
        if row["id"] not in samples
        for comment in row["community_feedback"] or ()
    }
    left = drop_evidence(checks, samples, keywords)
    if left != checks:
        write_checks(root, left)
    return list_check_changes(checks, left)


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
    checks: tuple[CheckChange, ...] = ()


def forget(
    urls: Iterable[str], config: Config | Path | str, *, runs: Path | str | None = None
) -> Removal:
    """Take posts out of a run: their text, samples, images, and all answers that read them."""
    config = load_config(config)
    canonical_urls = {url: canonical_url(url, fragment=True) for url in urls}
    for url, canonical in canonical_urls.items():
        if canonical is None:
            raise RunError(f"{url!r} is not an address of a post: expected one such as https://...")
    forgotten = tuple(dict.fromkeys(filter(None, canonical_urls.values())))
    folder = open_run_folder(config, runs)
    root, collected = folder.root, folder.root / COLLECTED
    systems = [system.name for system in config.systems]
    with folder.lock(), lock_run(root, systems), lock_judging(root):
        # The posts of the input files, with what is to be forgotten, and what was before.
        records = read_records(config.posts, collected)
        posts: list[Row] = run_stage(Collect(folder.images), records).dataset.to_list()
        add_tombstones(root / TOMBSTONES_FILE, map(hash_url, forgotten))
        # What a killed build, or one by an older version, has not noted.
        tables = _list_tables(root / "stages", folder.release, folder.previous)
        record_origins(root / ORIGINS_FILE, _read_columns(tables, ["id", "post_urls"]))
        content = _find_content(folder, posts, frozenset(forgotten))
        sealed = SealedSamples(folder)
        answers = 0
        for place in (folder, sealed.folder):
            if place.answers.exists():
                with closing(place.open_store()) as store:
                    answers += store.forget(forgotten)
        committed = sealed.forget(content.samples, forgotten)
        pages, unused = forget_posts(collected, forgotten), list[Path]()
        is_here, changes = bool(content.posts or answers or committed), tuple[CheckChange, ...]()
        if is_here:
            changes = withdraw_checks(root, content.samples)
            carried = [part.folder.root for part in list_carried(folder)]
            kept = drop_carried_samples(folder, content.samples)
            for place, roots in ((folder, [root, *carried]), (sealed.folder, [sealed.root])):
                for part_root in roots:
                    remove_rows(part_root, content.samples)
                # Crops, local files and what was copied to a private place are made anew.
                in_use = frozenset[str]().union(*map(find_named_images, roots))
                if place is folder:
                    in_use |= content.images | kept
                files = place.images.root.glob("*/*")
                unused += [file for file in files if file.name not in in_use]
            for file in unused:
                file.unlink()
            _delete(sealed.root, (*TRACE_FILES, *DERIVED_FILES))
            if (root / FETCH_LEDGER_FILE).exists():
                with FetchLedger(root / FETCH_LEDGER_FILE) as ledger:
                    ledger.forget(web_url(address) or address for address in content.addresses)
        # Where nothing was made of them, what was made of others stays.
        _delete(root, (*TRACE_FILES, *DERIVED_FILES) if is_here else TRACE_FILES)
        drop_origins(root / ORIGINS_FILE, content.samples)
        lines = tuple(_find_left_lines(config, folder, forgotten)) if is_here else ()
    unknown = tuple(url for url in forgotten if url not in content.posts)
    samples = tuple(sorted(content.samples))
    counts = len({file.name for file in unused}), answers, lines, pages
    return Removal(forgotten, len(content.posts), unknown, samples, *counts, changes)


def _delete(root: Path, names: Iterable[str]) -> None:
    for name in names:
        for path in (*root.glob(name), *root.glob(f".{name}.*")):  # also what a killed process left
            if not path.is_dir():
                path.unlink(missing_ok=True)
            else:
                shutil.rmtree(path)  # an error is told: silence would be a promise not kept


@dataclass
class _HeldContent:
    posts: set[str] = field(default_factory=set)
    samples: set[str] = field(default_factory=set)
    images: set[str] = field(default_factory=set)
    addresses: set[str] = field(default_factory=set)


def _find_content(
    folder: RunFolder, posts: Sequence[Row], forgotten: frozenset[str]
) -> _HeldContent:
    """Find what a run holds of posts, and the images that other posts share with them."""
    content, shared = _HeldContent(), set[str]()
    by_hash = {hash_url(url): url for url in forgotten}
    tombstones = read_tombstones(folder.root / TOMBSTONES_FILE)
    origins = read_origins(folder.root / ORIGINS_FILE)
    matches = origins.filter(pc.is_in(origins["post"], pa.array(list(by_hash), pa.string())))
    content.posts = {by_hash[post_hash] for post_hash in matches["post"].to_pylist()}
    content.samples = set(matches["sample_id"].to_pylist())
    stages = _list_tables(folder.root / "stages")
    in_stages = _read_rows(stages, ["url", "pictures"])
    in_threads = (post for row in _read_rows(stages, ["posts"]) for post in row["posts"] or ())
    for post in chain(posts, in_stages, in_threads):
        content.posts |= {post["url"]} & forgotten
        images = post["pictures"] or []
        addresses = {image["url"] for image in images if image["url"]}
        if post["url"] in tombstones:
            content.addresses |= addresses
        else:
            shared |= addresses
            content.images |= {image["sha256"] for image in images}
    for sample in _read_rows(stages, ["id", *IMAGE_COLUMNS, "screenshot"]):
        if sample["id"] not in content.samples:
            content.images |= {digest for name in IMAGE_COLUMNS for digest in sample[name] or ()}
            content.images |= {sample["screenshot"]} - {None}
    # The posts that a release names may have left all other files since.
    for file in _list_tables(folder.release, folder.previous, SealedSamples(folder).folder.release):
        names = pq.read_schema(file).names
        columns = [name for name in POST_COLUMNS.get(file.parent.name, ()) if name in names]
        for row in pq.read_table(file, columns=columns).to_pylist():
            named_urls = {*(row.get("sources") or ()), *filter(None, iterate_post_urls(row))}
            content.posts |= named_urls & forgotten
    content.addresses -= shared
    # The images that lie here for addresses which other posts name.
    kept_addresses = [web_url(address) or address for address in shared]
    entries = read_ledger(folder.root / FETCH_LEDGER_FILE, kept_addresses)
    content.images |= {entry.sha256 for entry in entries.values() if entry.sha256}
    return content


def _list_tables(*folders: Path) -> list[Path]:
    return [
        file for folder in folders for file in sorted(find_complete(folder).glob("*/*.parquet"))
    ]


def _read_columns(files: Iterable[Path], columns: list[str]) -> Iterator[pa.Table]:
    for file in files:
        if set(columns) <= set(pq.read_schema(file).names):
            yield pq.read_table(file, columns=columns)


def _read_rows(files: Iterable[Path], columns: list[str]) -> Iterator[Row]:
    for table in _read_columns(files, columns):
        yield from table.to_pylist()


def _find_left_lines(config: Config, folder: RunFolder, forgotten: Iterable[str]) -> Iterator[str]:
    """Yield the lines of input files and recorded answers that still hold the posts."""
    reader = Collect.from_config(config, folder.images)
    for row in run_stage(reader, read_records(config.posts)).notices.to_list():
        if row["_reason"] == PostNotice.FORGOTTEN:
            yield from row["_parent"]
    paths = [
        engine.options.get("path") for engine in config.engines.values() if engine.kind == RECORDED
    ]
    for path in filter(None, paths):
        for number, line in enumerate(Path(path).read_text("utf-8-sig").split("\n"), 1):
            if any(url in line for url in forgotten):
                yield f"{path}:{number}"
