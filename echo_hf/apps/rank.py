"""Have people rank the outputs of a run in their browsers: `echo-hf rank CONFIG`.

A seed draws the samples; a person's page is computed from the log of that person's actions.
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

from echo_hf._infra.bootstrap import MIN_SAMPLES
from echo_hf.apps.page import AppPage, ImageAddress, ServedImages, ServerAddress, render_page, serve
from echo_hf.apps.people_rows import write_people_rows
from echo_hf.curate.events import EVENTS_FILE, UNDO, Event, EventLog, drop_undone, latest_by_person
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import RunError, ScoreError, unknown
from echo_hf.hub.facts import LeftOut
from echo_hf.images.store import ImageStore
from echo_hf.judging.rate import select_outputs
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import Reason
from echo_hf.scores.human_corrected import EXPECTED_SPREAD, human_corrected, ranked_needed
from echo_hf.scores.rating_table import read_ratings
from echo_hf.systems.base import Task
from echo_hf.systems.benchmark import BenchmarkTasks
from echo_hf.systems.evaluation_run import EvaluationRun, RunOrConfig
from echo_hf.systems.run_tables import RunTables
from echo_hf.tables import HUMAN, select_first_draws


class NotRanked(Reason):
    """Why people do not rank an output or a sample."""

    LOST_IMAGE = "lost_picture", "the file of the image is not among the run's images"
    FEW_OUTPUTS = "few_outputs", "fewer than two systems made an image of the sample"
    NOT_DRAWN = "not_drawn", "enough samples of its split were drawn before it"


MAX_LETTER_KEYS = 8
DEFAULT_SAMPLES = 100
MIN_OUTPUTS = 2
APP = "rank"
# Actions of events.
RANK = "rank"
OPEN = "open"
# Methods of `SampleRanking` that a page may call.
ACTIONS_WITH_RANK = ("place", "insert")
ACTIONS_ON_IMAGE = ("better", "worse", "clear", "bar")


@dataclass(frozen=True, slots=True)
class HiddenOutput:
    system: str
    image: str  # its digest


@dataclass(frozen=True, slots=True)
class RankedSample:
    task: Task
    outputs: tuple[HiddenOutput, ...]


@dataclass(frozen=True)
class RankingDraw:
    samples: tuple[RankedSample, ...]
    by_id: Mapping[str, RankedSample]  # all with an image, drawn or not
    seed: int
    left_out: Mapping[Reason, int]


def draw_samples(
    outputs: pa.Table,
    benchmark: BenchmarkTasks,
    images: ImageStore,
    *,
    choose_count: Callable[[str, int], int],
    seed: int,
    splits: Collection[str],
) -> RankingDraw:
    """Draw samples that have images by at least two systems.

    `choose_count` returns how many to draw, from the name of a split and how many such samples
    it has.
    """
    to_rate = select_outputs(outputs, benchmark)
    left_out: Counter[Reason] = Counter(to_rate.left_out)
    candidates: list[RankedSample] = []
    for task in to_rate.tasks:
        rows = to_rate.outputs.get(task.sample_id, ())
        outputs_with_image = [HiddenOutput(row["system"], row["image"]) for row in rows]
        present = tuple(
            output for output in outputs_with_image if images.path(output.image).exists()
        )
        left_out[NotRanked.LOST_IMAGE] += len(outputs_with_image) - len(present)
        candidates.append(RankedSample(task, present))
    samples: list[RankedSample] = []
    for split in splits:
        of_split = [sample for sample in candidates if sample.task.split == split]
        rankable = [sample for sample in of_split if len(sample.outputs) >= MIN_OUTPUTS]
        order = sorted(rankable, key=lambda sample: _digest(seed, sample.task.sample_id))
        first = order[: choose_count(split, len(rankable))]
        left_out[NotRanked.FEW_OUTPUTS] += len(of_split) - len(rankable)
        left_out[NotRanked.NOT_DRAWN] += len(rankable) - len(first)
        samples += first
    by_id = {sample.task.sample_id: sample for sample in candidates if sample.outputs}
    counts = {reason: count for reason, count in left_out.items() if count}
    return RankingDraw(tuple(samples), by_id, seed, Counter(counts))


def shuffle_outputs(sample: RankedSample, person: str, seed: int) -> tuple[HiddenOutput, ...]:
    """Return the images of a sample in the order in which a person sees them."""

    def get_sort_key(output: HiddenOutput) -> str:
        return _digest(seed, person, sample.task.sample_id, output.system)

    return tuple(sorted(sample.outputs, key=get_sort_key))


def _digest(*parts: object) -> str:
    return hashlib.sha256(":".join(map(str, parts)).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class SampleRanking:
    """A person's ranks of the images of one sample, by their position on the page."""

    ranks: tuple[int | None, ...]
    barred: frozenset[int] = frozenset()  # positions of images that cannot be ranked
    impossible: bool = False  # whether the whole sample cannot be ranked

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
        """The ranks as they are saved: without gaps, null where an image cannot be ranked."""
        used = sorted({rank for rank in self.ranks if rank is not None and not self.impossible})
        place_of = {rank: place for place, rank in enumerate(used, 1)}
        return tuple(None if rank is None else place_of.get(rank) for rank in self.ranks)

    def place(self, position: int, rank: int | None) -> SampleRanking:
        """Give the image at a position a rank, or none; it ties with images of the same rank."""
        ranks = (*self.ranks[:position], rank, *self.ranks[position + 1 :])
        return SampleRanking(ranks, self.barred - {position})

    def insert(self, position: int, rank: int) -> SampleRanking:
        """Give an image a rank of its own; images in the way move one down."""
        others = {
            at: rank for at, rank in enumerate(self.ranks) if rank is not None and at != position
        }
        used, gap = set(others.values()), rank
        while gap in used:
            gap += 1
        if gap > len(self.ranks):  # all ranks from this to the last are used: close the gaps first
            rank_without_gaps = {old: place for place, old in enumerate(sorted(used), 1)}
            rank, gap = 1 + sum(old < rank for old in used), len(self.ranks)
            others = {at: rank_without_gaps[old] for at, old in others.items()}
        ranks: list[int | None] = [None] * len(self.ranks)
        for at, old in others.items():
            ranks[at] = old + 1 if rank <= old < gap else old
        ranks[position] = rank
        return SampleRanking(tuple(ranks), self.barred - {position} - set(others))

    def better(self, position: int) -> SampleRanking:
        """Move an image one rank up; one without a rank gets the first unused rank."""
        rank = self.ranks[position]
        return self.place(position, min(self._unused_ranks()) if rank is None else max(rank - 1, 1))

    def worse(self, position: int) -> SampleRanking:
        """Move an image one rank down; one without a rank gets the last unused rank."""
        rank, last = self.ranks[position], len(self.ranks)
        return self.place(
            position, max(self._unused_ranks()) if rank is None else min(rank + 1, last)
        )

    def clear(self, position: int) -> SampleRanking:
        return self.place(position, None)

    def bar(self, position: int) -> SampleRanking:
        """Mark an image as one that cannot be ranked, or unmark it."""
        if position in self.barred:
            return replace(self, barred=self.barred - {position})
        return replace(self.place(position, None), barred=self.barred | {position})

    def toggle_impossible(self) -> SampleRanking:
        """Mark the whole sample as one that cannot be ranked, or unmark it."""
        return replace(self, impossible=not self.impossible)

    def _unused_ranks(self) -> set[int]:
        return set(range(1, len(self.ranks) + 1)).difference(self.ranks)


