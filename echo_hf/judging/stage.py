"""What every judgement has in common: its instructions, one call a row, a row for each answer."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import BaseModel

from echo_hf.config.judges import JudgeConfig
from echo_hf.engines.base import Message, Request, Text
from echo_hf.errors import ConfigError
from echo_hf.pipeline.answer_store import Record, request_keys
from echo_hf.pipeline.answers import Answers, Failure, StoredAnswers
from echo_hf.pipeline.stage import ModelStage, StageRows, keys_of, of_row
from echo_hf.prompts import Prompt, filled_prompt
from echo_hf.reasons import Unrated


def calls_of(answers: Answers | None, requests: Sequence[Request]) -> list[dict[str, Any]]:
    if not isinstance(answers, StoredAnswers):
        return [{"usage": None, "cost_usd": None} for _ in requests]
    keys = request_keys(answers.signature, requests)
    records = answers.store.records(list(dict.fromkeys(keys)))
    return [_columns(records.get(key)) for key in keys]


def _columns(record: Record | None) -> dict[str, Any]:
    if record is None:
        return {"usage": None, "cost_usd": None}
    usage = {f"{kind}_tokens": count for kind, count in asdict(record.usage).items()}
    return {"usage": usage, "cost_usd": record.cost_usd}


STAGE = "judge"  # in the provenance
Row = Mapping[str, Any]


@dataclass(frozen=True)
class JudgingStage(ModelStage):
    def requests(self, table: pa.Table) -> list[list[Request]]:
        """One call for each row whose images can be shown."""
        system = Message("system", (Text(self.prompt.text),))
        rows = zip(keys_of(table, self.inputs).to_pylist(), self.input_rows(table), strict=True)
        return [of_row(key, self._asked(system, row)) for key, row in rows]

    def finish(self, table: pa.Table, answers: list[list[BaseModel | Failure]]) -> pa.Table:
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
        """The call of a row; none where an image of it cannot be shown."""

    @abstractmethod
    def _made_by(self) -> dict[str, Any]:
        """What made a row, for its provenance."""

    @abstractmethod
    def _known(self, row: Row, made_by: Mapping[str, Any]) -> dict[str, Any]:
        """What is known of a row before anybody has answered."""

    @abstractmethod
    def _said(self, given: BaseModel | Failure | Unrated, row: Row) -> dict[str, Any]:
        """What an answer comes to."""


def not_said(failure: Failure | Unrated) -> dict[str, Any]:
    """The outcome of a row without an answer."""
    return {"outcome": failure.value if isinstance(failure, Unrated) else failure.reason.value}


FOLDER = "judging"
OVERALL = "overall"
FORM = "$form"
LONGEST_PROMPT = 100_000
METRICS = ("face_identity", "color_shift", "structure_distance", "text_rendering")


def rubric_prompt(judge: JudgeConfig, rubric: str) -> Prompt:
    form = rating_form(judge)
    if judge.prompt_file is not None and rubric == OVERALL:
        return Prompt(rubric, _own(judge.name, judge.prompt_file).replace(FORM, form))
    return Prompt(rubric, filled_prompt(f"{FOLDER}/{rubric}", {"form": form}).text)


def pairwise_prompt(judge: JudgeConfig) -> Prompt:
    """The instructions for choosing between two outputs; a judge's own file plays no part."""
    form = filled_prompt(f"{FOLDER}/choice_{judge.mode}", {}).text
    return Prompt("pairwise", filled_prompt(f"{FOLDER}/pairwise", {"form": form}).text)


def rating_form(judge: JudgeConfig) -> str:
    lowest, highest = judge.scale
    fields = {
        "number": "a number, decimals allowed," if judge.decimals else "a whole number",
        "lowest": f"{lowest:g}",
        "highest": f"{highest:g}",
        "example": f"{math.floor((lowest + highest) / 2):g}",
    }
    return filled_prompt(f"{FOLDER}/rating_{judge.mode}", fields).text


def applicability_prompt(metrics: Sequence[str]) -> Prompt:
    measures = (filled_prompt(f"{FOLDER}/measure_{metric}", {}).text for metric in metrics)
    keys = ", ".join(f'"{metric}": <0 or 1>' for metric in metrics)
    fields = {"measures": "\n\n".join(measures), "keys": keys}
    return Prompt("applicability", filled_prompt(f"{FOLDER}/applicability", fields).text)


def _own(judge: str, file: Path) -> str:
    place = f"judge {judge!r}: prompt_file {str(file)!r}"
    try:
        text = file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or "not UTF-8"
        raise ConfigError(f"{place} cannot be read ({said}): expected a text file") from None
    if not text or len(text) > LONGEST_PROMPT:
        raise ConfigError(
            f"{place} has {len(text):,} characters: expected instructions of at most "
            f"{LONGEST_PROMPT:,}"
        )
    return text
