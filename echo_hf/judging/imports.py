"""`echo-hf judge --import`: turn outputs and judgements of other projects into rows of a run."""

from __future__ import annotations

import hashlib
import json
import math
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Literal
from zipfile import BadZipFile, ZipFile

import pyarrow as pa
from pydantic import Field, ValidationError

from echo_hf._infra.registry import Registry, Requirements
from echo_hf._infra.regular_file import open_regular
from echo_hf._infra.renamed import make_module_getattr
from echo_hf._infra.text import one_line
from echo_hf.config.checks import ANSWERED_BY, IMPORTED, ModelIdentity, Section, Words
from echo_hf.config.rubrics import OVERALL
from echo_hf.errors import ConfigError, ImageError, RunError
from echo_hf.images.embedded import read_embedded
from echo_hf.images.store import check_image
from echo_hf.judging.rate import PROVENANCE_STAGE
from echo_hf.judging.session import lock_judging, write_table
from echo_hf.metrics import registered
from echo_hf.reasons import Reason
from echo_hf.scores.rating_table import IgnoredRating, Unrated
from echo_hf.systems.base import Task
from echo_hf.systems.evaluation_run import EvaluationRun, RunOrConfig
from echo_hf.systems.files import read_bytes
from echo_hf.systems.run_tables import (
    DEFAULTS,
    MAX_COUNT,
    BoundedFloat,
    HumanRow,
    read_records,
    read_table,
)
from echo_hf.tables import (
    APPLICABILITY,
    COMPARISONS,
    DRAW,
    HUMAN,
    OUTPUTS,
    RATINGS,
    TABLES,
    Outcome,
    Row,
    Table,
)

if TYPE_CHECKING:
    from inspect_ai.log import EvalSample


class NotImported(Reason):
    """Why something in a file of others does not become a row of a run."""

    NOT_OF_FORMAT = "not_of_format", "a name, a number or a vote in it is none that its format has"
    UNKNOWN_SAMPLE = "unknown_sample", "no sample of the benchmark has its name or its prompt"
    SEVERAL_SAMPLES = "several_samples", "several samples of the benchmark have its prompt"
    BAD_IMAGE = "bad_picture", "its image cannot be decoded"
    AGAIN = "again", "an earlier one of the same files is about the same"
    TAKEN = "taken", "the run has a row of its own in its place, which stays"


RowKey = tuple[Any, ...]
SYSTEMS = ("system", "system_a", "system_b")
IMAGE_SUFFIXES = {".jpeg", ".jpg", ".png", ".webp"}
MAX_EXPLANATION = 20_000  # of an explanation


