"""Samples of older releases that a run carries along, each release in a folder of its own."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from datasets import Dataset
from pydantic import ValidationError

from echo_hf._infra.atomic import lock_file, replace_file, write_json
from echo_hf._infra.parquet import read_parquet
from echo_hf._infra.regular_file import read_regular
from echo_hf.collect.takedown import (
    ORIGINS_FILE,
    TOMBSTONES_FILE,
    Tombstones,
    read_tombstones,
    record_origins,
)
from echo_hf.config.checks import ANSWERED_BY, FOLDER_AND_TAG, ModelIdentity, Section
from echo_hf.config.evaluation import CarriedRelease, EvaluationBase
from echo_hf.config.systems import SystemConfig
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import ConfigError, ReleaseError, RunError
from echo_hf.hub.facts import CARRIED_CONFIGS, CARRIED_FOLDER, ReleaseFacts, get_table
from echo_hf.hub.manifest import NoManifestError
from echo_hf.hub.redistribution import iterate_post_urls, list_images
from echo_hf.hub.release import (
    find_table,
    iterate_rows,
    read_config_rows,
    read_release,
    read_release_facts,
    store_row_images,
    write_release,
)
from echo_hf.hub.run_tables import get_carried_path
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import Reason
from echo_hf.systems.benchmark import Benchmark
from echo_hf.systems.journal import KEPT_FILE, OUTPUTS_FILE, read_kept, write_outputs
from echo_hf.systems.run_tables import RunTables
from echo_hf.tables import DRAW, OUTPUTS, TABLES, Row, Table, arrow_rows, fill_draws

DRAW_FILE = "draw.json"
NAME_THEN = "system_then"  # the name in the older release, where kept outputs have another one now
NOTHING_FORGOTTEN = Tombstones()
MAX_SYSTEMS = 100
MAX_DRAW_BYTES, MAX_WAIT_SECONDS = 1 << 24, 600


class NotCarried(Reason):
    """Why a drawn sample of an older release is not carried along."""

    TAKEN_DOWN = "taken_down", "a post that it was made of is forgotten in this run"


class Draw(Section):
    """A draw of samples, as its folder keeps it; `systems` are those of the kept outputs."""

    release: str
    reference: str
    samples: int
    seed: int
    digests: Mapping[str, str]
    systems: tuple[str, ...] = ()
    left_out: Mapping[NotCarried, int] = {}


class CarriedPart(NamedTuple):
    """A release that is carried along: its draw, and the folder of its samples."""

    draw: Draw
    folder: RunFolder

    @property
    def name(self) -> str:
        has_tag = self.draw.reference.endswith(f"@{self.draw.release}")
        return f"carried from {self.draw.reference if has_tag else self.draw.release}"

    @property
    def notices(self) -> tuple[str, ...]:
        notices = [
            f"{count:,} samples left out ({self.name}), {reason}: {reason.meaning}"
            for reason, count in self.draw.left_out.items()
        ]
        if not self.draw.systems:
            notices.append(f"{self.name}: the release has no outputs, to set new systems beside")
        return (*notices,)


def list_carried(folder: RunFolder) -> list[CarriedPart]:
    """List all releases that a run carries along or once did, by folder."""
    parts = []
    for path in sorted((folder.root / CARRIED_FOLDER).glob(f"*/{DRAW_FILE}")):
        try:
            draw = Draw.model_validate_json(read_regular(path, max_bytes=MAX_DRAW_BYTES))
        except (OSError, ValidationError):
            raise RunError(
                f"{str(path)!r} does not say what was drawn: delete it to draw again"
            ) from None
        parts.append(CarriedPart(draw, RunFolder(path.parent, folder)))
    return parts


def open_carried(
    folder: RunFolder, config: EvaluationBase, benchmark: Benchmark
) -> list[CarriedPart]:
    """Open the releases that a config carries along; what is not drawn yet is drawn now.

    A draw stays as it is until its entry in the config changes, also where its release does.
    """
    busy = RunError(f"another process draws samples in {str(folder.root)!r}: wait for it")
    (folder.root / CARRIED_FOLDER).mkdir(parents=True, exist_ok=True)
    parts = dict[str, CarriedPart]()
    with lock_file(folder.root / CARRIED_FOLDER / ".lock", busy, MAX_WAIT_SECONDS):
        present = list_carried(folder)
        for carried in config.carry:
            entry = (carried.release, carried.samples, carried.seed)
            drawn = (
                part
                for part in present
                if (part.draw.reference, part.draw.samples, part.draw.seed) == entry
            )
            part = next(drawn, None)
            part = part or _open_origin(folder, carried, config.name, benchmark, present)
            if part.draw.release in parts:
                raise ConfigError(
                    f"carry has two releases {part.draw.release!r}: expected each tag once"
                )
            parts[part.draw.release] = part
            _name_kept(part, config.systems)
    return [*parts.values()]


def _name_kept(part: CarriedPart, systems: Iterable[SystemConfig]) -> None:
    """Give kept outputs `NAME (TAG)` for a name where the config's NAME is another model."""
    if not ((root := part.folder.root) / KEPT_FILE).exists():
        return
    table = read_parquet(root / KEPT_FILE)
    then = table[NAME_THEN if NAME_THEN in table.column_names else "system"]
    names, models = then.to_pylist(), dict[str, set[tuple[str | None, ...]]]()
    configured = {system.name: _identify(system.answered_by, system.adapter) for system in systems}
    for name, provenance in zip(names, table["provenance"].to_pylist(), strict=True):
        if name in configured:
            models.setdefault(name, set()).add(_read_identity(provenance))
    new_names = {name: name for name in names}
    for name, identities in models.items():
        while identities != {configured[name]} and new_names[name] in {*names, *configured}:
            new_names[name] += f" ({part.draw.release})"
    column = pa.array([new_names[name] for name in names], pa.string())
    if column.equals(table["system"].combine_chunks()) and (root / OUTPUTS_FILE).exists():
        return
    (root / OUTPUTS_FILE).unlink(missing_ok=True)  # made of other names
    kept = fill_draws(table, OUTPUTS).select(list(OUTPUTS.columns))
    kept = kept.set_column(kept.column_names.index("system"), "system", column)
    with replace_file(root / KEPT_FILE) as partial:
        pq.write_table(kept.append_column(NAME_THEN, then), partial)
    write_outputs(root)


