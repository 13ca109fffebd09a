"""No model: answers that somebody recorded in a file, by the row that each is about."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from echo_hf.config.checks import Section, Whole, first_error
from echo_hf.engines.base import ABSTAINED, Completion, ModelFree, Request, register
from echo_hf.errors import EngineError

KIND = "recorded"
BUNDLED = "quickstart"
Stage = Literal["relevance", "extract", "roles", "screenshots", "feedback", "safety"]


class RecordedAnswer(Section):
    """One line of a file of answers; one without a part answers all requests of its row."""

    stage: Stage
    row: str
    part: Annotated[Whole, Field(ge=0)] | None = None
    answer: Any
    about: str | None = None  # for those who read the file


@register(KIND, "no model: answers that were recorded in a file")
class RecordedEngine(ModelFree):
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
                        self._take(text, f"{file}:{number}")
        except (OSError, ValueError) as error:  # of bytes that are no text, or in the path
            raise EngineError(
                f"engine {KIND!r} cannot read {str(file)!r} ({error}): expected one JSON object a "
                "line, in UTF-8"
            ) from None
        self._sha256 = digest.hexdigest()

    def _take(self, line: str, place: str) -> None:
        try:
            one = RecordedAnswer.model_validate_json(line)
        except ValidationError as error:
            raise EngineError(first_error(error, place, RecordedAnswer)) from None
        key, told = (one.stage, one.row, one.part), one.answer
        if key in self._answers:
            raise EngineError(f"{place}: row {one.row!r} has an answer above: keep one of them")
        self._answers[key] = told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)

    def signature(self) -> dict[str, Any]:
        return {"kind": KIND, "sha256": self._sha256}

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        for number, one in enumerate(requests):
            of_row = self._answers.get((one.task, one.row, None))
            text = self._answers.get((one.task, one.row, one.part), of_row)
            yield number, ABSTAINED if text is None else Completion(text)
