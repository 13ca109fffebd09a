"""`echo-hf judge --import`: outputs and judgements of others become rows of a run's tables."""

from __future__ import annotations

import hashlib
import json
import math
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Literal
from zipfile import BadZipFile, ZipFile

import pyarrow as pa
from pydantic import Field, ValidationError

from echo_hf._infra.registry import Needs, Registry
from echo_hf._infra.regular_file import open_regular
from echo_hf._infra.text import one_line
from echo_hf.config.checks import ANSWERED_BY, IMPORTED, AnsweredBy, Section, Words
from echo_hf.config.evaluation import Evaluated
from echo_hf.errors import ConfigError, ImageError, RunError
from echo_hf.images.embedded import embedded_bytes
from echo_hf.images.store import check_image
from echo_hf.judging.rate import OVERALL, STAGE
from echo_hf.judging.run_tables import LARGEST_COUNT, USUAL, Figure, HumanRow, read_table, records
from echo_hf.judging.session import alone_in, write_table
from echo_hf.reasons import IgnoredRating, NotImported, Outcome, Reason, Unrated
from echo_hf.systems.base import Task
from echo_hf.systems.benchmark import benchmark_of, evaluation_folder, load_evaluation
from echo_hf.systems.files import read_bytes
from echo_hf.tables import APPLICABILITY, COMPARISONS, HUMAN, OUTPUTS, RATINGS, TABLES, Table

if TYPE_CHECKING:
    from inspect_ai.log import EvalSample

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


Rows = Iterator[Found | NotImported]  # and reasons for what is no row
Reader = Callable[[Path], Rows]
READERS: Registry[Reader, Needs] = Registry("format", "echo_hf.readers", {}, RunError)


class OutputRow(Section):
    sample_id: Words
    system: Words
    outcome: Outcome = Outcome.OK


class Judgement(Section):
    sample_id: Words
    judge: Words
    repeat: Annotated[int, Field(ge=0, le=LARGEST_COUNT)] = USUAL["repeat"]
    explanation: Annotated[str, Field(max_length=LONGEST)] | None = None
    cost_usd: Annotated[Figure, Field(ge=0)] | None = None


class RatingRow(Judgement):
    system: Words
    rubric: Words = USUAL["rubric"]
    rating: Figure | None = None


class ComparisonRow(Judgement):
    system_a: Words
    system_b: Words
    order: Literal["ab", "ba"]
    winner: Literal["a", "b", "tie"] | None = None


class ApplicabilityRow(Section):
    sample_id: Words
    face_identity: bool | None = None
    color_shift: bool | None = None
    structure_distance: bool | None = None
    text_rendering: bool | None = None
    outcome: Literal[Outcome.OK] = Outcome.OK


ROWS: Mapping[str, type[Section]] = {
    "outputs": OutputRow,
    "ratings": RatingRow,
    "comparisons": ComparisonRow,
    "human": HumanRow,
    "applicability": ApplicabilityRow,
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
    runs: Path | str | None = None,
    format: str,
    dry_run: bool = False,
) -> Imported:
    """Writes rows of others into the tables of a run, in which its own rows stay."""
    config = load_evaluation(config)
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
    digest = None
    if place.is_file():
        with open_regular(place) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
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
        self.splits = {task.sample_id: task.split for task in self.tasks}
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
        known["split"] = self.splits[sample]
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


# Each format as its own project writes it.


def _files(place: Path, pattern: str) -> list[Path]:
    return sorted(place.rglob(pattern)) if place.is_dir() else [place]


def _chosen(one: Any, other: Any, winner: int | None) -> dict[str, Any]:
    """A comparison, with the one shown first; `winner` is 0 or 1, 2 for a tie, or null."""
    if not isinstance(one, str) or not isinstance(other, str):
        return {}
    is_ab = one <= other
    names = ("a", "b", "tie") if is_ab else ("b", "a", "tie")
    return {
        "system_a": min(one, other),
        "system_b": max(one, other),
        "order": "ab" if is_ab else "ba",
        "winner": None if winner is None else names[winner],
    }


@READERS.register("jsonl")
def jsonl(place: Path) -> Rows:
    """Rows of our own: `judge` and `rating`, or `rater` and `rank`, `score` or `scores`."""
    for record in records(place):
        if not isinstance(record, Mapping):
            yield NotImported.NOT_OF_FORMAT
        elif "winner" in record:
            yield Found(COMPARISONS, record)
        elif "rater" not in record:
            yield Found(RATINGS, record)
        elif isinstance(scores := record.get("scores"), Mapping):
            same = {name: record.get(name) for name in ("sample_id", "rater")}
            for system, score in scores.items():
                yield Found(HUMAN, {**same, "system": system, "score": score})
        else:
            yield Found(HUMAN, record)


SCORED_BY = re.compile(r"results_(.+)")
GUESSED = "guess_if_cannot_parse"  # such a score was drawn by chance


