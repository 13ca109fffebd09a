"""The run of a config, and no other one unsaid."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from echo_hf.config.checks import read_yaml
from echo_hf.config.evaluation import Evaluated
from echo_hf.config.runs import CONFIG, RUNS, is_run, keeper, runs_folder, runs_of, shown
from echo_hf.errors import ConfigError, RunError
from echo_hf.pipeline.run_folder import RunFolder

logger = logging.getLogger(__name__)
# What a run is of; stages, engines and judges of one config may change.
MATTER = ("target", "posts", "benchmark")


def run_folder(config: Evaluated, runs: Path | str | None = None) -> RunFolder:
    """The folder of a config's run; of a run that is not there, one elsewhere is told of.

    Raises:
        RunError: The run there is that of another config of the same name.
    """
    run = None if config.is_renamed else keeper(config)
    if run and (runs is None or Path(runs).resolve() == run.parent):
        return RunFolder(shown(run))
    folder = RunFolder(runs_folder(config, runs) / config.name)
    if (folder.root / CONFIG).exists():
        _check_own(config, folder)
    elif runs is None and (other := next(_elsewhere(config, folder.root), None)):
        _tell(other)
    return folder


def _check_own(config: Evaluated, folder: RunFolder) -> None:
    kept, other = folder.root / CONFIG, folder.made_from
    is_kept = config.file is not None and kept.exists() and config.file == kept.resolve()
    if is_kept and not is_run(folder.root):
        raise RunError(
            f"{str(folder.root)!r} is the folder of the config itself, and a run keeps its own "
            f"{CONFIG} there: name another folder with --runs"
        )
    if config.file is None or is_kept or other is None or not other.exists():
        return
    if other == config.file or not (differing := _differing(kept, config)):
        return
    raise RunError(
        f"{str(folder.root)!r} is the run of {str(other)!r}, and {str(config.file)!r} has the same "
        f"name {config.name!r} and other {differing}: give one of them another name, or name "
        "another folder with --runs"
    )


def _differing(kept: Path, config: Evaluated) -> str | None:
    """Names the matter in which a kept config and a config differ; null where they agree."""
    try:
        data: Any = read_yaml(kept, "config", CONFIG)
        theirs = type(config).model_validate(data)
    except (ConfigError, ValidationError):  # a comparison under the name of a build, or as good
        return "content"
    return next(
        (name for name in MATTER if getattr(theirs, name, None) != getattr(config, name, None)),
        None,
    )


def _elsewhere(config: Evaluated, root: Path) -> Iterator[Path]:
    """Runs of this config where it, the working directory or a folder above could have one."""
    here = Path.cwd()
    beside = runs_of(config)
    own = [beside] if beside else []
    for place in (*own, *(folder / RUNS for folder in (here, *here.parents))):
        run = place / config.name
        is_other = run.resolve() != root.resolve()
        if is_other and is_run(run) and not _differing(run / CONFIG, config):
            yield run


@cache  # once: verbs are made of several
def _tell(run: Path) -> None:
    notice = f"a run of this config is in {run}: --runs {shown(run.parent)} uses it"
    handlers = (*logging.getLogger("echo_hf").handlers, *logging.getLogger().handlers)
    if all(isinstance(handler, logging.NullHandler) for handler in handlers):
        warnings.warn(notice, stacklevel=2)  # in Python, where nobody would hear of it
    else:
        logger.warning("%s", notice)
