"""Say why stages would run again: what their last results were made with, and what is now."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from echo_hf.pipeline import Pipeline
from echo_hf.run_folder import StageRecord
from echo_hf.steps import STAGES, up_to

FILES = "files"
DIGEST = "sha256: "
LONGEST_VALUE = 120
MOST_LINES = 12


class Change(NamedTuple):
    """One thing that differs, and makes its stage and all after it run again.

    Attributes:
        stage: The stage.
        field: What changed, as a path such as `engine.model`, or `files` and the name of a file of
            posts; `result` when there is none yet.
        before: What the last result was made with, one or several lines.
        now: What it would be made with.
    """

    stage: str
    field: str
    before: str
    now: str

    @property
    def sentence(self) -> str:
        """What changed, and how much is made anew, in one line."""
        count = len(STAGES) - STAGES.index(self.stage)
        anew = f"{count} stages, from {self.stage!r} on" if count > 1 else f"{self.stage!r} alone"
        if self.field == "result":
            said = f"{self.stage} has not run yet"
        elif self.field.startswith(f"{FILES}."):
            said = f"{self.field.removeprefix(f'{FILES}.')} changed"
        else:
            said = f"{self.stage}: {self.field} changed"
        return f"{said}: {anew if count < len(STAGES) else f'all {count} stages'}"


def why(pipeline: Pipeline, stage: str | None = None) -> list[Change]:
    """What would make stages run again; nothing is run.

    Args:
        pipeline: The pipeline over a config.
        stage: Only what makes this stage run; all of them when null.

    Returns:
        The differences in the order of the stages; empty when every result is up to date. A stage
        that has no result runs anyway where one before it has changed.

    Raises:
        StageError: There is no such stage.
    """
    changes: list[Change] = []
    for name in up_to(stage) if stage else STAGES:
        record = pipeline.folder.record(name)
        if record is not None:
            changes.extend(_changes(name, record, pipeline.described(name)))
        elif not changes:
            changes.append(Change(name, "result", "", ""))
    return changes


def _changes(stage: str, record: StageRecord, described: Mapping[str, Any]) -> Iterator[Change]:
    before, now = _flat(_by_name(record.describe)), _flat(_by_name(described))
    for field in sorted({*before, *now}):
        if before.get(field) != now.get(field):
            yield Change(stage, field, *_told(before.get(field), now.get(field)))


def _by_name(described: Mapping[str, Any]) -> Mapping[str, Any]:
    """Files by their names, each with all that decides what is read from it as one text."""
    files: dict[str, list[str]] = {}
    for one in described.get(FILES, ()):
        lines = (f"{name}: {_line(value)}" for name, value in sorted(one.items()) if value)
        files.setdefault(one.get("name") or one["source"], []).extend(lines)
    return {**described, FILES: {name: "\n".join(lines) for name, lines in files.items()}}


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    if not isinstance(value, Mapping) or not value:
        return {path: value}
    inner = (_flat(item, f"{path}.{name}" if path else name) for name, item in value.items())
    return {name: item for items in inner for name, item in items.items()}


def _told(before: Any, now: Any) -> tuple[str, str]:
    """What went and what came, line by line; of lists, item by item."""
    lines = list(difflib.ndiff(_lines(before), _lines(now)))
    return _those("- ", lines), _those("+ ", lines)


def _lines(value: Any) -> list[str]:
    if isinstance(value, str):
        return value.splitlines()
    return list(map(_line, value)) if isinstance(value, list) else [_line(value)]


def _those(sign: str, lines: Iterable[str]) -> str:
    here = (line.removeprefix(sign) for line in lines if line.startswith(sign))
    found = [line for line in here if not line.startswith(DIGEST)]  # tells nobody anything
    more = [f"and {len(found) - MOST_LINES:,} more"] if len(found) > MOST_LINES else []
    return "\n".join([*found[:MOST_LINES], *more])


def _line(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST_VALUE else f"{len(text):,} characters"
