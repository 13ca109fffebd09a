"""The table of outputs, as the journals of a run tell it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from echo_hf.errors import RunError
from echo_hf.file_lock import held
from echo_hf.reasons import NotTabled
from echo_hf.systems.journal import FOLDER, Entry, Journal, journals
from echo_hf.tables import OUTPUTS

FILE = "outputs.parquet"
LONGEST_WAIT_S = 60
TOLD = ("code", "text", "revised_prompt", "model_reported")


def write_outputs(root: Path) -> Path:
    """Writes the table of a run's outputs.

    Args:
        root: The run's folder.

    Returns:
        The file.

    Raises:
        RunError: A journal, or the table that is there, cannot be read, or another process writes
            it for a minute; it stays as it is.
    """
    path = root / FILE
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    # Whoever writes last has read last: several processes may end at a time.
    busy = RunError(f"another process has written {str(path)!r} for {LONGEST_WAIT_S} s: end it")
    with held(root / FOLDER / f".{FILE}.lock", busy, LONGEST_WAIT_S):
        partial = path.with_name(f".{FILE}.partial")
        pq.write_table(outputs_table(root), partial)
        partial.replace(path)
    return path


def outputs_table(root: Path) -> pa.Table:
    """The outputs of a run, of all its systems.

    Rows of systems that have no journal, which something else made, stay as they are.

    Args:
        root: The run's folder.

    Returns:
        Rows of `OUTPUTS`, by its key.

    Raises:
        RunError: As for `write_outputs`.
    """
    drawn = journals(root)
    rows = [row for journal in drawn for row in output_rows(journal)]
    table = pa.Table.from_pylist(rows, OUTPUTS.schema)
    others = _of_others(root / FILE, [journal.system for journal in drawn])
    return pa.concat_tables([others, table]).sort_by([(name, "ascending") for name in OUTPUTS.key])


def not_tabled(root: Path) -> Mapping[str, Mapping[NotTabled, int]]:
    """How many outputs are in the journals of a run and not in its table.

    Args:
        root: The run's folder.

    Returns:
        For each system with such outputs, how many by reason.

    Raises:
        RunError: A journal cannot be read.
    """
    drawn = journals(root)
    counts = {one.system: len(one.entries) - len(output_rows(one)) for one in drawn}
    return {name: {NotTabled.OTHER_SETTINGS: count} for name, count in counts.items() if count}


def output_rows(journal: Journal) -> list[dict[str, Any]]:
    """Rows of `OUTPUTS` for what one system has drawn with its last settings.

    What it drew with other ones is another system's work: in one table both would be scored as one.

    Args:
        journal: Of the system.

    Returns:
        The rows, in no particular order.
    """
    entries = journal.entries.values()
    return [_row(journal, entry) for entry in entries if entry.signature == journal.current]


def _row(journal: Journal, entry: Entry) -> dict[str, Any]:
    made = {
        "made_by": __name__,
        "signature": entry.signature,
        "system": journal.describes(entry.signature),
        "determinism": journal.determinism(entry.signature),
        "split": entry.split,
        "attempts": entry.attempts,
        "at": entry.at,
        "details": entry.details,
    }
    usage = entry.usage
    return {
        "sample_id": entry.sample_id,
        "system": journal.system,
        "sample_digest": entry.sample_digest,
        "image": entry.image,
        "outcome": entry.outcome.value,
        "stage": None if entry.stage is None else entry.stage.value,
        "seed": entry.seed,
        "latency_s": entry.latency_s,
        "usage": usage and {f"{kind}_tokens": count for kind, count in asdict(usage).items()},
        "cost_usd": entry.cost_usd,
        "provenance": json.dumps(made, sort_keys=True),
        **{name: getattr(entry, name) for name in TOLD},
    }


def _of_others(path: Path, ours: Sequence[str]) -> pa.Table:
    if not path.exists():
        return OUTPUTS.empty()
    try:
        table = pq.read_table(path).select(list(OUTPUTS.columns)).cast(OUTPUTS.schema)
    except (KeyError, OSError, pa.ArrowException) as error:
        said = " ".join(str(error).split())
        raise RunError(
            f"{str(path)!r} is no table of outputs ({said}): mend it, or move it away to have it "
            "written anew from what the systems of this run have drawn"
        ) from None
    return table.filter(pc.invert(pc.is_in(table["system"], pa.array(ours, pa.string()))))