def _identify(model: ModelIdentity, adapter: str | None) -> tuple[str | None, ...]:
    return (model.model, None) if model.model else (None, adapter)


def _read_identity(provenance: str | None) -> tuple[str | None, ...]:
    """Read the model that made an output, or else the adapter, from what its row says."""
    try:
        known = json.loads(provenance or "{}")
        settings = known.get("system") or {}
        stated = ModelIdentity.model_validate(known.get(ANSWERED_BY) or {})
        stated = stated if stated.model else ModelIdentity(model=settings.get("model"))
        return _identify(stated, settings.get("adapter"))
    except (AttributeError, ValueError, RecursionError):
        return (None, None)


def _open_origin(
    folder: RunFolder,
    carried: CarriedRelease,
    own_name: str,
    benchmark: Benchmark,
    present: Iterable[CarriedPart],
) -> CarriedPart:
    """Draw from a release, unless its folder has this very draw from before it was moved."""
    place, origin = "carry.release", Benchmark(carried.release, cache=folder.cache)
    _, mark, tag = carried.release.rpartition("@")
    is_folder = Path(carried.release).exists()
    if not is_folder and not (mark and FOLDER_AND_TAG.fullmatch(tag)):
        raise ConfigError(
            f"{place} is {carried.release!r}, which is no folder and names no tag: expected the "
            "folder of a release, or ORGANISATION/NAME@TAG"
        )
    try:
        manifest = origin.read_manifest()
    except ReleaseError as error:
        raise ConfigError(f"{place} is {carried.release!r}: {error}") from None
    release, own_names = origin.label, {own_name}
    with suppress(NoManifestError):
        own_names.add(benchmark.label)
    if release in own_names or origin.identity() == benchmark.identity():
        raise ConfigError(
            f"{place} is {carried.release!r}, the benchmark of this run: expected an older release"
        )
    digests = {name: entry.digest for name, entry in manifest.configs.items()}
    part_folder = RunFolder(folder.root / CARRIED_FOLDER / f"from-{release}", folder)
    draw = Draw(
        release=release,
        reference=carried.release,
        samples=carried.samples,
        seed=carried.seed,
        digests={name: digests[name] for name in BENCHMARKS if name in digests},
    )
    for part in present:
        if part.draw == draw.model_copy(
            update={name: getattr(part.draw, name) for name in ("reference", "systems", "left_out")}
        ):
            moved = part.draw.model_copy(update={"reference": carried.release})
            write_json(part.folder.root / DRAW_FILE, moved.model_dump(mode="json"))
            return CarriedPart(moved, part.folder)
    return CarriedPart(_draw_samples(origin, draw, folder, part_folder), part_folder)


