"""The contract of a stage: an Arrow table in, an Arrow table out, every row accounted for."""

# ruff: noqa: ARG002, ARG003 - most stages need no more than what stands here

from __future__ import annotations

import dataclasses
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset, Features, List, Value
from pydantic import BaseModel

from echo_hf.config.sections import STAGES, ModelStageOptions, StageOptions
from echo_hf.engines.base import Engine, Packing, Request, check_vision
from echo_hf.errors import TableError
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.answers import AnswerSource, Failure, NoAnswers, StoredAnswers, as_source
from echo_hf.pipeline.batch_inference import AskedAnswers
from echo_hf.prompts import Prompt
from echo_hf.reasons import Reason, StageReason, Status
from echo_hf.tables import Column, Table, arrow_batches

if TYPE_CHECKING:
    from echo_hf.config.loading import Config
    from echo_hf.images.store import ImageStore
    from echo_hf.pipeline.progress import ProgressListener
    from echo_hf.pipeline.result import StageStats


BATCH_ROWS = 1000  # rows that a stage is called on
ROWS_PER_READ = 10_000
CONTROL = Features(
    {
        "_parent": List(Value("string")),
        "_status": Value("string"),
        "_reason": Value("string"),
        "_detail": Value("string"),
        "_request": Value("string"),
    }
)
CONTROL_SCHEMA = CONTROL.arrow_schema.remove_metadata()
KEY_SEPARATOR = "\x1f"
# Who decides the values of a column.
COPIED, BY_RULE, BY_MODEL = "copied", "a fixed rule", "a model"


def join_digests(*parts: str) -> str:
    """Return a dataset fingerprint that depends on all parts and nothing else."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:32]


def table_bytes(table: pa.Table) -> pa.Buffer:
    """Serialize a table's rows and types for a digest, without chunks and metadata."""
    plain = table.combine_chunks().replace_schema_metadata(None)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, plain.schema) as writer:
        writer.write_table(plain)
    return sink.getvalue()


def compute_fingerprint(dataset: Dataset) -> str:
    """Compute a fingerprint of the rows themselves, whatever they were made from."""
    digest = hashlib.sha256()
    for rows in arrow_batches(dataset, ROWS_PER_READ):
        digest.update(table_bytes(rows))
    return digest.hexdigest()[:32]


