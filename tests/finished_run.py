"""A run that an earlier version finished, which later versions must go on with.

One server on loopback was the platform, the models and an image system. The archive is not made
anew when the code changes: that is its use.
"""

from __future__ import annotations

from pathlib import Path

ARCHIVE = Path(__file__).parent / "data" / "finished_run.tar.xz"
NAME = "harbour"
GONE = "10103"  # the post that the platform no longer had when the run was refreshed
