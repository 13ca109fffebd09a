"""The run of an evaluation, which is opened once: what its verbs read, and where they write."""

from __future__ import annotations

import copy
import shutil
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from tempfile import mkdtemp
from typing import TypeAlias, Union
from weakref import finalize

import pyarrow as pa
import pyarrow.compute as pc

from echo_hf.config.evaluation import EvaluationBase, EvaluationConfig
from echo_hf.config.rubrics import OVERALL
from echo_hf.errors import ConfigError, RunError, ScoreError, unknown
from echo_hf.hub.sealed import SEALED_FOLDER, SealedSamples
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.pipeline.runs import open_run_folder
from echo_hf.scores.votes import PROTOCOLS
from echo_hf.systems.benchmark import (
    Benchmark,
    BenchmarkTasks,
    FileStates,
    load_evaluation,
    read_states,
)
from echo_hf.systems.carried import gather_carried, open_carried, write_carried
from echo_hf.systems.checks import Check, add_checks, read_checks, read_own_checks
from echo_hf.systems.run_tables import (
    SCORED_TABLES,
    ApplicabilitySource,
    RunTables,
    read_applicability,
    read_run,
    read_table,
)
from echo_hf.tables import CHECKS, OUTPUTS


class EvaluationRun:
    """The run of systems and judges over a benchmark: config, folder, benchmark and tables.

    Every verb of an evaluation takes one in place of a config. The benchmark is opened and hashed
    once for each state of its files, and the tables are read again where a verb wrote them.

    Args:
        config: What systems, judges and benchmark are.
        folder: The folder of the run.
        part: Names a part of a run, which has samples of its own, in plans and notices.
        carried_from: Tag or name of the release that the part's samples are carried along from;
            null for others.
        notices: What `generate` says of a part.
        rubrics: Rubrics that judges are asked for at most; null for all of theirs.

    Examples:
        Generate, judge and score without opening the benchmark three times:

        >>> from echo_hf.judging.judge import judge
        >>> from echo_hf.judging.score import score
        >>> from echo_hf.systems.generate import generate
        >>> run = EvaluationRun.from_config("comparison.yaml")  # doctest: +SKIP
        >>> generate(run), judge(run)  # doctest: +SKIP
        >>> score(run).path  # doctest: +SKIP
    """

    def __init__(
        self,
        config: EvaluationBase,
        folder: RunFolder,
        *,
        part: str = "",
        carried_from: str | None = None,
        notices: tuple[str, ...] = (),
        rubrics: tuple[str, ...] | None = None,
    ) -> None:
        self.config, self.folder = config, folder
        self.part, self.carried_from = part, carried_from
        self.notices, self.rubrics = notices, rubrics
        self._tables: tuple[FileStates, RunTables] | None = None
        self._parts: tuple[Path, tuple[EvaluationRun, ...]] | None = None
        self._sealed: EvaluationRun | None = None
        self._origin: EvaluationRun | None = None  # keeps its folder aside

    @classmethod
    def from_config(
        cls, config: RunOrConfig, runs: Path | str | None = None, *, protocol: str | None = None
    ) -> EvaluationRun:
        """Open the run of a config; nothing is written.

        Args:
            config: The config, its file, the folder of its run, or a run that is open already.
            runs: Folder of runs; null for ECHO_HF_RUNS, the config's `runs`, or `runs` beside its
                file.
            protocol: Another protocol than the config's.

        Raises:
            ConfigError: The config cannot be used, or a run is open in another folder of runs.
            RunError: The folder is that of another config.
            ScoreError: There is no such protocol.
        """
        if isinstance(config, EvaluationRun):
            run = config
            if runs is not None and Path(runs).resolve() != run.folder.root.resolve().parent:
                raise ConfigError(
                    f"runs is {str(runs)!r}, and the run is open in {str(run.folder.root)!r}: "
                    "leave it out, or open the run there"
                )
        else:
            loaded = load_evaluation(config)
            run = cls(loaded, open_run_folder(loaded, runs))
        if protocol is None or protocol == run.config.protocol:
            return run
        if protocol not in PROTOCOLS:
            raise ScoreError(unknown("protocol", protocol, PROTOCOLS))
        _ = run.benchmark  # is shared
        other = copy.copy(run)
        other.config, other._origin = run.config.model_copy(update={"protocol": protocol}), run
        other._parts = other._sealed = None
        return other

    @cached_property
    def benchmark(self) -> Benchmark:
        """The benchmark that the config names, or the release that was built in the folder."""
        root, release = self.folder.root, self.folder.release
        if self.part:
            is_sealed = self.part == SEALED_FOLDER
            return Benchmark(str(release), cache=self.folder.cache, is_sealed=is_sealed)
        if isinstance(self.config, EvaluationConfig):
            if (root / "stages").exists():
                raise RunError(
                    f"{str(root)!r} holds a benchmark that was built under the same name: give "
                    "this config another name"
                )
            return Benchmark(self.config.benchmark, cache=self.place.cache)
        if not release.exists():
            raise RunError(
                f"there is no benchmark in {str(release)!r}: run `echo-hf build` first, or name "
                "one that is there already (benchmark: ORGANISATION/NAME@TAG)"
            )
        return Benchmark(str(release), cache=self.place.cache)

    @property
    def place(self) -> RunFolder:
        """The folder to read with: the run's own, or one aside until it exists."""
        return self.folder if self.folder.root.exists() else self._aside

    @cached_property
    def _aside(self) -> RunFolder:
        path = mkdtemp(prefix="echo-hf-")
        finalize(self, shutil.rmtree, path, ignore_errors=True)
        return RunFolder(Path(path))

    def prepare(self) -> RunFolder:
        """Make the folder, and keep the config in it unless a build did."""
        if isinstance(self.config, EvaluationConfig) and not self.part:
            benchmark = self.benchmark  # refused before the folder is made
            self.folder.root.mkdir(parents=True, exist_ok=True)
            self.benchmark = replace(benchmark, cache=self.folder.cache)
            self.folder.save_config(self.config)
        return self.folder

    @property
    def parts(self) -> tuple[EvaluationRun, ...]:
        """The runs beside this one, over samples in folders of their own.

        They are the older releases that the config carries along, whose samples are drawn here
        when they are first asked for, and the sealed samples.
        """
        return (*self._carried_parts, *filter(None, [self.sealed]))

    @property
    def sealed(self) -> EvaluationRun | None:
        """The run over the sealed samples, which shares nothing with this one; null without any."""
        sealed = SealedSamples(self.folder)
        if self.part or not sealed.has_release:
            return None
        if self._sealed is None:
            self._sealed = EvaluationRun(
                self.config, sealed.folder, part=SEALED_FOLDER, rubrics=(OVERALL,)
            )
        return self._sealed

    def read_revealed(self, tasks: BenchmarkTasks) -> pa.Table | None:
        """Read what was drawn of samples while they were sealed, and take over its images."""
        place = SealedSamples(self.folder).folder
        if self.part or (outputs := read_table(place.root, OUTPUTS)) is None:
            return None
        ids = pa.array([task.sample_id for task in tasks.tasks], pa.string())
        outputs = outputs.filter(pc.is_in(outputs["sample_id"], ids))
        for digest in outputs["image"].drop_null().to_pylist():
            self.folder.images.take(place.images, digest)
        return outputs

    @property
    def _carried_parts(self) -> tuple[EvaluationRun, ...]:
        if self.part or not self.config.carry:
            return ()
        place = self.place
        if self._parts is None or self._parts[0] != place.root:
            carried = open_carried(place, self.config, self.benchmark)
            self._parts = (
                place.root,
                tuple(
                    EvaluationRun(
                        self.config,
                        each.folder,
                        part=each.name,
                        carried_from=each.draw.release,
                        notices=each.notices,
                        rubrics=(OVERALL,),
                    )
                    for each in carried
                ),
            )
        return self._parts[1]

    def write_carried(self) -> None:
        """Write what judges and systems made of carried samples into tables of the run."""
        parts = [(part.carried_from, part) for part in self.parts]
        gathered = [
            gather_carried(release, part.folder, part.read_tables())
            for release, part in parts
            if release
        ]
        write_carried(self.folder.root, gathered)

    def read_tasks(self, limit: int | None = None) -> BenchmarkTasks:
        """Read the tasks of the benchmark, the first `limit` samples of each split if it is given.

        Their input images are stored in `place`.
        """
        return self.benchmark.tasks(self.place.images, limit)

    def read_outputs(self) -> pa.Table:
        """Read the outputs of the systems."""
        if (outputs := read_table(self.folder.root, OUTPUTS)) is None:
            raise RunError(
                f"there are no outputs in {str(self.folder.root)!r}: run `echo-hf generate` first, "
                "or put outputs.parquet there"
            )
        return outputs

    def read_applicability(self) -> tuple[pa.Table | None, ApplicabilitySource | None]:
        """Read which metrics fit which sample, and where that is from."""
        return read_applicability(self.benchmark, self.folder)

    def read_checks(self) -> tuple[Check, ...]:
        """Read the checks that complaints became, in all versions."""
        own = read_own_checks(self.folder.root)  # there also after posts were forgotten
        return read_checks(self.benchmark, self.folder) if own is None else own

    @property
    def asked_config(self) -> EvaluationBase:
        """The config with the kept checks among the rubrics of the judges that answer them."""
        return add_checks(self.config, self.read_checks())

    def read_tables(self, human: pa.Table | None = None) -> RunTables:
        """Read the rows that count, with the given ranks by people instead of the run's own."""
        rubrics = [rubric.name for rubric in self.asked_config.rubrics]
        if human is not None:
            return read_run(self.benchmark, self.folder, rubrics, human)
        tables = (*SCORED_TABLES, CHECKS)
        files = (self.folder.root / f"{table.name}.parquet" for table in tables)
        state = self.benchmark.read_state() + read_states(files)
        if self._tables is None or self._tables[0] != state:
            self._tables = state, read_run(self.benchmark, self.folder, rubrics)
        return self._tables[1]


RunOrConfig: TypeAlias = Union[EvaluationRun, EvaluationBase, Path, str]  # noqa: UP007
