"""What every judgement has in common: one call a row, and a row for each answer or failure."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pydantic import BaseModel

from echo_hf.answers import Failure
from echo_hf.engines.base import Message, Request, Text
from echo_hf.judging.called import calls_of
from echo_hf.reasons import Unrated
from echo_hf.stage import ModelStage, keys_of
from echo_hf.stage_rows import StageRows

STAGE = "judge"  # in the provenance
Row = Mapping[str, Any]


@dataclass(frozen=True)
class JudgingStage(ModelStage):
    """Judges pictures, one row at a time.

    A row whose call failed has an output row that says why, and stands in the quarantine as well.
    """

    def requests(self, table: pa.Table) -> list[list[Request]]:
        """One call for each row whose pictures can be shown."""
        system = Message("system", (Text(self.prompt.text),))
        return [self._asked(system, row) for row in self.input_rows(table)]

    def finish(self, table: pa.Table, answers: list[list[BaseModel | Failure]]) -> pa.Table:
        """A row of judgements for each input row."""
        requests, rows = self.requests(table), StageRows(self.outputs)
        calls = iter(calls_of(self.answers, [one for asked in requests for one in asked]))
        made_by = self._made_by()
        keys = keys_of(table, self.inputs).to_pylist()
        for number, (key, row) in enumerate(zip(keys, self.input_rows(table), strict=True)):
            given = next(iter(answers[number]), Unrated.UNSHOWABLE)
            if isinstance(given, Failure):
                rows.failed(number, key, given)
            paid = next(calls) if requests[number] else {}
            values = {**self._known(row, made_by), **paid, **self._said(given, row)}
            rows.keep(number, key, values)
        return rows.table()

    @abstractmethod
    def _asked(self, system: Message, row: Row) -> list[Request]:
        """The call of a row; none where a picture of it cannot be shown."""

    @abstractmethod
    def _made_by(self) -> dict[str, Any]:
        """What made a row, for its provenance."""

    @abstractmethod
    def _known(self, row: Row, made_by: Mapping[str, Any]) -> dict[str, Any]:
        """What is known of a row before anybody has answered."""

    @abstractmethod
    def _said(self, given: BaseModel | Failure | Unrated, row: Row) -> dict[str, Any]:
        """What an answer comes to."""


def not_said(given: Failure | Unrated) -> dict[str, Any]:
    """The outcome of a row without an answer."""
    return {"outcome": given.value if isinstance(given, Unrated) else given.reason.value}
