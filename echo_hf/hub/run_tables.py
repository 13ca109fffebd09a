"""Outputs, ratings and results of a run, as configs of its release."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import pyarrow as pa
from datasets import Dataset
from pydantic import BaseModel, ConfigDict, Field, JsonValue, NonNegativeInt, ValidationError

from echo_hf._infra.parquet import read_parquet
from echo_hf._infra.regular_file import read_regular
from echo_hf._infra.text import percent
from echo_hf.config.checks import ANSWERED_BY, ModelIdentity, Section
from echo_hf.curate.privacy import clean_image
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import RunError
from echo_hf.hub.facts import (
    CARRIED_CONFIGS,
    CARRIED_FOLDER,
    SAMPLE_CONFIGS,
    SCORE_CONFIGS,
    LeftOut,
    describe_problem,
)
from echo_hf.images.store import ImageStore
from echo_hf.reasons import Reason
from echo_hf.tables import (
    CARRIED_OUTPUTS,
    CHECKS,
    HUMAN,
    OUTPUTS,
    RATINGS,
    RESULTS,
    TABLES,
    arrow_rows,
    fill_draws,
    is_wide,
    lengthen_rows,
)

FiniteFloat = Annotated[float, Field(allow_inf_nan=False)]


class ResultRow(Section):
    """One figure of one system, as `results.json` has it."""

    metric: str
    protocol: Literal["published", "corrected"]
    split: str
    system: str
    value: FiniteFloat | None = None
    low: FiniteFloat | None = None
    high: FiniteFloat | None = None
    n: NonNegativeInt | None = None
    coverage: Annotated[FiniteFloat, Field(ge=0, le=1)] | None = None
    definition: JsonValue = None

    @property
    def key(self) -> tuple[str, str, str]:
        """Metric, split and protocol, which tell the figures of a system apart."""
        return self.metric, self.split, self.protocol


STRENGTH = "bradley_terry"  # the metric of strengths beside anchors
# The metrics of strengths by choices between two outputs, and of the same by people.
CHOICES, CHOICES_BY_PEOPLE = "choice_strength", "choice_strength_human_corrected"


class Anchor(BaseModel):
    """A strength that stays when others join, and what it rests on."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    strength: FiniteFloat
    interval: tuple[FiniteFloat, FiniteFloat] | None = None
    release: str | None = None
    digest: str | None = None  # of the split's samples
    judges: Mapping[str, ModelIdentity] = {}
    system: ModelIdentity = ModelIdentity()

    @property
    def description(self) -> str:
        return f"{self.release}, judged by {', '.join(self.judges)}"


class ReleasedResults(BaseModel):
    """The part of `results.json` that a release keeps; older files name no models."""

    results: tuple[ResultRow, ...]
    system_models: Mapping[str, ModelIdentity] = Field({}, alias="systems")
    judge_models: Mapping[str, ModelIdentity] = Field({}, alias="judges")

    def build_definition(self, row: ResultRow) -> JsonValue:
        """Return a figure's definition, with the models behind the names in it."""
        if not isinstance(row.definition, dict):
            return row.definition
        by_kind: dict[str, JsonValue] = {}
        for kind, models in (("systems", self.system_models), ("judges", self.judge_models)):
            names = row.definition.get(kind, [row.system] if kind == "systems" else [])
            known_models = {
                name: model for name, model in models.items() if model != ModelIdentity()
            }
            if isinstance(names, list) and (used := known_models.keys() & set(map(str, names))):
                by_kind[kind] = {name: known_models[name].model_dump() for name in sorted(used)}
        return {**row.definition, **({ANSWERED_BY: by_kind} if by_kind else {})}


class Uncertified(Reason):
    """Why the worth of a judge is not known."""

    NO_CERTIFICATE = "no_certificate", "it was not held against people (echo-hf audit --certify)"
    OTHER_MODEL = "other_model", "its certificate is of another model"
    OTHER_PROVIDER = "other_provider", "its certificate is of the model at another provider"
    OTHER_PROMPT = "other_prompt", "its certificate is of other instructions"
    OTHER_OPTIONS = (
        "other_options",
        "its certificate is of other options, such as those of sampling or of image sizes",
    )


