"""Where the runs of a config lie, and which folders are runs."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from echo_hf.config.evaluation import Evaluated
from echo_hf.config.systems import shipped_configs

VARIABLE = "ECHO_HF_RUNS"
RUNS = "runs"
CONFIG = "config.yaml"  # the one that a run has kept
ORIGIN = "origin.json"  # the file that it was read from


def runs_folder(config: Evaluated | None = None, runs: Path | str | None = None) -> Path:
    """The folder of runs that is named, else that of the environment, else that of a config.

    A config without a file, and one that echo-hf brings, have theirs in the working directory; the
    config that a run has kept stays in that run.
    """
    if runs is not None:
        return Path(runs)
    file = config.file if config else None
    if file and file.name == CONFIG and is_run(file.parent):
        return shown(file.parent.parent)
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
    ours = (ORIGIN, "stages", "answers.sqlite")  # the first was not written by older versions
    return (folder / CONFIG).exists() and any((folder / name).exists() for name in ours)
