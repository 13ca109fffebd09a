"""Who may draw with a system: one process at a time, and none while samples are forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from echo_hf.errors import RunError
from echo_hf.file_lock import held
from echo_hf.systems.journal import FOLDER, SUFFIX


@contextmanager
def locked(root: Path, system: str) -> Iterator[None]:
    """Keeps other processes from drawing with the same system in the same run.

    Args:
        root: The run's folder.
        system: Name of the system.

    Raises:
        RunError: Another one does.
    """
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    busy = RunError(
        f"another process is at work on the outputs of {system!r} in {str(root)!r}: wait for "
        "it, or choose other systems with --systems"
    )
    with held(root / FOLDER / f".{system}.lock", busy):
        yield


@contextmanager
def locked_all(root: Path, systems: Iterable[str] = ()) -> Iterator[None]:
    """Keeps every process from drawing in a run.

    Args:
        root: The run's folder.
        systems: Names of systems that may have drawn nothing yet, beside those that have.

    Raises:
        RunError: One does.
    """
    drawn = (path.name.removesuffix(SUFFIX) for path in (root / FOLDER).glob(f"*{SUFFIX}"))
    with ExitStack() as stack:
        for system in sorted({*drawn, *systems}):
            stack.enter_context(locked(root, system))
        yield
