"""Open a file of posts as text, packed or not, whatever bytes it holds."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TextIO


def opened(path: Path, errors: str = "backslashreplace") -> TextIO:
    """Opens a file of posts.

    Args:
        path: The file, packed where it is called `.gz`.
        errors: What becomes of a byte that is no UTF-8, as `open` has it.

    Returns:
        Its lines, which only a line feed ends. A byte that is no UTF-8 becomes, unless told
        otherwise, an escape that JSON does not know: it spoils its own line, which is rejected
        with the byte shown, and no other.

    Raises:
        OSError: It cannot be read; a packed one may also fail later.
    """
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", errors=errors, newline="\n")
    return path.open(encoding="utf-8-sig", errors=errors, newline="\n")
