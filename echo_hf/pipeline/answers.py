"""Sources of a stage's answers (a store, or an engine without a model), and their parsing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, PrivateAttr, ValidationError

from echo_hf.engines.base import Completion, Engine, Failed, Request
from echo_hf.pipeline.answer_store import Store, compute_request_keys
from echo_hf.pipeline.answer_text import (
    RepeatedKeyError,
    find_answer_value,
    remove_cut_field,
    remove_thoughts,
)

MAX_DETAIL = 300


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


class AnswerSource(Protocol):
    @property
    def signature(self) -> Mapping[str, Any]: ...

    def read(self, requests: Sequence[Request]) -> list[BaseModel | Failure]: ...


@dataclass(frozen=True)
class StoredAnswers:
    """Answers that a model gave and a store kept; nothing is asked."""

    store: Store
    signature: Mapping[str, Any]

    def read(self, requests: Sequence[Request]) -> list[BaseModel | Failure]:
        keys = compute_request_keys(self.signature, requests)
        stored = self.store.get(keys)
        return [
            parse(request, stored.get(key), key)
            for request, key in zip(requests, keys, strict=True)
        ]


@dataclass(frozen=True)
class DirectAnswers:
    """Answers of an engine without a model, computed as they are read."""

    engine: Engine
    signature: Mapping[str, Any]

    def read(self, requests: Sequence[Request]) -> list[BaseModel | Failure]:
        completions = dict(self.engine.stream(requests))
        return [
            parse(request, completions.get(number), b"") for number, request in enumerate(requests)
        ]


@dataclass(frozen=True)
class NoAnswers:
    """The answers of a stage without engine and store: every request is unanswered."""

    signature: Mapping[str, Any] = field(default_factory=dict)

    def read(self, requests: Sequence[Request]) -> list[BaseModel | Failure]:
        return [parse(request, None, b"") for request in requests]


def as_source(engine: Engine, store: Store | None) -> AnswerSource:
    """Make the source of an engine's answers; its store is in memory where none is given."""
    if not engine.stored:
        return DirectAnswers(engine, engine.signature())
    return StoredAnswers(Store(":memory:") if store is None else store, engine.signature())


def parse(request: Request, completion: Completion | None, key: bytes) -> BaseModel | Failure:
    def make_failure(reason: Failed, detail: str) -> Failure:
        # Half of a surrogate pair is no text that a file could hold.
        text = detail[:MAX_DETAIL].encode("utf-8", "backslashreplace").decode()
        return Failure(reason, text, key.hex())

    if completion is None:
        return make_failure(Failed.NOT_ANSWERED, "no stored answer")
    text, finish = completion.text, completion.finish_reason
    if text is None or not completion.is_answer:
        for reason in (Failed.NEEDS_MODEL, Failed.NOT_ANSWERED, Failed.DAMAGED_ANSWER):
            if completion.error == reason:
                return make_failure(reason, reason.meaning)
        reason = {"length": Failed.CUT, "refusal": Failed.REFUSED}.get(finish, Failed.ENGINE_ERROR)
        cut_answer = _read_without_note(request, text or "") if reason is Failed.CUT else None
        return cut_answer or make_failure(reason, completion.error or text or finish)
    if request.answer is None:
        if not text.strip() or text != text.encode("utf-8", "replace").decode():
            return make_failure(
                Failed.UNREADABLE, f"blank, or no whole characters: {text[:MAX_DETAIL]!r}"
            )
        if request.accepts is None and request.regex is None:
            return RawText(text)
        verdict = remove_thoughts(text)
        if request.accepts is not None and not request.accepts(verdict):
            detail = f"none of the answers that may be given: {verdict[:80]!r}"
            return make_failure(Failed.UNREADABLE, detail)
        if request.regex is None:
            return RawText(verdict)
        if re.fullmatch(request.regex, verdict.strip()):
            return RawText(verdict.strip())
        problem = f"expected text of the form {request.regex}, got {verdict[:80]!r}"
        return make_failure(Failed.OFF_SCHEMA, problem)
    try:
        value = find_answer_value(text)
    except RepeatedKeyError as error:
        return make_failure(Failed.OFF_SCHEMA, str(error))
    if value is None:
        return make_failure(Failed.UNREADABLE, f"no JSON object in {text[:MAX_DETAIL]!r}")
    try:
        return request.answer.model_validate_json(value)
    except ValidationError as error:
        if value.startswith("["):  # an array of a single object is that object
            with suppress(ValidationError):
                return request.answer.model_validate_json(value[1:-1])
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"])) or "answer"
        reason = Failed.UNREADABLE if first["type"] == "json_invalid" else Failed.OFF_SCHEMA
        return make_failure(reason, f"{place}: {first['msg']}, got {str(first['input'])[:80]!r}")


def _read_without_note(request: Request, text: str) -> BaseModel | None:
    """Parse an answer that was cut inside its note; null where more may be missing."""
    if request.answer is None or not issubclass(request.answer, NotedAnswer):
        return None
    value = remove_cut_field(remove_thoughts(text), "note")
    try:
        answer = None if value is None else request.answer.model_validate_json(value)
    except ValidationError:
        return None
    if answer is not None:
        answer._note_is_cut = True
    return answer
