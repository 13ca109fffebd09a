"""The figures of a run's `results.json` in a terminal: boards, metrics, choices of judges."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from echo_hf._infra.console import plain_table, say, show_table
from echo_hf._infra.text import BETTER, HIGHER, LOWER, percent, plain, rounded, rounded_interval
from echo_hf.judging.audit_file import KEY
from echo_hf.reasons import IgnoredRating, LeftOut, Unscored

LONGEST = 40


def judge_names(judges: Iterable[str], failed: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The names of judges, each with the honeypots that it failed on."""
    for judge in judges:
        flags, name = ", ".join(failed.get(judge, ())), plain(judge, LONGEST)
        yield f"{name} (failed its audit: {flags})" if flags else name


NOTHING = "-"
MEANINGS = {
    str(reason): reason.meaning for kind in (LeftOut, IgnoredRating, Unscored) for reason in kind
}
Part = Mapping[str, Any]  # of the file, which `score` has written


def show_scores(console: Console, path: Path) -> None:
    found = json.loads(path.read_bytes())
    for name, counts in found["left_out"].items():
        for reason, count in counts.items():
            line = f"{count:,} rows of {name} do not count, {reason}: {MEANINGS[reason]}"
            say(console, line, "yellow")
    for name, split in found["details"].items():
        if rated := split["win_rate"]:
            rates = rated[found["protocol"]]
            judges = ", ".join(judge_names(rates["per_judge"], found["failed_audit"]))
            said = f"{name}: win rate ({found['protocol']}), judged by {judges}"
            show_table(console, said, _win_rates(rates, rated["tiers"]["tiers"]), _why_not(rates))
        elif split["samples"]:
            said = f"{name}: no win rates, since no judge has rated an output of it\n"
            say(console, said, "yellow")
        if split["pairwise"]:
            _show_pairwise(console, name, split["pairwise"]["judges"], found["failed_audit"])
        if split["metrics"]:
            show_table(console, f"{name}: what people complain about", _metrics(split["metrics"]))
    directions = f"{HIGHER} higher, {LOWER} lower is better"
    say(console, directions, "dim")
    say(console, f"results: {path}")


def _show_pairwise(console: Console, split: str, judges: Part, failed: Part) -> None:
    say(console, f"{split}: two outputs side by side, in both orders", "bold")
    for name, one in zip(judge_names(judges, failed), judges.values(), strict=True):
        parts = (
            f"{one['pairs']:,} pairs",
            f"same winner in both orders {_said(one['consistent'])}",
            f"same place {_said(one['follows_position'])}",
            f"agrees with its ratings {_said(one['agreement'])}",
        )
        say(console, f"{name}: {', '.join(parts)}")
    console.print()


def _said(share: Part) -> str:
    if share["value"] is None:
        return f"- ({share['reason']})"
    if share["interval"] is None:
        return f"{share['value']:.2f}"
    low, high = share["interval"]
    return f"{share['value']:.2f} ({low:.2f} to {high:.2f})"


def _win_rates(rates: Part, tiers: Sequence[Sequence[str]]) -> Table:
    # Where nothing says how far others may differ, one tier for all would read as no difference.
    known = any(rates["interval"].values())
    tier = {name: at for at, names in enumerate(tiers, 1) for name in names if known}
    table = plain_table("system", "win rate", "95 %", "tier", "coverage")
    ranked = sorted(rates["win_rate"].items(), key=lambda one: (one[1] is None, -(one[1] or 0.0)))
    for system, rate in ranked:
        table.add_row(
            Text(plain(system, LONGEST), "bold"),
            rounded(rate),
            rounded_interval(rates["interval"][system]),
            str(tier.get(system, NOTHING)),
            percent(rates["coverage"][system]),
        )
    return table


def _why_not(rates: Part) -> list[str]:
    named: dict[str, list[str]] = {}
    for system, reason in rates["reasons"].items():
        named.setdefault(reason, []).append(plain(system, LONGEST))
    every = len(rates["win_rate"])
    return [
        f"{'all systems' if len(systems) == every else ', '.join(systems)}: {reason}: "
        f"{MEANINGS[reason]}"
        for reason, systems in named.items()
    ]


def _metrics(metrics: Sequence[Part]) -> Table:
    table = Table("metric", box=None, pad_edge=False)
    for heading in ("value", "95 %", "samples"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("beside it")
    for metric, every in groupby(metrics, key=itemgetter("metric")):
        rows, title = list(every), Text(f"{metric} {BETTER[metric]}", "bold")
        missing = {one["missing"] for one in rows}
        if None not in missing and len(missing) == 1:  # no system could be measured
            table.add_row(title, *_cells(rows[0]))
        else:
            table.add_row(title, "", "", "", Text(_failed(rows), "yellow"))
            for one in rows:
                table.add_row(Text(f"  {plain(one['system'], LONGEST)}"), *_cells(one))
    return table


def _failed(rows: Sequence[Part]) -> str:
    found = (one["result"]["definition"].get(KEY, {}) for one in rows if one["result"])
    failed = {judge: flags for one in found for judge, flags in one.items()}
    return ", ".join(judge_names(failed, failed))


def _cells(one: Part) -> tuple[Text | str, ...]:
    result, counts = one["result"] or {}, one["counts"]
    tint = result.get("tint", {}).get("yellower", {}).get("value")
    beside = "" if tint is None else f"{abs(tint):.1f} {'yellower' if tint >= 0 else 'bluer'}"
    reasons = ", ".join(f"{count} {reason}" for reason, count in counts.items())
    said = "; ".join(filter(None, (one["missing"], beside, reasons)))
    covered = f"{result.get('n', 0)} of {len(one['samples']) + counts.get('not_asked', 0)}"
    value, interval = rounded(result.get("value")), rounded_interval(result.get("interval"))
    return value, interval, covered, Text(said, "yellow" if one["missing"] else "")
