"""What a report is made of: a run's figures and tables, read once and never changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from echo_hf.analysis.result import FILE as ANALYSIS_FILE
from echo_hf.analysis.result import Analysis
from echo_hf.auditing.audit_file import read_audits
from echo_hf.benchmark import Benchmark
from echo_hf.config import Config
from echo_hf.config_sections import Target
from echo_hf.errors import ReleaseError, RunError
from echo_hf.evaluated import Evaluated, Evaluation
from echo_hf.evaluation import benchmark_of, load_evaluation
from echo_hf.hub.load import load_manifest
from echo_hf.hub.run_tables import RESULTS_FILE
from echo_hf.pictures import PictureStore
from echo_hf.report.agreement_file import AgreementFile
from echo_hf.report.results_file import Failed, Identity, Results, read_figures
from echo_hf.report.samples import Output, Rating, Sample, outputs_of, ratings_of, samples_of
from echo_hf.run_folder import RunFolder
from echo_hf.scoring.agree import AGREEMENT_FILE
from echo_hf.scoring.run_tables import read_run


@dataclass(frozen=True)
class RunData:
    """A run as its report shows it.

    Attributes:
        name: Name of the run.
        title: What it is about: the target, or where other systems are compared, the benchmark.
        target: The model that people talk about; null where the benchmark does not say.
        results: Its figures.
        stale: Whether the figures are of another state of the benchmark than the samples.
        agreement: How far its judges agree with people; null where nobody was asked.
        failures: For each judge that failed its audit, the honeypots that it failed on.
        analysis: What `echo-hf analyze` found; null where it has not run.
        samples: The samples, in the order of the benchmark.
        outputs: What became of each sample and system.
        ratings: All ratings of each sample.
        systems: All systems, the best first.
        pictures: Where the pictures lie.
        settings: Systems and judges as the config has them.
    """

    name: str
    title: str
    target: Target | None
    results: Results
    stale: bool
    agreement: AgreementFile | None
    failures: Failed
    analysis: Analysis | None
    samples: tuple[Sample, ...]
    outputs: Mapping[tuple[str, str], Output]
    ratings: Mapping[str, tuple[Rating, ...]]
    systems: tuple[str, ...]
    pictures: PictureStore
    settings: Mapping[str, Any]

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that have samples."""
        held = {sample.split for sample in self.samples}
        return tuple(name for name in self.results.details if name in held)

    def of_split(self, split: str) -> Iterator[Sample]:
        """The samples of a split."""
        return (sample for sample in self.samples if sample.split == split)

    @property
    def digests(self) -> tuple[str, ...]:
        """Every picture that the report shows, each once."""
        shown = dict[str, None]()
        for sample in self.samples:
            shown |= dict.fromkeys((*sample.inputs, *sample.posted))
        shown |= dict.fromkeys(one.picture for one in self.outputs.values() if one.picture)
        return tuple(shown)


def read_run_data(config: Evaluated | Path | str, runs: Path | str) -> RunData:
    """Reads what a run's folder holds.

    Args:
        config: The config, or the path of its file.
        runs: Folder of runs.

    Returns:
        All that a report shows.

    Raises:
        RunError: There are no figures yet, or a file cannot be read.
        EchoError: The config or the benchmark cannot be read.
    """
    config = config if isinstance(config, Evaluated) else load_evaluation(config)
    folder = RunFolder(Path(runs) / config.name)
    results = read_figures(folder.root / RESULTS_FILE, Results, "score")
    if results is None:
        raise RunError(
            f"there are no figures in {str(folder.root)!r}: run `echo-hf score` with this config "
            "first"
        )
    benchmark = benchmark_of(config, folder)
    tables = read_run(benchmark, folder)
    outputs, ratings = outputs_of(tables.outputs), ratings_of(tables.ratings)
    agreement = read_figures(folder.root / AGREEMENT_FILE, AgreementFile, "agree")
    identity = Identity.model_validate(benchmark.identity())
    samples = samples_of(benchmark, tables.tasks, folder.pictures)
    unscored = {sample.split for sample in samples} - set(results.details)
    known = results.benchmark.on_hub or results.benchmark.name or config.name
    return RunData(
        name=config.name,
        title=config.target.name if isinstance(config, Config) else known,
        target=_target(config, benchmark),
        results=results,
        stale=bool(unscored) or identity.digests != results.benchmark.digests,
        agreement=agreement,
        failures=failures_of(folder.root, results, agreement),
        analysis=read_figures(folder.root / ANALYSIS_FILE, Analysis, "analyze"),
        samples=samples,
        outputs=outputs,
        ratings=ratings,
        systems=systems_of(results, outputs),
        pictures=folder.pictures,
        settings=config.model_dump(mode="json", include={"systems", "judges", "applicability"}),
    )


def failures_of(root: Path, results: Results, agreement: AgreementFile | None) -> Failed:
    """The judges that failed their audits, by the last word on each of them.

    Args:
        root: The run's folder, which may hold audits that are newer than the figures.
        results: The figures.
        agreement: How far judges agree with people; null where nobody was asked.

    Returns:
        By judge the honeypots that it failed on.

    Raises:
        RunError: The audits cannot be read.
    """
    before = {**(agreement.failed_audit if agreement else {}), **results.failed_audit}
    now = {judge: tuple(audit["failed"]) for judge, audit in read_audits(root).items()}
    return {judge: failed for judge, failed in sorted({**before, **now}.items()) if failed}


def systems_of(results: Results, outputs: Mapping[tuple[str, str], Output]) -> tuple[str, ...]:
    """All systems, in the order of the first split that has win rates; the others by name.

    Args:
        results: The figures.
        outputs: What became of each sample and system.

    Returns:
        Their names.
    """
    boards = (results.rates(split) for split in results.details)
    ranked = [system for rates in boards if rates for system in rates.order]
    others = {system for _, system in outputs} | {row.system for row in results.results}
    return tuple(dict.fromkeys([*ranked, *sorted(others)]))


def _target(config: Evaluated, benchmark: Benchmark) -> Target | None:
    if isinstance(config, Config):
        return config.target
    if not isinstance(config, Evaluation):
        return None
    repo, at, revision = benchmark.reference.rpartition("@")
    on_hub = bool(at) and not Path(benchmark.reference).exists()
    try:
        if on_hub:
            return load_manifest(repo, revision=revision).target
        return load_manifest(benchmark.reference).target
    except ReleaseError:
        return None  # the dataset of ECHO's authors has no manifest


def spread(ratings: Sequence[Rating], rubric: str) -> float:
    """How far the ratings of a sample's outputs lie apart, as a mean over judges.

    Args:
        ratings: The ratings of a sample.
        rubric: The rubric that counts.

    Returns:
        Mean over judges of highest less lowest rating, on their own scales; 0 for none.
    """
    by_judge: dict[str, list[float]] = {}
    for one in ratings:
        if one.rubric == rubric and one.value is not None:
            by_judge.setdefault(one.judge, []).append(one.value)
    ranges = [max(some) - min(some) for some in by_judge.values()]
    return sum(ranges) / len(ranges) if ranges else 0.0