@READERS.register("viescore")
def viescore(place: Path) -> Rows:
    """Answers of VIEScore: `results_JUDGE/TASK/SYSTEM/{SC,PQ}.json`.

    A rating is the square root of the lowest score of semantic consistency times the lowest of
    perceptual quality, from 0 to 10, as VIEScore has it; the first alone where there is one file.
    """
    for path in _files(place, "SC.json"):
        above = [one.name for one in path.resolve().parents]
        judge = next((found[1] for one in above if (found := SCORED_BY.fullmatch(one))), "viescore")
        both = [one for one in (path, path.with_name("PQ.json")) if one.is_file()]
        told: list[Any] = [next(records(one, place), None) for one in both]
        if not all(isinstance(one, Mapping) for one in told):
            yield NotImported.NOT_OF_FORMAT
            continue
        for sample in dict.fromkeys(chain.from_iterable(told)):
            entries = [one.get(sample) for one in told]
            lowest = [_lowest(entry) for entry in entries]
            known = [one for one in lowest if one is not None]
            said = (one.get("reasoning") for one in entries if isinstance(one, Mapping))
            row = {
                "sample_id": sample,
                "system": path.parent.name,
                "judge": judge,
                "rating": math.prod(known) ** (1 / len(lowest)) if known == lowest else None,
                "explanation": "\n".join(map(str, filter(None, said)))[:LONGEST],
            }
            yield Found(RATINGS, row)


def _lowest(entry: Any) -> float | None:
    """The lowest score of an answer, null where it has none that the judge gave."""
    if not isinstance(entry, Mapping) or GUESSED in str(entry.get("reasoning", "")):
        return None
    scores = entry.get("score")
    every = scores if isinstance(scores, list) else [scores]
    are_numbers = all(isinstance(one, int | float) and 0 <= one <= 10 for one in every)
    return float(min(every)) if every and are_numbers else None


RATER = re.compile(r"(?:.*_)?(rater\w*)\.tsv")


@READERS.register("imagenhub")
def imagenhub(place: Path) -> Rows:
    """Ratings by people of ImagenHub, a file a rater, and outputs: `SYSTEM/SAMPLE.jpg`.

    A score is the square root of semantic consistency times perceptual quality, 0 to 1.
    """
    for path in _files(place, "*"):
        if path.suffix.lower() in IMAGE_SUFFIXES:
            drawn = {"sample_id": path.name, "system": path.parent.name}
            try:
                yield Found(OUTPUTS, drawn, image=read_bytes(path, place))
            except ImageError:
                yield NotImported.BAD_IMAGE
        if rater := RATER.fullmatch(path.name):
            for row in records(path, place):
                about = {"sample_id": row.pop("uid", None), "rater": rater[1]}
                for system, cell in row.items():
                    known = {**about, "system": system, "score": _both(cell)}
                    is_known = known["score"] is not None
                    yield Found(HUMAN, known) if is_known else NotImported.NOT_OF_FORMAT


def _both(cell: Any) -> float | None:
    with suppress(ValueError, TypeError, OverflowError, RecursionError):
        consistency, quality = json.loads(cell)
        if min(consistency, quality) >= 0 and max(consistency, quality) <= 1:
            return math.sqrt(consistency * quality)
    return None


# The names that ECHO's authors give to metrics where they assign samples to them.
ASSIGNED = {
    "Face Identity Preservation": "face_identity",
    "No Color Shift": "color_shift",
    "Spatial Position Preservation": "structure_distance",
    "Text Rendering Accuracy": "text_rendering",
}


@READERS.register("echo_assignment")
def echo_assignment(place: Path) -> Rows:
    """Which metrics fit which sample, as ECHO's authors say it: `..._assignment.json`.

    Of each sample the metrics that it was asked about, each 0 or 1; the others are null.
    """
    for path in _files(place, "*_assig*ment.json"):  # two spellings of theirs
        for document in records(path, place):
            if not isinstance(document, Mapping):
                yield NotImported.NOT_OF_FORMAT
                continue
            for sample, assigned in document.items():
                flags = assigned if isinstance(assigned, Mapping) else {"": None}
                known = {
                    ASSIGNED[name]: bool(flag)
                    for name, flag in flags.items()
                    if name in ASSIGNED and isinstance(flag, int) and flag in (0, 1)
                }
                for _ in range(len(flags) - len(known)):
                    yield NotImported.NOT_OF_FORMAT
                if known:
                    yield Found(APPLICABILITY, {"sample_id": sample, **known})


VOTES = {"leftvote": 0, "rightvote": 1, "tievote": 2, "bothbad_vote": 2}
PEOPLE = "people"