@dataclass(frozen=True)
class Stage(ABC):
    """One step of the pipeline.

    A subclass is a frozen dataclass: its fields are its parameters, and count in its digest unless
    their metadata say `digest: False`. `register` makes it known by its name.

    One that adds columns to samples, or leaves rows out, says which in `adds`, and has no `outputs`
    of its own: it gives the key of each row that goes on, and its own columns; all others stay as
    they are. Those of other packages are such stages. Its reasons are an enum of its own, derived
    from `RejectReason`, `NoticeReason` or `FailureReason` of `echo_hf.reasons`.

    Attributes:
        name: The verb on the command line, and the folder of its results.
        version: Raised by hand when the code changes what the stage computes.
        after: The stage whose rows it reads; null for the first one.
        inputs: The table it reads; further columns are ignored.
        outputs: The table it writes.
        adds: Columns that it adds to samples, whose `content` says if they hold words of posts or
            of images (`post_text`), or nothing of them (`derived`).
        Options: Its section of the config; a field of the same name takes an option's value.
        decides: Columns that get their values here, by who decides them: a copy, a rule, a model.
        makes_rows: True when its rows are other things than those it reads.
        whole: True when it must see all rows in one batch, because they depend on each other.
        stays: True when no other machine may call it: it holds a secret, or reads files here.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    after: ClassVar[str | None] = None
    inputs: ClassVar[Table]
    outputs: ClassVar[Table]
    adds: ClassVar[Mapping[str, Column]] = {}
    joins: ClassVar[bool] = False  # its columns are joined to the rows that it reads
    Options: ClassVar[type[StageOptions]] = StageOptions
    decides: ClassVar[Mapping[str, Sequence[str]]] = {}
    makes_rows: ClassVar[bool] = False
    whole: ClassVar[bool] = False
    stays: ClassVar[bool] = False

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        is_open = "adds" in vars(cls) or (hasattr(cls, "inputs") and not hasattr(cls, "outputs"))
        if is_open and "outputs" not in vars(cls):
            key = {name: cls.inputs.columns[name] for name in cls.inputs.key}
            cls.outputs = dataclasses.replace(cls.inputs, columns={**key, **cls.adds})
            cls.joins = True

    @abstractmethod
    def __call__(self, table: pa.Table) -> pa.Table:
        """Compute the output rows of a batch, control columns included."""

    @classmethod
    def from_config(cls, config: Config, images: ImageStore) -> Self:
        """Make the stage as a config sets it up: target, images, and the options of its section."""
        options = {"target": config.target, "images": images}
        options |= dict(getattr(config.stages, cls.name, ()))
        names = {field.name for field in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in options.items() if name in names})

    def in_run(self, root: Path) -> Self:
        """Return the stage with what people wrote into a run's folder; most read nothing there."""
        return self

    @classmethod
    def headline(cls, stats: Mapping[str, StageStats]) -> str | None:
        """Describe what the stage did in the paper's terms, from the statistics by stage."""
        return None

    def prepared(self, dataset: Dataset, *, offline: bool, watch: ProgressListener) -> Self:
        """Return the stage with everything fetched that its rows are made from.

        Whoever runs a pipeline calls it before the rows are mapped. What a stage asks of others
        than a model it asks here, and of nobody when `offline`; `watch` is told how far it is.
        """
        return self

    def parts(self, dataset: Dataset) -> Iterator[Sequence[int]] | None:
        """Return independent parts of the rows of a stage that is `whole`, as row numbers.

        Each is called by itself, and what they give follows each other in this order. Null where
        a stage must see all rows at once.
        """
        return None

    def input_rows(self, table: pa.Table) -> list[dict[str, Any]]:
        """Return the rows of a batch with the declared columns alone."""
        rows: list[dict[str, Any]] = table.select(list(self.inputs.columns)).to_pylist()
        return rows

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        """Count what is worth showing in the funnel, in a batch of kept rows."""
        return {}

    def describe(self) -> dict[str, Any]:
        """Return everything that decides the result: what `digest` hashes."""
        parameters = {
            field.name: _to_plain_value(getattr(self, field.name))
            for field in dataclasses.fields(self)
            if field.metadata.get("digest", True)
        }
        adds = {name: [str(column.feature), column.content] for name, column in self.adds.items()}
        description = {"name": self.name, "version": self.version, "parameters": parameters}
        return {**description, "adds": adds} if adds else description

    def digest(self) -> str:
        """Return the sha256 of `describe()`: equal digests on equal rows give equal results."""
        text = json.dumps(self.describe(), sort_keys=True, ensure_ascii=False, default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def features(self) -> Features:
        """Types of the output, control columns included."""
        return Features({**self.outputs.features, **CONTROL})

    def map_arguments(self, dataset: Dataset) -> dict[str, Any]:
        """Return the arguments for `dataset.with_format("arrow").map(stage, ...)`.

        The fingerprint is our own, because datasets hashes the code of an installed package by its
        name only.
        """
        return {
            "batched": True,
            "batch_size": max(len(dataset), 1) if self.whole else BATCH_ROWS,
            "features": self.features,
            "remove_columns": dataset.column_names,
            "new_fingerprint": join_digests(dataset._fingerprint, self.digest()),
            "desc": self.name,
        }

    def __getstate__(self) -> dict[str, Any]:
        # datasets hashes a callable by pickling it: the digest makes an edited prompt file count
        # also for `dataset.map(stage)` by hand.
        return {**self.__dict__, "_digest": self.digest()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({name: value for name, value in state.items() if name != "_digest"})


@dataclass(frozen=True)
class ModelStage(Stage):
    """A stage whose rows need a model.

    With an engine, calling it asks for what the store lacks, a batch at a time, and so does
    `dataset.with_format("arrow").map(stage, **stage.map_arguments(dataset))`: the rows that
    `run_stage` gives, with their control columns, and slower. Without one it asks nobody: a row
    whose requests have no stored answer is quarantined. `requests` and `finish` see the same rows
    in the same order.

    Attributes:
        prompt: The instructions, filled in for the target.
        answer: The declared shape of an answer; every field of it is bounded.
        rounds: How often `requests` is called: twice, where some follow from answers to others.
        sends_images: Whether its requests show images, so that its engine has to read them.
        answers: Where the answers are read from, with the signature of who gives them.

    Args:
        engine: Who is asked, in this process; entered by its owner. It makes `answers`.
        store: Where the answers of the engine are kept; in memory, for this stage, when null.
    """

    Options: ClassVar[type[StageOptions]] = ModelStageOptions
    answer: ClassVar[type[BaseModel]]
    rounds: ClassVar[int] = 1
    sends_images: ClassVar[bool] = False
    answers: AnswerSource | None = dataclasses.field(
        default=None, kw_only=True, compare=False, metadata={"digest": False}
    )
    engine: dataclasses.InitVar[Engine | None] = dataclasses.field(default=None, kw_only=True)
    store: dataclasses.InitVar[Store | None] = dataclasses.field(default=None, kw_only=True)

    def __post_init__(self, engine: Engine | None, store: Store | None) -> None:
        if engine is not None:
            if self.sends_images:
                check_vision(engine, f"stage {self.name!r}")
            answers = as_source(engine, store)
            if isinstance(answers, StoredAnswers):
                answers = AskedAnswers(answers.store, answers.signature, engine)
            object.__setattr__(self, "answers", answers)

    @property
    @abstractmethod
    def prompt(self) -> Prompt:
        """The instructions, filled in for the target."""

    @abstractmethod
    def requests(self, table: pa.Table) -> list[list[Request]]:
        """Return the model calls of each row; an empty list where none is needed."""

    @abstractmethod
    def finish(self, table: pa.Table, answers: list[list[BaseModel | Failure]]) -> pa.Table:
        """Compute the output rows from the rows and the answers to their requests."""

    def make_packing(self, size: int) -> Packing | None:
        """Return how so many of its requests are asked in one; null where they cannot be."""
        return None

    def unusable(self, answer: BaseModel) -> Reason | None:
        """Return why a valid answer does not count; null where it does."""
        return None

    def reading(self, answer: BaseModel) -> Mapping[str, Any]:
        """Return what is read from a usable answer."""
        return answer.model_dump(mode="json")

    def wanted_form(self, request: Request) -> str:
        """Describe the expected form of an answer in a few words."""
        if request.answer is not None:
            return f"a JSON object with {', '.join(request.answer.model_fields)}"
        return f"a text that {request.regex} matches" if request.regex else "another text"

    def __call__(self, table: pa.Table) -> pa.Table:
        """Compute the output rows of a batch."""
        if not isinstance(table, pa.Table):
            raise TableError(
                f"stage {self.name!r} was given a {type(table).__name__!r}: expected Arrow, "
                'write dataset.with_format("arrow").map(stage, **stage.map_arguments(dataset))'
            )
        return self._make_output(table)

    def _make_output(self, table: pa.Table) -> pa.Table:
        return self.finish(table, self._read_answers(self.requests(table)))

    def _read_answers(
        self, requests: Sequence[Sequence[Request]]
    ) -> list[list[BaseModel | Failure]]:
        source = self.answers or NoAnswers()
        answers = iter(source.read([request for row in requests for request in row]))
        return [[next(answers) for _ in row] for row in requests]

    def map_arguments(self, dataset: Dataset) -> dict[str, Any]:
        """Return them without datasets' cache: no digest tells what a store holds."""
        return {**super().map_arguments(dataset), "load_from_cache_file": False}

    def answered_by(self, answers: AnswerSource) -> Self:
        """Return the same stage with another source of answers."""
        return dataclasses.replace(self, answers=answers)

    def describe(self) -> dict[str, Any]:
        """Return everything that decides the result, with prompt, answer schema and engine."""
        return {
            **super().describe(),
            "prompt": self.prompt.text,
            "schema": self.answer.model_json_schema(),
            "engine": dict(self.answers.signature) if self.answers else None,
        }


StageT = TypeVar("StageT", bound=Stage)


def register(stage: type[StageT]) -> type[StageT]:
    """Make a stage known by its name; a decorator.

    A config turns a stage of another package on by a section of its name below `stages`.

    Args:
        stage: The class, with a `name`.

    Returns:
        The same class.
    """
    return STAGES.register(stage.name)(stage)


def _to_plain_value(value: Any) -> Any:
    if isinstance(value, (set, frozenset)):  # their order differs from process to process
        return sorted(map(str, value))
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value


def assign_to_row(key: str, requests: Iterable[Request]) -> list[Request]:
    """Set row key and number on the requests about a row."""
    return [
        dataclasses.replace(request, row=key, part=part) for part, request in enumerate(requests)
    ]


def row_keys(table: pa.Table, declared: Table) -> pa.Array:
    """Return the key of each row as one string, as `_parent` holds it."""
    columns = [table[name].combine_chunks().cast(pa.string()) for name in declared.key]
    if len(columns) == 1:
        return columns[0]
    return pc.binary_join_element_wise(*columns, KEY_SEPARATOR, null_handling="replace")


def parent_lists(keys: pa.Array) -> pa.ListArray:
    """Return a list array with one key per row."""
    if isinstance(keys, pa.ChunkedArray):
        keys = keys.combine_chunks()
    return pa.ListArray.from_arrays(pa.array(range(len(keys) + 1), pa.int32()), keys)


def keep_rows(columns: pa.Table, parents: pa.Array) -> pa.Table:
    """Add control columns to a stage's kept rows, each with its input keys."""
    absent = pa.nulls(columns.num_rows, pa.string())
    status = pa.repeat(pa.scalar(Status.KEPT.value), columns.num_rows)
    values = [*columns.columns, parents, status, absent, absent, absent]
    return pa.table(values, schema=_add_control(columns.schema))


@dataclass(frozen=True, slots=True)
class RowIssue:
    """The fate of input rows that were rejected, quarantined or noted, as the reason's kind says.

    Attributes:
        parents: Keys of the input rows.
        reason: Why: a member of an enum that derives from `RejectReason`, `FailureReason` or
            `NoticeReason` of `echo_hf.reasons`.
        detail: What a person needs to see the cause.
        request: Key of the model call, where one failed.
    """

    parents: Sequence[str]
    reason: StageReason
    detail: str | None = None
    request: str | None = None


def issue_rows(outputs: Table, issues: Iterable[RowIssue]) -> pa.Table:
    """Make output rows that have control columns only."""
    return pa.Table.from_pylist(list(map(_control_values, issues)), _add_control(outputs.schema))


def _control_values(issue: RowIssue) -> dict[str, Any]:
    cells = (
        list(issue.parents),
        issue.reason.status.value,
        str(issue.reason),
        issue.detail,
        issue.request,
    )
    return dict(zip(CONTROL, cells, strict=True))


def _add_control(schema: pa.Schema) -> pa.Schema:
    return pa.schema([*schema.remove_metadata(), *CONTROL_SCHEMA])


def order_rows(pieces: Sequence[tuple[Sequence[int], pa.Table]]) -> pa.Table:
    """Merge output rows of several kinds in the order of their input rows.

    Rows of one input row keep the order of the pieces.
    """
    table = pa.concat_tables([piece for _, piece in pieces])
    numbers = [number for rows, _ in pieces for number in rows]
    if all(previous <= following for previous, following in pairwise(numbers)):
        return table
    order = sorted(range(len(numbers)), key=numbers.__getitem__)
    return table.take(pa.array(order, pa.int64()))


class StageRows:
    """Collects rows and issues in any order; `to_table` returns them in input order.

    Args:
        outputs: The table that the stage makes.
    """

    def __init__(self, outputs: Table) -> None:
        self._outputs = outputs
        self._rows: list[tuple[int, bool, Mapping[str, Any]]] = []

    def keep(self, row: int, key: str, values: Mapping[str, Any]) -> None:
        """Add a kept row: number and key of its input row, and its columns."""
        control = {"_parent": [key], "_status": Status.KEPT.value}
        self._rows.append((row, False, {**values, **control}))

    def add_issue(
        self,
        row: int,
        key: str,
        reason: StageReason,
        detail: str | None = None,
        request: str | None = None,
    ) -> None:
        """Add an issue of an input row, by its number and key."""
        issue = RowIssue([key], reason, detail, request)
        self._rows.append((row, True, _control_values(issue)))

    def quarantine(self, row: int, key: str, failure: Failure) -> None:
        """Quarantine an input row whose call gave no answer."""
        self.add_issue(row, key, failure.reason, failure.detail, failure.request)

    def to_table(self) -> pa.Table:
        """Return all output rows with control columns; kept rows of an input row come first."""
        self._rows.sort(key=lambda row: row[:2])
        rows = [values for *_, values in self._rows]
        return pa.Table.from_pylist(rows, _add_control(self._outputs.schema))
