"""An engine's check as JSON, for whoever compares engines."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

from echo_hf.check.check import CheckResult
from echo_hf.errors import ConfigError
from echo_hf.hub.manifest import toolkit_version


def as_json(result: CheckResult) -> dict[str, Any]:
    """The whole result as plain values, without a word of what people or engines wrote.

    Args:
        result: What was measured.

    Returns:
        A mapping that `json.dumps` takes.
    """
    return {
        "toolkit": toolkit_version(),
        "target": result.target,
        "posts": result.posts,
        "half": result.half,
        "gold": result.gold,
        "threads": result.threads,
        "stages": [
            {
                "stage": one.stage,
                "engine": one.describe["engine"],
                "digest": one.digest,
                "failed": dict(one.failed),
                "fill": dataclasses.asdict(one.fill),
                "measures": [measure.as_json() for measure in one.measures],
            }
            for one in result.stages
        ],
        "notes": list(result.notes),
    }


def check_target(path: Path | None) -> None:
    """Refuses a file that cannot be written, before anything is asked; it is left as it was.

    Args:
        path: Where the figures are to go, if anywhere.

    Raises:
        ConfigError: It is a folder, there is no folder for it, or it may not be written.
    """
    if path is None:
        return
    try:
        _try_to_write(Path(os.path.realpath(path)))
    except OSError as error:
        raise ConfigError(
            f"--json {str(path)!r} cannot be written ({error.strerror}): expected a file in a "
            "folder where you may write"
        ) from None


def write_json(path: Path, result: CheckResult) -> None:
    """Writes the whole result as JSON.

    Args:
        path: The file; one that is there is replaced.
        result: What was measured.
    """
    path.write_text(json.dumps(as_json(result), indent=1, ensure_ascii=False) + "\n", "utf-8")


def _try_to_write(target: Path) -> None:
    try:
        kind = target.stat().st_mode
    except FileNotFoundError:
        target.open("xb").close()
        target.unlink()
        return
    # Whoever reads from a pipe would take its opening and closing for the end of the figures.
    if stat.S_ISREG(kind) or stat.S_ISDIR(kind):
        target.open("ab").close()
    elif not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
