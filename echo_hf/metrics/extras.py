"""What metrics stand on that is not always installed, and what it says where it fails."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from echo_hf.errors import MissingExtraError

LONGEST = 200


def check_extra(metric: str, extra: str, packages: Iterable[str]) -> None:
    """Says what to install where a package is missing; imports none.

    Args:
        metric: What needs them.
        extra: What installs them.
        packages: Their names, as they are imported.

    Raises:
        MissingExtraError: One of them is not installed.

    Example:
        >>> check_extra("color_shift", "none", ["numpy"])
    """
    if any(find_spec(name) is None for name in packages):
        raise MissingExtraError(metric, extra)


def said(error: Exception) -> str:
    r"""What went wrong in somebody else's code, in one line.

    Args:
        error: Of any library.

    Returns:
        Its kind and its words, at most 200 letters.

    Example:
        >>> said(ValueError("no such\n  file")), said(OSError())
        ('ValueError: no such file', 'OSError')
    """
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words}"[:LONGEST].rstrip(": ")