@dataclass(frozen=True)
class ImportedRow:
    """A row as read from a file of another project.

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


ImportedRows = Iterator[ImportedRow | NotImported]  # a reason stands for a record that is no row
Reader = Callable[[Path], ImportedRows]
READERS: Registry[Reader, Requirements] = Registry("format", "echo_hf.readers", {}, RunError)


DrawNumber = Annotated[int, Field(ge=0, le=MAX_COUNT)]


class OutputRow(Section):
    sample_id: Words
    system: Words
    draw: DrawNumber = DEFAULTS[DRAW]
    outcome: Outcome = Outcome.OK


class JudgementRow(Section):
    sample_id: Words
    judge: Words
    draw: DrawNumber = DEFAULTS[DRAW]
    repeat: Annotated[int, Field(ge=0, le=MAX_COUNT)] = DEFAULTS["repeat"]
    explanation: Annotated[str, Field(max_length=MAX_EXPLANATION)] | None = None
    cost_usd: Annotated[BoundedFloat, Field(ge=0)] | None = None


class RatingRow(JudgementRow):
    system: Words
    rubric: Words = DEFAULTS["rubric"]
    rating: BoundedFloat | None = None


class ComparisonRow(JudgementRow):
    system_a: Words
    system_b: Words
    order: Literal["ab", "ba"]
    winner: Literal["a", "b", "tie"] | None = None


class ApplicabilityRow(Section):
    sample_id: Words
    metric: Words
    applies: bool
    outcome: Literal[Outcome.OK] = Outcome.OK


ROW_MODELS: Mapping[str, type[Section]] = {
    "outputs": OutputRow,
    "ratings": RatingRow,
    "comparisons": ComparisonRow,
    "human": HumanRow,
    "applicability": ApplicabilityRow,
}
# The column of the verdict, and the outcome of a row without one.
VERDICTS = {"ratings": ("rating", Unrated.NO_RATING), "comparisons": ("winner", Unrated.NO_CHOICE)}


@dataclass(frozen=True)
class ImportResult:
    """The number of imported rows by table, and of those left out by reason."""

    format: str
    rows: Mapping[str, int]
    judges: tuple[str, ...]
    systems: tuple[str, ...]
    left_out: Mapping[Reason, int]
    paths: Mapping[str, Path] = field(default_factory=dict)


def import_judgements(
    config: RunOrConfig,
    place: Path,
    *,
    runs: Path | str | None = None,
    format: str,
    dry_run: bool = False,
) -> ImportResult:
    """Write rows of other projects into the tables of a run, whose own rows stay."""
    run = EvaluationRun.from_config(config, runs)
    config = run.config
    if not place.exists():
        raise RunError(f"{str(place)!r} does not exist: expected a file or folder to import")
    reader, folder = READERS.find(format, "--format"), run.prepare()
    (READERS.facts(format) or Requirements()).check_installed(f"format {format!r}")
    tasks = run.read_tasks().tasks
    with lock_judging(folder.root):
        put = check_image if dry_run else folder.images.put
        configured_systems = {system.name for system in config.systems}
        importer = RowImporter(configured_systems, tasks, import_provenance(format, place), put)
        for record in reader(place):
            reason = record if isinstance(record, NotImported) else importer.take(record)
            if reason is not None:
                importer.left_out[reason] += 1
        rows = importer.select_new_rows(folder.root)
        all_rows = [row for table_rows in rows.values() for row in table_rows]
        judges = {row["judge"] for row in all_rows if "judge" in row}
        if clash := sorted(judges.intersection(judge.name for judge in config.judges)):
            raise ConfigError(
                f"{str(place)!r} has a judge {clash[0]!r}, which is one of the config's: expected "
                "another name; rename one of the two"
            )
        if not all_rows and not importer.left_out:
            raise RunError(f"{str(place)!r} holds nothing of format {format!r}: name another one")
        paths = dict[str, Path]()
        for name, table_rows in rows.items() if not dry_run else ():
            folder.log_entry()
            table, keys = TABLES[name], {get_row_key(TABLES[name], row) for row in table_rows}
            previous = read_table(folder.root, table) or table.make_empty()
            stays = [get_row_key(table, row) not in keys for row in previous.to_pylist()]
            kept = previous.filter(pa.array(stays, pa.bool_()))
            new = pa.Table.from_pylist(table_rows, table.schema)
            paths[name] = write_table(table, folder.root, kept, new)
    systems = tuple(sorted({row[name] for row in all_rows for name in SYSTEMS if name in row}))
    counts = {name: len(table_rows) for name, table_rows in rows.items()}
    return ImportResult(format, counts, tuple(sorted(judges)), systems, importer.left_out, paths)


def import_provenance(name: str, place: Path) -> str:
    """Build the provenance of imported rows: no judge was asked here."""
    digest = None
    if place.is_file():
        with open_regular(place) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    engine = {"kind": IMPORTED, "format": name, "file": place.name, "sha256": digest}
    provenance = {"engine": engine, ANSWERED_BY: ModelIdentity(status=IMPORTED).model_dump()}
    return json.dumps({PROVENANCE_STAGE: provenance}, sort_keys=True)


@dataclass
class RowImporter:
    """Finds the sample of each row, and counts by reason the rows that it refuses."""

    drawing: Collection[str]  # the run generates their outputs itself
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
        self.rows: dict[str, dict[RowKey, dict[str, Any]]] = {name: {} for name in ROW_MODELS}

    def select_new_rows(self, root: Path) -> dict[str, list[dict[str, Any]]]:
        """Select the rows that do not clash with the run's own, and whose outputs exist."""
        output_keys, fitting = set[RowKey](), dict[str, list[dict[str, Any]]]()
        for name, rows in self.rows.items():  # outputs first: the other tables are about them
            table = TABLES[name]
            previous = read_table(root, table) or table.make_empty()
            own = {get_row_key(table, row): row for row in previous.to_pylist()}
            for key, row in rows.items():
                old = own.get(key, row)
                columns = (column for column in SYSTEMS if column in row)
                about = {(row["sample_id"], row[column], row.get(DRAW, 0)) for column in columns}
                if old != row and f'"kind": "{IMPORTED}"' not in (old.get("provenance") or ""):
                    self.left_out[NotImported.TAKEN] += 1
                elif output_keys and not about <= output_keys:
                    self.left_out[IgnoredRating.NO_OUTPUT] += 1
                else:
                    fitting.setdefault(name, []).append(row)
            if table is OUTPUTS:
                output_keys = {*own, *(get_row_key(table, row) for row in fitting.get(name, ()))}
        return fitting

    def take(self, record: ImportedRow) -> NotImported | None:
        """Take a row, or return the reason why not."""
        table, sample = record.table, self._find(record.values.get("sample_id"), record.prompt)
        if isinstance(sample, NotImported):
            return sample
        try:
            checked = ROW_MODELS[table.name].model_validate({**record.values, "sample_id": sample})
        except ValidationError:
            return NotImported.NOT_OF_FORMAT
        row = checked.model_dump()
        if "winner" in row and row["system_a"] == row["system_b"]:
            return NotImported.NOT_OF_FORMAT
        if table is OUTPUTS and row["system"] in self.drawing:
            return NotImported.TAKEN
        values = {"sample_digest": self.digests[sample], "provenance": self.provenance}
        values["split"] = self.splits[sample]
        if table.name in VERDICTS:
            verdict, missing = VERDICTS[table.name]
            values["outcome"] = str(missing if row[verdict] is None else Outcome.OK)
        if table is OUTPUTS and (record.image is None) == (row["outcome"] == Outcome.OK):
            return NotImported.NOT_OF_FORMAT
        if record.image is not None:
            try:
                self.put(record.image)
            except ImageError:
                return NotImported.BAD_IMAGE
            values["image"] = hashlib.sha256(record.image).hexdigest()
        row = {name: {**row, **values}.get(name) for name in table.columns}
        kept_row = self.rows[table.name].setdefault(get_row_key(table, row), row)
        return None if kept_row is row else NotImported.AGAIN

    def _find(self, name: Any, prompt: str | None) -> str | NotImported:
        path = PurePosixPath(name if isinstance(name, str) else "")
        for candidate in (str(name), path.stem if path.suffix.lower() in IMAGE_SUFFIXES else None):
            if candidate in self.digests:
                return candidate
        candidates = self.by_prompt.get(one_line(prompt or ""), [])
        if len(candidates) > 1:
            return NotImported.SEVERAL_SAMPLES
        return candidates[0] if candidates else NotImported.UNKNOWN_SAMPLE


