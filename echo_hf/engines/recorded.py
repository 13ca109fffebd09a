"""No model: answers that somebody recorded in a file, by the row that each is about."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, ValidationError

from echo_hf.config.checks import Section, Whole, first_error
from echo_hf.engines.base import ABSTAINED, Completion, Request, register
from echo_hf.errors import EngineError, unknown

KIND = "recorded"
BUNDLED = "quickstart"
STAGES = ("relevance", "extract", "roles", "screenshots", "feedback", "safety")
WAYS = f"expected {{kind: {KIND}, path: answers.jsonl}}, or source: {BUNDLED} instead of path"


class RecordedAnswer(Section):
    """One line of a file of answers; one without a part answers all requests of its row."""

    stage: str
    row: str
    part: Annotated[Whole, Field(ge=0)] | None = None
    answer: Any
    about: str | None = None  # for those who read the file


@register(KIND, "no model: answers that were recorded in a file")
class RecordedEngine:
    """Answers a request about a row with what was recorded of it."""

    stored = False
    abstains = True

    def __init__(self, path: Path | str | None = None, source: str | None = None) -> None:
        if (path is None) == (source is None):
            given = "neither of" if path is None else "both"
            raise EngineError(f"engine {KIND!r} has {given} path and source: {WAYS}")
        if source not in (None, BUNDLED):
            raise EngineError(unknown("source", str(source), [BUNDLED], f"engine {KIND!r}"))
        bundled = files("echo_hf.quickstart").joinpath("answers.jsonl")
        file = Path(str(bundled) if path is None else path)
        digest = hashlib.sha256()
        self._answers: dict[tuple[str, str, int | None], str] = {}
        for number, line in enumerate(_lines(file, digest.update), 1):
            if not line.strip():
                continue
            place = f"{file}:{number}"
            try:
                one = RecordedAnswer.model_validate_json(line)
            except ValidationError as error:
                raise EngineError(first_error(error, place, RecordedAnswer)) from None
            if one.stage not in STAGES:
                raise EngineError(unknown("stage", one.stage, STAGES, place))
            key, told = (one.stage, one.row, one.part), one.answer
            if key in self._answers:
                raise EngineError(f"{place}: row {one.row!r} has an answer above: keep one of them")
            text = told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)
            self._answers[key] = text
        self._sha256 = digest.hexdigest()

    def signature(self) -> dict[str, Any]:
        return {"kind": KIND, "sha256": self._sha256}

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        for number, one in enumerate(requests):
            of_row = self._answers.get((one.task, one.row, None))
            text = self._answers.get((one.task, one.row, one.part), of_row)
            yield number, ABSTAINED if text is None else Completion(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Does nothing: there is nothing to free."""


def _lines(file: Path, read: Callable[[bytes], None]) -> Iterator[str]:
    try:
        with file.open("rb") as lines:
            for number, data in enumerate(lines):
                read(data)
                yield data.decode("utf-8" if number else "utf-8-sig")
    except (OSError, ValueError) as error:  # of bytes that are no text, or in the path
        raise EngineError(
            f"engine {KIND!r} cannot read {str(file)!r} ({error}): expected one JSON object a "
            "line, in UTF-8"
        ) from None
