"""The key of a request: what an answer is kept under, and found again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from echo_hf.engines.base import ImageRef, Message, Request


def request_keys(signature: Mapping[str, Any], requests: Sequence[Request]) -> list[bytes]:
    """Keys under which answers are kept.

    Args:
        signature: Signature of the engine that is asked.
        requests: What it is asked.

    Returns:
        32 bytes a request; equal for requests that the same engine must answer alike.
    """
    base = hashlib.sha256(signature_digest(signature))
    shared: dict[int, bytes] = {}
    return [_request_key(base.copy(), request, shared) for request in requests]


def signature_digest(signature: Mapping[str, Any]) -> bytes:
    """Sha256 of an engine's signature."""
    text = json.dumps(signature, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).digest()


def _request_key(key: Any, request: Request, shared: dict[int, bytes]) -> bytes:
    key.update(_schema_digest(request.answer))
    key.update(b"%d" % request.max_tokens)
    if request.regex is not None:
        key.update(b"r" + hashlib.sha256(request.regex.encode()).digest())
    if request.repeat:
        key.update(b"n%d" % request.repeat)
    for message in request.messages:
        key.update(
            _shared_digest(message, shared) if message.role == "system" else _digest(message)
        )
    return bytes(key.digest())


def _shared_digest(message: Message, shared: dict[int, bytes]) -> bytes:
    # Instructions are the same object in thousands of requests, all alive: hashed once.
    known = shared.get(id(message))
    if known is None:
        known = shared[id(message)] = _digest(message)
    return known


def _digest(message: Message) -> bytes:
    digest = hashlib.sha256(message.role.encode())
    for part in message.parts:
        kind, content = (b"i", part.sha256) if isinstance(part, ImageRef) else (b"t", part.text)
        data = content.encode("utf-8", "surrogatepass")
        digest.update(b"%s%d:" % (kind, len(data)))
        digest.update(data)
    return digest.digest()


@lru_cache(maxsize=256)
def _schema_digest(answer: type[BaseModel] | None) -> bytes:
    schema = None if answer is None else answer.model_json_schema()
    return hashlib.sha256(json.dumps(schema, sort_keys=True).encode()).digest()