def get_row_key(table: Table, row: Row) -> RowKey:
    return tuple(row[name] for name in table.key)


# One reader for each format, as its own project writes it.


def _files(place: Path, pattern: str) -> list[Path]:
    return sorted(place.rglob(pattern)) if place.is_dir() else [place]


def _compare(first: Any, second: Any, winner: int | None) -> dict[str, Any]:
    """Build a comparison, the output shown first; `winner` is 0 or 1, 2 for a tie, or null."""
    if not isinstance(first, str) or not isinstance(second, str):
        return {}
    is_ab = first <= second
    names = ("a", "b", "tie") if is_ab else ("b", "a", "tie")
    return {
        "system_a": min(first, second),
        "system_b": max(first, second),
        "order": "ab" if is_ab else "ba",
        "winner": None if winner is None else names[winner],
    }


@READERS.register("jsonl")
def read_jsonl(place: Path) -> ImportedRows:
    """Read our own rows: `judge` and `rating`, or `rater` and `rank`, `score` or `scores`."""
    for record in read_records(place):
        if not isinstance(record, Mapping):
            yield NotImported.NOT_OF_FORMAT
        elif "winner" in record:
            yield ImportedRow(COMPARISONS, record)
        elif "rater" not in record:
            yield ImportedRow(RATINGS, record)
        elif isinstance(scores := record.get("scores"), Mapping):
            person_row = {name: record.get(name) for name in ("sample_id", "rater")}
            for system, score in scores.items():
                yield ImportedRow(HUMAN, {**person_row, "system": system, "score": score})
        else:
            yield ImportedRow(HUMAN, record)


