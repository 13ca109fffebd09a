"""Find the run of a config, and warn of another one elsewhere."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from echo_hf.config.checks import read_yaml
from echo_hf.config.evaluation import EvaluationBase
from echo_hf.config.runs import (
    CONFIG_FILE,
    RUNS_FOLDER,
    configured_runs_folder,
    find_run_of_config,
    find_runs_folder,
    is_run,
    relative_to_cwd,
)
from echo_hf.errors import ConfigError, RunError
from echo_hf.pipeline.run_folder import RunFolder

logger = logging.getLogger(__name__)
# What a run is of; stages, engines and judges of one config may change.
IDENTITY_KEYS = ("target", "posts", "benchmark")


def open_run_folder(config: EvaluationBase, runs: Path | str | None = None) -> RunFolder:
    """Return the folder of a config's run; warns of one elsewhere if it does not exist.

    Raises:
        RunError: The run there is that of another config of the same name.
    """
    run = None if config.is_renamed else find_run_of_config(config)
    if run and (runs is None or Path(runs).resolve() == run.parent):
        return RunFolder(relative_to_cwd(run))
    folder = RunFolder(find_runs_folder(config, runs) / config.name)
    if (folder.root / CONFIG_FILE).exists():
        _check_same_config(config, folder)
    elif runs is None and (other := next(_find_other_runs(config, folder.root), None)):
        _warn_of_run(other)
    return folder


def _check_same_config(config: EvaluationBase, folder: RunFolder) -> None:
    kept, origin = folder.root / CONFIG_FILE, folder.made_from
    is_kept = config.file is not None and kept.exists() and config.file == kept.resolve()
    if is_kept and not is_run(folder.root):
        raise RunError(
            f"{str(folder.root)!r} is the folder of the config itself, and a run keeps its own "
            f"{CONFIG_FILE} there: name another folder with --runs"
        )
    if config.file is None or is_kept or origin is None or not origin.exists():
        return
    if origin == config.file or not (difference := _find_difference(kept, config)):
        return
    raise RunError(
        f"{str(folder.root)!r} is the run of {str(origin)!r}, and {str(config.file)!r} has the "
        f"same name {config.name!r} and other {difference}: give one of them another name, or name "
        "another folder with --runs"
    )


def _find_difference(kept: Path, config: EvaluationBase) -> str | None:
    """Return the key in which a kept config differs from a config; null where they agree."""
    try:
        data: Any = read_yaml(kept, "config", CONFIG_FILE)
        kept_config = type(config).model_validate(data)
    except (ConfigError, ValidationError):  # a comparison under the name of a build, or as good
        return "content"
    return next(
        (
            name
            for name in IDENTITY_KEYS
            if getattr(kept_config, name, None) != getattr(config, name, None)
        ),
        None,
    )


def _find_other_runs(config: EvaluationBase, root: Path) -> Iterator[Path]:
    """Yield other runs of this config, beside it and in the folders above the working one."""
    cwd = Path.cwd()
    own_runs = configured_runs_folder(config)
    folders = [own_runs] if own_runs else []
    for place in (*folders, *(folder / RUNS_FOLDER for folder in (cwd, *cwd.parents))):
        run = place / config.name
        is_other = run.resolve() != root.resolve()
        if is_other and is_run(run) and not _find_difference(run / CONFIG_FILE, config):
            yield run


@cache  # once: verbs are made of several
def _warn_of_run(run: Path) -> None:
    notice = f"a run of this config is in {run}: --runs {relative_to_cwd(run.parent)} uses it"
    handlers = (*logging.getLogger("echo_hf").handlers, *logging.getLogger().handlers)
    if all(isinstance(handler, logging.NullHandler) for handler in handlers):
        warnings.warn(notice, stacklevel=2)  # in Python, where nobody would hear of it
    else:
        logger.warning("%s", notice)
