"""Say why a stage would run again: what its last result was made with, and what is now."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from echo_hf.pipeline import Pipeline
from echo_hf.run_folder import StageRecord
from echo_hf.steps import STAGES, up_to

LONGEST_VALUE = 120
MOST_LINES = 12


class Change(NamedTuple):
    """One thing that differs.

    Attributes:
        stage: The stage.
        field: What changed, as a path such as `engine.model`; `input` when a stage before runs
            again, `result` when there is none yet.
        before: The value the last result was made with.
        now: The value it would be made with.
    """

    stage: str
    field: str
    before: str
    now: str


def why(pipeline: Pipeline, stage: str | None = None) -> list[Change]:
    """What would make stages run again; nothing is run.

    Args:
        pipeline: The pipeline over a config.
        stage: Only this stage; all of them when null.

    Returns:
        The differences in the order of the stages; empty when every result is up to date.

    Raises:
        StageError: There is no such stage.
    """
    changes: list[Change] = []
    stale: str | None = None
    for name in up_to(stage) if stage else STAGES:
        record = pipeline.folder.record(name)
        found = list(_changes(name, record, pipeline.described(name)))
        if not found and stale:
            found = [Change(name, "input", "its last input", f"what {stale!r} makes when it runs")]
        changes.extend(found)
        stale = stale or (name if found else None)
    return [change for change in changes if stage in (None, change.stage)]


def _changes(
    stage: str, record: StageRecord | None, described: Mapping[str, Any]
) -> Iterator[Change]:
    if record is None:
        yield Change(stage, "result", "none", "has not run yet")
        return
    before, now = _flat(record.describe), _flat(described)
    for field in sorted({*before, *now}):
        if before.get(field) != now.get(field):
            yield Change(stage, field, *_told(before.get(field), now.get(field)))


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    if not isinstance(value, Mapping) or not value:
        return {path: value}
    inner = (_flat(item, f"{path}.{name}" if path else name) for name, item in value.items())
    return {name: item for items in inner for name, item in items.items()}


def _told(before: Any, now: Any) -> tuple[str, str]:
    if isinstance(before, str) and isinstance(now, str) and "\n" in before + now:
        lines = list(difflib.ndiff(before.splitlines(), now.splitlines()))
        gone = [line[2:] for line in lines if line.startswith("- ")][:MOST_LINES]
        new = [line[2:] for line in lines if line.startswith("+ ")][:MOST_LINES]
        return "\n".join(gone), "\n".join(new)
    return _short(before), _short(now)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."
