"""The decisions of reviewers about samples: one per line, in a file that only grows."""

from __future__ import annotations

import hashlib
import json
import os
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from echo_hf._infra.atomic import lock_file, replace_file
from echo_hf.config.checks import first_error
from echo_hf.errors import ReviewError
from echo_hf.samples.extract import MAX_PROMPT, Quality
from echo_hf.samples.sample import Review
from echo_hf.tables import Row

Role = Literal["input", "output", "neither"]
CutRole = Literal["input", "output"]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
PostUrl = Annotated[str, StringConstraints(min_length=1, max_length=2000)]
SideLength = Annotated[int, Field(ge=0)]
MAX_IMAGES = 1000
# Letters that look blank: fillers of Hangul, and the empty pattern of Braille.
BLANKS = "\u115f\u1160\u3164\uffa0\u2800"
DecisionKind = Literal["keep", "remove", "flag", "edit", "withdraw"]
DECISIONS_FILE = "review.jsonl"
LOCK_FILE = ".review.lock"
MAX_WAIT_SECONDS = 60


def check_text(text: str) -> str:
    """Return the text if any file can hold it and no terminal obeys it; raise otherwise."""
    for letter in text:
        if unicodedata.category(letter) == "Cs":
            raise ValueError("it has half characters: type it again")
        if unicodedata.category(letter) == "Cc" and letter not in "\t\n\r":
            raise ValueError(f"it has the control character {letter!r}: take it out")
    return text


def check_words(text: str) -> str:
    """Return the text if a reader sees something of it; raise otherwise."""
    if all(unicodedata.category(sign)[0] in "CMZ" or sign in BLANKS for sign in check_text(text)):
        raise ValueError("it has no word: expected one, or remove the sample")
    return text


