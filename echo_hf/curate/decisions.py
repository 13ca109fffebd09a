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
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic import ValidationError

from echo_hf.config_check import first_error, shown_value
from echo_hf.curate.decision import Decision, pictures_of
from echo_hf.errors import ReviewError
from echo_hf.reasons import Review

FILE = "review.jsonl"
LOCK = ".review.lock"
LONGEST_WAIT_S = 60

__all__ = [
    "FILE",
    "Decision",
    "Decisions",
    "append_decisions",
    "drop_decisions",
    "pictures_of",
    "read_decisions",
]

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Decisions:
    """The decision that counts for each sample.

    Attributes:
        by_id: Decisions by sample.
        cut: Numbers of the file's lines, from 1, that are cut short and do not count.
        every: All decisions, in the order of the file.
    """

    by_id: Mapping[str, Decision] = field(default_factory=dict)
    cut: tuple[int, ...] = ()
    every: tuple[Decision, ...] = field(default=(), compare=False)

    def removes(self, row: Row) -> bool:
        """Whether a sample is left out: while its prompt and inputs are those of the decision.

        Args:
            row: A row of samples.

        Returns:
            True when the last decision removes it.
        """
        last = self.by_id.get(row["id"])
        return last is not None and last.decision == "remove" and last.is_about(row)

    def changes(self, row: Row) -> Decision | None:
        """The decision that changes a sample, while it is about its prompt and its inputs.

        Args:
            row: A row of samples, as the stages before made it.

        Returns:
            The decision; null where nothing is changed.
        """
        last = self.by_id.get(row["id"])
        return last if last is not None and last.changed and last.is_about(row) else None

    def open_reasons(self, row: Row, closed: Collection[str] = ()) -> list[str]:
        """What a sample that is not left out is still to be reviewed for.

        Args:
            row: A row of samples, as the stages before made it.
            closed: Reasons that its changes have done away with.

        Returns:
            Nothing where it was kept as it is, with all of its pictures, for all of its reasons;
            else its reasons, with `removed_earlier` or `edited_earlier` where an earlier version
            was removed or edited, `edited_unscreened` where what a person brought into a screened
            one was not kept, and `second_look` where it was flagged.
        """
        last, reasons = self.by_id.get(row["id"]), list(row["review"] or ())
        if last is None or last.decision == "withdraw":
            return reasons
        if last.decision == "flag":
            reasons = [*reasons, Review.SECOND_LOOK.value]
        if last.decision == "remove":
            return [*reasons, Review.REMOVED_EARLIER.value]
        if not last.is_about(row):
            return [*reasons, *([Review.EDITED_EARLIER.value] if last.changed else [])]
        if last.decision == "keep" and last.covers(row):
            return []
        if last.decision != "keep" and last.changed and last.changed.brings_in and row["safety"]:
            reasons.append(Review.EDITED_UNSCREENED.value)
        return [one for one in reasons if one not in closed]

    def stale(self, row: Row) -> str | None:
        """What reviewers decided of a released sample that its release does not follow.

        Args:
            row: A row of a release, with `id`, `sample_digest`, `safety` and `provenance`.

        Returns:
            `removed`, `changed`, or `opened` where a person has to look at it again; null where it
            follows, or is of another version.
        """
        last = self.by_id.get(row["id"])
        if last is None or row["sample_digest"] not in self._versions(last):
            return None
        if last.decision == "remove":
            return "removed"
        now = last.changed.fingerprint if last.changed else None
        if applied(row["provenance"]) != now:
            return "changed"
        return "opened" if last.decision != "keep" and self._opens(last, row) else None

    def _opens(self, last: Decision, row: Row) -> bool:
        """Whether there is something open about the sample of a release that had nothing open."""
        seen = {"id": last.id, "sample_digest": last.sample_digest, "review": last.reasons}
        # What is open of a changed prompt would have kept the release itself open.
        closed = {Review.PERSONAL_DATA} if last.changed and last.changed.prompt else ()
        return bool(self.open_reasons({**seen, "safety": row["safety"]}, closed))

    def _versions(self, last: Decision) -> frozenset[str]:
        """The digests that a release may give what a decision is about, edited or not."""
        same = (
            one
            for one in (*self.every, last)
            if (one.id, one.sample_digest) == (last.id, last.sample_digest)
        )
        return frozenset(digest for one in same for digest in one.digests)

    def described(self) -> dict[str, str]:
        """What was decided about each sample, and about which version, for a stage's digest."""
        return {name: one.described() for name, one in sorted(self.by_id.items())}


def applied(provenance: str | None) -> str | None:
    """Which changes of a reviewer a released row has.

    Args:
        provenance: JSON, or null.

    Returns:
        Their fingerprint; null for none.

    Example:
        >>> applied('{"review": {"digest": "0123456789ab"}}')
        '0123456789ab'
    """
    try:
        found = json.loads(provenance or "{}")["review"]["digest"]
    except (ValueError, LookupError, TypeError):  # of a release that somebody wrote otherwise
        return None
    return found if isinstance(found, str) else None


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


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    try:
        with FileLock(path.with_name(LOCK), timeout=LONGEST_WAIT_S):
            yield
    except Timeout:
        raise ReviewError(
            f"another process has held {str(path)!r} for {LONGEST_WAIT_S} s: end it, and decide "
            "again"
        ) from None


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