JUDGE_FOLDER = re.compile(r"results_(.+)")
GUESS_MARKER = "guess_if_cannot_parse"  # VIEScore then drew the score at random


@READERS.register("viescore")
def read_viescore(place: Path) -> ImportedRows:
    """Read the answers of VIEScore: `results_JUDGE/TASK/SYSTEM/{SC,PQ}.json`.

    A rating is the square root of the lowest score of semantic consistency times the lowest of
    perceptual quality, from 0 to 10, as VIEScore has it; the first alone where there is one file.
    """
    for path in _files(place, "SC.json"):
        above = [parent.name for parent in path.resolve().parents]
        matches = filter(None, map(JUDGE_FOLDER.fullmatch, above))
        judge = next((match[1] for match in matches), "viescore")
        files = [file for file in (path, path.with_name("PQ.json")) if file.is_file()]
        documents: list[Any] = [next(read_records(file, place), None) for file in files]
        if not all(isinstance(document, Mapping) for document in documents):
            yield NotImported.NOT_OF_FORMAT
            continue
        for sample in dict.fromkeys(chain.from_iterable(documents)):
            entries = [document.get(sample) for document in documents]
            lowest = [_find_lowest_score(entry) for entry in entries]
            scores = [score for score in lowest if score is not None]
            texts = (answer.get("reasoning") for answer in entries if isinstance(answer, Mapping))
            row = {
                "sample_id": sample,
                "system": path.parent.name,
                "judge": judge,
                "rating": math.prod(scores) ** (1 / len(lowest)) if scores == lowest else None,
                "explanation": "\n".join(map(str, filter(None, texts)))[:MAX_EXPLANATION],
            }
            yield ImportedRow(RATINGS, row)


def _find_lowest_score(entry: Any) -> float | None:
    """Return the lowest score of an answer; null where the judge gave none."""
    if not isinstance(entry, Mapping) or GUESS_MARKER in str(entry.get("reasoning", "")):
        return None
    scores = entry.get("score")
    numbers = scores if isinstance(scores, list) else [scores]
    are_numbers = all(isinstance(number, int | float) and 0 <= number <= 10 for number in numbers)
    return float(min(numbers)) if numbers and are_numbers else None


RATER_FILE = re.compile(r"(?:.*_)?(rater\w*)\.tsv")