def _check_area(box: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    left, top, right, bottom = box
    if left >= right or top >= bottom:
        raise ValueError("expected left, top, right, bottom, with right and bottom outside")
    return box


CropBox = Annotated[
    tuple[SideLength, SideLength, SideLength, SideLength], AfterValidator(_check_area)
]
CHECKED = AfterValidator(check_text)
ReviewLine = Annotated[str, StringConstraints(min_length=1, max_length=2000), CHECKED]
PersonName = Annotated[str, StringConstraints(min_length=1, max_length=100), CHECKED]


class ChangeModel(BaseModel):
    """A part of what a reviewer changed: immutable, and closed to unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PromptSpan(ChangeModel):
    """A part of a prompt, as the column `prompt_spans` holds it."""

    post_url: str | None
    field: str | None
    start: int | None
    end: int | None
    text: str | None


class PromptChange(ChangeModel):
    """A new prompt, and where its parts stand in the posts, as far as that can be given."""

    text: Annotated[str, StringConstraints(max_length=MAX_PROMPT), AfterValidator(check_words)]
    modified: bool  # it has words that nobody wrote in the thread; computed
    spans: Annotated[tuple[PromptSpan, ...], Field(max_length=10_000)] = ()


class RoleChange(ChangeModel):
    """A new role of an image; for an image that the sample did not have, the post that shows it."""

    sha256: Digest
    role: Role
    post_url: PostUrl | None = None
    url: PostUrl | None = None


class Crop(ChangeModel):
    """A part of the screenshot: left, top, right, bottom in pixels of the upright one."""

    role: CutRole
    box: CropBox
    sha256: Digest


class CropsChange(ChangeModel):
    """All crops of a screenshot, inputs first; they replace those before."""

    screenshot: Digest
    inset: Annotated[int, Field(ge=0, le=100)] = 0  # pixels left out along each side of a box
    crops: Annotated[tuple[Crop, ...], Field(max_length=MAX_IMAGES)]


class Changes(ChangeModel):
    """Everything a reviewer changed of a sample; what is null or empty stays as it was."""

    prompt: PromptChange | None = None
    quality: Quality | None = None
    roles: Annotated[tuple[RoleChange, ...], Field(max_length=MAX_IMAGES)] = ()
    crops: CropsChange | None = None
    sample_digest: Digest | None = None

    @property
    def changed_parts(self) -> tuple[str, ...]:
        parts = ("prompt", "quality", "roles", "crops")
        return tuple(name for name in parts if getattr(self, name))

    @property
    def images(self) -> frozenset[str]:
        cut = {crop.sha256 for crop in self.crops.crops} if self.crops else set()
        return frozenset(cut | {change.sha256 for change in self.roles if change.role != "neither"})

    @property
    def adds_content(self) -> bool:
        """Whether the sample has words or images that no model has seen with it."""
        added = (change for change in self.roles if change.role != "neither" and change.post_url)
        return self.prompt is not None or any(added)

    @property
    def fingerprint(self) -> str:
        """Twelve characters that stand for the changes."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:12]


class Decision(BaseModel):
    """A reviewer's decision about a sample, with what there was to see.

    `keep`: nothing is in the way of publishing it; `remove`: it is left out; `flag`: it stays open
    for somebody else; `edit`: it is changed, and nothing else is decided; `withdraw`: as if nobody
    had decided or changed anything.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: ReviewLine
    sample_digest: ReviewLine  # before any change of a reviewer
    decision: DecisionKind
    reasons: Annotated[tuple[ReviewLine, ...], Field(max_length=100)]  # why it was reviewed
    doubts: Annotated[tuple[ReviewLine, ...], Field(max_length=100)] = ()  # removed if it is kept
    pictures: Annotated[tuple[ReviewLine, ...], Field(max_length=10_000)] = ()
    note: ReviewLine | None = None
    at: ReviewLine | None = None  # in ISO 8601
    reviewer: PersonName | None = None  # by a pseudonym
    changes: Changes | None = None
    event: Annotated[int, Field(ge=1)] | None = None  # its last event in the app's log

    def is_about(self, row: Row) -> bool:
        """Return whether a sample still has the prompt and the inputs that it had then."""
        changes = self.changes or Changes()
        digests = {change.sha256 for change in changes.roles}
        digests |= {changes.crops.screenshot} if changes.crops else set()
        is_same = bool(self.sample_digest == row["sample_digest"])
        return is_same and digests.isdisjoint(cleaned_images(row))

    def covers(self, row: Row) -> bool:
        """Return whether the reviewer saw all reasons and images that a sample has now."""
        has_seen_images = set(sample_images(row)) <= set(self.pictures)
        return has_seen_images and set(row["review"] or ()) <= set(self.reasons)

    @property
    def edits(self) -> Changes | None:
        """The changes that a build applies; null where the decision is withdrawn."""
        has_any = self.changes is not None and bool(self.changes.changed_parts)
        return self.changes if has_any and self.decision != "withdraw" else None

    def describe(self) -> str:
        """Return the decision, and the version it is about, for a stage's digest."""
        version = [self.sample_digest, sorted(self.reasons), sorted(self.pictures)]
        version += [sorted(self.doubts)] if self.doubts else []
        text = json.dumps([*version, *([self.edits.fingerprint] if self.edits else [])])
        return f"{self.decision} {hashlib.sha256(text.encode()).hexdigest()[:12]}"


def cleaned_images(row: Row) -> dict[str, str | None]:
    """Return the images of a sample's posts that `privacy` cleaned of metadata."""
    return {image["posted_sha256"]: image["sha256"] for image in row.get("cleaned_images") or ()}


def sample_images(row: Row) -> tuple[str, ...]:
    screenshot = [row["screenshot"]] if row["screenshot"] else []
    digests = [*(row["input_images"] or ()), *(row["output_images"] or ()), *screenshot]
    return tuple(dict.fromkeys(digests))


@dataclass(frozen=True)
class ReviewDecisions:
    by_id: Mapping[str, Decision] = field(default_factory=dict)
    cut: tuple[int, ...] = ()
    log: tuple[Decision, ...] = field(default=(), compare=False)

    def removes(self, row: Row) -> bool:
        """Return whether a sample is left out, while the decision is on its prompt and inputs."""
        last = self.by_id.get(row["id"])
        return last is not None and last.decision == "remove" and last.is_about(row)

    def find_edit(self, row: Row) -> Decision | None:
        """Return the decision that changes a sample, while it is about its prompt and inputs."""
        last = self.by_id.get(row["id"])
        return last if last is not None and last.edits and last.is_about(row) else None

    def open_reasons(self, row: Row, closed: Collection[str] = ()) -> list[str]:
        """Return the reasons for which a sample that is not left out is still to be reviewed."""
        last, reasons = self.by_id.get(row["id"]), list(row["review"] or ())
        if last is None or last.decision == "withdraw":
            return reasons
        if last.decision == "flag":
            reasons = [*reasons, Review.SECOND_LOOK.value]
        if last.decision == "remove":
            return [*reasons, Review.REMOVED_EARLIER.value]
        if not last.is_about(row):
            return [*reasons, *([Review.EDITED_EARLIER.value] if last.edits else [])]
        if last.decision == "keep" and last.covers(row):
            return []
        if last.decision != "keep" and last.edits and last.edits.adds_content and row["safety"]:
            reasons.append(Review.EDITED_UNSCREENED.value)
        return [reason for reason in reasons if reason not in closed]

    def open_doubts(self, row: Row, doubts: Iterable[str] | None) -> list[str]:
        """Return a sample's doubts without those with which it was kept."""
        last = self.by_id.get(row["id"])
        accepted = last.doubts if last and last.decision == "keep" and last.is_about(row) else ()
        return [doubt for doubt in doubts or () if doubt not in accepted]

    def find_stale(self, row: Row) -> str | None:
        """Return how a released sample differs from what reviewers decided; null if it does not."""
        last = self.by_id.get(row["id"])
        if last is None:
            return None
        # A release may have the sample edited or not.
        version = (last.id, last.sample_digest)
        alike = [old for old in (*self.log, last) if (old.id, old.sample_digest) == version]
        edited = {old.changes.sample_digest for old in alike if old.changes}
        if row["sample_digest"] not in {last.sample_digest, *edited}:
            return None
        if last.decision == "remove":
            return "removed"
        if read_edit(row["provenance"]) != (last.edits.fingerprint if last.edits else None):
            return "changed"
        if last.decision == "keep":
            # A row of an older release has no doubts.
            return "kept" if set(row.get("doubts") or ()).intersection(last.doubts) else None
        # The release had nothing open, also no personal data of a changed prompt.
        closed = {Review.PERSONAL_DATA} if last.edits and last.edits.prompt else ()
        seen_row = {"id": last.id, "sample_digest": last.sample_digest, "review": last.reasons}
        is_open = self.open_reasons({**seen_row, "safety": row["safety"]}, closed)
        return "opened" if is_open else None

    def describe(self) -> dict[str, str]:
        """Return each sample's decision, and the version it is about, for a stage's digest."""
        return {name: decision.describe() for name, decision in sorted(self.by_id.items())}


def read_edit(provenance: str | None) -> str | None:
    """Return the fingerprint of the changes that a released row has; null for none."""
    try:
        fingerprint = json.loads(provenance or "{}")["review"]["digest"]
    except (ValueError, LookupError, TypeError):  # a release that was not written by this toolkit
        return None
    return fingerprint if isinstance(fingerprint, str) else None


def read_decisions(path: Path) -> ReviewDecisions:
    *lines, last = path.read_bytes().split(b"\n") if path.exists() else [b""]
    log = [_parse_decision(line, f"{path}:{n}") for n, line in enumerate(lines, 1) if line.strip()]
    if last.strip() and _is_complete(last):
        log.append(_parse_decision(last, f"{path}:{len(lines) + 1}"))
        last = b""
    cut = (len(lines) + 1,) if last.strip() else ()
    return ReviewDecisions({decision.id: decision for decision in log}, cut, tuple(log))


def append_decisions(path: Path, decisions: Iterable[Decision]) -> None:
    """Append decisions to the file; when this returns they outlive a crash."""
    text = "".join(decision.model_dump_json() + "\n" for decision in decisions)
    with _lock(path), path.open("ab+") as file:
        content = path.read_bytes()
        last = content.rpartition(b"\n")[2]
        if last and not _is_complete(last):
            file.truncate(len(content) - len(last))
        elif last:
            file.write(b"\n")
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def drop_decisions(path: Path, samples: Collection[str]) -> None:
    """Remove what reviewers saw and wrote of samples, and a line that was cut short."""
    if not path.exists():
        return
    cleared_fields = {"note": None, "pictures": (), "reviewer": None, "changes": None}
    with _lock(path), replace_file(path) as partial:
        stored, kept = read_decisions(path), []
        for decision in stored.log:
            if decision.id not in samples:
                kept.append(decision)
            elif decision.decision == stored.by_id[decision.id].decision == "remove":
                kept.append(decision.model_copy(update=cleared_fields))
        partial.write_text("".join(decision.model_dump_json() + "\n" for decision in kept), "utf-8")


def _lock(path: Path) -> AbstractContextManager[None]:
    busy_error = ReviewError(
        f"another process has held {str(path)!r} for {MAX_WAIT_SECONDS} s: end it, and decide again"
    )
    return lock_file(path.with_name(LOCK_FILE), busy_error, MAX_WAIT_SECONDS)


def _is_complete(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _parse_decision(line: bytes, place: str) -> Decision:
    try:
        return Decision.model_validate_json(line)
    except ValidationError as error:
        raise ReviewError(first_error(error, place, Decision)) from None