@READERS.register("genai_bench")
def genai_bench(place: Path) -> Rows:
    """Votes of GenAI-Bench, and the images in them; people, who have no names, are one judge."""
    seen = Counter[tuple[Any, ...]]()
    for row in (row for path in _files(place, "*.parquet") for row in records(path, place)):
        vote = VOTES.get(str(row.get("vote_type"))) if isinstance(row, Mapping) else None
        if vote is None:
            yield NotImported.NOT_OF_FORMAT
            continue
        prompt = row.get("prompt") or row.get("instruct_prompt")
        sample, one, other = (row.get(name) for name in ("sample_id", "left_model", "right_model"))
        for side, system in (("left", one), ("right", other)):
            image = row.get(f"{side}_image") or row.get(f"{side}_output_image")
            drawn = {"sample_id": sample, "system": system}
            try:
                if image is not None:
                    yield Found(OUTPUTS, drawn, prompt, embedded_bytes(image, sample or prompt))
            except ImageError:
                yield NotImported.BAD_IMAGE
        key = (one_line(sample or prompt), *sorted((str(one), str(other))))
        told = {"sample_id": sample, "repeat": seen[key], "judge": PEOPLE}
        seen[key] += 1
        yield Found(COMPARISONS, {**_chosen(one, other, vote), **told}, prompt)


@READERS.register("alpaca_eval")
def alpaca_eval(place: Path) -> Rows:
    """Preferences as alpaca_eval writes them: 1 for the first of two, 2 for the second.

    A number between is how likely the second is better; 0 and 1.5 are ties.
    """
    for record in records(place):
        said = record.get("preference") if isinstance(record, Mapping) else ""
        preference = None if isinstance(said, float) and math.isnan(said) else said
        winner = None
        if isinstance(preference, int | float) and (preference == 0 or 1 <= preference <= 2):
            winner = 2 if preference in (0, 1.5) else int(preference > 1.5)
        elif preference is not None:
            yield NotImported.NOT_OF_FORMAT
            continue
        told = record.get("raw_completion")
        about = {
            "sample_id": record.get("sample_id"),
            "judge": record.get("annotator") or "alpaca_eval",
            "explanation": told[:LONGEST] if isinstance(told, str) else None,
            "cost_usd": record.get("price_per_example"),
        }
        pair = _chosen(record.get("generator_1"), record.get("generator_2"), winner)
        yield Found(COMPARISONS, {**pair, **about}, record.get("instruction"))


MOST_ARCHIVE_BYTES = 1 << 31


def check_archive(path: Path, folder: Path) -> None:
    """Refuses an archive that is no regular file, or says that it holds too much."""
    try:
        with open_regular(path, folder) as file, ZipFile(file) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
            if size > MOST_ARCHIVE_BYTES:
                raise ValueError(f"it holds {size:,} bytes, more than {MOST_ARCHIVE_BYTES:,}")
    except (OSError, ValueError, BadZipFile) as error:
        raise RunError(f"{str(path)!r} is no log of inspect_ai ({one_line(error)})") from None


DATA = re.compile(r"data:image/[\w.+-]+;base64,(.+)", re.DOTALL)


@READERS.register("inspect", Needs(extra="inspect", packages=("inspect_ai",)))
def inspect(place: Path) -> Rows:
    """Logs of inspect_ai: the image of each answer, and its scores that are numbers."""
    from inspect_ai.log import read_eval_log

    for path in _files(place, "*.eval"):
        check_archive(path, place)
        try:
            log = read_eval_log(str(path), resolve_attachments=True)
            system = (log.eval.metadata or {}).get("system") or log.eval.model
            for sample in log.samples or ():
                yield from _logged(sample, system)
        except Exception as error:  # a reader of archives raises whatever it trips over
            said = one_line(error)[:200]
            raise RunError(f"{str(path)!r} is no log of inspect_ai ({said})") from None


def _logged(sample: EvalSample, system: str) -> Rows:
    known, asked = sample.metadata or {}, sample.input
    about = {"sample_id": str(sample.id), "system": system}
    prompt = asked if isinstance(asked, str) else "\n".join(one.text for one in asked)
    answers = [one.content for one in sample.messages if one.role == "assistant"]
    parts = [part for some in answers if not isinstance(some, str) for part in some]
    images = [DATA.fullmatch(part.image) for part in parts if part.type == "image"]
    if images and images[-1]:
        yield Found(OUTPUTS, about, prompt, b64decode(images[-1][1]))
    else:
        outcome = Outcome.FAILED if sample.error else known.get("outcome") or Outcome.NO_IMAGE
        yield Found(OUTPUTS, {**about, "outcome": outcome}, prompt)
    for name, score in (sample.scores or {}).items():
        said = score.metadata or {}
        rating = score.value if isinstance(score.value, int | float) else None
        row = {
            "judge": said.get("judge", name),
            "rubric": said.get("rubric", OVERALL),
            "repeat": said.get("repeat", sample.epoch - 1),
            "rating": rating,
            "explanation": score.explanation and score.explanation[:LONGEST],
        }
        yield Found(RATINGS, {**about, **row}, prompt)
