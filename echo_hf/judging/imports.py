"""`echo-hf judge --import`: outputs and judgements of others become rows of a run's tables."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import Field, ValidationError

from echo_hf._infra.registry import Needs, Registry
from echo_hf._infra.text import one_line
from echo_hf.builder.build import RUNS
from echo_hf.config.checks import ANSWERED_BY, IMPORTED, AnsweredBy, Section, Words
from echo_hf.config.evaluation import Evaluated
from echo_hf.errors import ConfigError, ImageError, RunError
from echo_hf.images.store import check_image
from echo_hf.judging.rate import STAGE
from echo_hf.judging.run_tables import USUAL, HumanRow, read_table
from echo_hf.judging.session import alone_in, write_table
from echo_hf.reasons import IgnoredRating, NotImported, Outcome, Reason, Unrated
from echo_hf.systems.base import Task
from echo_hf.systems.benchmark import benchmark_of, evaluation_folder, load_evaluation
from echo_hf.tables import OUTPUTS, TABLES, Table

Row = Mapping[str, Any]
Key = tuple[Any, ...]
NAMED = ("system", "system_a", "system_b")
IMAGE_SUFFIXES = {".jpeg", ".jpg", ".png", ".webp"}
LONGEST = 20_000  # of an explanation


@dataclass(frozen=True)
class Found:
    """A row as a file of others has it.

    Attributes:
        table: The table that it belongs to.
        values: Its columns; `sample_id` may be the name of an image.
        prompt: Tells the sample where the name does not.
        image: Of an output, the encoded image.
    """

    table: Table
    values: Row
    prompt: str | None = None
    image: bytes | None = None


# Gives rows, and reasons for what is none.
Reader = Callable[[Path], Iterator[Found | NotImported]]
NAMES = ("alpaca_eval", "genai_bench", "imagenhub", "inspect", "jsonl", "viescore")
OURS = dict.fromkeys(NAMES, f"{__package__}.readers")
READERS: Registry[Reader, Needs] = Registry("format", "echo_hf.readers", OURS, RunError)


class OutputRow(Section):
    sample_id: Words
    system: Words
    outcome: Outcome = Outcome.OK


class Judgement(Section):
    sample_id: Words
    judge: Words
    repeat: Annotated[int, Field(ge=0)] = USUAL["repeat"]
    explanation: Annotated[str, Field(max_length=LONGEST)] | None = None
    cost_usd: Annotated[float, Field(allow_inf_nan=False, ge=0)] | None = None


class RatingRow(Judgement):
    system: Words
    rubric: Words = USUAL["rubric"]
    rating: Annotated[float, Field(allow_inf_nan=False)] | None = None


class ComparisonRow(Judgement):
    system_a: Words
    system_b: Words
    order: Literal["ab", "ba"]
    winner: Literal["a", "b", "tie"] | None = None


ROWS: Mapping[str, type[Section]] = {
    "outputs": OutputRow,
    "ratings": RatingRow,
    "comparisons": ComparisonRow,
    "human": HumanRow,
}
# What a judge says, and why it is not there.
SAID = {"ratings": ("rating", Unrated.NO_RATING), "comparisons": ("winner", Unrated.NO_CHOICE)}


@dataclass(frozen=True)
class Imported:
    """What came of files of others: rows by table, and what is left out by reason."""

    format: str
    rows: Mapping[str, int]
    judges: tuple[str, ...]
    systems: tuple[str, ...]
    left_out: Mapping[Reason, int]
    paths: Mapping[str, Path] = field(default_factory=dict)


def import_judgements(
    config: Evaluated | Path | str,
    place: Path,
    *,
    runs: Path | str = RUNS,
    format: str,
    dry_run: bool = False,
) -> Imported:
    """Writes rows of others into the tables of a run, in which its own rows stay."""
    config = config if isinstance(config, Evaluated) else load_evaluation(config)
    if not place.exists():
        raise RunError(f"{str(place)!r} does not exist: expected a file or folder to import")
    reader, folder = READERS.find(format, "--format"), evaluation_folder(config, runs)
    (READERS.facts(format) or Needs()).check_installed(f"format {format!r}")
    tasks = benchmark_of(config, folder).tasks(folder.images).tasks
    with alone_in(folder.root):
        put = check_image if dry_run else folder.images.put
        drawing = {one.name for one in config.systems}
        given = Import(drawing, tasks, made_by(format, place), put)
        for one in reader(place):
            if reason := one if isinstance(one, NotImported) else given.taken(one):
                given.left_out[reason] += 1
        rows = given.beside(folder.root)
        every = [row for some in rows.values() for row in some]
        heard = {row["judge"] for row in every if "judge" in row}
        if clash := sorted(heard.intersection(one.name for one in config.judges)):
            raise ConfigError(
                f"{str(place)!r} has a judge {clash[0]!r}, which is one of the config's: expected "
                "another name; rename one of the two"
            )
        if not every and not given.left_out:
            raise RunError(f"{str(place)!r} holds nothing of format {format!r}: name another one")
        paths = dict[str, Path]()
        for name, some in rows.items() if not dry_run else ():
            folder.enter()
            table, keys = TABLES[name], {key_of(TABLES[name], row) for row in some}
            before = read_table(folder.root, table) or table.empty()
            stays = [key_of(table, row) not in keys for row in before.to_pylist()]
            kept = before.filter(pa.array(stays, pa.bool_()))
            new = pa.Table.from_pylist(some, table.schema)
            paths[name] = write_table(table, folder.root, kept, new)
    systems = tuple(sorted({row[name] for row in every for name in NAMED if name in row}))
    counts = {name: len(some) for name, some in rows.items()}
    return Imported(format, counts, tuple(sorted(heard)), systems, given.left_out, paths)


def made_by(name: str, place: Path) -> str:
    """The provenance of what is imported: nobody was asked here."""
    digest = hashlib.sha256(place.read_bytes()).hexdigest() if place.is_file() else None
    engine = {"kind": IMPORTED, "format": name, "file": place.name, "sha256": digest}
    made = {"engine": engine, ANSWERED_BY: AnsweredBy(status=IMPORTED).model_dump()}
    return json.dumps({STAGE: made}, sort_keys=True)


@dataclass
class Import:
    """Finds the sample of each row, and says of other rows why they are not taken."""

    drawing: Collection[str]  # systems that a run draws with
    tasks: Sequence[Task]
    provenance: str
    put: Callable[[bytes], object]

    def __post_init__(self) -> None:
        self.digests = {task.sample_id: task.sample_digest for task in self.tasks}
        self.by_prompt: dict[str, list[str]] = {}
        for task in self.tasks:
            self.by_prompt.setdefault(one_line(task.prompt), []).append(task.sample_id)
        self.left_out: Counter[Reason] = Counter()
        self.rows: dict[str, dict[Key, dict[str, Any]]] = {name: {} for name in ROWS}

    def beside(self, root: Path) -> dict[str, list[dict[str, Any]]]:
        """The rows that fit beside those of a run, of outputs that are there."""
        drawn, fitting = set[Key](), dict[str, list[dict[str, Any]]]()
        for name, rows in self.rows.items():  # outputs first: the others are of them
            table = TABLES[name]
            before = read_table(root, table) or table.empty()
            own = {key_of(table, row): row for row in before.to_pylist()}
            for key, row in rows.items():
                there = own.get(key, row)
                about = {(row["sample_id"], row[who]) for who in NAMED if who in row}
                if there != row and f'"kind": "{IMPORTED}"' not in (there.get("provenance") or ""):
                    self.left_out[NotImported.TAKEN] += 1
                elif drawn and not about <= drawn:
                    self.left_out[IgnoredRating.NO_OUTPUT] += 1
                else:
                    fitting.setdefault(name, []).append(row)
            if table is OUTPUTS:
                drawn = {*own, *(key_of(table, row) for row in fitting.get(name, ()))}
        return fitting

    def taken(self, found: Found) -> NotImported | None:
        """Takes a row, or says why not."""
        table, sample = found.table, self._sample(found.values.get("sample_id"), found.prompt)
        if isinstance(sample, NotImported):
            return sample
        try:
            checked = ROWS[table.name].model_validate({**found.values, "sample_id": sample})
        except ValidationError:
            return NotImported.NOT_OF_FORMAT
        row = checked.model_dump()
        if "winner" in row and row["system_a"] == row["system_b"]:
            return NotImported.NOT_OF_FORMAT
        if table is OUTPUTS and row["system"] in self.drawing:
            return NotImported.TAKEN
        known = {"sample_digest": self.digests[sample], "provenance": self.provenance}
        if table.name in SAID:
            verdict, missing = SAID[table.name]
            known["outcome"] = str(missing if row[verdict] is None else Outcome.OK)
        if table is OUTPUTS and (found.image is None) == (row["outcome"] == Outcome.OK):
            return NotImported.NOT_OF_FORMAT
        if found.image is not None:
            try:
                self.put(found.image)
            except ImageError:
                return NotImported.BAD_IMAGE
            known["image"] = hashlib.sha256(found.image).hexdigest()
        row = {name: {**row, **known}.get(name) for name in table.columns}
        there = self.rows[table.name].setdefault(key_of(table, row), row)
        return None if there is row else NotImported.AGAIN

    def _sample(self, name: Any, prompt: str | None) -> str | NotImported:
        path = PurePosixPath(name if isinstance(name, str) else "")
        for one in (str(name), path.stem if path.suffix.lower() in IMAGE_SUFFIXES else None):
            if one in self.digests:
                return one
        alike = self.by_prompt.get(one_line(prompt or ""), [])
        if len(alike) > 1:
            return NotImported.SEVERAL_SAMPLES
        return alike[0] if alike else NotImported.UNKNOWN_SAMPLE


def key_of(table: Table, row: Row) -> Key:
    return tuple(row[name] for name in table.key)
