"""Write and read `analysis.json`: the same figures give the same bytes."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

from pydantic import ValidationError

from echo_hf.analysis.result import Analysis
from echo_hf.errors import RunError


def write_analysis(path: Path, analysis: Analysis) -> Path:
    """Writes an analysis; a killed process leaves the old file or the new, and so do two at once.

    Args:
        path: The file.
        analysis: What it is to hold.

    Returns:
        The file.
    """
    text = json.dumps(
        analysis.model_dump(mode="json"),
        indent=1,
        sort_keys=True,
        ensure_ascii=False,
        allow_nan=False,
    )
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}")  # `forget` knows this name
    try:
        partial.write_text(text + "\n", "utf-8")
        return partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def read_analysis(path: Path) -> Analysis | None:
    """Reads an analysis.

    Args:
        path: The file.

    Returns:
        The analysis, null when there is no such file.

    Raises:
        RunError: It cannot be read, or is of another version.
    """
    if not path.exists():
        return None
    try:
        return Analysis.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        said = " ".join(str(error).splitlines()[:2])
        raise RunError(f"cannot read {str(path)!r} ({said}): run `echo-hf analyze` again") from None