def apply_action(
    ranking: SampleRanking, action: object, item: object, rank: object
) -> SampleRanking | None:
    """Return the ranking after an action of the page, or null for an invalid action."""
    count = len(ranking.ranks)
    if action == "impossible":
        return ranking.toggle_impossible()
    if not isinstance(action, str) or type(item) is not int or not 0 <= item < count:
        return None
    changed_ranking: SampleRanking | None = None
    if action in ACTIONS_ON_IMAGE:
        changed_ranking = getattr(ranking, action)(item)
    elif action in ACTIONS_WITH_RANK and type(rank) is int and 1 <= rank <= count:
        changed_ranking = getattr(ranking, action)(item, rank)
    return changed_ranking


@dataclass(frozen=True)
class RankingPage:
    """The state of one person's page, computed from that person's events."""

    draw: RankingDraw
    person: str
    events: Sequence[Event]

    @property
    def total(self) -> int:
        return len(self.draw.samples)

    @cached_property
    def number(self) -> int:
        """The number, from 1, of the sample that was opened or ranked last."""
        numbers = {sample.task.sample_id: at for at, sample in enumerate(self.draw.samples, 1)}
        opened = (
            numbers[event.subject] for event in reversed(self.events) if event.subject in numbers
        )
        return next(opened, 1)

    @property
    def sample(self) -> RankedSample:
        return self.draw.samples[self.number - 1]

    @cached_property
    def actions(self) -> tuple[Event, ...]:
        return tuple(event for event in drop_undone(self.events) if event.action == RANK)

    @property
    def saved(self) -> datetime | None:
        return next((event.at for event in reversed(self.events) if event.action != OPEN), None)

    @cached_property
    def rankings(self) -> Mapping[str, Event]:
        """The last ranking event of each sample, if its images are still those that were ranked."""
        last = {event.subject: event for event in self.actions}
        samples = {sample.task.sample_id: sample for sample in self.draw.samples}
        return {
            name: last[name] for name in last.keys() & samples if _is_about(last[name], samples)
        }

    @property
    def ranking(self) -> SampleRanking:
        event = self.rankings.get(self.sample.task.sample_id)
        empty = SampleRanking((None,) * len(self.sample.outputs))
        return empty if event is None else SampleRanking.from_json(event.payload)

    @property
    def outputs(self) -> tuple[HiddenOutput, ...]:
        event = self.rankings.get(self.sample.task.sample_id)
        if event is None:
            return shuffle_outputs(self.sample, self.person, self.draw.seed)
        return tuple(HiddenOutput(*pair) for pair in event.payload["shown"])

    @cached_property
    def finished(self) -> Mapping[str, SampleRanking]:
        rankings = {
            name: SampleRanking.from_json(event.payload) for name, event in self.rankings.items()
        }
        return {name: ranking for name, ranking in rankings.items() if ranking.is_complete}

    @property
    def next(self) -> RankedSample:
        """The next sample that is not ranked; if all are, the one after the open one."""
        samples = self.draw.samples
        order = [*samples[self.number :], *samples[: self.number - 1]]
        unfinished = (sample for sample in order if sample.task.sample_id not in self.finished)
        return next(unfinished, samples[min(self.number, self.total - 1)])


