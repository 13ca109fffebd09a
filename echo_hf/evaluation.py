"""Measure systems: the config that says which, and the benchmark that they are measured on."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import ValidationError

from echo_hf.benchmark import Benchmark
from echo_hf.config import Config, located, parse_config
from echo_hf.config_check import first_error, secrets_in, shown_value
from echo_hf.errors import ConfigError, RunError
from echo_hf.evaluated import Evaluated, Evaluation
from echo_hf.judging.config_files import with_files
from echo_hf.run_folder import RunFolder
from echo_hf.systems.config_files import config_place
from echo_hf.yaml_file import read_yaml

BENCHMARK = "benchmark"
POSTS = "posts"
EXAMPLE = "eval_configs/quickstart.yaml"
ON_HUB = re.compile(r"\w[\w.-]*/\w[\w.-]*(@[\w./-]*)?")


def load_evaluation(path: Path | str) -> Config | Evaluation:
    """Reads a config that says which systems are measured.

    Args:
        path: A YAML file, with `posts` for a benchmark of one's own, or with `benchmark` for one
            that is there already. `eval_configs/...` that is not there is the one that echo-hf
            brings.

    Returns:
        The config, its paths made absolute.

    Raises:
        ConfigError: It is missing, is not YAML, or holds an unknown key or a bad value.
    """
    path = config_place(Path(path))
    data = read_yaml(path, "config", EXAMPLE)
    folder = path.resolve().parent
    data = with_files(data, folder)
    if isinstance(data, dict) and not {BENCHMARK, POSTS} & data.keys():
        raise ConfigError(
            f"{path}: has neither benchmark nor posts: expected one that is there already "
            "(benchmark: ORGANISATION/NAME@TAG), or posts to build one from"
        )
    if not isinstance(data, dict) or BENCHMARK not in data:
        return located(parse_config(data, str(path)), folder)
    if POSTS in data:
        raise ConfigError(
            f"{path}: has both benchmark and posts: expected a benchmark that is there already, or "
            "posts to build one from"
        )
    try:
        return _located(Evaluation.model_validate(data), folder)
    except ValidationError as error:
        raise ConfigError(first_error(error, str(path), Evaluation)) from None


def benchmark_of(config: Evaluated, folder: RunFolder) -> Benchmark:
    """The benchmark that the systems of a config are measured on.

    Args:
        config: The config.
        folder: The run's folder, which holds the release of a config with posts.

    Returns:
        The benchmark; nothing of it is read yet.

    Raises:
        RunError: The benchmark of a config with posts was not built, or the folder is another
            config's.
    """
    if isinstance(config, Evaluation):
        if (folder.root / "stages").exists():
            raise RunError(
                f"{str(folder.root)!r} holds a benchmark that was built under the same name: give "
                "this config another name"
            )
        return Benchmark(config.benchmark, cache=folder.cache)
    if not folder.release.exists():
        raise RunError(
            f"there is no benchmark in {str(folder.release)!r}: run `echo-hf build` first, or name "
            "one that is there already (benchmark: ORGANISATION/NAME@TAG)"
        )
    return Benchmark(str(folder.release), cache=folder.cache)


def evaluation_folder(config: Evaluated, runs: Path | str) -> RunFolder:
    """The folder of the run that measures a config's systems.

    Args:
        config: The config.
        runs: Folder of runs.

    Returns:
        The folder; that of a benchmark which is there already is made, and the config written
        down in it.

    Raises:
        RunError: The folder is another config's.
    """
    folder = RunFolder(Path(runs) / config.name)
    if isinstance(config, Evaluation):
        folder.root.mkdir(parents=True, exist_ok=True)
        benchmark_of(config, folder)
        folder.save_config(config)
    return folder


def _located(config: Evaluation, folder: Path) -> Evaluation:
    own = folder / config.benchmark
    benchmark = str(own) if own.exists() else config.benchmark
    if not own.exists() and not ON_HUB.fullmatch(benchmark):
        secret = next(secrets_in({BENCHMARK: benchmark}), None)
        given = secret or f"benchmark is {shown_value(benchmark)}"
        raise ConfigError(
            f"{given}: there is no such folder beside the config, and it is no name on the Hub: "
            "expected the folder of a release, or ORGANISATION/NAME@TAG"
        )
    metrics, analysis = config.metrics.located(folder), config.analysis.located(folder)
    return config.model_copy(
        update={"benchmark": benchmark, "metrics": metrics, "analysis": analysis}
    )
