"""The flag that a judge's failed audit leaves on every figure that its answers went into."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

KEY = "failed_audit"


def flagged(
    definition: Mapping[str, Any], judges: Iterable[str], failed: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """A figure's definition, with the judges of the figure that failed their audits.

    Args:
        definition: How the figure was computed.
        judges: Whose answers went into it.
        failed: For each judge that failed its audit, the honeypots that it failed on.

    Returns:
        The definition; without the flag where none of the judges failed.

    Example:
        >>> flagged({"metric": "win_rate"}, ["mira", "otto"], {"mira": ("blank",)})
        {'metric': 'win_rate', 'failed_audit': {'mira': ['blank']}}
    """
    theirs = {judge: list(failed[judge]) for judge in judges if judge in failed}
    return {**definition, **({KEY: theirs} if theirs else {})}