class CertificateFacts(BaseModel):
    """The accuracy of a judge as a release has it, or why it is unknown."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    reason: Uncertified | None = None
    set: str = ""
    day: str = ""
    samples: NonNegativeInt = 0
    answered: FiniteFloat = 1.0  # share of what was asked
    accuracy: FiniteFloat | None = None
    interval: tuple[FiniteFloat, FiniteFloat] | None = None
    people: FiniteFloat | None = None

    @property
    def summary(self) -> str:
        """The accuracy beside that of people, or why it is unknown, in a sentence."""
        if self.reason is not None:
            return f"no certificate that holds here: {self.reason.meaning}"
        ends = ""
        if self.interval:
            ends = f" ({percent(self.interval[0])} to {percent(self.interval[1])})"
        beside = "" if self.people is None else f", people on {percent(self.people)}"
        lost = f"; {percent(1 - self.answered)} without an answer" if self.answered < 1 else ""
        return (
            f"decides as people do on {percent(self.accuracy)}{ends} of the pairs that they "
            f"decide{beside}: {self.samples:,} samples of {self.set}, {self.day}{lost}"
        )


CERTIFICATES = "certificates"  # key of a definition


def read_certificate_facts(definition: Mapping[str, Any]) -> dict[str, CertificateFacts]:
    """Read what a released figure says of its judges; what cannot be read is left out."""
    rows, facts = definition.get(CERTIFICATES), dict[str, CertificateFacts]()
    for name, row in rows.items() if isinstance(rows, Mapping) else ():
        with suppress(ValidationError):
            facts[str(name)] = CertificateFacts.model_validate(row)
    return facts


RESULTS_FILE, AGREEMENT_FILE, ANALYSIS_FILE = "results.json", "agreement.json", "analysis.json"
MAX_RESULTS_BYTES = 1 << 27


def read_results(path: Path) -> Dataset:
    """Read the figures of a run, sorted by their key."""
    try:
        text = read_regular(path, max_bytes=MAX_RESULTS_BYTES)
        saved = ReleasedResults.model_validate_json(text)
    except OSError as error:
        raise RunError(f"cannot read {str(path)!r} ({error.strerror}): score again") from None
    except ValidationError as error:
        raise RunError(
            f"{str(path)!r}: {describe_problem(error)}: score again, or move the file away to "
            "release without it"
        ) from None
    rows = [
        figure.model_dump()
        | {
            "definition": json.dumps(
                saved.build_definition(figure), sort_keys=True, ensure_ascii=False
            )
        }
        for figure in saved.results
    ]
    rows.sort(key=lambda row: [row[name] for name in RESULTS.key])
    return Dataset(pa.Table.from_pylist(rows, schema=RESULTS.features.arrow_schema))


def parse_definition(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Parse the definition in a row of released figures; empty where it is invalid."""
    try:
        definition = json.loads(row["definition"] or "")
    except (ValueError, RecursionError):
        return {}
    return definition if isinstance(definition, dict) else {}


def read_models(definition: Mapping[str, Any], kind: str) -> dict[str, ModelIdentity]:
    """Read the models behind the names of systems or judges in a figure."""
    by_kind = definition.get(ANSWERED_BY)
    rows = by_kind.get(kind) if isinstance(by_kind, Mapping) else None
    models: dict[str, ModelIdentity] = {}
    for name, row in rows.items() if isinstance(rows, Mapping) else ():
        with suppress(ValidationError):
            models[str(name)] = ModelIdentity.model_validate(row)
    return models


def released_models(results: Dataset | None) -> dict[str, dict[str, ModelIdentity]]:
    """Return the models behind each name in released figures."""
    rows = [parse_definition(row) for row in results or ()]
    return {
        kind: {name: model for row in rows for name, model in read_models(row, kind).items()}
        for kind in ("systems", "judges")
    }


SAMPLE_COLUMN = "sample_id"
DIGEST_COLUMN = "sample_digest"
SPLIT_COLUMN = "split"
# The columns that name an image which a system drew.
OUTPUT_DIGEST_COLUMNS = ("image", "output_sha256", "output_a_sha256", "output_b_sha256")


class ReleasedTables(NamedTuple):
    """Configs, and for each the number of rows left out, by reason."""

    configs: Mapping[str, Dataset]
    left_out: Mapping[str, Mapping[str, int]]


def select_released_tables(
    root: Path, samples: Mapping[str, Dataset], *, carries: bool = False, ranks: bool = False
) -> ReleasedTables:
    """Select the run's tables about samples that are released unchanged; ranks where asked for."""
    digests: dict[str, str | None] = {}
    splits: dict[str, str] = {}
    for name in filter(samples.__contains__, SAMPLE_CONFIGS):
        rows = arrow_rows(samples[name], ["id", DIGEST_COLUMN])
        digests.update(zip(rows["id"].to_pylist(), rows[DIGEST_COLUMN].to_pylist(), strict=True))
        splits |= dict.fromkeys(rows["id"].to_pylist(), name) if name in BENCHMARKS else {}
    configs, left_out = {}, {}
    for name in SCORE_CONFIGS:
        path = root / f"{name}.parquet"
        if path.exists() and (ranks or name != HUMAN.name):
            configs[name] = _read_table(path)
            if SAMPLE_COLUMN in configs[name].column_names:
                reasons = find_left_out_reasons(arrow_rows(configs[name]), digests)
                if counts := Counter(str(reason) for reason in reasons if reason):
                    row_numbers = [row for row, reason in enumerate(reasons) if reason is None]
                    configs[name] = configs[name].select(row_numbers)
                    left_out[name] = dict(sorted(counts.items()))
        if name == CHECKS.name and name in configs:
            configs[name], lost = _drop_evidence(configs[name], digests)
            left_out |= {name: {LeftOut.NOT_RELEASED.value: lost}} if lost else {}
        if name == HUMAN.name and name in configs:
            configs[name] = _number_raters(configs[name])
        if name == RATINGS.name and name in configs:
            configs[name] = _add_splits(configs[name], splits)
    for name in CARRIED_CONFIGS if carries else ():
        if (path := get_carried_path(root, name)).exists():
            configs[name] = _read_table(path)
    if (root / RESULTS_FILE).exists():
        configs["results"] = read_results(root / RESULTS_FILE)
    return ReleasedTables(configs, left_out)


