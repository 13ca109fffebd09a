"""The run's table of people's ranks, made of the log; ranks from elsewhere stay in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from echo_hf.apps.events import Event
from echo_hf.apps.fold import by_person, standing
from echo_hf.apps.rank.draw import Draw, RankedSample
from echo_hf.apps.rank.ranking import Ranking
from echo_hf.apps.rank.session import RANK
from echo_hf.errors import RunError
from echo_hf.file_lock import held
from echo_hf.reasons import LeftOut, Reason
from echo_hf.scoring.table_file import read_table
from echo_hf.tables import HUMAN

LOCK = ".human.lock"
LONGEST_WAIT_S = 60
Row = Mapping[str, Any]


@dataclass(frozen=True)
class HumanTable:
    """The ranks that were written down.

    Attributes:
        path: The file.
        rankings: How many samples were ranked, each time by one person, in the app.
        kept: How many rows of the file come from elsewhere.
        left_out: Rows of the log that are of pictures or samples that have changed, by reason.
    """

    path: Path
    rankings: int
    kept: int
    left_out: Mapping[Reason, int]


def write_human(root: Path, events: Iterable[Event], draw: Draw) -> HumanTable:
    """Writes the ranks of the log into the run's `human.parquet`.

    What a person ranked in the app takes the place of what the file has of that person and sample.
    All other rows stay as they are.

    Args:
        root: The run's folder.
        events: The events of the app.
        draw: The samples and outputs as they are now.

    Returns:
        What was written; a killed process leaves the old file or the new.

    Raises:
        RunError: The file that is there cannot be read.
    """
    events = tuple(events)
    left_out: Counter[Reason] = Counter()
    rows = list(_rows(events, draw, left_out))
    ours = {(event.subject, event.person) for event in events if event.action == RANK}
    busy = RunError(
        f"another process has held {str(root / LOCK)!r} for {LONGEST_WAIT_S} s: end it, and rank "
        "again"
    )
    with held(root / LOCK, busy, LONGEST_WAIT_S):
        before = read_table(root, HUMAN)
        others = [] if before is None else before.to_pylist()
        others = [row for row in others if (row["sample_id"], row["rater"]) not in ours]
        _write(root, [*others, *rows], before)
    rankings = len({(row["sample_id"], row["rater"]) for row in rows})
    return HumanTable(root / f"{HUMAN.name}.parquet", rankings, len(others), dict(left_out))


def _rows(
    events: tuple[Event, ...], draw: Draw, left_out: Counter[Reason]
) -> Iterator[dict[str, Any]]:
    last = by_person(event for event in standing(events) if event.action == RANK)
    for (subject, person), event in sorted(last.items()):
        ranking = Ranking.from_json(event.payload)
        if not ranking.is_complete:
            continue
        there = _seen_outputs(event, draw.known.get(subject))
        for (system, output), rank in zip(event.payload["shown"], ranking.places, strict=True):
            if there.get(system) != output:
                left_out[LeftOut.OTHER_OUTPUT] += 1
                continue
            key = {"sample_id": subject, "rater": person, "system": system}
            yield {**key, "rank": rank, "cannot_rank": rank is None}


def _seen_outputs(event: Event, sample: RankedSample | None) -> Mapping[str, str]:
    """Digests by system of the outputs that are still there, of the sample as it was ranked."""
    if sample is None or sample.task.sample_digest != event.payload["sample_digest"]:
        return {}
    return {one.system: one.output for one in sample.outputs}


def _write(root: Path, rows: list[Row], before: pa.Table | None) -> None:
    written = sorted(rows, key=lambda row: tuple(str(row[name]) for name in HUMAN.key))
    table = pa.Table.from_pylist(written, HUMAN.schema)
    if (before is None and not rows) or table == before:
        return
    path = root / f"{HUMAN.name}.parquet"
    partial = path.with_name(f".{path.name}.partial")
    pq.write_table(table, partial)
    partial.replace(path)