def _draw_samples(origin: Benchmark, draw: Draw, folder: RunFolder, part: RunFolder) -> Draw:
    """Draw samples with their kept outputs; the note of the draw is written last."""
    manifest, tombstones = origin.read_manifest(), read_tombstones(folder.root / TOMBSTONES_FILE)
    configs, left_out = dict[str, Dataset](), Counter[NotCarried]()
    origins = list[pa.Table]()
    ids, splits = set[str](), [name for name in BENCHMARKS if name in manifest.configs]
    for split in splits:
        table, dataset = get_table(split, manifest.columns), origin.load(split)
        names = arrow_rows(dataset, ["id"])["id"].to_pylist()
        order = sorted(range(len(names)), key=lambda row: _random_key(draw.seed, names[row]))
        drawn = dataset.select(order[: draw.samples])
        kept = store_rows(drawn, table, folder.images, tombstones)
        left_out[NotCarried.TAKEN_DOWN] += len(drawn) - len(kept)
        ids |= {row["id"] for row in kept}
        urls = [[url for url in iterate_post_urls(row) if url] for row in kept]
        posts = pa.array(urls, pa.list_(pa.string()))
        names = pa.array([row["id"] for row in kept], pa.string())
        origins.append(pa.table({"id": names, "post_urls": posts}))
        configs[split] = Dataset(pa.Table.from_pylist(kept, table.features.arrow_schema))
    if not ids:
        raise ConfigError(
            f"carry.release is {draw.reference!r}, which has no sample of a benchmark split that "
            "can be carried along: expected an older release"
        )
    outputs = list[Row]()
    if OUTPUTS.name in manifest.configs:
        dataset = origin.load(OUTPUTS.name)
        numbers = choose_first_outputs(dataset, ids, draw.reference)
        outputs = store_rows(dataset.select(numbers), OUTPUTS, folder.images)
    part.root.mkdir(parents=True, exist_ok=True)
    (part.root / DRAW_FILE).unlink(missing_ok=True)
    record_origins(folder.root / ORIGINS_FILE, origins)  # for a takedown
    facts = ReleaseFacts(
        name=manifest.name,
        target=manifest.target,
        protocol=manifest.protocol,
        rules_built=manifest.rules_built,
        columns=manifest.columns,
        **vars(manifest.statements),
    )
    write_release(part.release, configs, folder.images, facts)
    (part.root / OUTPUTS_FILE).unlink(missing_ok=True)  # of another draw
    with replace_file(part.root / KEPT_FILE) as partial:
        pq.write_table(pa.Table.from_pylist(outputs, OUTPUTS.schema), partial)
    write_outputs(part.root)
    systems = tuple(sorted({row["system"] for row in outputs}))
    draw = draw.model_copy(update={"systems": systems, "left_out": dict(+left_out)})
    write_json(part.root / DRAW_FILE, draw.model_dump(mode="json"))
    return draw


def choose_first_outputs(dataset: Dataset, ids: Collection[str], reference: str) -> list[int]:
    """Choose each system's first output for samples, and refuse too many before any is read."""
    names = [name for name in ("sample_id", "system", DRAW) if name in dataset.column_names]
    rows = arrow_rows(dataset, names)
    if (count := len(rows["system"].unique())) > MAX_SYSTEMS:
        raise ReleaseError(
            f"release {reference!r} has outputs of {count:,} systems: expected {MAX_SYSTEMS} at "
            "most; name another release"
        )
    draws = rows[DRAW].to_pylist() if DRAW in names else [None] * len(rows)
    pairs = zip(rows["sample_id"].to_pylist(), rows["system"].to_pylist(), draws, strict=True)
    chosen = dict[tuple[str, str], int]()
    for number, (sample, system, draw) in enumerate(pairs):
        if sample not in ids or draw not in (None, 0):
            continue
        if chosen.setdefault((sample, system), number) != number:
            raise ReleaseError(
                f"release {reference!r} has several outputs of {str(system)[:80]!r} for "
                f"sample {str(sample)[:80]!r}: expected one of each; download it again"
            )
    return [*chosen.values()]


