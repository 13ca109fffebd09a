"""Anchors: strengths of an earlier board that stay as they are, and what each of them rests on."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from echo_hf.config.checks import AnsweredBy
from echo_hf.config.evaluation import Evaluated
from echo_hf.errors import ScoreError
from echo_hf.hub.run_tables import SAMPLE, STRENGTH, Anchor, definition_of, models_in, read_results
from echo_hf.judging.run_tables import Models, Row, RunTables
from echo_hf.scores.bradley_terry import BradleyTerry, bradley_terry
from echo_hf.scores.rating_table import RUBRIC, RatingTable
from echo_hf.scores.votes import ProtocolName
from echo_hf.scores.win_rate import METRIC
from echo_hf.systems.benchmark import Benchmark
from echo_hf.tables import RATINGS, RESULTS, arrow_rows

Anchors = Mapping[str, Anchor]  # by system
Identity = Mapping[str, Any]


def anchors_of(
    config: Evaluated, benchmark: Benchmark, tables: RunTables, models: Models
) -> dict[str, Anchors]:
    """The anchors that a config names, by split that was rated here, all of the same scale."""
    if config.anchors is None or tables.ratings is None:
        return {}
    found, identity = {}, benchmark.identity()
    every = read_anchors(config.anchors, config.protocol, benchmark.cache)
    overall = tables.ratings.filter(pc.equal(tables.ratings["rubric"], RUBRIC))
    for split in tables.tasks:
        if rated := tables.of_split(overall, split):
            found[split] = every.get(split, {})
            _check(found[split], split, identity, {*rated["judge"].to_pylist()}, models)
    return found


def read_anchors(
    reference: str, protocol: ProtocolName, cache: Path | None = None
) -> Mapping[str, Anchors]:
    """The strengths of a `results.json` or of a release, by split; in a chain each has its own."""
    path, found = Path(reference), dict[str, dict[str, Anchor]]()
    try:
        if path.is_file():
            rows, told = read_results(path), json.loads(path.read_bytes())
            if told["protocol"] != protocol:
                raise ScoreError(
                    f"anchors: {reference!r} follows protocol {told['protocol']!r}, this run "
                    f"{protocol!r}: score one of them by the other's (--protocol)"
                )
            identity = told["benchmark"]
        else:
            benchmark = Benchmark(reference, cache=cache)
            told, rows, identity = None, benchmark.load(RESULTS.name), benchmark.identity()
        rows = [dict(row) for row in rows if row["protocol"] == protocol]
        strengths, rated = (
            [row for row in rows if row["metric"] == one] for one in (STRENGTH, METRIC)
        )
        for split in {row["split"] for row in rated} - {row["split"] for row in strengths}:
            if told:
                fitted = BradleyTerry(**told["details"][split]["win_rate"]["bradley_terry"])
            else:
                fitted = _fitted(benchmark, split, protocol)
            for row in (one for one in rated if one["split"] == split):
                row["value"] = fitted.strength[row["system"]]
                row["low"], row["high"] = fitted.interval[row["system"]] or (None, None)
                strengths.append(row)
        for row in strengths:
            if row["value"] is not None:
                found.setdefault(row["split"], {})[row["system"]] = _anchor(row, identity)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ScoreError(
            f"anchors: {reference!r} holds no strengths in a form that is known: expected the "
            "results.json of a run, or a release with results and ratings; score that run again"
        ) from None
    return found


def _fitted(benchmark: Benchmark, split: str, protocol: ProtocolName) -> BradleyTerry:
    """Strengths from the ratings of a release, which holds a row of them beside anchors alone."""
    ids = arrow_rows(benchmark.load(split), ["id"])["id"]
    ratings = arrow_rows(benchmark.load(RATINGS.name))
    return bradley_terry(ratings.filter(pc.is_in(ratings[SAMPLE], ids)), protocol=protocol)


def _anchor(row: Row, identity: Identity) -> Anchor:
    definition = definition_of(row)
    if earlier := definition.get("anchor"):
        return Anchor.model_validate(earlier)
    judges, systems = (models_in(definition, kind) for kind in ("judges", "systems"))
    return Anchor(
        strength=row["value"],
        interval=None if row["low"] is None else (row["low"], row["high"]),
        release=identity["on_hub"] or identity["name"],
        digest=(identity["digests"] or {}).get(row["split"]),
        judges={name: judges.get(name, AnsweredBy()) for name in definition["judges"]},
        system=systems.get(row["system"], AnsweredBy()),
    )


def _check(
    anchors: Anchors, split: str, identity: Identity, judges: Collection[str], models: Models
) -> None:
    """Refuses strengths that other samples, judges or models gave: they are of another scale."""
    if not anchors:
        raise ScoreError(
            f"anchors: no system there has a strength in {split}: it needs ratings by which each "
            "loses some points and wins some; score that run with more, or leave anchors out"
        )
    digest, release = (identity["digests"] or {}).get(split), identity["on_hub"] or identity["name"]
    for name, one in anchors.items():
        wrong = None
        if one.digest != digest or (digest is None and one.release != release):
            wrong = f"has its strength on other samples, of {one.release!r}, not of {release!r}"
        elif {*one.judges} != {*judges}:
            wrong = f"was judged by {sorted(one.judges)!r}, here it is by {sorted(judges)!r}"
        for who, there, here in (
            ("it", one.system, models.systems.get(name)),
            *((judge, then, models.judges.get(judge)) for judge, then in one.judges.items()),
        ):
            if here and None not in (there.model, here.model) and there.model != here.model:
                wrong = wrong or f"says that {who} is {there.model!r}, here it is {here.model!r}"
        if wrong:
            raise ScoreError(
                f"anchors: {name!r} of {split} {wrong}: expected the same release, judges and "
                "models; change that, or leave anchors out"
            )


def fit(
    table: RatingTable, protocol: ProtocolName, n_boot: int, anchors: Anchors | None
) -> BradleyTerry:
    """Strengths beside anchors, which keep the intervals that they had."""
    anchors = anchors or {}
    given = {name: one.strength for name, one in anchors.items()}
    found = bradley_terry(table, anchors=given, protocol=protocol, n_boot=n_boot)
    ends = {name: one.interval for name, one in anchors.items()}
    interval = {**found.interval, **ends}
    reasons = {name: why for name, why in found.reasons.items() if interval[name] is None}
    return replace(found, interval=interval, reasons=reasons)
