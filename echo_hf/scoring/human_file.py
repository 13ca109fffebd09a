"""People's ranks in a file of one's own: JSON lines or CSV with the columns of the human table.

```json
{"sample_id": "kX3f", "rater": "ada", "system": "flux_kontext", "rank": 1}
{"sample_id": "kX3f", "rater": "ada", "system": "anole", "rank": null, "cannot_rank": true}
```

A CSV file has the same names in its first line; an empty field is null.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
from pydantic import Field, ValidationError

from echo_hf.config_check import first_error
from echo_hf.config_fields import Section, Words
from echo_hf.errors import TableError
from echo_hf.tables import HUMAN

Records = Iterator[tuple[int, Any]]


class HumanRow(Section):
    """One person's place for one system's output.

    Attributes:
        sample_id: The sample.
        rater: Pseudonym of the person.
        system: The system.
        rank: From 1, equal ranks are ties; null when it cannot be ranked.
        cannot_rank: Whether the person found the outputs impossible to rank; null: not said.
    """

    sample_id: Words
    rater: Words
    system: Words
    rank: Annotated[int, Field(ge=1)] | None = None
    cannot_rank: bool | None = None


def read_human_file(path: Path) -> pa.Table:
    """Reads people's ranks from a file.

    Args:
        path: A file whose name ends in .jsonl or .csv.

    Returns:
        Rows of `HUMAN`, in the order of the file.

    Raises:
        TableError: The file cannot be read, or a line is not what was expected; no line is skipped
            for it.
    """
    if path.suffix.lower() not in FORMS:
        raise TableError(f"{str(path)!r} holds no ranks: expected a file named .jsonl or .csv")
    records, strict = FORMS[path.suffix.lower()]
    try:
        rows = [_row(record, f"{path}:{line}", strict) for line, record in records(path)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"{str(path)!r} cannot be read ({error}): expected UTF-8 text") from None
    return pa.Table.from_pylist([row.model_dump() for row in rows], HUMAN.schema)


def _json_lines(path: Path) -> Records:
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield number, _parsed(line, f"{path}:{number}")


def _parsed(line: str, place: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise TableError(f"{place}: no JSON ({error}): expected an object a line") from None


def _csv_lines(path: Path) -> Records:
    with path.open(encoding="utf-8-sig", newline="") as lines:
        rows = csv.DictReader(lines, restkey="(too many fields)", strict=True)
        for row in rows:
            yield rows.line_num, {name: value or None for name, value in row.items()}


def _row(record: Any, place: str, strict: bool) -> HumanRow:
    if not isinstance(record, Mapping):
        raise TableError(f"{place}: {record!r} is no object: expected {', '.join(HUMAN.columns)}")
    try:
        return HumanRow.model_validate(record, strict=strict)
    except ValidationError as error:
        raise TableError(first_error(error, place, HumanRow)) from None


# In JSON a rank is a number; CSV has nothing but text.
FORMS: Mapping[str, tuple[Callable[[Path], Records], bool]] = {
    ".jsonl": (_json_lines, True),
    ".csv": (_csv_lines, False),
}
