"""The base of the stages that ask a model about each row by itself."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from echo_hf.config.sections import Target
from echo_hf.engines.base import ImageRef, Message, Request, Text
from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.stage import ModelStage, StageRows
from echo_hf.prompts import Prompt, load_prompt
from echo_hf.samples.sample import SAMPLES_IN_CONTEXT, Finding
from echo_hf.tables import Row, Table

# The parts of the user's message, its fields, and the addresses of the posts in it.
RequestContent = tuple[Sequence[Text | ImageRef], Mapping[str, Any], Iterable[str]]
RowResult = tuple[Sequence[Row], Iterable[Finding]]


@dataclass(frozen=True)
class SampleStage(ModelStage):
    """A stage that asks about each row by itself, as often as the row needs."""

    inputs: ClassVar[Table] = SAMPLES_IN_CONTEXT
    outputs: ClassVar[Table] = SAMPLES_IN_CONTEXT
    max_tokens: ClassVar[int] = 4096
    keeps_failed: ClassVar[bool] = True  # whether a row goes on when one of its calls failed

    target: Target

    @property
    def prompt(self) -> Prompt:
        """The instructions, filled in for the target."""
        return load_prompt(self.name, self.target)

    @abstractmethod
    def build_questions(self, row: Row) -> Iterator[RequestContent]:
        """Yield what a model is asked about a row."""

    @abstractmethod
    def finish_row(
        self, row: Row, answers: Sequence[BaseModel | Failure], made_by: Mapping[str, Any]
    ) -> RowResult:
        """Return the rows that go on, and the findings."""

    def is_lost(self, row: Row, answers: Sequence[BaseModel | Failure]) -> bool:  # noqa: ARG002
        """Return whether a row does not go on because a call failed that it needs."""
        return not self.keeps_failed and any(isinstance(answer, Failure) for answer in answers)

    def requests(self, table: pa.Table) -> list[list[Request]]:
        """Return the requests of each row."""
        return self._build_requests(self.input_rows(table))

    def finish(self, table: pa.Table, answers: list[list[BaseModel | Failure]]) -> pa.Table:
        """Return the rows that go on; one with a failed call is quarantined, beside or instead."""
        return self._finish_rows(self.input_rows(table), answers)

    def _make_output(self, table: pa.Table) -> pa.Table:
        rows = self.input_rows(table)  # read once: it is slow
        return self._finish_rows(rows, self._read_answers(self._build_requests(rows)))

    def _build_requests(self, rows: Sequence[Row]) -> list[list[Request]]:
        text, target = self.prompt.text, self.target.model_dump(mode="json")
        opening = [Message("system", (Text(text),))] if text else []

        return [
            [
                Request(
                    self.name,
                    (*opening, Message("user", tuple(parts))),
                    self.answer,
                    self.max_tokens,
                    {**fields, "target": target},
                    tuple(dict.fromkeys(urls)),
                    row=self._key(row),
                    part=part,
                )
                for part, (parts, fields, urls) in enumerate(self.build_questions(row))
            ]
            for row in rows
        ]

    def _finish_rows(
        self, inputs: Sequence[Row], answers: Sequence[list[BaseModel | Failure]]
    ) -> pa.Table:
        rows = StageRows(self.outputs)
        made_by = {"digest": self.digest(), "engine": self._signature}
        for number, (row, row_answers) in enumerate(zip(inputs, answers, strict=True)):
            key = self._key(row)
            failure = next((answer for answer in row_answers if isinstance(answer, Failure)), None)
            if failure:
                rows.quarantine(number, key, failure)
            if self.is_lost(row, row_answers):
                continue
            new_rows, findings = self.finish_row(row, row_answers, made_by)
            for reason, detail in findings:
                rows.add_issue(number, key, reason, detail)
            for values in new_rows:
                rows.keep(number, key, values)
        return rows.to_table()

    @property
    def _signature(self) -> dict[str, Any]:
        """The signature of the engine that answers; empty without one."""
        return dict(self.answers.signature) if self.answers else {}

    def _key(self, row: Row) -> str:
        return str(row[self.inputs.key[0]])


def sum_columns(**columns: pa.ChunkedArray) -> dict[str, int]:
    """Count the rows that a column holds for, or sum its numbers."""
    return {name: pc.sum(column.cast(pa.int64())).as_py() or 0 for name, column in columns.items()}
