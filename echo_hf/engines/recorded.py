"""An engine without a model: recorded answers from a file, found by row."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError

from echo_hf.config.checks import Section, StrictInt, first_error
from echo_hf.config.sections import STAGES, asks_model
from echo_hf.engines.base import ABSTAINED, Completion, ModelFreeEngine, Request, register
from echo_hf.errors import EngineError

KIND = "recorded"
BUNDLED = "quickstart"


def _check_stage(name: str) -> str:
    if name in STAGES.modules and asks_model(name):  # no look at all packages for each line
        return name
    asking = [stage for stage in STAGES.list_names() if asks_model(stage)]
    if name not in asking:
        raise ValueError(f"expected a stage that asks a model: {', '.join(asking)}")
    return name


class RecordedAnswer(Section):
    """One line of the file; a line without a part answers all requests of its row."""

    stage: Annotated[str, AfterValidator(_check_stage)]
    row: str
    part: Annotated[StrictInt, Field(ge=0)] | None = None
    answer: Any
    about: str | None = None  # for those who read the file


@register(KIND, "no model: answers that were recorded in a file")
class RecordedEngine(ModelFreeEngine):
    def __init__(self, path: Path | str | None = None, source: str | None = None) -> None:
        if (path is None) == (source is None) or source not in (None, BUNDLED):
            raise EngineError(
                f"engine {KIND!r} has path {path!r} and source {source!r}: expected "
                f"{{kind: {KIND}, path: answers.jsonl}}, or source: {BUNDLED} instead of path"
            )
        bundled = files("echo_hf.quickstart").joinpath("answers.jsonl")
        file = Path(str(bundled) if path is None else path)
        self._answers: dict[tuple[str, str, int | None], str] = {}
        digest = hashlib.sha256()
        try:
            with file.open("rb") as lines:
                for number, line in enumerate(lines, 1):
                    digest.update(line)
                    if text := line.decode("utf-8-sig" if number == 1 else "utf-8").strip():
                        self._add_line(text, f"{file}:{number}")
        except (OSError, ValueError) as error:  # of bytes that are no text, or in the path
            raise EngineError(
                f"engine {KIND!r} cannot read {str(file)!r} ({error}): expected one JSON object a "
                "line, in UTF-8"
            ) from None
        self._sha256 = digest.hexdigest()

    def _add_line(self, line: str, place: str) -> None:
        try:
            record = RecordedAnswer.model_validate_json(line)
        except ValidationError as error:
            raise EngineError(first_error(error, place, RecordedAnswer)) from None
        key, answer = (record.stage, record.row, record.part), record.answer
        if key in self._answers:
            raise EngineError(f"{place}: row {record.row!r} has an answer above: keep one of them")
        self._answers[key] = (
            answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        )

    def signature(self) -> dict[str, Any]:
        return {"kind": KIND, "sha256": self._sha256}

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        for number, request in enumerate(requests):
            row_answer = self._answers.get((request.task, request.row, None))
            text = self._answers.get((request.task, request.row, request.part), row_answer)
            yield number, ABSTAINED if text is None else Completion(text)
