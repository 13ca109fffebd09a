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
from echo_hf.collect.fetch import LEDGER
from echo_hf.collect.fetch_ledger import FetchLedger, read_ledger
from echo_hf.collect.records import read_records
from echo_hf.collect.takedown import forget_answers
from echo_hf.collect.tombstones import TOMBSTONES, add_tombstones, read_tombstones
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
        if SAMPLE in pq.read_schema(path).names:
            _rewrite_without(path, samples)


def images_named(root: Path, files: Iterable[RunFiles]) -> set[str]:
    """The images that tables beside the stages, files from above, and reviewers' changes name."""
    named = {digest for one in files for digest in one.images(root)}
    for path in _run_tables(root):
        images = CONFIGS[path.stem].table.images if path.stem in CONFIGS else ()
        for name in images:
            named.update(pq.read_table(path, columns=[name])[name].drop_null().to_pylist())
    # All of them: what is taken back on the page makes an earlier one stand again.
    every = read_decisions(root / FILE).every
    return named.union(*(one.changed.images for one in every if one.changed))


def _run_tables(root: Path) -> list[Path]:
    paths = (root / f"{name}.parquet" for name in (*SCORE_CONFIGS, HUMAN))
    return [path for path in paths if path.exists()]


def _rewrite_without(path: Path, samples: Collection[str]) -> None:
    table = pq.read_table(path)
    about = pc.is_in(table[SAMPLE], pa.array(sorted(samples), pa.string()))
    if not pc.any(about).as_py():
        return
    with replaced_file(path) as partial:
        pq.write_table(table.filter(pc.invert(about)), partial)


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
    forgotten = tuple(dict.fromkeys(map(_address, urls)))
    folder = RunFolder(Path(runs) / config.name)
    systems = [system.name for system in config.systems]
    with folder.locked(), ExitStack() as stack:
        for one in files:
            stack.enter_context(one.held(folder.root, systems))
        given = _given(config, folder)  # with what is to be forgotten, and what was before
        add_tombstones(folder.root / TOMBSTONES, forgotten)
        held = _held(folder, given, frozenset(forgotten))
        with closing(folder.store()) as store:
            answers = store.forget(forgotten)
        if not held.posts and not answers:
            # Nothing was made of them here: what was made of others stays.
            pages = forget_answers(folder.root / COLLECTED, forgotten)
            return Removal(forgotten, 0, forgotten, (), 0, 0, (), pages)
        remove_rows(folder.root, held.samples, files)
        images = _sweep(folder, held.shown | images_named(folder.root, files))
        if (folder.root / LEDGER).exists():
            with FetchLedger(folder.root / LEDGER) as ledger:
                ledger.forget(web_url(one) or one for one in held.addresses)
        pages = forget_answers(folder.root / COLLECTED, forgotten)
        _delete_derived(folder.root)
        left = (*_left_in(config, folder), *_left_in_answers(config, forgotten))
    unknown = tuple(url for url in forgotten if url not in held.posts)
    samples = tuple(sorted(held.samples))
    return Removal(forgotten, len(held.posts), unknown, samples, images, answers, left, pages)


@dataclass
class _Held:
    posts: set[str] = field(default_factory=set)
    samples: set[str] = field(default_factory=set)
    shown: set[str] = field(default_factory=set)
    addresses: set[str] = field(default_factory=set)


def _address(url: str) -> str:
    found = canonical_url(url, fragment=True)
    if found is None:
        raise RunError(f"{url!r} is not an address of a post: expected one such as https://...")
    return found


def _given(config: Config, folder: RunFolder) -> list[Row]:
    """The posts of the input files, which hold them also where no stage does."""
    reader = Collect(folder.images)
    posts: list[Row] = run_stage(
        reader, read_records(config.posts, folder.root / COLLECTED)
    ).dataset.to_list()
    return posts