@READERS.register("imagenhub")
def read_imagenhub(place: Path) -> ImportedRows:
    """Read ImagenHub's ratings by people, a file a rater, and outputs: `SYSTEM/SAMPLE.jpg`.

    A score is the square root of semantic consistency times perceptual quality, 0 to 1.
    """
    for path in _files(place, "*"):
        if path.suffix.lower() in IMAGE_SUFFIXES:
            output = {"sample_id": path.name, "system": path.parent.name}
            try:
                yield ImportedRow(OUTPUTS, output, image=read_bytes(path, place))
            except ImageError:
                yield NotImported.BAD_IMAGE
        if rater := RATER_FILE.fullmatch(path.name):
            for row in read_records(path, place):
                about = {"sample_id": row.pop("uid", None), "rater": rater[1]}
                for system, cell in row.items():
                    values = {**about, "system": system, "score": _combine_scores(cell)}
                    is_known = values["score"] is not None
                    yield ImportedRow(HUMAN, values) if is_known else NotImported.NOT_OF_FORMAT


def _combine_scores(cell: Any) -> float | None:
    with suppress(ValueError, TypeError, OverflowError, RecursionError):
        consistency, quality = json.loads(cell)
        if min(consistency, quality) >= 0 and max(consistency, quality) <= 1:
            return math.sqrt(consistency * quality)
    return None


@READERS.register("echo_assignment")
def read_echo_assignment(place: Path) -> ImportedRows:
    """Read which metrics fit which sample, as assigned by ECHO's authors: `..._assignment.json`.

    Of each sample the metrics that it was asked about, each 0 or 1.
    """
    names = {metric.paper_name: name for name, metric in registered().items()}
    for path in _files(place, "*_assig*ment.json"):  # their files are spelled in two ways
        for document in read_records(path, place):
            if not isinstance(document, Mapping):
                yield NotImported.NOT_OF_FORMAT
                continue
            for sample, assigned in document.items():
                flags = assigned if isinstance(assigned, Mapping) else {"": None}
                for paper_name, flag in flags.items():
                    if paper_name in names and isinstance(flag, int) and flag in (0, 1):
                        row = {"metric": names[paper_name], "applies": bool(flag)}
                        yield ImportedRow(APPLICABILITY, {"sample_id": sample, **row})
                    else:
                        yield NotImported.NOT_OF_FORMAT


VOTE_WINNERS = {"leftvote": 0, "rightvote": 1, "tievote": 2, "bothbad_vote": 2}
PEOPLE_JUDGE = "people"


@READERS.register("genai_bench")
def read_genai_bench(place: Path) -> ImportedRows:
    """Read the votes and images of GenAI-Bench; its people have no names and count as one judge."""
    repeats = Counter[tuple[Any, ...]]()
    for row in (row for path in _files(place, "*.parquet") for row in read_records(path, place)):
        vote = VOTE_WINNERS.get(str(row.get("vote_type"))) if isinstance(row, Mapping) else None
        if vote is None:
            yield NotImported.NOT_OF_FORMAT
            continue
        prompt = row.get("prompt") or row.get("instruct_prompt")
        sample, first, second = map(row.get, ("sample_id", "left_model", "right_model"))
        for side, system in (("left", first), ("right", second)):
            image = row.get(f"{side}_image") or row.get(f"{side}_output_image")
            output = {"sample_id": sample, "system": system}
            try:
                if image is not None:
                    encoded = read_embedded(image, sample or prompt)
                    yield ImportedRow(OUTPUTS, output, prompt, encoded)
            except ImageError:
                yield NotImported.BAD_IMAGE
        key = (one_line(sample or prompt), *sorted((str(first), str(second))))
        keys = {"sample_id": sample, "repeat": repeats[key], "judge": PEOPLE_JUDGE}
        repeats[key] += 1
        yield ImportedRow(COMPARISONS, {**_compare(first, second, vote), **keys}, prompt)


