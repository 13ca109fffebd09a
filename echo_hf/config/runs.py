"""Find the folders of runs, and tell which folders are runs."""

from __future__ import annotations

import json
import os
from importlib.resources import files
from pathlib import Path

import yaml

from echo_hf._infra.regular_file import read_regular
from echo_hf.config.checks import MAX_YAML_BYTES
from echo_hf.config.evaluation import EvaluationBase
from echo_hf.config.systems import find_config, shipped_configs
from echo_hf.errors import ConfigError

RUNS_VARIABLE = "ECHO_HF_RUNS"
RUNS_FOLDER = "runs"
CONFIG_FILE = "config.yaml"  # the one that a run has kept
ORIGIN_FILE = "origin.json"  # the file that it was read from
MAX_ORIGIN_BYTES = 1 << 20
RELEASE_FOLDER = "release"
# What a run of an older version has in place of that file.
OLD_RUN_FILES = ("stages", "answers.sqlite", "outputs.parquet", "ratings.parquet", "results.json")
EXAMPLE_CONFIG = "eval_configs/quickstart.yaml"


def find_runs_folder(config: EvaluationBase | None = None, runs: Path | str | None = None) -> Path:
    """Return the folder of runs: as named, else by the environment, else by the config.

    A config without a file, and one that echo-hf brings, have theirs in the working directory; the
    config that a run has kept stays in that run.
    """
    if runs is not None:
        return Path(runs)
    if config and (run := find_run_of_config(config)):
        return relative_to_cwd(run.parent)
    if folder := os.environ.get(RUNS_VARIABLE):
        return Path(folder)
    return configured_runs_folder(config) or Path(RUNS_FOLDER)


def configured_runs_folder(config: EvaluationBase | None) -> Path | None:
    if config is None:
        return None
    if config.runs:
        return relative_to_cwd(config.runs)
    return (
        relative_to_cwd(config.file.parent / RUNS_FOLDER)
        if config.file and not _is_shipped(config.file)
        else None
    )


def _is_shipped(file: Path) -> bool:
    folders = (Path(str(files("echo_hf"))), shipped_configs())
    return any(file.is_relative_to(folder.resolve()) for folder in folders)


def relative_to_cwd(path: Path) -> Path:
    """Return a path relative to the working directory where it lies below it."""
    cwd = Path.cwd()
    return path.relative_to(cwd) if path.is_relative_to(cwd) else path


def is_run(folder: Path) -> bool:
    """Return whether a folder is that of a run with its kept config."""
    config, exists = folder / CONFIG_FILE, os.path.exists  # no, of a folder closed to the user
    if not exists(config):
        return False
    return exists(folder / ORIGIN_FILE) or (
        any(exists(folder / name) for name in OLD_RUN_FILES) and _is_dumped(config)
    )


def _is_dumped(config: Path) -> bool:
    """Return whether a file was written by a run, and not by a person."""
    try:
        text = read_regular(config, max_bytes=MAX_YAML_BYTES).decode()
        return text == yaml.safe_dump(yaml.safe_load(text), sort_keys=False, allow_unicode=True)
    except (OSError, ValueError, yaml.YAMLError, RecursionError):
        return False


def find_kept_run(path: Path) -> Path | None:
    """Return the run folder that has kept this file as its config; null for a user's own."""
    return path.parent if path.name == CONFIG_FILE and is_run(path.parent) else None


def find_run_of_config(config: EvaluationBase) -> Path | None:
    """Return the run folder that holds this config; null for a user's own config."""
    return config.file and find_kept_run(config.file)


def read_origin(run: Path) -> Path | None:
    """Read from which file the config of a run is; null where that is unknown."""
    try:
        record = json.loads(read_regular(run / ORIGIN_FILE, max_bytes=MAX_ORIGIN_BYTES))
        place = Path(record["config"])
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        return None
    shipped = shipped_configs()
    start = shipped.parent if place.parts[:1] == (shipped.name,) else run
    return (start / place).resolve()


def find_config_file(place: Path | str) -> Path:
    """Find the file of a config: itself, or that of a run, by its folder or release."""
    path, text = find_config(Path(place)), str(place)
    if not path.is_dir():
        if not os.path.lexists(path):
            raise ConfigError(f"no config {text!r}: {_describe_expected()}")
        return path
    run = path.resolve()
    if run.name == RELEASE_FOLDER and is_run(run.parent):
        return (
            path.parent / CONFIG_FILE if path.name == RELEASE_FOLDER else run.parent / CONFIG_FILE
        )
    if not is_run(run):
        raise ConfigError(f"{text!r} is no run: {_describe_expected()}")
    return path / CONFIG_FILE


def _describe_expected() -> str:
    return (
        f"expected a YAML file, for example {EXAMPLE_CONFIG}, or the folder of a run or of its "
        "release"
    )


def find_release(folder: Path) -> Path:
    """Return the release that a folder is, or that its run has."""
    return folder / RELEASE_FOLDER if is_run(folder) else folder
