"""`echo-hf export --to csv`: write the board, the figures and the ratings of a run as tidy rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from echo_hf.report.export import FORMATS, ExportedRun
from echo_hf.report.markup import make_printable

CsvRow = tuple[str | float | None, ...]
# A spreadsheet would run a cell that begins with one of these as a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "＝", "＋", "－", "＠")
BOARD_COLUMNS = "split system in_place_of protocol win_rate low high tier coverage".split()  # noqa: SIM905
METRIC_COLUMNS = "split metric system protocol value low high n coverage".split()  # noqa: SIM905
CHECK_COLUMNS = [
    *("check", "title", "question", "fits", "status", "reason", "judge", "kept"),
    *("sensitivity", "specificity", "j", "low", "high", "p_adjusted"),
    *("complaint_threads", "praise_threads", "needed"),
]
RATE_COLUMNS = [
    *("split", "check", "system", "measurer", "method", "raw", "value", "low", "high"),
    *("outputs", "labels", "reason"),
]
RATING_COLUMNS = "split sample_id system judge rubric repeat rating outcome explanation".split()  # noqa: SIM905


@FORMATS.register("csv")
def write_csv(run: ExportedRun, folder: Path) -> None:
    """Write `board.csv`, `metrics.csv` and `ratings.csv`; of a run with checks two more."""
    _write(folder / "board.csv", BOARD_COLUMNS, board_rows(run))
    _write(folder / "metrics.csv", METRIC_COLUMNS, metric_rows(run))
    _write(folder / "ratings.csv", RATING_COLUMNS, rating_rows(run))
    if run.data.results.checks:
        _write(folder / "checks.csv", CHECK_COLUMNS, check_rows(run))
        _write(folder / "failure_rates.csv", RATE_COLUMNS, rate_rows(run))


def board_rows(run: ExportedRun) -> Iterator[CsvRow]:
    results = run.data.results
    for split in run.data.splits:
        for row in results.board(split):
            ends = row.interval or (None, None)
            first = (split, row.system, row.in_place_of, results.protocol)
            yield *first, row.value, *ends, row.tier, row.coverage


def metric_rows(run: ExportedRun) -> Iterator[CsvRow]:
    for row in run.data.results.results:
        first = (row.split, row.metric, row.system, row.protocol)
        yield *first, row.value, row.low, row.high, row.n, row.coverage


def check_rows(run: ExportedRun) -> Iterator[CsvRow]:
    """Yield a row for each certificate of a check; its figures are empty where it has none."""
    for check in run.data.results.checks:
        for proof in check.certificates or (None,):
            known = {**vars(check), **(vars(proof) if proof else {}), "reason": check.reason}
            yield tuple(known.get(name) for name in CHECK_COLUMNS)


def rate_rows(run: ExportedRun) -> Iterator[CsvRow]:
    for split, details in run.data.results.details.items():
        for rate in details.checks:
            low, high = rate.interval or (None, None)
            known = {**vars(rate), "split": split, "low": low, "high": high}
            yield tuple(known[name] for name in RATE_COLUMNS)


def rating_rows(run: ExportedRun) -> Iterator[CsvRow]:
    for sample in run.data.samples:
        for row in run.data.ratings.get(sample.id, ()):
            first = (sample.split, sample.id, row.system, row.judge, row.rubric, row.repeat)
            yield *first, row.value, row.outcome, row.explanation


def _write(path: Path, columns: list[str], rows: Iterable[CsvRow]) -> None:
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(map(_convert_cell, row) for row in rows)
    path.write_text(sink.getvalue(), "utf-8", newline="")


def _convert_cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = make_printable(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