def _held(folder: RunFolder, given: Sequence[Row], forgotten: frozenset[str]) -> _Held:
    held, shared = _Held(), set[str]()
    every = read_tombstones(folder.root / TOMBSTONES)
    for post in chain(given, _posts(folder)):
        is_theirs = post["url"] in every
        held.posts |= {post["url"]} & forgotten
        images = post["pictures"] or []
        addresses = {one["url"] for one in images if one["url"]}
        (held.addresses if is_theirs else shared).update(addresses)
        held.shown |= set() if is_theirs else {one["sha256"] for one in images}
    for sample in _samples(folder):
        is_theirs = not forgotten.isdisjoint(sample["post_urls"] or ())
        held.samples |= {sample["id"]} if is_theirs else set()
        held.shown |= set() if is_theirs else _images(sample)
    held.posts |= forgotten.intersection(_named_before(folder))
    held.addresses -= shared
    held.shown |= _fetched(folder, shared)
    return held


def _fetched(folder: RunFolder, addresses: Iterable[str]) -> set[str]:
    """The images that lie here for addresses which other posts name."""
    names = [web_url(one) or one for one in addresses]
    known = read_ledger(folder.root / LEDGER, names)
    return {entry.sha256 for entry in known.values() if entry.sha256}


def _sweep(folder: RunFolder, shown: Collection[str]) -> int:
    """Deletes every image that nobody shows; crops and local files are made anew."""
    lost = [file for file in folder.images.root.glob("*/*") if file.name not in shown]
    for file in lost:
        file.unlink()
    return len(lost)


def _delete_derived(root: Path) -> None:
    """Deletes what the next build makes anew, and what a killed process left of it."""
    for name in DERIVED_FOLDERS:
        for folder in (root / name, *root.glob(f".{name}.*")):
            if folder.exists():
                shutil.rmtree(folder)  # an error is told: silence would be a promise not kept
    for file in (file for name in DERIVED_FILES for file in root.glob(name)):
        file.unlink(missing_ok=True)


def _posts(folder: RunFolder) -> Iterator[Row]:
    for table in _tables(folder, ["url", "pictures"]):
        yield from table.to_pylist()
    for table in _tables(folder, ["posts"]):
        yield from (post for row in table.to_pylist() for post in row["posts"] or ())


def _samples(folder: RunFolder) -> Iterator[Row]:
    for table in _tables(folder, ["id", "post_urls", *IMAGES_OF_SAMPLE, "screenshot"]):
        yield from table.to_pylist()


def _tables(folder: RunFolder, columns: Sequence[str]) -> Iterator[pa.Table]:
    for file in sorted((folder.root / "stages").glob("*/*.parquet")):
        if set(columns) <= set(pq.read_schema(file).names):
            yield pq.read_table(file, columns=list(columns))


def _named_before(folder: RunFolder) -> Iterator[str]:
    """The posts that the release before names, which may have left all files since."""
    for file in sorted(complete(folder.previous).glob("*/*.parquet")):
        names = pq.read_schema(file).names
        columns = [name for name in NAMING.get(file.parent.name, ()) if name in names]
        for row in pq.read_table(file, columns=columns).to_pylist():
            yield from row.get("sources") or ()
            yield from filter(None, addresses_of(row))


def _images(sample: Row) -> set[str]:
    shown = {one for name in IMAGES_OF_SAMPLE for one in sample[name] or ()}
    return shown | {sample["screenshot"]} - {None}


def _left_in(config: Config, folder: RunFolder) -> Iterator[str]:
    """The input files that name a forgotten post, by what collection notices of them."""
    reader = Collect.from_config(config, folder.images)
    for row in run_stage(reader, read_records(config.posts)).notices.to_list():
        if row["_reason"] == Notice.FORGOTTEN:
            yield from row["_parent"]


def _left_in_answers(config: Config, forgotten: Iterable[str]) -> Iterator[str]:
    """The lines of files of recorded answers that name a forgotten post."""
    paths = [one.options.get("path") for one in config.engines.values() if one.kind == RECORDED]
    for path in filter(None, paths):
        for number, line in enumerate(Path(path).read_text("utf-8-sig").split("\n"), 1):
            if any(url in line for url in forgotten):
                yield f"{path}:{number}"
