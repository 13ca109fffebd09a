"""Where the runs of a config lie, and which folders are runs."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from echo_hf.config.evaluation import Evaluated
from echo_hf.config.systems import config_place, shipped_configs
from echo_hf.errors import ConfigError

VARIABLE = "ECHO_HF_RUNS"
RUNS = "runs"
CONFIG = "config.yaml"  # the one that a run has kept
ORIGIN = "origin.json"  # the file that it was read from
RELEASE = "release"
# The first was not written by older versions.
OURS = (ORIGIN, "stages", "answers.sqlite", "outputs.parquet", "ratings.parquet", "results.json")
EXAMPLE = "eval_configs/quickstart.yaml"


def runs_folder(config: Evaluated | None = None, runs: Path | str | None = None) -> Path:
    """The folder of runs that is named, else that of the environment, else that of a config.

    A config without a file, and one that echo-hf brings, have theirs in the working directory; the
    config that a run has kept stays in that run.
    """
    if runs is not None:
        return Path(runs)
    if config and (run := keeper(config)):
        return shown(run.parent)
    if named := os.environ.get(VARIABLE):
        return Path(named)
    return runs_of(config) or Path(RUNS)


def runs_of(config: Evaluated | None) -> Path | None:
    if config is None:
        return None
    if config.runs:
        return shown(config.runs)
    return shown(config.file.parent / RUNS) if config.file and not _is_ours(config.file) else None


def _is_ours(file: Path) -> bool:
    ours = (Path(str(files("echo_hf"))), shipped_configs())
    return any(file.is_relative_to(folder.resolve()) for folder in ours)


def shown(path: Path) -> Path:
    """A place as people name it: from the working directory where it lies there."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def is_run(folder: Path) -> bool:
    """Whether a folder is that of a run, and its config the one that the run has kept."""
    return (folder / CONFIG).exists() and any((folder / name).exists() for name in OURS)


def keeper(config: Evaluated) -> Path | None:
    """The folder of the run that keeps this config; null for a config of somebody's own."""
    file = config.file
    return file.parent if file and file.name == CONFIG and is_run(file.parent) else None


def config_file(place: Path | str) -> Path:
    """The file of a config: itself, or what a run keeps, by its folder or its release."""
    path, given = config_place(Path(place)), str(place)
    if not path.is_dir():
        if not os.path.lexists(path):
            raise ConfigError(f"no config {given!r}: {_expected()}")
        return path
    run = path.resolve()
    if run.name == RELEASE and is_run(run.parent):
        return path.parent / CONFIG if path.name == RELEASE else run.parent / CONFIG
    if not is_run(run):
        raise ConfigError(f"{given!r} is no run: {_expected()}")
    return path / CONFIG


def _expected() -> str:
    return f"expected a YAML file, for example {EXAMPLE}, or the folder of a run or of its release"


def release_in(folder: Path) -> Path:
    """The release that a folder is, or that its run has."""
    return folder / RELEASE if is_run(folder) else folder
