"""Prompt sets to compare with: fetched once from the Hub, and kept in the run by their digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from huggingface_hub import HfApi

from echo_hf._infra.atomic import write_json
from echo_hf.config.evaluation import Reference
from echo_hf.errors import HubError, SourceError, unknown
from echo_hf.hub.remote import KIND, Remote, hub_errors
from echo_hf.metrics.result import error_line
from echo_hf.report.analysis.prompts import PromptSet, prompt_set, read_reference, texts_of

FOLDER = "references"
# What decides which prompts a reference from the Hub holds.
FROM_HUB = ("dataset", "config", "split", "revision", "file", "format", "column", "draw")


def read_references(
    references: Sequence[Reference], root: Path, api: HfApi | None = None
) -> tuple[list[PromptSet], dict[str, str]]:
    """The sets of a config, and by name why one could not be fetched from the Hub.

    A set that is fetched and does not fit its entry stops the analysis, as a file's does.
    """
    sets, missing = list[PromptSet](), dict[str, str]()
    for one in references:
        if one.dataset is None:
            sets.append(read_reference(one))
            continue
        try:
            sets.append(_from_hub(one, root / FOLDER / f"{one.name}.json", api))
        except HubError as error:
            missing[one.name] = str(error)
    return sets, missing


def _from_hub(reference: Reference, kept: Path, api: HfApi | None) -> PromptSet:
    """A set as it was fetched first, by this run and with the same settings."""
    asked = reference.model_dump(mode="json", include=set(FROM_HUB))
    held = _held(kept) if kept.is_file() else {}
    is_kept = held.get("asked") == asked
    if not is_kept:
        commit, rows = _fetched(reference, api)
        held = {"asked": asked, "commit": commit, "sha256": _digest(rows), "rows": rows}
    if reference.sha256 not in (None, held["sha256"]):
        raise HubError(
            f"reference {reference.name!r}: its prompts have the sha256 {held['sha256']}, expected "
            "that of the config: name another revision, or take sha256 away"
        )
    if not is_kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_json(kept, held)
    source = {**asked, "commit": held["commit"], "sha256": held["sha256"]}
    return prompt_set(reference.name, held["rows"], source=source)


def _held(kept: Path) -> dict[str, Any]:
    with suppress(ValueError, KeyError, TypeError):
        held: dict[str, Any] = json.loads(kept.read_bytes())
        if held["sha256"] == _digest(held["rows"]):
            return held
    raise SourceError(f"{str(kept)!r} was changed: remove it, and it is fetched again")


def _digest(rows: Sequence[object]) -> str:
    """Of the prompts as JSON, a line each."""
    return hashlib.sha256("\n".join(map(json.dumps, rows)).encode()).hexdigest()


def _fetched(reference: Reference, api: HfApi | None) -> tuple[str | None, list[object]]:
    """The commit, where it is known, and the column of its prompts, or a draw of it."""
    commit, rows = None, list[object]()
    if reference.file:
        remote = Remote(api or HfApi(), str(reference.dataset))
        commit = remote.commit_of(str(reference.revision))
        for file in reference.file:
            rows += _rows_of(remote, commit, file, reference)
    else:
        rows = _loaded(reference)
    rows = [row if isinstance(row, str) else None for row in rows]  # counted as no text
    if reference.draw is not None and reference.draw < len(rows):
        drawn = np.random.default_rng(0).choice(len(rows), reference.draw, replace=False)
        rows = [rows[at] for at in sorted(drawn)]
    return commit, rows


def _rows_of(remote: Remote, commit: str, file: str, reference: Reference) -> list[object]:
    form, column = reference.format_of(Path(file)), str(reference.column)
    if form == "parquet":
        table = remote.columns(commit, file, [column])
        if not table.column_names:
            raise SourceError(f"reference {reference.name!r}: {file!r} has no column {column!r}")
        return list(table[column].to_pylist())
    with hub_errors(f"fetch {file!r} of {remote.repo_id!r}"):
        at = remote.api.hf_hub_download(remote.repo_id, file, repo_type=KIND, revision=commit)
    return texts_of(Path(at).read_bytes(), form, reference.column, f"reference {file!r}")


def _loaded(reference: Reference) -> list[object]:
    from datasets import load_dataset

    place = f"reference {reference.name!r}"
    named = {name: getattr(reference, name) for name in ("split", "revision")}
    try:
        rows = load_dataset(reference.dataset, reference.config, **named)
    except Exception as error:  # whatever the network, the repository or its files are short of
        raise HubError(
            f"cannot load {place} ({error_line(error)}): expected a dataset that the Hub or the "
            "cache holds at that revision"
        ) from error
    if reference.column not in rows.column_names:
        raise SourceError(unknown("column", str(reference.column), rows.column_names, place))
    return list(rows[reference.column])
