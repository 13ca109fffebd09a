"""What a config's command is on this machine, and what of it decides a picture on any."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from echo_hf.errors import GenerationError, unknown
from echo_hf.systems.secrecy import without_folders

SHIPPED = "worker:"
WORKERS = Path(__file__).resolve().parent.parent / "workers"
LARGEST_SCRIPT = 1024 * 1024
PYTHON = re.compile(r"^(?:python|pypy)[\d.]*$")


def resolved(command: Sequence[str], place: str) -> list[str]:
    """A command with the files of the workers that echo-hf brings.

    Args:
        command: The program and its arguments; `worker:NAME` stands for such a file.
        place: Where the command stands, for messages.

    Returns:
        The command as it is run.

    Raises:
        GenerationError: No worker has this name.
    """
    return [_shipped(one, place) if one.startswith(SHIPPED) else one for one in command]


def signed(command: Sequence[str], folder: Path) -> list[Any]:
    """What of a command decides a picture.

    Args:
        command: The program and its arguments, `worker:NAME` resolved.
        folder: Where it runs.

    Returns:
        The program's name without its folder, which differs from machine to machine, as does which
        Python it is; and the arguments, absolute paths without their folders. A digest of its
        content is in place of a script, so that an edited one is noticed.
    """
    program, *arguments = command
    name = Path(program).name
    is_python = PYTHON.match(name) is not None
    return ["python" if is_python else name, *(_signed(one, folder) for one in arguments)]


def portable(value: Any) -> Any:
    """What a config says, without the folders of one machine.

    Args:
        value: What JSON can hold.

    Returns:
        The same, with absolute paths cut down to their last names.

    Example:
        >>> portable({"weights": ["/data/mira/lumen.ckpt"], "steps": 30})
        {'weights': ['lumen.ckpt'], 'steps': 30}
    """
    if isinstance(value, Mapping):
        return {name: portable(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [portable(one) for one in value]
    return without_folders(value.rstrip("/")) if isinstance(value, str) else value


def check_command(command: Sequence[str], folder: Path, path: str | None, place: str) -> None:
    """Makes sure that a command can be started, without starting it.

    Args:
        command: The program and its arguments, `worker:NAME` resolved.
        folder: Where it runs.
        path: The folders in which programs are looked for.
        place: Where the command stands, for messages.

    Raises:
        GenerationError: The folder, the program or a script in Python is missing.
    """
    if not folder.is_dir():
        raise GenerationError(f"{place}: no folder {str(folder)!r}: set parameters.folder")
    program = command[0]
    # A name with a slash is looked for from the folder on; others are looked for in the path.
    found = folder / program if os.sep in program else shutil.which(program, path=path)
    if found is None or not Path(found).is_file() or not os.access(found, os.X_OK):
        raise GenerationError(
            f"{place}: no program {program!r}, as seen from {str(folder)!r}: make its environment "
            "or set parameters.command"
        )
    missing = next(_missing_scripts(command, folder), None)
    if missing is not None:
        raise GenerationError(
            f"{place}: no script {missing!r} in {str(folder)!r}: set parameters.folder or command"
        )


def _missing_scripts(command: Sequence[str], folder: Path) -> Iterator[str]:
    for argument in command[1:]:
        is_script = argument.endswith(".py") and not argument.startswith("-")
        if is_script and not (folder / argument).is_file():
            yield argument


def _shipped(argument: str, place: str) -> str:
    name = argument.removeprefix(SHIPPED)
    known = {path.stem: path for path in WORKERS.glob("[a-z]*.py")}
    if name not in known:
        raise GenerationError(unknown("worker", name, known, f"{place}: parameters.command"))
    return str(known[name])


def _signed(argument: str, folder: Path) -> Any:
    path = folder / argument
    try:
        if not path.is_file() or path.stat().st_size > LARGEST_SCRIPT:
            return portable(argument)
        return {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    except (OSError, ValueError):
        return portable(argument)
