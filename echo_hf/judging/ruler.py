"""All systems of several releases on one scale (`echo-hf ruler`)."""

from __future__ import annotations

import datetime
import logging
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset

from echo_hf._infra.atomic import find_complete, write_json
from echo_hf.config.loading import Config
from echo_hf.config.runs import find_release, is_run
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import EchoError, HubError, ReleaseError, RunError
from echo_hf.hub.manifest import MANIFEST
from echo_hf.hub.ruler import MIN_SYSTEMS, RatedRelease, join_ratings, measure_splits, sort_by_age
from echo_hf.hub.run_tables import MAX_RESULTS_BYTES, released_models
from echo_hf.judging.figures import FigureModel, read_figures
from echo_hf.scores import carry_plan
from echo_hf.scores.ruler import Ruler
from echo_hf.systems.benchmark import ON_HUB, Benchmark
from echo_hf.systems.evaluation_run import EvaluationRun
from echo_hf.systems.run_tables import read_models
from echo_hf.tables import CARRIED_RATINGS, OUTPUTS, RATINGS

logger = logging.getLogger(__name__)
RULER_FILE = "ruler.json"


class RulerRelease(FigureModel):
    """A release on the scale, and the day on which the model came out that it is about."""

    name: str
    released: datetime.date | None = None


class SavedRuler(FigureModel):
    """One scale for each split, over releases from the oldest to the newest."""

    releases: tuple[RulerRelease, ...]
    splits: Mapping[str, Ruler]
    unread: tuple[str, ...] = ()  # why carried releases could not be read themselves
    places: tuple[str, ...] = ()  # beside the run, to measure again


def read_ruler(root: Path) -> SavedRuler | None:
    """Read the scale that a run's folder holds; null where there is none."""
    path = root / RULER_FILE
    if path.exists() and not (path.is_file() and path.stat().st_size < MAX_RESULTS_BYTES):
        raise RunError(f"{str(path)!r} is no file of a scale: run `echo-hf ruler` again")
    saved = read_figures(path, SavedRuler, "ruler")
    for scale in saved.splits.values() if saved else ():
        names = {*scale.strength}
        rows = (scale.interval, scale.how, scale.first, scale.differences)
        pairs = all({*row} == names - {name} for name, row in scale.differences.items())
        if any({*row} != names for row in rows) or not pairs:
            raise RunError(f"{str(path)!r} is damaged: run `echo-hf ruler` again")
    return saved


def measure_ruler(
    places: Sequence[str | EvaluationRun], *, at: str | None = None, runs: Path | str | None = None
) -> SavedRuler:
    """Put all systems that were ever rated in runs and releases on one scale, for each split.

    The releases that a run carries samples of are read with it. The scale is written into the
    folder of the first place where that is a run.

    Raises:
        RunError: Nothing was rated there, or two places have one name.
    """
    releases, runs_named = dict[str, RatedRelease](), list[EvaluationRun]()
    for place in places:
        if isinstance(place, EvaluationRun) or is_run_place(place):
            run = EvaluationRun.from_config(place, runs)
            runs_named.append(run)
            release = _read_run(run)
        else:
            release = _read_release(Benchmark(place))
        if release.name in releases:
            raise RunError(
                f"{place!r} is {release.name!r}, as another place that is named: name each once"
            )
        releases[release.name] = release
    unread = list[str]()
    for run in runs_named:
        for carried in run.config.carry:
            origin = Benchmark(carried.release, cache=run.folder.cache)
            try:
                release = _read_release(origin)
            except (ReleaseError, HubError) as error:  # what the run carries is there all the same
                unread.append(str(error))
            else:
                releases.setdefault(release.name, release)
    ordered = sort_by_age(releases.values())
    splits = measure_splits(ordered, BENCHMARKS, at)
    if not splits:
        raise RunError(
            f"no two systems were rated in {', '.join(map(repr, releases))}: expected runs with "
            "ratings (`echo-hf judge`), or releases that hold some"
        )
    described = tuple(RulerRelease(name=each.name, released=each.released) for each in ordered)
    beside = tuple(map(str, places[1:]))
    saved = SavedRuler(releases=described, splits=splits, unread=tuple(unread), places=beside)
    if runs_named and (places[0] is runs_named[0] or is_run_place(str(places[0]))):
        write_json(runs_named[0].folder.root / RULER_FILE, saved.model_dump(mode="json"))
    return saved


def update_ruler(run: EvaluationRun) -> None:
    """Measure the scale of a run again that carries samples or has one; else there is none."""
    path = run.folder.root / RULER_FILE
    previous = read_ruler(run.folder.root)
    if not (run.config.carry or previous):
        return
    path.unlink(missing_ok=True)  # it is of an older board
    for places in dict.fromkeys((previous.places if previous else (), ())):
        try:
            measure_ruler([run, *places])
            return
        except EchoError as error:
            logger.warning("no scale through releases: %s", error)


