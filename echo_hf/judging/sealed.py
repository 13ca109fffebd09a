"""Boards on sealed samples beside the public ones, and whether a system was trained on these."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from echo_hf._infra.bootstrap import Interval
from echo_hf.config.evaluation import EvaluationBase
from echo_hf.hub.run_tables import ResultRow
from echo_hf.judging.results import SavedBoard, SavedSealed
from echo_hf.scores import Contamination, contamination, dated_contamination, win_rate
from echo_hf.scores.rating_table import RUBRIC, RatingTable, read_ratings
from echo_hf.scores.votes import ProtocolName
from echo_hf.systems.benchmark import Benchmark
from echo_hf.systems.evaluation_run import EvaluationRun
from echo_hf.systems.run_tables import RunTables
from echo_hf.tables import RATINGS, arrow_rows

SEALED, BOTH, LEAD = "win_rate_sealed", "win_rate_public_and_sealed", "public_over_sealed"


def read_sealed_tables(run: EvaluationRun) -> RunTables | None:
    """Read what was rated of the sealed samples; null where there are none, or nothing yet."""
    if (sealed := run.sealed) is None:
        return None
    is_rated = (sealed.folder.root / f"{RATINGS.name}.parquet").exists()
    return sealed.read_tables() if is_rated else None


def score_sealed(
    public: RunTables, sealed: RunTables, split: str, protocol: ProtocolName, n_boot: int
) -> SavedSealed | None:
    """Score a split's sealed samples, alone and with the public ones; aggregates alone are kept."""
    tables = [_select(tables, split) for tables in (public, sealed)]
    if tables[1][0] is None:
        return None
    boards = list[SavedBoard]()
    for chosen in (tables[1:], tables):
        rates = win_rate(_read(chosen), protocol=protocol, n_boot=n_boot)
        boards.append(
            SavedBoard(win_rate=rates.win_rate, interval=rates.interval, reasons=rates.reasons)
        )
    sealed_ids = {task.sample_id for task in sealed.tasks[split]}
    tested = contamination(_read(tables), sealed=sealed_ids, protocol=protocol)
    return SavedSealed(
        samples=len(sealed_ids), sealed=boards[0], both=boards[1], contamination=tested
    )


def score_dates(
    config: EvaluationBase, benchmark: Benchmark, overall: RatingTable, split: str
) -> Contamination | None:
    """Hold systems' leads before the day up to which they were trained against those after it."""
    trained = {system.name: system.trained for system in config.systems if system.trained}
    dataset = benchmark.load(split)
    if not trained or "timestamp" not in dataset.column_names:
        return None
    rows = arrow_rows(dataset, ["id", "timestamp"]).to_pylist()
    moments = {row["id"]: row["timestamp"] for row in rows if row["timestamp"] is not None}
    dates: Mapping[str, datetime.date] = {name: day.date() for name, day in moments.items()}
    tested = dated_contamination(overall, dates, trained, protocol=config.protocol)
    return tested if tested.lead else None


def make_sealed_rows(saved: SavedSealed, split: str, protocol: ProtocolName) -> Iterator[ResultRow]:
    """Yield the figures on sealed samples as rows of results."""
    tested = saved.contamination
    for name, board in ((SEALED, saved.sealed), (BOTH, saved.both)):
        definition = {"metric": name, "protocol": protocol, "sealed_samples": saved.samples}
        for system, value in board.win_rate.items():
            ends = board.interval.get(system)
            yield _row(name, protocol, split, system, value, ends, definition)
    for system, lead in tested.lead.items():
        definition = {
            **tested.definition,
            "p": tested.p[system],
            "adjusted": tested.adjusted[system],
        }
        if reason := tested.reasons.get(system):
            definition["missing"] = reason.meaning
        ends = tested.interval.get(system)
        yield _row(LEAD, protocol, split, system, lead, ends, definition)


def _row(
    metric: str,
    protocol: ProtocolName,
    split: str,
    system: str,
    value: float | None,
    ends: Interval | None,
    definition: Mapping[str, Any],
) -> ResultRow:
    low, high = ends or (None, None)
    columns: dict[str, Any] = {"metric": metric, "protocol": protocol, "split": split}
    figure: dict[str, Any] = {"system": system, "value": value, "low": low, "high": high}
    return ResultRow(**columns, **figure, definition=definition)


def _select(tables: RunTables, split: str) -> tuple[pa.Table | None, pa.Table | None]:
    ratings = tables.select_split(tables.ratings, split)
    if ratings is not None:
        ratings = ratings.filter(pc.equal(ratings["rubric"], RUBRIC))
    return ratings or None, tables.select_split(tables.outputs, split)


def _read(tables: list[tuple[pa.Table | None, pa.Table | None]]) -> RatingTable:
    ratings, outputs = (
        [part for part in parts if part is not None] for parts in zip(*tables, strict=True)
    )
    joined = pa.concat_tables(outputs) if len(outputs) == len(tables) else None
    return read_ratings(pa.concat_tables(ratings), joined)
