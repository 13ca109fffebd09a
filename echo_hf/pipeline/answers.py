"""Where a stage reads its answers: a store, or an engine that needs no model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, PrivateAttr, ValidationError

from echo_hf.engines.base import Completion, Engine, Request
from echo_hf.pipeline.answer_store import Store, request_keys
from echo_hf.pipeline.answer_text import (
    RepeatedKeyError,
    answer_value,
    without_cut,
    without_thoughts,
)
from echo_hf.reasons import Failed

LONGEST_DETAIL = 300


@dataclass(frozen=True, slots=True)
class Failure:
    reason: Failed
    detail: str
    request: str


class RawText(BaseModel):
    """The answer to a request that declares no shape: the text as it came, never blank."""

    model_config = ConfigDict(frozen=True)

    text: str

    def __init__(self, text: str) -> None:
        super().__init__(text=text)


class NotedAnswer(BaseModel):
    """An answer whose last field is an optional `note`: cut inside it, the rest is read."""

    _note_is_cut: bool = PrivateAttr(default=False)

    @property
    def note_is_cut(self) -> bool:
        """Whether the answer ended at the token limit, inside its note."""
        return self._note_is_cut


class Answers(Protocol):
    @property
    def signature(self) -> Mapping[str, Any]: ...

    def read(self, requests: Sequence[Request]) -> list[BaseModel | Failure]: ...


@dataclass(frozen=True)
class StoredAnswers:
    """Answers that a model gave and a store kept; nothing is asked."""

    store: Store
    signature: Mapping[str, Any]

    def read(self, requests: Sequence[Request]) -> list[BaseModel | Failure]:
        keys = request_keys(self.signature, requests)
        known = self.store.get(keys)
        return [parse(one, known.get(key), key) for one, key in zip(requests, keys, strict=True)]


@dataclass(frozen=True)
class DirectAnswers:
    """Answers of an engine that computes them as cheaply as they could be read."""

    engine: Engine
    signature: Mapping[str, Any]

    def read(self, requests: Sequence[Request]) -> list[BaseModel | Failure]:
        completions = dict(self.engine.stream(requests))
        return [parse(one, completions.get(number), b"") for number, one in enumerate(requests)]


@dataclass(frozen=True)
class NoAnswers:
    """What a stage reads that was given neither engine nor store: every request is unanswered."""

    signature: Mapping[str, Any] = field(default_factory=dict)

    def read(self, requests: Sequence[Request]) -> list[BaseModel | Failure]:
        return [parse(request, None, b"") for request in requests]


def answers_of(engine: Engine, store: Store | None) -> Answers:
    """Where the answers of an engine are read from: a store, in memory where none is given."""
    if not engine.stored:
        return DirectAnswers(engine, engine.signature())
    return StoredAnswers(Store(":memory:") if store is None else store, engine.signature())


def parse(request: Request, completion: Completion | None, key: bytes) -> BaseModel | Failure:
    def failed(reason: Failed, detail: str) -> Failure:
        # Half of a surrogate pair is no text that a file could hold.
        shown = detail[:LONGEST_DETAIL].encode("utf-8", "backslashreplace").decode()
        return Failure(reason, shown, key.hex())

    if completion is None:
        return failed(Failed.NOT_ANSWERED, "no stored answer")
    text, finish = completion.text, completion.finish_reason
    if text is None or not completion.is_answer:
        for reason in (Failed.NEEDS_MODEL, Failed.NOT_ANSWERED, Failed.DAMAGED_ANSWER):
            if completion.error == reason:
                return failed(reason, reason.meaning)
        reason = {"length": Failed.CUT, "refusal": Failed.REFUSED}.get(finish, Failed.ENGINE_ERROR)
        cut = _read_without_note(request, text or "") if reason is Failed.CUT else None
        return cut or failed(reason, completion.error or text or finish)
    if request.answer is None:
        if not text.strip() or text != text.encode("utf-8", "replace").decode():
            return failed(
                Failed.UNREADABLE, f"blank, or no whole characters: {text[:LONGEST_DETAIL]!r}"
            )
        if request.accepts is None and request.regex is None:
            return RawText(text)
        verdict = without_thoughts(text)
        if request.accepts is not None and not request.accepts(verdict):
            said = f"none of the answers that may be given: {verdict[:80]!r}"
            return failed(Failed.UNREADABLE, said)
        if request.regex is None:
            return RawText(verdict)
        if re.fullmatch(request.regex, verdict.strip()):
            return RawText(verdict.strip())
        form = f"expected text of the form {request.regex}, got {verdict[:80]!r}"
        return failed(Failed.OFF_SCHEMA, form)
    try:
        value = answer_value(text)
    except RepeatedKeyError as error:
        return failed(Failed.OFF_SCHEMA, str(error))
    if value is None:
        return failed(Failed.UNREADABLE, f"no JSON object in {text[:LONGEST_DETAIL]!r}")
    try:
        return request.answer.model_validate_json(value)
    except ValidationError as error:
        if value.startswith("["):  # an array of a single object is that object
            with suppress(ValidationError):
                return request.answer.model_validate_json(value[1:-1])
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"])) or "answer"
        reason = Failed.UNREADABLE if first["type"] == "json_invalid" else Failed.OFF_SCHEMA
        return failed(reason, f"{place}: {first['msg']}, got {str(first['input'])[:80]!r}")


def _read_without_note(request: Request, text: str) -> BaseModel | None:
    """An answer that was cut inside its note; null where anything else may be missing."""
    if request.answer is None or not issubclass(request.answer, NotedAnswer):
        return None
    value = without_cut(without_thoughts(text), "note")
    try:
        answer = None if value is None else request.answer.model_validate_json(value)
    except ValidationError:
        return None
    if answer is not None:
        answer._note_is_cut = True
    return answer