class PlannedCarry(FigureModel):
    """How many samples of a split to carry for a width of differences, and what that costs."""

    width: float
    samples: int
    available: int
    deviation: float
    cost_usd: float | None
    bridges: tuple[str, ...]

    @property
    def reachable(self) -> float:
        """Return the half width that all samples there are would give, or the wanted one."""
        return self.width * math.sqrt(max(1.0, self.samples / self.available))


def plan_carrying(
    place: str, width: float, *, runs: Path | str | None = None
) -> dict[str, PlannedCarry]:
    """Plan for each split how many samples of a run or release a successor has to carry.

    The cost is that of one new system: its outputs, and the ratings of these and of the outputs
    that are kept, by all judges, at what they cost so far.
    """
    run = EvaluationRun.from_config(place, runs) if is_run_place(place) else None
    release = _read_run(run) if run else _read_release(Benchmark(place))
    outputs = run.read_tables().outputs if run else Benchmark(place).table(OUTPUTS.name)
    plans = dict[str, PlannedCarry]()
    for split in BENCHMARKS:
        rows = join_ratings([release], split)
        if len({row["system"] for row in rows}) < MIN_SYSTEMS:
            continue
        plan = carry_plan(pa.Table.from_pylist(rows), width)
        systems, judges = ({row[kind] for row in rows} for kind in ("system", "judge"))
        image, rating = _mean_cost(outputs), _mean_cost(release.ratings)
        available = len({row["sample_id"] for row in rows})
        cost = None
        if image is not None and rating is not None:
            cost = min(plan.samples, available) * (
                image + rating * len(judges) * (len(systems) + 1)
            )
        plans[split] = PlannedCarry(
            width=width,
            samples=plan.samples,
            available=available,
            deviation=plan.deviation,
            cost_usd=cost,
            bridges=plan.bridges,
        )
    if not plans:
        raise RunError(f"no two systems were rated in {place!r}: `echo-hf judge` rates some")
    return plans


def _mean_cost(rows: pa.Table | None) -> float | None:
    if rows is None:
        return None
    mean: float | None = pc.mean(rows["cost_usd"]).as_py()
    return mean


def is_run_place(place: str) -> bool:
    """Return whether a place is a run, or the file that a run is made from."""
    path = Path(place)
    if (place and is_run(path)) or (path.suffix in (".yaml", ".yml") and path.is_file()):
        return True
    is_release = path.is_dir() and (find_complete(find_release(path)) / MANIFEST).exists()
    if (path.exists() and not is_release) or not (is_release or ON_HUB.fullmatch(place)):
        raise RunError(
            f"{place!r} is no run and no release: expected a run's folder or YAML file, the folder "
            "of a release, or ORGANISATION/NAME@TAG"
        )
    return False


def _read_run(run: EvaluationRun) -> RatedRelease:
    tables = run.read_tables()
    released = None
    if isinstance(run.config, Config):
        released = run.config.target.released
    else:
        with suppress(ReleaseError):  # the dataset of ECHO's authors has no manifest
            released = run.benchmark.read_manifest().target.released
    carried = [
        rated.append_column("release", pa.repeat(pa.scalar(part.carried_from), rated.num_rows))
        for part in run.parts
        if part.carried_from and (rated := _read_ratings(part)) is not None
    ]
    models = read_models(run.config, tables)
    return RatedRelease(
        run.config.name,
        released,
        _read_ratings(run),
        pa.concat_tables(carried) if carried else None,
        {"systems": models.systems, "judges": models.judges},
    )


def _read_ratings(run: EvaluationRun) -> pa.Table | None:
    """Read a run's ratings that count, with the splits of their samples."""
    if not (run.folder.root / f"{RATINGS.name}.parquet").exists():
        return None
    tables = run.read_tables()
    splits = {task.sample_id: name for name, tasks in tables.tasks.items() for task in tasks}
    if (ratings := tables.ratings) is None:
        return None
    names = [splits.get(sample) for sample in ratings["sample_id"].to_pylist()]
    column = ratings.column_names.index("split")
    return ratings.set_column(column, "split", pa.array(names, pa.string()))


def _read_release(benchmark: Benchmark) -> RatedRelease:
    manifest, results = benchmark.read_manifest(), benchmark.table("results")
    return RatedRelease(
        benchmark.label,
        manifest.target.released,
        benchmark.table(RATINGS.name),
        benchmark.table(CARRIED_RATINGS.name),
        released_models(None if results is None else Dataset(results)),
    )
