"""What stands after the decisions of reviewers, and what is still open of a sample."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from echo_hf.curate.decision import Decision
from echo_hf.reasons import Review

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
