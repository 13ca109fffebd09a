"""Whether other processes have ended, which those that are nobody's child cannot be asked."""

from __future__ import annotations

import os
import select

LONGEST_S = 30


def ended(held: int) -> bool:
    """Whether a process ends within the longest time.

    Args:
        held: What `os.pidfd_open` gave for it.
    """
    ready, _, _ = select.select([held], [], [], LONGEST_S)
    os.close(held)
    return bool(ready)
