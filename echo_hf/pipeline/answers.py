"""Where a stage reads its answers: a store, or an engine that needs no model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, ValidationError

from echo_hf.engines.base import Completion, Engine, Request
from echo_hf.errors import EngineError
from echo_hf.pipeline.answer_store import Store, request_keys
from echo_hf.reasons import Failed

LONGEST_DETAIL = 300


@dataclass(frozen=True, slots=True)
class Failure:
    reason: Failed
    detail: str
    request: str


class RawText(BaseModel):
    """The answer to a request that declares no shape: the text as it came, never blank.

    Attributes:
        text: What the model said.
    """

    model_config = ConfigDict(frozen=True)

    text: str

    def __init__(self, text: str) -> None:
        super().__init__(text=text)


class Answers(Protocol):
    """Something that knows the answers to requests."""

    @property
    def signature(self) -> Mapping[str, Any]: ...

    def read(self, requests: Sequence[Request]) -> list[BaseModel | Failure]: ...


@dataclass(frozen=True)
class StoredAnswers:
    """Answers that a model gave and a store kept."""

    store: Store
    signature: Mapping[str, Any]

    def read(self, requests: Sequence[Request]) -> list[BaseModel | Failure]:
        """The answer to each request, in order; nothing is asked."""
        keys = request_keys(self.signature, requests)
        known = self.store.get(keys)
        return [
            parse(request, known.get(key), key) for request, key in zip(requests, keys, strict=True)
        ]


@dataclass(frozen=True)
class DirectAnswers:
    """Answers of an engine that computes them as cheaply as they could be read."""

    engine: Engine
    signature: Mapping[str, Any]

    def read(self, requests: Sequence[Request]) -> list[BaseModel | Failure]:
        """The answer to each request, in order, computed now."""
        completions = dict(self.engine.stream(requests))
        return [
            parse(request, completions.get(number), b"") for number, request in enumerate(requests)
        ]


@dataclass(frozen=True)
class NoAnswers:
    """What a stage reads that was given neither engine nor store: every request is unanswered."""

    @property
    def signature(self) -> Mapping[str, Any]:
        return {}

    def read(self, requests: Sequence[Request]) -> list[BaseModel | Failure]:
        return [parse(request, None, b"") for request in requests]


def answers_of(engine: Engine, store: Store | None) -> Answers:
    if not engine.stored:
        return DirectAnswers(engine, engine.signature())
    if store is None:
        raise EngineError(
            f"engine {type(engine).__name__!r} needs a store to keep its answers in: give `store`, "
            'or Store(":memory:") for this process alone'
        )
    return StoredAnswers(store, engine.signature())


def parse(request: Request, completion: Completion | None, key: bytes) -> BaseModel | Failure:
    """Reads a completion as the request's declared shape, or as `RawText`."""
    if completion is None:
        return Failure(Failed.NOT_ANSWERED, "no stored answer", key.hex())
    if completion.text is None or not completion.is_answer:
        return _no_answer(completion, key)
    if request.answer is None:
        return _raw_text(completion.text, request, key)
    try:
        return request.answer.model_validate_json(completion.text)
    except ValidationError:
        return _parse_within(request.answer, completion.text, key)


def _raw_text(text: str, request: Request, key: bytes) -> RawText | Failure:
    # Half of a surrogate pair is no text that a file could hold.
    if not text.strip() or text != text.encode("utf-8", "replace").decode():
        detail = f"blank, or no whole characters: {text[:LONGEST_DETAIL]!r}"
        return Failure(Failed.UNREADABLE, detail, key.hex())
    if request.accepts is not None and not request.accepts(text):
        detail = f"none of the answers that may be given: {text[:80]!r}"
        return Failure(Failed.UNREADABLE, detail[:LONGEST_DETAIL], key.hex())
    if request.regex is None:
        return RawText(text)
    if re.fullmatch(request.regex, text.strip()):
        return RawText(text.strip())
    detail = f"expected text of the form {request.regex}, got {text[:80]!r}"
    return Failure(Failed.OFF_SCHEMA, detail[:LONGEST_DETAIL], key.hex())


def _parse_within(answer: type[BaseModel], text: str, key: bytes) -> BaseModel | Failure:
    # Models without enforced output wrap the object in prose or in a code fence.
    start, end = text.find("{"), text.rfind("}")
    if not 0 <= start < end:
        return Failure(Failed.UNREADABLE, f"no JSON object in {text[:LONGEST_DETAIL]!r}", key.hex())
    try:
        return answer.model_validate_json(text[start : end + 1])
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        unreadable = first["type"] == "json_invalid"
        place = ".".join(str(part) for part in first["loc"])
        detail = f"{place or 'answer'}: {first['msg']}, got {str(first['input'])[:80]!r}"
        reason = Failed.UNREADABLE if unreadable else Failed.OFF_SCHEMA
        return Failure(reason, detail[:LONGEST_DETAIL], key.hex())


def _no_answer(completion: Completion, key: bytes) -> Failure:
    said = (completion.error or completion.finish_reason)[:LONGEST_DETAIL]
    said = said.encode("utf-8", "backslashreplace").decode()
    for reason in (Failed.NEEDS_MODEL, Failed.NOT_ANSWERED):
        if completion.error == reason:
            return Failure(reason, reason.meaning, key.hex())
    by_finish = {"length": Failed.CUT, "refusal": Failed.REFUSED}
    return Failure(by_finish.get(completion.finish_reason, Failed.ENGINE_ERROR), said, key.hex())
