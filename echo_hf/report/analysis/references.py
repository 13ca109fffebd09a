"""Read prompt sets to compare with: plain text, JSON Lines, tables, or a dataset on the Hub."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from echo_hf.config.evaluation import Format, Reference
from echo_hf.errors import HubError, SourceError, unknown
from echo_hf.metrics.result import error_line
from echo_hf.report.analysis.failures import shortened
from echo_hf.report.analysis.prompts import PromptSet, prompt_set

LONGEST_ROW = 80
DELIMITERS: Mapping[Format, str] = {"csv": ",", "tsv": "\t"}


def read_reference(reference: Reference) -> PromptSet:
    if reference.dataset:
        texts, source = _from_hub(reference)
        return prompt_set(reference.name, texts, source=source)
    files = [(file, _content(file)) for file in reference.path]
    rows = [
        text
        for file, content in files
        for text in _texts(content, reference.format_of(file), reference.column, file)
    ]
    sums = {file.name: hashlib.sha256(content).hexdigest() for file, content in files}
    return prompt_set(reference.name, rows, source={"files": sums, "column": reference.column})


def _content(file: Path) -> bytes:
    try:
        if file.exists() and not file.is_file():  # to read a pipe is to wait for ever
            raise SourceError(f"reference {str(file)!r} is not a regular file: expected prompts")
        return file.read_bytes()
    except FileNotFoundError:
        raise SourceError(
            f"no reference {str(file)!r}: expected a file of prompts, relative to the config"
        ) from None
    except OSError as error:
        raise SourceError(f"cannot read reference {str(file)!r}: {error.strerror}") from error


def _texts(content: bytes, form: Format, column: str | None, file: Path) -> Iterator[object]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(
            f"reference {str(file)!r} is not UTF-8 (byte {error.start}): save it as UTF-8"
        ) from None
    if form == "text":
        yield from (line for line in lines(text) if line.strip())
        return
    if column is None:
        raise SourceError(f"reference {str(file)!r} is {form}: expected the column of its prompts")
    try:
        rows = _objects(text, file) if form == "jsonl" else table_rows(text, DELIMITERS[form])
    except ValueError as error:
        raise SourceError(f"reference {str(file)!r}: {error}") from None
    yield from _column(rows, column, file)


def lines(text: str) -> list[str]:
    """The lines of a text, which end as files end them, and at no other sign of Unicode's."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _column(rows: Iterable[Mapping[str, Any]], column: str, file: Path) -> Iterator[object]:
    seen: dict[str, None] = {}
    found = False
    for row in rows:
        seen.update(dict.fromkeys(row))
        found = found or column in row
        yield row.get(column)
    if seen and not found:
        raise SourceError(unknown("column", column, seen, f"reference {str(file)!r}"))


def _objects(text: str, file: Path) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise SourceError(
                f"reference {str(file)!r} line {number} is not a JSON object: expected one a line"
            )
        yield row


def table_rows(text: str, delimiter: str) -> list[dict[str, str]]:
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        if delimiter == DELIMITERS["csv"]:
            raise ValueError(
                f"{error}: expected quotes round a whole cell, and doubled within it"
            ) from None
        rows = [line.split(delimiter) for line in lines(text) if line]
    rows = [row for row in rows if row]
    header = [name.strip() for name in rows[0]] if rows else []
    for row in rows[1:]:
        if len(row) > len(header):
            raise ValueError(
                f"{len(row)} cells in {shortened(delimiter.join(row), LONGEST_ROW)!r}: expected "
                f"{len(header)} as in the first line, and quotes round a cell that holds "
                f"{delimiter!r}"
            )
    return [dict(zip(header, row, strict=False)) for row in rows[1:]]


def _from_hub(reference: Reference) -> tuple[list[object], dict[str, Any]]:
    from datasets import load_dataset

    given = {name: getattr(reference, name) for name in ("dataset", "config", "split", "revision")}
    try:
        rows = load_dataset(
            given["dataset"], given["config"], split=given["split"], revision=given["revision"]
        )
    except Exception as error:  # whatever the network, the repository or its files are short of
        raise HubError(
            f"cannot load reference {reference.name!r} ({error_line(error)}): expected a "
            "dataset that "
            "the Hub or the cache holds at that revision"
        ) from error
    if reference.column not in rows.column_names:
        place = f"reference {reference.name!r}"
        raise HubError(unknown("column", reference.column, rows.column_names, place))
    return list(rows[reference.column]), {**given, "column": reference.column}
