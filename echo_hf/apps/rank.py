"""Have people rank the outputs of a run in their browsers: `echo-hf rank CONFIG`.

A seed draws the samples, and what a person sees is a fold of the log of what they did.
"""

from __future__ import annotations

import hashlib
import string
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from echo_hf._infra.atomic import held, replaced_file
from echo_hf._infra.bootstrap import FEWEST_SAMPLES
from echo_hf.apps.events import EVENTS_FILE, UNDO, Event, EventLog, by_person, standing
from echo_hf.apps.page import Address, AskedPage, Place, ShownImages, rendered, serve
from echo_hf.config.evaluation import Evaluated
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import RunError, ScoreError, unknown
from echo_hf.images.store import ImageStore
from echo_hf.judging.rate import outputs_to_rate
from echo_hf.judging.run_tables import RunTables, read_run, read_table
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.pipeline.runs import run_folder
from echo_hf.reasons import LeftOut, NotRanked, Reason
from echo_hf.scores.human_corrected import EXPECTED_SPREAD, human_corrected, ranked_needed
from echo_hf.scores.rating_table import read_ratings
from echo_hf.systems.base import Task
from echo_hf.systems.benchmark import Tasks, benchmark_of, load_evaluation
from echo_hf.tables import HUMAN, OUTPUTS

MOST_KEYS = 8
DRAW = 100
LOCK = ".human.lock"
LONGEST_WAIT_S = 60
LEAST_OUTPUTS = 2
APP = "rank"
RANK = "rank"
OPEN = "open"


@dataclass(frozen=True, slots=True)
class ShownOutput:
    system: str
    output: str


@dataclass(frozen=True, slots=True)
class RankedSample:
    task: Task
    outputs: tuple[ShownOutput, ...]


@dataclass(frozen=True)
class Draw:
    samples: tuple[RankedSample, ...]
    known: Mapping[str, RankedSample]
    seed: int
    left_out: Mapping[Reason, int]


def drawn_samples(
    outputs: pa.Table,
    benchmark: Tasks,
    images: ImageStore,
    *,
    draw: Callable[[str, int], int],
    seed: int,
    splits: Collection[str],
) -> Draw:
    """Draws samples of which at least two systems have made an image, as many as `draw` says.

    It is asked with each split, and with how many such samples the split has.
    """
    there = outputs_to_rate(outputs, benchmark)
    left_out: Counter[Reason] = Counter(there.left_out)
    every: list[RankedSample] = []
    for task in there.tasks:
        rows = there.outputs.get(task.sample_id, ())
        made = [ShownOutput(row["system"], row["image"]) for row in rows]
        shown = tuple(one for one in made if images.path(one.output).exists())
        left_out[NotRanked.LOST_IMAGE] += len(made) - len(shown)
        every.append(RankedSample(task, shown))
    samples: list[RankedSample] = []
    for split in splits:
        some = [one for one in every if one.task.split == split]
        enough = [one for one in some if len(one.outputs) >= LEAST_OUTPUTS]
        order = sorted(enough, key=lambda one: _digest(seed, one.task.sample_id))
        first = order[: draw(split, len(enough))]
        left_out[NotRanked.FEW_OUTPUTS] += len(some) - len(enough)
        left_out[NotRanked.NOT_DRAWN] += len(enough) - len(first)
        samples += first
    known = {one.task.sample_id: one for one in every if one.outputs}
    counts = {reason: count for reason, count in left_out.items() if count}
    return Draw(tuple(samples), known, seed, Counter(counts))


def shuffled(sample: RankedSample, person: str, seed: int) -> tuple[ShownOutput, ...]:
    """The images of a sample in the order in which a person sees them."""

    def place(one: ShownOutput) -> str:
        return _digest(seed, person, sample.task.sample_id, one.system)

    return tuple(sorted(sample.outputs, key=place))


