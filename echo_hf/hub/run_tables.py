"""What a run holds beside its stages, as configs of its release: outputs, ratings, results."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import pyarrow as pa
from datasets import Dataset
from pydantic import BaseModel, ConfigDict, Field, JsonValue, NonNegativeInt, ValidationError

from echo_hf._infra.parquet import read_parquet
from echo_hf._infra.regular_file import read_regular
from echo_hf.config.checks import ANSWERED_BY, AnsweredBy
from echo_hf.curate.privacy import clean_image
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import RunError
from echo_hf.hub.facts import SAMPLE_CONFIGS, SCORE_CONFIGS, problem
from echo_hf.images.store import ImageStore
from echo_hf.reasons import LeftOut
from echo_hf.tables import OUTPUTS, RATINGS, RESULTS, arrow_rows

Figure = Annotated[float, Field(allow_inf_nan=False)]


class Result(BaseModel):
    """One figure of one system, as `results.json` has it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    metric: str
    protocol: Literal["published", "corrected"]
    split: str
    system: str
    value: Figure | None = None
    low: Figure | None = None
    high: Figure | None = None
    n: NonNegativeInt | None = None
    coverage: Annotated[Figure, Field(ge=0, le=1)] | None = None
    definition: JsonValue = None


STRENGTH = "bradley_terry"  # the metric of strengths beside anchors


class Anchor(BaseModel):
    """A strength that stays as it is when others join, with what it rests on."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    strength: Figure
    interval: tuple[Figure, Figure] | None = None
    release: str | None = None
    digest: str | None = None  # of the split's samples
    judges: Mapping[str, AnsweredBy] = {}
    system: AnsweredBy = AnsweredBy()

    @property
    def said(self) -> str:
        return f"{self.release}, judged by {', '.join(self.judges)}"


class Results(BaseModel):
    """The part of `results.json` that a release keeps; older files name no models."""

    results: tuple[Result, ...]
    systems: Mapping[str, AnsweredBy] = {}
    judges: Mapping[str, AnsweredBy] = {}

    def definition(self, row: Result) -> JsonValue:
        """A figure's definition, with the models behind the names in it."""
        if not isinstance(row.definition, dict):
            return row.definition
        told: dict[str, JsonValue] = {}
        for kind, models in (("systems", self.systems), ("judges", self.judges)):
            names = row.definition.get(kind, [row.system] if kind == "systems" else [])
            named = {name: one for name, one in models.items() if one != AnsweredBy()}
            if isinstance(names, list) and (known := named.keys() & set(map(str, names))):
                told[kind] = {name: named[name].model_dump() for name in sorted(known)}
        return {**row.definition, **({ANSWERED_BY: told} if told else {})}


RESULTS_FILE = "results.json"
MOST_RESULTS_BYTES = 1 << 27


def read_results(path: Path) -> Dataset:
    """The figures of a run, sorted by their key."""
    try:
        text = read_regular(path, most_bytes=MOST_RESULTS_BYTES)
        found = Results.model_validate_json(text)
    except OSError as error:
        raise RunError(f"cannot read {str(path)!r} ({error.strerror}): score again") from None
    except ValidationError as error:
        raise RunError(
            f"{str(path)!r}: {problem(error)}: score again, or move the file away to release "
            "without it"
        ) from None
    rows = [
        one.model_dump()
        | {"definition": json.dumps(found.definition(one), sort_keys=True, ensure_ascii=False)}
        for one in found.results
    ]
    rows.sort(key=lambda row: [row[name] for name in RESULTS.key])
    return Dataset(pa.Table.from_pylist(rows, schema=RESULTS.features.arrow_schema))


