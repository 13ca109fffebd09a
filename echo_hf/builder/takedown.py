"""Take posts down: out of a run, and out of all that was made from it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from echo_hf._infra.atomic import complete, replaced_file
from echo_hf.builder.build import RUNS
from echo_hf.collect.collect import Collect
from echo_hf.collect.crawl_ledger import LEDGER as COLLECTED
from echo_hf.collect.crawl_ledger import forget_answers
from echo_hf.collect.fetch import LEDGER, FetchLedger, read_ledger
from echo_hf.collect.records import read_records
from echo_hf.collect.takedown import TOMBSTONES, add_tombstones, hashed, read_tombstones
from echo_hf.collect.urls import canonical_url, web_url
from echo_hf.config.loading import Config, load_config
from echo_hf.curate.decisions import FILE, drop_decisions, read_decisions
from echo_hf.engines.recorded import KIND as RECORDED
from echo_hf.errors import RunError
from echo_hf.hub.facts import CONFIGS, SCORE_CONFIGS
from echo_hf.hub.redistribution import addresses_of
from echo_hf.hub.remote import NAMING
from echo_hf.pipeline.progress import LOG
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.reasons import Notice

SAMPLE = "sample_id"
HUMAN = "human"


@dataclass(frozen=True)
class RunFiles:
    """Files about samples that are written above the build, in a run's folder."""

    drop: Callable[[Path, Collection[str]], object]
    images: Callable[[Path], Iterable[str]] = lambda _: ()
    held: Callable[[Path, Iterable[str]], AbstractContextManager[None]] = lambda _, __: (
        nullcontext()
    )


def remove_rows(root: Path, samples: Collection[str], files: Iterable[RunFiles]) -> None:
    """Deletes outputs, ratings, ranks, decisions and what files from above say about samples."""
    if not samples:
        return
    for one in files:
        one.drop(root, samples)
    drop_decisions(root / FILE, samples)
    for path in _run_tables(root):
        table = pq.read_table(path)
        if SAMPLE in table.column_names:
            about = pc.is_in(table[SAMPLE], pa.array(sorted(samples), pa.string()))
            with replaced_file(path) as partial:
                pq.write_table(table.filter(pc.invert(about)), partial)


def images_named(root: Path, files: Iterable[RunFiles]) -> set[str]:
    """The images that tables beside the stages, files from above, and reviewers' changes name."""
    named = {digest for one in files for digest in one.images(root)}
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
# Made anew by the next build; answers for replay and results may hold what was said of the posts.
DERIVED_FOLDERS = ("cache", "release", "previous", "stages", "report")
DERIVED_FILES = (
    "release.built",
    "responses.parquet",
    "results.json",
    "analysis.json",
    ".*.partial",
    "keywords.json",
    "keywords.svg",
    f"{LOG}*",  # errors may repeat what was asked
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
    urls: Iterable[str],
    config: Config | Path | str,
    *,
    files: Sequence[RunFiles],
    runs: Path | str = RUNS,
) -> Removal:
    """Takes posts out of a run: their text, samples, images, and all answers they went into."""
    config = config if isinstance(config, Config) else load_config(config)
    given_urls = {url: canonical_url(url, fragment=True) for url in urls}
    for url, found in given_urls.items():
        if found is None:
            raise RunError(f"{url!r} is not an address of a post: expected one such as https://...")
    forgotten = tuple(dict.fromkeys(filter(None, given_urls.values())))
    folder = RunFolder(Path(runs) / config.name)
    root, collected = folder.root, folder.root / COLLECTED
    systems = [system.name for system in config.systems]
    with folder.locked(), ExitStack() as stack:
        for one in files:
            stack.enter_context(one.held(root, systems))
        # The posts of the input files, with what is to be forgotten, and what was before.
        records = read_records(config.posts, collected)
        given: list[Row] = run_stage(Collect(folder.images), records).dataset.to_list()
        add_tombstones(root / TOMBSTONES, map(hashed, forgotten))
        held = _held(folder, given, frozenset(forgotten))
        with closing(folder.store()) as store:
            answers = store.forget(forgotten)
        if not held.posts and not answers:
            # Nothing was made of them here: what was made of others stays.
            pages = forget_answers(collected, forgotten)
            return Removal(forgotten, 0, forgotten, (), 0, 0, (), pages)
        remove_rows(root, held.samples, files)
        # Crops and local files are made anew.
        shown = held.shown | images_named(root, files)
        lost = [file for file in folder.images.root.glob("*/*") if file.name not in shown]
        for file in lost:
            file.unlink()
        if (root / LEDGER).exists():
            with FetchLedger(root / LEDGER) as ledger:
                ledger.forget(web_url(one) or one for one in held.addresses)
        pages = forget_answers(collected, forgotten)
        # What the next build makes anew, and what a killed process left of it.
        for name in DERIVED_FOLDERS:
            for path in (root / name, *root.glob(f".{name}.*")):
                if path.is_dir():  # a lock is a file
                    shutil.rmtree(path)  # an error is told: silence would be a promise not kept
        for file in (file for name in DERIVED_FILES for file in root.glob(name)):
            file.unlink(missing_ok=True)
        left = tuple(_left_in(config, folder, forgotten))
    unknown = tuple(url for url in forgotten if url not in held.posts)
    samples = tuple(sorted(held.samples))
    return Removal(forgotten, len(held.posts), unknown, samples, len(lost), answers, left, pages)


@dataclass
class _Held:
    posts: set[str] = field(default_factory=set)
    samples: set[str] = field(default_factory=set)
    shown: set[str] = field(default_factory=set)
    addresses: set[str] = field(default_factory=set)


def _held(folder: RunFolder, given: Sequence[Row], forgotten: frozenset[str]) -> _Held:
    """What a run holds of posts, and the images that others show."""
    held, shared = _Held(), set[str]()
    every = read_tombstones(folder.root / TOMBSTONES)
    in_stages = _rows(folder, ["url", "pictures"])
    in_threads = (post for row in _rows(folder, ["posts"]) for post in row["posts"] or ())
    for post in chain(given, in_stages, in_threads):
        is_theirs = post["url"] in every
        held.posts |= {post["url"]} & forgotten
        images = post["pictures"] or []
        addresses = {one["url"] for one in images if one["url"]}
        (held.addresses if is_theirs else shared).update(addresses)
        held.shown |= set() if is_theirs else {one["sha256"] for one in images}
    for sample in _rows(folder, ["id", "post_urls", *IMAGES_OF_SAMPLE, "screenshot"]):
        if not forgotten.isdisjoint(sample["post_urls"] or ()):
            held.samples.add(sample["id"])
        else:
            held.shown |= {one for name in IMAGES_OF_SAMPLE for one in sample[name] or ()}
            held.shown |= {sample["screenshot"]} - {None}
    # The posts that the release before names may have left all files since.
    for file in sorted(complete(folder.previous).glob("*/*.parquet")):
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


def _rows(folder: RunFolder, columns: Sequence[str]) -> Iterator[Row]:
    for file in sorted((folder.root / "stages").glob("*/*.parquet")):
        if set(columns) <= set(pq.read_schema(file).names):
            yield from pq.read_table(file, columns=list(columns)).to_pylist()


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