def get_carried_path(root: Path, config: str) -> Path:
    return root / CARRIED_FOLDER / f"{config.removeprefix('carried_')}.parquet"


def _drop_evidence(checks: Dataset, samples: Collection[str]) -> tuple[Dataset, int]:
    """Leave out the evidence of samples that are not released, and count it."""
    table = arrow_rows(checks)
    if "evidence" not in table.column_names:
        return checks, 0  # refused when it is written
    rows = table.column("evidence").to_pylist()
    released = [[each for each in row or () if each["sample_id"] in samples] for row in rows]
    lost = sum(len(row or ()) - len(own) for row, own in zip(rows, released, strict=True))
    if not lost:
        return checks, 0
    index = table.column_names.index("evidence")
    field = table.schema.field(index)
    return Dataset(table.set_column(index, field, pa.array(released, field.type))), lost


def _number_raters(ranks: Dataset) -> Dataset:
    """Put numbers in place of the pseudonyms of those who ranked."""
    table = arrow_rows(ranks)
    names = table["rater"].to_pylist()
    # Not in the order of the alphabet, which would say something of the names.
    order = sorted({*names}, key=lambda name: sha256(str(name).encode()).digest())
    numbers = {name: f"person {number}" for number, name in enumerate(order, 1)}
    column = pa.array([numbers[name] for name in names], pa.string())
    table = table.set_column(table.column_names.index("rater"), "rater", column)
    # Rows in the order of the pseudonyms would say it all the same.
    return Dataset(table.sort_by([(name, "ascending") for name in HUMAN.key]))


def _add_splits(ratings: Dataset, splits: Mapping[str, str]) -> Dataset:
    """Set the splits that the samples have in this release."""
    table = arrow_rows(ratings)
    names = pa.array([splits.get(name) for name in table[SAMPLE_COLUMN].to_pylist()], pa.string())
    if SPLIT_COLUMN in table.column_names:
        return Dataset(
            table.set_column(table.column_names.index(SPLIT_COLUMN), SPLIT_COLUMN, names)
        )
    return Dataset(table.append_column(SPLIT_COLUMN, names))


def _read_table(path: Path) -> Dataset:
    try:
        rows = read_parquet(path)
        table = TABLES.get(path.stem) if path.parent.name != CARRIED_FOLDER else None
        if table is not None and is_wide(table, rows.column_names):
            long_rows = [*lengthen_rows(rows.to_pylist())]
            rows = pa.Table.from_pylist(long_rows, table.features.arrow_schema)
        elif table is not None:
            rows = fill_draws(rows, table)
        return Dataset(rows, fingerprint=path.stem)
    except (OSError, pa.ArrowException) as error:
        message = " ".join(str(error).split())
        raise RunError(
            f"cannot read {str(path)!r} ({message}): make it again, or move it away to release "
            "without it"
        ) from None


def find_left_out_reasons(
    rows: pa.Table, digests: Mapping[str, str | None]
) -> tuple[LeftOut | None, ...]:
    """Return why rows about samples do not count, null for those that do."""
    names = rows[SAMPLE_COLUMN].to_pylist()
    released = [digests.get(name) for name in names]
    judged = rows[DIGEST_COLUMN].to_pylist() if DIGEST_COLUMN in rows.column_names else released
    return tuple(
        LeftOut.NOT_RELEASED
        if name not in digests
        else LeftOut.OTHER_SAMPLE
        if digest != released_digest
        else None
        for name, digest, released_digest in zip(names, judged, released, strict=True)
    )


def clean_outputs(
    configs: Mapping[str, Dataset], images: ImageStore
) -> tuple[dict[str, Dataset], int]:
    """Remove the metadata of the images that systems drew."""
    drawn_digests = [
        digest
        for name in (OUTPUTS.name, CARRIED_OUTPUTS.name)
        for digest in (arrow_rows(configs[name])["image"].to_pylist() if name in configs else ())
    ]
    if not drawn_digests:
        return dict(configs), 0
    cleaned = {
        digest: clean_image(digest, images).sha256 for digest in sorted({*drawn_digests} - {None})
    }
    datasets = {}
    for config, rows in configs.items():
        table = arrow_rows(rows)
        for name in (name for name in OUTPUT_DIGEST_COLUMNS if name in rows.column_names):
            # What was judged is known by the digest that it had where there is no other.
            digests = [
                cleaned.get(digest, digest) or (None if name == "image" else digest)
                for digest in table[name].to_pylist()
            ]
            index = table.column_names.index(name)
            table = table.set_column(
                index, table.schema.field(index), pa.array(digests, pa.string())
            )
        datasets[config] = (
            Dataset(table) if {*OUTPUT_DIGEST_COLUMNS} & {*rows.column_names} else rows
        )
    return datasets, sum(digest is not None and cleaned[digest] is None for digest in drawn_digests)
