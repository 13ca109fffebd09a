"""Rows of comma-separated text, in which one stray quotation mark costs one line."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

Cells = list[str]


def csv_rows(lines: Iterable[str], delimiter: str) -> Iterator[tuple[int, Cells | str]]:
    r"""Takes a text apart into rows.

    A quotation mark that is never closed would swallow all that follows. Where a row cannot be
    read, each of the lines that it took is read again by itself.

    Args:
        lines: The text, with line ends.
        delimiter: What stands between two cells.

    Yields:
        (number of its first line, from 1, cells), blank lines included; or, for what is no row,
        the number and what is wrong with it.

    Example:
        >>> list(csv_rows(['a,"b\n', "c,d\n"], ","))
        [(1, 'unexpected end of data: \'a,"b\''), (2, ['c', 'd'])]
    """
    taken: list[str] = []
    reader = csv.reader(_noted(lines, taken), delimiter=delimiter, strict=True)
    while True:
        start = reader.line_num + 1
        taken.clear()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield start, _said(error, taken[0])
            for number, line in enumerate(taken[1:], start + 1):
                yield number, _alone(line, delimiter)
        else:
            yield start, cells


def delimiter_of(header: str, columns: Iterable[str], delimiters: Iterable[str]) -> str:
    """Which delimiter makes columns of a header; some programs write semicolons and call it CSV.

    Args:
        header: The first line of a table.
        columns: Names that have to be among its columns.
        delimiters: Those that are possible, the likeliest first; one at least.

    Returns:
        The first one by which all names are columns; else the first that stands in the line, and
        by which it can be read.

    Example:
        >>> delimiter_of('"name, first";link', ["link"], [",", ";"])
        ';'
    """
    every = list(delimiters)
    readable = {one: cells for one in every if not isinstance(cells := _alone(header, one), str)}
    names = {one: {cell.strip() for cell in cells} for one, cells in readable.items()}
    fitting = (one for one in names if names[one].issuperset(columns))
    return next(fitting, next((one for one in readable if one in header), every[0]))


def _noted(lines: Iterable[str], taken: list[str]) -> Iterator[str]:
    for line in lines:
        taken.append(line)
        yield line


def _alone(line: str, delimiter: str) -> Cells | str:
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except csv.Error as error:
        return _said(error, line)


def _said(error: csv.Error, line: str) -> str:
    return f"{error}: {line.rstrip()!r}"
