"""`audit.json` of a run, and the flag that a failed audit leaves on a judge's figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from echo_hf._infra.atomic import write_json
from echo_hf.errors import RunError

AUDIT_FILE = "audit.json"
Failures = Mapping[str, tuple[str, ...]]


class _Audit(BaseModel):
    """The part of a judge's audit that scores read."""

    model_config = ConfigDict(extra="allow")

    failed: tuple[str, ...]


class _Audits(BaseModel):
    judges: dict[str, _Audit]


def read_audits(root: Path) -> dict[str, dict[str, Any]]:
    path = root / AUDIT_FILE
    if not path.exists():
        return {}
    try:
        found = _Audits.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        said = " ".join(str(error).split())[:200]
        raise RunError(
            f"{str(path)!r} is not an audit of judges ({said}): run `echo-hf audit` again, or "
            "move it "
            "away"
        ) from None
    return {name: one.model_dump(mode="json") for name, one in found.judges.items()}


def read_failures(root: Path) -> Failures:
    audits = sorted(read_audits(root).items())
    return {name: tuple(audit["failed"]) for name, audit in audits if audit["failed"]}


def write_audit(root: Path, judge: str, audit: Mapping[str, Any]) -> Path:
    """Writes the audit of a judge; those of other judges stay."""
    judges = {**read_audits(root), judge: audit}
    path = root / AUDIT_FILE
    write_json(path, {"judges": judges})
    return path


KEY = "failed_audit"


def flagged(
    definition: Mapping[str, Any], judges: Iterable[str], failed: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """A figure's definition, with the judges of the figure that failed their audits."""
    theirs = {judge: list(failed[judge]) for judge in judges if judge in failed}
    return {**definition, **({KEY: theirs} if theirs else {})}
