"""Have people rank the outputs of a run in their browsers: `echo-hf rank CONFIG`."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from echo_hf._infra.atomic import held, replaced_file
from echo_hf._infra.bootstrap import FEWEST_SAMPLES
from echo_hf.apps.events import EVENTS_FILE, UNDO, Event, EventLog, by_person
from echo_hf.apps.page import Address, AskedPage, Place, ShownImages, rendered, serve
from echo_hf.apps.rank.session import APP, RANK, Draw, Ranker, Ranking, View, drawn_samples
from echo_hf.builder.build import RUNS
from echo_hf.config.evaluation import Evaluated
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import RunError, ScoreError, unknown
from echo_hf.judging.run_tables import RunTables, read_run, read_table
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import LeftOut, Reason
from echo_hf.scores.human_corrected import EXPECTED_SPREAD, human_corrected, ranked_needed
from echo_hf.scores.rating_table import read_ratings
from echo_hf.systems.benchmark import benchmark_of, load_evaluation
from echo_hf.tables import HUMAN, OUTPUTS

MOST_KEYS = 8
DRAW = 100
LOCK = ".human.lock"
LONGEST_WAIT_S = 60


def board(view: View, address: Address, answer: int = 0) -> str:
    """The page of a person who ranks: texts of posts are escaped, no system is named."""
    count, alphabet = len(view.outputs), string.ascii_uppercase
    letters = [alphabet[at % 26] + (str(at // 26 + 1) if at >= 26 else "") for at in range(count)]
    columns = count if count < 4 else -(-count // 2)
    digits = min(count, 9)
    hints = {
        f"A to {letters[min(count, MOST_KEYS) - 1]}": "choose an image",
        f"1 to {digits}": "its rank; the same number is a tie",
        f"Shift and 1 to {digits}": "insert there",
        "↑ ↓": "a rank better, worse",
        "← →": "another image",
        "Backspace": "no rank",
        "Space": "full size; then ← → show the others",
        "X": "cannot rank this image",
        "I": "cannot rank the sample",
        "U": "undo",
        "Enter": "next",
        "P": "back",
    }
    return rendered(
        "rank/board.jinja",
        view=view,
        address=address,
        answer=answer,
        letters=letters,
        columns=columns,
        rows=-(-count // columns),
        hints=hints,
    )


def page(ranker: Ranker, address: Address, write: Callable[[], object]) -> AskedPage:
    def opened(person: str) -> str:
        return board(ranker.view(person), address)

    def acted(person: str, said: Mapping[str, Any], answer: int) -> str:
        view, table_changes = ranker.act(person, said)
        if table_changes:
            write()
        return board(view, address, answer)

    return AskedPage("Rank images", "rank", ("board.js",), "board.css", opened, acted)


@dataclass(frozen=True)
class HumanTable:
    path: Path
    rankings: int
    kept: int
    left_out: Mapping[Reason, int]


def write_human(root: Path, events: Iterable[Event], draw: Draw) -> HumanTable:
    events = [event for event in events if event.action in (RANK, UNDO)]
    left_out: Counter[Reason] = Counter()
    rows: list[dict[str, Any]] = []
    for (subject, person), event in sorted(by_person(events).items()):
        ranking, sample = Ranking.from_json(event.payload), draw.known.get(subject)
        if not ranking.is_complete:
            continue
        # Outputs that are still there, of the sample as it was ranked.
        same = sample and sample.task.sample_digest == event.payload["sample_digest"]
        there = {one.system: one.output for one in sample.outputs} if sample and same else {}
        for (system, output), rank in zip(event.payload["shown"], ranking.places, strict=True):
            if there.get(system) != output:
                left_out[LeftOut.OTHER_OUTPUT] += 1
                continue
            key = {"sample_id": subject, "rater": person, "system": system}
            rows.append({**key, "rank": rank, "cannot_rank": rank is None})
    rankings = len({(row["sample_id"], row["rater"]) for row in rows})
    ours = {(event.subject, event.person) for event in events if event.action == RANK}
    path = root / f"{HUMAN.name}.parquet"
    busy = RunError(
        f"another process has held {str(root / LOCK)!r} for {LONGEST_WAIT_S} s: end it, and rank "
        "again"
    )
    with held(root / LOCK, busy, LONGEST_WAIT_S):
        before = read_table(root, HUMAN)
        others = [] if before is None else before.to_pylist()
        others = [row for row in others if (row["sample_id"], row["rater"]) not in ours]
        every = sorted([*others, *rows], key=lambda row: [str(row[name]) for name in HUMAN.key])
        table = pa.Table.from_pylist(every, HUMAN.schema)
        if table != before and (every or before is not None):
            with replaced_file(path) as partial:
                pq.write_table(table, partial)
    return HumanTable(path, rankings, len(others), dict(left_out))


@dataclass(frozen=True)
class Ranks:
    folder: RunFolder
    ranker: Ranker
    basis: Mapping[str, str] = field(default_factory=dict)  # of a proposed draw, by split

    def write(self) -> HumanTable:
        return write_human(self.folder.root, self.ranker.log.events(APP), self.ranker.draw)


def ranks_of(
    config: Evaluated | Path | str,
    *,
    runs: Path | str = RUNS,
    draw: int = DRAW,
    width: float | None = None,
    seed: int = 0,
    splits: Collection[str] = (),
) -> Ranks:
    """What people rank: of each split `draw` samples, or as many as intervals of ±`width` need."""
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
    basis: dict[str, str] = {}
    known = None if width is None else read_run(benchmark, folder)

    def count(split: str, samples: int) -> int:
        if width is None or known is None:
            return draw
        needed, why = _needed(known, split, samples, width)
        basis[split] = f" for an interval of ±{width:g}, {why}"
        return needed

    there = drawn_samples(outputs, tasks, folder.images, draw=count, seed=seed, splits=wanted)
    if not there.samples:
        why = ", ".join(f"{count} {reason}" for reason, count in there.left_out.items())
        raise RunError(
            f"no sample in {str(folder.root)!r} has images by two systems ({why or 'no outputs'})"
            ": run `echo-hf generate`"
        )
    ranker = Ranker(EventLog(folder.root / EVENTS_FILE), there)
    return Ranks(folder, ranker, basis)


def _needed(run: RunTables, split: str, samples: int, width: float) -> tuple[int, str]:
    """How many samples people have to rank, those ranked included, and what that rests on."""
    tables = (run.ratings, run.outputs, run.human)
    ratings, outputs, human = (run.of_split(table, split) for table in tables)
    if ratings and human:
        with suppress(ScoreError):  # too few are ranked, or none of them is rated
            found = human_corrected(read_ratings(ratings, outputs), human)
            if (needed := found.n_for(width)) is not None:
                return needed, f"from the {found.ranked} that people ranked"
    needed = ranked_needed(width, samples)
    if samples < FEWEST_SAMPLES:
        return needed, f"which takes {FEWEST_SAMPLES} samples at least"
    return needed, f"from a spread of {EXPECTED_SPREAD} in other ratings"


def rank(
    ranks: Ranks,
    *,
    place: Place,
    people: Iterable[str] = (),
    anyone: bool = False,
    ready: Callable[[str], None],
) -> None:
    """Serves the page until it is stopped; whole ranks are in `human.parquet` at once."""
    images = ShownImages(ranks.folder.images)
    for sample in ranks.ranker.draw.samples:
        images.admit(one.output for one in sample.outputs)
        images.admit(one.sha256 for one in sample.task.inputs)
    ranks.write()  # what a killed server had not written any more
    try:
        shown = page(ranks.ranker, images.address, ranks.write)
        serve(shown, images, place=place, people=people, anyone=anyone, ready=ready)
    finally:
        ranks.write()