def _random_key(seed: int, sample_id: str) -> bytes:
    return hashlib.sha256(f"{seed}:{sample_id}".encode("utf-8", "surrogatepass")).digest()


def store_rows(
    dataset: Dataset, table: Table, images: ImageStore, tombstones: Tombstones = NOTHING_FORGOTTEN
) -> list[Row]:
    """Read the rows that name no forgotten post, and store the images of these alone."""
    columns = [name for name in table.columns if name in dataset.column_names]
    empty = dict[str, Any].fromkeys(table.columns)
    return [
        store_row_images({**empty, **row}, table, images)
        for row in iterate_rows(dataset, 1, columns)
        if not any(url in tombstones for url in iterate_post_urls(row) if url)
    ]


def gather_carried(release: str, folder: RunFolder, tables: RunTables) -> dict[str, list[Row]]:
    """Gather the rows of a carried release that count, by the configs of a new release."""
    splits = {task.sample_id: name for name, tasks in tables.tasks.items() for task in tasks}
    origin = read_release(folder.release)
    names = [name for name in BENCHMARKS if name in origin.manifest.configs]
    samples: list[Row] = [
        {**row, "sample_id": row["id"]} for name in names for row in read_config_rows(origin, name)
    ]
    beside = ([] if rows is None else rows.to_pylist() for rows in (tables.outputs, tables.ratings))
    return {
        config: [
            {**row, "release": release, "split": splits[row["sample_id"]]}
            for row in rows
            if row["sample_id"] in splits
        ]
        for config, rows in zip(CARRIED_CONFIGS, (samples, *beside), strict=True)
    }


def write_carried(root: Path, gathered: Sequence[Mapping[str, list[Row]]]) -> None:
    """Write the tables of all carried releases of a run; without any they are removed."""
    for config in CARRIED_CONFIGS:
        path, table = get_carried_path(root, config), TABLES[config]
        if not gathered:
            path.unlink(missing_ok=True)
            continue
        rows = pa.Table.from_pylist(
            [row for rows in gathered for row in rows[config]], table.schema
        )
        with replace_file(path) as partial:
            pq.write_table(rows.sort_by([(name, "ascending") for name in table.key]), partial)


def drop_carried_samples(folder: RunFolder, samples: Collection[str]) -> set[str]:
    """Remove samples from the releases and tables carried along; return the images they still have.

    What a killed draw has left is removed whole.
    """
    images = set[str]()
    for path in (folder.root / CARRIED_FOLDER).glob("*/"):
        if not (path / DRAW_FILE).exists():
            shutil.rmtree(path)
    for _, part in list_carried(folder):
        for stray in part.root.glob(".*"):
            (shutil.rmtree if stray.is_dir() else Path.unlink)(stray)
        release, datasets = read_release(part.release), dict[str, Dataset]()
        for name in release.manifest.configs:
            rows = [*read_config_rows(release, name, folder.images)]
            kept = [row for row in rows if row["id"] not in samples]
            images |= {digest for row in kept for digest in list_images(row)}
            schema = find_table(release, name).features.arrow_schema
            datasets[name] = Dataset(pa.Table.from_pylist(kept, schema))
        write_release(part.release, datasets, folder.images, read_release_facts(release))
        _drop_rows(part.root / KEPT_FILE, samples)
        images |= {digest for digest in read_kept(part.root)["image"].to_pylist() if digest}
    for config in CARRIED_CONFIGS:
        if (path := get_carried_path(folder.root, config)).exists():
            _drop_rows(path, samples)
    return images


def _drop_rows(path: Path, samples: Collection[str]) -> None:
    table = read_parquet(path)
    names = table["sample_id" if "sample_id" in table.column_names else "id"]
    about = pc.is_in(names, pa.array(sorted(samples), pa.string()))
    with replace_file(path) as partial:
        pq.write_table(table.filter(pc.invert(about)), partial)
