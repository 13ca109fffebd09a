"""Whether a model is still there, before anything is spent."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from echo_hf.engines.openai.reply import OK, fault_of
from echo_hf.systems.base import Passing, Retired
from echo_hf.systems.hosted_faults import retired_by
from echo_hf.systems.limited_client import TooMuchError
from echo_hf.systems.openai_images.answer import read_document, text_or_none
from echo_hf.systems.openai_images.connection import Connection

SHUT_DOWN = "shutdown_date"


def look(connection: Connection, today: datetime.date) -> Retired | None:
    """Asks a server for a model.

    Args:
        connection: The way to it.
        today: The day, to compare the day of a shutdown with.

    Returns:
        That the model is gone, or null: when it is there, and when the server does not tell.

    Raises:
        GenerationError: The key is not accepted.
    """
    retrieve = connection.client.models.with_streaming_response.retrieve
    try:
        reply = connection.ask(retrieve, {"model": connection.host.model})
    except (Passing, TooMuchError):
        return None
    if reply.status != OK:
        return retired_by(fault_of(reply), connection.host)
    return _shut_down(read_document(reply.text) or {}, today)


def _shut_down(document: Mapping[str, Any], today: datetime.date) -> Retired | None:
    said = text_or_none(document.get(SHUT_DOWN))
    try:
        day = datetime.date.fromisoformat(said or "")
    except ValueError:
        return None
    return Retired(f"{SHUT_DOWN} is {day}", SHUT_DOWN) if day <= today else None
