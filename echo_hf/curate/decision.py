"""One decision of a reviewer about a sample: what was seen, what was decided, what was changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from echo_hf.curate.changes import Changes, storable

Line = Annotated[str, StringConstraints(min_length=1, max_length=2000), AfterValidator(storable)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=100), AfterValidator(storable)]
Decided = Literal["keep", "remove", "flag", "edit", "withdraw"]
Row = Mapping[str, Any]


class Decision(BaseModel):
    """What a reviewer decided about a sample, and what there was to see.

    Attributes:
        id: The sample.
        sample_digest: The `sample_digest` that it had before any change of a reviewer.
        decision: `keep`: nothing is in the way of publishing it; `remove`: it is left out; `flag`:
            it stays open for somebody else; `edit`: it is changed, and nothing else is decided;
            `withdraw`: as if nobody had decided or changed anything.
        reasons: What it was to be reviewed for.
        pictures: Digests of its pictures.
        note: The reviewer's words.
        at: When, in ISO 8601.
        reviewer: Who, by a pseudonym.
        changes: What is changed of it; null for nothing.
        event: Number of the last event about it in the log of the app; null for another decision.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Line
    sample_digest: Line
    decision: Decided
    reasons: Annotated[tuple[Line, ...], Field(max_length=100)]
    pictures: Annotated[tuple[Line, ...], Field(max_length=10_000)] = ()
    note: Line | None = None
    at: Line | None = None
    reviewer: Name | None = None
    changes: Changes | None = None
    event: Annotated[int, Field(ge=1)] | None = None

    def is_about(self, row: Row) -> bool:
        """Whether a sample still has the prompt and the inputs that it had then.

        A change that names an image by the bytes that were posted is not about the same image
        without metadata: it could not be applied.
        """
        return bool(self.sample_digest == row["sample_digest"]) and not self._named.intersection(
            cleaned_in(row)
        )

    def covers(self, row: Row) -> bool:
        """Whether all reasons and pictures of a sample were there then."""
        seen = set(pictures_of(row)) <= set(self.pictures)
        return seen and set(row["review"] or ()) <= set(self.reasons)

    @property
    def _named(self) -> frozenset[str]:
        """Digests of the images that a change names."""
        if self.changes is None:
            return frozenset()
        shot = {self.changes.crops.screenshot} if self.changes.crops else set()
        return frozenset(shot | {one.sha256 for one in self.changes.roles})

    @property
    def changed(self) -> Changes | None:
        """What a build changes; nothing where it is withdrawn."""
        has_any = self.changes is not None and bool(self.changes.named)
        return self.changes if has_any and self.decision != "withdraw" else None

    @property
    def digests(self) -> frozenset[str]:
        """The `sample_digest`s that a release may give the version that it is about."""
        new = self.changes.sample_digest if self.changes else None
        return frozenset({self.sample_digest, *([new] if new else [])})

    def described(self) -> str:
        """What was decided, and about which version, for a stage's digest."""
        version: list[Any] = [self.sample_digest, sorted(self.reasons), sorted(self.pictures)]
        if self.changed:
            version.append(self.changed.fingerprint)
        text = json.dumps(version)
        return f"{self.decision} {hashlib.sha256(text.encode()).hexdigest()[:12]}"


def cleaned_in(row: Row) -> dict[str, str | None]:
    """The images of a sample's posts that `privacy` cleaned of metadata.

    Args:
        row: A row of samples.

    Returns:
        Digests without metadata by those as posted; null for what the sample must not get.
    """
    return {one["posted_sha256"]: one["sha256"] for one in row.get("cleaned_images") or ()}


def pictures_of(row: Row) -> tuple[str, ...]:
    """Digests of all pictures that a sample shows.

    Args:
        row: A row of samples.

    Returns:
        Those of inputs, outputs and screenshot, each once, in this order.
    """
    screenshot = [row["screenshot"]] if row["screenshot"] else []
    every = [*(row["input_images"] or ()), *(row["output_images"] or ()), *screenshot]
    return tuple(dict.fromkeys(every))
