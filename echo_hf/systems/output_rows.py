"""The table of outputs, as the journals of a run tell it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from filelock import FileLock

from echo_hf.systems.journal import FOLDER, Entry, Journal
from echo_hf.tables import OUTPUTS

FILE = "outputs.parquet"
TOLD = ("code", "text", "revised_prompt", "model_reported")


def write_outputs(root: Path, journals: Sequence[Journal]) -> Path:
    """Writes the table of a run's outputs.

    Rows of systems that have no journal, which something else made, stay as they are.

    Args:
        root: The run's folder.
        journals: What its systems have drawn.

    Returns:
        The file.
    """
    path, ours = root / FILE, [journal.system for journal in journals]
    with FileLock(root / FOLDER / f".{FILE}.lock"):
        rows = [row for journal in journals for row in output_rows(journal)]
        table = pa.Table.from_pylist(rows, OUTPUTS.schema)
        table = pa.concat_tables([_of_others(path, ours), table])
        table = table.sort_by([(name, "ascending") for name in OUTPUTS.key])
        partial = path.with_name(f".{FILE}.partial")
        pq.write_table(table, partial)
        partial.replace(path)
    return path


def output_rows(journal: Journal) -> list[dict[str, Any]]:
    """Rows of `OUTPUTS` for what one system has drawn.

    Args:
        journal: Of the system.

    Returns:
        The rows, in no particular order.
    """
    return [_row(journal, entry) for entry in journal.entries.values()]


def _row(journal: Journal, entry: Entry) -> dict[str, Any]:
    made = {
        "made_by": __name__,
        "signature": entry.signature,
        "system": journal.describes(entry.signature),
        "split": entry.split,
        "attempts": entry.attempts,
        "at": entry.at,
        "details": entry.details,
    }
    told = {name: _storable(getattr(entry, name)) for name in TOLD}
    usage = entry.usage
    return {
        "sample_id": entry.sample_id,
        "system": journal.system,
        "sample_digest": entry.sample_digest,
        "image": entry.image,
        "outcome": entry.outcome.value,
        "stage": entry.stage,
        "seed": entry.seed,
        "latency_s": entry.latency_s,
        "usage": usage and {f"{kind}_tokens": count for kind, count in asdict(usage).items()},
        "cost_usd": entry.cost_usd,
        "provenance": json.dumps(made, sort_keys=True, default=str),
        **told,
    }


def _storable(text: str | None) -> str | None:
    # Half a character, which a service may well send, cannot stand in a table.
    return None if text is None else text.encode("utf-8", "replace").decode()


def _of_others(path: Path, ours: Sequence[str]) -> pa.Table:
    if not path.exists():
        return OUTPUTS.empty()
    table = pq.read_table(path).select(list(OUTPUTS.columns)).cast(OUTPUTS.schema)
    return table.filter(pc.invert(pc.is_in(table["system"], pa.array(ours, pa.string()))))
