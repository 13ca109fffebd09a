"""Win rates as the Hub reads them of a model's repository (`.eval_results/*.yaml`)."""

from __future__ import annotations

import re
from typing import Any

import yaml

from echo_hf.report.markup import shown
from echo_hf.report.numbers import number
from echo_hf.report.results_file import Rates
from echo_hf.report.run_data import RunData

COMMIT = re.compile(r"[0-9a-f]{40}")


def eval_results(data: RunData) -> str | None:
    """The win rates of each system, for whoever publishes it.

    A task of the benchmark's own `eval.yaml` is a split. The value alone says little, so that the
    notes name the other systems, the judges and the interval.

    Args:
        data: The run.

    Returns:
        YAML with a list of entries by system; null where the benchmark is not on the Hub, or
        nothing was rated.
    """
    dataset, at, revision = (data.results.benchmark.on_hub or "").rpartition("@")
    if not at:
        return None
    every = {shown(system): _entries(data, system, dataset, revision) for system in data.systems}
    found = {system: entries for system, entries in every.items() if entries}
    if not found:
        return None
    return yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=10_000)


def _entries(data: RunData, system: str, dataset: str, revision: str) -> list[dict[str, Any]]:
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    rated = ((split, data.results.rates(split)) for split in data.splits)
    entries = [
        EvalResultEntry(
            dataset_id=dataset,
            task_id=split,
            value=round(value, 4),
            dataset_revision=revision if COMMIT.fullmatch(revision) else None,
            notes=shown(_notes(data, rates, system, revision)),
        )
        for split, rates in rated
        if rates and (value := rates.win_rate.get(system)) is not None
    ]
    return eval_result_entries_to_yaml(entries)


def _notes(data: RunData, rates: Rates, system: str, revision: str) -> str:
    others = [name for name in rates.order if name != system]
    ends = rates.interval.get(system)
    judges = [
        f"{judge} (failed its audit)" if judge in data.failures else judge
        for judge in rates.per_judge
    ]
    return "; ".join(
        [
            f"win rate from 0 to 1 against {', '.join(others)}",
            f"judged by {', '.join(judges)}",
            f"protocol {data.results.protocol}",
            f"95 % interval {number(ends[0])} to {number(ends[1])}" if ends else "no interval",
            f"revision {revision}",
        ]
    )
