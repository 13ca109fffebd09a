"""The decisions of reviewers: a file that only grows, one decision a line.

`runs/<name>/review.jsonl` holds lines such as

```
{"id": "LY6...", "sample_digest": "5a...", "decision": "keep", "reasons": ["may_show_minor"],
 "pictures": ["9f..."], "note": null, "at": "2026-03-09T10:12:00+00:00"}
```

each on one line; `reviewer` and `changes` (`echo_hf.curate.changes`) may stand in it, too. Of
several decisions about a sample the last one counts, alone: it repeats the changes of those before
that still hold. A line that a killed process cut short can only be the last one; it does not
count, is reported, and is gone with the next decision: what it was about stays open.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from pydantic import ValidationError

from echo_hf.config_check import first_error, shown_value
from echo_hf.curate.decision import Decision
from echo_hf.curate.decisions import Decisions
from echo_hf.errors import ReviewError
from echo_hf.file_lock import held

FILE = "review.jsonl"
LOCK = ".review.lock"
LONGEST_WAIT_S = 60


def read_decisions(path: Path) -> Decisions:
    """Reads the decisions of a run.

    Args:
        path: The file; it may be absent.

    Returns:
        The last decision about each sample.

    Raises:
        ReviewError: A line is no decision: it might be the one that removes a sample.
    """
    *lines, last = path.read_bytes().split(b"\n") if path.exists() else [b""]
    every = [_decision(line, f"{path}:{n}") for n, line in enumerate(lines, 1) if line.strip()]
    if last.strip() and _is_whole(last):
        every.append(_decision(last, f"{path}:{len(lines) + 1}"))
        last = b""
    cut = (len(lines) + 1,) if last.strip() else ()
    return Decisions({one.id: one for one in every}, cut, tuple(every))


def append_decisions(path: Path, decisions: Iterable[Decision]) -> None:
    """Writes decisions down; when this returns they outlive a crash.

    Args:
        path: The file, made when it is absent.
        decisions: What was decided.

    Raises:
        ReviewError: Another process does not let go of the file.
    """
    text = "".join(one.model_dump_json() + "\n" for one in decisions)
    with _locked(path), path.open("ab+") as file:
        written = path.read_bytes()
        last = written.rpartition(b"\n")[2]
        if last and not _is_whole(last):
            file.truncate(len(written) - len(last))
        elif last:
            file.write(b"\n")
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def drop_decisions(path: Path, samples: Collection[str]) -> None:
    """Forgets what reviewers saw and wrote of samples, and what was cut short.

    Of a removal its bare fact stays, without note and pictures: a sample of which a part is
    forgotten may come back with the next build, and must stay removed.

    Args:
        path: The file; it may be absent.
        samples: Ids of the samples.

    Raises:
        ReviewError: Another process does not let go of the file, or a line is no decision.
    """
    if not path.exists():
        return
    with _locked(path):
        found = read_decisions(path)
        removed = {name for name, one in found.by_id.items() if one.decision == "remove"}
        kept = (_forgetting(one, samples, removed) for one in found.every)
        partial = path.with_name(f".{path.name}.partial")
        partial.write_text("".join(one.model_dump_json() + "\n" for one in kept if one), "utf-8")
        partial.replace(path)


def _forgetting(
    one: Decision, samples: Collection[str], removed: Collection[str]
) -> Decision | None:
    if one.id not in samples:
        return one
    stays = one.decision == "remove" and one.id in removed
    bare = {"note": None, "pictures": (), "reviewer": None, "changes": None}
    return one.model_copy(update=bare) if stays else None


def _locked(path: Path) -> AbstractContextManager[None]:
    busy = ReviewError(
        f"another process has held {str(path)!r} for {LONGEST_WAIT_S} s: end it, and decide again"
    )
    return held(path.with_name(LOCK), busy, LONGEST_WAIT_S)


def _is_whole(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _decision(line: bytes, place: str) -> Decision:
    try:
        given = json.loads(line)
    except ValueError:
        shown = line[:80].decode("utf-8", "backslashreplace")
        raise ReviewError(
            f"{place}: {shown!r} is no decision: expected a JSON object; mend or remove the line, "
            "and decide again what it was about"
        ) from None
    if not isinstance(given, dict):
        raise ReviewError(f"{place}: {shown_value(given)} is no decision: expected a JSON object")
    try:
        return Decision.model_validate(given)
    except ValidationError as error:
        raise ReviewError(first_error(error, place, Decision)) from None