def _is_about(event: Event, samples: Mapping[str, RankedSample]) -> bool:
    sample, payload = samples[event.subject], event.payload
    outputs = {HiddenOutput(*pair) for pair in payload["shown"]}
    return payload["sample_digest"] == sample.task.sample_digest and outputs == set(sample.outputs)


@dataclass(frozen=True)
class RankingTotals:
    """The file of the human table, and the number of rankings in it."""

    path: Path
    rankings: int  # by people in this app
    kept: int  # rows of other sources
    left_out: Mapping[Reason, int]


@dataclass(frozen=True)
class RankingApp:
    root: Path
    draw: RankingDraw
    basis: Mapping[str, str] = field(default_factory=dict)  # by split, why so many are drawn

    @property
    def log(self) -> EventLog:
        return EventLog(self.root / EVENTS_FILE)

    def build_page(self, person: str) -> RankingPage:
        return RankingPage(self.draw, person, self.log.read_events(APP, person=person))

    def act(self, person: str, action: Mapping[str, Any]) -> tuple[RankingPage, bool]:
        """Apply an action of the page; return the new page and whether the table changes."""
        page, kind = self.build_page(person), action.get("kind")
        subject = page.sample.task.sample_id
        if action.get("subject") == subject:
            if kind in ("next", "back"):
                previous = self.draw.samples[max(page.number - 2, 0)]
                next_sample = page.next if kind == "next" else previous
                self.log.append(APP, next_sample.task.sample_id, person, OPEN)
            elif kind == "undo" and page.actions:
                self.log.undo(page.actions[-1].id, person)
            else:
                ranking = apply_action(page.ranking, kind, action.get("item"), action.get("rank"))
                if ranking is not None and ranking != page.ranking:
                    payload = {
                        "shown": [[output.system, output.image] for output in page.outputs],
                        "sample_digest": page.sample.task.sample_digest,
                        **ranking.as_json(),
                    }
                    earlier = (
                        event.id for event in reversed(page.events) if event.subject == subject
                    )
                    self.log.append(APP, subject, person, RANK, payload, next(earlier, None))
        updated = self.build_page(person)
        return updated, updated.finished != page.finished

    def write(self) -> RankingTotals:
        """Write the table anew from the log: a server that was killed may not have written all."""
        by_id = self.draw.by_id
        events = [event for event in self.log.read_events(APP) if event.action in (RANK, UNDO)]
        left_out: Counter[Reason] = Counter()
        rows: list[dict[str, Any]] = []
        for (subject, person), event in sorted(latest_by_person(events).items()):
            ranking, sample = SampleRanking.from_json(event.payload), by_id.get(subject)
            if not ranking.is_complete:
                continue
            present: dict[str, str] = {}  # empty where the sample has changed since it was ranked
            if sample and sample.task.sample_digest == event.payload["sample_digest"]:
                present = {output.system: output.image for output in sample.outputs}
            for (system, image), rank in zip(event.payload["shown"], ranking.places, strict=True):
                if present.get(system) != image:
                    left_out[LeftOut.OTHER_OUTPUT] += 1
                    continue
                key = {"sample_id": subject, "rater": person, "system": system}
                rows.append({**key, "rank": rank, "cannot_rank": rank is None})
        rankings = len({(row["sample_id"], row["rater"]) for row in rows})
        ranked_here = {(event.subject, event.person) for event in events if event.action == RANK}
        path, kept = write_people_rows(
            self.root, HUMAN, rows, lambda row: (row["sample_id"], row["rater"]) in ranked_here
        )
        return RankingTotals(path, rankings, kept, dict(left_out))


