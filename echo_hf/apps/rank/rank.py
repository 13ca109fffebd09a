"""Have people rank the outputs of a run in their browsers: `echo-hf rank CONFIG`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from echo_hf._infra.atomic import held, replaced_file
from echo_hf.apps.events import EVENTS_FILE, Event, EventLog, by_person, standing
from echo_hf.apps.page import AskedPage, Place, ShownImages, answer_of, check_installed, serve
from echo_hf.apps.people import AppUsers, check_reachable, people_of
from echo_hf.apps.rank.draw import Draw, RankedSample, drawn_samples
from echo_hf.apps.rank.page import Address, board
from echo_hf.apps.rank.session import APP, RANK, Ranker, Ranking
from echo_hf.builder.build import RUNS
from echo_hf.config.evaluation import Evaluated
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import RunError, unknown
from echo_hf.judging.run_tables import read_table
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import LeftOut, Reason
from echo_hf.systems.benchmark import benchmark_of, load_evaluation
from echo_hf.tables import HUMAN, OUTPUTS

TITLE = "Rank images"
HERE = files(__package__ or "")
STYLES = HERE.joinpath("board.css")
SCRIPTS = (HERE.joinpath("board.js"),)


def page(
    ranker: Ranker, people: AppUsers, address: Address, write: Callable[[], object]
) -> AskedPage:
    def opened(person: str) -> str:
        return board(ranker.view(person), address)

    def acted(person: str, said: Mapping[str, Any]) -> str:
        done = ranker.act(person, said)
        if done.table_changes:
            write()
        return board(done.view, address, answer_of(said))

    return AskedPage(TITLE, people, SCRIPTS, opened, acted)


LOCK = ".human.lock"
LONGEST_WAIT_S = 60
Row = Mapping[str, Any]


@dataclass(frozen=True)
class HumanTable:
    path: Path
    rankings: int
    kept: int
    left_out: Mapping[Reason, int]


def write_human(root: Path, events: Iterable[Event], draw: Draw) -> HumanTable:
    """Writes the ranks of the log into the run's `human.parquet`."""
    events = tuple(events)
    left_out: Counter[Reason] = Counter()
    rows = list(_rows(events, draw, left_out))
    ours = {(event.subject, event.person) for event in events if event.action == RANK}
    busy = RunError(
        f"another process has held {str(root / LOCK)!r} for {LONGEST_WAIT_S} s: end it, and rank "
        "again"
    )
    with held(root / LOCK, busy, LONGEST_WAIT_S):
        before = read_table(root, HUMAN)
        others = [] if before is None else before.to_pylist()
        others = [row for row in others if (row["sample_id"], row["rater"]) not in ours]
        _write(root, [*others, *rows], before)
    rankings = len({(row["sample_id"], row["rater"]) for row in rows})
    return HumanTable(root / f"{HUMAN.name}.parquet", rankings, len(others), dict(left_out))


def _rows(
    events: tuple[Event, ...], draw: Draw, left_out: Counter[Reason]
) -> Iterator[dict[str, Any]]:
    last = by_person(event for event in standing(events) if event.action == RANK)
    for (subject, person), event in sorted(last.items()):
        ranking = Ranking.from_json(event.payload)
        if not ranking.is_complete:
            continue
        there = _seen_outputs(event, draw.known.get(subject))
        for (system, output), rank in zip(event.payload["shown"], ranking.places, strict=True):
            if there.get(system) != output:
                left_out[LeftOut.OTHER_OUTPUT] += 1
                continue
            key = {"sample_id": subject, "rater": person, "system": system}
            yield {**key, "rank": rank, "cannot_rank": rank is None}


def _seen_outputs(event: Event, sample: RankedSample | None) -> Mapping[str, str]:
    """Digests by system of the outputs that are still there, of the sample as it was ranked."""
    if sample is None or sample.task.sample_digest != event.payload["sample_digest"]:
        return {}
    return {one.system: one.output for one in sample.outputs}


def _write(root: Path, rows: list[Row], before: pa.Table | None) -> None:
    written = sorted(rows, key=lambda row: tuple(str(row[name]) for name in HUMAN.key))
    table = pa.Table.from_pylist(written, HUMAN.schema)
    if (before is None and not rows) or table == before:
        return
    path = root / f"{HUMAN.name}.parquet"
    with replaced_file(path) as partial:
        pq.write_table(table, partial)


@dataclass(frozen=True)
class Ranks:
    folder: RunFolder
    ranker: Ranker

    def write(self) -> HumanTable:
        return write_human(self.folder.root, self.ranker.log.events(APP), self.ranker.draw)


def ranks_of(
    config: Evaluated | Path | str,
    *,
    runs: Path | str = RUNS,
    draw: int = 100,
    seed: int = 0,
    splits: Collection[str] = (),
) -> Ranks:
    for name in splits:
        if name not in BENCHMARKS:
            raise RunError(unknown("split", name, BENCHMARKS))
    config = config if isinstance(config, Evaluated) else load_evaluation(config)
    folder = RunFolder(Path(runs) / config.name)
    benchmark = benchmark_of(config, folder)
    outputs = read_table(folder.root, OUTPUTS)
    if outputs is None:
        raise RunError(
            f"there are no outputs in {str(folder.root)!r}: run `echo-hf generate`, or put "
            "outputs.parquet there"
        )
    tasks = benchmark.tasks(folder.images)
    wanted = [name for name in BENCHMARKS if not splits or name in splits]
    there = drawn_samples(outputs, tasks, folder.images, draw=draw, seed=seed, splits=wanted)
    if not there.samples:
        why = ", ".join(f"{count} {reason}" for reason, count in there.left_out.items())
        raise RunError(
            f"no sample in {str(folder.root)!r} has images by two systems ({why or 'no outputs'})"
            ": run `echo-hf generate`"
        )
    ranker = Ranker(EventLog(folder.root / EVENTS_FILE), there)
    return Ranks(folder, ranker)


def rank(
    ranks: Ranks,
    *,
    place: Place,
    people: Iterable[str] = (),
    anyone: bool = False,
    ready: Callable[[str], None],
) -> None:
    """Serves the page until it is stopped; whole ranks are in `human.parquet` at once."""
    check_installed("`echo-hf rank`")
    admitted = people_of(people)
    check_reachable(place.host, admitted, anyone=anyone)
    from echo_hf.apps.page import look

    images = ShownImages.of(ranks.folder.images, _digests(ranks.ranker.draw))
    with _written(ranks):
        asked = page(ranks.ranker, admitted, images.address, ranks.write)
        serve(asked.blocks, images, admitted, place, ready, partial(look, STYLES))


@contextmanager
def _written(ranks: Ranks) -> Iterator[None]:
    ranks.write()  # what a killed server had not written any more
    try:
        yield
    finally:
        ranks.write()


def _digests(draw: Draw) -> Iterator[str]:
    for sample in draw.samples:
        yield from (one.output for one in sample.outputs)
        yield from (one.sha256 for one in sample.task.inputs)
