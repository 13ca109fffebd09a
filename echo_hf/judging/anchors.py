"""Anchors: strengths of an earlier board that stay fixed while new systems join it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc

from echo_hf.config.checks import ModelIdentity
from echo_hf.config.evaluation import EvaluationBase
from echo_hf.errors import ScoreError
from echo_hf.hub.run_tables import (
    SAMPLE_COLUMN,
    STRENGTH,
    Anchor,
    parse_definition,
    read_models,
    read_results,
)
from echo_hf.judging.results import SavedIdentity, SavedResults
from echo_hf.scores.bradley_terry import BradleyTerry, bradley_terry
from echo_hf.scores.rating_table import RUBRIC, RatingTable
from echo_hf.scores.votes import ProtocolName
from echo_hf.scores.win_rate import METRIC
from echo_hf.systems.benchmark import Benchmark
from echo_hf.systems.run_tables import Models, RunTables
from echo_hf.tables import RATINGS, RESULTS, Row, arrow_rows

Anchors = Mapping[str, Anchor]  # by system


def select_anchors(
    config: EvaluationBase, benchmark: Benchmark, tables: RunTables, models: Models
) -> dict[str, Anchors]:
    """Select the anchors of a config, by rated split; all of them have to be on the same scale."""
    if config.anchors is None or tables.ratings is None:
        return {}
    anchors, identity = {}, SavedIdentity(**benchmark.identity())
    reference_anchors = read_anchors(config.anchors, config.protocol, benchmark)
    overall = tables.ratings.filter(pc.equal(tables.ratings["rubric"], RUBRIC))
    for split in tables.tasks:
        if rated := tables.select_split(overall, split):
            anchors[split] = reference_anchors.get(split, {})
            check_anchors(anchors[split], split, identity, {*rated["judge"].to_pylist()}, models)
    return anchors


def read_anchors(reference: str, protocol: ProtocolName, rated: Benchmark) -> Mapping[str, Anchors]:
    """Read strengths of a `results.json`, or of a release by split, as `rated` is read.

    Chained anchors stay as given.
    """
    path, anchors = Path(reference), dict[str, dict[str, Anchor]]()
    try:
        if path.is_file():
            rows, saved = read_results(path), SavedResults.model_validate_json(path.read_bytes())
            if saved.protocol != protocol:
                raise ScoreError(
                    f"anchors: {reference!r} follows protocol {saved.protocol!r}, this run "
                    f"{protocol!r}: score one of them by the other's (--protocol)"
                )
            identity = saved.benchmark
        else:
            benchmark = replace(rated, reference=reference, is_sealed=False, _read={})
            saved, rows = None, benchmark.load(RESULTS.name)
            identity = SavedIdentity(**benchmark.identity())
        rows = [dict(row) for row in rows if row["protocol"] == protocol]
        strengths, rates = (
            [row for row in rows if row["metric"] == metric] for metric in (STRENGTH, METRIC)
        )
        for split in {row["split"] for row in rates} - {row["split"] for row in strengths}:
            if saved:
                saved_rates = saved.details[split].win_rate
                fitted = saved_rates.bradley_terry if saved_rates else None
            else:
                fitted = _fit_release(benchmark, split, protocol)
            if fitted is None:
                raise ValueError
            for row in (rate_row for rate_row in rates if rate_row["split"] == split):
                row["value"] = fitted.strength[row["system"]]
                row["low"], row["high"] = fitted.interval[row["system"]] or (None, None)
                strengths.append(row)
        for row in strengths:
            if row["value"] is not None:
                anchors.setdefault(row["split"], {})[row["system"]] = _build_anchor(row, identity)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ScoreError(
            f"anchors: {reference!r} holds no strengths in a form that is known: expected the "
            "results.json of a run, or a release with results and ratings; score that run again"
        ) from None
    return anchors


def _fit_release(benchmark: Benchmark, split: str, protocol: ProtocolName) -> BradleyTerry:
    """Fit strengths to the ratings of a release; it has rows of strengths only beside anchors."""
    ids = arrow_rows(benchmark.load(split), ["id"])["id"]
    ratings = arrow_rows(benchmark.load(RATINGS.name))
    return bradley_terry(ratings.filter(pc.is_in(ratings[SAMPLE_COLUMN], ids)), protocol=protocol)


def _build_anchor(row: Row, identity: SavedIdentity) -> Anchor:
    definition = parse_definition(row)
    if earlier := definition.get("anchor"):
        return Anchor.model_validate(earlier)
    judges, systems = (read_models(definition, kind) for kind in ("judges", "systems"))
    return Anchor(
        strength=row["value"],
        interval=None if row["low"] is None else (row["low"], row["high"]),
        release=identity.on_hub or identity.name,
        digest=(identity.digests or {}).get(row["split"]),
        judges={name: judges.get(name, ModelIdentity()) for name in definition["judges"]},
        system=systems.get(row["system"], ModelIdentity()),
    )


def check_anchors(
    anchors: Anchors, split: str, identity: SavedIdentity, judges: Collection[str], models: Models
) -> None:
    """Refuse strengths on another scale: of other samples, judges or models."""
    if not anchors:
        raise ScoreError(
            f"anchors: no system there has a strength in {split}: it needs ratings by which each "
            "loses some points and wins some; score that run with more, or leave anchors out"
        )
    digest, release = (identity.digests or {}).get(split), identity.on_hub or identity.name
    for name, anchor in anchors.items():
        problem = None
        if anchor.digest != digest or (digest is None and anchor.release != release):
            samples = f"of {anchor.release!r}, not of {release!r}"
            problem = f"has its strength on other samples, {samples}"
        elif {*anchor.judges} != {*judges}:
            problem = f"was judged by {sorted(anchor.judges)!r}, here it is by {sorted(judges)!r}"
        for label, old, new in (
            ("it", anchor.system, models.systems.get(name)),
            *((judge, old, models.judges.get(judge)) for judge, old in anchor.judges.items()),
        ):
            if new and None not in (old.model, new.model) and old.model != new.model:
                problem = problem or f"says that {label} is {old.model!r}, here it is {new.model!r}"
        if problem:
            raise ScoreError(
                f"anchors: {name!r} of {split} {problem}: expected the same release, judges and "
                "models; change that, or leave anchors out"
            )


def fit_strengths(
    table: RatingTable, protocol: ProtocolName, n_boot: int, anchors: Anchors | None
) -> BradleyTerry:
    """Fit strengths beside anchors, whose strengths and intervals stay as they are."""
    anchors = anchors or {}
    fixed_strengths = {name: anchor.strength for name, anchor in anchors.items()}
    fitted = bradley_terry(table, anchors=fixed_strengths, protocol=protocol, n_boot=n_boot)
    anchor_intervals = {name: anchor.interval for name, anchor in anchors.items()}
    interval = {**fitted.interval, **anchor_intervals}
    reasons = {name: reason for name, reason in fitted.reasons.items() if interval[name] is None}
    return replace(fitted, interval=interval, reasons=reasons)
