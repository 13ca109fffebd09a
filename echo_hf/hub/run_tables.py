"""What a run holds beside its stages, as configs of its release: outputs, ratings, results."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Dataset
from pydantic import BaseModel, ConfigDict, Field, JsonValue, NonNegativeInt, ValidationError

from echo_hf.curate.privacy import cleaned_image
from echo_hf.errors import RunError
from echo_hf.hub.facts import CONFIGS, SAMPLE_CONFIGS, SCORE_CONFIGS
from echo_hf.images.store import ImageStore
from echo_hf.reasons import LeftOut
from echo_hf.tables import OUTPUTS, RESULTS, Table, arrow_rows

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


class Results(BaseModel):
    """The part of `results.json` that a release keeps."""

    results: tuple[Result, ...]


def read_results(path: Path) -> Dataset:
    try:
        found = Results.model_validate_json(path.read_bytes())
    except OSError as error:
        raise RunError(f"cannot read {str(path)!r} ({error.strerror}): score again") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise RunError(
            f"{str(path)!r}: {place} is {str(first['input'])[:80]!r}, {first['msg'].lower()}: "
            "score again, or move the file away to release without it"
        ) from None
    rows = sorted(map(_row, found.results), key=lambda row: [row[name] for name in RESULTS.key])
    return Dataset(pa.Table.from_pylist(rows, schema=RESULTS.features.arrow_schema))


def _row(result: Result) -> dict[str, Any]:
    definition = json.dumps(result.definition, sort_keys=True, ensure_ascii=False)
    return {**result.model_dump(exclude={"definition"}), "definition": definition}


RESULTS_FILE = "results.json"
SAMPLE = "sample_id"
DIGEST = "sample_digest"
# The columns that name an image which a system drew.
OF_OUTPUTS = ("image", "output_sha256", "output_a_sha256", "output_b_sha256")


@dataclass(frozen=True)
class RunTables:
    configs: Mapping[str, Dataset]
    left_out: Mapping[str, Mapping[str, int]]


def run_tables(root: Path, samples: Mapping[str, Dataset], cache: Path) -> RunTables:
    digests = dict(_digests(samples))
    configs, left_out = {}, {}
    for name in SCORE_CONFIGS:
        path = root / f"{name}.parquet"
        if path.exists():
            rows = _read(path, CONFIGS[name].table, cache)
            configs[name], left_out[name] = _of_samples(rows, digests)
    if (root / RESULTS_FILE).exists():
        configs["results"] = read_results(root / RESULTS_FILE)
    return RunTables(configs, {name: counts for name, counts in left_out.items() if counts})


def cleaned_outputs(
    configs: Mapping[str, Dataset], images: ImageStore
) -> tuple[dict[str, Dataset], int]:
    """The rows of a release without metadata in the images that systems drew."""
    if OUTPUTS.name not in configs:
        return dict(configs), 0
    drawn = arrow_rows(configs[OUTPUTS.name])["image"].to_pylist()
    new = {one: cleaned_image(one, images).sha256 for one in sorted({*drawn} - {None})}
    cleaned = {name: _renamed(rows, new) for name, rows in configs.items()}
    return cleaned, sum(one is not None and new[one] is None for one in drawn)


def _renamed(rows: Dataset, new: Mapping[str, str | None]) -> Dataset:
    names = [name for name in OF_OUTPUTS if name in rows.column_names]
    if not names or all(old == digest for old, digest in new.items()):
        return rows
    table = arrow_rows(rows)
    for name in names:
        old = table[name].to_pylist()
        # What was judged is known by the digest that it had where there is no other.
        digests = [new.get(one, one) or (None if name == "image" else one) for one in old]
        at = table.column_names.index(name)
        table = table.set_column(at, table.schema.field(at), pa.array(digests, pa.string()))
    return Dataset(table)


def _digests(samples: Mapping[str, Dataset]) -> Iterator[tuple[str, str | None]]:
    for name in SAMPLE_CONFIGS:
        if name in samples:
            rows = arrow_rows(samples[name], ["id", DIGEST])
            yield from zip(rows["id"].to_pylist(), rows[DIGEST].to_pylist(), strict=True)


def _read(path: Path, table: Table, cache: Path) -> Dataset:
    try:
        if pq.read_metadata(path).num_rows:
            return Dataset.from_parquet(str(path), cache_dir=str(cache))
    except (OSError, pa.ArrowException) as error:
        said = " ".join(str(error).split())
        raise RunError(
            f"cannot read {str(path)!r} ({said}): make it again, or move it away to release "
            "without it"
        ) from None
    # datasets prepares no split without rows.
    return Dataset(table.features.arrow_schema.empty_table())


def _of_samples(rows: Dataset, digests: Mapping[str, str | None]) -> tuple[Dataset, dict[str, int]]:
    if SAMPLE not in rows.column_names:
        return rows, {}
    columns = [name for name in (SAMPLE, DIGEST) if name in rows.column_names]
    reasons = left_out_reasons(arrow_rows(rows, columns), digests)
    counts = Counter(str(reason) for reason in reasons if reason)
    if not counts:
        return rows, {}
    kept = rows.select([row for row, reason in enumerate(reasons) if reason is None])
    return kept, dict(sorted(counts.items()))


def left_out_reasons(
    rows: pa.Table, digests: Mapping[str, str | None]
) -> tuple[LeftOut | None, ...]:
    """Why rows about samples do not count, null for those that do."""
    columns = [name for name in (SAMPLE, DIGEST) if name in rows.column_names]
    return tuple(_left_out(key, digests) for key in rows.select(columns).to_pylist())


def _left_out(key: Mapping[str, str], digests: Mapping[str, str | None]) -> LeftOut | None:
    if key[SAMPLE] not in digests:
        return LeftOut.NOT_RELEASED
    other = DIGEST in key and key[DIGEST] != digests[key[SAMPLE]]
    return LeftOut.OTHER_SAMPLE if other else None