def render_ranking_page(view: RankingPage, address: ImageAddress, request_number: int = 0) -> str:
    """Render the page of a person who ranks; it escapes texts and names no system."""
    count, alphabet = len(view.outputs), string.ascii_uppercase
    letters = [alphabet[at % 26] + (str(at // 26 + 1) if at >= 26 else "") for at in range(count)]
    columns = count if count < 4 else -(-count // 2)
    digits = min(count, 9)
    hints = {
        f"A to {letters[min(count, MAX_LETTER_KEYS) - 1]}": "choose an image",
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
    return render_page(
        "rank.jinja",
        view=view,
        address=address,
        answer=request_number,
        letters=letters,
        columns=columns,
        rows=-(-count // columns),
        hints=hints,
    )


def open_ranking(
    config: RunOrConfig,
    *,
    runs: Path | str | None = None,
    draw: int = DEFAULT_SAMPLES,
    width: float | None = None,
    seed: int = 0,
    splits: Collection[str] = (),
) -> RankingApp:
    """Draw the samples to rank: `draw` of each split, or as many as a win rate ±`width` needs."""
    for name in splits:
        if name not in BENCHMARKS:
            raise RunError(unknown("split", name, BENCHMARKS))
    run = EvaluationRun.from_config(config, runs)
    folder, tasks = run.folder, run.read_tasks()
    outputs = select_first_draws(run.read_outputs())
    chosen = [name for name in BENCHMARKS if not splits or name in splits]
    basis: dict[str, str] = {}
    run_tables = None if width is None else run.read_tables()

    def count(split: str, rankable: int) -> int:
        if width is None or run_tables is None:
            return draw
        needed, reason = _estimate_needed(run_tables, split, rankable, width)
        basis[split] = f" for an interval of ±{width:g}, {reason}"
        return needed

    drawing = draw_samples(
        outputs, tasks, folder.images, choose_count=count, seed=seed, splits=chosen
    )
    if not drawing.samples:
        reasons = ", ".join(f"{count} {reason}" for reason, count in drawing.left_out.items())
        raise RunError(
            f"no sample in {str(folder.root)!r} has images by two systems "
            f"({reasons or 'no outputs'}): run `echo-hf generate`"
        )
    return RankingApp(folder.root, drawing, basis)


def _estimate_needed(run: RunTables, split: str, rankable: int, width: float) -> tuple[int, str]:
    """Estimate how many samples people have to rank in all, and say what the number is based on."""
    tables = (run.ratings, run.outputs, run.human)
    ratings, outputs, human = (run.select_split(table, split) for table in tables)
    if ratings and human:
        with suppress(ScoreError):  # people ranked too few, or judges rated none of them
            human_rates = human_corrected(read_ratings(ratings, outputs), human)
            if (needed := human_rates.n_for(width)) is not None:
                return needed, f"from the {human_rates.ranked} that people ranked"
    needed = ranked_needed(width, rankable)
    if rankable < MIN_SAMPLES:
        return needed, f"which takes {MIN_SAMPLES} samples at least"
    return needed, f"from a spread of {EXPECTED_SPREAD} in other ratings"


def rank(
    app: RankingApp,
    *,
    server: ServerAddress,
    people: Iterable[str] = (),
    allow_anyone: bool = False,
    on_ready: Callable[[str], None],
) -> None:
    """Serve the page until it is stopped; each complete ranking is in `human.parquet` at once."""
    images = ServedImages(RunFolder(app.root).images)
    for sample in app.draw.samples:
        images.admit(output.image for output in sample.outputs)
        images.admit(image.sha256 for image in sample.task.inputs)

    def open_page(person: str) -> str:
        return render_ranking_page(app.build_page(person), images.get_address)

    def handle_action(person: str, action: Mapping[str, Any], request_number: int) -> str:
        view, table_changes = app.act(person, action)
        if table_changes:
            app.write()
        return render_ranking_page(view, images.get_address, request_number)

    page = AppPage("Rank images", ("board.js", "rank.js"), "board.css", open_page, handle_action)
    app.write()
    try:
        serve(
            page, images, server=server, people=people, allow_anyone=allow_anyone, on_ready=on_ready
        )
    finally:
        app.write()
