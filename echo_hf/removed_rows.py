"""Take what is about removed samples out of the files of a run that no stage makes again."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from echo_hf.apps.events import EVENTS_FILE, EventLog
from echo_hf.curate.decision_file import FILE, drop_decisions, read_decisions
from echo_hf.hub.configs import CONFIGS, SCORE_CONFIGS
from echo_hf.systems.journal import drop_samples, journals

SAMPLE = "sample_id"
HUMAN = "human"


def remove_rows(root: Path, samples: Collection[str]) -> None:
    """Deletes outputs, ratings, ranks, decisions and what was done in the apps about samples.

    Args:
        root: The run's folder.
        samples: Ids of the samples.

    Raises:
        RunError: A line about an output cannot be read; nothing is deleted then.
    """
    if not samples:
        return
    drop_samples(root, samples)
    drop_decisions(root / FILE, samples)
    if (root / EVENTS_FILE).exists():
        EventLog(root / EVENTS_FILE).forget(set(samples))
    for path in _tables(root):
        if SAMPLE in pq.read_schema(path).names:
            _rewrite_without(path, samples)


def pictures_named(root: Path) -> set[str]:
    """The pictures that a run's tables beside its stages, journals and reviewers' changes name.

    Args:
        root: The run's folder.

    Returns:
        Their digests.
    """
    named = {digest for journal in journals(root) for digest in journal.pictures}
    for path in _tables(root):
        pictures = CONFIGS[path.stem].table.pictures if path.stem in CONFIGS else ()
        for name in pictures:
            named.update(pq.read_table(path, columns=[name])[name].drop_null().to_pylist())
    # All of them: what is taken back on the page makes an earlier one stand again.
    every = read_decisions(root / FILE).every
    return named.union(*(one.changed.pictures for one in every if one.changed))


def _tables(root: Path) -> list[Path]:
    paths = (root / f"{name}.parquet" for name in (*SCORE_CONFIGS, HUMAN))
    return [path for path in paths if path.exists()]


def _rewrite_without(path: Path, samples: Collection[str]) -> None:
    table = pq.read_table(path)
    about = pc.is_in(table[SAMPLE], pa.array(sorted(samples), pa.string()))
    if not pc.any(about).as_py():
        return
    # Whole or not at all: a killed process leaves the old file or the new one.
    partial = path.with_name(f".{path.name}.partial")
    pq.write_table(table.filter(pc.invert(about)), partial)
    partial.replace(path)