@READERS.register("alpaca_eval")
def read_alpaca_eval(place: Path) -> ImportedRows:
    """Read preferences as alpaca_eval writes them: 1 for the first of two, 2 for the second.

    A number between is how likely the second is better; 0 and 1.5 are ties.
    """
    for record in read_records(place):
        raw = record.get("preference") if isinstance(record, Mapping) else ""
        preference = None if isinstance(raw, float) and math.isnan(raw) else raw
        winner = None
        if isinstance(preference, int | float) and (preference == 0 or 1 <= preference <= 2):
            winner = 2 if preference in (0, 1.5) else int(preference > 1.5)
        elif preference is not None:
            yield NotImported.NOT_OF_FORMAT
            continue
        text = record.get("raw_completion")
        about = {
            "sample_id": record.get("sample_id"),
            "judge": record.get("annotator") or "alpaca_eval",
            "explanation": text[:MAX_EXPLANATION] if isinstance(text, str) else None,
            "cost_usd": record.get("price_per_example"),
        }
        pair = _compare(record.get("generator_1"), record.get("generator_2"), winner)
        yield ImportedRow(COMPARISONS, {**pair, **about}, record.get("instruction"))


MAX_ARCHIVE_BYTES = 1 << 31


def check_archive(path: Path, folder: Path) -> None:
    """Refuse an archive that is no regular file, or that unpacks to too many bytes."""
    try:
        with open_regular(path, folder) as file, ZipFile(file) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
            if size > MAX_ARCHIVE_BYTES:
                raise ValueError(f"it holds {size:,} bytes, more than {MAX_ARCHIVE_BYTES:,}")
    except (OSError, ValueError, BadZipFile) as error:
        raise RunError(f"{str(path)!r} is no log of inspect_ai ({one_line(error)})") from None


DATA_URL = re.compile(r"data:image/[\w.+-]+;base64,(.+)", re.DOTALL)


@READERS.register("inspect", Requirements(extra="inspect", packages=("inspect_ai",)))
def read_inspect_logs(place: Path) -> ImportedRows:
    """Read logs of inspect_ai: the image of each answer, and its numeric scores."""
    from inspect_ai.log import read_eval_log

    for path in _files(place, "*.eval"):
        check_archive(path, place)
        try:
            log = read_eval_log(str(path), resolve_attachments=True)
            system = (log.eval.metadata or {}).get("system") or log.eval.model
            for sample in log.samples or ():
                yield from _read_inspect_sample(sample, system)
        except Exception as error:  # the reader may raise anything for a damaged archive
            reason = one_line(error)[:200]
            raise RunError(f"{str(path)!r} is no log of inspect_ai ({reason})") from None


def find_image(answers: Iterable[Any]) -> bytes | None:
    """Find the last image that messages of inspect_ai hold; an address is none, nor is it asked."""
    parts = [part for content in answers if not isinstance(content, str) for part in content]
    images = [DATA_URL.fullmatch(part.image) for part in parts if part.type == "image"]
    return b64decode(images[-1][1]) if images and images[-1] else None


def _read_inspect_sample(sample: EvalSample, system: str) -> ImportedRows:
    metadata, turns = sample.metadata or {}, sample.input
    about = {"sample_id": str(metadata.get("sample_id") or sample.id), "system": system}
    prompt = turns if isinstance(turns, str) else "\n".join(message.text for message in turns)
    answers = [message.content for message in sample.messages if message.role == "assistant"]
    if (image := find_image(answers)) is not None:
        yield ImportedRow(OUTPUTS, about, prompt, image)
    else:
        outcome = Outcome.FAILED if sample.error else metadata.get("outcome") or Outcome.NO_IMAGE
        yield ImportedRow(OUTPUTS, {**about, "outcome": outcome}, prompt)
    for name, score in (sample.scores or {}).items():
        score_metadata = score.metadata or {}
        rating = score.value if isinstance(score.value, int | float) else None
        row = {
            "judge": score_metadata.get("judge", name),
            "rubric": score_metadata.get("rubric", OVERALL),
            "repeat": score_metadata.get("repeat", sample.epoch - 1),
            "rating": rating,
            "explanation": score.explanation and score.explanation[:MAX_EXPLANATION],
        }
        yield ImportedRow(RATINGS, {**about, **row}, prompt)


__getattr__ = make_module_getattr(__name__, {"Found": "ImportedRow"})
