"""What is written down of a task, and its picture put where it stays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError

from echo_hf.engines.base import Usage
from echo_hf.errors import PictureError
from echo_hf.pictures import PictureStore
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.attempts import Tried
from echo_hf.systems.base import Drawn, Task
from echo_hf.systems.journal import Entry

LONGEST_REMARK = 300
# What an adapter says in numbers, and how a journal has it.
FIELDS: Mapping[str, TypeAdapter[Any]] = {
    "seed": TypeAdapter(int | None),
    "usage": TypeAdapter(Usage | None),
    "cost_usd": TypeAdapter(float | None),
}


def entry_of(task: Task, one: Tried, signature: str, pictures: PictureStore) -> Entry:
    """Puts a picture away, and makes the entry about its task.

    Args:
        task: The task.
        one: What became of it.
        signature: Digest of what decided the picture.
        pictures: Where the picture goes.

    Returns:
        The entry; `failed` where what came back is no picture.
    """
    drawn, digest = _stored(_fitting(_sound(one.drawn)), pictures)
    return Entry(
        sample_id=task.sample_id,
        sample_digest=task.sample_digest,
        split=task.split,
        signature=signature,
        outcome=drawn.outcome,
        image=digest,
        image_bytes=None if drawn.picture is None else len(drawn.picture),
        stage=drawn.stage,
        code=_storable(drawn.code),
        text=_storable(drawn.text),
        seed=drawn.seed,
        revised_prompt=_storable(drawn.revised_prompt),
        model_reported=_storable(drawn.model_reported),
        usage=drawn.usage,
        cost_usd=drawn.cost_usd,
        latency_s=round(one.latency_s, 3),
        attempts=one.attempts,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        details=_plain(drawn.details),
    )


def _sound(drawn: Drawn) -> Drawn:
    """An adapter's own contradiction is a failure: `ok` is what has a picture, nothing else is."""
    if (drawn.outcome == Outcome.OK) == (drawn.picture is not None):
        return drawn
    came = "a picture" if drawn.picture is not None else "no picture"
    return _failed(drawn, f"the adapter gave {came} with the outcome {drawn.outcome!s}")


def _fitting(drawn: Drawn) -> Drawn:
    """What a journal reads back; anything else, such as an object of a library, is told beside it.

    The picture is paid for: it is not lost for a number of some library's own.
    """
    plain = {name: _plain_number(getattr(drawn, name)) for name in FIELDS}
    unfit = {name: value for name, value in plain.items() if not _fits(name, value)}
    kept: dict[str, Any] = {name: None if name in unfit else value for name, value in plain.items()}
    if not unfit:
        return replace(drawn, **kept)
    said = {name: repr(value)[:LONGEST_REMARK] for name, value in unfit.items()}
    return replace(drawn, **kept, details={**drawn.details, "unfit": said})


def _plain_number(value: Any) -> Any:
    # A number of torch or numpy says which plain one it is.
    return value.item() if hasattr(value, "item") and not getattr(value, "shape", ()) else value


def _fits(name: str, value: Any) -> bool:
    plain = asdict(value) if isinstance(value, Usage) else value
    try:
        FIELDS[name].validate_python(plain, strict=not isinstance(plain, dict))
    except ValidationError:
        return False
    return True


def _stored(drawn: Drawn, pictures: PictureStore) -> tuple[Drawn, str | None]:
    if drawn.picture is None:
        return drawn, None
    try:
        return drawn, _put(drawn.picture, pictures)
    except (PictureError, TypeError) as error:
        return _failed(drawn, str(error)), None


def _put(picture: bytes, pictures: PictureStore) -> str:
    try:
        return pictures.put(picture)
    except FileNotFoundError:
        # A build that begins sweeps half-written pictures away, and may take this for one.
        return pictures.put(picture)


def _failed(drawn: Drawn, said: str) -> Drawn:
    stage = OutcomeStage.ANSWER
    return replace(drawn, outcome=Outcome.FAILED, picture=None, stage=stage, text=said)


def _storable(text: str | None) -> str | None:
    # Half a character, which a service may well send, cannot stand in a table.
    return None if text is None else str(text).encode("utf-8", "replace").decode()


def _plain(details: Mapping[str, Any]) -> Mapping[str, Any]:
    """What JSON can hold of it; the picture beside it is not lost for a remark."""
    try:
        plain: Mapping[str, Any] = json.loads(
            json.dumps(dict(details), default=str), parse_constant=str
        )
    except (TypeError, ValueError, RecursionError):
        return {"not_json": _storable(repr(details)[:LONGEST_REMARK])}
    return plain
