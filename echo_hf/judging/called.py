"""What calls took, as tables hold it: read from where the answers are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from echo_hf.answers import Answers, StoredAnswers
from echo_hf.engines.base import Request
from echo_hf.request_key import request_keys
from echo_hf.store import Record


def calls_of(answers: Answers | None, requests: Sequence[Request]) -> list[dict[str, Any]]:
    """Tokens and price of all calls that were made for requests, failed ones included.

    Args:
        answers: Where the answers are read from.
        requests: The requests.

    Returns:
        Values of the columns usage and cost_usd for each request, in order; null where no call
        is known.
    """
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