def definition_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The definition in a row of released figures; empty where it is none."""
    try:
        found = json.loads(row["definition"] or "")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def models_in(definition: Mapping[str, Any], kind: str) -> dict[str, AnsweredBy]:
    """Who answered to the names of systems or judges in a figure, as far as it says so."""
    told = definition.get(ANSWERED_BY)
    rows = told.get(kind) if isinstance(told, Mapping) else None
    found: dict[str, AnsweredBy] = {}
    for name, row in rows.items() if isinstance(rows, Mapping) else ():
        with suppress(ValidationError):
            found[str(name)] = AnsweredBy.model_validate(row)
    return found


def models_of(results: Dataset | None) -> dict[str, dict[str, AnsweredBy]]:
    """Who answered to each name in released figures."""
    rows = [definition_of(row) for row in results or ()]
    return {
        kind: {name: one for row in rows for name, one in models_in(row, kind).items()}
        for kind in ("systems", "judges")
    }


SAMPLE = "sample_id"
DIGEST = "sample_digest"
SPLIT = "split"
# The columns that name an image which a system drew.
OF_OUTPUTS = ("image", "output_sha256", "output_a_sha256", "output_b_sha256")


class RunTables(NamedTuple):
    """Configs, and of each how many rows are left out, by reason."""

    configs: Mapping[str, Dataset]
    left_out: Mapping[str, Mapping[str, int]]


def run_tables(root: Path, samples: Mapping[str, Dataset]) -> RunTables:
    """What a run holds beside its stages, of the samples that are released as they are."""
    digests: dict[str, str | None] = {}
    splits: dict[str, str] = {}
    for name in filter(samples.__contains__, SAMPLE_CONFIGS):
        rows = arrow_rows(samples[name], ["id", DIGEST])
        digests.update(zip(rows["id"].to_pylist(), rows[DIGEST].to_pylist(), strict=True))
        splits |= dict.fromkeys(rows["id"].to_pylist(), name) if name in BENCHMARKS else {}
    configs, left_out = {}, {}
    for name in SCORE_CONFIGS:
        path = root / f"{name}.parquet"
        if path.exists():
            configs[name] = _read(path)
            if SAMPLE in configs[name].column_names:
                reasons = left_out_reasons(arrow_rows(configs[name]), digests)
                if counts := Counter(str(reason) for reason in reasons if reason):
                    kept = [row for row, reason in enumerate(reasons) if reason is None]
                    configs[name] = configs[name].select(kept)
                    left_out[name] = dict(sorted(counts.items()))
        if name == RATINGS.name and name in configs:
            configs[name] = _with_splits(configs[name], splits)
    if (root / RESULTS_FILE).exists():
        configs["results"] = read_results(root / RESULTS_FILE)
    return RunTables(configs, left_out)


def _with_splits(ratings: Dataset, splits: Mapping[str, str]) -> Dataset:
    """Ratings with the splits that their samples have in this release."""
    table = arrow_rows(ratings)
    found = pa.array([splits.get(name) for name in table[SAMPLE].to_pylist()], pa.string())
    if SPLIT in table.column_names:
        return Dataset(table.set_column(table.column_names.index(SPLIT), SPLIT, found))
    return Dataset(table.append_column(SPLIT, found))


def _read(path: Path) -> Dataset:
    try:
        return Dataset(read_parquet(path), fingerprint=path.stem)
    except (OSError, pa.ArrowException) as error:
        said = " ".join(str(error).split())
        raise RunError(
            f"cannot read {str(path)!r} ({said}): make it again, or move it away to release "
            "without it"
        ) from None


def left_out_reasons(
    rows: pa.Table, digests: Mapping[str, str | None]
) -> tuple[LeftOut | None, ...]:
    """Why rows about samples do not count, null for those that do."""
    names = rows[SAMPLE].to_pylist()
    known = [digests.get(name) for name in names]
    seen = rows[DIGEST].to_pylist() if DIGEST in rows.column_names else known
    return tuple(
        LeftOut.NOT_RELEASED
        if name not in digests
        else LeftOut.OTHER_SAMPLE
        if digest != wanted
        else None
        for name, digest, wanted in zip(names, seen, known, strict=True)
    )


def cleaned_outputs(
    configs: Mapping[str, Dataset], images: ImageStore
) -> tuple[dict[str, Dataset], int]:
    """The rows of a release without metadata in the images that systems drew."""
    if OUTPUTS.name not in configs:
        return dict(configs), 0
    drawn = arrow_rows(configs[OUTPUTS.name])["image"].to_pylist()
    new = {one: clean_image(one, images).sha256 for one in sorted({*drawn} - {None})}
    made = {}
    for config, rows in configs.items():
        table = arrow_rows(rows)
        for name in (name for name in OF_OUTPUTS if name in rows.column_names):
            # What was judged is known by the digest that it had where there is no other.
            digests = [
                new.get(one, one) or (None if name == "image" else one)
                for one in table[name].to_pylist()
            ]
            at = table.column_names.index(name)
            table = table.set_column(at, table.schema.field(at), pa.array(digests, pa.string()))
        made[config] = Dataset(table) if {*OF_OUTPUTS} & {*rows.column_names} else rows
    return made, sum(one is not None and new[one] is None for one in drawn)