def _digest(*parts: object) -> str:
    return hashlib.sha256(":".join(map(str, parts)).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Ranking:
    """Ranks of the images of one sample, by their place on the page."""

    ranks: tuple[int | None, ...]
    barred: frozenset[int] = frozenset()
    impossible: bool = False

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(tuple(value["ranks"]), frozenset(value["barred"]), value["impossible"])

    def as_json(self) -> dict[str, Any]:
        ranks, barred = list(self.ranks), sorted(self.barred)
        return {"ranks": ranks, "barred": barred, "impossible": self.impossible}

    @property
    def is_complete(self) -> bool:
        ranks = enumerate(self.ranks)
        return self.impossible or all(rank or at in self.barred for at, rank in ranks)

    @property
    def places(self) -> tuple[int | None, ...]:
        """What is written down: ranks without gaps, null where an image cannot be ranked."""
        there = sorted({rank for rank in self.ranks if rank is not None and not self.impossible})
        known = {rank: place for place, rank in enumerate(there, 1)}
        return tuple(None if rank is None else known.get(rank) for rank in self.ranks)

    def place(self, item: int, rank: int | None) -> Ranking:
        """Gives an image a rank, or none; it ties with those that have it already."""
        ranks = (*self.ranks[:item], rank, *self.ranks[item + 1 :])
        return Ranking(ranks, self.barred - {item})

    def insert(self, item: int, rank: int) -> Ranking:
        """Gives an image a rank of its own; those in the way move one down."""
        others = {at: one for at, one in enumerate(self.ranks) if one is not None and at != item}
        taken, end = set(others.values()), rank
        while end in taken:
            end += 1
        if end > len(self.ranks):
            closed = {one: place for place, one in enumerate(sorted(taken), 1)}
            rank = 1 + sum(one < rank for one in taken)
            others, end = {at: closed[one] for at, one in others.items()}, len(self.ranks)
        moved = {at: one + (rank <= one < end) for at, one in others.items()} | {item: rank}
        ranks = tuple(moved.get(at) for at in range(len(self.ranks)))
        return Ranking(ranks, self.barred - set(moved))

    def better(self, item: int) -> Ranking:
        """Moves an image one rank up; one without a rank gets the first that nobody has."""
        rank = self.ranks[item]
        return self.place(item, min(self._free()) if rank is None else max(rank - 1, 1))

    def worse(self, item: int) -> Ranking:
        """Moves an image one rank down; one without a rank gets the last that nobody has."""
        rank, last = self.ranks[item], len(self.ranks)
        return self.place(item, max(self._free()) if rank is None else min(rank + 1, last))

    def clear(self, item: int) -> Ranking:
        return self.place(item, None)

    def bar(self, item: int) -> Ranking:
        """Says that an image cannot be ranked, or that it can after all."""
        if item in self.barred:
            return replace(self, barred=self.barred - {item})
        return replace(self.place(item, None), barred=self.barred | {item})

    def give_up(self) -> Ranking:
        """Says that none of the images can be ranked, or that they can after all."""
        return replace(self, impossible=not self.impossible)

    def _free(self) -> set[int]:
        return set(range(1, len(self.ranks) + 1)) - {one for one in self.ranks if one is not None}


# What a page may ask for with an image and a rank, and with an image alone.
RANKED = ("place", "insert")
IMAGE = ("better", "worse", "clear", "bar")


def changed(ranking: Ranking, kind: object, item: object, rank: object) -> Ranking | None:
    """The ranking after what a page asks for, null for what none can ask."""
    count = len(ranking.ranks)
    if kind == "impossible":
        return ranking.give_up()
    if not isinstance(kind, str) or type(item) is not int or not 0 <= item < count:
        return None
    found: Ranking | None = None
    if kind in IMAGE:
        found = getattr(ranking, kind)(item)
    elif kind in RANKED and type(rank) is int and 1 <= rank <= count:
        found = getattr(ranking, kind)(item, rank)
    return found


@dataclass(frozen=True)
class View:
    """What one person sees, made of what that person did."""

    draw: Draw
    person: str
    events: Sequence[Event]

    @property
    def total(self) -> int:
        return len(self.draw.samples)

    @cached_property
    def number(self) -> int:
        """Of the sample that was opened or ranked last, from 1."""
        numbers = {one.task.sample_id: at for at, one in enumerate(self.draw.samples, 1)}
        known = (numbers[one.subject] for one in reversed(self.events) if one.subject in numbers)
        return next(known, 1)

    @property
    def sample(self) -> RankedSample:
        return self.draw.samples[self.number - 1]

    @cached_property
    def actions(self) -> tuple[Event, ...]:
        return tuple(one for one in standing(self.events) if one.action == RANK)

    @property
    def saved(self) -> datetime | None:
        return next((one.at for one in reversed(self.events) if one.action != OPEN), None)

    @cached_property
    def rankings(self) -> Mapping[str, Event]:
        """The last ranking of each sample that has the very images that were ranked."""
        last = {event.subject: event for event in self.actions}
        samples = {one.task.sample_id: one for one in self.draw.samples}
        return {name: last[name] for name in last.keys() & samples if _is_of(last[name], samples)}

    @property
    def ranking(self) -> Ranking:
        event = self.rankings.get(self.sample.task.sample_id)
        empty = Ranking((None,) * len(self.sample.outputs))
        return empty if event is None else Ranking.from_json(event.payload)

    @property
    def outputs(self) -> tuple[ShownOutput, ...]:
        event = self.rankings.get(self.sample.task.sample_id)
        if event is None:
            return shuffled(self.sample, self.person, self.draw.seed)
        return tuple(ShownOutput(*one) for one in event.payload["shown"])

    @cached_property
    def finished(self) -> Mapping[str, Ranking]:
        found = {name: Ranking.from_json(one.payload) for name, one in self.rankings.items()}
        return {name: ranking for name, ranking in found.items() if ranking.is_complete}

    @property
    def next(self) -> RankedSample:
        """The next sample that is not ranked; else simply the next."""
        samples = self.draw.samples
        order = [*samples[self.number :], *samples[: self.number - 1]]
        left = (one for one in order if one.task.sample_id not in self.finished)
        return next(left, samples[min(self.number, self.total - 1)])


def _is_of(event: Event, samples: Mapping[str, RankedSample]) -> bool:
    sample, payload = samples[event.subject], event.payload
    shown = {ShownOutput(*one) for one in payload["shown"]}
    return payload["sample_digest"] == sample.task.sample_digest and shown == set(sample.outputs)


@dataclass(frozen=True)
class HumanTable:
    path: Path
    rankings: int
    kept: int
    left_out: Mapping[Reason, int]


@dataclass(frozen=True)
class Ranker:
    root: Path
    draw: Draw
    basis: Mapping[str, str] = field(default_factory=dict)  # of a proposed draw, by split

    @property
    def log(self) -> EventLog:
        return EventLog(self.root / EVENTS_FILE)

    def view(self, person: str) -> View:
        return View(self.draw, person, self.log.events(APP, person=person))

    def act(self, person: str, action: Mapping[str, Any]) -> tuple[View, bool]:
        """Does what a page asks for; what it shows then, and whether the table changes."""
        now, kind = self.view(person), action.get("kind")
        subject = now.sample.task.sample_id
        if action.get("subject") == subject:
            if kind in ("next", "back"):
                before = self.draw.samples[max(now.number - 2, 0)]
                opened = now.next if kind == "next" else before
                self.log.append(APP, opened.task.sample_id, person, OPEN)
            elif kind == "undo" and now.actions:
                self.log.undo(now.actions[-1].id, person)
            else:
                ranking = changed(now.ranking, kind, action.get("item"), action.get("rank"))
                if ranking is not None and ranking != now.ranking:
                    payload = {
                        "shown": [[one.system, one.output] for one in now.outputs],
                        "sample_digest": now.sample.task.sample_digest,
                        **ranking.as_json(),
                    }
                    seen = (one.id for one in reversed(now.events) if one.subject == subject)
                    self.log.append(APP, subject, person, RANK, payload, next(seen, None))
        view = self.view(person)
        return view, view.finished != now.finished

    def write(self) -> HumanTable:
        """Makes the table anew: a killed server may not have written all of it."""
        root, known = self.root, self.draw.known
        events = [event for event in self.log.events(APP) if event.action in (RANK, UNDO)]
        left_out: Counter[Reason] = Counter()
        rows: list[dict[str, Any]] = []
        for (subject, person), event in sorted(by_person(events).items()):
            ranking, sample = Ranking.from_json(event.payload), known.get(subject)
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
            f"another process has held {str(root / LOCK)!r} for {LONGEST_WAIT_S} s: end it, and "
            "rank again"
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
        "rank.jinja",
        view=view,
        address=address,
        answer=answer,
        letters=letters,
        columns=columns,
        rows=-(-count // columns),
        hints=hints,
    )


def ranks_of(
    config: Evaluated | Path | str,
    *,
    runs: Path | str | None = None,
    draw: int = DRAW,
    width: float | None = None,
    seed: int = 0,
    splits: Collection[str] = (),
) -> Ranker:
    """What people rank: of each split `draw` samples, or as many as intervals of ±`width` need."""
    for name in splits:
        if name not in BENCHMARKS:
            raise RunError(unknown("split", name, BENCHMARKS))
    config = load_evaluation(config)
    folder = run_folder(config, runs)
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
    return Ranker(folder.root, there, basis)


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
    ranker: Ranker,
    *,
    place: Place,
    people: Iterable[str] = (),
    anyone: bool = False,
    ready: Callable[[str], None],
) -> None:
    """Serves the page until it is stopped; whole ranks are in `human.parquet` at once."""
    images = ShownImages(RunFolder(ranker.root).images)
    for sample in ranker.draw.samples:
        images.admit(one.output for one in sample.outputs)
        images.admit(one.sha256 for one in sample.task.inputs)

    def opened(person: str) -> str:
        return board(ranker.view(person), images.address)

    def acted(person: str, said: Mapping[str, Any], answer: int) -> str:
        view, table_changes = ranker.act(person, said)
        if table_changes:
            ranker.write()
        return board(view, images.address, answer)

    page = AskedPage("Rank images", ("rank.js",), "rank.css", opened, acted)
    ranker.write()
    try:
        serve(page, images, place=place, people=people, anyone=anyone, ready=ready)
    finally:
        ranker.write()
